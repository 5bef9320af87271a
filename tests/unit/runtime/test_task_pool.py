"""Long tasks: bounded, one per lane, cancelled cleanly, their end never lost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from moorage.runtime import decision, task_pool, tasks
from tests.unit.runtime.fake_api import until


class Work:
    """A task that ends when told to."""

    def __init__(self) -> None:
        self.begun, self.end, self.cleaned = asyncio.Event(), asyncio.Event(), False

    async def __call__(self) -> decision.Outcome:
        self.begun.set()
        try:
            await self.end.wait()
        finally:
            self.cleaned = True
        return decision.Ok("done")


def start(pool: task_pool.Tasks, work: Any, lane: str = "l", **more: Any) -> decision.Outcome:
    return pool.start(lane, "helm", "a1", work, **{"key": ("K", "ns", lane), "deadline": 60.0, **more})


@pytest.fixture
def woken() -> list[Any]:
    return []


@pytest.fixture
def pool(woken: list[Any]) -> task_pool.Tasks:
    return task_pool.Tasks(woken.append, limit=2)


async def test_from_start_to_end(pool: task_pool.Tasks, woken: list[Any]) -> None:
    work = Work()
    assert start(pool, work) == decision.Ok()
    assert isinstance(pool.state("l"), tasks.Running)
    assert isinstance(start(pool, work), decision.Conflict)
    work.end.set()
    await until(lambda: woken)
    ended = pool.state("l")
    assert isinstance(ended, tasks.Ended)
    assert (ended.task, ended.attempt, ended.outcome) == ("helm", "a1", decision.Ok("done"))
    assert pool.running == 0


async def test_the_limit_holds_and_waiting_counts_as_running(pool: task_pool.Tasks) -> None:
    works = [Work() for _ in range(3)]
    for n, work in enumerate(works):
        start(pool, work, f"l{n}", deadline=0.2 if n == 2 else 60.0)
    await works[1].begun.wait()
    assert not works[2].begun.is_set()
    assert isinstance(pool.state("l2"), tasks.Running)
    works[0].end.set()
    await works[2].begun.wait()
    await pool.stop(30)


async def test_the_deadline_stops_it(pool: task_pool.Tasks, woken: list[Any]) -> None:
    work = Work()
    start(pool, work, deadline=0.01)
    await until(lambda: woken)
    ended = pool.state("l")
    assert isinstance(ended, tasks.Ended)
    assert isinstance(ended.outcome, decision.Unknown)
    assert work.cleaned


@pytest.mark.parametrize("error", [ValueError("hunter2"), TimeoutError("hunter2")])
async def test_a_failure_is_unknown_and_keeps_its_words_to_the_log(
    pool: task_pool.Tasks, woken: list[Any], error: Exception
) -> None:
    async def fail() -> decision.Outcome:
        raise error

    start(pool, fail)
    await until(lambda: woken)
    ended = pool.state("l")
    assert isinstance(ended, tasks.Ended)
    assert isinstance(ended.outcome, decision.Unknown)
    assert "hunter2" not in str(ended)
    assert "within" not in str(ended)


async def test_stop_cancels_cleans_up_and_starts_nothing_more(pool: task_pool.Tasks, woken: list[Any]) -> None:
    begun, unbegun = Work(), Work()
    start(pool, begun, "a")
    await begun.begun.wait()
    start(pool, unbegun, "b")  # has not had its first step
    assert await pool.stop(30)
    assert (begun.cleaned, unbegun.begun.is_set()) == (True, False)
    assert (pool.running, len(woken)) == (0, 2)
    assert isinstance(pool.state("b"), tasks.Ended)
    assert isinstance(start(pool, Work(), "c"), decision.Refused)


async def test_stop_does_not_wait_for_ever(pool: task_pool.Tasks) -> None:
    let_go = asyncio.Event()

    async def stubborn() -> decision.Outcome:
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue
        return decision.Ok()

    start(pool, stubborn)
    await asyncio.sleep(0)
    assert not await pool.stop(0.01)
    let_go.set()
    assert await pool.ended(30)


async def test_ended_waits_for_the_end(pool: task_pool.Tasks) -> None:
    work = Work()
    start(pool, work)
    assert not await pool.ended(0.01)
    work.end.set()
    assert await pool.ended(30)


async def test_memory_of_ended_tasks_goes_with_the_object(pool: task_pool.Tasks, woken: list[Any]) -> None:
    ended, running = Work(), Work()
    key = ("K", "ns", "one")
    start(pool, ended, "a", key=key)
    start(pool, running, "b", key=key)
    ended.end.set()
    await until(lambda: woken)
    pool.forget(key)
    assert pool.state("a") is None
    assert isinstance(pool.state("b"), tasks.Running)
    running.end.set()
    await until(lambda: len(woken) == 2)
    pool.forget(key)
    assert pool.state("b") is None
