"""What workers survive: whatever a pass does to them, all other keys go on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from moorage.runtime import kind
from moorage.runtime.workqueue import queue, workers
from tests.unit.runtime.fake_api import until


def _key(name: str) -> kind.Key:
    return ("Gadget", "ns", name)


class Shift:
    """Workers over a queue, whose passes are what a test makes of them. `now` is their clock."""

    def __init__(self, reconcile: Callable[[kind.Key], Awaitable[None]], count: int) -> None:
        self.now = 0.0
        self.keys: queue.WorkQueue[kind.Key] = queue.WorkQueue()
        self.done: list[str] = []
        self._pass = reconcile
        self.crew = workers.Workers(self.keys, self._reconcile, lambda _: 10.0, count=count, clock=lambda: self.now)

    async def _reconcile(self, key: kind.Key) -> None:
        await self._pass(key)
        self.done.append(key[2])


@contextlib.asynccontextmanager
async def shift(reconcile: Callable[[kind.Key], Awaitable[None]], *, count: int = 1) -> AsyncIterator[Shift]:
    it = Shift(reconcile, count)
    it.crew.start()
    try:
        yield it
    finally:
        for task in it.crew.tasks:
            task.cancel()
        await asyncio.gather(*it.crew.tasks, return_exceptions=True)


async def test_a_failure_and_a_cancellation_from_within_end_no_worker() -> None:
    async def reconcile(key: kind.Key) -> None:
        match key[2]:
            case "fails":
                raise RuntimeError("no")
            case "cancelled":
                raise asyncio.CancelledError

    async with shift(reconcile) as it:
        for name in ("fails", "cancelled", "fine"):
            it.keys.add(_key(name))
        await until(lambda: it.done)
        assert (["fine"], 0, False) == (it.done, it.keys.working, it.crew.tasks[0].done())


async def test_a_pass_that_does_not_end_is_told_and_replaced_once() -> None:
    go_on = asyncio.Event()

    async def reconcile(key: kind.Key) -> None:
        if key[2] == "hangs":
            await go_on.wait()

    async with shift(reconcile) as it:
        it.keys.add(_key("hangs"))
        it.keys.add(_key("fine"))
        await until(lambda: it.keys.working)
        it.now += 10.0 + workers.GRACE
        it.crew.look_after()
        assert ([], []) == (it.crew.stuck, it.done), "it has all of its time"
        it.now += 0.001
        for _ in range(3):
            it.crew.look_after()
        assert ["the pass over Gadget ns hangs does not end"] == it.crew.stuck
        await until(lambda: it.done)
        it.keys.add(_key("hangs"))
        assert (2, ["fine"]) == (len(it.crew.tasks), it.done), "nobody else works on what is stuck"

        go_on.set()
        await until(lambda: it.done.count("hangs") == 2)
        it.crew.look_after()
        assert [] == it.crew.stuck


async def test_workers_end_with_the_queue() -> None:
    async def nothing(_: kind.Key) -> None:
        pass

    async with shift(nothing, count=3) as it:
        it.keys.close()
        assert [None] * 3 == await asyncio.gather(*it.crew.tasks)
