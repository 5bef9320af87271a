"""List and watch: what heals, and that nothing makes a hot loop."""

from __future__ import annotations

import asyncio
import gc

import pytest
from kube_fakes import BOX, Box, Clock, FakeServer, Fault, answer, body, line, refusal, until

from moorage.api.meta import Partial
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.kube.informers import informer, reflector

Cache = informer.Informer[Box]


def names(cache: Cache) -> list[str]:
    return sorted(item.metadata.name for item in cache.items())


def watch_versions(server: FakeServer) -> list[str]:
    return [query["resourceVersion"] for method, _, query, _ in server.requests if method == "WATCH"]


async def test_lists_in_pages_then_follows(cache: Cache, server: FakeServer) -> None:
    for number in range(1201):
        await server.put(f"box-{number}", quiet=True)
    changes: list[informer.Change[Box]] = []
    cache.subscribe(changes.append)
    cache.start()
    await cache.wait_synced(30)
    await server.put("later", size=3)
    await until(lambda: cache.get("ns", "later"))
    await server.remove("box-7")
    await until(lambda: cache.get("ns", "box-7") is None)

    assert server.calls == {"list": 3, "watch": 1}
    assert len(cache.items("ns")) == 1201
    assert [change.initial for change in changes] == [True] * 1201 + [False] * 2
    assert changes[-1].old is not None
    assert changes[-1].new is None
    assert cache.healthy


async def test_resumes_at_the_bookmark_without_listing(cache: Cache, server: FakeServer) -> None:
    server.faults.append(Fault(chunks=(line("BOOKMARK", body("", 555)),)))
    cache.start()
    await until(lambda: server.calls["watch"] == 2)

    assert watch_versions(server) == ["100", "555"]
    assert server.calls["list"] == 1
    assert server.requests[-1][2]["allowWatchBookmarks"] == "true"


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=410, status_body=refusal(410, "Expired")),
        Fault(chunks=(line("ERROR", refusal(410, "Gone")),)),
        Fault(chunks=(b'{"object":{"code":410},"type":"ERROR"}\n',)),
        Fault(
            status=504,
            status_body=refusal(504, "Timeout", details={"causes": [{"reason": "ResourceVersionTooLarge"}]}),
        ),
    ],
    ids=["status", "event", "event-in-other-order", "version-from-the-future"],
)
async def test_a_version_too_old_lists_again_and_tells_of_deletions(
    cache: Cache, server: FakeServer, fault: Fault
) -> None:
    for name in ("stays", "goes"):
        await server.put(name)
    server.faults.append(fault)
    seen: list[informer.Change[Box]] = []
    cache.subscribe(seen.append)
    cache.start()
    await cache.wait_synced(30)
    await server.remove("goes", quiet=True)
    await server.put("stays", size=9, quiet=True)
    server.forget()
    await until(lambda: len(seen) == 4)

    assert [(c.old and c.old.metadata.name, c.new and c.new.size) for c in seen[2:]] == [("goes", None), ("stays", 9)]
    assert server.calls == {"list": 2, "watch": 2}
    assert cache.healthy


@pytest.mark.parametrize("code", [400, 403, 500, 503])
async def test_error_events_are_survived_without_a_list(cache: Cache, server: FakeServer, code: int) -> None:
    server.faults.append(Fault(chunks=(line("ERROR", refusal(code, "Whatever")),)))
    cache.start()
    await until(lambda: server.calls["watch"] == 2)
    await server.put("box")
    await until(lambda: cache.get("ns", "box"))

    assert server.calls["list"] == 1
    assert cache.healthy


@pytest.mark.parametrize("code", [401, 403, 404, 429, 500, 502, 503])
async def test_refusals_keep_serving_and_say_so(cache: Cache, server: FakeServer, clock: Clock, code: int) -> None:
    await server.put("box")
    server.faults += [Fault(status=code, status_body=refusal(code))] * 2
    troubles: list[tuple[str, bool, list[str]]] = []
    plain = clock.sleep

    async def sleep(seconds: float) -> None:
        troubles.append((cache.error, cache.healthy, names(cache)))
        await plain(seconds)

    cache._reflector._pace = reflector.Pace(clock=clock.time, sleep=sleep, chance=lambda: 1.0)
    cache.start()
    await until(lambda: server.calls["watch"] == 3)

    assert [(healthy, kept) for _, healthy, kept in troubles] == [(False, ["box"])] * 2
    assert all(str(code) in error for error, _, _ in troubles)
    assert cache.healthy
    assert server.calls["list"] == 1


