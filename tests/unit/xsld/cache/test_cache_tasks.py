"""A task that was asked of the group is followed to its end, found again, and judged by what the group shows."""

from __future__ import annotations

import msgspec
import pytest

from moorage.api import conditions
from moorage.operators.xsld.cache import control, tasks, types
from moorage.runtime import decision, freshness
from tests.unit import verdicts
from tests.unit.verdicts import SETTLED, Row, Waits, acts
from tests.unit.xsld import states
from tests.unit.xsld.states import BUSY, DONE, FAILED, NOW, ago, cache, fresh, submits, task

REMEMBERED = "remember no-currentTask troubles"
ENDED = "remember no-currentTask no-troubles"
REASONS = {"Join": "Joining", "Leave": "Disjoining", "Replicate": "Replicating", "Failover": "FailingOver"}
FAILURES = {
    "Join": "JoinFailed",
    "Leave": "DisjoinFailed",
    "Replicate": "ReplicationFailed",
    "Failover": "PrimaryUnavailable",
}
LIMITS = {"join": "10m", "disjoin": "20m", "replication": "30m"}
WITHIN = {"Join": 600.0, "Leave": 1200.0, "Replicate": 1800.0, "Failover": 1800.0}


def row(it: states.It, shape: verdicts.Shape, says: str = "", *, step: str = "own_task_is_followed") -> Row:
    return Row(it.seen, step, shape, says)


def before(command: str, /, **changes: object) -> states.It:
    """A group in which the command was asked for and shows no effect: the healthy one, but for that."""
    it = {
        "Join": fresh(3, timeouts=LIMITS).joined(1).asked("Join", 2, 2),
        "Leave": cache(3, timeouts=LIMITS).wants(size=2).asked("Leave", 2, 0),
        "Replicate": cache(3, timeouts=LIMITS).primary(0).asked("Replicate", 1, 0),
        "Failover": cache(3, timeouts=LIMITS).old(0).asked("Failover", 1, 1),
    }[command]
    assert it.status.current_task is not None
    return it.says(current_task=msgspec.structs.replace(it.status.current_task, **changes))


def after(command: str) -> states.It:
    """The same, with its effect."""
    it = before(command)
    return {
        "Join": lambda: it.joined(2),
        "Leave": lambda: it.left(2),
        "Replicate": lambda: it.primary(0, slave=1),
        "Failover": lambda: it.primary(1, slave=0),
    }[command]()


def endpoint(command: str) -> int:
    return {"Join": 2, "Leave": 0, "Replicate": 0, "Failover": 1}[command]


FORGED = {
    "of no command": {"command": "x"},
    "about no member": {"target": "x"},
    "about a member that there is not": {"target": "c-7"},
    "about more than there can be": {"target": "c-99999"},
    "about a number that none has": {"target": "c-" + "9" * 5000},
    "about a number in other digits": {"target": "c-02"},
    "at nobody": {"endpoint": "another-0"},
    "by which any task is found": {"intent": ""},
}
"""What somebody else writes into the status."""


def running(command: str) -> Waits:
    return Waits(REASONS[command], "group", WITHIN[command], again=BUSY)


def ended(command: str) -> str:
    """What is remembered of a command that ended well: of one that left also what it leaves behind."""
    return f"{ENDED} left" if command == "Leave" else ENDED


EACH: dict[str, Row] = {}
for _what, _changes in FORGED.items():
    EACH[f"a task that was never asked for: {_what}"] = row(
        before("Leave", **_changes), acts("TaskForgotten", "remember no-currentTask"), "never asked for"
    )
