"""From a decision to the status that people and tools read. Pure: the controller does the writing.

Ready, Reconciling and Stalled follow kstatus, so `kubectl wait`, helm --wait, Flux and Argo CD need no configuration:

    where the object stands               Ready              Reconciling  Stalled
    all steps done, ready facts True      True               False        False
    all steps done, a ready fact is not   as that fact       True         False
    Act, Wait                             False              True         False
    an action refused, answer lost        False              True         False
    Blocked                               False              False        True
    an Act while paused                   False              False        False
    a pass that failed                    Unknown            True         False
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from moorage.api import conditions
from moorage.api import status as api_status

from . import decision

FAILURE_WAIT = 3600.0
"""Seconds for which a refused action counts as reconciling, before it is called overdue."""

PAUSED = "Paused"


class Performed(msgspec.Struct, frozen=True):
    """An action that was tried, and what became of it."""

    step: str
    action: decision.AnyAction
    outcome: decision.Outcome


class Standing(msgspec.Struct, frozen=True):
    """Where the object stands after a pass: the first thing that keeps it from being settled."""

    step: str = ""
    reason: str = ""
    message: str = ""
    stalled: bool = False
    paused: bool = False
    within: float = 0.0

    @property
    def settled(self) -> bool:
        """Nothing stands open."""
        return not self.step


def standing(made: decision.Decision, performed: tuple[Performed, ...]) -> Standing:
    """An act that is not carried out, else the outcome of a failed action, else where the steps stopped."""
    acts = {taken.name: taken.verdict for taken in made.steps if isinstance(taken.verdict, decision.Act)}
    if made.paused and acts:
        step, act = next(iter(acts.items()))
        return Standing(step, PAUSED, f"not carried out while paused: {act.message}", paused=True)
    for done in performed:
        match done.outcome:
            case decision.Refused(reason=reason, message=message):
                return Standing(done.step, reason, message, within=FAILURE_WAIT)
            case decision.Unknown(message=message):
                return Standing(done.step, "OutcomeUnknown", message, within=FAILURE_WAIT)
            case decision.Conflict(message=message):
                act = acts[done.step]
                return Standing(done.step, act.reason, f"{act.message}; {message}", within=FAILURE_WAIT)
    match made.standing:
        case decision.StepTaken(name, decision.Wait() as wait):
            return Standing(name, wait.reason, wait.message, within=wait.within)
        case decision.StepTaken(name, decision.Blocked() as blocked):
            return Standing(name, blocked.reason, f"{blocked.message}; {blocked.fix}", stalled=True)
        case decision.StepTaken(name, decision.Act() as act):
            return Standing(name, act.reason, act.message, within=FAILURE_WAIT)
    return Standing()


def progress(stands: Standing, before: api_status.Progress, now: float) -> api_status.Progress:
    """Since when it stands there. The time starts again when the step or its reason changes."""
    if stands.settled:
        return api_status.Progress()
    same = (before.step, before.reason) == (stands.step, stands.reason) and before.since
    since = before.since if same else conditions.timestamp(now)
    overdue = bool(stands.within) and now - conditions.epoch(since) >= stands.within
    return api_status.Progress(stands.step, str(stands.reason), since, overdue)


class Composed(msgspec.Struct, frozen=True):
    """The status that a pass leads to."""

    conditions: tuple[conditions.Condition, ...]
    progress: api_status.Progress
    fields: dict[str, Any]
    """All fields to be merged, as builtins with names as on the wire."""


def compose(
    made: decision.Decision,
    stands: Standing,
    before: api_status.Status,
    *,
    generation: int,
    now: float,
    ready_facts: frozenset[str] = frozenset(),
) -> Composed:
    """The status that the runtime writes, with the fields that the kind reports."""
    at = progress(stands, before.progress, now)
    facts = list(made.facts)
    if made.paused:
        facts.append(decision.Fact(PAUSED, True, PAUSED, _paused_message(made)))
    elif conditions.find(before.conditions, PAUSED):
        facts.append(decision.Fact(PAUSED, False, "Active", ""))
    facts += kstatus(stands, at, made.facts, ready_facts)
    merged = conditions.merge(before.conditions, (_condition(fact, generation) for fact in facts), now)
    fields = {"conditions": merged, "observedGeneration": generation, "progress": at} | made.report
    return Composed(merged, at, msgspec.to_builtins(fields))


def kstatus(
    stands: Standing, at: api_status.Progress, facts: tuple[decision.Fact, ...], ready_facts: frozenset[str]
) -> list[decision.Fact]:
    """The three conditions that tools wait on."""
    if not stands.settled:
        message = stands.message
        if at.overdue:
            message = f"{message} (overdue: expected within {stands.within:g} s, waiting since {at.since})"
        return [
            decision.Fact("Ready", False, stands.reason, message),
            decision.Fact("Reconciling", not (stands.stalled or stands.paused), stands.reason, message),
            decision.Fact("Stalled", stands.stalled, stands.reason, message),
        ]
    weak = next((f for f in facts if f.type in ready_facts and f.status is not True), None)
    if weak:
        return [
            decision.Fact("Ready", weak.status, weak.reason, weak.message),
            decision.Fact("Reconciling", True, weak.reason, weak.message),
            decision.Fact("Stalled", False, "Settled", ""),
        ]
    return [
        decision.Fact("Ready", True, "Ready", "all steps are done"),
        decision.Fact("Reconciling", False, "Settled", ""),
        decision.Fact("Stalled", False, "Settled", ""),
    ]


def failed(before: api_status.Status, reason: str, message: str, *, generation: int, now: float) -> dict[str, Any]:
    """The fields of a pass that failed in an unforeseen way: the facts stay as they were last known."""
    facts = (
        decision.Fact("Ready", None, reason, message),
        decision.Fact("Reconciling", True, reason, message),
        decision.Fact("Stalled", False, reason, ""),
    )
    new = tuple(_condition(fact, generation) for fact in facts)
    kept = tuple(c for c in before.conditions if c.type not in {fact.type for fact in facts})
    return {"conditions": conditions.merge(before.conditions, (*kept, *new), now)}


Verdict: TypeAlias = tuple[str, str, bool, str, str]
"""(step, its reason, overdue, Ready, its reason): an Event is worth it when this changes."""


def verdict(said: tuple[conditions.Condition, ...], at: api_status.Progress) -> Verdict:
    """What a status says in short."""
    ready = conditions.find(said, "Ready") or conditions.Condition(type="Ready", status="Unknown")
    return at.step, at.reason, at.overdue, ready.status, ready.reason


def difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """The smallest merge patch that makes every field of `after` true; None removes what is no longer there.

    A field that is None counts as absent at any depth, as the server stores none.
    """
    patch: dict[str, Any] = {}
    for key, given in after.items():
        old = before.get(key)
        if old == given:  # most are, and need no look inside
            continue
        old, value = _without_nulls(old), _without_nulls(given)
        if isinstance(old, dict) and isinstance(value, dict):
            if value := difference(old, value) | dict.fromkeys(old.keys() - value.keys()):
                patch[key] = value
        elif old != value:
            patch[key] = value
    return patch


def _without_nulls(value: Any) -> Any:
    match value:
        case dict():  # most of what it holds is text, which needs no look
            return {k: v if type(v) is str else _without_nulls(v) for k, v in value.items() if v is not None}
        case list() | tuple():
            return [_without_nulls(v) for v in value]
    return value


_SAID: dict[bool | None, conditions.Verdict] = {True: "True", False: "False", None: "Unknown"}


def _condition(fact: decision.Fact, generation: int) -> conditions.Condition:
    return conditions.Condition(
        type=fact.type,
        status=_SAID[fact.status],
        reason=str(fact.reason),
        message=fact.message[:32768],
        observed_generation=generation,
    )


def _paused_message(made: decision.Decision) -> str:
    acts = [taken for taken in made.steps if isinstance(taken.verdict, decision.Act)]
    if not acts:
        return "nothing is carried out while moorage.dev/paused is true; nothing needs to be"
    return f"nothing is carried out while moorage.dev/paused is true; next would be {acts[0].name}"
