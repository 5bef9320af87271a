"""The steps of an installation that is being deleted. Pure.

It ends although pods never started or nobody answers: all that it needs is the API server. The database is not
touched: what is in it is the user's.
"""

from __future__ import annotations

from collections.abc import Callable

from moorage.children import parts, removal
from moorage.operators import steps
from moorage.runtime import freshness
from moorage.runtime.decision import DONE, Verdict

from . import names, objects
from .observation import Seen
from .reasons import Reason


def namespace_ends(seen: Seen) -> Verdict:
    """With the namespace everything goes, and rights with it."""
    return steps.namespace_ends(seen.namespace_ending, Reason.LEAVING)


def nothing_was_made(seen: Seen) -> Verdict:
    """Where no rights were ever bound there is nothing to remove."""
    return steps.nothing_was_made(seen.binding, seen.allowed, Reason.BINDING, Reason.LEAVING)


def orphaning_is_honoured(seen: Seen) -> Verdict:
    """moorage.dev/on-delete=Orphan leaves everything where it is; what is owned must be let go of first."""
    return removal.orphaning_is_honoured(seen.meta, objects.kept(seen), seen.there.rest.workload, Reason.LEAVING)


def workloads_are_gone(seen: Seen) -> Verdict:
    """REST members first, then the MASTER, which may still end their jobs; pods end with them."""
    for name, there in _both(seen):
        key = (seen.meta.namespace, name)
        verdict = removal.workload_is_gone(there.workload, key, there.pods, Reason.REMOVING, owner=objects.OWNER)
        if verdict != DONE:
            return verdict
    return DONE


def volumes_go(seen: Seen) -> Verdict:
    """By the policy of the spec, each once its own pod is gone."""
    if seen.spec.volumes.data.reclaim_on_delete == "Retain":
        return DONE
    for name, there in _both(seen):
        left = {pod.ordinal for pod in there.pods}

        def in_use(volume: parts.VolumeSeen, left: set[int] = left) -> bool:
            return volume.ordinal in left

        verdict = removal.volumes_go(
            there.volumes,
            seen.meta.namespace,
            Reason.CLEARING_VOLUME,
            in_use=in_use,
            why=f"the installation of {name} is deleted, and spec.volumes.data.reclaimOnDelete is Delete",
        )
        if verdict != DONE:
            return verdict
    return DONE


def pods_are_gone(seen: Seen) -> Verdict:
    """They end with their StatefulSets, each in its time."""
    return removal.pods_are_gone(seen.there.pods, Reason.REMOVING, seen.troubles)


def volumes_are_gone(seen: Seen) -> Verdict:
    """Whatever holds one of them is told of by the claim itself."""
    if seen.spec.volumes.data.reclaim_on_delete == "Retain":
        return DONE
    left = [volume for _, there in _both(seen) for volume in there.volumes]
    return removal.volumes_are_gone(left, Reason.CLEARING_VOLUME)


def installation_may_go(seen: Seen) -> Verdict:
    """Services and the document go by their owner; the last installation gives the operator's rights back."""
    why = f"nothing of it is left but what {names.COMMUNITY.kind} owns"
    binding, namespace = freshness.value_of(seen.binding), seen.meta.namespace
    last = steps.rights_returned(binding, namespace, seen.rights, seen.neighbours, f"no OpenCGA is left in {namespace}")
    return steps.it_may_go(last, Reason.LEAVING, why)


def _both(seen: Seen) -> tuple[tuple[str, parts.Objects], ...]:
    return (names.rest(seen.name), seen.there.rest), (names.master(seen.name), seen.there.master)


DELETION_STEPS: tuple[Callable[[Seen], Verdict], ...] = (
    namespace_ends,
    nothing_was_made,
    objects.rights_are_bound,
    objects.cluster_is_known,
    orphaning_is_honoured,
    workloads_are_gone,
    volumes_go,
    pods_are_gone,
    volumes_are_gone,
    installation_may_go,
)
