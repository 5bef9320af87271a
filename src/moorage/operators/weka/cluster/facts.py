"""The conditions of a WekaCluster, under the original's names where it had one, and what its status tells. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moorage.api import conditions
from moorage.operators.weka import heeding, names
from moorage.runtime import decision, freshness
from moorage.runtime.decision import Fact

from . import control, deletion, replacing, rolling, types
from .observation import Seen
from .reasons import ClusterReason as Reason


def _from_objects(type_: str, of: Callable[[Seen], Fact]) -> Callable[[Seen], Fact]:
    def told(seen: Seen) -> Fact:
        if freshness.value_of(seen.objects) is None:
            return decision.as_it_stood(Fact(type_, None, Reason.OBJECTS_UNKNOWN), seen.status.conditions)
        return of(seen)

    return told


def _secrets(seen: Seen) -> Fact:
    login = seen.there.login
    made = bool(login.operator and login.user)
    return Fact("ClusterSecretsCreated", made, Reason.WELL if made else Reason.MAKING_LOGIN)


def _made(seen: Seen) -> Fact:
    lacking = [role for role in names.BACKEND if len(seen.of(role)) < seen.wanted(role)]
    return Fact("PodsCreated", not lacking, Reason.MAKING_CONTAINERS if lacking else Reason.WELL, ", ".join(lacking))


def _ready(seen: Seen) -> Fact:
    out = [it.name for role in names.BACKEND for it in seen.of(role) if not it.runs]
    said = f"not running: {', '.join(out)}" if out else ""
    return Fact("PodsReady", not out, Reason.CONTAINERS_NOT_READY if out else Reason.WELL, said)


def _formed(seen: Seen) -> Fact:
    return Fact("ClusterCreated", seen.formed, Reason.WELL if seen.formed else Reason.FORMING, seen.guid)


def _joined(seen: Seen) -> Fact:
    out = [it.name for role in names.BACKEND for it in seen.of(role) if not it.status.cluster_id]
    said = f"in no cluster: {', '.join(out)}" if out else ""
    return Fact("JoinedCluster", not out, Reason.CONTAINERS_JOIN if out else Reason.WELL, said)


def drives_added(seen: Seen) -> Fact:
    """DrivesAdded: as many as IO needs, or began with."""
    found = seen.known
    if found is None:
        return Fact("DrivesAdded", None, Reason.CLUSTER_UNKNOWN)
    wait = control.drives_are_enough(seen) if freshness.value_of(seen.objects) is not None else decision.DONE
    if wait is decision.DONE:
        return Fact("DrivesAdded", True, Reason.WELL, f"{len(found.drives)} drives")
    return Fact("DrivesAdded", False, Reason.WAITING_FOR_DRIVES, f"{len(found.drives)} drives")


def io_started(seen: Seen) -> Fact:
    """IoStarted: by the cluster's word."""
    found, words = seen.known, seen.dialect.words
    if found is None:
        return Fact("IoStarted", None, Reason.CLUSTER_UNKNOWN)
    runs = words.has(words.io_started, found.io)
    return Fact("IoStarted", runs, Reason.WELL if runs else Reason.STARTING_IO)


def default_fs(seen: Seen) -> Fact:
    """CondDefaultFsCreated."""
    found = seen.known
    if found is None:
        return Fact("CondDefaultFsCreated", None, Reason.CLUSTER_UNKNOWN)
    there = {control.CONFIG_FS, control.DEFAULT_FS} <= {*found.filesystems}
    return Fact("CondDefaultFsCreated", there, Reason.WELL if there else Reason.ADDING_FILESYSTEM)


def users(seen: Seen) -> Fact:
    """ClusterSecretsApplied: people have their login."""
    found = seen.known
    if found is None:
        return Fact("ClusterSecretsApplied", None, Reason.CLUSTER_UNKNOWN)
    there = names.user_secret(seen.name) in found.users
    return Fact("ClusterSecretsApplied", there, Reason.WELL if there else Reason.ADDING_USER)


def protected(seen: Seen) -> Fact:
    """Added: Protected: nothing has lost parts of its stripes."""
    found = seen.known
    if found is None:
        return Fact("Protected", None, Reason.CLUSTER_UNKNOWN)
    said = f"{found.unprotected} MiB are without their full protection" if found.unprotected else ""
    return Fact("Protected", not found.unprotected, Reason.SHRINK_GATED if said else Reason.WELL, said)


