"""One object as people look at it: its conditions, its steps, its objects and what to do next. Fixed JSON form.

Everything comes from the object itself and its events, so it needs no rights but the user's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from moorage.api import common_status, conditions, meta
from moorage.runtime import decision

from . import operator_state


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
    def deletion_steps(self) -> Sequence[decision.Step[Any]]:
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
    """One object that it owns, as it is now. `ready` is Unknown for what was not read."""

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
    changed_at: str = ""  # when the change that is not looked at was made, if that can be told
    operator: str = ""  # what is wrong with moorage itself

    @property
    def paused(self) -> bool:
        """Whether everything is held back for now."""
        return any(fact.type == "Paused" and fact.status == "True" for fact in self.facts)

    @property
    def exit_code(self) -> int:
        """0 ready, 1 on its way, 2 stalled."""
        if self.stalled and self.looked_at:
            return 2
        return 0 if self.ready == "True" and self.looked_at and not self.operator else 1


def of(
    described: Described,
    obj: dict[str, Any],
    events: Sequence[dict[str, Any]] = (),
    children: tuple[ChildView, ...] = (),
    seen: operator_state.Operator = operator_state.UNKNOWN,
) -> ObjectView:
    """The view of one object, as it came from the API server; `seen` is what is known of who looks after it."""
    meta, status = obj["metadata"], msgspec.convert(obj.get("status") or {}, described.status)
    facts = tuple(status.conditions)
    stalled = conditions.find(facts, "Stalled")
    deleting = bool(meta.get("deletionTimestamp"))
    looked_at = status.observed_generation == meta.get("generation")
    said = _said(facts, status.progress)
    if not looked_at and conditions.find(facts, "Ready"):
        said = _unseen(said, seen)
    elif weak := next((child for child in children if child.ready == "False"), None) if said.ready == "True" else None:
        said = _contradicted(weak, seen)
    if seen.is_away:
        said = msgspec.structs.replace(said, next=seen.next)
    return ObjectView(
        kind=described.resource.kind,
        namespace=meta.get("namespace", ""),
        name=meta["name"],
        ready=said.ready,
        reason=said.reason,
        message=said.message,
        stalled=stalled is not None and stalled.status == "True",
        deleting=deleting,
        looked_at=looked_at,
        facts=facts,
        steps=_steps(described.deletion_steps if deleting else described.steps, status.progress.step),
        next=said.next,
        status={k: v for k, v in (obj.get("status") or {}).items() if k != "conditions"},
        events=tuple(_event(event) for event in sorted(events, key=_when)[-10:]),
        children=children,
        changed_at="" if looked_at else _changed_at(meta),
        operator=seen.words if seen.is_away else "",
    )


class _Said(msgspec.Struct, frozen=True):
    """The first lines about an object."""

    ready: str
    reason: str
    message: str
    next: str


_SECONDS = "moorage's look is awaited, which takes seconds"


def _said(facts: tuple[conditions.Condition, ...], at: common_status.Progress) -> _Said:
    """By the status, and in the decision's own words; what is to be done has a line of its own."""
    ready = conditions.find(facts, "Ready")
    if ready is None:
        then = "see whether the operator runs: kubectl get pods -A -l app.kubernetes.io/name=moorage"
        return _Said("Unknown", "NotLookedAt", "moorage has not looked at it yet; is it running?", then)
    message = ready.message.removesuffix(f"; {at.next}") if at.next else ready.message
    return _Said(ready.status, ready.reason, message, at.next or "nothing")


def _unseen(before: _Said, seen: operator_state.Operator) -> _Said:
    """What status says is of an earlier generation."""
    told = f"{before.reason}: {before.message}" if before.message else before.reason
    said = f"the latest change is not looked at yet; before it: {told}"
    return _Said("Unknown", "NotLookedAt", said, seen.next if seen.is_away else _SECONDS)


def _contradicted(weak: ChildView, seen: operator_state.Operator) -> _Said:
    """Status calls it ready, and what is live is not."""
    said = f"status knows nothing of it yet: {weak.kind} {weak.name}: {weak.message or weak.reason}"
    return _Said("False", weak.reason, said, seen.next if seen.is_away else _SECONDS)


def _changed_at(metadata: dict[str, Any]) -> str:
    """When anything but its status was written last, moorage's own writes aside."""
    fields = metadata.get("managedFields") or ()
    return max(
        (
            str(each.get("time") or "")
            for each in fields
            if not each.get("subresource") and each.get("manager") != decision.FIELD_MANAGER
        ),
        default="",
    )


def _steps(steps: Sequence[decision.Step[Any]], standing: str) -> tuple[StepView, ...]:
    names = [step.__name__ for step in steps]
    stop = names.index(standing) if standing in names else len(names)
    states = ["Done"] * stop + ["Standing"] + ["NotReached"] * len(names)
    return tuple(
        StepView(step.__name__, (step.__doc__ or "").strip().splitlines()[0], state)
        for step, state in zip(steps, states, strict=False)
    )


def _event(event: dict[str, Any]) -> EventView:
    return EventView(
        _when(event), event.get("type", ""), event.get("reason", ""), event.get("note") or event.get("message", "")
    )


def _when(event: dict[str, Any]) -> str:
    return str(
        event.get("eventTime") or event.get("deprecatedLastTimestamp") or event["metadata"].get("creationTimestamp", "")
    )
