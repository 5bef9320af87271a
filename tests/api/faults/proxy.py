"""A recording TLS proxy between a client and the API server, for faults below HTTP and for clients of other languages.

It ends TLS on both sides, so that a broken connection is a real one: an RST, half a record, silence, a trickle. It logs
in to the API server as the given credentials, or not at all, so that a client's own token counts. `judge` says in one
word what becomes of each request, `judge_chunk` of each piece of an answer (for a watch, an event); HTTP is left as it
is, byte by byte.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import socket
import ssl
import struct
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from moorage.kube import credentials
from tests import listening

from . import faulty

REQUESTS = {
    "refuse": "RST before it is passed on",
    "cut": "passed on, RST at once: perhaps applied",
    "lose": "passed on and carried out, RST instead of the answer",
    "half": "half the answer, then RST",
    "stall": "never passed on, never answered",
    "stall after": "carried out, never answered",
    "drip": "the answer comes in single bytes",
    "401": "told 401",
    "410": "told 410",
    "503": "told 503",
}
CHUNKS = {
    "reset": "RST between two events",
    "half": "half an event, then RST",
    "end": "half an event, then a proper end of TLS",
    "stall": "silence for ever",
    "drip": "the event comes in single bytes",
}
_REASONS = {401: "Unauthorized", 410: "Expired", 503: "ServiceUnavailable"}
_LIMIT = 1 << 24


class Exchange(msgspec.Struct):
    """One request and what became of it."""

    method: str
    path: str  # with its query
    authorization: str = ""
    at: float = 0.0  # monotonic seconds
    status: int = 0
    fault: str = ""
    chunks: int = 0

    @property
    def is_watch(self) -> bool:
        """Whether its answer goes on and on."""
        return "watch=true" in self.path or "watch=1" in self.path


class Certificate:
    """A certificate for this host alone, that vouches for itself."""

    def __init__(self, folder: Path) -> None:
        self.chain, key = folder / "proxy.crt", folder / "proxy.key"
        if not self.chain.exists():
            command = ["openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
            command += ["-days", "30", "-subj", "/CN=proxy", "-addext", "subjectAltName=IP:127.0.0.1"]
            subprocess.run([*command, "-keyout", str(key), "-out", str(self.chain)], check=True, capture_output=True)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.chain, key)


class _Ended(Exception):
    """This connection is over."""


class Proxy:
    """Listens on a port of loopback from `start` to `close`."""

    def __init__(self, upstream: credentials.Credentials, certificate: Certificate, *, anonymous: bool = False) -> None:
        """`anonymous`: without the client certificate of `upstream`."""
        self.judge: Callable[[Exchange], str] = lambda _: ""
        self.judge_chunk: Callable[[Exchange, bytes], str] = lambda it, chunk: ""
        self.exchanges: list[Exchange] = []
        self._certificate, self._address = certificate, urlsplit(upstream.server)
        self._tls = upstream.tls()
        if anonymous and self._tls is not None:
            self._tls = ssl.create_default_context()
            self._tls.check_hostname, self._tls.verify_mode = False, ssl.CERT_NONE
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.url = ""

    async def start(self) -> None:
        """From now on it is reached at `url`."""
        self._server = await asyncio.start_server(
            self._connected, "127.0.0.1", 0, ssl=self._certificate.context, limit=_LIMIT
        )
        self.url = f"https://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        """Nobody gets through any more; what is open breaks."""
        if self._server is not None:
            await listening.close(self._server)
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def kubeconfig(self, path: Path, *, token_file: str = "") -> Path:
        """Write a kubeconfig for it; a client without a token file comes as whom the proxy logs in as."""
        authority = base64.b64encode(self._certificate.chain.read_bytes()).decode()
        user = {"tokenFile": token_file} if token_file else {}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "proxy",
            "clusters": [{"name": "proxy", "cluster": {"server": self.url, "certificate-authority-data": authority}}],
            "users": [{"name": "proxy", "user": user}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}],
        }
        path.write_text(json.dumps(content))
        return path

    @property
    def busiest(self) -> int:
        """The most requests in any one second."""
        return faulty.busiest([it.at for it in self.exchanges])

    # --- one connection ------------------------------------------------------------------------------------------

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        up: _Upstream | None = None
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = await _body(reader, head)
                if up is None:
                    up = await _Upstream.connect(self._address.hostname or "", self._address.port or 443, self._tls)
                await self._exchange(_Side(reader, writer), up, head, body)
        except (asyncio.IncompleteReadError, _Ended, OSError, ssl.SSLError, asyncio.CancelledError):
            _reset(writer)
        finally:
            self._tasks.discard(task)
            if up is not None:
                up.writer.transport.abort()

    async def _exchange(self, client: _Side, up: _Upstream, head: bytes, body: bytes) -> None:
        method, path, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
        it = Exchange(method, path, _header(head, "authorization"), time.monotonic())
        self.exchanges.append(it)
        it.fault = word = self.judge(it)
        match word:
            case "refuse":
                raise _Ended
            case "stall":
                await _silence(client)
            case code if code.isdigit():
                it.status = int(code)
                client.writer.write(_told(int(code)))
                await client.writer.drain()
                return
        up.writer.write(head + body)
        await up.writer.drain()
        if word == "cut":
            raise _Ended
        answer = up.answer(it)
        if word in ("lose", "stall after"):
            async for _ in answer:
                pass
            if word == "lose":
                raise _Ended
            await _silence(client)
        async with contextlib.aclosing(answer):
            async for piece, is_head in answer:
                await self._pass(client, it, piece, is_head)
        if it.status == 101:
            await _tunnel(client, up)

    async def _pass(self, client: _Side, it: Exchange, piece: bytes, is_head: bool) -> None:
        word, writer = it.fault, client.writer
        if not is_head:
            it.chunks += 1
            if it.is_watch and it.chunks > 1:
                word = ""  # what befalls a watch befalls its beginning, else a slow one would lag behind for ever
            word = word or self.judge_chunk(it, piece)
            it.fault = it.fault or word
        match word:
            case "half" if not is_head:
                writer.write(piece[: len(piece) // 2])
                await writer.drain()
                raise _Ended
            case "end" if not is_head:
                writer.write(piece[: len(piece) // 2])
                writer.close()
                await writer.wait_closed()
                raise _Ended
            case "reset" if not is_head:
                raise _Ended
            case "stall" if not is_head:
                await _silence(client)
            case "drip":
                for byte in piece[:100]:
                    writer.write(bytes([byte]))
                    await writer.drain()
                    await asyncio.sleep(0.001)
                piece = piece[100:]
        writer.write(piece)
        await writer.drain()


class _Side(msgspec.Struct):
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class _Upstream(_Side):
    """The connection to the API server that belongs to one of a client's."""

    @classmethod
    async def connect(cls, host: str, port: int, tls: ssl.SSLContext | None) -> _Upstream:
        reader, writer = await asyncio.open_connection(host, port, ssl=tls, limit=_LIMIT)
        return cls(reader, writer)

    async def answer(self, it: Exchange) -> AsyncIterator[tuple[bytes, bool]]:
        """The answer's bytes: (the head, True), then each piece of its body."""
        reader = self.reader
        head = await reader.readuntil(b"\r\n\r\n")
        it.status = int(head.split(b" ", 2)[1])
        yield head, True
        if it.method == "HEAD" or it.status in (101, 204, 304):
            return
        if _header(head, "transfer-encoding").lower() != "chunked":
            left = int(_header(head, "content-length") or 0)
            while left:
                piece = await reader.read(min(left, 1 << 16))
                if not piece:
                    raise _Ended
                left -= len(piece)
                yield piece, False
            return
        while True:
            size = await reader.readuntil(b"\r\n")
            length = int(size.split(b";")[0], 16)
            piece = size + await reader.readexactly(length + 2)
            yield piece, not length
            if not length:
                return


