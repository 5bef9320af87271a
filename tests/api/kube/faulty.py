"""A transport that counts, and on order breaks, what goes to a real API server."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from moorage.kube import errors, transport


async def until(condition: Callable[[], bool | Awaitable[bool]], *, within: float = 20.0) -> None:
    """Poll until the condition holds."""
    end = time.monotonic() + within
    while True:
        held = condition()
        if await held if isinstance(held, Awaitable) else held:
            return
        if time.monotonic() > end:
            raise AssertionError(f"not true within {within} s")
        await asyncio.sleep(0.02)


class Faulty:
    """Wraps a transport. `rate` is the share of streams and chunks that come to harm."""

    def __init__(self, inner: transport.Transport, *, seed: int = 0, rate: float = 0.0) -> None:
        self.inner = inner
        self.rate = rate
        self.faults: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.watched_from: list[str] = []
        self._random = random.Random(seed)

    def _harm(self, *kinds: str) -> str:
        if self._random.random() >= self.rate:
            return ""
        kind = self._random.choice(kinds)
        self.faults[kind] += 1
        return kind

    async def request(self, method: str, path: str, **args: Any) -> transport.Response:
        self.calls[method] += 1
        match self._harm("refused", "lost", "busy", "expired") if method == "GET" else "":
            case "refused":
                raise errors.TransportError("injected", sent=False)
            case "busy":
                return transport.Response(429, {}, b"{}")
            case "expired" if "continue" in args.get("query", {}):
                return transport.Response(410, {}, b"{}")
            case "lost":
                await self.inner.request(method, path, **args)
                raise errors.TransportError("injected", sent=True)
        return await self.inner.request(method, path, **args)

    @contextlib.asynccontextmanager
    async def stream(self, method: str, path: str, **args: Any) -> AsyncIterator[transport.Stream]:
        self.calls["watch"] += 1
        self.watched_from.append(args["query"].get("resourceVersion", ""))  # "" = a streaming list
        statuses = {"forbidden": 403, "gone": 410, "unknown": 422, "down": 503}
        if status := statuses.get(self._harm(*statuses), 0):
            yield _Stream(status, {}, _play(b"{}"))
            return
        async with self.inner.stream(method, path, **args) as stream:
            yield _Stream(stream.status, stream.headers, self._disturb(stream))

    async def _disturb(self, stream: transport.Stream) -> AsyncGenerator[bytes, None]:
        async with contextlib.aclosing(stream.chunks()) as chunks:
            async for chunk in chunks:
                match self._harm("reset", "end", "half", "twice", "stall", "error", "garbage"):
                    case "reset":
                        raise errors.TransportError("injected", sent=True)
                    case "end":
                        return
                    case "half":
                        yield chunk[: len(chunk) // 2]
                        return
                    case "twice":
                        yield chunk
                    case "stall":
                        await asyncio.Event().wait()
                    case "error":
                        yield b'{"type":"ERROR","object":{"code":%d}}\n' % self._random.choice([403, 410, 500])
                        return
                    case "garbage":
                        yield b"<html>\n"
                        return
                yield chunk

    def socket(self, *args: Any, **kwargs: Any) -> Any:
        return self.inner.socket(*args, **kwargs)

    async def close(self) -> None:
        await self.inner.close()


class _Stream:
    def __init__(self, status: int, headers: Mapping[str, str], source: AsyncGenerator[bytes, None]) -> None:
        self.status, self.headers, self._source = status, headers, source

    def chunks(self) -> AsyncGenerator[bytes, None]:
        return self._source


async def _play(*chunks: bytes) -> AsyncGenerator[bytes, None]:
    for chunk in chunks:
        yield chunk
