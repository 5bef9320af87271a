"""The steps of an XsldCache that is being deleted. The whole group goes, so nobody leaves it one by one. Pure.

It ends although pods never started or nobody answers: all that it needs is the API server.
"""

from __future__ import annotations

from collections.abc import Callable

from moorage.children import ordinals, removal
from moorage.operators import accounts, steps
from moorage.operators.xsld import names
from moorage.operators.xsld.reasons import Reason
from moorage.runtime import decision, freshness
from moorage.runtime.decision import DONE, Act, Verdict

from . import member_trouble, objects
from .observation import Seen


def orphaning_is_honoured(seen: Seen) -> Verdict:
    """moorage.dev/on-delete=Orphan leaves everything where it is; what is owned must be let go of first."""
    return removal.orphaning_is_honoured(seen.meta, seen.there.children, seen.there.workload, Reason.LEAVING)


def nothing_was_made(seen: Seen) -> Verdict:
    """Where no rights were ever bound there is nothing to remove."""
    return steps.nothing_was_made(seen.binding, seen.allowed, Reason.BINDING, Reason.LEAVING)


def namespace_ends(seen: Seen) -> Verdict:
    """With the namespace everything goes, and rights with it."""
    return steps.namespace_ends(seen.namespace_ending, Reason.LEAVING)


def workload_is_gone(seen: Seen) -> Verdict:
    """The StatefulSet; its pods end with it."""
    there = seen.there
    return removal.workload_is_gone(there.workload, seen.meta.key, there.pods, Reason.REMOVING, owner="the cache")


def volumes_go(seen: Seen) -> Verdict:
    """By the policy of the spec, each once its own pod is gone: nobody's volume waits for another's pod."""
    if seen.spec.storage.reclaim_on_delete == "Retain":
        return DONE
    return removal.volumes_go(
        seen.there.volumes,
        seen.meta.namespace,
        Reason.CLEARING_VOLUME,
        in_use=lambda volume: seen.there.pod(ordinals.pod(seen.name, volume.ordinal)) is not None,
        why="the cache is deleted, and storage.reclaimOnDelete is Delete",
    )


def pods_are_gone(seen: Seen) -> Verdict:
    """They end with the StatefulSet, each in its time."""
    return removal.pods_are_gone(seen.there.pods, Reason.REMOVING, lambda pods: member_trouble.of_all(seen, pods))


def volumes_are_gone(seen: Seen) -> Verdict:
    """Whatever holds one of them is told of by the claim itself."""
    if seen.spec.storage.reclaim_on_delete == "Retain":
        return DONE
    return removal.volumes_are_gone(seen.there.volumes, Reason.CLEARING_VOLUME)


def cache_may_go(seen: Seen) -> Verdict:
    """Services, scripts and credentials go by their owner; the last cache gives the operator's rights back."""
    why = f"nothing of it is left but what {names.CACHE.kind} owns"
    if seen.neighbours:
        return steps.leave(Reason.LEAVING, why, decision.Guard("others_stay"))
    binding = freshness.value_of(seen.binding)
    if binding is None:
        raise ValueError("rights are bound before anything is removed")
    namespace = seen.meta.namespace
    unbind = accounts.unbind(binding, namespace, seen.rights, f"no cache is left in {namespace}")
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
