"""A saved observation is a test case: read back, it is equal and leads to the same decision."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest

from moorage.api import meta
from moorage.operators.collector import control
from moorage.runtime import decision, freshness, tasks
from tests.unit.collector import test_control as collectors
from tests.unit.runtime.gadgets import Gadget, Seen


def _replayed(seen: Any, steps: Any, facts: Any = ()) -> None:
    text = msgspec.json.encode(seen)
    back = msgspec.json.decode(text, type=type(seen))
    assert back == seen
    made, again = (decision.decide(it, steps=steps, facts=facts) for it in (seen, back))
    assert again == made
    saved = msgspec.json.decode(msgspec.json.encode(made), type=decision.Decision)
    assert msgspec.json.encode(saved) == msgspec.json.encode(made)
    assert saved.standing is None or type(saved.standing.verdict) is type(made.standing.verdict)  # type: ignore[union-attr]


COLLECTORS: dict[str, dict[str, Any]] = {
    "settled": {},
    "new": {"meta": meta.ObjectMeta(name="one", namespace="default", uid="u")},
    "nothing looked at": {"tenant": freshness.not_yet("namespaces"), "binding": freshness.not_yet("rights")},
    "no namespace": {"tenant": freshness.Fresh(None), "binding": freshness.Fresh(None)},
    "not admitted": {"tenant": control.TenantSeen("u", False, ())},
    "bad configuration": {"configuration": freshness.Fresh("no YAML")},
}


@pytest.mark.parametrize("name", COLLECTORS)
def test_a_collector(name: str) -> None:
    for steps in (control.STEPS, control.DELETION_STEPS):
        _replayed(collectors.seen(**COLLECTORS[name]), steps, control.FACTS)


def test_a_collector_that_sees_old_news() -> None:
    stale = freshness.Stale(collectors.TENANT, 5.0, "no route")
    _replayed(msgspec.structs.replace(collectors.seen(), tenant=stale), control.STEPS, control.FACTS)


TASKS: list[tasks.TaskState] = [
    tasks.Running("release.upgrade", 5.0),
    tasks.Ended("release.upgrade", "a1", 6.0, decision.Refused("Timeout", "too slow")),
    tasks.Ended("release.upgrade", "a1", 6.0, decision.Unknown("lost")),
    tasks.Ended("release.upgrade", "a1", 6.0, decision.Ok(7)),
    None,
]


@pytest.mark.parametrize("task", TASKS)
def test_a_collector_whose_helm_runs_or_ran(task: tasks.TaskState) -> None:
    seen = collectors.seen()
    release = msgspec.structs.replace(seen.release, task=task)
    _replayed(msgspec.structs.replace(seen, release=release), control.STEPS, control.FACTS)


def test_every_quality_of_a_fact() -> None:
    class It(msgspec.Struct, frozen=True):
        facts: tuple[freshness.Observed[int | None], ...]

    it = It((freshness.Fresh(1, 2.0), freshness.Fresh(None), freshness.Stale(3, 1.0, "why"), freshness.not_yet("x")))
    assert msgspec.json.decode(msgspec.json.encode(it), type=It) == it


def test_the_reference_kind() -> None:
    seen = Seen(time.time(), Gadget(meta.ObjectMeta(name="one", labels={"a": "b"}, finalizers=("x/y",))))
    _replayed(seen, (lambda _: decision.Wait("W", "w", on="x", within=5.0),))
