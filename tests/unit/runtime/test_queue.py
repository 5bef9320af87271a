"""No key is lost, none is with two workers, delays and rests hold: whatever the order of things."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from moorage.runtime import queue

KEYS = st.sampled_from("abc")
SECONDS = st.floats(0, 20)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Machine(RuleBasedStateMachine):
    """`owed`: from when on a look at a key is owed; `asked`: all times for which one was asked and not had since."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.q: queue.WorkQueue[str] = queue.WorkQueue(clock=self.clock, rng=random.Random(1))
        self.owed: dict[str, float] = {}
        self.asked: dict[str, list[float]] = {key: [] for key in "abc"}
        self.rests: dict[str, float] = {}
        self.working: set[str] = set()

    def owe(self, key: str, at: float) -> None:
        self.owed[key] = min(self.owed.get(key, at), at)
        self.asked[key].append(at)

    def rested(self, key: str) -> float:
        return max(self.clock.now, self.rests.get(key, 0.0))

    @rule(key=KEYS, backlog=st.booleans())
    def add(self, key: str, backlog: bool) -> None:
        self.q.add(key, backlog=backlog)
        self.owe(key, self.rested(key))

    @rule(key=KEYS)
    def wake(self, key: str) -> None:
        self.q.wake(key)
        self.rests.pop(key, None)
        self.owe(key, self.clock.now)

    @rule(key=KEYS, seconds=SECONDS)
    def add_after(self, key: str, seconds: float) -> None:
        self.q.add_after(key, seconds)
        self.owe(key, max(self.clock.now + seconds, self.rested(key)))

    @rule(key=KEYS)
    def retry(self, key: str) -> None:
        self.owe(key, max(self.clock.now + self.q.retry(key), self.rested(key)))

    @rule(key=KEYS)
    def rest(self, key: str) -> None:
        delay = self.q.rest(key)
        self.rests[key] = self.clock.now + min(delay, queue.REST)
        self.owe(key, self.clock.now + delay)
        self.owed[key] = max(self.owed[key], self.rests[key])

    @rule(key=KEYS)
    def forget(self, key: str) -> None:
        self.q.forget(key)

    @rule(seconds=SECONDS)
    def pass_time(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule()
    def take(self) -> None:
        due = {key for key, at in self.owed.items() if at <= self.clock.now - 1e-6} - self.working
        taken = self.q.take()
        if not taken:
            assert not due, f"{due} lost"
            return
        (key,) = taken
        assert key not in self.working, f"{key} is with two workers"
        now = self.clock.now + 1e-6
        assert any(at <= now for at in self.asked[key]), f"{key} was not asked for yet"
        self.asked[key] = [at for at in self.asked[key] if at > now]
        self.owed.pop(key, None)
        self.working.add(key)

    @rule()
    def done(self) -> None:
        if self.working:
            key = min(self.working)
            self.working.discard(key)
            self.q.done(key)

    @invariant()
    def counts_agree(self) -> None:
        assert self.q.working == len(self.working)
        assert len(self.q) <= 3

    def teardown(self) -> None:
        """Whatever is owed comes in the end."""
        for key in sorted(self.working):
            self.q.done(key)
        self.clock.now += 1000
        came: set[str] = set()
        while taken := self.q.take():
            came.update(taken)
            self.q.done(taken[0])
        assert came >= self.owed.keys(), f"{self.owed.keys() - came} lost"


TestQueue = Machine.TestCase
TestQueue.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


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
    async with asyncio.timeout(5):
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
    async with asyncio.timeout(1):
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
    async with asyncio.timeout(1):
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
        async with asyncio.timeout(5):
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
