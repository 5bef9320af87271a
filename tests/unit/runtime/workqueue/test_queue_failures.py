"""Mass failures are no storm, and a server that sheds load is left alone: in virtual time."""

from __future__ import annotations

import asyncio
import random

import pytest

from moorage.kube import errors
from moorage.runtime.workqueue import pressure, queue, token_bucket
from tests.unit.runtime.workqueue.test_queue import Clock

N = 2_000


class Flat(random.Random):
    """No jitter."""

    def uniform(self, a: float, b: float) -> float:
        return a


class Looked(Clock):
    """Counts how often one looks at it."""

    looks = 0

    def __call__(self) -> float:
        self.looks += 1
        return super().__call__()


def _work(keys: queue.WorkQueue[int], clock: Clock, seconds: float, *, fail: bool) -> list[float]:
    """All that is handed out within so many seconds, by steps of 10 ms; when each key was."""
    tries = []
    end = clock.now + seconds
    while clock.now < end:
        while taken := keys.take():
            tries.append(clock.now)
            if fail:
                keys.retry(taken[0])
            else:
                keys.forget(taken[0])
            keys.done(taken[0])
        clock.now += 0.01
    return tries


def test_all_keys_that_fail_together_are_tried_at_a_rate() -> None:
    clock = Clock()
    keys: queue.WorkQueue[int] = queue.WorkQueue(clock=clock, base=0.1, rng=random.Random(1))
    for key in range(N):
        keys.add(key)
    tries = _work(keys, clock, 30, fail=True)
    assert N <= len(tries) <= N + queue.RETRY_BURST + 30 * queue.RETRY_RATE + 1
    late = [at for at in tries if at > 110]
    for begin in range(110, 129):
        within = sum(begin <= at < begin + 1 for at in late)
        assert within <= queue.RETRY_RATE + 1, "a second's worth"


def test_when_all_is_well_again_they_are_all_through_soon() -> None:
    """A retry that succeeds does not count, so the rate holds back failures alone."""
    clock = Clock()
    keys: queue.WorkQueue[int] = queue.WorkQueue(clock=clock, base=0.1, cap=1.0, rng=random.Random(1))
    for key in range(N):
        keys.add(key)
    _work(keys, clock, 20, fail=True)
    tries = _work(keys, clock, 5, fail=False)
    assert N == len(tries)
    assert 0 == keys.delayed


def test_what_is_held_back_comes_in_its_order_and_news_is_not_held() -> None:
    clock = Clock()
    keys: queue.WorkQueue[int] = queue.WorkQueue(clock=clock, base=0.1, rng=Flat())
    for key in range(queue.RETRY_BURST + 3):
        keys.retry(key)
    clock.now += 0.081
    ready = [key for _ in range(N) for key in keys.take()]
    assert list(range(queue.RETRY_BURST)) == ready
    keys.add(9_999)
    assert (9_999,) == keys.take()
    clock.now += 1.001 / queue.RETRY_RATE
    assert (queue.RETRY_BURST,) == keys.take()
    assert () == keys.take()


def test_keys_that_rest_are_held_to_the_rate_too() -> None:
    clock = Clock()
    keys: queue.WorkQueue[int] = queue.WorkQueue(clock=clock, base=0.1, rng=Flat())
    for key in range(queue.RETRY_BURST + 3):
        keys.rest(key)
    clock.now += 0.081
    assert list(range(queue.RETRY_BURST)) == [key for _ in range(N) for key in keys.take()]


def test_a_look_that_was_planned_is_no_retry_even_of_a_key_that_fails() -> None:
    clock = Clock()
    keys: queue.WorkQueue[int] = queue.WorkQueue(clock=clock, base=0.1, rng=Flat())
    for key in range(-1, queue.RETRY_BURST + 1):
        keys.retry(key)
    keys.add_after(-1, 0.01)
    clock.now += 0.081
    assert {-1, *range(queue.RETRY_BURST)} == {key for _ in range(N) for key in keys.take()}


