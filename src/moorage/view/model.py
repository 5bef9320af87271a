"""One object as people look at it: its conditions, its steps, its release and what to do next. Fixed JSON form.

Everything comes from the object itself and its events, so it needs no rights but the user's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from moorage.api import conditions, meta
from moorage.api import status as api_status
from moorage.runtime import decision


class Described(Protocol):
    """What is known of a kind beforehand; `moorage.operators` describes each of its kinds so."""

    @property
    def resource(self) -> meta.Resource:
        """The kind."""

    @property
    def status(self) -> type[Any]:
        """The Struct of its status."""

    @property
    def steps(self) -> Sequence[decision.Step[Any]]:
        """The steps of an object in use."""

    @property
    def farewell(self) -> Sequence[decision.Step[Any]]:
        """The steps of an object that is being deleted."""


class StepView(msgspec.Struct, frozen=True, rename="camel"):
    """A step: done, standing (with reason), or not reached."""

    name: str
    says: str
    state: str  # Done, Standing, NotReached


class EventView(msgspec.Struct, frozen=True, rename="camel"):
    """One event about the object."""

    at: str
    type: str
    reason: str
    message: str


class ChildView(msgspec.Struct, frozen=True, rename="camel"):
    """One object of the release, as it is now. `ready` is Unknown for what was not read."""

    kind: str
    namespace: str
    name: str
    ready: str
    reason: str = ""
    message: str = ""


class ObjectView(msgspec.Struct, frozen=True, rename="camel"):
    """One object."""

    kind: str
    namespace: str
    name: str
    ready: str
    reason: str
    message: str
    stalled: bool
    deleting: bool
    looked_at: bool  # the status speaks of the latest generation
    facts: tuple[conditions.Condition, ...]
    steps: tuple[StepView, ...]
    next: str
    status: dict[str, Any]
    events: tuple[EventView, ...] = ()
    children: tuple[ChildView, ...] = ()

    @property
    def paused(self) -> bool:
        """Whether everything is held back for now."""
        return any(fact.type == "Paused" and fact.status == "True" for fact in self.facts)

    @property
    def exit_code(self) -> int:
        """0 ready, 1 on its way, 2 stalled."""
        if self.stalled:
            return 2
        return 0 if self.ready == "True" and self.looked_at else 1


def of(
    described: Described,
    obj: dict[str, Any],
    events: Sequence[dict[str, Any]] = (),
    children: tuple[ChildView, ...] = (),
) -> ObjectView:
    """The view of one object, as it came from the API server."""
    meta, status = obj["metadata"], msgspec.convert(obj.get("status") or {}, described.status)
    facts = tuple(status.conditions)
    ready = conditions.find(facts, "Ready")
    stalled = conditions.find(facts, "Stalled")
    deleting = bool(meta.get("deletionTimestamp"))
    steps = _steps(described.farewell if deleting else described.steps, status.progress.step)
    return ObjectView(
        kind=described.resource.kind,
        namespace=meta.get("namespace", ""),
        name=meta["name"],
        ready=ready.status if ready else "Unknown",
        reason=ready.reason if ready else "NotLookedAt",
        message=_message(ready, status.progress),
        stalled=stalled is not None and stalled.status == "True",
        deleting=deleting,
        looked_at=status.observed_generation == meta.get("generation"),
        facts=facts,
        steps=steps,
        next=_next(ready, status.progress),
        status={k: v for k, v in (obj.get("status") or {}).items() if k != "conditions"},
        events=tuple(_event(event) for event in sorted(events, key=_when)[-10:]),
        children=children,
    )


def _steps(steps: Sequence[decision.Step[Any]], standing: str) -> tuple[StepView, ...]:
    names = [step.__name__ for step in steps]
    stop = names.index(standing) if standing in names else len(names)
    states = ["Done"] * stop + ["Standing"] + ["NotReached"] * len(names)
    return tuple(
        StepView(step.__name__, (step.__doc__ or "").strip().splitlines()[0], state)
        for step, state in zip(steps, states, strict=False)
    )


def _message(ready: conditions.Condition | None, at: api_status.Progress) -> str:
    """Without what is to be done, which has a line of its own."""
    if ready is None:
        return "moorage has not looked at it yet; is it running?"
    return ready.message.removesuffix(f"; {at.next}") if at.next else ready.message


def _next(ready: conditions.Condition | None, at: api_status.Progress) -> str:
    """In the decision's own words, which are part of the status."""
    if ready is None:
        return "see whether the operator runs: kubectl get pods -A -l app.kubernetes.io/name=moorage"
    return at.next or "nothing"


def _event(event: dict[str, Any]) -> EventView:
    return EventView(
        _when(event), event.get("type", ""), event.get("reason", ""), event.get("note") or event.get("message", "")
    )


def _when(event: dict[str, Any]) -> str:
    return str(
        event.get("eventTime") or event.get("deprecatedLastTimestamp") or event["metadata"].get("creationTimestamp", "")
    )
