"""One connection to a mongo, for as long as its questions take: its messages, and its login by SCRAM-SHA-256.

Whoever answers is whatever image the namespace's users run. So an answer is bounded in size, a login in its rounds, and
nothing goes on in the background: what a server does to a connection ends with it. A client of pymongo's has monitors
that connect by themselves, takes 48 MB for an answer, and as many rounds as it is told.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import hashlib
import hmac
import itertools
import secrets
import struct
from collections.abc import AsyncIterator
from typing import Any

import bson
from bson import errors as bson_errors
from pymongo import saslprep

Document = dict[str, Any]

MOST_BYTES = 2**20
"""Of one answer."""

MOST_ROUNDS = 200_000
"""Of a login; mongo's own are 15,000, and as many as this take some 100 ms, in a thread."""

_OP_MSG = 2013
_HEADER = struct.Struct("<iiii")  # length, number, number that is answered, code
_PLAIN = bytes(5)  # no flags, and a section that is one document


class UnreadableError(Exception):
    """What came is none of mongo's answers, or is beyond what is read of one."""


class FailedError(Exception):
    """The server answered that it does not do it; by its own words."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code


@contextlib.asynccontextmanager
async def connected(address: str, port: int) -> AsyncIterator[Connection]:
    """A connection that is closed with the context. Raises OSError."""
    reader, writer = await asyncio.open_connection(address, port)
    try:
        yield Connection(reader, writer)
    finally:
        writer.transport.abort()  # what was not sent by now need not be
        with contextlib.suppress(OSError):
            await writer.wait_closed()


class Connection:
    """All of it raises OSError and EOFError where the connection breaks, and UnreadableError."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._numbers = itertools.count(1)

    async def command(self, database: str, command: Document) -> Document:
        """What it comes to. Raises FailedError."""
        number, body = next(self._numbers), _PLAIN + bson.encode({**command, "$db": database})
        self._writer.write(_HEADER.pack(_HEADER.size + len(body), number, 0, _OP_MSG) + body)
        await self._writer.drain()
        answer = await self._answer(number)
        if answer.get("ok") != 1:
            code = answer.get("code")
            raise FailedError(code if isinstance(code, int) else 0, str(answer.get("errmsg") or "it does not say why"))
        return answer

    async def login(self, user: str, password: str) -> None:
        """As that user of `admin`; the server proves that it knows the password too. Raises FailedError."""
        scram = _Scram(user, password)
        start = {"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": scram.first()}
        answer = await self.command("admin", {**start, "options": {"skipEmptyExchange": True}})
        talk = {"saslContinue": 1, "conversationId": answer.get("conversationId")}
        answer = await self.command("admin", {**talk, "payload": await scram.proof(_payload(answer))})
        scram.verify(_payload(answer))
        if not answer.get("done"):  # it wants a last empty word
            await self.command("admin", {**talk, "payload": b""})

    async def _answer(self, number: int) -> Document:
        length, _, answered, code = _HEADER.unpack(await self._reader.readexactly(_HEADER.size))
        if code != _OP_MSG or answered != number or not _HEADER.size + len(_PLAIN) < length <= MOST_BYTES:
            raise UnreadableError(f"an answer of {length} bytes that is none of mongo's")
        body = await self._reader.readexactly(length - _HEADER.size)
        if not body.startswith(_PLAIN):
            raise UnreadableError("an answer of other parts than one document")
        try:
            found: Document = bson.decode(body[len(_PLAIN) :])
        except (bson_errors.InvalidBSON, RecursionError) as error:
            raise UnreadableError(f"an answer that can't be read: {error}") from error
        return found


def _payload(answer: Document) -> bytes:
    found = answer.get("payload")
    if not isinstance(found, bytes):
        raise UnreadableError("a login without an answer")
    return found


class _Scram:
    """One login, by RFC 5802 and 7677."""

    def __init__(self, user: str, password: str) -> None:
        try:
            name, self._password = saslprep.saslprep(user), saslprep.saslprep(password).encode()
        except ValueError as error:
            raise FailedError(0, f"no such name or password can be told: {error}") from error
        name = name.replace("=", "=3D").replace(",", "=2C")
        self._nonce = base64.b64encode(secrets.token_bytes(24)).decode()
        self._bare = f"n={name},r={self._nonce}"
        self._signature = b""

    def first(self) -> bytes:
        return f"n,,{self._bare}".encode()

    async def proof(self, challenge: bytes) -> bytes:
        """That the password is known, to a server that has said how to tell it."""
        try:
            text = challenge.decode()
            parts = dict(part.split("=", 1) for part in text.split(","))
            nonce, salt, rounds = parts["r"], base64.b64decode(parts["s"], validate=True), int(parts["i"])
        except (UnicodeDecodeError, ValueError, KeyError, binascii.Error) as error:
            raise UnreadableError("a login that can't be read") from error
        if not nonce.startswith(self._nonce) or not 4096 <= rounds <= MOST_ROUNDS:
            raise UnreadableError(f"a login of {rounds} rounds, or one of another's")
        without = f"c=biws,r={nonce}"
        said = f"{self._bare},{text},{without}".encode()
        salted = await asyncio.to_thread(hashlib.pbkdf2_hmac, "sha256", self._password, salt, rounds)
        key = hmac.digest(salted, b"Client Key", "sha256")
        mine = hmac.digest(hashlib.sha256(key).digest(), said, "sha256")
        proof = bytes(one ^ other for one, other in zip(key, mine, strict=True))
        self._signature = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), said, "sha256")
        return f"{without},p={base64.b64encode(proof).decode()}".encode()

    def verify(self, last: bytes) -> None:
        """Whoever has let everybody in does not know the password, and is not the one that was meant."""
        if not hmac.compare_digest(last, b"v=" + base64.b64encode(self._signature)):
            raise UnreadableError("it does not prove that it knows the password")
