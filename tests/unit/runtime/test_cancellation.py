"""Ending things in time."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from moorage.runtime import cancellation


class Part:
    """Something to be ended."""

    def __init__(self) -> None:
        self.begun, self.over = False, False

    async def stop(self, *, error: Exception | None = None, hangs: bool = False) -> None:
        self.begun = True
        if error is not None:
            raise error
        if hangs:
            await asyncio.Event().wait()
        self.over = True


async def test_one_that_fails_keeps_none_from_ending_and_is_told() -> None:
    first, second, third = Part(), Part(), Part()
    with pytest.raises(OSError, match="broken"):
        await cancellation.ended(first.stop(error=OSError("broken")), second.stop(), third.stop(error=OSError("later")))
    assert (second.over, third.begun) == (True, True)


async def test_one_that_does_not_end_keeps_none_from_ending() -> None:
    first, second = Part(), Part()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.05):
            await cancellation.ended(first.stop(hangs=True), second.stop())
    assert (first.over, second.over) == (False, True)
