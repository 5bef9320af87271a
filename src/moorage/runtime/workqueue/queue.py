"""A deduplicating work queue of keys, with delays, per-key back-off, a backlog, and fair turns.

    who goes first     news before the backlog (first lists, resyncs, what fails again and again), which never starves
    fairness           kinds take turns, and namespaces within a kind; see `fair_turns`
    limits             a kind at its own limit holds no worker: its keys wait, others pass by; and the backlog never has
                       all workers, and fewer amid news, as each of its requests is one that news would stand behind
                       at the server
    failures           each key backs off by itself; all together are held to a rate, so that no mass failure is a storm
    pressure           while the API server sheds load nothing is handed out, and then one key on trial; see `pressure`

A key is never handed to two workers at once: added again while it is worked on, it comes back after `done`. Lives on
one event loop; holds nothing that a restart needs (law 1).

Where a key is, and, whatever that is, whether a look at it is wished for later:

    nowhere ─── add ──▶ queued ─── take ──▶ working ─── done ──▶ nowhere, or queued again if it is dirty
    no wish ─── add_after, retry, rest ──▶ a wish ─── due ──▶ added; of retries too many wait in `_held`

So these hang together, between any two calls (`tests/unit/runtime/workqueue` looks after each):

    queued     `_queued` and `_since` have the same keys, each of them once in `_backlog` or else in `_news`, none
               in `_working`
    working    `_dirty` and `_late` are parts of `_working`; `_busy` counts it by kind
    wishes     each of `_wishes` is in the heap `_delayed` under its time, or in `_held`; both may also have entries of
               wishes that are off, which mean nothing
    resting    a key that its worker has put to rest is not queued before its rest ends or it is woken
    waiters    while one waits, nothing could be taken, or the timer stands at the time when something can
"""

from __future__ import annotations

import asyncio
import collections
import heapq
import random
import time
from collections.abc import Callable, Hashable, Mapping
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from moorage.runtime import backoff

from . import fair_turns, token_bucket
from . import pressure as pressures

K = TypeVar("K", bound=Hashable)

Key: TypeAlias = tuple[str, str, str]
"""(kind, namespace, name)."""

BACKLOG_TURN = 8
"""While there is news, every so manyth key is one of the backlog."""

ATTENTION = 1.0
"""Seconds after news for which the backlog gets but a quarter of its limit, as more news is likely to follow."""

REST = 30.0
"""Seconds for which a resting key is kept from news at most."""

RETRY_RATE = 50.0
"""How many keys that keep failing are tried again per second, all together. One that then succeeds does not count."""

RETRY_BURST = 200
"""How many of them may be tried at once."""


KEPT = 64
"""Wishes that are off may stay in the heap, so many and as many as there are others; then it is made anew."""


class Closed(Exception):  # noqa: N818 - a state, as asyncio's QueueEmpty
    """The queue takes no more work, and none is left to hand out."""


class _Wish(NamedTuple):
    """A look at a key that is due later."""

    at: float
    backlog: bool
    retry: bool


