"""What every moorage status holds, whatever the kind."""

from __future__ import annotations

from typing import Annotated

import msgspec

from . import conditions
from .conditions import Condition  # by name, as there is a field called like the module

PAUSED = "moorage.dev/paused"
"""Annotation: "true" has nothing carried out for the object, while its status stays honest."""

RECONCILE_AT = "moorage.dev/reconcile-at"
"""Annotation: any new value asks for a fresh try now, also of what failed before."""

ON_DELETE = "moorage.dev/on-delete"
"""Annotation: "Orphan" lets a deletion leave everything where it is; "NoHooks" removes a release without its hooks."""


OPERATOR = "moorage.dev/operator"
"""Annotation: the installation that looks after the object, as NAMESPACE/LEASE."""


class Progress(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Where the ordered steps stand, and since when: a wait knows from this when it is overdue."""

    step: Annotated[str, msgspec.Meta(description="The step at which the list stopped.")] = ""
    reason: Annotated[str, msgspec.Meta(description="The reason of that step's verdict.")] = ""
    since: Annotated[str, msgspec.Meta(description="Since when the list has stopped at this step (RFC 3339).")] = ""
    overdue: Annotated[bool, msgspec.Meta(description="True once the wait has passed its deadline.")] = False
    next: Annotated[
        str,
        msgspec.Meta(description="What comes next: who must do what, or what is awaited and from whom."),
    ] = ""

    def waited_at(self, step: str, now: float) -> float:
        """Seconds for which the list has stopped at that step, for whatever reason; `now` is in epoch seconds."""
        return max(0.0, now - conditions.epoch(self.since)) if self.step == step and self.since else 0.0


class Status(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of each kind's status."""

    observed_generation: Annotated[
        int, msgspec.Meta(description="The generation that this status speaks of; -1 until it is first looked at.")
    ] = -1
    conditions: Annotated[
        tuple[Condition, ...],
        msgspec.Meta(
            description="Ready, Reconciling and Stalled follow kstatus; the others are the kind's facts.",
            extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        ),
    ] = ()
    progress: Annotated[Progress, msgspec.Meta(description="Where the steps stand.")] = Progress()
    reconciled_at: Annotated[
        str, msgspec.Meta(description="The last value of moorage.dev/reconcile-at that was acted on.")
    ] = ""
