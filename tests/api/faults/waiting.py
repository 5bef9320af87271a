"""How tests wait: for the thing itself, with a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

PATIENCE = 90.0
"""Seconds after which what was waited for counts as hanging."""


async def until(condition: Callable[[], Any], *, within: float = PATIENCE) -> Any:
    """Ask again and again until the (perhaps awaited) answer is true, and return it. Raises TimeoutError."""
    async with asyncio.timeout(within):
        while True:
            answer = condition()
            if isinstance(answer, Awaitable):
                answer = await answer
            if answer:
                return answer
            await asyncio.sleep(0.01)
