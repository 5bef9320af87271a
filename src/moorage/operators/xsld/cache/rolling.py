"""How a change of image or pod settings reaches the members: one after another, each once the group is well. Pure.

Highest ordinal first and the primary last. As catalog servers sit on the lowest ordinals, that is the vendor's order.
"""

from __future__ import annotations

from moorage.api import builtin, conditions
from moorage.operators.xsld import names
from moorage.operators.xsld.reasons import Reason
from moorage.runtime import decision
from moorage.runtime.decision import DONE, Act, Blocked, Verdict, Wait

from . import causes, renewal, replication, tasks, types
from .seen import PodSeen, Seen


def outdated(seen: Seen) -> list[PodSeen]:
    """Pods that are not of the current template, in the order in which they are replaced."""
    workload = seen.there.workload
    if workload is None or not workload.revision:
        return []
    group = seen.group
    chief = group.primary.name if group and group.primary else names.pod(seen.name, 0)
    old = [pod for pod in seen.there.pods if pod.revision != workload.revision and pod.ordinal < workload.replicas]
    return sorted(old, key=lambda pod: (_works(seen, pod), pod.name == chief, -pod.ordinal))


def _works(seen: Seen, pod: PodSeen) -> bool:
    member = seen.group.member(pod.name) if seen.group else None
    return member is not None and member.online


def _registered(seen: Seen, pod: PodSeen) -> bool:
    """Whether the group knows the member under its pod's address, if it tells of addresses at all."""
    member = seen.group.member(pod.name) if seen.group else None
    return member is None or not member.address or not pod.address or member.address == pod.address


def new_members_are_back(seen: Seen) -> Verdict:
    """While others are still of the old template, a member that was replaced must come back before the next one goes.

    How long it is away is told by its pod alone, so that nothing else that happens starts that time anew.
    """
    workload, old = seen.there.workload, outdated(seen)
    if workload is None or not old:
        return DONE
    late = types.seconds(seen.spec.update_strategy.member_timeout)
    for pod in seen.there.pods:
        if pod.revision != workload.revision or pod.ordinal >= workload.replicas or pod.name not in seen.known:
            continue  # who was no member is nobody that is to come back
        if _works(seen, pod) and _registered(seen, pod):
            continue
        why = f": {cause}" if (cause := causes.of(seen, pod.name)) else ""
        left = pod.since + late - seen.now
        if left < 0 and (good := _last_good_image(seen)):
            note = decision.Remember(why="it is not tried again", fields={"failedImage": seen.spec.image})
            said = f"{pod.name} did not come back within {late:g} s{why}; all run {good} again"
            return Act(Reason.UPDATE_ROLLED_BACK, said, (note,))
        if left < 0 and seen.spec.update_strategy.pause_on_failure:
            return Blocked(
                Reason.UPDATE_STALLED,
                f"{pod.name} did not come back within {late:g} s{why}; {_said(old)} is left as it is",
                "correct the image or the pod's settings",
            )
        return Wait(
            Reason.UPDATING,
            f"{pod.name} is to come back{why}; then {_said(old)} is replaced",
            on="group",
            within=late,
            again=min(seen.busy, left + 1.0) if left > 0 else seen.busy,
        )
    return DONE


def _last_good_image(seen: Seen) -> str:
    """What a failed roll goes back to; nothing if that is not wanted, or it is not the image that has changed."""
    good = seen.status.good_image
    return good if seen.spec.update_strategy.rollback and good != seen.spec.image else ""


def image_is_as_asked(seen: Seen) -> Verdict:
    """After a roll back all is well, but not what the user asked for."""
    if not seen.refused_image:
        return DONE
    late = seen.spec.update_strategy.member_timeout
    return Blocked(
        Reason.UPDATE_ROLLED_BACK,
        f"a member of {seen.refused_image} did not come back within {late}; all run {seen.spec.image}",
        "name another image in spec.image; the same is tried again with updateStrategy.rollback: false",
    )


