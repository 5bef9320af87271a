"""How bytes get to the API server and back: the seam at which faults are injected and tests stand in.

`Transport` is all that the client knows. `AiohttpTransport` is the real one: HTTP/1.1, one connection pool, one TLS
context, no proxy from the environment. Requests are bounded by a semaphore, streams are not, so that a hundred watches
never starve a write. What can go wrong: `TransportError`, whose `sent` says whether the request may have arrived.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import sys
import urllib.parse
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import aiohttp
import msgspec
import yarl

from . import errors
from .credentials import Credentials

__all__ = ["JSON", "AiohttpTransport", "Query", "Response", "Socket", "Stream", "Transport"]

JSON = "application/json"
Query = Mapping[str, str | Sequence[str]]  # a sequence repeats its key
_NOTHING: Query = {}


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


class Transport(Protocol):
    """Six things a request needs, three ways of being answered."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = _NOTHING,
        body: bytes | None = None,
        content_type: str = "",
        accept: str = JSON,
        timeout: float,
    ) -> Response:
        """One exchange within `timeout` seconds, waiting for a free slot included."""

    def stream(
        self, method: str, path: str, *, query: Query = _NOTHING, accept: str = JSON, timeout: float
    ) -> AbstractAsyncContextManager[Stream]:
        """An answer read piecemeal. `timeout` seconds hold until its headers are there."""

    def socket(
        self, path: str, *, query: Query = _NOTHING, protocols: Sequence[str], timeout: float
    ) -> AbstractAsyncContextManager[Socket]:
        """A websocket. `timeout` seconds hold for the handshake."""

    async def close(self) -> None:
        """Drop all connections. Nothing may be asked afterwards."""


class _Progress:
    """Whether a request's first byte may have left."""

    __slots__ = ("sent",)

    def __init__(self) -> None:
        self.sent = False


_PROGRESS: contextvars.ContextVar[_Progress] = contextvars.ContextVar("progress")


class _Connector(aiohttp.TCPConnector):
    """Notes when a request has got its connection. Tracing would tell the same, for a dozen awaits per request."""

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[aiohttp.tracing.Trace], timeout: aiohttp.ClientTimeout
    ) -> aiohttp.connector.Connection:
        connection = await super().connect(req, traces, timeout)
        _PROGRESS.get().sent = True
        return connection


