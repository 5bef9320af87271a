"""What an operator in another process runs in pods, answered by the test: one line of JSON asks, one answers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from moorage.kube.http import exec_protocol
from tests import listening

from . import faulty

LIMIT = 1 << 24
"""Bytes of a line."""


@contextlib.asynccontextmanager
async def answered(execs: faulty.Execs | None, folder: Path) -> AsyncIterator[Path | None]:
    """The socket at which they are asked; None: there is nobody to ask."""
    if execs is None:
        yield None
        return

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            pod, query = msgspec.json.decode(await reader.readline())
            writer.write(msgspec.json.encode(await execs.run(pod, query)) + b"\n")
            await writer.drain()
        writer.close()

    path = folder / "exec"
    server = await asyncio.start_unix_server(answer, path, limit=LIMIT)
    try:
        yield path
    finally:
        await listening.close(server)


class Elsewhere:
    """See `faulty.Execs`: those at that socket."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def order(self, _: Mapping[str, Any]) -> str:
        """None is numbered: nobody is killed at it."""
        return ""

    async def run(self, pod: str, query: Mapping[str, Any]) -> exec_protocol.ExecResult:
        """To its end."""
        reader, writer = await asyncio.open_unix_connection(self._path, limit=LIMIT)
        try:
            writer.write(msgspec.json.encode((pod, dict(query))) + b"\n")
            return msgspec.json.decode(await reader.readline(), type=exec_protocol.ExecResult)
        finally:
            writer.close()
