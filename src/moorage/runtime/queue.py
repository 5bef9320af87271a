"""A deduplicating work queue of keys, with delays and per-key back-off.

A key is never handed to two workers at once: added again while it is worked on, it comes back after `done`. Lives on
one event loop; holds nothing that a restart needs (law 1).
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


class Closed(Exception):
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
        self._ready: collections.deque[K] = collections.deque()
        self._queued: set[K] = set()
        self._working: set[K] = set()
        self._dirty: set[K] = set()
        self._delayed: list[tuple[float, int, K]] = []
        self._due: dict[K, float] = {}
        self._serial = 0
        self._failures: dict[K, int] = {}
        self._closed = False
        self._wake = asyncio.Event()

    def __len__(self) -> int:
        return len(self._ready)

    @property
    def delayed(self) -> int:
        """Keys that wait for their time."""
        return len(self._due)

    @property
    def working(self) -> int:
        """Keys that workers hold now."""
        return len(self._working)

    def add(self, key: K) -> None:
        """Have `key` looked at as soon as a worker is free."""
        if self._closed or key in self._queued:
            return
        if key in self._working:
            self._dirty.add(key)
            return
        self._queued.add(key)
        self._ready.append(key)
        self._wake.set()

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
        self._wake.set()

    def retry(self, key: K) -> float:
        """Have `key` looked at after its back-off, which doubles with each failure; returns the delay in seconds."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay = float(min(self._cap, self._base * 2 ** min(failures, 20))) * self._rng.uniform(0.8, 1.2)
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """A success: the next failure starts from the shortest back-off again."""
        self._failures.pop(key, None)

    async def get(self) -> K:
        """The next key. The caller owes a `done`. Raises Closed when the queue is closed and empty."""
        while True:
            self._promote()
            if self._ready:
                key = self._ready.popleft()
                self._queued.discard(key)
                self._working.add(key)
                return key
            if self._closed:
                raise Closed
            self._wake.clear()
            timeout = self._delayed[0][0] - self._clock() if self._delayed else None
            try:
                await asyncio.wait_for(self._wake.wait(), timeout)
            except TimeoutError:
                continue

    def done(self, key: K) -> None:
        """The worker is finished with `key`; changes that came meanwhile bring it back at once."""
        self._working.discard(key)
        if key in self._dirty:
            self._dirty.discard(key)
            self.add(key)

    def close(self) -> None:
        """Take no more keys and drop those not begun; workers that wait get Closed."""
        self._closed = True
        self._ready.clear()
        self._queued.clear()
        self._dirty.clear()
        self._delayed.clear()
        self._due.clear()
        self._wake.set()

    def _promote(self) -> None:
        now = self._clock()
        while self._delayed and self._delayed[0][0] <= now:
            due, _, key = heapq.heappop(self._delayed)
            if self._due.get(key) == due:
                del self._due[key]
                self.add(key)