class WorkQueue(Generic[K]):
    """Keys to look at: now, or after a delay. Failing keys back off from `base` to `cap` seconds, with jitter.

    `flow` gives the kind and the namespace of a key; `limits` how many keys of a kind may be worked on at once, for
    kinds that have a limit; `backlog_limit` how many of the backlog (0: any number), and a quarter of them amid news.
    """

    def __init__(
        self,
        *,
        base: float = 0.5,
        cap: float = 300.0,
        flow: Callable[[K], fair_turns.Flow] = lambda _: ("", ""),
        limits: Mapping[Hashable, int] | None = None,
        backlog_limit: int = 0,
        pressure: pressures.Pressure | None = None,
        clock: Callable[[], float] = time.monotonic,
        rng: random.Random | None = None,
    ) -> None:
        self._base, self._cap, self._clock = base, cap, clock
        self._flow, self._limits, self._backlog_limit = flow, limits or {}, backlog_limit
        self._rng = rng or random.Random()  # noqa: S311 - jitter, not a secret
        self._pressure = pressure or pressures.Pressure(clock)
        self._news: fair_turns.Turns[K] = fair_turns.Turns(flow)
        self._backlog: fair_turns.Turns[K] = fair_turns.Turns(flow)
        self._queued: dict[K, bool] = {}  # True: in the backlog
        self._since: dict[K, float] = {}
        self._news_in_row = 0
        self._news_at = float("-inf")  # when news last went before the backlog
        self._working: dict[K, float] = {}  # when it was asked for
        self._busy: collections.Counter[Hashable] = collections.Counter()  # of kinds that have a limit
        self._late: set[K] = set()  # those that are worked on and came from the backlog
        self._dirty: dict[K, bool] = {}  # True: for the backlog
        self._delayed: list[tuple[float, int, K]] = []
        self._wishes: dict[K, _Wish] = {}
        self._serial = 0
        self._failures: dict[K, int] = {}
        self._retries = token_bucket.Bucket(RETRY_RATE, RETRY_BURST, clock)
        self._held: collections.deque[K] = collections.deque()  # due, but too many fail
        self._resting: dict[K, float] = {}
        self._closed = False
        self._waiters: collections.deque[asyncio.Future[None]] = collections.deque()
        self._timer: asyncio.Handle | None = None  # uvloop's knows no time where it is due at once
        self._rings_at = 0.0

    def __len__(self) -> int:
        return len(self._queued)

    @property
    def delayed(self) -> int:
        """Keys that wait for their time."""
        return len(self._wishes)

    @property
    def working(self) -> int:
        """Keys that workers hold now."""
        return len(self._working)

    def failures(self, key: K) -> int:
        """How often in a row it has failed."""
        return self._failures.get(key, 0)

    def asked_at(self, key: K) -> float:
        """When the look at this key, which is worked on, was asked for or due (monotonic seconds)."""
        return self._working[key]

    # --- putting in ----------------------------------------------------------------------------------------------

    def add(self, key: K, *, backlog: bool = False) -> None:
        """Have `key` looked at as soon as a worker is free; a resting key when its rest is over."""
        if (rest := self._rest_left(key)) > 0:
            self.add_after(key, rest, backlog=backlog)
        elif key in self._working:
            self._dirty[key] = backlog and self._dirty.get(key, True)
        else:
            self._queue(key, backlog=backlog)

    def again(self, key: K) -> None:
        """Have `key`, which is worked on, looked at once more; one of the backlog stays that, but is the next of it."""
        self.add(key, backlog=key in self._late)

    def _rest_left(self, key: K) -> float:
        """Seconds until a resting key may be looked at."""
        return self._resting[key] - self._clock() if key in self._resting else 0.0

    def _queue(self, key: K, *, backlog: bool, first: bool = False) -> None:
        """Put a key that nobody works on into its turns, or from the backlog to the news."""
        if self._closed:
            return
        self._resting.pop(key, None)
        place = self._queued.get(key)
        if place is None:
            self._since[key] = self._clock()
        elif place and not backlog:
            self._backlog.drop(key)  # it moves up
        else:
            return
        self._queued[key] = backlog
        (self._backlog if backlog else self._news).push(key, first=first and backlog)
        self._wake_one()

    def wake(self, key: K) -> None:
        """Have `key` looked at now, even if it rests: its owner has changed what is wanted."""
        self._resting.pop(key, None)
        self.add(key)

    def add_after(self, key: K, seconds: float, *, backlog: bool = False) -> None:
        """Have `key` looked at after `seconds`; of several such wishes the earliest counts, and news before backlog."""
        if seconds <= 0:
            self.add(key, backlog=backlog)
        else:
            self._wish(key, _Wish(self._clock() + seconds, backlog, retry=False))

    def retry(self, key: K, *, at_least: float = 0.0) -> float:
        """Have `key` looked at after its back-off, which doubles with each failure; returns the delay in seconds.

        It waits `at_least` so many seconds, if the server asked for that.
        """
        again = key in self._failures
        delay = max(at_least, self._back_off(key))
        self._wish(key, _Wish(self._clock() + delay, backlog=again, retry=True))
        return delay

    def rest(self, key: K) -> float:
        """As `retry`, but news does not bring the key back sooner (for `REST` seconds at most); only `wake` does.

        For what news itself might drive in circles, such as another controller that undoes what was done.
        """
        delay = self._back_off(key)
        now = self._clock()
        self._resting[key] = now + min(delay, REST)
        self._wish(key, _Wish(now + delay, backlog=True, retry=True))
        return delay

    def forget(self, key: K) -> None:
        """A success: the next failure starts from the shortest back-off again."""
        if self._failures.pop(key, None):
            self._retries.give_back()

    def drop(self, key: K) -> None:
        """There is nothing to look at any more: whatever was to come of the key is off, until it is added again."""
        self.forget(key)
        self._wishes.pop(key, None)
        self._resting.pop(key, None)
        if len(self._delayed) > 2 * len(self._wishes) + KEPT:
            self._delayed = [entry for entry in self._delayed if entry[2] in self._wishes]
            heapq.heapify(self._delayed)

    def _back_off(self, key: K) -> float:
        self._failures[key] = failures = self._failures.get(key, 0) + 1
        return backoff.seconds(failures, base=self._base, cap=self._cap) * self._rng.uniform(0.8, 1.2)

    def _wish(self, key: K, wish: _Wish) -> None:
        if self._closed:
            return
        old = self._wishes.get(key)
        if old is not None:
            wish = wish._replace(backlog=wish.backlog and old.backlog)
            if old.at <= wish.at:
                self._wishes[key] = old._replace(backlog=wish.backlog)
                return
        self._wishes[key] = wish
        self._serial += 1
        heapq.heappush(self._delayed, (wish.at, self._serial, key))
        self._arm()

    # --- taking out ----------------------------------------------------------------------------------------------

    async def get(self) -> K:
        """The next key. The caller owes a `done`. Raises Closed when the queue is closed and empty."""
        while True:
            for key in self.take():
                if self._queued:
                    self._wake_one()  # what kept others from working may be over for all of them
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
        if not self._queued or not self._pressure.room(len(self._working)):
            return ()
        sources: tuple[fair_turns.Turns[K], ...] = (self._news, self._backlog)
        if self._backlog_limit and len(self._late) >= self._backlog_share():
            sources = (self._news,)
        elif self._news_in_row >= BACKLOG_TURN - 1:
            sources = (self._backlog, self._news)
        for source in sources:
            for key in source.pop(self._is_full):
                if source is self._backlog:
                    self._late.add(key)
                if source is self._news and self._backlog:
                    self._news_in_row, self._news_at = self._news_in_row + 1, self._clock()
                else:
                    self._news_in_row = 0
                del self._queued[key]
                self._working[key] = self._since.pop(key)
                if self._limits:
                    self._busy[self._flow(key)[0]] += 1
                return (key,)
        return ()

    def _backlog_share(self) -> int:
        """How many keys of the backlog may be worked on now."""
        if self._clock() - self._news_at >= ATTENTION:
            return self._backlog_limit
        return min(self._backlog_limit, max(2, self._backlog_limit // 4))  # 2: one that takes long is passed by

    def _is_full(self, kind: Hashable) -> bool:
        limit = self._limits.get(kind)
        return limit is not None and self._busy[kind] >= limit

    def keep(self, key: K) -> bool:
        """Whether the worker goes on with `key`, which is to come back, as no news and nothing more urgent waits.

        That spares the way through the queue, as after an act. The caller still owes a `done`, and may keep a key once.
        """
        if key not in self._dirty or not self._pressure.room(len(self._working) - 1):
            return False
        self._promote()
        if self._news or (self._backlog and not self._dirty[key]):  # it may be the turn of the backlog
            return False
        del self._dirty[key]
        self._working[key] = self._clock()
        return True

    def done(self, key: K) -> None:
        """The worker is finished with `key`; changes that came meanwhile bring it back at once."""
        del self._working[key]
        self._late.discard(key)
        if self._limits:
            self._busy[self._flow(key)[0]] -= 1
        if key in self._dirty:
            self._come_back(key, backlog=self._dirty.pop(key))
        elif self._queued:
            self._wake_one()  # there may be room again

    def _come_back(self, key: K, *, backlog: bool) -> None:
        if (rest := self._rest_left(key)) > 0:
            self.add_after(key, rest, backlog=backlog)
        else:
            self._queue(key, backlog=backlog, first=True)

    def close(self) -> None:
        """Take no more keys and drop those not begun; workers that wait get Closed."""
        self._closed = True
        if self._timer:
            self._timer.cancel()
        for held in (self._news, self._backlog, self._queued, self._since, self._dirty):
            held.clear()
        for later in (self._delayed, self._wishes, self._held, self._resting):
            later.clear()
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
        """While a worker waits, a timer stands at the next time at which there may be something for it."""
        if not self._waiters:
            return
        now = self._clock()
        times = [self._delayed[0][0]] if self._delayed else []
        if self._held:
            times.append(now + self._retries.wait())
        if self._queued and (opens := self._pressure.changes_at()) > now:
            times.append(opens)
        if self._backlog_limit and self._backlog and (calm := self._news_at + ATTENTION) > now:
            times.append(calm)
        if not times:
            return
        at = min(times)
        if self._timer is None or at < self._rings_at:
            if self._timer:
                self._timer.cancel()
            self._timer = asyncio.get_running_loop().call_later(max(0.0, at - now), self._ring)
            self._rings_at = at

    def _ring(self) -> None:
        self._timer = None
        self._promote()
        if self._queued:
            self._wake_one()
        self._arm()

    def _promote(self) -> None:
        """Queue what is due; of retries as many as the rate allows, in their order."""
        now = self._clock()
        while self._delayed and self._delayed[0][0] <= now:
            due, _, key = heapq.heappop(self._delayed)
            wish = self._wishes.get(key)
            if wish is None or wish.at != due:
                continue  # there was an earlier one
            if wish.retry and key in self._failures and (self._held or not self._retries.take()):
                self._held.append(key)
            else:
                self._fulfil(key)
        while self._held and self._retries.take():
            self._fulfil(self._held.popleft())

    def _fulfil(self, key: K) -> None:
        if (wish := self._wishes.pop(key, None)) is not None:
            self.add(key, backlog=wish.backlog)
