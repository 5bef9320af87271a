"""Which Events a pass is worth: one per act that was done, and one when the verdict has changed. Pure.

What stands still until a person acts is a Warning, and so is what its reason says a person should look at.
"""

from __future__ import annotations

from moorage.api import common_status, conditions, meta
from moorage.runtime import decision
from moorage.runtime.reasons import Reason
from moorage.runtime.reconcile import status

from . import event_recorder


def of_acts(
    about: meta.ObjectRef, made: decision.Decision, performed: tuple[status.Performed, ...]
) -> tuple[event_recorder.Note, ...]:
    """What was done: every step whose actions were all carried out."""
    failed = {done.step for done in performed if not isinstance(done.outcome, decision.Ok)}
    tried = {done.step for done in performed} - failed
    return tuple(
        event_recorder.Note(
            about, taken.verdict.reason, taken.verdict.message, taken.name, decision.warns(taken.verdict.reason)
        )
        for taken in made.steps
        if taken.name in tried and isinstance(taken.verdict, decision.Act)
    )


def of_facts(
    about: meta.ObjectRef, made: decision.Decision, before: tuple[conditions.Condition, ...], which: frozenset[str]
) -> tuple[event_recorder.Note, ...]:
    """What a person should look at though no step stops at it: of those facts, each that is new, or has new words."""
    worth = (fact for fact in made.facts if fact.type in which and decision.warns(fact.reason))
    return tuple(
        event_recorder.Note(about, fact.reason, fact.message, fact.type, warning=True)
        for fact in worth
        if (was := conditions.find(before, fact.type)) is None
        or (was.reason, was.message) != (fact.reason, fact.message)
    )


def of_other(about: meta.ObjectRef, other: str) -> event_recorder.Note:
    """That it is left to another installation."""
    message = (
        f"this object, or others in its place, are looked after by the moorage of {other} (namespace/Lease), "
        f"so another one, which sees it too, leaves it alone; {Reason.OTHER_OPERATOR.next}"
    )
    return event_recorder.Note(about, Reason.OTHER_OPERATOR, message, "reconcile", warning=True)


def of_change(
    about: meta.ObjectRef, before: common_status.Status, after: status.Composed, stands: status.Standing
) -> tuple[event_recorder.Note, ...]:
    """The new verdict, when it is one."""
    if status.verdict(before.conditions, before.progress) == status.verdict(after.conditions, after.progress):
        return ()
    ready = conditions.find(after.conditions, "Ready")
    assert ready is not None  # noqa: S101 - every status has it
    look = decision.warns(after.reason) or decision.warns(stands.cause)
    warning = stands.stalled or after.progress.overdue or look
    return (event_recorder.Note(about, ready.reason, ready.message, stands.step or "reconcile", warning),)