async def test_retry_after_of_a_watch_is_honoured(cache: Cache, server: FakeServer, clock: Clock) -> None:
    server.faults.append(Fault(status=429, status_body=refusal(429), headers={"Retry-After": "42"}))
    cache.start()
    await until(lambda: server.calls["watch"] == 2)

    assert clock.slept == [42.0]


async def test_many_refusals_distrust_the_version(cache: Cache, server: FakeServer) -> None:
    server.faults += [Fault(status=400, status_body=refusal(400))] * 5
    cache.start()
    await until(lambda: server.calls["watch"] == 6)

    assert server.calls["list"] == 2


async def test_a_silent_stream_is_taken_for_dead(server: FakeServer) -> None:
    silent = informer.Informer(
        kube_client.Client(server), reflector.Scope(BOX), Box, pace=reflector.Pace(idle=0.05, base=0.001)
    )
    server.faults.append(Fault(silent=True))
    silent.start()
    await silent.wait_synced(30)
    await server.put("box", quiet=True)
    async with asyncio.timeout(30):
        while silent.get("ns", "box") is None:
            await asyncio.sleep(0.005)

    assert server.calls["list"] == 1
    await silent.stop()
    assert server.watching == 0


async def test_chunks_cut_anywhere_and_a_half_line_at_the_end(cache: Cache, server: FakeServer) -> None:
    lines = line("ADDED", body("a", 101)) + b"\n" + line("ADDED", body("b", 102)) + line("MODIFIED", body("a", 103))
    half = line("ADDED", body("c", 104))[:-20]
    server.faults.append(Fault(chunks=(*(lines[at : at + 7] for at in range(0, len(lines), 7)), half)))
    cache.start()
    await until(lambda: server.calls["watch"] == 2)

    assert names(cache) == ["a", "b"]
    assert watch_versions(server)[-1] == "103"


async def test_duplicate_events_are_told_once(cache: Cache, server: FakeServer) -> None:
    twice = line("ADDED", body("a", 101))
    server.faults.append(Fault(chunks=(twice, twice, line("MODIFIED", body("a", 102)), twice)))
    changes: list[informer.Change[Box]] = []
    cache.subscribe(changes.append)
    cache.start()
    await until(lambda: server.calls["watch"] == 2)

    assert [change.new and change.new.metadata.resource_version for change in changes] == ["101", "102"]


async def test_garbage_lists_again(cache: Cache, server: FakeServer) -> None:
    server.faults.append(Fault(chunks=(b"<html>gateway</html>\n",)))
    cache.start()
    await until(lambda: server.calls["watch"] == 2)

    assert server.calls["list"] == 2


async def test_an_unreadable_object_hides_only_itself(cache: Cache, server: FakeServer) -> None:
    await server.put("good")
    await server.put("bad")
    server.objects["bad"]["size"] = "large"
    cache.start()
    await cache.wait_synced(30)

    assert names(cache) == ["good"]
    with pytest.raises(errors.MalformedAnswer, match=r"Box\.test\.moorage\.dev ns/bad.*size"):
        cache.get("ns", "bad")
    await until(lambda: server.watching)
    await server.put("bad", size=1)
    await until(lambda: not cache.unreadable)
    assert names(cache) == ["bad", "good"]

    server.log.append((server.version + 1, line("MODIFIED", {**body("bad", server.version + 1), "size": "x"})))
    server.version += 1
    await server.flush()
    await until(lambda: cache.unreadable)
    await server.remove("bad")
    await until(lambda: not cache.unreadable)
    assert cache.get("ns", "bad") is None


def _endings() -> dict[str, Fault]:
    return {
        "ends at once": Fault(),
        "410 always": Fault(status=410, status_body=refusal(410)),
        "410 event always": Fault(chunks=(line("ERROR", refusal(410)),)),
        "403 always": Fault(status=403, status_body=refusal(403)),
        "ERROR 500 always": Fault(chunks=(line("ERROR", refusal(500)),)),
        "garbage always": Fault(chunks=(b"nonsense\n",)),
        "bookmark and end": Fault(chunks=(line("BOOKMARK", body("", 200)),)),
    }