class AiohttpTransport:
    """The real transport. `limit` bounds the requests in flight; more wait, within their own timeout."""

    def __init__(self, credentials: Credentials, *, limit: int = 64, user_agent: str = "moorage") -> None:
        self._credentials = credentials
        self._slots = asyncio.Semaphore(limit)
        self._agent = user_agent
        self._session: aiohttp.ClientSession | None = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            tls = self._credentials.tls()
            self._session = aiohttp.ClientSession(
                # below the API server's own 90 s, so that it is never the server that closes an idle connection
                connector=_Connector(
                    limit=0,
                    keepalive_timeout=30,
                    ssl=True if tls is None else tls,
                    # an abandoned request says farewell by TLS; a server that hangs would hold its socket for 30 s
                    enable_cleanup_closed=sys.version_info < (3, 12, 8),
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                # gzip would cost both ends more CPU than a cluster's network is worth
                headers={"User-Agent": self._agent, "Accept-Encoding": "identity"},
                read_bufsize=1 << 18,
                trust_env=False,
            )
        return self._session

    def _url(self, path: str, query: Query) -> yarl.URL:
        text = f"{self._credentials.server}{path}"
        return yarl.URL(f"{text}?{_encoded(query)}" if query else text, encoded=True)

    async def _ask(
        self,
        progress: _Progress,
        method: str,
        path: str,
        query: Query,
        body: bytes | None,
        headers: dict[str, str],
        timeout: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        """Send once; after a 401 with renewed credentials once more: a request refused there has changed nothing."""
        for last in (False, True):
            session = self._open()
            progress.sent = False
            _PROGRESS.set(progress)
            answer = await session.request(
                method,
                self._url(path, query),
                data=body,
                headers={**headers, **await self._credentials.headers()},
                timeout=timeout,
                allow_redirects=False,
                proxy=self._credentials.proxy or None,
                server_hostname=self._credentials.server_name or None,
            )
            if answer.status != 401 or last:
                return answer
            if not await self._credentials.refresh():
                return answer
            answer.release()
        raise AssertionError("unreachable")

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = _NOTHING,
        body: bytes | None = None,
        content_type: str = "",
        accept: str = JSON,
        timeout: float,
    ) -> Response:
        """See `Transport.request`."""
        progress = _Progress()
        headers = {"Accept": accept}
        if content_type:
            headers["Content-Type"] = content_type
        with _translated(method, path, progress):
            async with asyncio.timeout(timeout), self._slots:
                answer = await self._ask(progress, method, path, query, body, headers, _UNBOUNDED)
                async with answer:
                    return Response(answer.status, answer.headers, await answer.read())

    @contextlib.asynccontextmanager
    async def stream(
        self, method: str, path: str, *, query: Query = _NOTHING, accept: str = JSON, timeout: float
    ) -> AsyncIterator[Stream]:
        """See `Transport.stream`."""
        progress = _Progress()
        with _translated(method, path, progress):
            async with asyncio.timeout(timeout):
                answer = await self._ask(progress, method, path, query, None, {"Accept": accept}, _UNBOUNDED)
        try:
            yield _AiohttpStream(answer, method, path)
        finally:
            _abort(answer)

    @contextlib.asynccontextmanager
    async def socket(
        self, path: str, *, query: Query = _NOTHING, protocols: Sequence[str], timeout: float
    ) -> AsyncIterator[Socket]:
        """See `Transport.socket`."""
        progress = _Progress()
        _PROGRESS.set(progress)
        with _translated("GET", path, progress):
            async with asyncio.timeout(timeout):
                ws = await self._open().ws_connect(
                    self._url(path, query),
                    protocols=tuple(protocols),
                    headers={**await self._credentials.headers()},
                    proxy=self._credentials.proxy or None,
                    server_hostname=self._credentials.server_name or None,
                    max_msg_size=0,
                )
        try:
            yield _AiohttpSocket(ws, path)
        finally:
            await ws.close()

    async def close(self) -> None:
        """Closes the pool."""
        if self._session is not None:
            await self._session.close()
            self._session = None


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


_UNBOUNDED = aiohttp.ClientTimeout(total=None)  # asyncio.timeout bounds the whole, with the wait for a slot


def _abort(answer: aiohttp.ClientResponse) -> None:
    """Drop the connection: the rest of a watch must not be drained, nor a farewell of TLS be waited for."""
    if answer.connection is not None and answer.connection.transport is not None:
        answer.connection.transport.abort()
    answer.close()


class _AiohttpStream:
    def __init__(self, answer: aiohttp.ClientResponse, method: str, path: str) -> None:
        self._answer = answer
        self._what = (method, path)
        self.status = answer.status
        self.headers: Mapping[str, str] = answer.headers

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        progress = _Progress()
        progress.sent = True
        with _translated(*self._what, progress):
            async for chunk in self._answer.content.iter_any():
                yield chunk


class _AiohttpSocket:
    def __init__(self, ws: aiohttp.ClientWebSocketResponse, path: str) -> None:
        self._ws = ws
        self._path = path
        self.protocol = ws.protocol or ""

    async def frames(self) -> AsyncIterator[bytes]:
        async for message in self._ws:
            if message.type is aiohttp.WSMsgType.ERROR:
                raise errors.TransportError(f"websocket {self._path} broke: {self._ws.exception()}", sent=True)
            if message.type is aiohttp.WSMsgType.BINARY:
                yield message.data


@contextlib.contextmanager
def _translated(method: str, path: str, progress: _Progress) -> Iterator[None]:
    """aiohttp's, the socket's and asyncio's errors as TransportError."""
    try:
        yield
    except aiohttp.WSServerHandshakeError as error:
        status = errors.Status(code=error.status, message=f"websocket refused: {error.message}")
        raise errors.from_status(f"{method} {path}", status) from error
    except TimeoutError as error:
        state = (
            "no answer in time" if progress.sent else "no connection in time; check the network and the server's load"
        )
        raise errors.TransportError(f"{method} {path}: {state}", sent=progress.sent) from error
    except (aiohttp.ClientError, OSError) as error:
        why = str(error) or type(error).__name__
        state = "the connection broke" if progress.sent else "no connection; check address, certificate and network"
        raise errors.TransportError(f"{method} {path}: {state}: {why}", sent=progress.sent) from error
