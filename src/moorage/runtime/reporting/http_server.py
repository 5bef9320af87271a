"""/healthz, /readyz and /metrics over plain HTTP.

/healthz says no when a watch has had no contact for too long: a silent watch is a dead operator. /readyz says yes once
all caches are filled, leader or not, so that a standby counts as available.

One question for each connection, of which only the first line counts: that is all that probes and scrapers need, and
takes a framework's memory and start-up time from no operator. Who is slow or sends what is no HTTP is hung up on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from http import HTTPStatus

import structlog

from . import telemetry

log = structlog.get_logger(__name__)

PATIENCE = 10.0
"""Seconds that a client gets for its question, and for taking the answer."""

TEXT = "text/plain; charset=utf-8"

Answer = tuple[HTTPStatus, str, bytes]
"""Status, content type, body."""


class Server:
    """Serves what the three callables say."""

    def __init__(
        self,
        *,
        host: str,
        port: int,
        unhealthy: Callable[[], list[str]],
        unready: Callable[[], list[str]],
        metrics: Callable[[], telemetry.Metrics],
    ) -> None:
        self._host, self._port = host, port
        self._unhealthy, self._unready, self._metrics = unhealthy, unready, metrics
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen. Raises OSError when the port is taken."""
        self._server = await asyncio.start_server(self._serve, self._host, self._port, limit=16 << 10)

    async def stop(self) -> None:
        """Close the socket. Questions that are being answered still are."""
        if self._server:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            try:
                async with asyncio.timeout(PATIENCE):
                    asked = (await reader.readuntil(b"\r\n\r\n")).partition(b"\r\n")[0].decode("latin-1").split(" ")
                    if len(asked) == 3 and asked[2].startswith("HTTP/"):
                        writer.write(_encoded(asked[0], self._answer(asked[0], asked[1].partition("?")[0])))
                        await writer.drain()
            finally:
                writer.close()

    def _answer(self, method: str, path: str) -> Answer:
        try:
            return self._look(method, path)
        except Exception:
            log.exception("probe not answered", path=path)
            return HTTPStatus.INTERNAL_SERVER_ERROR, TEXT, b"see the log"

    def _look(self, method: str, path: str) -> Answer:
        if method not in ("GET", "HEAD"):
            return HTTPStatus.METHOD_NOT_ALLOWED, TEXT, b"only to be read"
        match path:
            case "/healthz":
                return _said(self._unhealthy())
            case "/readyz":
                return _said(self._unready())
            case "/metrics":
                return HTTPStatus.OK, "text/plain; version=0.0.4; charset=utf-8", self._metrics().render()
        return HTTPStatus.NOT_FOUND, TEXT, b"there are /healthz, /readyz and /metrics"


def _encoded(method: str, answer: Answer) -> bytes:
    status, kind, body = answer
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode("latin-1") + (b"" if method == "HEAD" else body)


def _said(complaints: list[str]) -> Answer:
    status = HTTPStatus.SERVICE_UNAVAILABLE if complaints else HTTPStatus.OK
    return status, TEXT, ("\n".join(complaints) or "ok").encode()
