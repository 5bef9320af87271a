"""What is true of an XsldCache on every pass, wherever its steps stop; and the fields of its status. Pure."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from moorage.api import conditions
from moorage.children import ordinals, volumes
from moorage.children import reasons as object_reasons
from moorage.children.parts import PodSeen
from moorage.operators.xsld.group import answers
from moorage.operators.xsld.reasons import Reason
from moorage.runtime import decision, freshness
from moorage.runtime.decision import Fact

from . import left_members, member_trouble, replication, rolling, tasks, types
from .observation import Seen


def _wanted(seen: Seen) -> list[str]:
    return [ordinals.pod(seen.name, ordinal) for ordinal in range(seen.spec.size)]


def _online(seen: Seen) -> set[str]:
    return {m.name for m in seen.group.online} if seen.group else set()


def _primary_up(seen: Seen) -> bool:
    return freshness.value_of(seen.objects) is not None and seen.primary is not None


def _joined(seen: Seen) -> list[answers.Member]:
    """Who has joined for good: not who is about to join or to leave, by the group's word or by what we asked for."""
    task, moving = seen.task, _moving(seen)
    about = task.target if task is not None and task.command in (tasks.JOIN, tasks.LEAVE) else ""
    half = {trouble.target for trouble in seen.status.troubles if trouble.command == tasks.JOIN}
    members = seen.group.members if seen.group else ()
    return [m for m in members if m.name not in half | {about} and m.status not in moving]


def _formed(seen: Seen) -> bool:
    """Whether the cache was as it was asked for once: from then on it is judged by who has joined."""
    before = conditions.find(seen.status.conditions, "Available")
    return bool(seen.status.good_image) or (before is not None and before.status == "True")


def available(seen: Seen) -> Fact:
    """The group takes administrative writes, and most of its members serve; at first, all that are wanted."""
    if isinstance(seen.polled, freshness.Failed):
        return Fact("Available", None, Reason.LOOKING, seen.polled.message)
    online = _online(seen) & set(_wanted(seen))
    said = f"{len(online)} of {seen.spec.size} members are Online"
    if not _primary_up(seen):
        return Fact("Available", False, Reason.UNAVAILABLE, f"the primary does not answer; {said}")
    if len(online) >= seen.spec.size:
        return Fact("Available", True, Reason.AVAILABLE, said)
    if not _formed(seen):
        return Fact("Available", False, Reason.MEMBERS_NOT_ONLINE, said)
    joined = _joined(seen)
    serving = [m for m in joined if m.online]
    most = 2 * len(serving) > len(joined)
    of_joined = f"{len(serving)} of {len(joined)} that have joined are Online, {seen.spec.size} are wanted"
    return Fact("Available", most, Reason.MAJORITY if most else Reason.MEMBERS_NOT_ONLINE, of_joined)


def members_ready(seen: Seen) -> Fact:
    """Whether every wanted member is Online."""
    off = [name for name in _wanted(seen) if name not in _online(seen)]
    if seen.group is None:
        return Fact("MembersReady", None, Reason.GROUP_UNREACHABLE, "nobody tells of the group")
    if off:
        return Fact("MembersReady", False, Reason.MEMBERS_NOT_ONLINE, f"not online: {member_trouble.of_all(seen, off)}")
    return Fact("MembersReady", True, Reason.ALL_ONLINE, f"{seen.spec.size} members are Online")


def degraded(seen: Seen) -> Fact:
    """Whether a member that had joined is not Online, or the primary is away."""
    if isinstance(seen.polled, freshness.Failed):
        return Fact("Degraded", None, Reason.LOOKING, seen.polled.message)
    if seen.group is None:
        was = bool(seen.status.member_statuses)
        return Fact("Degraded", was, Reason.GROUP_UNREACHABLE if was else Reason.IDLE, "nobody answers" if was else "")
    off = sorted(m.name for m in _joined(seen) if not m.online)
    if off:
        return Fact("Degraded", True, Reason.GROUP_DEGRADED, f"not online: {', '.join(off)}")
    if not _primary_up(seen):
        return Fact("Degraded", True, Reason.PRIMARY_UNAVAILABLE, "the primary does not answer")
    if seen.spec.derby_replication.mode == "Enabled" and replication_healthy(seen).status is False:
        return Fact("Degraded", True, Reason.REPLICATION_MISSING, "there is no copy of the administrative database")
    return Fact("Degraded", False, Reason.STANDS, "")


