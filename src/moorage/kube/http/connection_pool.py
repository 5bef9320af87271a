"""The connections to one API server: made as they are needed, kept for a while, dropped when they are of no use.

Observes the address, TLS and proxy of the credentials. A connection is kept idle for at most `IDLE` seconds, and the
one used last is taken first, so that those which are not needed run out. One that was made with a client certificate
that has been renewed since is not used again: the server knows it by the old one. What can go wrong: no connection
comes about, which is an OSError (UnicodeError for a host name that can't be one), or unusable credentials.
"""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
import urllib.parse

import aiohappyeyeballs

from moorage.kube import errors
from moorage.kube.credentials import Credentials

from . import http1

__all__ = ["IDLE", "Pool"]

IDLE = 30.0  # seconds; below the API server's own 90, so that it is never the server that closes an idle connection
_SECOND_ADDRESS = 0.25  # seconds until a host's next address is tried beside the first
_ANSWER = 1 << 14  # bytes that a proxy may answer


class _Place:
    """Host and port of a URL. Raises CredentialsError when it has none."""

    def __init__(self, url: str, what: str, ports: dict[str, int]) -> None:
        try:
            parts = urllib.parse.urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise errors.CredentialsError(f"{what} {url}: {error}") from error
        if parts.scheme not in ports or not parts.hostname:
            schemes = " or ".join(f"{scheme}://" for scheme in ports)
            raise errors.CredentialsError(f"{what} {url} can't be used: it must begin with {schemes} and name a host")
        self.host = parts.hostname
        self.port = port or ports[parts.scheme]
        self.header = parts.netloc.rpartition("@")[2]
        self.path = parts.path
        self.user = urllib.parse.unquote(parts.netloc.rpartition("@")[0])


class Pool:
    """Connections to the server of `credentials`. Knows nothing of what is asked over them."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self.server = _Place(credentials.server, "the API server's address", {"https": 443, "http": 80})
        self._proxy = _Place(credentials.proxy, "the proxy", {"http": 80}) if credentials.proxy else None
        self._all: set[http1.Connection] = set()
        self._idle: list[http1.Connection] = []  # that which was used last is last
        self._sweeper: asyncio.TimerHandle | None = None
        self._closed = False
        self._emptied: asyncio.Future[None] | None = None

    def take(self) -> http1.Connection | None:
        """An idle connection, None when a new one must be made."""
        oldest = asyncio.get_running_loop().time() - IDLE
        while self._idle:
            connection = self._idle.pop()
            fresh = connection.idle_since > oldest and connection.generation == self._credentials.generation
            if fresh and connection.reusable:
                return connection
            connection.abort()
        return None

    def give(self, connection: http1.Connection) -> None:
        """Keep a connection for the next, or drop it when its answer was not read to the end."""
        if self._closed or not connection.reusable:
            connection.abort()
            return
        loop = asyncio.get_running_loop()
        connection.used, connection.idle_since = True, loop.time()
        self._idle.append(connection)
        if self._sweeper is None:
            self._sweeper = loop.call_later(IDLE, self._sweep)

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        oldest = loop.time() - IDLE
        while self._idle and self._idle[0].idle_since <= oldest:
            self._idle.pop(0).abort()
        self._sweeper = loop.call_at(self._idle[0].idle_since + IDLE, self._sweep) if self._idle else None

    async def connect(self) -> http1.Connection:
        """A new connection, TLS included. A CA that has been rotated is taken up here."""
        generation = self._credentials.generation
        try:
            return await self._connect()
        except ssl.SSLCertVerificationError:
            if not await self._credentials.distrust(generation):
                raise
        return await self._connect()

    async def _connect(self) -> http1.Connection:
        if self._closed:
            raise ConnectionAbortedError("the transport is closed")
        tls, generation = self._credentials.tls(), self._credentials.generation
        sock = await self._dial()
        _, connection = await asyncio.get_running_loop().create_connection(  # owns the socket from now on
            lambda: http1.Connection(generation, self._lost),
            sock=sock,
            ssl=tls,
            server_hostname=(self._credentials.server_name or self.server.host) if tls else None,
        )
        self._all.add(connection)
        if self._closed:
            connection.abort()
            raise ConnectionAbortedError("the transport was closed meanwhile")
        return connection

    async def _dial(self) -> socket.socket:
        """A socket that reaches the server, through the proxy if there is one."""
        loop = asyncio.get_running_loop()
        near = self._proxy or self.server
        addresses = await loop.getaddrinfo(near.host, near.port, type=socket.SOCK_STREAM)
        sock = await aiohappyeyeballs.start_connection(
            addresses, happy_eyeballs_delay=_SECOND_ADDRESS, interleave=1, loop=loop
        )
        if self._proxy is not None:
            try:
                await _tunnel(sock, self._proxy, self.server)
            except BaseException:
                sock.close()
                raise
        return sock

    def _lost(self, connection: http1.Connection) -> None:
        self._all.discard(connection)
        if self._emptied is not None and not self._all and not self._emptied.done():
            self._emptied.set_result(None)

    async def close(self) -> None:
        """Drop all connections, and return when their sockets are closed. No peer is waited for."""
        self._closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        self._idle.clear()
        if self._all:
            self._emptied = asyncio.get_running_loop().create_future()
            for connection in tuple(self._all):
                connection.abort()
            await self._emptied


async def _tunnel(sock: socket.socket, proxy: _Place, server: _Place) -> None:
    """Have a proxy connect to the server. It sends nothing after its head before we do, so no byte is read too far."""
    loop = asyncio.get_running_loop()
    host = f"[{server.host}]" if ":" in server.host else server.host
    lines = [f"CONNECT {host}:{server.port} HTTP/1.1", f"Host: {host}:{server.port}"]
    if proxy.user:
        lines.append("Proxy-Authorization: Basic " + base64.b64encode(proxy.user.encode()).decode())
    await loop.sock_sendall(sock, "\r\n".join([*lines, "", ""]).encode())
    answer = b""
    while b"\r\n\r\n" not in answer:
        piece = await loop.sock_recv(sock, _ANSWER)
        answer += piece
        if not piece or len(answer) > _ANSWER:
            raise http1.BrokenError(f"the proxy {proxy.header} did not answer as a proxy does")
    words = answer.split(b"\r\n", 1)[0].split(b" ", 2)
    if len(words) < 2 or words[1] != b"200":
        told = b" ".join(words[1:]).decode("latin-1")
        raise http1.BrokenError(f"the proxy {proxy.header} does not connect to {host}:{server.port}: {told}")