async def _body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    if _header(head, "transfer-encoding").lower() != "chunked":
        return await reader.readexactly(int(_header(head, "content-length") or 0))
    whole = b""
    while True:
        size = await reader.readuntil(b"\r\n")
        length = int(size.split(b";")[0], 16)
        whole += size + await reader.readexactly(length + 2)
        if not length:
            return whole


def _header(head: bytes, name: str) -> str:
    for line in head.decode("latin-1").split("\r\n")[1:]:
        key, _, value = line.partition(":")
        if key.lower() == name:
            return value.strip()
    return ""


async def _tunnel(client: _Side, up: _Side) -> None:
    """Both ways, until one side ends."""

    async def pour(source: asyncio.StreamReader, into: asyncio.StreamWriter) -> None:
        while data := await source.read(1 << 16):
            into.write(data)
            await into.drain()

    ways = [asyncio.create_task(pour(client.reader, up.writer)), asyncio.create_task(pour(up.reader, client.writer))]
    await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    for way in ways:
        way.cancel()
    raise _Ended


async def _silence(client: _Side) -> None:
    """Until the client gives up; its connection would be kept for ever if nobody noticed."""
    while await client.reader.read(1 << 16):
        pass
    raise _Ended


def _reset(writer: asyncio.StreamWriter) -> None:
    """RST, rather than a farewell."""
    connection = writer.get_extra_info("socket")
    if connection is not None:
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def _told(code: int) -> bytes:
    body = json.dumps({"kind": "Status", "code": code, "reason": _REASONS[code], "message": "injected"}).encode()
    head = f"HTTP/1.1 {code} {_REASONS[code]}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body
