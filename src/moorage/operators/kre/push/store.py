"""The object store of a Runtime, reached by a port-forward: an archive is there, or is brought there.

One connection for each request, as the store ends it with its answer. What can go wrong: the store can't be reached
(TransportError of `kube`), or says no (StoreError).
"""

from __future__ import annotations

import asyncio
import datetime
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import BinaryIO, Protocol

import msgspec

from moorage.operators.kre import kinds

from . import signing

HOST = f"{kinds.workload('minio')}:9000"
ANSWER_LIMIT = 64 << 10  # bytes that are read of an answer
ANSWER_WITHIN = 60.0
"""Seconds, once all is sent."""

_CHUNK = 32 << 10
_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d{1,9})(?=\r\n|$)")


class StoreError(Exception):
    """The store's own words."""


class Stream(Protocol):
    """A connection."""

    async def send(self, data: bytes) -> None:
        """All of it."""

    async def receive(self) -> bytes:
        """What comes next; empty at the end."""


Connect = Callable[[], AbstractAsyncContextManager[Stream]]


class _Answer(msgspec.Struct, frozen=True):
    status: int
    headers: dict[str, str]
    body: bytes


class Store:
    """One Runtime's. `connect` gives a connection to it."""

    def __init__(self, connect: Connect, login: signing.Login) -> None:
        self._connect, self._login = connect, login

    async def prepare(self, bucket: str) -> None:
        """Have the bucket. Raises StoreError."""
        answer = await self._ask("PUT", f"/{bucket}", signing.NOTHING)
        if answer.status not in (200, 409):  # or it is there
            raise _refused(f"bucket {bucket}", answer)

    async def has(self, bucket: str, key: str, size: int) -> bool:
        """Whether there is an object of so many bytes. Raises StoreError."""
        answer = await self._ask("HEAD", f"/{bucket}/{key}", signing.NOTHING)
        if answer.status not in (200, 404):
            raise _refused(f"object {bucket}/{key}", answer)
        return answer.status == 200 and answer.headers.get("content-length") == str(size)

    async def put(
        self, bucket: str, key: str, file: BinaryIO, size: int, content: str, sent: Callable[[int], None]
    ) -> None:
        """Bring the file there, whose SHA-256 is `content`, which the store proves; `sent` is told of each piece."""
        answer = await self._ask("PUT", f"/{bucket}/{key}", content, _pieces(file, sent), size)
        if answer.status != 200:
            raise _refused(f"object {bucket}/{key}", answer)

    async def _ask(
        self, method: str, path: str, content: str, body: AsyncIterator[bytes] | None = None, size: int = 0
    ) -> _Answer:
        now = datetime.datetime.now(datetime.UTC)
        escaped, headers = signing.headers(method, HOST, path, content, self._login, now)
        headers |= {"content-length": str(size), "connection": "close"}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        async with self._connect() as stream:
            await stream.send(f"{method} {escaped} HTTP/1.1\r\n{head}\r\n".encode())
            if body is not None:
                async for piece in body:
                    await stream.send(piece)
            try:
                async with asyncio.timeout(ANSWER_WITHIN):
                    return _answer(await _received(stream, bodiless=method == "HEAD"))
            except TimeoutError:
                raise StoreError(f"the store gives no answer within {ANSWER_WITHIN:g} s") from None


async def _pieces(file: BinaryIO, sent: Callable[[int], None]) -> AsyncIterator[bytes]:
    file.seek(0)
    while piece := file.read(_CHUNK):
        yield piece
        sent(len(piece))


async def _received(stream: Stream, *, bodiless: bool) -> bytes:
    """All of an answer; where it does not say how long it is, it ends with the connection."""
    received = bytearray()
    while len(received) <= ANSWER_LIMIT and not _is_whole(received, bodiless) and (part := await stream.receive()):
        received += part
    return bytes(received)


def _is_whole(received: bytearray, bodiless: bool) -> bool:
    head, found, body = received.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    return bool(found) and (bodiless or (length is not None and len(body) >= int(length[1])))


def _answer(received: bytes) -> _Answer:
    head, found, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ", 2)
    if not found or len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdigit():
        raise StoreError("what answers there is no object store")
    pairs = (line.partition(":") for line in lines)
    return _Answer(int(words[1]), {name.strip().lower(): value.strip() for name, _, value in pairs}, body)


def _refused(what: str, answer: _Answer) -> StoreError:
    text = answer.body.decode("utf-8", "replace")
    words = [text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0][:200] for tag in ("Code", "Message")]
    said = ": ".join(word for word in words if word and word.isprintable())
    return StoreError(f"the store says {answer.status} to {what}{f': {said}' if said else ''}")
