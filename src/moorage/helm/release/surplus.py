"""Objects that should be gone: found by live reads, deleted by uid, waited for. Pure."""

from __future__ import annotations

from moorage.helm import observation
from moorage.helm.observation import ReleaseSeen
from moorage.helm.reasons import Reason
from moorage.helm.runs import attempts
from moorage.runtime import decision, freshness
from moorage.runtime.decision import Act, Blocked, Verdict, Wait

from . import manifest

MINUTE = 60.0
HELD = 5 * MINUTE
"""Seconds after which an object that a finalizer holds is a person's business."""


def surplus(held: observation.ClaimSeen, record: observation.RecordSeen | None) -> tuple[manifest.InventoryItem, ...]:
    """What the claim lists beyond the record, `keep` objects aside: it must be gone."""
    recorded = {item.ref.identity for item in record.inventory} if record else set()
    return tuple(item for item in held.inventory if item.ref.identity not in recorded and not item.keep)


def _ending(reason: Reason, left: tuple[observation.Leftover, ...]) -> Verdict:
    """All are on their way out; of one that a finalizer holds it is said whose that is."""
    held = next((item for item in left if item.held_by), None)
    if held is None:
        names = ", ".join(str(item.ref) for item in left[:5])
        since = min(item.since for item in left)
        return Wait(reason, f"{names} still terminating", on="leftovers", within=HELD, again=2.0, since=since)
    finalizers, ref = ", ".join(held.held_by), held.ref
    place = f" -n {ref.namespace}" if ref.namespace else ""
    return Wait(
        Reason.HELD,
        f"{ref} is being deleted since {held.since}, and held by its finalizer {finalizers}",
        on="leftovers",
        within=HELD,
        again=2.0,
        next=f"the controller that has set {finalizers} is awaited, which must take it away from {ref}",
        since=held.since,
        fix=f"see why the controller that has set {finalizers} does not take it away; if that is gone for good, do it: "
        f"kubectl edit {held.resource.group_kind} {ref.name}{place}",
    )


def go(r: ReleaseSeen, reason: Reason) -> Verdict | None:
    if isinstance(r.leftovers, freshness.Failed) and not r.leftovers.transient:
        way_out = attempts.way_out(r.leftovers.reason, r.leftovers.message)
        return Blocked(r.leftovers.reason, r.leftovers.message, f"{way_out}, or {attempts.LEAVE_IT}")
    if isinstance(r.leftovers, freshness.Failed):
        return decision.unknown(reason, r.leftovers, "leftovers")
    left = r.leftovers.value
    if not left:
        return None
    alive = [item for item in left if not item.terminating]
    if not alive:
        return _ending(reason, left)
    actions = tuple(
        decision.Delete(
            why="it is in the inventory of the release and no longer in the release",
            resource=item.resource,
            ref=item.ref,
            resource_version=item.resource_version,
        )
        for item in alive
    )
    return Act(reason, "removed: " + ", ".join(str(item.ref) for item in alive[:5]), actions)
