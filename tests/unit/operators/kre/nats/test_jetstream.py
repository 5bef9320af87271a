"""JetStream asked and told: against a server in memory, and against a real one where there is one."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage.operators import asking
from moorage.operators.kre import kinds, names
from moorage.operators.kre.version import jetstream, streams
from tests.unit.operators.kre import nats_stub, versions

from . import nats_processes

WANTED = streams.wanted(names.Names("demo", "v1"), versions.spec().graph, "one", 1, 60.0)
STREAM, OBJECTS, *_ = WANTED


@contextlib.asynccontextmanager
async def real(folder: Path) -> AsyncIterator[int]:
    """A NATS server of its own; its port."""
    binary = nats_processes.binary()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = (binary, "-js", "-sd", str(folder), "-a", "127.0.0.1", "-p", str(port), "-l", str(folder / "log"))
    server = await asyncio.create_subprocess_exec(*command)
    try:
        async with asyncio.timeout(20):
            while not await answers(port):
                await asyncio.sleep(0.05)
        yield port
    finally:
        server.terminate()
        await server.wait()


async def answers(port: int) -> bool:
    try:
        async with jetstream.connected("127.0.0.1", port) as it:
            await it.streams()
    except asking.AskError:
        return False
    return True


@pytest.fixture(params=["memory", "real"])
async def port(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[int]:
    if request.param == "real":
        async with real(tmp_path) as found:
            yield found
        return
    async with nats_stub.NatsStub().running() as stub:
        yield stub.port


@pytest.fixture
async def stub() -> AsyncIterator[nats_stub.NatsStub]:
    async with nats_stub.NatsStub().running() as made:
        yield made


async def make_all(it: jetstream.JetStream) -> None:
    for each in WANTED:
        await it.put_stream(each.config)
        for consumer in each.consumers.values():
            await it.put_consumer(each.name, consumer)


async def test_all_of_a_version_is_made_and_made_again(port: int) -> None:
    """What NATS then has is what is wanted, by the very comparison that decides; a second time changes nothing."""
    async with jetstream.connected("127.0.0.1", port) as it:
        await make_all(it)
        first = await it.streams()
        await make_all(it)

        assert first == await it.streams()
        assert {each.name for each in WANTED} == first.keys()
        assert {each.name: () for each in WANTED} == {
            each.name: streams.differs(each.config, first[each.name]) for each in WANTED
        }
        read = await it.consumers(STREAM.name)
        assert STREAM.consumers.keys() == read.keys()
        assert {streams.ConsumerSeen("one", 60_000_000_000, 0)} == set(read.values())
        assert {} == await it.consumers("nobody")


async def test_a_stream_changes_in_place(port: int) -> None:
    """Subjects come and go, and what somebody else has set on it stays."""
    async with jetstream.connected("127.0.0.1", port) as it:
        await it.put_stream({**STREAM.config, "max_msgs": 500, "description": "mine"})
        more = {**STREAM.config, "subjects": [*STREAM.config["subjects"], f"{STREAM.name}.more"]}
        await it.put_stream(more)
        wide = (await it.streams())[STREAM.name]
        await it.put_stream(STREAM.config)
        found = await it._tell(f"STREAM.INFO.{STREAM.name}", None)

        assert f"{STREAM.name}.more" in wide.subjects
        config = jetstream._decoded(found, jetstream._Whole).config
        assert set(STREAM.config["subjects"]) == set(config["subjects"])
        assert (500, "mine") == (config["max_msgs"], config["description"])


async def test_what_bears_another_mark_or_none_is_never_touched(port: int) -> None:
    """Neither changed nor removed, and its consumers neither."""
    other = {**STREAM.config, "metadata": {kinds.OF_VERSION: "other"}}
    plain = {key: value for key, value in OBJECTS.config.items() if key != "metadata"}
    async with jetstream.connected("127.0.0.1", port) as it:
        await it.put_stream(other)
        await it._change(f"STREAM.CREATE.{OBJECTS.name}", plain)
        consumer = {**next(iter(STREAM.consumers.values())), "metadata": {}}
        await it.put_consumer(STREAM.name, consumer)
        before = await it.streams()
        for config in (STREAM.config, OBJECTS.config):
            with pytest.raises(asking.RefusedError, match="bears no mark of this version"):
                await it.put_stream(config)
            with pytest.raises(asking.RefusedError, match="bears no mark of this version"):
                await it.drop_stream(config["name"], "one")
        with pytest.raises(asking.RefusedError, match="bears no mark of this version"):
            await it.drop_consumer(STREAM.name, consumer["durable_name"], "one")

        assert before == await it.streams()
        assert ("other", "") == (before[STREAM.name].mark, before[OBJECTS.name].mark)
        assert {consumer["durable_name"]} == (await it.consumers(STREAM.name)).keys()


async def test_what_is_removed_is_gone_and_gone_already_is_gone(port: int) -> None:
    """Streams and consumers."""
    name = next(iter(STREAM.consumers))
    async with jetstream.connected("127.0.0.1", port) as it:
        await make_all(it)
        for _ in range(2):
            await it.drop_consumer(STREAM.name, name, "one")
        assert STREAM.consumers.keys() - {name} == (await it.consumers(STREAM.name)).keys()
        for _ in range(2):
            for each in WANTED:
                await it.drop_stream(each.name, "one")

        assert {} == await it.streams()


async def test_what_a_node_has_not_taken_is_counted(tmp_path: Path) -> None:
    """By a real server: a message is kept for the consumer that is there before it."""
    async with real(tmp_path) as port, jetstream.connected("127.0.0.1", port) as it:
        await make_all(it)
        await it._client.request(f"{STREAM.name}.entrypoint", b"call", timeout=5)
        async with asyncio.timeout(20):  # a consumer hears of a message after who has sent it
            read = await it.consumers(STREAM.name)
            while not any(each.pending for each in read.values()):
                await asyncio.sleep(0.05)
                read = await it.consumers(STREAM.name)

    assert {f"{STREAM.name}-entrypoint-first": 1, f"{STREAM.name}-first-last": 0} == {
        name: each.pending for name, each in read.items()
    }


# --- a server that fails, or means harm -------------------------------------------------------------------------------


async def test_nobody_there(unused_tcp_port: int) -> None:
    """It is said in the words of the system."""
    with pytest.raises(asking.AskError, match=r"Connect call failed"):
        async with jetstream.connected("127.0.0.1", unused_tcp_port):
            pass


@pytest.fixture
def unused_tcp_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


async def test_without_jetstream(stub: nats_stub.NatsStub) -> None:
    """NATS answers, and nobody keeps streams."""
    stub.jetstream = False
    async with jetstream.connected("127.0.0.1", stub.port) as it:
        with pytest.raises(asking.AskError, match="switched off there, or has no leader"):
            await it.streams()


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (nats_stub.ApiError(503, 10008, "JetStream system temporarily unavailable"), asking.AskError),
        (nats_stub.ApiError(400, 10047, "insufficient storage resources available"), asking.RefusedError),
    ],
)
async def test_its_own_words(stub: nats_stub.NatsStub, error: nats_stub.ApiError, expected: type[Exception]) -> None:
    """With NATS' own code; what may pass by itself is no refusal."""
    stub.refuse["STREAM.CREATE"] = error
    async with jetstream.connected("127.0.0.1", stub.port) as it:
        with pytest.raises(expected) as found:
            await it.put_stream(STREAM.config)

    assert expected is type(found.value)
    assert f"{error} ({error.body['err_code']})" == str(found.value)


