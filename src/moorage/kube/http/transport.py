"""How bytes get to the API server and back: the seam at which faults are injected and tests stand in.

`Transport` is all that the client knows. `HttpTransport` is the real one: HTTP/1.1 over a pool of connections, one TLS
context, no proxy from the environment. Requests are bounded by a semaphore, streams are not, so that a hundred watches
never starve a write. What can go wrong: `TransportError`, whose `sent` says whether the request may have arrived, and
`CredentialsError`.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import re
import urllib.parse
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec

from moorage.kube import errors
from moorage.kube.credentials import Credentials

from . import connection_pool, http1

__all__ = ["IMPERSONATE", "JSON", "HttpTransport", "Query", "Response", "Socket", "Stream", "Transport", "acting_as"]

JSON = "application/json"
Query = Mapping[str, str | Sequence[str]]  # a sequence repeats its key
_NOTHING: Query = {}
_REPEATABLE = frozenset({"GET", "HEAD", "PUT", "DELETE"})  # twice is as good as once
_EMPTY = frozenset({"GET", "HEAD", "DELETE"})  # without a body no length is told
_PLAIN = re.compile(r"[A-Za-z0-9/._~!$&'()*+,;=:@%-]*")  # what a path may hold as it is; % as it is encoded already
_VALUE = re.compile(r"[\t -~\x80-\xff]*")
_USER = re.compile(r"[!-~]+")
IMPERSONATE = "Impersonate-User"


class Response(msgspec.Struct, frozen=True):
    """A whole answer, of any status."""

    status: int
    headers: Mapping[str, str]  # names as the server spelt them; the real transport's mapping ignores case
    body: bytes = b""


class Stream(Protocol):
    """An answer whose body is still arriving."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The response headers."""

    def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes, cut anywhere. Ends when the server ends it; raises TransportError when it breaks."""


class Socket(Protocol):
    """An open websocket."""

    @property
    def protocol(self) -> str:
        """The subprotocol that the server chose."""

    def frames(self) -> AsyncIterator[bytes]:
        """Binary messages until the other side closes."""

    async def send(self, frame: bytes) -> None:
        """One binary message. Raises TransportError when the socket is closed or breaks."""


class Transport(Protocol):
    """What a request needs, three ways of being answered. `user`: whom to act as, by impersonation; empty: oneself."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = _NOTHING,
        body: bytes | None = None,
        content_type: str = "",
        accept: str = JSON,
        user: str = "",
        timeout: float,
    ) -> Response:
        """One exchange within `timeout` seconds, waiting for a free slot included."""

    def stream(
        self, method: str, path: str, *, query: Query = _NOTHING, accept: str = JSON, user: str = "", timeout: float
    ) -> AbstractAsyncContextManager[Stream]:
        """An answer read piecemeal. `timeout` seconds hold until its headers are there."""

    def socket(
        self, path: str, *, query: Query = _NOTHING, protocols: Sequence[str], user: str = "", timeout: float
    ) -> AbstractAsyncContextManager[Socket]:
        """A websocket. `timeout` seconds hold for the handshake."""

    async def close(self) -> None:
        """Drop all connections. Nothing may be asked afterwards."""


class _Progress:
    """Whether a request's first byte may have left."""

    __slots__ = ("sent",)

    def __init__(self) -> None:
        self.sent = False


class _Request(msgspec.Struct, frozen=True):
    method: str
    path: str
    query: Query
    accept: str
    content_type: str = ""
    body: bytes | None = None
    user: str = ""


