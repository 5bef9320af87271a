"""A deduplicating work queue of keys, with delays, per-key back-off and a backlog.

A key is never handed to two workers at once: added again while it is worked on, it comes back after `done`. Keys of the
backlog (the first list after a start) give way to news, but never starve. Lives on one event loop; holds nothing that a
restart needs (law 1).
"""

from __future__ import annotations

import asyncio
import collections
import heapq
import random
import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

BACKLOG_TURN = 8
"""Every so many keys one is taken from the backlog, however much news there is."""

REST = 30.0
"""Seconds for which a resting key is kept from news at most."""


class Closed(Exception):  # noqa: N818 - a state, as asyncio's QueueEmpty
    """The queue takes no more work, and none is left to hand out."""


class WorkQueue(Generic[K]):
    """Keys to look at: now, or after a delay. Failing keys back off from `base` to `cap` seconds, with jitter."""

    def __init__(
        self,
        *,
        base: float = 0.5,
        cap: float = 300.0,
        clock: Callable[[], float] = time.monotonic,
        rng: random.Random | None = None,
    ) -> None:
        self._base, self._cap, self._clock = base, cap, clock
        self._rng = rng or random.Random()  # noqa: S311 - jitter, not a secret
        self._news: collections.deque[K] = collections.deque()
        self._backlog: collections.deque[K] = collections.deque()
        self._queued: dict[K, bool] = {}  # True: in the backlog
        self._turn = 0
        self._working: set[K] = set()
        self._dirty: set[K] = set()
        self._delayed: list[tuple[float, int, K]] = []
        self._due: dict[K, float] = {}
        self._serial = 0
        self._failures: dict[K, int] = {}
        self._resting: dict[K, float] = {}
        self._closed = False
        self._waiters: collections.deque[asyncio.Future[None]] = collections.deque()
        self._timer: asyncio.Handle | None = None  # uvloop's knows no time where it is due at once
        self._rings_at = 0.0  # on the loop's clock

    def __len__(self) -> int:
        return len(self._queued)

    @property
    def delayed(self) -> int:
        """Keys that wait for their time."""
        return len(self._due)

    @property
    def working(self) -> int:
        """Keys that workers hold now."""
        return len(self._working)

    # --- putting in ----------------------------------------------------------------------------------------------

    def add(self, key: K, *, backlog: bool = False) -> None:
        """Have `key` looked at as soon as a worker is free; a resting key when its rest is over."""
        if self._closed:
            return
        if (left := self._resting.get(key, 0.0) - self._clock()) > 0:
            self.add_after(key, left)
            return
        self._resting.pop(key, None)
        if key in self._working:
            self._dirty.add(key)
        elif self._queued.get(key, True) and not (backlog and key in self._queued):
            self._queued[key] = backlog  # a key that moves up leaves its old place behind, to be skipped
            (self._backlog if backlog else self._news).append(key)
            self._wake_one()

    def wake(self, key: K) -> None:
        """Have `key` looked at now, even if it rests: its owner has changed what is wanted."""
        self._resting.pop(key, None)
        self.add(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Have `key` looked at after `seconds`; of several such wishes the earliest counts."""
        if seconds <= 0:
            self.add(key)
            return
        due = self._clock() + seconds
        if self._closed or self._due.get(key, due + 1) <= due:
            return
        self._due[key] = due
        self._serial += 1
        heapq.heappush(self._delayed, (due, self._serial, key))
        self._arm()

    def retry(self, key: K) -> float:
        """Have `key` looked at after its back-off, which doubles with each failure; returns the delay in seconds."""
        delay = self._back_off(key)
        self.add_after(key, delay)
        return delay

    def rest(self, key: K) -> float:
        """As `retry`, but news does not bring the key back sooner (for `REST` seconds at most); only `wake` does.

        For what news itself might drive in circles, such as another controller that undoes what was done.
        """
        delay = self._back_off(key)
        self._resting[key] = self._clock() + min(delay, REST)
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """A success: the next failure starts from the shortest back-off again."""
        self._failures.pop(key, None)

    def _back_off(self, key: K) -> float:
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        return float(min(self._cap, self._base * 2 ** min(failures, 20))) * self._rng.uniform(0.8, 1.2)

    # --- taking out ----------------------------------------------------------------------------------------------

    async def get(self) -> K:
        """The next key. The caller owes a `done`. Raises Closed when the queue is closed and empty."""
        while True:
            for key in self.take():
                return key
            if self._closed:
                raise Closed
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            self._arm()
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
                else:
                    self._wake_one()  # it was this worker's to take: let another
                raise

    def take(self) -> tuple[K, ...]:
        """The next key if there is one now, else nothing. The caller owes a `done`."""
        self._promote()
        self._turn += 1
        sources = [(self._news, False), (self._backlog, True)]
        if self._turn % BACKLOG_TURN == 0:
            sources.reverse()
        for source, is_backlog in sources:
            while source:
                key = source.popleft()
                if self._queued.get(key) is is_backlog:
                    del self._queued[key]
                    self._working.add(key)
                    return (key,)
        return ()

    def done(self, key: K) -> None:
        """The worker is finished with `key`; changes that came meanwhile bring it back at once."""
        self._working.discard(key)
        if key in self._dirty:
            self._dirty.discard(key)
            self.add(key)

    def close(self) -> None:
        """Take no more keys and drop those not begun; workers that wait get Closed."""
        self._closed = True
        if self._timer:
            self._timer.cancel()
        for held in (self._news, self._backlog, self._queued, self._dirty, self._delayed, self._due, self._resting):
            held.clear()
        while self._waiters:
            self._wake_one()

    # --- waking workers ------------------------------------------------------------------------------------------

    def _wake_one(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _arm(self) -> None:
        """While a worker waits, a timer stands at the next delayed key."""
        if not self._waiters or not self._delayed:
            return
        loop, due = asyncio.get_running_loop(), self._delayed[0][0]
        at = loop.time() + max(0.0, due - self._clock())
        if self._timer is None or at < self._rings_at:
            if self._timer:
                self._timer.cancel()
            self._timer, self._rings_at = loop.call_at(at, self._ring), at

    def _ring(self) -> None:
        self._timer = None
        self._promote()
        self._arm()

    def _promote(self) -> None:
        now = self._clock()
        while self._delayed and self._delayed[0][0] <= now:
            due, _, key = heapq.heappop(self._delayed)
            if self._due.get(key) == due:
                del self._due[key]
                self.add(key)