async def test_an_answer_that_is_lost_may_be_done(stub: nats_stub.NatsStub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a change; of a question it is only no answer."""
    monkeypatch.setattr(jetstream, "REQUEST_LIMIT", 0.1)
    async with jetstream.connected("127.0.0.1", stub.port) as it:
        stub.silent = "STREAM.CREATE"
        with pytest.raises(asking.AskError, match=r"gives no answer within 0\.1 s") as changed:
            await it.put_stream(STREAM.config)
        stub.silent = "STREAM.LIST"
        with pytest.raises(asking.AskError) as asked:
            await it.streams()

    assert (True, False) == (changed.value.maybe, asked.value.maybe)
    assert STREAM.name in stub.streams


@pytest.mark.parametrize(
    "said",
    [
        b"[",
        b"[]",
        b'{"streams": 1}',
        b'{"streams": [{"config": {"name": "a b"}}], "total": 1}',
        b'{"streams": [{"config": {"name": "a\\r\\nPUB x 0"}}], "total": 1}',
        b'{"streams": [{"config": {"name": ""}}], "total": 1}',
        b'{"streams": [{"config": {"name": "a", "subjects": "b"}}], "total": 1}',
        b'{"streams": [{"config": {"name": "a", "metadata": {"b": 1}}}], "total": 1}',
        b'{"streams": [{"config": {"name": "a", "num_replicas": "many"}}], "total": 1}',
        b'{"error": {"code": "x"}}',
        b"[" * 100_000,
    ],
)
async def test_what_can_t_be_read(stub: nats_stub.NatsStub, said: bytes) -> None:
    """It is told, and nothing of it is believed."""
    stub.answer = lambda _: said
    async with jetstream.connected("127.0.0.1", stub.port) as it:
        with pytest.raises(asking.AskError, match="can't be read"):
            await it.streams()


async def test_answers_are_bounded(stub: nats_stub.NatsStub, monkeypatch: pytest.MonkeyPatch) -> None:
    """In bytes, as in entries."""
    monkeypatch.setattr(jetstream, "ANSWERS_LIMIT", 100_000)
    monkeypatch.setattr(jetstream, "REQUEST_LIMIT", 2.0)
    stub.answer = lambda _: b'{"streams": [], "x": "' + b"y" * 400_000 + b'"}'
    async with jetstream.connected("127.0.0.1", stub.port) as it:
        with pytest.raises(asking.AskError):
            await it.streams()
    monkeypatch.setattr(jetstream, "REQUEST_LIMIT", 30.0)
    monkeypatch.setattr(jetstream, "MOST_STREAMS", 5)
    stub.answer = endless()
    async with jetstream.connected("127.0.0.1", stub.port) as it:
        with pytest.raises(asking.AskError, match="at most 5 are looked at"):
            await it.streams()


def endless() -> Any:
    """Each page has one more, and says that there are many."""
    numbers = iter(range(1000))
    return lambda _: b'{"streams": [{"config": {"name": "s%d"}}], "total": 1000000}' % next(numbers)


@pytest.mark.parametrize(
    "greeting", [b"INFO {\r\n", b"HTTP/1.1 200 OK\r\n\r\n", b"INFO []\r\n", b"\r\n", b"INFO " + b"[" * 50_000 + b"\r\n"]
)
async def test_who_is_no_nats(greeting: bytes) -> None:
    """Whatever a stranger says first."""

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(greeting)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        with pytest.raises(asking.AskError):
            async with jetstream.connected("127.0.0.1", server.sockets[0].getsockname()[1]):
                pass