for _command in REASONS:
    _at, _reason, _failure = endpoint(_command), REASONS[_command], FAILURES[_command]
    EACH |= {
        f"{_command}: runs": row(
            before(_command).runs(_at, task()), running(_command), f"task 7 at c-{_at} is at 30 %"
        ),
        f"{_command}: runs, found by its intent": row(
            before(_command, id=0).runs(_at, task(9)), acts(_reason, "remember currentTask"), "task 9 was found again"
        ),
        f"{_command}: just in time": row(
            before(_command, started_at=ago(WITHIN[_command])).runs(_at, task()), running(_command)
        ),
        f"{_command}: takes too long": row(
            before(_command, started_at=ago(WITHIN[_command] + 1)).runs(_at, task()),
            acts("TaskCancelled", f"cancel c-{_at} 7"),
            f"cancelled, as it is at 30 % after {WITHIN[_command] + 1:.0f} s",
        ),
        f"{_command}: asked for by a clock that was set back since": row(
            before(_command, started_at=ago(-86400)).runs(_at, task()),
            acts("TaskCancelled", f"cancel c-{_at} 7"),
            "cancelled, as it is at 30 %",
        ),
        f"{_command}: asked for by a clock that is a little ahead": row(
            before(_command, started_at=ago(-5)).runs(_at, task()), running(_command)
        ),
        f"{_command}: was refused": row(
            before(_command, id=0, refused="secret key"), acts(_failure, REMEMBERED), "secret key"
        ),
        f"{_command}: failed": row(
            before(_command).runs(_at, task(phase=FAILED, message="no room")), acts(_failure, REMEMBERED), "no room"
        ),
        f"{_command}: failed without a word": row(
            before(_command).runs(_at, task(phase=FAILED)), acts(_failure, REMEMBERED), "the task failed"
        ),
        f"{_command}: failed, and yet it shows": row(
            after(_command).runs(_at, task(phase=FAILED)), acts("TaskDone", ended(_command)), "done"
        ),
        f"{_command}: done": row(
            after(_command).runs(_at, task(phase=DONE)), acts("TaskDone", ended(_command)), "done"
        ),
        f"{_command}: done, and does not show yet": row(
            before(_command).runs(_at, task(phase=DONE)),
            Waits(_reason, "group", 120.0),
            "the task has ended, its effect is waited for",
        ),
        f"{_command}: done, and does not show for long": row(
            before(_command).moved(30, age=120).runs(_at, task(phase=DONE)),
            Waits(_reason, "group", 120.0),
        ),
        f"{_command}: done, and does not show at all": row(
            before(_command).moved(30, age=121).runs(_at, task(phase=DONE)),
            acts(_failure, REMEMBERED),
            "the group does not show it",
        ),
        f"{_command}: nowhere, but it shows": row(after(_command), acts("TaskDone", ended(_command))),
        f"{_command}: not sent": row(
            before(_command, id=0).fact(unsent=True),
            acts(_reason, "remember no-currentTask"),
            "not sent, to be asked anew",
        ),
        f"{_command}: no answer came, and nothing shows yet": row(
            before(_command, id=0, started_at=ago(5.0)),
            Waits(_reason, "group", 60.0, again=BUSY),
            f"c-{_at} gave no answer, and may begin it yet",
        ),
        f"{_command}: a moment before it counts as not begun": row(
            before(_command, id=0, started_at=ago(30.0)), Waits(_reason, "group", 60.0, again=BUSY)
        ),
        f"{_command}: no answer came, and nothing shows": row(
            before(_command, id=0, started_at=ago(31.0)),
            acts(_failure, REMEMBERED),
            f"c-{_at} gave no answer, and has not begun it",
        ),
        f"{_command}: lost": row(before(_command), acts(_failure, REMEMBERED), "its task is lost"),
        f"{_command}: lost among others": row(
            before(_command).runs(_at, task(8, description="another's")), acts(_failure, REMEMBERED), "its task is lost"
        ),
    }

