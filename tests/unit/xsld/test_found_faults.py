"""Faults that were found by comparing the steps with what users of the product expect, each as the example of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.operators.xsld.cache import control, facts
from moorage.operators.xsld.grid import control as grid_control
from moorage.operators.xsld.grid import settings, types
from moorage.operators.xsld.group import answers, dialect
from moorage.runtime import decision, freshness
from tests.unit import verdicts
from tests.unit.verdicts import Blocks, Waits, acts
from tests.unit.xsld import states
from tests.unit.xsld.cache import test_scripts
from tests.unit.xsld.grid import test_grid_control
from tests.unit.xsld.group import test_answers
from tests.unit.xsld.states import BUSY, DONE, ago, cache, fresh, submits, task

PRIMARY = "primary_leads"
RETAIN = {"reclaimOnScaleDown": "Retain"}
GRID = test_grid_control.It()
DOWN = freshness.Failed("Down", "the server is down")


WITHOUT_SCRIPT = cache(entrypointConfigMap="mine").fact(entrypoint=freshness.Fresh("there is no ConfigMap mine"))
WITHOUT_COPY = cache(derbyReplication={"mode": "Enabled"}).primary(0)
GRIDS_UNKNOWN = (GRID.fact(polled=DOWN), GRID.but(grids_known=False))


@pytest.fixture
def place(tmp_path: Path) -> Iterator[test_scripts.Place]:
    yield from test_scripts.places(tmp_path)


EXPECTED: dict[str, tuple[Any, Any, str, verdicts.Shape | None]] = {
    # id: (steps, situation, the step where it should stand, its verdict in short if that is clear)
    "3.4: while the first member does not answer nobody forms a group without it": (
        control.STEPS,
        fresh().mute(0),
        "group_answers",
        Waits("GroupUnreachable", "group", 1800.0, again=BUSY),
    ),
    "4.1, 5.2.7: a failover that runs is followed, and not asked for twice": (
        control.STEPS,
        cache().off(0).asked("Failover", 1, 1, age=70).runs(1, task()).stands(PRIMARY, "PrimaryUnavailable", age=70),
        "own_task_is_followed",
        Waits("FailingOver", "group", 900.0, again=BUSY),
    ),
    "4.6: a failover that failed is remembered, so that the next one waits": (
        control.STEPS,
        cache()
        .off(0)
        .asked("Failover", 1, 1, age=70)
        .runs(1, task(phase=states.FAILED))
        .stands(PRIMARY, "PrimaryUnavailable", age=70),
        "own_task_is_followed",
        acts("PrimaryUnavailable", "remember no-currentTask troubles"),
    ),
    "3.1: a StatefulSet that was scaled down by hand is put right; members' volumes are no leftovers": (
        control.STEPS,
        cache(5).set_of(replicas=3).no_pod(3, 4).off(3, 4),
        "workload_is_right",
        acts("Resizing", "apply StatefulSet/c sts-uid"),
    ),
    "law 3: a pod that is being replaced is not evicted again on each look": (
        control.STEPS,
        cache().old(0, 1, 2).off(2).pod(2, deleting=True, running=False),
        "template_rolls",
        Waits("Updating", "pod", 900.0, again=BUSY),
    ),
    "6.5: after a failover the new primary gets a copy though the former one stays away": (
        control.STEPS,
        cache().off(0).primary(1),
        "replication_runs",
        submits("Replicating", "Replicate c-2 at c-1"),
    ),
    "6.5: a copy whose holder stays away is replaced": (
        control.STEPS,
        cache().off(1).stands("replication_runs", "ReplicationMissing", age=60),
        "replication_runs",
        submits("Replicating", "Replicate c-2 at c-0"),
    ),
    "3.9: with replication wanted the primary is not replaced before there is a copy": (
        control.STEPS,
        cache().primary(0).old(0),
        "template_rolls",
        submits("Replicating", "Replicate c-1 at c-0"),
    ),
    "3.9: the next one goes only once the last one's registered address is right": (
        control.STEPS,
        cache().old(0, 1).member(2, address="10.9.9.9"),
        "new_members_are_back",
        Waits("Updating", "group", 900.0, again=BUSY),
    ),
    "law 4: no member is replaced while nobody tells whether grids are online": (
        control.STEPS,
        cache().old(2).but(grids=None),
        "template_rolls",
        Waits("UpdateWaits", "group", 1800.0, again=BUSY),
    ),
    "3.9: a member that was back long ago, and restarts, did not miss its time": (
        control.STEPS,
        cache().old(0, 1).off(2),
        "new_members_are_back",
        Waits("Updating", "group", 900.0, again=BUSY),
    ),
    "3.5: a leftover volume that is kept stops the growth, and no failover": (
        control.STEPS,
        cache(2, storage=RETAIN).wants(size=3).volume(2).off(0).stands(PRIMARY, age=60),
        PRIMARY,
        submits("FailingOver", "Failover c-1 at c-1"),
    ),
    "6.7: volumes that can't grow stop no failover": (
        control.STEPS,
        cache(2, storage={"size": "1Gi"}).volume(0, expandable=False).off(0).stands(PRIMARY, age=60),
        PRIMARY,
        submits("FailingOver", "Failover c-1 at c-1"),
    ),
    "Corrections: volumes that can't grow do not keep a bad image from being replaced": (
        control.STEPS,
        cache(2, storage={"size": "1Gi"})
        .volume(0, expandable=False)
        .pod(1, revision="old", came_up=False, running=False),
        "failing_pods_are_replaced",
        None,
    ),
    "5.2.3: nobody joins while two members are off": (
        control.STEPS,
        cache(3).wants(size=4).grown(4).off(1, 2),
        "members_have_joined",
        Waits("GroupDegraded", "group", 3600.0, again=BUSY),
    ),
    "6.5: a primary that is to go, size 1 and Auto: a copy is made, then it hands over": (
        control.STEPS,
        cache(2).primary(1).wants(size=1),
        "surplus_leaves",
        submits("Replicating", "Replicate c-0 at c-1"),
    ),
    "5.2.4: a primary without its state is not given up while the copy's holder may come back": (
        control.STEPS,
        cache().off(0, 1).but(silent={1: answers.Fault.TIMEOUT}).blank(0),
        PRIMARY,
        Waits("PrimaryUnavailable", "group", 900.0, again=BUSY),
    ),
    "tasks.SETTLE: a task that succeeded, and shows no effect for 120 s, has failed": (
        control.STEPS,
        fresh().joined(1).asked("Join", 2, 2).moved(30, age=121).runs(2, task(phase=DONE)),
        "own_task_is_followed",
        acts("JoinFailed", "remember no-currentTask troubles"),
    ),
    "law 10: a change that fails at once is not asked again at once, as the grid stays online": (
        grid_control.STEPS,
        GRID.wants(lockTimeout=9).server(lockTimeout="15").failed(2, age=1),
        "failures_are_spaced",
        None,
    ),
    "1.3: nor for ever": (
        grid_control.STEPS,
        GRID.wants(lockTimeout=9).server(lockTimeout="15").failed(9, age=9999),
        "failures_are_spaced",
        Blocks("GridGivenUp"),
    ),
    "law 10: a corrected spec heals what was given up": (
        grid_control.STEPS,
        GRID.wants(lockTimeout=9).server(lockTimeout="15").failed(9, age=9999).object(generation=2),
        "grid_is_as_wanted",
        None,
    ),
    "law 10: a deletion that fails is not asked again at once": (
        grid_control.DELETION_STEPS,
        GRID.object(deletion_timestamp=ago(9)).failed(2, age=1),
        "failures_are_spaced",
        None,
    ),
    "a grid that is as it should be stays Ready while a member joins": (
        grid_control.STEPS,
        GRID.cache(task="Join c-2"),
        "",
        verdicts.SETTLED,
    ),
}


@pytest.mark.parametrize(("steps", "it", "step", "shape"), EXPECTED.values(), ids=EXPECTED)
def test_steps(steps: Any, it: Any, step: str, shape: verdicts.Shape | None) -> None:
    stands, found, message, _ = verdicts.decided(it.seen, steps)

    assert (step, shape or found) == (stands, found), message


def test_what_is_remembered_as_ended_is_not_reported_as_under_way() -> None:
    it = cache().asked("Replicate", 1, 0).moved(45).runs(0, task(phase=DONE, progress=100)).seen
    made = decision.decide(it, steps=control.STEPS, report=facts.report)
    (note,) = (action for act in made.acts for action in act.actions if isinstance(action, decision.Remember))

    assert note.fields["currentTask"] is None
    assert made.report.get("currentTask") is None


def test_the_report_does_not_undo_what_is_remembered() -> None:
    it = cache().primary(0).asked("Replicate", 1, 0, id=0).moved(10).runs(0, task(9, progress=45)).seen
    made = decision.decide(it, steps=control.STEPS, report=facts.report)

    assert not made.report.get("currentTask") or made.report["currentTask"]["id"] == 9


def test_a_missing_script_is_no_fault_of_the_credentials() -> None:
    assert "EntrypointMissing" == str(facts.valid(WITHOUT_SCRIPT.seen).reason)


def test_enabled_calls_it_degraded_to_have_no_copy() -> None:
    assert facts.degraded(WITHOUT_COPY.seen).status


def test_a_grid_of_which_nothing_is_known_is_not_being_recovered() -> None:
    for it in GRIDS_UNKNOWN:
        assert not grid_control.recovering(it.seen).status
        assert grid_control.synced(it.seen).status is None


def test_a_member_that_left_is_not_believed_before_the_primary() -> None:
    told = (
        test_answers.listed("a", "a* b"),
        test_answers.listed("b", "a* b"),
        test_answers.listed("c", "a* b c"),
    )
    for remembered in ("a b", "a b c"):
        found = answers.group(answers.Polled(told), remembered=remembered.split(), primary="a")

        assert found is not None
        assert "a" == found.teller


def test_a_description_that_was_taken_back_differs() -> None:
    assert ("description",) == settings.differences(
        types.DataGridSpec(), answers.Grid("g", "Online", {"description": "x"})
    )


def test_an_unknown_field_of_the_dialect_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"comands": {"leave": "X"}}, dialect.Dialect)


def test_an_error_of_the_sql_tool_is_no_address(place: test_scripts.Place) -> None:
    test_scripts.member_of(place, "ERROR 08001: No suitable driver found for jdbc:derby://127.0.0.1:1527/xsadmin")

    assert (0, "") == place.run("entrypoint.sh", LOOKS="2")
