"""How a change of image or pod settings reaches the members: one after another, each once the group is well. Pure.

Highest ordinal first and the primary last. As catalog servers sit on the lowest ordinals, that is the vendor's order.
"""

from __future__ import annotations

from moorage.api import kinds
from moorage.operators.xsld import names
from moorage.operators.xsld.reasons import Reason
from moorage.runtime import decision
from moorage.runtime.decision import DONE, Act, Blocked, Verdict, Wait

from . import tasks, types
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
    return pod.running and member is not None and member.online


def new_members_are_back(seen: Seen) -> Verdict:
    """While others are still of the old template, a replaced member must come back before the next one goes."""
    workload, old = seen.there.workload, outdated(seen)
    if workload is None or not old:
        return DONE
    late = types.seconds(seen.spec.update_strategy.member_timeout)
    for pod in seen.there.pods:
        if pod.revision != workload.revision or _works(seen, pod) or pod.ordinal >= workload.replicas:
            continue
        why = f": {pod.trouble}" if pod.trouble else ""
        if pod.created and seen.now - pod.created > late and seen.spec.update_strategy.pause_on_failure:
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
            again=seen.busy,
        )
    return DONE


def template_rolls(seen: Seen) -> Verdict:
    """The next member of an old template is replaced, if every other is Online."""
    old, group = outdated(seen), seen.group
    if not old or group is None or seen.spec.update_strategy.type == "OnDelete":
        return DONE
    pod = old[0]
    weak = [m.name for m in group.members if not m.online and m.name != pod.name]
    weak += [p.name for p in seen.there.pods if p.deleting and p.name != pod.name]
    missing = [names.pod(seen.name, n) for n in range(seen.spec.size) if not group.member(names.pod(seen.name, n))]
    if weak or missing:
        said = ", ".join(sorted({*weak, *missing}))
        return Wait(
            Reason.UPDATE_WAITS, f"{said} not online; {pod.name} is not replaced meanwhile", on="group", within=1800.0
        )
    if bad := [grid.name for grid in seen.told.grids or () if grid.status != seen.wanted.said.grid_online]:
        return Wait(Reason.UPDATE_WAITS, f"grid {', '.join(bad)} is not online", on="group", within=1800.0)
    member = group.member(pod.name)
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
        ref=kinds.POD.ref(seen.meta.namespace, pod.name, pod.uid),
        require=(decision.Guard("others_are_online", {"pod": pod.name}),),
    )
    return Act(Reason.UPDATING, f"{pod.name} is replaced by one of the current template", (evict,))


def _heir(seen: Seen) -> str:
    """The member with the copy, if it works."""
    members = seen.group.members if seen.group else ()
    return next((m.name for m in members if m.role == "slave" and m.online and seen.answer(m.name)), "")


def _said(pods: list[PodSeen]) -> str:
    return ", ".join(pod.name for pod in pods)