def test_a_key_that_has_succeeded_meanwhile_is_not_held_back() -> None:
    clock = Clock()
    keys: queue.WorkQueue[int] = queue.WorkQueue(clock=clock, base=0.1, rng=Flat())
    for key in range(queue.RETRY_BURST + 1):
        keys.retry(key)
    keys.add_after(-1, 0.01)
    keys.retry(-2)
    keys.forget(-2)
    clock.now += 0.1
    ready = [key for _ in range(N) for key in keys.take()]
    assert {-1, -2} <= set(ready)
    assert queue.RETRY_BURST + 2 == len(ready)


def test_the_server_s_own_wish_counts_as_the_least_delay() -> None:
    clock = Clock()
    keys: queue.WorkQueue[str] = queue.WorkQueue(clock=clock, base=0.5, rng=Flat())
    assert 30 == keys.retry("a", at_least=30)
    clock.now += 29.9
    assert () == keys.take()
    clock.now += 0.2
    assert ("a",) == keys.take()
    assert 0.8 == keys.retry("b", at_least=0.1) * 2


async def test_workers_wait_for_what_is_held_back() -> None:
    keys: queue.WorkQueue[int] = queue.WorkQueue(base=0.001)
    for key in range(queue.RETRY_BURST + 2):
        keys.retry(key)
    got = set()
    async with asyncio.timeout(30):
        while len(got) < queue.RETRY_BURST + 2:
            key = await keys.get()
            got.add(key)
            keys.done(key)
    assert set(range(queue.RETRY_BURST + 2)) == got


