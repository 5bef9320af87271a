"""Delays, back-off, rests, the backlog, and how workers wait and are woken. In any order: `test_queue_random`."""

from __future__ import annotations

import asyncio
import random

import pytest

from moorage.runtime.workqueue import queue


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Flat(random.Random):
    """No jitter."""

    def uniform(self, a: float, b: float) -> float:
        return (a + b) / 2


async def test_workers_get_each_key_once_and_wait_for_more() -> None:
    keys: queue.WorkQueue[int] = queue.WorkQueue()
    held: set[int] = set()
    got: list[int] = []

    async def worker() -> None:
        while True:
            key = await keys.get()
            assert key not in held
            held.add(key)
            await asyncio.sleep(0)
            got.append(key)
            held.discard(key)
            keys.done(key)

    workers = [asyncio.create_task(worker()) for _ in range(5)]
    for key in range(100):
        keys.add(key)
        if key % 7 == 0:
            await asyncio.sleep(0)
    keys.add_after(100, 0.01)
    async with asyncio.timeout(30):
        while len(got) < 101:
            await asyncio.sleep(0.001)
    keys.close()
    ended = await asyncio.gather(*workers, return_exceptions=True)
    assert sorted(got) == list(range(101))
    assert all(isinstance(each, queue.Closed) for each in ended)


async def test_a_cancelled_worker_hands_its_wake_up_on() -> None:
    keys: queue.WorkQueue[str] = queue.WorkQueue()
    first, second = (asyncio.create_task(keys.get()) for _ in range(2))
    await asyncio.sleep(0)
    keys.add("a")  # wakes the first
    first.cancel()
    async with asyncio.timeout(30):
        assert await second == "a"
    assert first.cancelled() or await asyncio.gather(first, return_exceptions=True)


async def test_a_cancelled_worker_ends_though_a_key_comes_at_the_same_time() -> None:
    keys: queue.WorkQueue[str] = queue.WorkQueue()
    keys.add_after("later", 60)
    worker = asyncio.create_task(keys.get())
    await asyncio.sleep(0)
    keys.add("a")
    worker.cancel()
    with pytest.raises(asyncio.CancelledError):
        await worker
    assert keys.take() == ("a",)


async def test_an_earlier_delay_moves_the_alarm_forward() -> None:
    keys: queue.WorkQueue[str] = queue.WorkQueue()
    waiting = asyncio.create_task(keys.get())
    await asyncio.sleep(0)
    keys.add_after("late", 60)
    keys.add_after("soon", 0.01)
    async with asyncio.timeout(30):
        assert await waiting == "soon"


def test_alarms_that_are_due_at_once_end_no_worker_on_uvloop() -> None:
    """Its handle of such a call knows no time. A worker that ended over it took the next wake-up along."""
    uvloop = pytest.importorskip("uvloop")

    async def work() -> None:
        keys: queue.WorkQueue[str] = queue.WorkQueue()
        workers = [asyncio.create_task(keys.get()) for _ in range(3)]
        await asyncio.sleep(0)
        for key in "abc":
            keys.add_after(key, 0.0001)
        async with asyncio.timeout(30):
            assert {"a", "b", "c"} == set(await asyncio.gather(*workers))

    uvloop.run(work())


def test_news_goes_before_the_backlog_which_does_not_starve() -> None:
    keys: queue.WorkQueue[int] = queue.WorkQueue()
    for key in range(100):
        keys.add(key, backlog=True)
    keys.add(50)  # moves up
    for key in range(1000, 1015):
        keys.add(key)
    taken = [keys.take()[0] for _ in range(18)]
    assert taken[0] == 50
    assert [key for key in taken if key < 50] == [0, 1], "every eighth is from the backlog"
    rest = []
    while found := keys.take():
        rest.append(found[0])
    assert sorted(taken + rest) == [*range(100), *range(1000, 1015)]


