"""Which Events a pass is worth, and which of them are Warnings."""

from __future__ import annotations

import pytest

from moorage.api import common_status, meta
from moorage.children import reasons as object_reasons
from moorage.helm import reasons as helm_reasons
from moorage.helm.runs import failures
from moorage.operators.xsld import reasons as xsld_reasons
from moorage.runtime import decision, reasons
from moorage.runtime.decision import Act, Blocked, Call, Decision, Fact, StepTaken, Verdict, Wait
from moorage.runtime.reconcile import status
from moorage.runtime.reporting import pass_events

ABOUT = meta.ObjectRef("example.com/v1", "Thing", "ns", "one", "uid")
CALL = Call(why="w", operation="o")
X, R, F = xsld_reasons.Reason, reasons.Reason, failures.FailureKind


def told(verdict: Verdict, *, outcome: decision.Outcome | None = None, facts: tuple[Fact, ...] = ()) -> list[bool]:
    """Of each Event of a pass that ends so, whether it is a Warning."""
    made = Decision(steps=(StepTaken("step", verdict),), facts=facts)
    performed = (status.Performed("step", CALL, outcome),) if outcome else ()
    stands = status.standing(made, performed)
    before, ready = common_status.Status(), frozenset(fact.type for fact in facts)
    after = status.compose(made, stands, before, generation=1, now=1_800_000_000.0, ready_facts=ready)
    of_acts = pass_events.of_acts(ABOUT, made, performed)
    return [note.warning for note in (*of_acts, *pass_events.of_change(ABOUT, before, after, stands))]


def wait(reason: decision.Reason) -> Wait:
    return Wait(reason, "m", on="x", within=60)


PODS = [object_reasons.PodReason[name] for name in ("IMAGE_PULL", "CRASH_LOOP", "UNSCHEDULABLE")]
HELM = [F.FORBIDDEN, F.OTHER, F.NO_SPACE, F.INVALID, F.RECORD_TOO_LARGE, F.HOOK_FAILED, F.QUOTA]


@pytest.mark.parametrize("reason", [X.JOIN_FAILED, X.TASK_CANCELLED, X.GRID_FAILED, *PODS, *HELM])
def test_what_a_person_should_look_at_is_a_warning(reason: decision.Reason) -> None:
    """Also while it is tried again, as it may heal by itself: nobody else may see that it does not."""
    assert [True] == told(wait(reason))
    assert [True, True] == told(Act(reason, "m", (CALL,)), outcome=decision.Ok())


@pytest.mark.parametrize(
    "reason", [X.JOINING, X.TASK_DONE, helm_reasons.Reason.INSTALLING, object_reasons.PodReason.STARTING, R.GUARDED]
)
def test_what_goes_its_way_is_none(reason: decision.Reason) -> None:
    """Or nobody would look at Warnings any more."""
    assert [False] == told(wait(reason))
    assert [False, False] == told(Act(reason, "m", (CALL,)), outcome=decision.Ok())


def test_what_lies_behind_a_wait_is_reason_enough() -> None:
    """As an image that can't be pulled, of a member that is waited for."""
    behind = Wait(X.MEMBER_STARTING, "m", on="x", within=60, cause=object_reasons.PodReason.IMAGE_PULL)

    assert [True] == told(behind)


def test_what_is_blocked_is_a_warning_whatever_its_reason() -> None:
    """Nothing goes on before a person acts."""
    assert [True] == told(Blocked(X.LEAVING, "m", "do it"))


@pytest.mark.parametrize(("word", "warns"), [("Forbidden", True), ("Invalid", True), ("Guarded", False)])
def test_a_refused_act_is_told_by_the_word_of_who_refused_it(word: str, warns: bool) -> None:
    """It comes as a word of the API server."""
    assert [warns] == told(Act(X.APPLYING, "m", (CALL,)), outcome=decision.Refused(word, "no"))


@pytest.mark.parametrize(
    ("was", "now", "told_of"),
    [
        (None, Fact("Heeded", False, X.JOIN_FAILED, "m"), True),
        (Fact("Heeded", False, X.JOIN_FAILED, "m"), Fact("Heeded", False, X.JOIN_FAILED, "m"), False),
        (Fact("Heeded", False, X.JOIN_FAILED, "m"), Fact("Heeded", False, X.JOIN_FAILED, "other words"), True),
        (Fact("Heeded", True, X.TASK_DONE, ""), Fact("Heeded", False, X.JOIN_FAILED, "m"), True),
        (Fact("Heeded", False, X.JOIN_FAILED, "m"), Fact("Heeded", True, X.TASK_DONE, ""), False),
        (None, Fact("Another", False, X.JOIN_FAILED, "m"), False),
    ],
)
def test_a_fact_at_which_no_step_stops_is_told_once(was: Fact | None, now: Fact, told_of: bool) -> None:
    """Where it warns, and the kind says that it is to be told; again for other words."""
    before = status.compose(
        Decision(steps=(), facts=(was,) if was else ()),
        status.Standing(),
        common_status.Status(),
        generation=1,
        now=1e9,
    )
    found = pass_events.of_facts(ABOUT, Decision(steps=(), facts=(now,)), before.conditions, frozenset({"Heeded"}))

    assert [(now.reason, now.message, True)] * told_of == [(note.reason, note.message, note.warning) for note in found]


def test_a_fact_that_keeps_it_from_being_ready_is_told_by_its_own_reason() -> None:
    """All steps are done."""
    weak = Fact("Available", False, object_reasons.PodReason.IMAGE_PULL, "m")

    assert [True] == told(decision.DONE, facts=(weak,))
