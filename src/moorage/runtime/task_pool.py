"""Long tasks (a helm run, a file copy) in a bounded pool, at most one per lane.

Nothing waits for a task: `state` says what is known, and its end enqueues the key that started it. What a task was
meant to do is written ahead in status, so a crash that empties this pool loses nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import TypeAlias

from . import cancellation, decision, error_text, gate, tasks
from .reasons import Reason

Work: TypeAlias = Callable[[], Awaitable[decision.Outcome]]


class Tasks:
    """The pool. `limit` tasks run side by side; the others wait their turn and count as running."""

    def __init__(self, enqueue: Callable[[Hashable], None], *, limit: int = 4) -> None:
        self._enqueue = enqueue
        self._slots = asyncio.Semaphore(limit)
        self._states: dict[str, tasks.TaskState] = {}
        self._lanes_of: dict[Hashable, set[str]] = {}
        self._handles: dict[str, asyncio.Task[decision.Outcome]] = {}
        self._gates: dict[str, gate.Gate | None] = {}  # of those that run
        self._closed = False

    def state(self, lane: str) -> tasks.TaskState:
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
        work: Work,
        *,
        key: Hashable,
        deadline: float,
        through: gate.Gate | None = None,
    ) -> decision.Outcome:
        """Start `work`, cancelled `deadline` seconds after its turn came. Conflict when the lane is taken.

        `through` is the gate that it writes through.
        """
        if self._closed:
            return decision.Refused(Reason.STOPPING, "the operator is stopping; its successor will look again")
        if lane in self._handles:
            return decision.Conflict(f"another task runs in {lane}")
        self._states[lane] = tasks.Running(task, time.time())
        self._lanes_of.setdefault(key, set()).add(lane)
        handle = asyncio.get_running_loop().create_task(
            self._run(lane, task, work, deadline, through), name=f"task:{lane}:{task}"
        )
        self._handles[lane] = handle
        self._gates[lane] = through
        handle.add_done_callback(functools.partial(self._ended, lane, task, attempt, key))
        return decision.Ok()

    def forget(self, key: Hashable) -> None:
        """The object is gone: drop the memory of its ended tasks."""
        lanes = self._lanes_of.get(key, set())
        for lane in lanes - self._handles.keys():
            self._states.pop(lane, None)
            lanes.discard(lane)
        if not lanes:
            self._lanes_of.pop(key, None)

    def close(self) -> None:
        """Start no more tasks."""
        self._closed = True

    async def ended(self, within: float) -> bool:
        """Whether all tasks end by themselves within so many seconds."""
        if self._handles:
            await asyncio.wait(self._handles.values(), timeout=within)
        return not self._handles

    async def ended_at(self, at: gate.Gate) -> None:
        """Return once no task runs that writes through this gate."""
        while mine := [self._handles[lane] for lane, through in self._gates.items() if through is at]:
            await asyncio.wait(mine)

    async def stop(self, within: float) -> bool:
        """Cancel all tasks, and whether each has cleaned up (its processes are gone) within so many seconds."""
        self.close()
        return await cancellation.cancel(*self._handles.values(), within=within)

    async def _run(
        self, lane: str, task: str, work: Work, deadline: float, through: gate.Gate | None
    ) -> decision.Outcome:
        at = gate.through(through) if through is not None else contextlib.nullcontext()
        try:
            async with self._slots, asyncio.timeout(deadline) as alarm:
                with at:
                    return await work()
        except TimeoutError as error:
            if alarm.expired():
                return decision.Unknown(f"{task} did not end within {deadline:g} s and was stopped")
            return decision.Unknown(f"{task} failed: {error_text.words(error)}")
        except Exception as error:
            error_text.tell("task failed", error, lane=lane, task=task)
            return decision.Unknown(f"{task} failed: {error_text.words(error)}")

    def _ended(self, lane: str, task: str, attempt: str, key: Hashable, handle: asyncio.Task[decision.Outcome]) -> None:
        """Also for a task that was cancelled before its first step, which runs nothing of its own."""
        del self._handles[lane], self._gates[lane]
        outcome = decision.Unknown("cancelled") if handle.cancelled() else handle.result()
        self._states[lane] = tasks.Ended(task, attempt, time.time(), outcome)
        self._enqueue(key)