def test_back_off_doubles_to_its_cap_and_starts_again_after_a_success() -> None:
    keys: queue.WorkQueue[str] = queue.WorkQueue(base=1, cap=10, rng=random.Random(0))
    delays = [keys.retry("a") for _ in range(6)]
    assert all(0.8 * want <= got <= 1.2 * want for want, got in zip((1, 2, 4, 8, 10, 10), delays, strict=True))
    keys.forget("a")
    assert keys.retry("a") <= 1.2


def test_a_resting_key_is_kept_from_news_but_not_from_its_owner() -> None:
    clock = Clock()
    keys: queue.WorkQueue[str] = queue.WorkQueue(clock=clock, base=8, rng=random.Random(0))
    keys.rest("a")
    keys.add("a")
    assert keys.take() == ()
    keys.wake("a")
    assert keys.take() == ("a",)
    keys.done("a")
    delay = keys.rest("a")
    clock.now += delay + 0.001
    assert keys.take() == ("a",)


def test_closing_drops_what_was_not_begun() -> None:
    keys: queue.WorkQueue[str] = queue.WorkQueue()
    keys.add("a")
    keys.add_after("b", 5)
    assert keys.take() == ("a",)
    keys.add("a")
    keys.close()
    keys.done("a")
    keys.add("c")
    keys.retry("d")
    assert (len(keys), keys.delayed, keys.working) == (0, 0, 0)


def test_the_times_are_those_that_the_documentation_names() -> None:
    clock = Clock()
    keys: queue.WorkQueue[str] = queue.WorkQueue(clock=clock, rng=Flat())
    delays = [keys.retry("a") for _ in range(30)]
    assert delays[:3] == [0.5, 1.0, 2.0]
    assert delays[-1] == 300
    for _ in range(30):
        keys.rest("b")
    assert keys._resting["b"] == 100 + 30
    assert (queue.RETRY_RATE, queue.RETRY_BURST, queue.BACKLOG_TURN) == (50, 200, 8)


def test_a_failure_doubles_no_further_than_a_number_can_hold() -> None:
    keys: queue.WorkQueue[str] = queue.WorkQueue(base=1e-9, rng=Flat())
    for _ in range(2000):
        delay = keys.retry("a")
    assert delay == 1e-9 * 2**20


def test_what_is_due_at_the_same_time_comes_in_the_order_of_the_wishes_whatever_keys_are() -> None:
    clock = Clock()
    keys: queue.WorkQueue[object] = queue.WorkQueue(clock=clock)
    wished = [object() for _ in range(5)]
    for key in wished:
        keys.add_after(key, 3)
    clock.now += 3
    assert [keys.take()[0] for _ in range(5)] == wished


def test_no_delay_means_now() -> None:
    keys: queue.WorkQueue[str] = queue.WorkQueue()
    keys.add_after("a", 0)
    keys.add_after("b", -1, backlog=True)
    assert (len(keys), keys.delayed) == (2, 0)


def test_of_two_wishes_the_earlier_counts_in_either_order() -> None:
    for first, second in ((5, 9), (9, 5), (5, 5)):
        clock = Clock()
        keys: queue.WorkQueue[str] = queue.WorkQueue(clock=clock)
        keys.add_after("a", first)
        keys.add_after("a", second)
        assert keys.delayed == 1
        clock.now += 4.999
        assert keys.take() == ()
        clock.now += 0.001
        assert keys.take() == ("a",)
        keys.done("a")
        clock.now += 100
        assert (keys.take(), keys.delayed) == ((), 0)


def test_a_rest_is_over_at_its_end_and_news_until_then_comes_exactly_then() -> None:
    clock = Clock()
    keys: queue.WorkQueue[str] = queue.WorkQueue(clock=clock, base=8, rng=Flat())
    assert keys.rest("a") == 8
    keys.add("a")
    clock.now += 7.999
    keys.add("a")
    assert (keys.take(), keys.delayed, len(keys)) == ((), 1, 0)
    clock.now += 0.001
    keys.add("a")
    assert (len(keys), keys._resting) == (1, {})


