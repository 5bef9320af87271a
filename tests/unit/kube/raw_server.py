"""A server that says byte for byte what a test tells it to."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable

from tests import listening

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Peer:
    """The server's end of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.heads: list[bytes] = []
        self.gone = asyncio.Event()  # the client has closed it

    async def heard(self) -> bytes:
        """The head of the next request, after its body was read too."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        for line in head.split(b"\r\n"):
            if line.startswith(b"Content-Length: "):
                await self.reader.readexactly(int(line[16:]))
        return head

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()


Script = Callable[[Peer], Awaitable[None]]


def saying(*answers: bytes, then_close: bool = False) -> Script:
    """One answer for each request, the last one for all further."""

    async def play(peer: Peer) -> None:
        for answer in answers:
            await peer.heard()
            await peer.say(answer)
        while not then_close:
            await peer.heard()
            await peer.say(answers[-1])

    return play


class Server:
    """Connection number n gets script number n, or the last one."""

    def __init__(self) -> None:
        self.scripts: list[Script] = [saying(OK)]
        self.peers: list[Peer] = []
        self.port = 0
        self.more = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | None = None

    async def _play(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        peer = Peer(reader, writer)
        script = self.scripts[min(len(self.peers), len(self.scripts) - 1)]
        self.peers.append(peer)
        async with self.more:
            self.more.notify_all()
        try:
            await script(peer)
            writer.close()
            await writer.wait_closed()
        except (asyncio.IncompleteReadError, OSError):
            peer.gone.set()
        except asyncio.CancelledError:
            pass
        finally:
            writer.transport.abort()
            self._tasks.discard(task)

    async def connections(self, number: int) -> list[Peer]:
        """All of them, as soon as there are so many."""
        async with self.more:
            await self.more.wait_for(lambda: len(self.peers) >= number)
        return self.peers

    def stop_listening(self) -> None:
        assert self._listener is not None
        self._listener.close()

    @contextlib.asynccontextmanager
    async def running(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
        self._listener = await asyncio.start_server(self._play, "127.0.0.1", 0, ssl=tls)
        self.port = self._listener.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            if self._listener.is_serving():
                await listening.close(self._listener)
            for task in tuple(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks)
            await asyncio.sleep(0)
