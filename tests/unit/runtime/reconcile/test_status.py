"""The kstatus table, progress, and the smallest patch that makes a status true."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api import common_status, conditions
from moorage.runtime import decision, reasons
from moorage.runtime.decision import DONE, Act, Blocked, Call, Decision, Fact, Run, StepTaken, Verdict, Wait
from moorage.runtime.reconcile import schedule, status

NOW = 1_800_000_000.0
CALL = Call(why="w", operation="o")
ACT = Act("Acting", "acts", (CALL,))
WAIT = Wait("Waiting", "waits", on="x", within=60)
UNSEEN = Wait("Waiting", "waits", on="x", within=600, unseen=True)
BLOCKED = Blocked("Bad", "bad", "mend it")
RUNNING = Act("Running", "runs", (Run(why="w", task="t", lane="l"),))
GO_ON = Act("Acting", "acts", (CALL,), go_on=True)


def made(*verdicts: Verdict, paused: bool = False, facts: tuple[Fact, ...] = ()) -> Decision:
    steps = tuple(StepTaken(f"step{n}", verdict) for n, verdict in enumerate(verdicts))
    return Decision(steps=steps, paused=paused, facts=facts)


def tried(outcome: decision.Outcome, action: decision.AnyAction = CALL, step: str = "step0") -> tuple[status.Performed]:
    return (status.Performed(step, action, outcome),)


OK = tried(decision.Ok())
TABLE = [
    # verdicts, performed, paused, ready fact -> Ready, reason, Reconciling, Stalled
    ((DONE,), (), False, True, "True", "Ready", "False", "False"),
    ((DONE,), (), False, False, "False", "Ill", "True", "False"),
    ((DONE,), (), False, None, "Unknown", "Ill", "True", "False"),
    ((WAIT,), (), False, True, "False", "Waiting", "True", "False"),
    ((WAIT,), (), True, True, "False", "Waiting", "True", "False"),
    ((BLOCKED,), (), False, True, "False", "Bad", "False", "True"),
    ((BLOCKED,), (), True, True, "False", "Bad", "False", "True"),
    ((ACT,), OK, False, True, "False", "Acting", "True", "False"),
    ((ACT,), (), True, True, "False", "Paused", "False", "False"),
    ((GO_ON, DONE), (), True, True, "False", "Paused", "False", "False"),
    ((GO_ON, WAIT), (), True, True, "False", "Paused", "False", "False"),
    ((DONE,), (), True, True, "True", "Ready", "False", "False"),
    ((GO_ON, DONE), OK, False, True, "True", "Ready", "False", "False"),
    ((GO_ON, WAIT), OK, False, True, "False", "Waiting", "True", "False"),
    ((ACT,), tried(decision.Refused("Forbidden", "no")), False, True, "False", "Forbidden", "True", "False"),
    ((ACT,), tried(decision.Unknown("lost")), False, True, "False", "OutcomeUnknown", "True", "False"),
    ((ACT,), tried(decision.Conflict("moved")), False, True, "False", "Acting", "True", "False"),
    ((GO_ON, DONE), tried(decision.Conflict("moved")), False, True, "False", "Acting", "True", "False"),
]


@pytest.mark.parametrize(
    ("verdicts", "performed", "paused", "fact", "ready", "reason", "reconciling", "stalled"), TABLE
)
def test_kstatus(
    verdicts: Any,
    performed: Any,
    paused: bool,
    fact: bool | None,
    ready: str,
    reason: str,
    reconciling: str,
    stalled: str,
) -> None:
    it = made(*verdicts, paused=paused, facts=(Fact("Healthy", fact, "Ill"),))
    stands = status.standing(it, performed)
    composed = status.compose(
        it, stands, common_status.Status(), generation=3, now=NOW, ready_facts=frozenset({"Healthy"})
    )
    said = {c.type: c for c in composed.conditions}
    assert (said["Ready"].status, said["Ready"].reason) == (ready, reason)
    assert (said["Reconciling"].status, said["Stalled"].status) == (reconciling, stalled)
    assert {c.observed_generation for c in composed.conditions} == {3}
    assert composed.fields["observedGeneration"] == 3
    assert ("Paused" in said) == paused


def test_progress_keeps_its_time_while_the_step_stays_and_becomes_overdue() -> None:
    stands = status.standing(made(WAIT), ())
    first = status.progress(stands, common_status.Progress(), NOW)
    later = status.progress(stands, first, NOW + 59)
    overdue = status.progress(stands, later, NOW + 60)
    assert (first.since, first.overdue) == (later.since, later.overdue) == (conditions.timestamp(NOW), False)
    assert overdue.overdue
    elsewhere = status.progress(status.standing(made(DONE, ACT), OK), overdue, NOW + 61)
    assert (elsewhere.since, elsewhere.overdue) == (conditions.timestamp(NOW + 61), False)
    assert status.progress(status.Standing(), elsewhere, NOW) == common_status.Progress()


def test_the_time_begins_anew_when_the_clock_was_set_back() -> None:
    """Else the wait would not be overdue before the clock is there again."""
    stands = status.standing(made(WAIT), ())
    ahead = status.progress(stands, common_status.Progress(), NOW + 86400)
    first = status.progress(stands, ahead, NOW)

    assert (conditions.timestamp(NOW), False) == (first.since, first.overdue)
    assert status.progress(stands, first, NOW + 60).overdue


def test_the_time_goes_on_when_only_the_reason_changes() -> None:
    """What is said once a wait was too long must not begin the wait anew."""
    first = status.progress(status.standing(made(WAIT), ()), common_status.Progress(), NOW)
    later = status.progress(status.standing(made(BLOCKED), ()), first, NOW + 600)

    assert (first.since, "Bad") == (later.since, later.reason)


def test_a_wait_that_knows_when_it_began_is_overdue_by_that() -> None:
    """The next task at the same step has time of its own, however long the step has stood."""
    began = [msgspec.structs.replace(WAIT, since=conditions.timestamp(NOW - ago)) for ago in (70, 5)]
    before = common_status.Progress("step0", "Waiting", conditions.timestamp(NOW - 500))

    late, fresh = (status.progress(status.standing(made(wait), ()), before, NOW) for wait in began)

    assert (True, False) == (late.overdue, fresh.overdue)


def test_what_comes_next_is_the_verdicts_own_else_its_reasons() -> None:
    """A fix has its field, however many semicolons it holds; a Wait may say more than its reason."""
    fix = "do this; then that"
    said = [
        Blocked("Bad", "bad", fix),
        Wait(reasons.Reason.NOT_SENT, "waits", on="x", within=60),
        Wait(reasons.Reason.NOT_SENT, "waits", on="x", within=60, next="of the registry"),
        Act(reasons.Reason.MOVED, "acts", (CALL,)),
    ]

    found = [status.progress(status.standing(made(each), ()), common_status.Progress(), NOW).next for each in said]

    assert [fix, reasons.Reason.NOT_SENT.next, "of the registry", reasons.Reason.MOVED.next] == found


def test_what_comes_next_for_a_settled_object_is_what_its_weak_fact_needs() -> None:
    """All steps are done, and it is not ready yet."""
    weak = Fact("Healthy", False, reasons.Reason.UNREACHABLE)
    composed = [
        status.compose(
            made(DONE, facts=(fact,)),
            status.Standing(),
            common_status.Status(),
            generation=1,
            now=NOW,
            ready_facts=frozenset({"Healthy"}),
        )
        for fact in (weak, Fact("Healthy", True, "Well"))
    ]

    assert [reasons.Reason.UNREACHABLE.next, ""] == [each.progress.next for each in composed]


def test_a_failed_pass_keeps_the_facts_and_leaves_no_old_verdict() -> None:
    it = made(BLOCKED, facts=(Fact("Healthy", True, "Well"),))
    composed = status.compose(it, status.standing(it, ()), common_status.Status(), generation=1, now=NOW)
    before = common_status.Status(conditions=composed.conditions)
    fields = status.failed(before, reasons.Reason.INTERNAL_ERROR, "KeyError", generation=2, now=NOW)
    said = {c.type: c.status for c in fields["conditions"]}
    assert said == {"Healthy": "True", "Ready": "Unknown", "Reconciling": "True", "Stalled": "False"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from("ab"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from("pqr"), JSON, max_size=3)


@given(before=OBJECTS, after=OBJECTS)
def test_a_difference_makes_it_true_and_nothing_is_left_to_write(before: Any, after: Any) -> None:
    before = _stored(before)
    patch = status.difference(before, after)
    result = _merged(before, patch)
    assert {k: result.get(k) for k in after} == {k: _stored(v) for k, v in after.items()}
    assert {k: v for k, v in result.items() if k not in after} == {k: v for k, v in before.items() if k not in after}
    assert status.difference(result, after) == {}


@given(same=OBJECTS)
def test_no_difference_no_patch(same: Any) -> None:
    assert status.difference(_stored(same), same) == {}


def _stored(value: Any) -> Any:
    """As the API server keeps it: no nulls."""
    if isinstance(value, dict):
        return {k: _stored(v) for k, v in value.items() if v is not None}
    return [_stored(v) for v in value] if isinstance(value, list) else value


def _merged(old: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    out = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = _merged(out.get(key), value)
    return out


# --- quiet, and the next look ------------------------------------------------------------------------------------

QUIET = [
    ((ACT,), OK, False, 0.0, True),
    ((ACT,), OK, True, 0.0, False),
    ((RUNNING,), tried(decision.Ok(), RUNNING.actions[0]), False, 0.0, False),
    ((GO_ON, DONE), OK, False, 0.0, False),
    ((GO_ON, UNSEEN), OK, False, 0.0, True),
    ((UNSEEN,), (), False, 10.0, True),
    ((UNSEEN,), (), False, schedule.UNSEEN, False),
    ((WAIT,), (), False, 0.0, False),
    ((DONE,), (), False, 0.0, False),
    ((BLOCKED,), (), False, 0.0, False),
    ((ACT,), tried(decision.Conflict("c")), False, 0.0, True),
    ((ACT,), tried(decision.Conflict("c")), True, 0.0, False),
    ((ACT,), tried(decision.Refused("r", "m")), False, 0.0, False),
    ((ACT,), tried(decision.Unknown("m")), False, 0.0, False),
]


@pytest.mark.parametrize(("verdicts", "performed", "often", "unseen_for", "quiet"), QUIET)
def test_when_status_is_left_alone(verdicts: Any, performed: Any, often: bool, unseen_for: float, quiet: bool) -> None:
    assert schedule.is_quiet(made(*verdicts), performed, often=often, unseen_for=unseen_for) is quiet


@pytest.mark.parametrize("outcome", [decision.Refused("Throttled", "m", 3), decision.Unknown("m", 3)])
def test_of_a_server_that_sheds_load_it_is_not_asked_to_write_that_down_as_well(outcome: Any) -> None:
    args: dict[str, Any] = {"often": False, "unseen_for": 0.0}
    assert schedule.is_quiet(made(ACT), tried(outcome), shed=True, **args)
    assert not schedule.is_quiet(made(WAIT), (), shed=True, **args), "what went well is told"


@pytest.mark.parametrize(("reason", "quiet"), [("Forbidden", (True, True, True, False)), ("Invalid", (False,) * 4)])
def test_rights_that_are_missing_a_moment_after_they_were_given_are_not_told(reason: str, quiet: Any) -> None:
    """Nor is there an Event, which is made of the status; what stays is told at the fourth try."""
    refused = tried(decision.Refused(reason, "no"))
    found = [
        schedule.is_quiet(made(ACT), refused, often=False, unseen_for=0.0, failures=failures) for failures in range(4)
    ]

    assert list(quiet) == found


AGAIN = Wait("Waiting", "waits", on="x", within=60, again=5)
LOOKS = [
    ((DONE,), (), False, schedule.Look(schedule.How.AFTER, 600, backlog=True)),
    ((BLOCKED,), (), False, schedule.Look(schedule.How.AFTER, 600, backlog=True)),
    ((WAIT,), (), False, schedule.Look(schedule.How.AFTER, 50)),
    ((AGAIN,), (), False, schedule.Look(schedule.How.AFTER, 5)),
    ((UNSEEN,), (), False, schedule.Look(schedule.How.AFTER, schedule.UNSEEN)),
    ((ACT,), OK, False, schedule.Look(schedule.How.NOW)),
    ((GO_ON, DONE), OK, False, schedule.Look(schedule.How.NOW)),
    ((ACT,), tried(decision.Conflict("c")), False, schedule.Look(schedule.How.RETRY)),
    ((ACT,), tried(decision.Unknown("c")), False, schedule.Look(schedule.How.RETRY)),
    ((ACT,), tried(decision.Unknown("c", after=7)), False, schedule.Look(schedule.How.RETRY, 7)),
    ((ACT,), tried(decision.Refused("r", "m", after=9)), False, schedule.Look(schedule.How.RETRY, 9)),
    ((ACT,), OK, True, schedule.Look(schedule.How.REST)),
]


@pytest.mark.parametrize(("verdicts", "performed", "often", "look"), LOOKS)
def test_the_next_look(verdicts: Any, performed: Any, often: bool, look: schedule.Look) -> None:
    since = conditions.timestamp(NOW - 10)
    got = schedule.next_look(made(*verdicts), performed, since, now=NOW, resync=600, often=often, unseen_for=0)
    assert got == look


def test_a_paused_object_is_looked_at_at_resync_and_an_overdue_wait_too() -> None:
    args: dict[str, Any] = {"now": NOW, "resync": 600, "often": False, "unseen_for": 0}
    look = schedule.next_look(made(ACT, paused=True), (), conditions.timestamp(NOW), **args)
    assert look == schedule.Look(schedule.How.AFTER, 600, backlog=True)
    look = schedule.next_look(made(WAIT), (), conditions.timestamp(NOW - 100), **args)
    assert look == schedule.Look(schedule.How.AFTER, 600, backlog=True)


def test_two_steps_that_undo_each_other_are_noticed_as_one_that_does_nothing() -> None:
    memory = schedule.Memory("u")
    other = Act("Other", "others", (CALL,))
    often = [memory.acted(made(act), OK, float(n)) for n, act in enumerate([ACT, other] * 4)]
    assert often == [False] * 6 + [True] * 2
    assert not memory.acted(made(ACT), OK, 8 + schedule.WINDOW), "forgotten after a while"
    members = (Act("Joining", f"member {n} joins", (CALL,)) for n in range(20))
    assert not any(memory.acted(made(act), OK, 100.0 + n) for n, act in enumerate(members)), "progress is no circle"


def test_a_wait_that_hands_over_is_stalled_once_it_is_overdue() -> None:
    """From then on only a person can bring what is waited for; the reason stays."""
    wait = msgspec.structs.replace(WAIT, fix="correct it; or else")
    began = common_status.Status(progress=common_status.Progress("step0", "Waiting", conditions.timestamp(NOW - 59)))
    found = []
    for now in (NOW, NOW + 1):
        stands = status.standing(made(wait), ())
        after = status.compose(made(wait), stands, began, generation=1, now=now)
        found.append(({c.type: c.status for c in after.conditions}, after.progress.reason, after.progress.next))

    young, old = found
    assert {"Ready": "False", "Reconciling": "True", "Stalled": "False"} == young[0]
    assert ({"Ready": "False", "Reconciling": "False", "Stalled": "True"}, "Waiting", "correct it; or else") == old
