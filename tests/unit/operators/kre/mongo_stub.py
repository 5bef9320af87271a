"""A mongo on this machine that speaks the wire protocol: it has a user, is a replica set or is none yet, and can fail.

Enough for what moorage asks: hello, SCRAM-SHA-256, replSetInitiate, usersInfo, createUser, updateUser. It keeps what
was done, so that an answer that is lost is lost alone.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import struct
from collections.abc import AsyncIterator
from typing import Any

import bson

from tests import listening

OP_REPLY, OP_QUERY, OP_MSG = 1, 2004, 2013
SALT, ROUNDS = b"0123456789abcdef", 4096
Document = dict[str, Any]


class MongoStub:
    """Its `port` is known once it runs. `lose` names commands that are carried out and not answered."""

    def __init__(self, user: str = "admin", password: str = "secret") -> None:
        self.user, self.password = user, password
        self.config: Document | None = None
        self.primary = True  # once it is a replica set
        self.users: dict[tuple[str, str], str] = {}  # their passwords, by database and name; the administrator aside
        self.asked: list[str] = []
        self.refused: dict[str, tuple[int, str]] = {}
        self.lose: set[str] = set()
        self.rounds = ROUNDS
        self.lets_in = False  # everybody, whatever they tell
        self.padding = 0  # bytes that nobody asked for, in each answer
        self.port = 0

    @contextlib.asynccontextmanager
    async def running(self, address: str = "127.0.0.1", port: int = 0) -> AsyncIterator[MongoStub]:
        async with listening.served(lambda *line: _Talk(self, *line).go_on(), address, port) as self.port:
            yield self

    def hello(self) -> Document:
        sizes = {"maxBsonObjectSize": 2**24, "maxMessageSizeBytes": 48_000_000, "maxWriteBatchSize": 100_000}
        told: Document = {"ok": 1.0, "helloOk": True, "minWireVersion": 0, "maxWireVersion": 25, **sizes}
        told["saslSupportedMechs"] = ["SCRAM-SHA-256"]
        if self.config is None:
            return told | {"isreplicaset": True, "isWritablePrimary": False, "ismaster": False, "secondary": False}
        hosts = [member["host"] for member in self.config["members"]]
        primary = {"isWritablePrimary": self.primary, "ismaster": self.primary, "secondary": not self.primary}
        return told | primary | {"setName": self.config["_id"], "hosts": hosts, "me": hosts[0]}

    def carry_out(self, name: str, command: Document, *, known: bool) -> Document:
        """What a command comes to; `known`: whoever asks has told the password."""
        if name in ("hello", "ismaster", "isMaster"):
            return self.hello()
        if not known:
            return failed(13, "command requires authentication")
        self.asked.append(name)
        if name in self.refused:
            return failed(*self.refused[name])
        match name:
            case "replSetInitiate":
                if self.config is not None:
                    return failed(23, "already initialized")
                self.config = command[name]
            case "usersInfo":
                found = [{"user": command[name]}] if (command["$db"], command[name]) in self.users else []
                return {"ok": 1.0, "users": found}
            case "createUser":
                if (command["$db"], command[name]) in self.users:
                    return failed(51003, "the user is there")
                self.users[command["$db"], command[name]] = command["pwd"]
            case "updateUser":
                who = command["$db"], command[name]
                if who == ("admin", self.user):
                    self.password = command["pwd"]
                elif who in self.users:
                    self.users[who] = command["pwd"]
                else:
                    return failed(11, "there is no such user")
            case "ping" | "endSessions":
                pass
            case _:
                return failed(59, f"no such command: {name}")
        return {"ok": 1.0}


def failed(code: int, words: str) -> Document:
    return {"ok": 0.0, "code": code, "codeName": "Failed", "errmsg": words}


class _Talk:
    """One connection."""

    def __init__(self, mongo: MongoStub, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._mongo, self._reader, self._writer = mongo, reader, writer
        self._known = False
        self._first = self._server_first = ""

    async def go_on(self) -> None:
        while True:
            length, number, _, code = struct.unpack("<iiii", await self._reader.readexactly(16))
            body = await self._reader.readexactly(length - 16)
            command = _query(body) if code == OP_QUERY else bson.decode(body[5:])
            name = next(iter(command))
            answer = self._answer(name, command)
            if name in self._mongo.lose:
                return
            document = bson.encode(answer | {"padding": bytes(self._mongo.padding)})
            if code == OP_QUERY:
                self._send(number, OP_REPLY, struct.pack("<iqii", 8, 0, 0, 1) + document)
            else:
                self._send(number, OP_MSG, struct.pack("<iB", 0, 0) + document)
            await self._writer.drain()

    def _send(self, number: int, code: int, body: bytes) -> None:
        self._writer.write(struct.pack("<iiii", 16 + len(body), 0, number, code) + body)

    def _answer(self, name: str, command: Document) -> Document:
        match name:
            case "saslStart":
                return self._challenge(bytes(command["payload"]).decode())
            case "saslContinue":
                return self._prove(bytes(command["payload"]).decode())
        return self._mongo.carry_out(name, command, known=self._known)

    def _challenge(self, text: str) -> Document:
        self._first = text.split(",", 2)[2]
        nonce = self._first.rpartition("r=")[2]
        self._server_first = f"r={nonce}more,s={base64.b64encode(SALT).decode()},i={self._mongo.rounds}"
        return {"ok": 1.0, "conversationId": 1, "done": False, "payload": self._server_first.encode()}

    def _prove(self, text: str) -> Document:
        without, _, proof = text.rpartition(",p=")
        salted = hashlib.pbkdf2_hmac("sha256", self._mongo.password.encode(), SALT, self._mongo.rounds)
        key = hmac.digest(salted, b"Client Key", "sha256")
        stored = hashlib.sha256(key).digest()
        said = f"{self._first},{self._server_first},{without}".encode()
        signature = hmac.digest(stored, said, "sha256")
        expected = bytes(one ^ other for one, other in zip(key, signature, strict=True))
        user = self._first.split(",")[0].removeprefix("n=")
        right = user == self._mongo.user and base64.b64decode(proof) == expected
        if not right and not self._mongo.lets_in:
            return failed(18, "Authentication failed.")
        self._known = True
        server = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), said, "sha256")
        return {"ok": 1.0, "conversationId": 1, "done": True, "payload": b"v=" + base64.b64encode(server)}


def _query(body: bytes) -> Document:
    """The document of an OP_QUERY: flags, the collection's name, skip and limit stand before it."""
    found: Document = bson.decode(body[body.index(b"\0", 4) + 1 + 8 :])
    return found
