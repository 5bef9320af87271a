"""Objects that should be gone: found by live reads, deleted by uid, waited for. Pure."""

from __future__ import annotations

from moorage.runtime import decision, observed
from moorage.runtime.decision import Act, Verdict, Wait

from . import manifest, seen
from .reasons import Reason
from .seen import ReleaseSeen

MINUTE = 60.0


def surplus(held: seen.ClaimSeen, record: seen.RecordSeen | None) -> tuple[manifest.InventoryItem, ...]:
    """What the claim lists beyond the record, `keep` objects aside: it must be gone."""
    recorded = {item.ref.identity for item in record.inventory} if record else set()
    return tuple(item for item in held.inventory if item.ref.identity not in recorded and not item.keep)


def go(r: ReleaseSeen, reason: Reason) -> Verdict | None:
    if isinstance(r.leftovers, observed.Failed):
        return decision.unknown(reason, r.leftovers, "leftovers")
    left = r.leftovers.value
    if not left:
        return None
    alive = [item for item in left if not item.terminating]
    if not alive:
        names = ", ".join(str(item.ref) for item in left[:5])
        return Wait(reason, f"{names} still terminating", on="leftovers", within=5 * MINUTE, again=2.0)
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
