"""Servers within a test that end."""

from __future__ import annotations

import asyncio


async def close(server: asyncio.Server) -> None:
    """It lets nobody in any more, and whoever it has let in is known to who serves.

    A connection that was accepted right before its server is closed asyncio would forget, and never close.
    """
    loop = asyncio.get_running_loop()
    for each in server.sockets:
        loop.remove_reader(each.fileno())
    await asyncio.sleep(0)  # who was accepted so far is the server's now
    server.close()
