"""Sources: facts from outside the API server (registries, renders, admin APIs), fetched off the workers' path.

A reconcile reads what a source last saw and never waits for it. Reading states interest: the source fetches, each
fetch under a deadline, and enqueues the readers when its answer changed. Failures back off with jitter.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

import structlog

from . import failure, lifecycle, observed

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

Enqueue = Callable[[Hashable], None]
log = structlog.get_logger(__name__)


class SourceError(Exception):
    """A fetch failed for a reason worth showing. Not transient: repeating it unchanged is pointless."""

    def __init__(self, reason: str, message: str, *, transient: bool = True) -> None:
        super().__init__(message)
        self.reason, self.message, self.transient = reason, message, transient


class _Entry(Generic[V]):
    """What is known under one key, who reads it, and the fetch that is under way."""

    def __init__(self, fact: observed.Observed[V]) -> None:
        self.fact = fact
        self.readers: set[Hashable] = set()
        self.failures = 0
        self.fetch: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.wanted_again = False
        self.outdated = ""  # why what is known no longer counts as fresh


class Source(Generic[K, V]):
    """Values by key. `every` seconds a value is fetched again (None: only on `refresh`); it may depend on the key."""

    def __init__(
        self,
        name: str,
        fetch: Callable[[K], Awaitable[V]],
        enqueue: Enqueue,
        *,
        every: float | Callable[[K], float | None] | None = None,
        deadline: float = 60.0,
        concurrency: int = 4,
        backoff: tuple[float, float] = (1.0, 300.0),
    ) -> None:
        self.name = name
        self._fetch, self._enqueue, self._every, self._deadline = fetch, enqueue, every, deadline
        self._slots = asyncio.Semaphore(concurrency)
        self._base, self._cap = backoff
        self._entries: dict[K, _Entry[V]] = {}
        self._read_by: dict[Hashable, set[K]] = {}

    def read(self, key: K, reader: Hashable) -> observed.Observed[V]:
        """The fact as last seen. `reader` is enqueued when it changes, until `forget(reader)`."""
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry(observed.not_yet(self.name))
            self._begin(key, entry)
        entry.readers.add(reader)
        self._read_by.setdefault(reader, set()).add(key)
        return entry.fact

    def follow(self, key: K, reader: Hashable) -> observed.Observed[V]:
        """As `read`, for a reader that needs this key alone: it no longer needs any other."""
        self.forget(reader, keep=(key,))
        return self.read(key, reader)

    def peek(self, key: K) -> observed.Observed[V]:
        """The fact as last seen, without interest in what becomes of it."""
        entry = self._entries.get(key)
        return entry.fact if entry else observed.not_yet(self.name)

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
        if isinstance(entry.fact, observed.Fresh):
            entry.fact = observed.Stale(entry.fact.value, entry.fact.at, why)
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
        await lifecycle.cancel(*fetches, within=5.0)

    @staticmethod
    def _drop(entry: _Entry[V]) -> None:
        if entry.timer:
            entry.timer.cancel()
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
        before = entry.fact
        async with self._slots:
            entry.wanted_again, entry.outdated = False, ""
            try:
                async with asyncio.timeout(self._deadline):
                    value = await self._fetch(key)
                at, entry.failures = time.time(), 0
                outdated = entry.outdated
                entry.fact = observed.Stale(value, at, outdated) if outdated else observed.Fresh(value, at)
            except (Exception, asyncio.CancelledError) as error:
                if lifecycle.is_cancelled(error):
                    raise  # nobody reads it any more; else something inside was cancelled, and the key must not go dead
                entry.failures += 1
                entry.fact = self._failure(before, error)
        if not _same(before, entry.fact):
            for reader in tuple(entry.readers):
                self._enqueue(reader)
        again = 0.0 if entry.wanted_again else self._again_in(key, entry)
        if again is not None:
            entry.timer = asyncio.get_running_loop().call_later(again, self._on_timer, key, entry)

    def _on_timer(self, key: K, entry: _Entry[V]) -> None:
        entry.timer = None
        if self._entries.get(key) is entry:
            self._begin(key, entry)

    def _failure(self, before: observed.Observed[V], error: BaseException) -> observed.Observed[V]:
        match error:
            case SourceError():
                failed = observed.Failed(error.reason, error.message, error.transient)
            case TimeoutError():
                failed = observed.Failed("TimedOut", f"{self.name} gave no answer within {self._deadline:g} s")
            case _:
                log.warning("source failed", source=self.name, exc_info=error)
                failed = observed.Failed("Unavailable", f"{self.name}: {failure.words(error)}")
        last = observed.value_of(before)
        if last is None or not failed.transient:
            return failed
        at = before.at if isinstance(before, observed.Fresh | observed.Stale) else 0.0
        return observed.Stale(last, at, failed.message)

    def _again_in(self, key: K, entry: _Entry[V]) -> float | None:
        jitter = random.uniform(0.8, 1.2)  # noqa: S311 - spreads load, protects nothing
        if entry.failures:
            return float(min(self._cap, self._base * 2 ** min(entry.failures - 1, 20))) * jitter
        every = self._every(key) if callable(self._every) else self._every
        return None if every is None else every * jitter


def _same(before: observed.Observed[V], after: observed.Observed[V]) -> bool:
    """Whether a reader would decide the same on both: the time of looking alone changes nothing."""
    return type(before) is type(after) and (
        before == after if isinstance(after, observed.Failed) else observed.value_of(before) == after.value
    )
