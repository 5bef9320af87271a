"""Steps by which pods are replaced: dead ones at once, the rest one after another behind the system's gate. Pure.

A pod is of an old template if its `revision` is another than the current one. Who makes the new pod is the workload's
controller. What a system knows comes in as functions: the gate says what stands against taking a pod away, as a
verdict; `DONE` lets it go. The gate looks at the observation alone, so there is a guard as well, which looks live.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from moorage.api import builtin
from moorage.runtime import decision
from moorage.runtime.decision import DONE, Act, Blocked, Verdict, Wait

from . import waits
from .parts import PodSeen, WorkloadSeen

POD_IS_EXPENDABLE = "pod_is_expendable"
GATED_FOR = 1800.0
"""Seconds for which a gate may be closed before the wait for it is overdue."""


def outdated(pods: Iterable[PodSeen], workload: WorkloadSeen | None) -> list[PodSeen]:
    """Pods that the workload is to keep, and that are not of its current template; none while that is not known."""
    if workload is None or not workload.revision:
        return []
    return [pod for pod in pods if pod.revision != workload.revision and pod.ordinal < workload.replicas]


def all_are_current(pods: Iterable[PodSeen], workload: WorkloadSeen | None) -> bool:
    """Whether no pod can need what only an old template asks for."""
    return workload is not None and all(pod.revision == workload.revision for pod in pods)


def dead_are_replaced(
    pods: Iterable[PodSeen],
    revision: str,
    namespace: str,
    reason: decision.Reason,
    *,
    spared: Callable[[PodSeen], bool],
) -> Verdict:
    """A pod of an old template that serves nobody is made anew at once, whatever else is waited for.

    A bad image, node selector or limit must not outlive its correction. Nothing is lost: the pod has never been ready,
    or its container can't be kept running. `spared` are those that may hold something all the same. The guard
    `POD_IS_EXPENDABLE` looks once more (see `guards.expendable`).
    """
    dead = [
        pod
        for pod in pods
        if revision and pod.revision and pod.revision != revision and pod.expendable and not pod.deleting
    ]
    dead = [pod for pod in dead if not spared(pod)]
    if not dead:
        return DONE
    actions = tuple(
        delete(
            pod,
            namespace,
            "it does not come up, and the template has changed since",
            decision.Guard(POD_IS_EXPENDABLE, {"name": pod.name, "uid": pod.uid}),
        )
        for pod in dead
    )
    return Act(reason, f"{names(dead)} does not come up and is made anew from the current template", actions)


def next_is_replaced(
    old: Sequence[PodSeen],
    namespace: str,
    reason: decision.Reason,
    *,
    gate: Callable[[PodSeen], Verdict],
    guard: Callable[[PodSeen], decision.Guard],
    within: float,
    again: float,
    describe: waits.Describe,
) -> Verdict:
    """The first of these is evicted if the gate lets it go; nobody else before its end, which may take `within`."""
    if not old:
        return DONE
    pod = old[0]
    if pod.deleting:
        said = f"{describe([pod.name])} is being replaced"
        return Wait(reason, said, on="pod", within=within, again=again)
    held = gate(pod)
    if held != DONE:
        return held
    evict = decision.Evict(
        why="it is not of the current template",
        ref=builtin.POD.ref(namespace, pod.name, pod.uid),
        require=(guard(pod),),
    )
    return Act(reason, f"{pod.name} is replaced by one of the current template", (evict,))


def replaced_are_back(
    new: Iterable[PodSeen],
    old: Sequence[PodSeen],
    reason: decision.Reason,
    *,
    is_back: Callable[[PodSeen], bool],
    why: Callable[[str], str],
    now: float,
    on: str,
    within: float,
    pace: float,
    instead: Callable[[PodSeen, str], Verdict],
    blocked: decision.Reason | None,
) -> Verdict:
    """While others are still `old`, each `new` pod must be back before the next one goes.

    How long it is away is told by the pod alone, so that nothing else that happens starts that time anew. For one that
    did not come back in time (`within`, seconds) there is what `instead` says, given that in words; where that is
    `DONE` the rest is `blocked`, or waits on. It is looked at every `pace` seconds.
    """
    if not old:
        return DONE
    for pod in new:
        if is_back(pod):
            continue
        cause = f": {words}" if (words := why(pod.name)) else ""
        left = pod.since + within - now
        if left < 0:
            late = f"{pod.name} did not come back within {within:g} s{cause}"
            if (other := instead(pod, late)) != DONE:
                return other
            if blocked is not None:
                fix = "correct the image or the pod's settings"
                return Blocked(blocked, f"{late}; {names(old)} is left as it is", fix)
        said = f"{pod.name} is to come back{cause}; then {names(old)} is replaced"
        again = min(pace, left + 1.0) if left > 0 else pace
        return Wait(reason, said, on=on, within=within, again=again)
    return DONE


# --- what a gate may ask ------------------------------------------------------------------------------------------


def have_settled(
    pod: PodSeen,
    others: Iterable[PodSeen],
    reason: decision.Reason,
    *,
    back_since: Callable[[PodSeen], float],
    now: float,
    settle: float,
    said: str,
    on: str,
) -> Verdict:
    """Others that came back a moment ago get time, before the next one goes: `settle` seconds, in words `said`.

    Nobody may tell whether what they hold has been copied to them.
    """
    since = now - settle
    young = [other for other in others if back_since(other) > since]
    if not young:
        return DONE
    left = max(map(back_since, young)) - since
    message = f"{names(young)} came back less than {said} ago; then {pod.name} is replaced"
    return Wait(reason, message, on=on, within=GATED_FOR, again=left)


def budget_allows(pod: PodSeen, disruptions: int | None, reason: decision.Reason, *, again: float) -> Verdict:
    """The disruption budget lets one go, or there is none."""
    if disruptions != 0:
        return DONE
    message = f"the disruption budget lets nobody go at the moment; {pod.name} is not replaced meanwhile"
    return Wait(reason, message, on="budget", within=GATED_FOR, again=again)


# --- one pod ------------------------------------------------------------------------------------------------------


def delete(pod: PodSeen, namespace: str, why: str, *require: decision.Guard) -> decision.Delete:
    """This incarnation of the pod goes, whatever the disruption budget says."""
    return decision.Delete(
        why=why, resource=builtin.POD, ref=builtin.POD.ref(namespace, pod.name, pod.uid), require=require
    )


def names(pods: Iterable[PodSeen]) -> str:
    """What they are called."""
    return ", ".join(pod.name for pod in pods)