def available(seen: Seen) -> Fact:
    """Available: it serves, by its own word."""
    found, words = seen.known, seen.dialect.words
    if found is None:
        return Fact("Available", None, Reason.CLUSTER_UNKNOWN)
    serves = words.has(words.io_started, found.io) and words.has(words.well, found.status)
    return Fact(
        "Available", serves, Reason.WELL if serves else Reason.STARTING_IO, f"{found.status} {found.io}".strip()
    )


def spec_heeded(seen: Seen) -> Fact:
    """Added: SpecHeeded: which fields nothing follows from yet."""
    return heeding.told(types.unheeded(seen.spec), Reason.UNHEEDED, Reason.HEEDED)


Told = Callable[[Seen], Fact]


def _as_it_was(fact: Told) -> Told:
    """The same, but that a cluster that was not asked yet, as after a restart, stands as it stood."""

    def told(seen: Seen) -> Fact:
        found = fact(seen)
        return decision.as_it_stood(found, seen.status.conditions) if freshness.is_unseen(seen.cluster) else found

    return told


FACTS: tuple[Told, ...] = (
    _from_objects("ClusterSecretsCreated", _secrets),
    _from_objects("PodsCreated", _made),
    _from_objects("PodsReady", _ready),
    _from_objects("ClusterCreated", _formed),
    _from_objects("JoinedCluster", _joined),
    *(_as_it_was(fact) for fact in (drives_added, io_started, users, default_fs, protected, available)),
    spec_heeded,
)
READY_FACTS = frozenset({"Available"})
TOLD_FACTS = frozenset({"SpecHeeded"})


def word(seen: Seen, standing: decision.StepTaken | None) -> str:
    """The status in the original's word; Upgrading and Degraded are added."""
    if seen.meta.deleting and not deletion.is_cancelled(seen.meta.deletion_timestamp, seen.spec, seen.now):
        grace = deletion.left(seen.meta.deletion_timestamp, seen.spec, seen.now) > 0
        return "GracePeriod" if grace else "Destroying"
    name = standing.name if standing else ""
    if name in ("", "surplus_leaves", "who_leaves_is_gone"):
        return "Ready"
    if name == "drives_are_enough":
        return "WaitForDrives"
    if name == "io_runs":
        return "StartingIO"
    if freshness.value_of(seen.objects) is None or not seen.status.timestamps.io_started:
        return "Init"
    if rolling.old(seen):
        return "Upgrading"
    return "Degraded" if name in ("all_are_up", "cluster_answers") else seen.status.status or "Init"


def report(seen: Seen, standing: decision.StepTaken | None) -> dict[str, Any]:
    """The fields of the status that say how it stands; what is not known stays as it was."""
    fields: dict[str, Any] = {}
    unseen = standing is not None and isinstance(standing.verdict, decision.Wait) and standing.verdict.unseen
    if not unseen or not seen.status.status:
        fields["status"] = word(seen, standing)
    found = seen.known
    if found is not None:
        fields["clusterID"] = found.guid
        if io_started(seen).status and not seen.status.timestamps.io_started:
            fields["timestamps"] = {"ioStarted": conditions.timestamp(seen.now)}
    if freshness.value_of(seen.objects) is not None:
        fields["printer"] = {**seen.status.printer, **_printer(seen)}
        if seen.known is not None:
            fields["down"] = replacing.down(seen)
    return fields


def _printer(seen: Seen) -> dict[str, str]:
    told: dict[str, str] = {}
    for role, column in (("compute", "computeContainers"), ("drive", "driveContainers")):
        if seen.known is None and seen.formed and column in seen.status.printer:
            continue  # nobody has said yet who is up
        mine = seen.of(role)
        told[column] = f"{sum(seen.up(it) for it in mine)}/{len(mine)}/{seen.template.containers[role]}"
    if seen.known is not None:
        drives, words = seen.known.drives, seen.dialect.words
        active = sum(words.has(words.drive_active, it.status) for it in drives)
        told["drives"] = f"{active}/{len(drives)}/{sum(it.spec.num_drives for it in seen.of('drive'))}"
    return told
