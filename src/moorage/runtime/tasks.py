"""Long tasks (a helm run, a file copy) in a bounded pool, at most one per lane.

Nothing waits for a task: `state` says what is known, and its end enqueues the key that started it. What a task was
meant to do is written ahead in status, so a crash that empties this pool loses nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import TypeAlias

import msgspec
import structlog

from . import decision

log = structlog.get_logger(__name__)


class Running(msgspec.Struct, frozen=True, tag="running"):
    """`task` has run since `since` (epoch seconds)."""

    task: str
    since: float


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """`task` ended at `at` (epoch seconds)."""

    task: str
    attempt: str
    at: float
    outcome: decision.Outcome


TaskState: TypeAlias = Running | Ended | None


class Tasks:
    """The pool. `limit` tasks run side by side; the others wait their turn and count as running."""

    def __init__(self, enqueue: Callable[[Hashable], None], *, limit: int = 4) -> None:
        self._enqueue = enqueue
        self._slots = asyncio.Semaphore(limit)
        self._states: dict[str, TaskState] = {}
        self._handles: dict[str, asyncio.Task[None]] = {}

    def state(self, lane: str) -> TaskState:
        """What runs in the lane, or how the last task in it ended, or None when this process has run none."""
        return self._states.get(lane)

    @property
    def running(self) -> int:
        """Tasks that have not ended."""
        return len(self._handles)

    def start(
        self,
        lane: str,
        task: str,
        attempt: str,
        work: Callable[[], Awaitable[decision.Outcome]],
        *,
        key: Hashable,
        deadline: float,
    ) -> decision.Outcome:
        """Start `work`, cancelled after `deadline` seconds. Conflict when the lane is taken."""
        if lane in self._handles:
            return decision.Conflict(f"another task runs in {lane}")
        self._states[lane] = Running(task, time.time())
        run = self._run(lane, task, attempt, work, key, deadline)
        self._handles[lane] = asyncio.get_running_loop().create_task(run, name=f"task:{lane}:{task}")
        return decision.Ok()

    def forget(self, lane: str) -> None:
        """Drop the memory of an ended task."""
        if isinstance(self._states.get(lane), Ended):
            del self._states[lane]

    async def stop(self) -> None:
        """Cancel all tasks and wait until each has cleaned up (its processes are gone)."""
        handles = tuple(self._handles.values())
        for handle in handles:
            handle.cancel()
        await asyncio.gather(*handles, return_exceptions=True)

    async def _run(
        self,
        lane: str,
        task: str,
        attempt: str,
        work: Callable[[], Awaitable[decision.Outcome]],
        key: Hashable,
        deadline: float,
    ) -> None:
        outcome: decision.Outcome = decision.Unknown("cancelled")
        try:
            async with self._slots, asyncio.timeout(deadline):
                outcome = await work()
        except TimeoutError:
            outcome = decision.Unknown(f"{task} did not end within {deadline:g} s and was stopped")
        except asyncio.CancelledError:
            raise
        except Exception as error:
            log.exception("task failed", lane=lane, task=task)
            outcome = decision.Unknown(f"{task} failed: {error}")
        finally:
            del self._handles[lane]
            self._states[lane] = Ended(task, attempt, time.time(), outcome)
            self._enqueue(key)