def _moving(seen: Seen) -> tuple[str, str]:
    said = seen.wanted.said.member
    return said.joining, said.leaving


def watching(seen: Seen) -> Fact:
    """Whether the group's state is read."""
    if isinstance(seen.polled, freshness.Failed):
        return Fact("Watching", None, Reason.LOOKING, seen.polled.message)
    if seen.group is None:
        if seen.polled.value.rejected:
            return Fact("Watching", False, Reason.CREDENTIALS_REJECTED, "the members refuse the password")
        return Fact("Watching", False, Reason.GROUP_UNREACHABLE, "nobody answers")
    if silent := [fault for m in seen.group.online if (fault := seen.fault(m.name))]:
        return Fact("Watching", True, Reason.MEMBER_SILENT, "; ".join(f"{it.pod}: {it.words}" for it in silent))
    return Fact("Watching", True, Reason.WATCHING, "")


def _under_way(seen: Seen, type_: str, command: str, reason: Reason, failed: Reason) -> Fact:
    current = seen.task
    if current is not None and current.command == command:
        return Fact(type_, True, reason, f"{current.target}, attempt {current.attempts}")
    for trouble in seen.status.troubles:
        if trouble.command == command:
            return Fact(type_, False, failed, f"{trouble.target}, {trouble.attempts} attempts: {trouble.message}")
    return Fact(type_, False, Reason.IDLE, "")


def joining(seen: Seen) -> Fact:
    """Whether a member is joining."""
    return _under_way(seen, "Joining", tasks.JOIN, Reason.JOINING, Reason.JOIN_FAILED)


def disjoining(seen: Seen) -> Fact:
    """Whether a member is leaving."""
    return _under_way(seen, "Disjoining", tasks.LEAVE, Reason.DISJOINING, Reason.DISJOIN_FAILED)


def scaling(seen: Seen) -> Fact:
    """Whether the group has another size than is wanted."""
    if seen.group is None:
        return Fact("Scaling", False, Reason.IDLE, "")
    have = len(seen.group.members)
    if have == seen.spec.size and seen.group.names == set(_wanted(seen)):
        return Fact("Scaling", False, Reason.STANDS, "")
    said = f"{have} members, {seen.spec.size} are wanted"
    if away := [name for name in _wanted(seen) if seen.group.member(name) is None]:
        said = f"{said}; to join: {member_trouble.of_all(seen, away)}"
    return Fact("Scaling", True, Reason.RESIZING, said)


def updating(seen: Seen) -> Fact:
    """Whether members are of an old template."""
    if freshness.value_of(seen.objects) is None:
        return Fact("Updating", None, Reason.CLUSTER_UNKNOWN, "")
    old = rolling.outdated(seen)
    if not old:
        return Fact("Updating", False, Reason.STANDS, "")
    said = ", ".join(pod.name for pod in old)
    if seen.spec.update_strategy.type == "OnDelete":
        return Fact("Updating", False, Reason.UPDATE_ON_DELETE, f"of an old template until deleted: {said}")
    if seen.spec.size == 1:
        return Fact("Updating", True, Reason.DOWNTIME_EXPECTED, f"{said} is the only member: its data is lost")
    bare = [grid.name for grid in seen.told.grids or () if _replicas(grid) == 0]
    if bare:
        return Fact(
            "Updating", True, Reason.DOWNTIME_EXPECTED, f"to be replaced: {said}; without replicas: {', '.join(bare)}"
        )
    return Fact("Updating", True, Reason.UPDATING, f"to be replaced: {said}")


def _replicas(grid: answers.Grid) -> int:
    counts = (str(grid.fields.get(name, "0")) for name in ("numSyncReplicas", "numAsyncReplicas"))
    return sum(int(count) for count in counts if count.isdecimal())


