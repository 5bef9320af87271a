"""The steps of a WekaCluster that is being deleted: it stands still for its grace, and then its containers go. Pure."""

from __future__ import annotations

from collections.abc import Callable

from moorage.api import conditions, quantities
from moorage.children import apply
from moorage.operators import steps
from moorage.operators.weka import names, place
from moorage.operators.weka.container import types as container_types
from moorage.runtime import decision
from moorage.runtime.decision import DONE, Act, Verdict, Wait

from . import control, types
from .observation import Seen
from .reasons import ClusterReason as Reason

PAUSED_WITHIN = 30 * 60.0
GONE_WITHIN = 60 * 60.0


def left(deleted: str | None, spec: types.WekaClusterSpec, now: float) -> float:
    """Seconds of the grace that are left; negative: it is over."""
    grace = quantities.seconds(spec.graceful_destroy_duration)
    return grace - conditions.age(deleted, now) if deleted else 0.0


def is_cancelled(deleted: str | None, spec: types.WekaClusterSpec, now: float) -> bool:
    """Whether a deletion is called off, within its grace."""
    asked = bool(spec.overrides and spec.overrides.cancel_deletion)
    return bool(deleted) and asked and left(deleted, spec, now) > 0


def state(
    deleted: str | None, spec: types.WekaClusterSpec, now: float, before: container_types.State, *, ends: bool = False
) -> container_types.State:
    """What the cluster's containers are to be: as they are, but for the end of it, or of its namespace (`ends`)."""
    if deleted and ends:
        return "destroying"
    if before in ("deleting", "destroying") or not deleted:
        return before
    if is_cancelled(deleted, spec, now):
        return "active"
    return "paused" if left(deleted, spec, now) > 0 else "destroying"


def namespace_ends(seen: Seen) -> Verdict:
    """Its rights are held until all is in order there; without them nothing can be done any more."""
    return place.namespace_ends(seen, Reason.LEAVING)


def nothing_was_made(seen: Seen) -> Verdict:
    """Where no rights were ever bound there is nothing to remove."""
    return steps.nothing_was_made(seen.binding, seen.allowed, Reason.BINDING, Reason.LEAVING)


def cancelled_is_looked_after(seen: Seen) -> Verdict:
    """As any other, for as long as the grace lasts; a deletion itself can't be taken back."""
    if not is_cancelled(seen.meta.deletion_timestamp, seen.spec, seen.now) or seen.namespace_ending:
        return DONE
    for step in control.STEPS:
        if (verdict := step(seen)) is not DONE and not (isinstance(verdict, Act) and verdict.go_on):
            return verdict
    after = left(seen.meta.deletion_timestamp, seen.spec, seen.now)
    said = f"the deletion is called off for {after / 3600:.1f} hours more; raise spec.gracefulDestroyDuration to stay"
    return Wait(Reason.DELETION_CANCELLED, said, on="spec", within=0.0, again=min(after, 3600.0) + 1.0)


def it_stands_still(seen: Seen) -> Verdict:
    """Within its grace: containers are paused, and all data is kept."""
    after = left(seen.meta.deletion_timestamp, seen.spec, seen.now)
    if after <= 0 or seen.namespace_ending:
        return DONE
    if (pausing := control.containers_are_right(seen)) is not DONE:
        return pausing
    late = [it.name for it in seen.there.containers if it.status.status != "Paused" and not it.deleting]
    if late:
        return Wait(Reason.GRACE_PERIOD, f"not paused yet: {', '.join(late)}", on="container", within=PAUSED_WITHIN)
    said = f"all data is kept for {after / 3600:.1f} hours more"
    return Wait(Reason.GRACE_PERIOD, said, on="spec", within=0.0, again=min(after, 3600.0) + 1.0)


def containers_go(seen: Seen) -> Verdict:
    """All, with what they hold: they are told so before they are deleted."""
    untold = [it for it in seen.there.containers if not it.child.good]
    if untold:
        writes = tuple(
            apply.write(names.CONTAINER, seen.there.bodies[it.name].body, it.child, why="the cluster is deleted")
            for it in untold
        )
        return Act(Reason.DESTROYING, f"{len(untold)} containers are told that they go", writes)
    staying = [it for it in seen.there.containers if not it.deleting]
    if not staying:
        return DONE
    gone = tuple(
        decision.Delete(
            why="the cluster is deleted",
            resource=names.CONTAINER,
            ref=names.CONTAINER.ref(seen.meta.namespace, it.name, it.uid),
        )
        for it in staying
    )
    return Act(Reason.DESTROYING, f"{len(staying)} containers are deleted", gone)


def containers_are_gone(seen: Seen) -> Verdict:
    """Each in its own time."""
    if not seen.there.containers:
        return DONE
    said = f"ending: {', '.join(it.name for it in seen.there.containers)}"
    return Wait(Reason.DESTROYING, said, on="container", within=GONE_WITHIN)


def it_may_go(seen: Seen) -> Verdict:
    """The last of its namespace also takes away what runs in pods, and gives the operator's rights back."""
    return place.it_may_go(seen, seen.there.scripts, Reason.LEAVING)


DELETION_STEPS: tuple[Callable[[Seen], Verdict], ...] = (
    nothing_was_made,
    namespace_ends,
    control.rights_are_bound,
    control.objects_are_known,
    cancelled_is_looked_after,
    it_stands_still,
    containers_go,
    containers_are_gone,
    it_may_go,
)
