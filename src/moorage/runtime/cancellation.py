"""Ending things in time: what runs until something else happens, and what must be over before the pod is killed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, Protocol

import structlog

from . import error_text

log = structlog.get_logger(__name__)


class Stops(Protocol):
    """What was opened, and is to be closed."""

    async def stop(self) -> None:
        """Close it."""


def is_cancelled(error: BaseException) -> bool:
    """Whether this task itself is to end; else something that it waited for was cancelled, which is a mere failure."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


async def cancel(*tasks: asyncio.Task[Any], within: float) -> bool:
    """Cancel, wait, and say whether all ended within so many seconds; what would not is left behind, and logged."""
    for task in tasks:
        task.cancel()
    if not tasks:
        return True
    ended, late = await asyncio.wait(tasks, timeout=within)
    for task in late:
        log.error("task does not end", task=task.get_name(), seconds=within)
    for task in ended:
        if not task.cancelled() and (error := task.exception()):
            error_text.tell("task failed", error, task=task.get_name())
    return not late


async def ended(*parts: Awaitable[Any]) -> None:
    """End all of these side by side, none of them later or not at all for what becomes of another.

    Raises, once all are over, what the first that failed raised.
    """
    for came in await asyncio.gather(*parts, return_exceptions=True):
        if isinstance(came, BaseException):
            raise came


async def stopped(*parts: Stops) -> None:
    """See `ended`."""
    await ended(*(each.stop() for each in parts))


async def unless(end: asyncio.Future[Any], work: Awaitable[Any], *, within: float = 5.0) -> bool:
    """Do `work`; False when `end` was there first, and `work` was cancelled. Raises what `work` raises."""
    doing = asyncio.ensure_future(work)
    try:
        await asyncio.wait({doing, end}, return_when=asyncio.FIRST_COMPLETED)
        if finished := doing.done():
            doing.result()
        return finished
    finally:
        if not doing.done():
            await cancel(doing, within=within)
