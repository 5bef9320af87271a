"""Long work in slices, so that the event loop is never held for long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

__all__ = ["Slices"]


class Slices:
    """`if slices.over: await slices.rest()` between the steps of a work."""

    def __init__(self, span: float, clock: Callable[[], float] = time.perf_counter) -> None:
        """`span` is the length of a slice in seconds."""
        self._span, self._clock = span, clock
        self._end = clock() + span

    @property
    def over(self) -> bool:
        """True when it is others' turn."""
        return self._clock() >= self._end

    async def rest(self) -> None:
        """Let all others run that can, then begin the next slice."""
        await asyncio.sleep(0)
        self._end = self._clock() + self._span
