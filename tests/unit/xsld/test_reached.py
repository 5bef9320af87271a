"""The tables of the three kinds reach all that their modules can say; and nothing that is said is secret."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import msgspec
import pytest

from moorage.api import meta
from moorage.operators.xsld import reasons
from moorage.operators.xsld.cache import control, deletion, facts, left_members, objects, replication, rolling, tasks
from moorage.operators.xsld.grid import control as grid_control
from moorage.operators.xsld.template import control as template_control
from moorage.operators.xsld.within_cache import common_steps
from moorage.runtime import decision
from tests.unit import verdicts
from tests.unit.xsld import states, test_found_faults
from tests.unit.xsld.cache import (
    test_cache_deletion,
    test_cache_facts,
    test_cache_group,
    test_cache_left_members,
    test_cache_objects,
    test_cache_replication,
    test_cache_rolling,
    test_cache_tasks,
)
from tests.unit.xsld.grid import test_grid_control
from tests.unit.xsld.template import test_template_control

Steps = tuple[Callable[[Any], decision.Verdict], ...]


class Kind(msgspec.Struct, frozen=True):
    """The modules of a kind, its tables of steps, and what else is stated of it."""

    modules: tuple[ModuleType, ...]
    tables: tuple[tuple[Steps, dict[str, verdicts.Row]], ...]
    facts: Iterable[Callable[[Any], decision.Fact]]
    seen: tuple[Any, ...]  # for facts and report
    report: Callable[[Any, decision.StepTaken | None], dict[str, Any]]


def cache_report(it: Any, _: decision.StepTaken | None) -> dict[str, Any]:
    """The report where the steps of a cache stop, whatever else was decided."""
    return facts.report(it, decision.decide(it, steps=control.STEPS).standing)


FOUND = {
    name: verdicts.Row(it.seen, step, shape)
    for name, (steps, it, step, shape) in test_found_faults.EXPECTED.items()
    if steps is control.STEPS
}

GRIDS_FOUND = {
    name: verdicts.Row(it.seen, step, shape)
    for name, (steps, it, step, shape) in test_found_faults.EXPECTED.items()
    if steps is grid_control.STEPS
}

KINDS = {
    "XsldCache": Kind(
        (control, objects, tasks, left_members, replication, rolling, deletion, facts),
        (
            (control.STEPS, test_cache_objects.ROWS),
            (control.STEPS, test_cache_group.ROWS),
            (control.STEPS, test_cache_tasks.ROWS),
            (control.STEPS, test_cache_left_members.ROWS),
            (control.STEPS, FOUND),
            (control.STEPS, test_cache_replication.ROWS),
            (control.STEPS, test_cache_rolling.ROWS),
            (control.DELETION_STEPS, test_cache_deletion.ROWS),
        ),
        facts.FACTS,
        (
            *(it.seen for _, it in test_cache_facts.ROWS.values()),
            *(it.seen for it, _ in test_cache_facts.PHASES.values()),
            *(it.seen for it, _ in test_cache_facts.COPIES.values()),
            *(it.seen for it, _ in test_cache_facts.PROGRESS.values()),
            test_found_faults.WITHOUT_COPY.seen,
            test_found_faults.WITHOUT_SCRIPT.seen,
            states.cache().asked("Replicate", 1, 0).runs(0, states.task()).seen,
        ),
        cache_report,
    ),
    "DataGrid": Kind(
        (grid_control, common_steps),
        (
            (grid_control.STEPS, test_grid_control.ROWS),
            (grid_control.DELETION_STEPS, test_grid_control.DELETION_ROWS),
            (grid_control.STEPS, GRIDS_FOUND),
        ),
        grid_control.FACTS,
        (
            *(it.seen for it, *_ in test_grid_control.FACTS.values()),
            *(it.seen for it in test_found_faults.GRIDS_UNKNOWN),
        ),
        lambda it, _: grid_control.report(it),
    ),
    "GridTemplate": Kind(
        (template_control, common_steps),
        (
            (template_control.STEPS, test_template_control.ROWS),
            (template_control.DELETION_STEPS, test_template_control.DELETION_ROWS),
        ),
        template_control.FACTS,
        tuple(it.seen for it, *_ in test_template_control.FACTS.values()),
        lambda it, _: template_control.report(it),
    ),
}
each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def tree(module: ModuleType) -> ast.Module:
    return ast.parse(inspect.getsource(module))


def decisions(kind: Kind) -> list[decision.Decision]:
    """What is decided on every row, with all facts and the report."""
    made = [decision.decide(row.seen, steps=row.steps or steps) for steps, rows in kind.tables for row in rows.values()]
    made += [decision.decide(it, steps=(), facts=kind.facts, report=kind.report) for it in kind.seen]
    return made


def used(kind: Kind) -> set[str]:
    """Reasons that the modules name."""
    return {
        str(reasons.Reason[node.attr])
        for module in kind.modules
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Reason"
    }


@each_kind
def test_every_reason_that_is_named_is_reached(kind: Kind) -> None:
    made = decisions(kind)
    said = {
        str(taken.verdict.reason)
        for each in made
        for taken in each.steps
        if not isinstance(taken.verdict, decision.Done)
    }

    assert used(kind) == said | {str(fact.reason) for each in made for fact in each.facts}


def test_every_reason_is_used_by_some_kind() -> None:
    assert {str(reason) for reason in reasons.Reason} - UNUSED == set().union(*map(used, KINDS.values())) - UNUSED


UNUSED = frozenset({"NotCancelled", "NotDeleted"})
"""What the server answers to a request, which no step decides."""


@each_kind
def test_every_way_out_of_every_step_and_fact_is_taken(kind: Kind) -> None:
    """Each `return` of the modules is reached by a row, so that each step gives each of its verdicts."""
    files = {str(module.__file__): module for module in kind.modules}
    reached: set[tuple[str, int]] = set()

    def note(frame: FrameType, _: str, __: Any) -> Any:
        name = frame.f_code.co_filename
        if name not in files:
            return None
        reached.add((name, frame.f_lineno))
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        decisions(kind)
    finally:
        sys.settrace(before)

    left = [
        f"{Path(name).name}:{node.lineno}: {ast.unparse(node)[:80]}"
        for name, module in files.items()
        for function in ast.walk(tree(module))
        if isinstance(function, ast.FunctionDef) and function.name not in DIRECTLY
        for node in ast.walk(function)
        if isinstance(node, ast.Return)
        and not any((name, line) in reached for line in range(node.lineno, (node.end_lineno or node.lineno) + 1))
    ]
    assert [] == left


DIRECTLY = ("candidate", "_as_it_was", "acts", "rest")
"""Have ways out that no step takes: tested by themselves, or taken when steps and facts are listed."""


@each_kind
def test_every_step_is_in_a_list_and_every_fact_too(kind: Kind) -> None:
    """A function that gives a Verdict, or a Fact, of an observation alone is one."""
    listed = {step.__name__ for steps, _ in kind.tables for step in steps} | {fact.__name__ for fact in kind.facts}
    public = {
        node.name
        for module in kind.modules
        for node in tree(module).body
        if isinstance(node, ast.FunctionDef)
        and isinstance(node.returns, ast.Name)
        and node.returns.id in ("Verdict", "Fact")
        and len(node.args.args) == 1
        and not node.args.kwonlyargs
    }

    assert public <= listed


@each_kind
def test_an_observation_can_be_saved_and_decides_the_same_again(kind: Kind) -> None:
    for default, rows in kind.tables:
        for name, row in rows.items():
            steps = row.steps or default
            again = msgspec.json.decode(msgspec.json.encode(row.seen), type=type(row.seen))

            assert decision.decide(row.seen, steps=steps) == decision.decide(again, steps=steps), name


SECRETS = {"admin_pwd": "Very-Secret-1", "secret_key": "Very-Secret-2"}


def test_no_decision_on_a_cache_holds_what_is_secret() -> None:
    """Even if the observation had it, which it has not: see `CacheKind.observe`."""
    for steps, rows in KINDS["XsldCache"].tables:
        for name, row in rows.items():
            spec = msgspec.structs.replace(row.seen.spec, credentials_secret_ref=None, **SECRETS)
            wanted = msgspec.structs.replace(row.seen.wanted, spec=spec)
            it = msgspec.structs.replace(row.seen, spec=spec, wanted=wanted)
            made = decision.decide(it, steps=row.steps or steps, facts=facts.FACTS, report=facts.report)
            text = msgspec.json.encode(made).decode()

            assert not [secret for secret in SECRETS.values() if secret in text], name


def test_an_observation_holds_no_copy_of_the_spec_that_kubectl_kept() -> None:
    kept = {meta.LAST_APPLIED: '{"spec":{"adminPwd":"Very-Secret-1"}}', "mine": "x"}

    assert {"mine": "x"} == meta.ObjectMeta(annotations=kept).without_last_applied().annotations


def test_every_wait_has_an_end_and_every_block_a_way_out() -> None:
    for each in KINDS.values():
        for made in decisions(each):
            for taken in made.steps:
                match taken.verdict:
                    case decision.Wait(message=message, on=on, within=within):
                        assert message, taken.name
                        assert on, taken.name
                        assert within > 0, taken.name
                    case decision.Blocked(message=message, fix=fix):
                        assert message, taken.name
                        assert fix, taken.name
                    case decision.Act(message=message, actions=actions):
                        assert message, taken.name
                        assert all(action.why for action in actions), taken.name