class HttpTransport:
    """The real transport. `limit` bounds the requests in flight; more wait, within their own timeout."""

    def __init__(self, credentials: Credentials, *, limit: int = 64, user_agent: str = "moorage") -> None:
        self._credentials = credentials
        self._slots = asyncio.Semaphore(limit)
        self._agent = user_agent
        self._pool = connection_pool.Pool(credentials)
        # gzip would cost both ends more CPU than a cluster's network is worth
        self._common = f"Host: {self._pool.server.header}\r\nUser-Agent: {user_agent}\r\nAccept-Encoding: identity\r\n"

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = _NOTHING,
        body: bytes | None = None,
        content_type: str = "",
        accept: str = JSON,
        user: str = "",
        timeout: float,
    ) -> Response:
        """See `Transport.request`."""
        progress = _Progress()
        asked = _Request(method, path, query, accept, content_type, body, user)
        try:
            async with asyncio.timeout(timeout), self._slots:
                connection = await self._ask(progress, asked, whole=True)
        except (OSError, UnicodeError) as error:
            raise _failure(method, path, error, progress) from error
        answer = Response(connection.status, connection.headers, connection.take())
        self._pool.give(connection)
        return answer

    @contextlib.asynccontextmanager
    async def stream(
        self, method: str, path: str, *, query: Query = _NOTHING, accept: str = JSON, user: str = "", timeout: float
    ) -> AsyncIterator[Stream]:
        """See `Transport.stream`."""
        progress = _Progress()
        try:
            async with asyncio.timeout(timeout):
                connection = await self._ask(progress, _Request(method, path, query, accept, user=user), whole=False)
        except (OSError, UnicodeError) as error:
            raise _failure(method, path, error, progress) from error
        try:
            yield _Stream(connection, method, path)
        finally:
            self._pool.give(connection)

    @contextlib.asynccontextmanager
    async def socket(
        self, path: str, *, query: Query = _NOTHING, protocols: Sequence[str], user: str = "", timeout: float
    ) -> AsyncIterator[Socket]:
        """See `Transport.socket`."""
        from . import websocket  # see there

        opening = websocket.opened(
            self._credentials, _target(path, query), protocols, self._agent, timeout, headers=acting_as(user)
        )
        async with opening as ws:
            yield ws

    async def close(self) -> None:
        """Closes the pool."""
        await self._pool.close()

    async def _ask(self, progress: _Progress, asked: _Request, *, whole: bool) -> http1.Connection:
        """Send once; after a 401 with renewed credentials once more: a request refused there has changed nothing."""
        for last in (False, True):
            progress.sent = False
            message = self._message(asked, await self._credentials.headers())
            connection = await self._send(progress, asked.method, message, whole=whole)
            if connection.status != 401 or last:
                return connection
            try:
                renewed = await self._credentials.refresh()
            except BaseException:
                connection.abort()
                raise
            if not renewed:
                return connection
            self._pool.give(connection)
        raise AssertionError("unreachable")

    async def _send(self, progress: _Progress, method: str, message: bytes, *, whole: bool) -> http1.Connection:
        """Over a kept connection, if there is one.

        The server may close that one at any time, also just when a request is on its way; then what may be asked twice
        is asked again, over a new one.
        """
        connection = self._pool.take() or await self._pool.connect()
        progress.sent = True
        try:
            await connection.ask(message, whole=whole, bodiless=method == "HEAD")
        except http1.BrokenError:
            if connection.heard or not connection.used or method not in _REPEATABLE:
                raise
            connection = await self._pool.connect()
            await connection.ask(message, whole=whole, bodiless=method == "HEAD")
        return connection

    def _message(self, asked: _Request, credentials: Mapping[str, str]) -> bytes:
        target = _target(self._pool.server.path + asked.path, asked.query)
        fields = _fields(asked.accept, asked.content_type, tuple(credentials.items()))
        user = f"{IMPERSONATE}: {_header(asked.user)}\r\n" if asked.user else ""
        start = f"{asked.method} {target} HTTP/1.1\r\n{self._common}{user}{fields}"
        if asked.body is None:
            length = "" if asked.method in _EMPTY else "Content-Length: 0\r\n"
            return f"{start}{length}\r\n".encode("latin-1")
        return f"{start}Content-Length: {len(asked.body)}\r\n\r\n".encode("latin-1") + asked.body


class _Stream:
    def __init__(self, connection: http1.Connection, method: str, path: str) -> None:
        self._connection = connection
        self._what = (method, path)
        self.status = connection.status
        self.headers: Mapping[str, str] = connection.headers

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        try:
            while chunk := await self._connection.read():
                yield chunk
        except http1.BrokenError as error:
            method, path = self._what
            raise errors.TransportError(f"{method} {path}: the connection broke: {error}", sent=True) from error


def acting_as(user: str) -> dict[str, str]:
    """The header by which a request is another's; the server puts in the groups of a service account by itself."""
    return {IMPERSONATE: _header(user)} if user else {}


def _header(user: str) -> str:
    if not _USER.fullmatch(user):
        raise ValueError(f"{user!r} is no name to act as")
    return user


def _target(path: str, query: Query) -> str:
    """Path and query as they go over the wire. An escape in the path stays as it is."""
    if not _PLAIN.fullmatch(path):
        path = urllib.parse.quote(path, safe="/._~!$&'()*+,;=:@%-")
    return f"{path}?{_encoded(query)}" if query else path


def _encoded(query: Query) -> str:
    items = tuple(query.items())
    try:
        return _encoded_before(items)
    except TypeError:  # a list of values
        return urllib.parse.urlencode(query, doseq=True)


@functools.lru_cache(1024)
def _encoded_before(items: tuple[tuple[str, str | Sequence[str]], ...]) -> str:
    """Most requests of a process differ only in their paths."""
    return urllib.parse.urlencode(items, doseq=True)


@functools.lru_cache(64)
def _fields(accept: str, content_type: str, credentials: tuple[tuple[str, str], ...]) -> str:
    """The headers that hold for many requests."""
    for name, value in credentials:
        if not _VALUE.fullmatch(value):
            raise errors.CredentialsError(f"the credentials' {name} holds what no header can, such as a line break")
    fields = [("Accept", accept), *([("Content-Type", content_type)] if content_type else ()), *credentials]
    return "".join(f"{name}: {value}\r\n" for name, value in fields)


def _failure(method: str, path: str, error: Exception, progress: _Progress) -> errors.TransportError:
    """What the socket, TLS, asyncio or a broken answer said, as an error of ours."""
    if isinstance(error, TimeoutError):
        state = (
            "no answer in time" if progress.sent else "no connection in time; check the network and the server's load"
        )
    else:
        why = str(error) or type(error).__name__
        what = "the connection broke" if progress.sent else "no connection; check address, certificate and network"
        state = f"{what}: {why}"
    return errors.TransportError(f"{method} {path}: {state}", sent=progress.sent)
