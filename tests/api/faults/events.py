"""What can happen to the events of one watch, line by line, from a real API server to a reflector.

Events stay in order, as on any server. Those that are held come in one piece; "unobserved" ones that a later
event of the same object has overwritten meanwhile never come.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING

import msgspec

from moorage.api import meta
from moorage.kube import errors
from moorage.kube.http import transport

if TYPE_CHECKING:
    from . import faulty

EVENTS = {
    "twice": "delivered twice",
    "late": "delayed, with all that followed, then in one piece",
    "unobserved": "held; dropped if overwritten meanwhile",
    "reset": "the connection breaks",
    "end": "the server ends the watch",
    "half": "half a line, then the end",
    "stall": "silence for ever",
    "error 403": "an ERROR event with 403",
    "error 410": "an ERROR event with 410",
    "error 500": "an ERROR event with 500",
    "garbage": "a line that is no event",
}


class Stream:
    """An answer with another body."""

    def __init__(self, status: int, headers: Mapping[str, str], source: AsyncGenerator[bytes, None]) -> None:
        self.status, self.headers, self._source = status, headers, source

    def chunks(self) -> AsyncGenerator[bytes, None]:
        """See `transport.Stream`."""
        return self._source


async def play(*chunks: bytes) -> AsyncGenerator[bytes, None]:
    """These chunks."""
    for chunk in chunks:
        yield chunk


_End = errors.KubeError | None
"""How a stream ended: broken, or properly."""


async def disturbed(stream: transport.Stream, plan: faulty.Plan, it: faulty.Read) -> AsyncGenerator[bytes, None]:
    """The stream's lines, each as the plan will have it."""
    arrived: asyncio.Queue[bytes | _End] = asyncio.Queue()
    pump = asyncio.create_task(_pump(stream, arrived))
    try:
        while True:
            line = await arrived.get()
            if not isinstance(line, bytes):
                _finish(line)
                return
            match plan.event(it, line):
                case "":
                    yield line
                case "twice":
                    yield line + line
                case ("late" | "unobserved") as how:
                    batch, ended = await _gather(line, arrived, plan.pause)
                    kept = latest(batch) if how == "unobserved" else batch
                    plan.coalesced(len(batch) - len(kept))
                    yield b"".join(kept)
                    if not isinstance(ended, bytes):
                        _finish(ended)
                        return
                case "reset":
                    raise errors.TransportError("injected: reset", sent=True)
                case "end":
                    return
                case "half":
                    yield line[: len(line) // 2]
                    return
                case "stall":
                    await asyncio.Event().wait()
                case "garbage":
                    yield b"<html>\n"
                    return
                case word:
                    yield b'{"type":"ERROR","object":{"kind":"Status","code":%d}}\n' % int(word.split()[1])
                    return
    finally:
        pump.cancel()
        await asyncio.gather(pump, return_exceptions=True)


def _finish(ended: _End) -> None:
    if ended is not None:
        raise ended


async def _pump(stream: transport.Stream, arrived: asyncio.Queue[bytes | _End]) -> None:
    rest = b""
    try:
        async with contextlib.aclosing(stream.chunks()) as chunks:
            async for chunk in chunks:
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    arrived.put_nowait(line + b"\n")
    except errors.KubeError as error:
        arrived.put_nowait(error)
    else:
        if rest:
            arrived.put_nowait(rest)
        arrived.put_nowait(None)


async def _gather(
    first: bytes, arrived: asyncio.Queue[bytes | _End], seconds: float
) -> tuple[list[bytes], bytes | _End]:
    """All lines of so many seconds; with them how the stream ended, or the last line if it has not."""
    batch = [first]
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while True:
                line = await arrived.get()
                if not isinstance(line, bytes):
                    return batch, line
                batch.append(line)
    return batch, batch[-1]


class _Event(msgspec.Struct):
    object: meta.Partial


def latest(lines: list[bytes]) -> list[bytes]:
    """The lines in order, without those that a later one of the same name overwrites; bookmarks and errors stay."""
    names = [_name(line) for line in lines]
    last = {name: number for number, name in enumerate(names)}
    return [line for number, (line, name) in enumerate(zip(lines, names, strict=True)) if last[name] == number]


def _name(line: bytes) -> tuple[str, str] | bytes:
    try:
        found = msgspec.json.decode(line, type=_Event).object.metadata
    except msgspec.DecodeError:
        return line
    return found.key if found.name else line
