"""From a decision to the status that people and tools read. Pure: the controller does the writing.

Ready, Reconciling and Stalled follow kstatus, so `kubectl wait`, helm --wait, Flux and Argo CD need no configuration:

    where the object stands               Ready              Reconciling  Stalled
    all steps done, ready facts True      True               False        False
    all steps done, a ready fact is not   as that fact       True         False
    Act, Wait                             False              True         False
    a Wait with a fix that is overdue     False              False        True
    an action refused, answer lost        False              True         False
    Blocked                               False              False        True
    an Act while paused                   False              False        False
    a pass that failed                    Unknown            True         False
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import msgspec

from moorage.api import common_status, conditions
from moorage.runtime import decision
from moorage.runtime.reasons import Reason

FAILURE_WAIT = 3600.0
"""Seconds for which a refused action counts as reconciling, before it is called overdue."""

ELSE_NEXT = "see the message; moorage looks again on every change, and after a while"
"""Of a word that is nobody's reason, as one that an object of another operator gives."""


class Performed(msgspec.Struct, frozen=True):
    """An action that was tried, and what became of it."""

    step: str
    action: decision.AnyAction
    outcome: decision.Outcome


class Standing(msgspec.Struct, frozen=True):
    """Where the object stands after a pass: the first thing that keeps it from being settled, and what comes next."""

    step: str = ""
    reason: str = ""
    message: str = ""
    next: str = ""
    stalled: bool = False
    paused: bool = False
    within: float = 0.0
    since: str = ""  # RFC 3339, where it is known when what is awaited began
    fix: str = ""  # what the user must do once it is overdue
    cause: str = ""  # the reason of what lies behind it

    @property
    def settled(self) -> bool:
        """Nothing stands open."""
        return not self.step


def standing(made: decision.Decision, performed: tuple[Performed, ...]) -> Standing:
    """An act that is not carried out, else the outcome of a failed action, else where the steps stopped."""
    acts = {taken.name: taken.verdict for taken in made.steps if isinstance(taken.verdict, decision.Act)}
    if made.paused and acts:
        step, act = next(iter(acts.items()))
        said = f"not carried out while paused: {act.message}"
        return Standing(step, Reason.PAUSED, said, Reason.PAUSED.next, paused=True)
    for done in performed:
        match done.outcome:
            case decision.Refused(reason=reason, message=message):
                return _failed_act(done.step, Reason.of(reason), message)
            case decision.Unknown(message=message):
                return _failed_act(done.step, Reason.OUTCOME_UNKNOWN, message)
            case decision.Conflict(message=message):
                act = acts[done.step]
                return _failed_act(done.step, act.reason, f"{act.message}; {message}")
    match made.standing:
        case decision.StepTaken(name, decision.Wait() as wait):
            then = wait.next or decision.next_of(wait.cause) or decision.next_of(wait.reason) or ELSE_NEXT
            return Standing(
                name,
                wait.reason,
                wait.message,
                then,
                within=wait.within,
                since=wait.since,
                fix=wait.fix,
                cause=wait.cause,
            )
        case decision.StepTaken(name, decision.Blocked() as blocked):
            said = f"{blocked.message}; {blocked.fix}"
            return Standing(name, blocked.reason, said, blocked.fix, stalled=True)
        case decision.StepTaken(name, decision.Act() as act):
            return _failed_act(name, act.reason, act.message)
    return Standing()


def _failed_act(step: str, reason: str, message: str) -> Standing:
    return Standing(step, reason, message, decision.next_of(reason) or ELSE_NEXT, within=FAILURE_WAIT)


def progress(
    stands: Standing, last: common_status.Progress, now: float, weak: decision.Fact | None = None
) -> common_status.Progress:
    """Where it stands, since when, and what comes next; once all steps are done, what the `weak` fact needs.

    The time is the step's own: it goes on when only the reason changes, as what is said once a wait was too long is
    itself another reason.
    """
    if stands.settled:
        then = decision.next_of(weak.reason) or ELSE_NEXT if weak else ""
        return common_status.Progress(next=then)
    kept = last.since if last.step == stands.step and last.since else ""
    kept = "" if kept and conditions.age(kept, now) == math.inf else kept  # by a clock that was set back
    since = stands.since or kept or conditions.timestamp(now)
    overdue = bool(stands.within) and conditions.age(since, now) >= stands.within
    then = stands.fix if overdue and stands.fix else stands.next
    return common_status.Progress(stands.step, str(stands.reason), since, overdue, then)


