"""Servers within a test that end, and leave no connection open."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def close(server: asyncio.Server) -> None:
    """It lets nobody in any more, and whoever it has let in is known to who serves.

    A connection that was accepted right before its server is closed asyncio would forget, and never close.
    """
    loop = asyncio.get_running_loop()
    for each in server.sockets:
        loop.remove_reader(each.fileno())
    await asyncio.sleep(0)  # who was accepted so far is the server's now
    server.close()


@contextlib.asynccontextmanager
async def served(talk: Talk, address: str, port: int) -> AsyncIterator[int]:
    """It listens there, and talks to each until that breaks off. Gives its port, which is a free one for 0."""
    writers: set[asyncio.StreamWriter] = set()
    ended = False

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if ended:  # whoever was let in at the last moment
            writer.close()
            return
        writers.add(writer)
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                await talk(reader, writer)
        finally:
            writer.close()
            writers.discard(writer)

    server = await asyncio.start_server(serve, address, port)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        ended = True
        await close(server)
        for writer in tuple(writers):
            writer.close()
        await server.wait_closed()