ROWS: dict[str, Row] = {
    **EACH,
    # the endpoint does not answer
    "the joining member is away for a while": row(
        before("Join").mute(2), running("Join"), "c-2 does not answer at the moment"
    ),
    "just in time": row(before("Join", started_at=ago(600.0)).mute(2), running("Join")),
    "the joining member is away too long": row(
        before("Join", started_at=ago(601.0)).mute(2), acts("JoinFailed", REMEMBERED), "c-2 does not answer"
    ),
    "whatever is known of its task": row(before("Join", id=0).mute(2), running("Join")),
    "it came back as another pod, and answers": row(
        before("Join").pod(2, uid="another"), acts("JoinFailed", REMEMBERED), "its task is lost"
    ),
    "it came back, and the group has it online": row(
        before("Join").joined(2).mute(2), acts("TaskDone", ENDED), "c-2 joins the group: done"
    ),
    "it is listed and not online yet": row(
        before("Join").joined(2).member(2, online=False, status="Joining").mute(2), running("Join")
    ),
    "who was the primary does not answer, and there is another": row(
        before("Leave").primary(1).off(0),
        acts("DisjoinFailed", REMEMBERED),
        "c-0 is no longer the primary, and does not answer",
    ),
    "a join goes on though its member is not the primary": row(before("Join").mute(2), running("Join")),
    "the replacement is looked at once it shows": row(
        after("Leave").primary(1).off(0), acts("TaskDone", ended("Leave")), "c-2 leaves the group: done"
    ),
    # replication that is stuck
    "a copy that makes no progress": row(
        before("Replicate").moved(45, age=601.0).runs(0, task(progress=45)),
        acts("TaskCancelled", "cancel c-0 7"),
        "45 %",
    ),
    "for not so long": row(before("Replicate").moved(45, age=600.0).runs(0, task(progress=45)), running("Replicate")),
    "of which no progress is known": row(before("Replicate").runs(0, task()), running("Replicate")),
    "others may stand still": row(before("Leave").moved(45, age=601.0).runs(0, task(progress=45)), running("Leave")),
    # what shows
    "a copy at another member is no copy": row(
        before("Replicate").primary(0, slave=2).runs(0, task(phase=DONE)), Waits("Replicating", "group", 120.0)
    ),
    "nor one at a member that left": row(
        before("Replicate").left(1).runs(0, task(phase=DONE)), Waits("Replicating", "group", 120.0)
    ),
    "a failover to one who left": row(
        before("Failover").left(1).runs(1, task(phase=DONE)), Waits("FailingOver", "group", 120.0)
    ),
    "nothing, while the group is not known": Row(
        before("Join").fact(polled=freshness.Failed("Down", "down")).seen,
        "own_task_is_followed",
        running("Join"),
        steps=(tasks.own_task_is_followed,),
    ),
    # several troubles
    "success forgets its own trouble alone": row(
        after("Join").failed("Leave", 1).failed("Join", 2).failed("Join", 1), acts("TaskDone", REMEMBERED)
    ),
    # tasks of others
    "somebody else's task": row(
        cache().runs(1, task(9, command="Backup", description="mine", progress=5)),
        Waits("TaskRunning", "group", 1800.0, again=BUSY),
        "under way: Backup (task 9 at c-1, 5 %)",
        step="foreign_tasks_end",
    ),
    "before anything else is asked": row(
        cache().wants(size=2).runs(2, task(9)),
        Waits("TaskRunning", "group", 1800.0, again=BUSY),
        step="foreign_tasks_end",
    ),
    "tasks that have ended are nothing": row(cache().runs(0, task(1, DONE), task(2, FAILED)), SETTLED, step=""),
    # how a command is asked
    "a second try": row(
        fresh().failed("Join", 1, attempts=1, age=10.0), submits("Joining", "Join c-1 at c-1"), step="members_join"
    ),
    "a second before that": row(
        fresh(2).failed("Join", 1, attempts=1, age=9.0),
        Waits("JoinFailed", "back-off", states.CAP, again=1.0),
        step="members_have_joined",
    ),
    "after more failures the wait is longer": row(
        fresh(2).failed("Join", 1, attempts=4, age=0.0),
        Waits("JoinFailed", "back-off", states.CAP, again=80.0),
        step="members_have_joined",
    ),
    "a copy is never given up, and the wait is capped": row(
        cache().primary(0).failed("Replicate", 1, attempts=50),
        Waits("ReplicationFailed", "back-off", states.CAP, again=300.0),
        step="replication_runs",
    ),
}


@pytest.mark.parametrize("it", ROWS.values(), ids=ROWS)
def test_table(it: Row) -> None:
    verdicts.check(it, control.STEPS)


def notes(it: states.It) -> tuple[dict[str, object], list[decision.AnyAction]]:
    """What is remembered, and all actions."""
    made = decision.decide(it.seen, steps=control.STEPS)
    actions = [action for act in made.acts for action in act.actions]
    (note,) = (action for action in actions if isinstance(action, decision.Remember))
    return note.fields, actions


def test_a_command_is_remembered_before_it_is_sent_and_both_are_the_same() -> None:
    fields, (first, call) = notes(fresh())

    assert isinstance(first, decision.Remember)
    assert isinstance(call, decision.Call)
    assert call.keep, "its id is kept at once"
    assert fields["currentTask"] == call.args
    task_ = msgspec.convert(call.args, types.CurrentTask)
    assert ("Join", "c-1", "c-1", conditions.timestamp(NOW), 0, 1, "") == (
        task_.command,
        task_.target,
        task_.endpoint,
        task_.started_at,
        task_.id,
        task_.attempts,
        task_.refused,
    )