def weakest(facts: tuple[decision.Fact, ...], ready_facts: frozenset[str]) -> decision.Fact | None:
    """The first fact that keeps an object from being ready though all its steps are done."""
    return next((fact for fact in facts if fact.type in ready_facts and fact.status is not True), None)


class Composed(msgspec.Struct, frozen=True):
    """The status that a pass leads to."""

    conditions: tuple[conditions.Condition, ...]
    progress: common_status.Progress
    reason: str
    """Why it is ready or not."""

    fields: dict[str, Any]
    """All fields to be merged, as builtins with names as on the wire."""


def compose(
    made: decision.Decision,
    stands: Standing,
    before: common_status.Status,
    *,
    generation: int,
    now: float,
    ready_facts: frozenset[str] = frozenset(),
) -> Composed:
    """The status that the runtime writes, with the fields that the kind reports."""
    weak = weakest(made.facts, ready_facts)
    at = progress(stands, before.progress, now, weak)
    facts = list(made.facts)
    if made.paused:
        facts.append(decision.Fact("Paused", True, Reason.PAUSED, _paused_message(made)))
    elif conditions.find(before.conditions, "Paused"):
        facts.append(decision.Fact("Paused", False, Reason.ACTIVE, ""))
    ready, *others = kstatus(stands, at, weak)
    facts += [ready, *others]
    merged = conditions.merge(before.conditions, (_condition(fact, generation) for fact in facts), now)
    fields = {"conditions": merged, "observedGeneration": generation, "progress": at} | made.report
    return Composed(merged, at, ready.reason, msgspec.to_builtins(fields))


def kstatus(stands: Standing, at: common_status.Progress, weak: decision.Fact | None) -> list[decision.Fact]:
    """The three conditions that tools wait on."""
    if not stands.settled:
        message = stands.message
        if at.overdue:
            message = f"{message} (overdue: expected within {stands.within:g} s, waiting since {at.since})"
        if at.overdue and stands.fix:
            message = f"{message}; {stands.fix}"
        stalled = stands.stalled or bool(at.overdue and stands.fix)
        return [
            decision.Fact("Ready", False, stands.reason, message),
            decision.Fact("Reconciling", not (stalled or stands.paused), stands.reason, message),
            decision.Fact("Stalled", stalled, stands.reason, message),
        ]
    if weak:
        return [
            decision.Fact("Ready", weak.status, weak.reason, weak.message),
            decision.Fact("Reconciling", True, weak.reason, weak.message),
            decision.Fact("Stalled", False, Reason.SETTLED, ""),
        ]
    return [
        decision.Fact("Ready", True, Reason.READY, "all steps are done"),
        decision.Fact("Reconciling", False, Reason.SETTLED, ""),
        decision.Fact("Stalled", False, Reason.SETTLED, ""),
    ]


def failed(
    before: common_status.Status, reason: Reason, message: str, *, generation: int, now: float
) -> dict[str, Any]:
    """The fields of a pass that failed in an unforeseen way: the facts stay as they were last known."""
    facts = (
        decision.Fact("Ready", None, reason, message),
        decision.Fact("Reconciling", True, reason, message),
        decision.Fact("Stalled", False, reason, ""),
    )
    new = tuple(_condition(fact, generation) for fact in facts)
    kept = tuple(c for c in before.conditions if c.type not in {fact.type for fact in facts})
    at = msgspec.structs.replace(before.progress, next=reason.next)
    return {"conditions": conditions.merge(before.conditions, (*kept, *new), now), "progress": at}


Verdict: TypeAlias = tuple[str, str, bool, str, str]
"""(step, its reason, overdue, Ready, its reason): an Event is worth it when this changes."""


def verdict(said: tuple[conditions.Condition, ...], at: common_status.Progress) -> Verdict:
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
