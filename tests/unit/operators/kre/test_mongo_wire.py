"""One connection to mongo, byte by byte: what is taken for an answer, and what of a login is believed."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import struct
from collections.abc import AsyncIterator, Callable
from typing import Any

import bson
import pytest

from moorage.operators.kre.runtime import mongo_wire

Answer = Callable[[int, dict[str, Any]], bytes]


def message(answered: int, document: dict[str, Any], *, code: int = 2013, flags: int = 0, kind: int = 0) -> bytes:
    body = struct.pack("<iB", flags, kind) + bson.encode(document)
    return struct.pack("<iiii", 16 + len(body), 7, answered, code) + body


@contextlib.asynccontextmanager
async def talking(answer: Answer, *, closing: bool = False) -> AsyncIterator[mongo_wire.Connection]:
    """A connection to a server that answers each message with these bytes, or closes after the first."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                length, number, _, _ = struct.unpack("<iiii", await reader.readexactly(16))
                asked = bson.decode((await reader.readexactly(length - 16))[5:])
                writer.write(answer(number, asked))
                await writer.drain()
                if closing:
                    break
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, mongo_wire.connected("127.0.0.1", server.sockets[0].getsockname()[1]) as connection:
        yield connection


async def test_a_command_and_its_answer() -> None:
    """Each is asked in its database, under a number of its own."""
    asked: list[tuple[int, dict[str, Any]]] = []

    def answer(number: int, command: dict[str, Any]) -> bytes:
        asked.append((number, command))
        return message(number, {"ok": 1.0, "is": "so"})

    async with talking(answer) as mongo:
        for _ in range(2):
            assert {"ok": 1.0, "is": "so"} == await mongo.command("data", {"ping": 1})
    assert [(1, {"ping": 1, "$db": "data"}), (2, {"ping": 1, "$db": "data"})] == asked


@pytest.mark.parametrize(
    ("told", "code", "words"),
    [
        ({"ok": 0.0, "code": 13, "errmsg": "not you"}, 13, "not you"),
        ({"ok": 0}, 0, "it does not say why"),
        ({"code": "13", "errmsg": ["x"]}, 0, r"\['x'\]"),
    ],
    ids=["refused", "without words", "of other types"],
)
async def test_a_refusal(told: dict[str, Any], code: int, words: str) -> None:
    async with talking(lambda number, _: message(number, told)) as mongo:
        with pytest.raises(mongo_wire.FailedError, match=words) as failed:
            await mongo.command("data", {"ping": 1})
    assert code == failed.value.code


GOOD = {"ok": 1.0}
UNREADABLE: dict[str, Answer] = {
    "another protocol": lambda number, _: message(number, GOOD, code=1),
    "an answer to something else": lambda number, _: message(number + 1, GOOD),
    "flags": lambda number, _: message(number, GOOD, flags=1),
    "another section": lambda number, _: message(number, GOOD, kind=1),
    "nothing in it": lambda number, _: struct.pack("<iiii", 16, 7, number, 2013),
    "a negative length": lambda number, _: struct.pack("<iiii", -1, 7, number, 2013),
    "too much": lambda number, _: struct.pack("<iiii", mongo_wire.MOST_BYTES + 1, 7, number, 2013),
    "a web server": lambda _, __: b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "no document": lambda number, _: struct.pack("<iiii", 31, 7, number, 2013) + bytes(15),
}


@pytest.mark.parametrize("answer", UNREADABLE.values(), ids=UNREADABLE)
async def test_what_is_no_answer(answer: Answer) -> None:
    async with talking(answer) as mongo:
        with pytest.raises(mongo_wire.UnreadableError):
            await mongo.command("data", {"ping": 1})


@pytest.mark.parametrize("part", [0, 10, 20])
async def test_half_an_answer(part: int) -> None:
    async with talking(lambda number, _: message(number, GOOD)[:part], closing=True) as mongo:
        with pytest.raises(EOFError):
            await mongo.command("data", {"ping": 1})


def challenge(nonce: str = "{mine}more", salt: str = "c2FsdHNhbHQ=", rounds: object = 4096) -> Callable[[str], str]:
    return lambda mine: f"r={nonce.format(mine=mine)},s={salt},i={rounds}"


LIES = {
    "too few rounds": (challenge(rounds=1), "a login of 1 rounds"),
    "too many": (challenge(rounds=mongo_wire.MOST_ROUNDS + 1), "a login of 200001 rounds"),
    "rounds that are none": (challenge(rounds="x"), "can't be read"),
    "rounds without end": (challenge(rounds="9" * 5000), "can't be read"),
    "another's login": (challenge(nonce="another"), "or one of another's"),
    "no salt": (challenge(salt="%"), "can't be read"),
    "other words": (lambda _: "e=other-error", "can't be read"),
}


@pytest.mark.parametrize(("lie", "words"), LIES.values(), ids=LIES)
async def test_a_challenge_that_is_not_taken(lie: Callable[[str], str], words: str) -> None:
    def answer(number: int, command: dict[str, Any]) -> bytes:
        assert "saslStart" in command, "nothing is told of the password"
        mine = bytes(command["payload"]).decode().rpartition("r=")[2]
        return message(number, {"ok": 1.0, "conversationId": 1, "done": False, "payload": lie(mine).encode()})

    async with talking(answer) as mongo:
        with pytest.raises(mongo_wire.UnreadableError, match=words):
            await mongo.login("admin", "secret")


@pytest.mark.parametrize("payload", [None, "text", 1])
async def test_a_login_without_a_challenge(payload: object) -> None:
    async with talking(lambda number, _: message(number, {"ok": 1.0, "payload": payload})) as mongo:
        with pytest.raises(mongo_wire.UnreadableError, match="a login without an answer"):
            await mongo.login("admin", "secret")


async def test_a_name_with_signs_of_the_protocol() -> None:
    told: list[str] = []

    def answer(number: int, command: dict[str, Any]) -> bytes:
        told.append(bytes(command["payload"]).decode())
        return message(number, {"ok": 0.0, "errmsg": "enough"})

    async with talking(answer) as mongo:
        with pytest.raises(mongo_wire.FailedError):
            await mongo.login("a=b,c", "secret")
    assert told[0].startswith("n,,n=a=3Db=2Cc,r=")
    assert 24 <= len(base64.b64decode(told[0].rpartition("r=")[2]))