@pytest.mark.parametrize(
    ("other", "differs"),
    [
        pytest.param(fresh(), False, id="the same once more"),
        pytest.param(fresh().mute(1), True, id="another member"),
        pytest.param(cache(2).wants(size=1), True, id="another command"),
        pytest.param(fresh().object(uid="another"), True, id="another cache"),
        pytest.param(fresh().fact(now=NOW + 1), True, id="another time"),
    ],
)
def test_each_try_has_an_intent_of_its_own(other: states.It, differs: bool) -> None:
    def intent(it: states.It) -> str:
        current = notes(it)[0]["currentTask"]
        assert isinstance(current, dict)
        return str(current["intent"])

    assert differs == (intent(fresh()) != intent(other))
    assert 12 == len(intent(other))


@pytest.mark.parametrize(
    ("it", "expected"),
    [
        pytest.param(fresh(), 1, id="the first"),
        pytest.param(fresh().failed("Join", 1, attempts=3, age=1000), 4, id="the fourth"),
        pytest.param(fresh().failed("Join", 2, attempts=3, age=1000), 1, id="another's failures"),
        pytest.param(fresh().failed("Leave", 1, attempts=3, age=1000), 1, id="of another command"),
        pytest.param(fresh().failed("Join", 1, attempts=3).object(generation=2), 1, id="of another spec"),
    ],
)
def test_tries_are_counted(it: states.It, expected: int) -> None:
    current = notes(it)[0]["currentTask"]

    assert isinstance(current, dict)
    assert expected == current["attempts"]


def test_a_failure_is_remembered_beside_others() -> None:
    it = before("Join", attempts=3).failed("Leave", 1).failed("Join", 2, attempts=2).runs(2, task(phase=FAILED))

    fields, _ = notes(it)

    assert {
        "currentTask": None,
        "troubles": [
            {
                "command": "Leave",
                "target": "c-1",
                "attempts": 1,
                "at": ago(0),
                "message": "no room",
                "generation": it.meta.generation,
            },
            {
                "command": "Join",
                "target": "c-2",
                "attempts": 3,
                "at": ago(0),
                "message": "the task failed",
                "generation": it.meta.generation,
            },
        ],
    } == fields


def test_a_success_forgets_its_own_failures() -> None:
    fields, _ = notes(after("Join").failed("Leave", 1).failed("Join", 2).failed("Join", 1))

    kept = fields["troubles"]
    assert isinstance(kept, list)
    assert [("Leave", "c-1"), ("Join", "c-1")] == [(it["command"], it["target"]) for it in kept]


def test_what_is_found_again_is_remembered_with_its_id() -> None:
    fields, _ = notes(before("Join", id=0).runs(2, task(8, description="x"), task(9)))

    found = fields["currentTask"]
    assert isinstance(found, dict)
    assert (9, "i-1", "Join") == (found["id"], found["intent"], found["command"])


def test_a_long_message_is_cut() -> None:
    fields, _ = notes(before("Join").runs(2, task(phase=FAILED, message="x" * 9000)))

    found = fields["troubles"]
    assert isinstance(found, list)
    assert 500 == len(found[0]["message"])


def test_an_id_of_zero_is_none() -> None:
    """The task 0 of somebody else is not ours."""
    it = before("Join", id=0).fact(unsent=True).runs(2, task(0, description="somebody's"))

    assert ("own_task_is_followed", acts("Joining", "remember no-currentTask")) == verdicts.decided(
        it.seen, control.STEPS
    )[:2]


# --- what is measured --------------------------------------------------------------------------------------------


def ended(it: states.It) -> decision.Ended | None:
    """What the decision says of an operation that is over."""
    found = tasks.own_task_is_followed(it.seen)
    assert isinstance(found, decision.Act)
    (note,) = found.actions
    assert isinstance(note, decision.Remember)
    return note.ended


@pytest.mark.parametrize("command", REASONS)
def test_a_task_that_ended_is_measured(command: str) -> None:
    went_well = after(command).runs(endpoint(command), task(phase=DONE))
    failed = before(command, started_at=ago(90.0)).runs(endpoint(command), task(phase=FAILED))

    assert decision.Ended(command, "succeeded", 60.0) == ended(went_well)
    assert decision.Ended(command, "failed", 90.0) == ended(failed)
    assert decision.Ended(command, "refused", 60.0) == ended(before(command, refused="busy"))


def test_what_was_not_sent_is_not_measured() -> None:
    assert ended(before("Leave", id=0).fact(unsent=True)) is None