def recovering(seen: Seen) -> Fact:
    """Whether a failure is being healed."""
    current = seen.task
    if current is not None and current.command == tasks.FAILOVER:
        return Fact("Recovering", True, Reason.FAILING_OVER, f"{current.target} becomes the primary")
    fact = degraded(seen)
    if fact.status is not False:
        return Fact("Recovering", fact.status, fact.reason, fact.message)
    return Fact("Recovering", False, Reason.IDLE, "")


def replication_healthy(seen: Seen) -> Fact:
    """Whether the administrative database has its copy."""
    if not replication.wanted(seen):
        return Fact("ReplicationHealthy", False, Reason.REPLICATION_OFF, "there is no copy")
    slave = replication.slave_of(seen)
    if seen.group is None:
        return Fact("ReplicationHealthy", None, Reason.GROUP_UNREACHABLE, "nobody tells of the group")
    if slave is not None and slave.name in _online(seen):
        return Fact("ReplicationHealthy", True, Reason.STANDS, f"{slave.name} holds the copy")
    return Fact("ReplicationHealthy", False, Reason.REPLICATION_MISSING, "there is no copy at the moment")


def transport_verified(seen: Seen) -> Fact:
    """Whether it is verified who answers at a member's address, before the password is sent there."""
    tls = seen.spec.tls
    if tls.verified:
        by = f"ca.crt of Secret {tls.ca_secret_ref}" if tls.ca_secret_ref else "an authority of the operator's image"
        return Fact("TransportVerified", True, Reason.CERTIFICATES_VERIFIED, f"certificates must be signed by {by}")
    said = "any certificate is taken at the addresses of the cache's pods; spec.tls.caSecretRef would have it verified"
    return Fact("TransportVerified", False, Reason.CERTIFICATES_NOT_VERIFIED, said)


def valid(seen: Seen) -> Fact:
    """Whether what the user gives can be worked with."""
    if not seen.allowed:
        return Fact("Valid", False, Reason.NAMESPACE_NOT_ALLOWED, f"namespace {seen.meta.namespace}")
    if fault := freshness.value_of(seen.credentials):
        return Fact("Valid", False, Reason.CREDENTIALS_INVALID, fault)
    if fault := freshness.value_of(seen.entrypoint):
        return Fact("Valid", False, Reason.ENTRYPOINT_MISSING, fault)
    return Fact("Valid", True, Reason.STANDS, "")


FactOf: TypeAlias = Callable[[Seen], Fact]


def _as_it_was(fact: FactOf) -> FactOf:
    """The same, but that a group which nobody has asked yet, as after a restart, stands as it stood."""

    @functools.wraps(fact)
    def told(seen: Seen) -> Fact:
        found = fact(seen)
        unseen = found.status is None and freshness.is_unseen(seen.polled)
        return decision.as_it_stood(found, seen.status.conditions) if unseen else found

    return told


FACTS: tuple[FactOf, ...] = (
    valid,
    _as_it_was(available),
    _as_it_was(members_ready),
    _as_it_was(degraded),
    _as_it_was(watching),
    joining,
    disjoining,
    scaling,
    updating,
    _as_it_was(recovering),
    _as_it_was(replication_healthy),
    transport_verified,
)
READY_FACTS = frozenset({"Available", "MembersReady"})


# --- status ------------------------------------------------------------------------------------------------------