@pytest.mark.parametrize("name", _endings())
async def test_no_hot_loop(cache: Cache, server: FakeServer, clock: Clock, name: str) -> None:
    """In ten minutes of a broken server: a burst of a few tries, then one per cap of 10 s."""
    server.always = _endings()[name]
    cache.start()
    await until(lambda: clock.now >= 600, turns=100_000)

    assert server.calls["watch"] <= 67
    assert server.calls["list"] <= 67


async def test_no_hot_loop_while_listing_fails(cache: Cache, server: FakeServer, clock: Clock) -> None:
    server.answers.extend(answer(403, refusal(403, "Forbidden")) for _ in range(1000))
    cache.start()
    await until(lambda: clock.now >= 600, turns=100_000)

    assert server.calls["list"] <= 67
    assert "403 Forbidden" in cache.error
    with pytest.raises(errors.TransportError, match="403 Forbidden"):
        await cache.wait_synced(0.01)


async def test_rights_that_stay_away_are_asked_for_ever_more_seldom(
    cache: Cache, server: FakeServer, clock: Clock
) -> None:
    """Only people give them back: once a minute is enough, and that is when it is seen."""
    server.always = Fault(status=403, status_body=refusal(403))
    cache.start()
    await until(lambda: clock.now >= 3600, turns=100_000)
    tries = server.calls["watch"]
    assert 55 <= tries <= 75
    assert (60.0, False) == (clock.slept[-1], cache.healthy)

    server.always = None
    given, clock.slept[:] = clock.now, []
    await until(lambda: cache.healthy)
    assert clock.now - given <= 60


async def test_one_refusal_among_other_faults_is_no_lasting_want_of_rights(
    cache: Cache, server: FakeServer, clock: Clock
) -> None:
    """As when a proxy breaks off watch after watch, and the server once does not know yet of rights just given."""
    server.faults += [*[Fault(status=500, status_body=refusal(500))] * 12, Fault(status=403, status_body=refusal(403))]
    cache.start()
    await until(lambda: server.calls["watch"] == 14)

    assert (13, 10.0) == (len(clock.slept), max(clock.slept))


async def test_a_watch_that_lived_is_followed_at_once(cache: Cache, server: FakeServer, clock: Clock) -> None:
    """The server ends each watch after some minutes; that is no reason to wait."""
    server.lifetime = lambda: setattr(clock, "now", clock.now + 290)
    server.faults += [Fault(), Fault()]
    cache.start()
    await until(lambda: server.calls["watch"] == 3)

    assert clock.slept == []


async def test_metadata_only_asks_for_partial_objects(server: FakeServer, clock: Clock) -> None:
    scope = reflector.Scope(BOX, "ns", labels="app=x", name="mine", metadata_only=True)
    thin = informer.Informer(kube_client.Client(server), scope, Partial, pace=clock.pace())
    thin.start()
    await until(lambda: server.watching)

    (_, _, streamed, _), (_, path, asked, _), (_, _, watched, _) = server.requests
    assert path == "/apis/test.moorage.dev/v1/namespaces/ns/boxes"
    assert asked["accept"].startswith("application/json;as=PartialObjectMetadataList;")
    assert watched["accept"].startswith("application/json;as=PartialObjectMetadata;")
    for query in (streamed, asked, watched):
        assert (query["labelSelector"], query["fieldSelector"]) == ("app=x", "metadata.name=mine")
    await thin.stop()


async def test_gc_is_relaxed_only_while_a_list_runs(cache: Cache, server: FakeServer) -> None:
    normal = gc.get_threshold()
    server.list_gate = asyncio.Event()
    cache.start()
    await until(lambda: server.calls["list"])
    relaxed = gc.get_threshold()
    server.list_gate.set()
    await cache.wait_synced(30)

    assert relaxed[0] > normal[0]
    assert gc.get_threshold() == normal


async def test_the_cache_grows_stale_in_silence(cache: Cache, server: FakeServer, clock: Clock) -> None:
    cache.start()
    await until(lambda: server.watching)
    assert cache.healthy
    clock.now += cache.stale_after + 1
    assert not cache.healthy
    assert cache.synced
