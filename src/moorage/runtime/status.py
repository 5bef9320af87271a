"""From a decision to the status that people and tools read. Pure: the controller does the writing.

Ready, Reconciling and Stalled follow kstatus, so `kubectl wait`, helm --wait, Flux and Argo CD need no configuration:

    all steps done       Ready as its facts say, Reconciling=False, Stalled=False
    Act, Wait            Ready=False or Unknown, Reconciling=True
    Blocked, Refused     Ready=False, Stalled=True
"""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.api import conditions
from moorage.api import status as api_status

from . import decision

FAILURE_WAIT = 3600.0
"""Seconds for which a refused action counts as reconciling, before it is called overdue."""


class Performed(msgspec.Struct, frozen=True):
    """An action that was tried, and what became of it."""

    step: str
    action: decision.Action
    outcome: decision.Outcome


class Standing(msgspec.Struct, frozen=True):
    """Where the object stands after a pass: the first thing that keeps it from being settled."""

    step: str = ""
    reason: str = ""
    message: str = ""
    stalled: bool = False
    within: float = 0.0

    @property
    def settled(self) -> bool:
        """Nothing stands open."""
        return not self.step


def standing(made: decision.Decision, performed: tuple[Performed, ...]) -> Standing:
    """The outcome of a failed action if there is one, else the verdict at which the steps stopped."""
    for done in performed:
        match done.outcome:
            case decision.Refused(reason=reason, message=message):
                return Standing(done.step, reason, message, within=FAILURE_WAIT)
            case decision.Unknown(message=message):
                return Standing(done.step, "OutcomeUnknown", message, within=FAILURE_WAIT)
    taken = made.standing
    match taken:
        case None:
            return Standing()
        case decision.StepTaken(name, decision.Wait() as wait):
            return Standing(name, wait.reason, wait.message, within=wait.within)
        case decision.StepTaken(name, decision.Blocked() as blocked):
            return Standing(name, blocked.reason, f"{blocked.message}; {blocked.fix}", stalled=True)
        case decision.StepTaken(name, decision.Act() as act):
            if made.paused:
                return Standing()
            return Standing(name, act.reason, act.message, within=FAILURE_WAIT)
    return Standing()


def progress(stands: Standing, before: api_status.Progress, now: float) -> api_status.Progress:
    """Since when it stands there. The time starts again when the step or its reason changes."""
    if stands.settled:
        return api_status.Progress()
    same = (before.step, before.reason) == (stands.step, stands.reason) and before.since
    since = before.since if same else conditions.timestamp(now)
    overdue = bool(stands.within) and now - conditions.epoch(since) >= stands.within
    return api_status.Progress(stands.step, stands.reason, since, overdue)


def compose(
    made: decision.Decision,
    performed: tuple[Performed, ...],
    before: api_status.Status,
    *,
    generation: int,
    now: float,
    ready_facts: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    """The status fields that the runtime writes, as builtins; the kind's reported fields are merged in."""
    stands = standing(made, performed)
    at = progress(stands, before.progress, now)
    facts = list(made.facts)
    if made.paused:
        facts.append(decision.Fact("Paused", True, "Paused", _paused_message(made)))
    elif any(c.type == "Paused" for c in before.conditions):
        facts.append(decision.Fact("Paused", False, "Active", ""))
    facts += kstatus(stands, at, made.facts, ready_facts)
    new = tuple(_condition(fact, generation) for fact in facts)
    merged = conditions.merge(before.conditions, new, now)
    fields: dict[str, Any] = msgspec.to_builtins(
        {"conditions": merged, "observedGeneration": generation, "progress": at} | made.report
    )
    return fields


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
            decision.Fact("Reconciling", not stands.stalled, stands.reason, message),
            decision.Fact("Stalled", stands.stalled, stands.reason, message),
        ]
    weak = next((f for f in facts if f.type in ready_facts and f.status is not True), None)
    ready = decision.Fact("Ready", weak.status, weak.reason, weak.message) if weak else None
    return [
        ready or decision.Fact("Ready", True, "Ready", "all steps are done"),
        decision.Fact(
            "Reconciling", weak is not None, weak.reason if weak else "Settled", weak.message if weak else ""
        ),
        decision.Fact("Stalled", False, "Settled", ""),
    ]


def difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """The smallest merge patch that makes every field of `after` true; None removes what is no longer there."""
    patch: dict[str, Any] = {}
    for key, value in after.items():
        old = before.get(key)
        if old == value:
            continue
        if isinstance(old, dict) and isinstance(value, dict):
            value = difference(old, value) | {gone: None for gone in old.keys() - value.keys()}
        patch[key] = value
    return patch


def _condition(fact: decision.Fact, generation: int) -> conditions.Condition:
    said: dict[bool | None, conditions.Verdict] = {True: "True", False: "False", None: "Unknown"}
    return conditions.Condition(
        type=fact.type,
        status=said[fact.status],
        reason=str(fact.reason),
        message=fact.message[:32768],
        observed_generation=generation,
    )


def _paused_message(made: decision.Decision) -> str:
    for taken in made.steps:
        if isinstance(taken.verdict, decision.Act):
            return f"nothing is carried out; next would be: {taken.verdict.message}"
    return "nothing is carried out"
