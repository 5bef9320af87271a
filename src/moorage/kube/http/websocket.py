"""Websockets to an API server, for `exec` and port-forward: of all that is asked of it what is not plain HTTP.

Imported when a socket is opened, not before: its library costs more time to import than all else of `kube`, and few
processes open one. What can go wrong: the ApiError of a handshake that is refused, else `TransportError`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence

import aiohttp
import yarl

from moorage.kube import errors
from moorage.kube.credentials import Credentials

__all__ = ["Websocket", "opened"]


class _Connector(aiohttp.TCPConnector):
    """Notes when the handshake may have left."""

    connected = False

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[aiohttp.tracing.Trace], timeout: aiohttp.ClientTimeout
    ) -> aiohttp.connector.Connection:
        connection = await super().connect(req, traces, timeout)
        self.connected = True
        return connection


class Websocket:
    """An open one."""

    def __init__(self, ws: aiohttp.ClientWebSocketResponse, path: str) -> None:
        self._ws = ws
        self._path = path
        self.protocol = ws.protocol or ""

    async def frames(self) -> AsyncIterator[bytes]:
        """Binary messages until the other side closes. Raises TransportError when it breaks."""
        async for message in self._ws:
            if message.type is aiohttp.WSMsgType.ERROR:
                raise errors.TransportError(f"websocket {self._path} broke: {self._ws.exception()}", sent=True)
            if message.type is aiohttp.WSMsgType.BINARY:
                yield message.data

    async def send(self, frame: bytes) -> None:
        """One binary message. Raises TransportError when the socket is closed or breaks."""
        try:
            await self._ws.send_bytes(frame)
        except (aiohttp.ClientError, OSError) as error:
            raise errors.TransportError(f"websocket {self._path} broke: {error}", sent=True) from error


@contextlib.asynccontextmanager
async def opened(
    credentials: Credentials,
    target: str,
    protocols: Sequence[str],
    agent: str,
    timeout: float,
    headers: Mapping[str, str],
) -> AsyncIterator[Websocket]:
    """A websocket to `target`, path and query as they go over the wire; `timeout` seconds hold for the handshake.

    `headers` are sent beside those of the credentials.
    """
    path = target.partition("?")[0]
    tls = credentials.tls()
    connector = _Connector(limit=0, ssl=True if tls is None else tls)
    async with aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar(), headers={"User-Agent": agent}, trust_env=False
    ) as session:
        try:
            async with asyncio.timeout(timeout):
                ws = await session.ws_connect(
                    yarl.URL(f"{credentials.server}{target}", encoded=True),
                    protocols=tuple(protocols),
                    headers={**headers, **await credentials.headers()},
                    proxy=credentials.proxy or None,
                    server_hostname=credentials.server_name or None,
                    max_msg_size=0,
                )
        except aiohttp.WSServerHandshakeError as error:
            status = errors.Status(code=error.status, message=f"websocket refused: {error.message}")
            raise errors.from_status(f"GET {path}", status) from error
        except (aiohttp.ClientError, OSError) as error:
            why = "no answer in time" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
            raise errors.TransportError(f"websocket {path}: {why}", sent=connector.connected) from error
        try:
            yield Websocket(ws, path)
        finally:
            await ws.close()