async def test_a_worker_that_waits_for_the_rate_is_left_alone_until_it_allows_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a mass failure each look at what is due would cost CPU, and find nothing."""
    monkeypatch.setattr(queue, "RETRY_RATE", 0.01)
    monkeypatch.setattr(queue, "RETRY_BURST", 1)
    clock = Looked()
    keys: queue.WorkQueue[int] = queue.WorkQueue(clock=clock, base=0.1, rng=Flat())
    for key in range(2):
        keys.retry(key)
    clock.now += 0.081
    assert [(0,), ()] == [keys.take() for _ in range(2)]
    worker = asyncio.create_task(keys.get())
    await asyncio.sleep(0)
    looks = clock.looks
    for _ in range(50):
        await asyncio.sleep(0)
    assert looks == clock.looks
    clock.now += 100.1
    keys.add(2)
    assert 2 == await worker
    assert (1,) == keys.take()


# --- the bucket --------------------------------------------------------------------------------------------------


def test_a_bucket_fills_to_its_burst_and_no_further() -> None:
    clock = Clock()
    it = token_bucket.Bucket(2.0, 3, clock)
    assert [True, True, True, False] == [it.take() for _ in range(4)]
    assert 0.5 == it.wait()
    clock.now += 0.25
    assert 0.25 == it.wait()
    assert not it.take()
    clock.now += 0.25
    assert 0 == it.wait()
    assert [True, False] == [it.take() for _ in range(2)]
    it.give_back()
    assert it.take()
    clock.now += 100
    it.give_back()
    assert [True, True, True, False] == [it.take() for _ in range(4)]


# --- pressure ----------------------------------------------------------------------------------------------------


def _slack() -> tuple[Clock, pressure.Pressure]:
    clock = Clock()
    return clock, pressure.Pressure(clock, Flat())


def _pause(clock: Clock, it: pressure.Pressure) -> float:
    """Let the pause end; how long it took."""
    begun = clock.now
    assert not it.room(0)
    clock.now = it.changes_at()
    assert it.room(0)
    return clock.now - begun


def test_each_refusal_after_a_pause_doubles_it_and_a_write_that_is_taken_ends_it() -> None:
    clock, it = _slack()
    pauses = []
    for _ in range(8):
        it.refused(0)
        it.refused(0)  # of another key, which was under way
        it.eased()  # a write that was taken meanwhile says nothing yet
        pauses.append(_pause(clock, it))
    assert [1, 2, 4, 8, 16, 32, 60, 60] == pauses
    it.eased()
    assert it.room(100)
    it.refused(0)
    assert 1 == _pause(clock, it)


def test_the_pause_is_as_long_as_the_server_asks_for_up_to_a_bound() -> None:
    clock, it = _slack()
    it.refused(5)
    it.refused(7)
    it.refused(2)
    assert 7 == _pause(clock, it)
    it.refused(10_000)
    assert pressure.LONGEST == _pause(clock, it)


def test_after_a_pause_one_key_is_tried_and_later_all() -> None:
    clock, it = _slack()
    it.refused(0)
    _pause(clock, it)
    assert (True, False) == (it.room(0), it.room(1))
    assert clock.now + pressure.TRIAL == it.changes_at()
    clock.now += pressure.TRIAL - 0.1
    assert not it.room(1)
    clock.now += 0.1
    assert it.room(1)


def test_without_pressure_there_is_room() -> None:
    clock, it = _slack()
    assert it.room(10_000)
    assert it.changes_at() <= clock.now
    it.eased()
    assert it.room(10_000)


@pytest.mark.parametrize(
    ("error", "seconds", "sheds"),
    [
        (errors.TooManyRequests("w", errors.Status(code=429), 3), 3, True),
        (errors.TooManyRequests("w", errors.Status(code=429)), 0, True),
        (errors.ServerError("w", errors.Status(code=503)), 0, True),
        (errors.ServerError("w", errors.Status(code=500), 4), 4, True),
        (errors.ServerError("w", errors.Status(code=500)), 0, False),
        (errors.Conflict("w", errors.Status(code=409)), 0, False),
        (errors.TransportError("w", sent=False), 0, False),
    ],
)
def test_which_errors_are_for_want_of_capacity(error: Exception, seconds: float, sheds: bool) -> None:
    _, it = _slack()
    assert seconds == it.told(error)
    assert sheds is not it.room(0)


def test_nothing_is_handed_out_in_a_pause_and_then_one_key_on_trial() -> None:
    clock = Clock()
    slack = pressure.Pressure(clock, Flat())
    keys: queue.WorkQueue[int] = queue.WorkQueue(clock=clock, pressure=slack)
    for key in range(5):
        keys.add(key)
    assert (0,) == keys.take()
    slack.refused(5)
    keys.done(0)
    assert () == keys.take()
    clock.now += 5
    assert [(1,), (), ()] == [keys.take() for _ in range(3)]
    slack.eased()
    assert [(2,), (3,), (4,)] == [keys.take() for _ in range(3)]


def test_no_worker_keeps_its_key_in_a_pause_and_one_on_trial_may() -> None:
    clock = [0.0]
    slack = pressure.Pressure(lambda: clock[0])
    keys: queue.WorkQueue[str] = queue.WorkQueue(clock=lambda: clock[0], pressure=slack)
    keys.add("a")
    keys.take()
    keys.again("a")
    slack.refused(5.0)
    assert not keys.keep("a")

    clock[0] = 6.5
    assert keys.keep("a")


async def test_workers_sleep_through_a_pause_and_all_go_on_after_a_write() -> None:
    slack = pressure.Pressure(rng=Flat())
    keys: queue.WorkQueue[int] = queue.WorkQueue(pressure=slack)
    slack._strength, slack._until = 1, asyncio.get_running_loop().time() + 0.05
    done: list[int] = []
    together = asyncio.Barrier(3)

    async def worker() -> None:
        while True:
            key = await keys.get()
            if key == 0:
                slack.eased()
            else:
                await together.wait()
            done.append(key)
            keys.done(key)

    workers = [asyncio.create_task(worker()) for _ in range(3)]
    await asyncio.sleep(0)
    for key in range(4):
        keys.add(key)
    async with asyncio.timeout(30):
        while len(done) < 4:
            await asyncio.sleep(0.001)
    keys.close()
    await asyncio.gather(*workers, return_exceptions=True)
    assert [0, 1, 2, 3] == [done[0], *sorted(done[1:])]


async def test_a_trial_that_hangs_holds_the_others_no_longer_than_the_trial_lasts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pressure, "TRIAL", 0.05)
    slack = pressure.Pressure(rng=Flat())
    keys: queue.WorkQueue[int] = queue.WorkQueue(pressure=slack)
    slack._strength, slack._until = 1, asyncio.get_running_loop().time() - 0.01
    keys.add(1)
    keys.add(2)
    async with asyncio.timeout(30):
        assert 1 == await keys.get()
        assert 2 == await keys.get()