def test_a_long_back_off_is_kept_from_news_for_a_rest_only() -> None:
    clock = Clock()
    keys: queue.WorkQueue[str] = queue.WorkQueue(clock=clock, base=100, rng=Flat())
    assert keys.rest("a") == 100
    clock.now += queue.REST
    keys.add("a")
    assert keys.take() == ("a",)


def test_news_within_a_long_back_off_comes_at_the_end_of_the_rest() -> None:
    """Not when the key would have come by itself."""
    clock = Clock()
    keys: queue.WorkQueue[str] = queue.WorkQueue(clock=clock, base=100, rng=Flat())
    keys.rest("a")
    clock.now += 1
    keys.add("a")
    clock.now += queue.REST - 1.001
    assert keys.take() == ()
    clock.now += 0.002
    assert keys.take() == ("a",)


async def test_a_closed_queue_leaves_no_alarm_behind_and_takes_no_wish() -> None:
    keys: queue.WorkQueue[str] = queue.WorkQueue()
    waiting = asyncio.create_task(keys.get())
    await asyncio.sleep(0)
    keys.add_after("a", 60)
    alarm = keys._timer
    assert alarm is not None
    keys.close()
    with pytest.raises(queue.Closed):
        await waiting
    assert alarm.cancelled()
    keys.add_after("b", 1)
    keys.rest("c")
    assert (keys.delayed, len(keys)) == (0, 0)


async def test_an_alarm_that_is_moved_rings_once() -> None:
    keys: queue.WorkQueue[str] = queue.WorkQueue()
    waiting = asyncio.create_task(keys.get())
    await asyncio.sleep(0)
    keys.add_after("late", 60)
    late = keys._timer
    keys.add_after("later", 70)
    assert keys._timer is late
    keys.add_after("soon", 30)
    soon = keys._timer
    assert late is not None
    assert soon is not None
    assert (late.cancelled(), soon.cancelled()) == (True, False)
    keys.add("now")
    assert await waiting == "now"
    keys.close()


async def test_as_many_workers_are_woken_as_there_are_keys() -> None:
    keys: queue.WorkQueue[int] = queue.WorkQueue()
    workers = [asyncio.create_task(keys.get()) for _ in range(3)]
    await asyncio.sleep(0)
    keys.add_after(1, 0.001)
    keys.add_after(2, 0.001)
    keys.add_after(3, 0.001)
    async with asyncio.timeout(30):
        assert {1, 2, 3} == set(await asyncio.gather(*workers))
    assert keys.working == 3


def test_a_resting_key_comes_by_itself_after_its_whole_back_off_and_gives_way_to_others() -> None:
    clock = Clock()
    keys: queue.WorkQueue[str] = queue.WorkQueue(clock=clock, base=100, rng=Flat())
    keys.rest("a")
    clock.now += 99.999
    assert keys.take() == ()
    clock.now += 0.001
    keys.add("older", backlog=True)
    keys._promote()
    keys.add("news")
    assert [keys.take()[0] for _ in range(3)] == ["news", "older", "a"]


def test_failures_are_counted_until_a_success() -> None:
    keys: queue.WorkQueue[str] = queue.WorkQueue()
    counts = [keys.failures("a")]
    for fail in (keys.retry, keys.rest):
        fail("a")
        counts.append(keys.failures("a"))
    keys.forget("a")
    assert [*counts, keys.failures("a")] == [0, 1, 2, 0]


async def test_a_worker_that_waits_gets_what_another_has_made_room_for() -> None:
    keys: queue.WorkQueue[str] = queue.WorkQueue(flow=lambda _: ("kind", ""), limits={"kind": 1})
    keys.add("a")
    keys.add("b")
    assert keys.take() == ("a",)
    waiting = asyncio.create_task(keys.get())
    await asyncio.sleep(0)
    keys.done("a")
    async with asyncio.timeout(30):
        assert await waiting == "b"
