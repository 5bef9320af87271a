"""Lists that come as the beginning of a watch, and servers that do not know them, or act as if."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec
import pytest
from kube_fakes import BOX, Box, Clock, FakeServer, Fault, body, end_of_list, line, refusal, until

from moorage.kube import client as kube_client
from moorage.kube.informers import informer, reflector

Cache = informer.Informer[Box]


@pytest.fixture
def server() -> FakeServer:
    return FakeServer(streaming="served")


def names(cache: Cache) -> list[str]:
    return sorted(item.metadata.name for item in cache.items())


def asked(server: FakeServer) -> list[str]:
    return [method for method, *_ in server.requests]


async def test_one_request_lists_and_follows(cache: Cache, server: FakeServer) -> None:
    for number in range(600):
        await server.put(f"box-{number}", quiet=True)
    changes: list[informer.Change[Box]] = []
    cache.subscribe(changes.append)
    cache.start()
    await cache.wait_synced(30)
    await server.put("later")
    await server.remove("box-7")
    await until(lambda: len(changes) == 602)

    assert asked(server) == ["STREAM"]
    assert [change.initial for change in changes] == [True] * 600 + [False] * 2
    assert cache.healthy
    query = server.requests[0][2]
    assert query["watch"] == query["allowWatchBookmarks"] == query["sendInitialEvents"] == "true"
    assert query["resourceVersionMatch"] == "NotOlderThan"
    assert "resourceVersion" not in query  # the state of now, as by a quorum read


async def test_a_cut_is_followed_by_a_watch_from_there(cache: Cache, server: FakeServer) -> None:
    await server.put("box")
    cache.start()
    await cache.wait_synced(30)
    await server.put("box", size=1)
    await until(lambda: cache.items()[0].size == 1)
    await server.cut()
    await until(lambda: server.calls["watch"])

    assert asked(server) == ["STREAM", "WATCH"]
    assert server.requests[1][2]["resourceVersion"] == "102"


async def test_nobody_sees_a_list_before_its_end(cache: Cache, server: FakeServer) -> None:
    for name in ("a", "b"):
        await server.put(name)
    server.list_gate = asyncio.Event()
    cache.start()
    await until(lambda: server.watching)
    for _ in range(50):
        await asyncio.sleep(0)
    assert names(cache) == []
    assert not cache.synced
    server.list_gate.set()
    await cache.wait_synced(30)

    assert names(cache) == ["a", "b"]


async def test_changes_while_the_list_is_sent(cache: Cache, server: FakeServer) -> None:
    sent = [("ADDED", "a", 1), ("ADDED", "b", 2), ("ADDED", "c", 3), ("MODIFIED", "a", 4), ("DELETED", "b", 5)]
    lines = [line(kind, body(name, version, size=version)) for kind, name, version in sent]
    server.faults.append(Fault(chunks=(*lines, end_of_list(6)), silent=True))
    changes: list[informer.Change[Box]] = []
    cache.subscribe(changes.append)
    cache.start()
    await cache.wait_synced(30)

    assert {(c.new and c.new.metadata.name, c.new and c.new.size, c.old) for c in changes} == {
        ("a", 4, None),
        ("c", 3, None),
    }


async def test_what_does_not_fit_hides_only_itself(cache: Cache, server: FakeServer) -> None:
    sent = [("ADDED", "good", 1), ("ADDED", "bad", "x"), ("ADDED", "healed", "x"), ("MODIFIED", "healed", 3)]
    sent += [("ADDED", "gone", "x"), ("DELETED", "gone", "x")]
    lines = [line(kind, {**body(name, 4), "size": size}) for kind, name, size in sent]
    server.faults.append(Fault(chunks=(*lines, end_of_list(6)), silent=True))
    cache.start()
    await cache.wait_synced(30)

    assert names(cache) == ["good", "healed"]
    assert list(cache.unreadable) == [("ns", "bad")]


async def test_a_new_list_tells_of_what_vanished(cache: Cache, server: FakeServer) -> None:
    for name in ("stays", "goes", "changes"):
        await server.put(name)
    changes: list[informer.Change[Box]] = []
    cache.subscribe(changes.append)
    cache.start()
    await cache.wait_synced(30)
    changes.clear()
    await server.remove("goes", quiet=True)
    await server.put("changes", size=1, quiet=True)
    server.forget()
    server.faults.append(Fault(status=410, status_body=refusal(410)))
    await server.cut()
    await until(lambda: server.streamed == 2 and server.watching and len(changes) >= 2)

    told = [((c.new or c.old).metadata.name, c.new and c.new.size) for c in changes]  # type: ignore[union-attr]
    assert told == [("goes", None), ("changes", 1)]


class TestNotServed:
    """Each lack is noticed once, and from then on lists of that kind come in pages."""

    async def pages(self, cache: Cache, server: FakeServer) -> None:
        """The cache gets its list all the same, and the next one does not ask for a stream."""
        cache.start()
        await cache.wait_synced(30)
        await server.put("later")
        await until(lambda: cache.get("ns", "later"))
        assert server.streamed == 1
        assert server.calls["list"] == 1
        other = informer.Informer(cache._reflector._client, reflector.Scope(BOX, "ns"), Box)
        other.start()
        await other.wait_synced(30)
        await other.stop()
        assert server.streamed == 1

    @pytest.mark.parametrize("code", [400, 405, 422])
    async def test_refused(self, cache: Cache, server: FakeServer, clock: Clock, code: int) -> None:
        server.faults.append(Fault(status=code, status_body=refusal(code)))
        await self.pages(cache, server)
        assert clock.slept == []

    @pytest.mark.parametrize("last", [(), (line("BOOKMARK", body("", 9)),)], ids=["ends", "plain-bookmark"])
    async def test_ignored(self, cache: Cache, server: FakeServer, last: tuple[bytes, ...]) -> None:
        await server.put("box")
        server.faults.append(Fault(chunks=(line("ADDED", body("box", 101)), *last), silent=bool(last)))
        await self.pages(cache, server)

    async def test_ignored_in_silence(self, server: FakeServer) -> None:
        server.streaming = "ignored"
        await server.put("box")
        pace = reflector.Pace(connect=0.05, idle=60.0, base=0.001)
        cache = informer.Informer(kube_client.Client(server), reflector.Scope(BOX), Box, pace=pace)
        await self.pages(cache, server)
        await cache.stop()

    async def test_ignored_with_endless_news(self, server: FakeServer) -> None:
        """Events without a bookmark could be a long list, but not for longer than a watch may live."""
        server.streaming = "ignored"
        pace = reflector.Pace(lifetime=0.1, base=0.001)
        cache = informer.Informer(kube_client.Client(server), reflector.Scope(BOX), Box, pace=pace)
        cache.start()
        while not cache.synced:
            await server.put("busy")
            await asyncio.sleep(0.001)

        assert server.streamed == 1
        assert names(cache) == ["busy"]
        await cache.stop()

    async def test_always_broken_off(self, cache: Cache, server: FakeServer, clock: Clock) -> None:
        """Something on the way may cut all that takes long."""
        await server.put("box")
        server.faults += [Fault(chunks=(line("ADDED", body("box", 101)),), broken=True)] * 5
        cache.start()
        await cache.wait_synced(30)
        assert (server.streamed, server.calls["list"]) == (5, 1)
        assert len(clock.slept) == 4
        assert cache.healthy

    async def test_broken_off_after_the_list_is_no_lack(self, cache: Cache, server: FakeServer) -> None:
        server.faults += [Fault(chunks=(end_of_list(100),), broken=True), Fault(status=410)] * 6
        cache.start()
        await until(lambda: server.watching and not server.faults)
        assert server.calls["list"] == 0


@pytest.mark.parametrize("code", [401, 403, 404, 429, 500, 503])
async def test_refusals_for_other_reasons_heal(cache: Cache, server: FakeServer, clock: Clock, code: int) -> None:
    await server.put("box")
    headers = {"Retry-After": "42"} if code in (429, 503) else {}
    server.faults += [Fault(status=code, status_body=refusal(code), headers=headers)] * 2
    cache.start()
    await until(lambda: cache.error)
    assert str(code) in cache.error
    await cache.wait_synced(30)

    assert (server.streamed, server.calls["list"]) == (3, 0)
    assert names(cache) == ["box"]
    assert cache.healthy
    if headers:
        assert min(clock.slept) >= 42


@pytest.mark.parametrize(
    "chunks",
    [
        (line("ADDED", body("half", 101)), line("ERROR", refusal(500))),
        (line("ADDED", body("half", 101)), line("ERROR", refusal(410))),
        (line("ADDED", body("half", 101)), b"<html>\n"),
    ],
    ids=["error", "gone", "garbage"],
)
async def test_a_list_that_fails_on_the_way_is_void(
    cache: Cache, server: FakeServer, clock: Clock, chunks: tuple[bytes, ...]
) -> None:
    await server.put("box")
    server.faults.append(Fault(chunks=chunks))
    cache.start()
    await cache.wait_synced(30)

    assert names(cache) == ["box"]
    assert server.streamed == 2
    assert len(clock.slept) == 1


@pytest.mark.parametrize(
    "always",
    [
        Fault(),
        Fault(status=410, status_body=refusal(410)),
        Fault(status=403, status_body=refusal(403)),
        Fault(chunks=(line("ERROR", refusal(410)),)),
        Fault(chunks=(end_of_list(200),)),
        Fault(chunks=(end_of_list(200), line("ERROR", refusal(410)))),
        Fault(chunks=(line("ADDED", body("a", 101)),), broken=True),
        Fault(chunks=(b"nonsense\n",)),
    ],
    ids=["ends", "410", "403", "410-event", "list-then-end", "list-then-410", "broken", "garbage"],
)
async def test_no_hot_loop(cache: Cache, server: FakeServer, clock: Clock, always: Fault) -> None:
    """In ten minutes of a broken server: a burst of a few tries, then one per cap of 10 s."""
    server.always = always
    cache.start()
    await until(lambda: clock.now >= 600, turns=100_000)

    assert server.streamed + server.calls["watch"] <= 70
    assert server.calls["list"] <= 67


async def test_to_tell_slow_subscribers_is_no_silence(server: FakeServer) -> None:
    """What takes long here must not be blamed on the server."""
    for number in range(50):
        await server.put(f"box-{number}", quiet=True)
    pace = reflector.Pace(connect=0.05, idle=0.05, base=0.001, slice=0.0)
    cache = informer.Informer(kube_client.Client(server), reflector.Scope(BOX), Box, pace=pace)
    cache.subscribe(lambda _: time.sleep(0.003))
    cache.start()
    await cache.wait_synced(30)

    assert (server.streamed, server.calls["list"]) == (1, 0)
    await cache.stop()


@pytest.mark.parametrize("streaming", ["served", "refused"])
async def test_everybody_has_a_turn_while_a_list_arrives_and_is_told(streaming: Any, clock: Clock) -> None:
    """With slices of no length, others run after each object that is stored, and after each that is told."""
    server = FakeServer(streaming=streaming)
    for number in range(100):
        await server.put(f"box-{number}", quiet=True)
    cache = informer.Informer(kube_client.Client(server), reflector.Scope(BOX), Box, pace=clock.pace(slice=0.0))
    turns, when_told = 0, []

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    others = asyncio.create_task(count())
    cache.subscribe(lambda _: when_told.append(turns))
    cache.start()
    await cache.wait_synced(30)

    assert when_told[0] >= 100
    assert len(set(when_told)) == 100
    others.cancel()
    await cache.stop()


async def test_an_own_write_before_its_object_was_told(server: FakeServer, clock: Clock) -> None:
    """The list has it, its turn to be told has not come: the list's state is told first, and the write to nobody."""
    for name in ("a", "b", "c"):
        await server.put(name)
    cache = informer.Informer(kube_client.Client(server), reflector.Scope(BOX), Box, pace=clock.pace(slice=0.0))
    changes: list[informer.Change[Box]] = []
    cache.subscribe(changes.append)
    cache.start()
    await until(lambda: changes)
    async with cache.writing("ns", "c") as own:
        own.took(msgspec.convert(await server.put("c", size=7, quiet=True), Box))
    async with cache.writing("ns", "b") as own:
        await server.remove("b", quiet=True)
        own.gone()
    await cache.wait_synced(30)
    await server.put("last")
    await until(lambda: len(changes) == 4)

    told = [(c.old, c.new and c.new.metadata.name, c.new and c.new.size, c.initial) for c in changes]
    assert told[0] == (None, "a", 0, True)
    assert sorted(told[1:3], key=str) == [(None, "b", 0, True), (None, "c", 0, True)]
    found = cache.get("ns", "c")
    assert found is not None
    assert found.size == 7
    assert names(cache) == ["a", "c", "last"]
    await cache.stop()
