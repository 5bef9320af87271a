"""Every reason says what comes next, and none promises what nobody brings."""

from __future__ import annotations

import ast
import inspect
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import moorage
from moorage import operators
from moorage.children import pod_trouble
from moorage.children import reasons as object_reasons
from moorage.helm.runs import failures
from moorage.runtime import decision, reasons
from moorage.runtime.decision import Reason

ENUMS: dict[str, type[Reason]] = {
    "runtime": reasons.Reason,
    "failures": failures.FailureKind,
    "pods": object_reasons.PodReason,
    "objects": object_reasons.ObjectReason,
} | {
    f"{system.name}/{enum.__module__}.{enum.__name__}": enum
    for system in operators.SYSTEMS.values()
    for enum in system.reasons
}
ALL = [pytest.param(reason, id=f"{name}/{reason}") for name, enum in ENUMS.items() for reason in enum]


@pytest.mark.parametrize("reason", ALL)
def test_a_reason_says_what_it_means_and_what_comes_next(reason: Reason) -> None:
    """What it means is a sentence; what comes next is a clause, as it follows a message and a colon."""
    assert reason.help.endswith(".")
    assert reason.next
    assert not reason.next.endswith(".")


@pytest.mark.parametrize("reason", ALL)
def test_nobody_is_told_to_wait(reason: Reason) -> None:
    """Who waits for what, or who must act, is said in its place."""
    assert "wait;" not in reason.next
    assert not reason.next.startswith(("wait", "it goes on by itself"))


def test_every_enum_of_reasons_is_looked_at() -> None:
    """And so is on the page."""
    assert set(ENUMS.values()) == {each for each in Reason.__subclasses__() if each.__module__.startswith("moorage.")}


def test_each_way_in_which_pods_fail_has_its_reason() -> None:
    """In the order of what most needs someone's doing."""
    assert list(pod_trouble._RANK) == [str(reason) for reason in object_reasons.PodReason]


def test_a_word_is_its_reason_again_and_another_enums_stays_what_it_is() -> None:
    """As when it comes back from a status, or from whom the same word means something else."""
    assert reasons.Reason.of("Forbidden") is reasons.Reason.FORBIDDEN
    assert reasons.Reason.of(failures.FailureKind.FORBIDDEN) is failures.FailureKind.FORBIDDEN
    assert "Unheard" == reasons.Reason.of("Unheard")
    assert object_reasons.of_object("JobFailed") is object_reasons.ObjectReason.JOB_FAILED
    assert object_reasons.of_object("ImagePull") is object_reasons.PodReason.IMAGE_PULL


def _modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(moorage.__path__, "moorage."):
        if "__main__" not in found.name:
            yield __import__(found.name, fromlist=["_"])


def _given(*classes: type[Any]) -> Iterator[tuple[str, ast.expr]]:
    """Where verdicts and outcomes of these classes are made, and what is given as their reason."""
    names = {each.__name__ for each in classes}
    for module in _modules():
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in names:
                yield f"{module.__name__}:{node.lineno}", node.args[0]


def _handed_in(parameter: str) -> Iterator[ast.expr]:
    """What shared steps are given under that name."""
    for module in _modules():
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Call):
                yield from (each.value for each in node.keywords if each.arg == parameter)


def test_no_verdict_bears_a_bare_word() -> None:
    """It is a member, which knows what comes next."""
    made = _given(decision.Wait, decision.Blocked, decision.Act, decision.Refused)

    assert [] == [where for where, reason in made if isinstance(reason, ast.Constant)]


def test_what_is_blocked_awaits_nothing() -> None:
    """Only a person can go on there: a reason that promises something would be a Wait's."""
    given = (*(reason for _, reason in _given(decision.Blocked)), *_handed_in("blocked"))
    blocks = {reason.attr for reason in given if isinstance(reason, ast.Attribute)}
    found = {reason.name: reason for enum in ENUMS.values() for reason in enum if reason.name in blocks}

    assert len(found) > 10
    assert [] == [name for name, reason in found.items() if "awaited" in reason.next]
