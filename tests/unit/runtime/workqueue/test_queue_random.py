"""No key is lost, none is with two workers, delays and rests hold: whatever the order of things."""

from __future__ import annotations

import random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from moorage.runtime.workqueue import fair_turns, queue
from tests.unit.runtime.workqueue.test_queue import Clock

KEYS = st.sampled_from("abc")
SECONDS = st.floats(0, 20)


def held(turns: fair_turns.Turns[str]) -> set[str]:
    """The keys that wait for their turn."""
    return {key for spaces in turns._kinds.values() for keys in spaces.values() for key in keys}


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

    @invariant()
    def what_hangs_together_does(self) -> None:
        """As the module's docstring has it."""
        q = self.q
        turns = [held(q._news), held(q._backlog)]
        assert q._queued.keys() == q._since.keys() == turns[0] | turns[1]
        assert turns == [{key for key, backlog in q._queued.items() if backlog is is_it} for is_it in (False, True)]
        assert not q._queued.keys() & q._working.keys()
        assert q._dirty.keys() | q._late <= q._working.keys()
        noted = {(at, key) for at, _, key in q._delayed}
        assert all(key in q._held or (wish.at, key) in noted for key, wish in q._wishes.items())

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
