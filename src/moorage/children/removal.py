"""Steps of an object that is being deleted: what it owns goes, in order, and the deletion ends. Pure.

All that they need is the API server, so it ends although pods never started or nobody answers. What is owned and not
named here goes with its owner, by Kubernetes' own garbage collection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from moorage.api import builtin, common_status, meta
from moorage.runtime import decision
from moorage.runtime.decision import DONE, Act, Verdict, Wait

from . import objects, pod_replacement, volumes, waits
from .parts import Key, Pair, PodSeen, VolumeSeen, WorkloadSeen

PODS_GONE = 900.0
"""Seconds that the end of pods may take before the wait for it is overdue."""


def orphaning_is_honoured(
    metadata: meta.ObjectMeta,
    children: Iterable[Pair],
    workload: WorkloadSeen | None,
    reason: decision.Reason,
) -> Verdict:
    """moorage.dev/on-delete=Orphan leaves everything where it is; what is owned must be let go of first."""
    if metadata.annotations.get(common_status.ON_DELETE) != "Orphan":
        return DONE
    why = "it is left where it is, as moorage.dev/on-delete=Orphan asks"
    kept = [(desired.resource, desired.name, live.uid) for desired, live in children]
    if workload is not None:
        kept.append((builtin.STATEFUL_SET, metadata.name, workload.uid))
    let_go = tuple(
        objects.let_go(resource, (metadata.namespace, name), uid, why) for resource, name, uid in kept if uid
    )
    leave = decision.EditFinalizer(why=why, present=False)
    return Act(reason, "everything is left where it is", (*let_go, leave))


def workload_is_gone(
    workload: WorkloadSeen | None, key: Key, pods: Iterable[PodSeen], reason: decision.Reason, *, owner: str
) -> Verdict:
    """The StatefulSet; its pods end with it. `owner` is what its owner is called, such as "the cache"."""
    if workload is None:
        return DONE
    name = key[1]
    if not workload.child.deleting:
        remove = decision.Delete(
            why=f"{owner} is deleted",
            resource=builtin.STATEFUL_SET,
            ref=builtin.STATEFUL_SET.ref(*key, workload.uid),
            propagation="Background",
        )
        return Act(reason, f"StatefulSet {name} is deleted with its pods", (remove,))
    said = f"StatefulSet {name} is ending" + (f", with {them}" if (them := pod_replacement.names(pods)) else "")
    return Wait(reason, said, on="pod", within=PODS_GONE)


def volumes_go(
    left: Iterable[VolumeSeen],
    namespace: str,
    reason: decision.Reason,
    *,
    in_use: Callable[[VolumeSeen], bool],
    why: str,
) -> Verdict:
    """Each once its own pod is gone: nobody's volume waits for another's pod."""
    free = [volume for volume in left if not volume.deleting and not in_use(volume)]
    if not free:
        return DONE
    actions = tuple(volumes.delete(volume, namespace, why) for volume in free)
    return Act(reason, f"{volumes.names(free)} is deleted", actions)


def pods_are_gone(pods: Sequence[PodSeen], reason: decision.Reason, describe: waits.Describe) -> Verdict:
    """They end with their workload, each in its time."""
    if not pods:
        return DONE
    return Wait(reason, f"{describe(pod.name for pod in pods)} is ending", on="pod", within=PODS_GONE)


def volumes_are_gone(left: Sequence[VolumeSeen], reason: decision.Reason) -> Verdict:
    """Whatever holds one of them is told of by the claim itself; one whose pod is there was not deleted yet."""
    if not left:
        return DONE
    going = [volume for volume in left if volume.deleting]
    used = [volume for volume in left if not volume.deleting]
    said = [f"{volumes.names(going)} is being deleted"] if going else []
    said += [f"{volumes.names(used)} goes once its pod has ended"] if used else []
    return Wait(reason, "; ".join(said), on="volume", within=volumes.GONE_WITHIN)
