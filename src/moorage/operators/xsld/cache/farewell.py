"""The steps of an XsldCache that is being deleted. The whole group goes, so nobody leaves it one by one. Pure.

It ends although pods never started or nobody answers: all that it needs is the API server.
"""

from __future__ import annotations

from collections.abc import Callable

from moorage.api import builtin, common_status
from moorage.operators import access, steps
from moorage.operators.xsld import names
from moorage.operators.xsld.reasons import Reason
from moorage.runtime import decision, freshness
from moorage.runtime.decision import DONE, Act, Verdict, Wait

from . import causes, objects
from .seen import Seen

PODS_GONE = 900.0


def orphaning_is_honoured(seen: Seen) -> Verdict:
    """moorage.dev/on-delete=Orphan leaves everything where it is; what is owned must be let go of first."""
    if seen.meta.annotations.get(common_status.ON_DELETE) != "Orphan":
        return DONE
    why = "it is left where it is, as moorage.dev/on-delete=Orphan asks"
    kept = [(child.resource, child.name, live.uid) for child, live in seen.there.children]
    if seen.there.workload is not None:
        kept.append((builtin.STATEFUL_SET, seen.name, seen.there.workload.uid))
    let_go = tuple(
        decision.Patch(
            why=why,
            resource=resource,
            ref=resource.ref(seen.meta.namespace, name, uid),
            ops=({"op": "add", "path": "/metadata/ownerReferences", "value": []},),
        )
        for resource, name, uid in kept
        if uid
    )
    leave = decision.EditFinalizer(why=why, present=False)
    return Act(Reason.LEAVING, "everything is left where it is", (*let_go, leave))


def nothing_was_made(seen: Seen) -> Verdict:
    """Where no rights were ever bound there is nothing to remove."""
    if isinstance(seen.binding, freshness.Failed):
        return decision.unknown(Reason.BINDING, seen.binding, "binding")
    if seen.binding.value is None and not seen.allowed:
        return steps.leave(Reason.LEAVING, "nothing was made")
    return DONE


def namespace_ends(seen: Seen) -> Verdict:
    """With the namespace everything goes, and rights with it."""
    if seen.namespace_ending:
        return steps.leave(Reason.LEAVING, "the namespace is being deleted with everything in it")
    return DONE


def workload_is_gone(seen: Seen) -> Verdict:
    """The StatefulSet; its pods end with it."""
    workload = seen.there.workload
    if workload is not None and not workload.child.deleting:
        remove = decision.Delete(
            why="the cache is deleted",
            resource=builtin.STATEFUL_SET,
            ref=builtin.STATEFUL_SET.ref(seen.meta.namespace, seen.name, workload.uid),
            propagation="Background",
        )
        return Act(Reason.REMOVING, f"StatefulSet {seen.name} is deleted with its pods", (remove,))
    if workload is not None:
        said = ", ".join(pod.name for pod in seen.there.pods)
        said = f"StatefulSet {seen.name} is ending" + (f", with {said}" if said else "")
        return Wait(Reason.REMOVING, said, on="pod", within=PODS_GONE)
    return DONE


def volumes_go(seen: Seen) -> Verdict:
    """By the policy of the spec, each once its own pod is gone: nobody's volume waits for another's pod."""
    if seen.spec.storage.reclaim_on_delete == "Retain":
        return DONE
    free = [v for v in seen.there.volumes if not v.deleting and not seen.there.pod(names.pod(seen.name, v.ordinal))]
    if not free:
        return DONE
    actions = tuple(
        decision.Delete(
            why="the cache is deleted, and storage.reclaimOnDelete is Delete",
            resource=builtin.VOLUME_CLAIM,
            ref=builtin.VOLUME_CLAIM.ref(seen.meta.namespace, volume.name, volume.uid),
        )
        for volume in free
    )
    return Act(Reason.CLEARING_VOLUME, f"{', '.join(v.name for v in free)} is deleted", actions)


def pods_are_gone(seen: Seen) -> Verdict:
    """They end with the StatefulSet, each in its time."""
    if not seen.there.pods:
        return DONE
    said = f"{causes.of_all(seen, (pod.name for pod in seen.there.pods))} is ending"
    return Wait(Reason.REMOVING, said, on="pod", within=PODS_GONE)


def volumes_are_gone(seen: Seen) -> Verdict:
    """Whatever holds one of them is told of by the claim itself."""
    if seen.spec.storage.reclaim_on_delete == "Retain" or not seen.there.volumes:
        return DONE
    said = ", ".join(volume.name for volume in seen.there.volumes)
    return Wait(Reason.CLEARING_VOLUME, f"{said} is being deleted", on="volume", within=objects.VOLUMES_GONE)


def cache_may_go(seen: Seen) -> Verdict:
    """Services, scripts and credentials go by their owner; the last cache gives the operator's rights back."""
    why = f"nothing of it is left but what {names.CACHE.kind} owns"
    if seen.neighbours:
        return steps.leave(Reason.LEAVING, why, decision.Guard("others_stay"))
    binding = freshness.value_of(seen.binding)
    if binding is None:
        raise ValueError("rights are bound before anything is removed")
    namespace = seen.meta.namespace
    unbind = access.unbind(binding, namespace, seen.rights, f"no cache is left in {namespace}")
    return Act(Reason.LEAVING, why, (unbind, decision.EditFinalizer(why=why, present=False)))


DELETION_STEPS: tuple[Callable[[Seen], Verdict], ...] = (
    namespace_ends,
    nothing_was_made,
    objects.rights_are_bound,
    objects.cluster_is_known,
    orphaning_is_honoured,
    workload_is_gone,
    volumes_go,
    pods_are_gone,
    volumes_are_gone,
    cache_may_go,
)