def report(seen: Seen, standing: decision.StepTaken | None) -> dict[str, Any]:
    """The fields of the status that say how it stands; what is not known stays as it was."""
    said: dict[str, Any] = {
        "size": seen.spec.size,
        "phase": phase(seen, standing),
        "targetImage": seen.refused_image or seen.spec.image,
        "selector": ",".join(f"{key}={value}" for key, value in seen.wanted.selector.items()),
    }
    if freshness.value_of(seen.objects) is None:
        return said
    sizes = [it.size for it in seen.there.volumes if not it.deleting and volumes.whole_bytes(it.size)]
    if sizes:
        said["volumeSize"] = min(sizes, key=volumes.whole_bytes)
    images = {pod.image for pod in seen.there.pods if pod.image}
    if len(images) == 1:
        said["currentImage"] = images.pop()
        if standing is None:
            said |= {"goodImage": said["currentImage"], "failedImage": "", "growsAfter": ""}
    said["online"] = len(_online(seen))
    if freshness.value_of(seen.polled) is not None:
        said["pendingTasks"] = len(seen.told.running)
    if seen.told.grids is not None:
        said["grids"] = [grid.name for grid in seen.told.grids]
        said["gridCount"] = len(seen.told.grids)
    said["taskProgress"] = _progress(seen)
    if seen.group is None:
        return said
    members = [_member(seen, m) for m in seen.group.members]
    said["members"] = len(members)
    if dropped := left_members.dropped(seen, seen.group):
        members.append(msgspec.to_builtins(msgspec.structs.replace(dropped, state=types.REMOVED)))
    said["memberStatuses"] = sorted(members, key=lambda m: m["ordinal"])
    said["catalogMembers"] = sorted(m.name for m in seen.group.members if m.catalog)
    if seen.primary is not None:
        said["primary"] = seen.primary.name
    said["replication"] = _replication(seen)
    return said


def _member(seen: Seen, member: answers.Member) -> dict[str, Any]:
    pod: PodSeen = seen.there.pod(member.name) or PodSeen(member.name, -1, "")
    # the group may still speak of the pod before
    works = member.online and pod.ready and member.address == pod.address
    return {
        "name": member.name,
        "ordinal": ordinals.of(seen.name, member.name),
        "podIP": pod.address,
        "registeredIP": member.address,
        "state": member.status,
        "catalog": member.catalog,
        "image": pod.image,
        "onlineSince": seen.online_since(member.name),
        "startedAt": conditions.timestamp(pod.started_at) if works else seen.online_run(member.name),
    }


def _replication(seen: Seen) -> dict[str, Any]:
    slave, current = replication.slave_of(seen), seen.task
    starting = current is not None and current.command == tasks.REPLICATE
    state = "Starting" if starting else "Off"
    if slave is not None:
        state = "Running" if slave.online else "Broken"
    return {
        "master": seen.primary.name if seen.primary and slave else "",
        "slave": slave.name if slave else "",
        "state": state,
        "progress": _percent(seen) if starting else 100 if state == "Running" else 0,
    }


def _progress(seen: Seen) -> dict[str, Any] | None:
    """How far the task that is followed is, and since when; what was known, where nobody tells."""
    current, before = seen.task, seen.status.task_progress
    if current is None:
        return None
    task = tasks.find(seen, current)
    if task is None:
        return None if before is None or before.intent != current.intent else dict(msgspec.to_builtins(before))
    if before is not None and (before.intent, before.percent) == (current.intent, task.progress):
        return dict(msgspec.to_builtins(before))
    return dict(msgspec.to_builtins(types.TaskProgress(current.intent, task.progress, conditions.timestamp(seen.now))))


def _percent(seen: Seen) -> int:
    found = _progress(seen)
    return int(found["percent"]) if found else 0


def phase(seen: Seen, standing: decision.StepTaken | None) -> str:
    """One word for people; `standing` is where the steps stopped."""
    if seen.meta.deleting:
        return "Deleting"
    match standing:
        case decision.StepTaken(verdict=decision.Blocked(reason=object_reasons.PodReason.NODE_DOWN)):
            pass  # the others serve on
        case decision.StepTaken(verdict=decision.Blocked()):
            return "Failed"
    if freshness.value_of(seen.objects) is None or seen.there.workload is None:
        return "Pending"
    if standing is not None and not any(m.state for m in seen.status.member_statuses):
        return "Creating"
    if degraded(seen).status:
        return "Updating" if updating(seen).status else "Degraded"
    if updating(seen).status:
        return "Updating"
    if scaling(seen).status:
        created = conditions.find(seen.status.conditions, "Available")
        first = created is None or (created.status != "True" and created.observed_generation <= 1)
        return "Creating" if first and seen.meta.generation <= 1 else "Scaling"
    return "Running"