def template_rolls(seen: Seen) -> Verdict:
    """The next member of an old template is replaced, if every other is Online.

    Who was to join, and has given up its place as there was none, keeps nobody from being replaced.
    """
    group = seen.group
    if group is None or seen.spec.update_strategy.type == "OnDelete":
        return DONE
    old = [pod for pod in outdated(seen) if not pod.overdue or pod.name in group.names]
    if not old:
        return DONE
    pod = old[0]
    if pod.deleting:
        late, said = types.seconds(seen.spec.update_strategy.member_timeout), causes.of_all(seen, [pod.name])
        return Wait(Reason.UPDATING, f"{said} is being replaced", on="pod", within=late, again=seen.busy)
    weak = [m.name for m in group.members if not m.online and m.name != pod.name]
    if away := sorted({*weak, *coming(seen)} - {pod.name}):
        said = f"{causes.of_all(seen, away)} not online; {pod.name} is not replaced meanwhile"
        return Wait(Reason.UPDATE_WAITS, said, on="group", within=1800.0, again=seen.busy)
    if bad := grids_that_are_off(seen):
        said = f"{pod.name} is replaced once {bad}"
        return Wait(Reason.UPDATE_WAITS, said, on="group", within=1800.0, again=seen.busy)
    if _works(seen, pod) and (held := _held_back(seen, pod)):
        return held
    member = group.member(pod.name)
    if member and member.primary and not _heir(seen) and (heir := _next_copy(seen)):
        return replication.replicate(seen, heir, f"{heir} becomes the copy, before {pod.name} is replaced")
    if member and member.primary and (heir := _heir(seen)):
        return tasks.submit(
            seen,
            tasks.FAILOVER,
            heir,
            heir,
            reason=Reason.FAILING_OVER,
            message=f"{heir} becomes the primary, before {pod.name} is replaced",
        )
    evict = decision.Evict(
        why="it is not of the current template",
        ref=builtin.POD.ref(seen.meta.namespace, pod.name, pod.uid),
        require=(decision.Guard("others_are_online", {"pod": pod.name}),),
    )
    return Act(Reason.UPDATING, f"{pod.name} is replaced by one of the current template", (evict,))


def coming(seen: Seen) -> list[str]:
    """Who is to join: it may fail for the template that others are to get, or take the place that one leaves free.

    Who has no place may have given its own up by then (`Seen.yields`). Not whom a volume keeps out that the user is to
    delete.
    """
    kept = renewal.with_old_volumes(seen) if seen.spec.storage.reclaim_on_scale_down == "Retain" else ()
    return [name for name in seen.missing if name not in kept]


def grids_that_are_off(seen: Seen) -> str:
    """What is to be so before anybody goes, where it is not: all grids are known, and online."""
    if seen.told.grids is None:
        return "somebody tells whether the grids are online"
    bad = [grid.name for grid in seen.told.grids if grid.status != seen.wanted.said.grid_online]
    return f"grid {', '.join(bad)} is online" if bad else ""


def _held_back(seen: Seen, pod: PodSeen) -> Wait | None:
    """What stands against replacing a pod that works.

    Nobody tells whether grid data is copied to others that came back a moment ago, so they get time for it.
    """
    settle = seen.spec.update_strategy.settle
    others, since = seen.known - {pod.name}, seen.now - types.seconds(settle)
    if young := [other for other in seen.there.pods if other.name in others and _back_since(seen, other) > since]:
        said = f"{', '.join(p.name for p in young)} came back less than {settle} ago; then {pod.name} is replaced"
        left = max(_back_since(seen, p) for p in young) - since
        return Wait(Reason.UPDATING, said, on="group", within=1800.0, again=left)
    if seen.there.disruptions == 0:
        said = f"the disruption budget lets nobody go at the moment; {pod.name} is not replaced meanwhile"
        return Wait(Reason.UPDATE_WAITS, said, on="budget", within=1800.0, again=seen.busy)
    return None


def _back_since(seen: Seen, pod: PodSeen) -> float:
    """Since when its member works (epoch seconds): a pod is ready before the group has its member Online."""
    online = seen.online_since(pod.name)
    return max(pod.since, seen.now - conditions.age(online, seen.now) if online else 0.0)


def template_is_known(seen: Seen) -> Verdict:
    """Until the StatefulSet's controller has looked at a change, nobody knows whether the pods are up to date."""
    if seen.there.workload is None or seen.there.workload.revision:
        return DONE
    said = "the StatefulSet's controller is to look at the new template"
    return Wait(Reason.UPDATING, said, on="workload", within=300.0, unseen=True)


def _heir(seen: Seen) -> str:
    """The member with the copy, if it works."""
    members = seen.group.members if seen.group else ()
    return next((m.name for m in members if m.role == "slave" and m.online and seen.answer(m.name)), "")


def _next_copy(seen: Seen) -> str:
    """Who could hold the copy that the primary's replacement needs; nobody, if that failed a moment ago."""
    if not replication.wanted(seen) or seen.primary is None:
        return ""
    heir = replication.candidate(seen)
    return heir if heir and tasks.held_back(seen, tasks.REPLICATE, heir) is None else ""


def _said(pods: list[PodSeen]) -> str:
    return ", ".join(pod.name for pod in pods)
