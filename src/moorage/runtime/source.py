"""Sources: facts from outside the API server (registries, renders, admin APIs), fetched off the workers' path.

A reconcile reads what a source last saw and never waits for it. Reading states interest: the source fetches, each
fetch under a deadline, and enqueues the readers when its answer changed. Failures back off with jitter. Keys that share
a place to ask, or an owner, may be grouped: each group has slots of its own, so that one that hangs delays no other.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
import weakref
from collections.abc import Awaitable, Callable, Hashable, Iterator
from typing import Any, Generic, TypeVar

from moorage.api import conditions

from . import backoff as backoffs
from . import cancellation, error_text, freshness

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

Enqueue = Callable[[Hashable], None]

ENDING = 2.0
"""Seconds that fetches get to end when all stops; less than `manager.CUT`."""

NO_ANSWER = "NoAnswer"
"""The reason of a fact of which nothing is known since its first fetch takes long."""


class SourceError(Exception):
    """A fetch failed for a reason worth showing. Not transient: repeating it unchanged is pointless."""

    def __init__(self, reason: str, message: str, *, transient: bool = True) -> None:
        super().__init__(message)
        self.reason, self.message, self.transient = reason, message, transient


class _Entry(Generic[V]):
    """What is known under one key, who reads it, and the fetch that is under way."""

    def __init__(self, fact: freshness.Observed[V]) -> None:
        self.fact = fact
        self.readers: set[Hashable] = set()
        self.failures = 0
        self.fetch: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.patience: asyncio.TimerHandle | None = None
        self.fetching = False  # it has its slot
        self.wanted_again = False
        self.outdated = ""  # why what is known no longer counts as fresh


class Source(Generic[K, V]):
    """Values by key. `every` seconds a value is fetched again (None: only on `refresh`); it may depend on the key.

    `concurrency` fetches run at a time for each group that `group` puts keys into, and `together` of all groups;
    without `group` all are one. A first fetch that takes longer than `patience` seconds is told as such; `place` says
    by key who is asked.
    """

    def __init__(
        self,
        name: str,
        fetch: Callable[[K], Awaitable[V]],
        enqueue: Enqueue,
        *,
        every: float | Callable[[K], float | None] | None = None,
        deadline: float = 60.0,
        concurrency: int = 4,
        group: Callable[[K], Hashable] | None = None,
        together: int | None = None,
        place: Callable[[K], str] | None = None,
        patience: float = 10.0,
        backoff: tuple[float, float] = (1.0, 300.0),
    ) -> None:
        self.name = name
        self._fetch, self._enqueue, self._every, self._deadline = fetch, enqueue, every, deadline
        self._concurrency, self._group, self._place, self._patience = concurrency, group, place, patience
        self._together = asyncio.Semaphore(together) if together else contextlib.nullcontext()
        self._slots: weakref.WeakValueDictionary[Hashable, asyncio.Semaphore] = weakref.WeakValueDictionary()
        self._base, self._cap = backoff
        self._entries: dict[K, _Entry[V]] = {}
        self._read_by: dict[Hashable, set[K]] = {}

    def read(self, key: K, reader: Hashable) -> freshness.Observed[V]:
        """The fact as last seen. `reader` is enqueued when it changes, until `forget(reader)`."""
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry(freshness.not_yet(self.name))
            self._begin(key, entry)
            loop = asyncio.get_running_loop()
            entry.patience = loop.call_later(self._patience, self._tell_slow, key, entry, time.time())
        entry.readers.add(reader)
        self._read_by.setdefault(reader, set()).add(key)
        return entry.fact

    def follow(self, key: K, reader: Hashable) -> freshness.Observed[V]:
        """As `read`, for a reader that needs this key alone: it no longer needs any other."""
        self.forget(reader, keep=(key,))
        return self.read(key, reader)

    def peek(self, key: K) -> freshness.Observed[V]:
        """The fact as last seen, without interest in what becomes of it."""
        entry = self._entries.get(key)
        return entry.fact if entry else freshness.not_yet(self.name)

    def known(self) -> Iterator[V]:
        """The values of all keys that somebody reads."""
        return (entry.fact.value for entry in self._entries.values() if not isinstance(entry.fact, freshness.Failed))

    def refresh(self, key: K) -> None:
        """Look again now; what is known stays readable meanwhile."""
        entry = self._entries.get(key)
        if entry is not None:
            self._begin(key, entry)

    def outdate(self, key: K, why: str) -> None:
        """What is known was read before `why` happened: it is Stale until it is read anew, which begins now.

        This is law 6 for what is outside the API server: nothing is decided on an answer older than one's own write.
        """
        entry = self._entries.get(key)
        if entry is None:
            return
        if isinstance(entry.fact, freshness.Fresh):
            entry.fact = freshness.Stale(entry.fact.value, entry.fact.at, why)
        entry.outdated = why
        self._begin(key, entry)

    def forget(self, reader: Hashable, *, keep: tuple[K, ...] = ()) -> None:
        """`reader` no longer needs any key but `keep`; keys without readers are dropped."""
        mine = self._read_by.get(reader, set())
        for key in mine.difference(keep):
            mine.discard(key)
            entry = self._entries[key]
            entry.readers.discard(reader)
            if not entry.readers:
                self._drop(entry)
                del self._entries[key]
        if not mine:
            self._read_by.pop(reader, None)

    async def stop(self) -> None:
        """End all fetches."""
        fetches = [e.fetch for e in self._entries.values() if e.fetch]
        for entry in self._entries.values():
            self._drop(entry)
        self._entries.clear()
        self._read_by.clear()
        await cancellation.cancel(*fetches, within=ENDING)

    @staticmethod
    def _drop(entry: _Entry[V]) -> None:
        for timer in (entry.timer, entry.patience):
            if timer:
                timer.cancel()
        if entry.fetch:
            entry.fetch.cancel()

    def _begin(self, key: K, entry: _Entry[V]) -> None:
        if entry.fetch and not entry.fetch.done():
            entry.wanted_again = True  # what the running fetch has read may already be old
            return
        if entry.timer:
            entry.timer.cancel()
            entry.timer = None
        entry.fetch = asyncio.get_running_loop().create_task(self._look(key, entry), name=f"{self.name}:{key}")

    async def _look(self, key: K, entry: _Entry[V]) -> None:
        async with self._slots_of(key), self._together:
            entry.wanted_again, entry.outdated, entry.fetching = False, "", True
            fact = await self._fetched(key, entry)
        before, entry.fact, entry.fetching = entry.fact, fact, False  # what was outdated may have been read meanwhile
        if entry.patience:
            entry.patience.cancel()
            entry.patience = None
        if not _same(before, fact):
            for reader in tuple(entry.readers):
                self._enqueue(reader)
        again = 0.0 if entry.wanted_again else self._again_in(key, entry)
        if again is not None:
            entry.timer = asyncio.get_running_loop().call_later(again, self._on_timer, key, entry)

    async def _fetched(self, key: K, entry: _Entry[V]) -> freshness.Observed[V]:
        try:
            async with asyncio.timeout(self._deadline):
                value = await self._fetch(key)
        except (Exception, asyncio.CancelledError) as error:
            if cancellation.is_cancelled(error):
                raise  # nobody reads it any more; else something inside was cancelled, and the key must not go dead
            entry.failures += 1
            return self._failure(entry.fact, error)
        at, entry.failures = time.time(), 0
        return freshness.Stale(value, at, entry.outdated) if entry.outdated else freshness.Fresh(value, at)

    def _slots_of(self, key: K) -> asyncio.Semaphore:
        """A group's slots live as long as a fetch of the group does."""
        group = self._group(key) if self._group else None
        slots = self._slots.get(group)
        if slots is None:
            slots = self._slots[group] = asyncio.Semaphore(self._concurrency)
        return slots

    def _tell_slow(self, key: K, entry: _Entry[V], since: float) -> None:
        """Whoever reads is told what is waited for, once, in place of being left with nothing."""
        entry.patience = None
        place, begun = self._place(key) if self._place else self.name, conditions.timestamp(since)
        if entry.fetching:
            words = f"{place} has given no answer since {begun}; it gets {self._deadline:g} s"
        else:
            words = f"{place} is to be asked since {begun}; requests before this one are not answered"
        entry.fact = freshness.Failed(NO_ANSWER, words)
        for reader in tuple(entry.readers):
            self._enqueue(reader)

    def _on_timer(self, key: K, entry: _Entry[V]) -> None:
        entry.timer = None
        if self._entries.get(key) is entry:
            self._begin(key, entry)

    def _failure(self, before: freshness.Observed[V], error: BaseException) -> freshness.Observed[V]:
        match error:
            case SourceError():
                failed = freshness.Failed(error.reason, error.message, error.transient)
            case TimeoutError():
                failed = freshness.Failed("TimedOut", f"{self.name} gave no answer within {self._deadline:g} s")
            case _:
                error_text.tell("source failed", error, source=self.name)
                failed = freshness.Failed("Unavailable", f"{self.name}: {error_text.words(error)}")
        last = freshness.value_of(before)
        if last is None or not failed.transient:
            return failed
        at = before.at if isinstance(before, freshness.Fresh | freshness.Stale) else 0.0
        return freshness.Stale(last, at, failed.message)

    def _again_in(self, key: K, entry: _Entry[V]) -> float | None:
        jitter = random.uniform(0.8, 1.2)  # noqa: S311 - spreads load, protects nothing
        if entry.failures:
            return backoffs.seconds(entry.failures, base=self._base, cap=self._cap) * jitter
        every = self._every(key) if callable(self._every) else self._every
        return None if every is None else every * jitter


def _same(before: freshness.Observed[V], after: freshness.Observed[V]) -> bool:
    """Whether a reader would decide the same on both: the time of looking alone changes nothing."""
    return type(before) is type(after) and (
        before == after if isinstance(after, freshness.Failed) else freshness.value_of(before) == after.value
    )


class Paces(Generic[K]):
    """How often each of some keys is looked at: every `usual` seconds, or as was set for it. `of` is an `every`."""

    def __init__(self, usual: float) -> None:
        self._usual = usual
        self._set: dict[K, float] = {}

    def of(self, key: K) -> float:
        """Seconds between two looks."""
        return self._set.get(key, self._usual)

    def set(self, key: K, seconds: float, *sources: Source[K, Any]) -> None:
        """From now on; in these sources at once, where that is more often than was set before."""
        before, self._set[key] = self._set.get(key, seconds), seconds
        if seconds < before:
            for each in sources:
                each.refresh(key)

    def forget(self, key: K) -> None:
        """Nobody asks for it any more."""
        self._set.pop(key, None)
