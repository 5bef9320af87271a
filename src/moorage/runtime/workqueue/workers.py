"""The workers: each takes one key after another from the queue and has it reconciled.

A pass that fails is contained. One that does not even end when it is cut at its deadline keeps its worker and its key,
as it may still write: another worker takes the place, so that all other keys go on, and `stuck` names it for /healthz,
as a restart of the process is the only cure.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable

import structlog

from moorage.runtime import cancellation, kind

from . import queue

log = structlog.get_logger(__name__)

GRACE = 60.0
"""Seconds after its deadline at which a pass counts as stuck: being cut, it may still write why to status."""


class Workers:
    """`count` workers over one queue. `deadline` says within how many seconds a pass over a key must end."""

    def __init__(
        self,
        keys: queue.WorkQueue[kind.Key],
        reconcile: Callable[[kind.Key], Awaitable[None]],
        deadline: Callable[[kind.Key], float],
        *,
        count: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keys, self._reconcile, self._deadline, self._count = keys, reconcile, deadline, count
        self._clock = clock
        self.tasks: list[asyncio.Task[None]] = []
        self._begun: dict[kind.Key, float] = {}
        self._stuck: set[kind.Key] = set()

    def start(self) -> None:
        """Begin to work."""
        for _ in range(self._count):
            self._hire()

    @property
    def stuck(self) -> list[str]:
        """The passes that do not end, for people."""
        return [f"the pass over {' '.join(key)} does not end" for key in self._stuck]

    def look_after(self) -> None:
        """Put another worker in the place of each that is newly stuck. To be called now and then."""
        now = self._clock()
        late = {key for key, begun in self._begun.items() if now - begun > self._deadline(key) + GRACE}
        for key in late - self._stuck:
            log.error("pass does not end", kind=key[0], namespace=key[1], name=key[2])
            self._hire()
        self._stuck = late

    def _hire(self) -> None:
        self.tasks.append(asyncio.create_task(self._work(), name=f"worker-{len(self.tasks)}"))

    async def _work(self) -> None:
        with contextlib.suppress(queue.Closed):
            while True:
                await self._turn(await self._keys.get())

    async def _turn(self, key: kind.Key) -> None:
        self._begun[key] = self._clock()
        try:
            await self._reconcile(key)
            if self._keys.keep(key):
                self._begun[key] = self._clock()
                await self._reconcile(key)
        except (Exception, asyncio.CancelledError) as error:
            if cancellation.is_cancelled(error):
                raise
            log.exception("worker failed", key=key)  # a key of no kind, say: never the end of the worker
        finally:
            del self._begun[key]
            self._keys.done(key)
