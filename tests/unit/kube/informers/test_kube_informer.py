"""A cache as its users see it: reading, health, life, what is logged, and which one of several is found."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import structlog
from kube_fakes import BOX, Box, Clock, FakeServer, Fault, body, until

from moorage.api.meta import Partial, Resource
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.kube.informers import informer, reflector

Cache = informer.Informer[Box]
OWNED = {"ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "o", "uid": "owner"}]}


@pytest.fixture
def informers(server: FakeServer, clock: Clock) -> informer.Informers:
    return informer.Informers(kube_client.Client(server), pace=clock.pace(idle=5.0))


# --- reading ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cold", [False, True])
async def test_owned_objects_are_found_by_the_uid_of_their_owner(
    informers: informer.Informers, server: FakeServer, cold: bool
) -> None:
    await server.put("mine", **OWNED)
    await server.put("other")
    cache = informers.watch(BOX, Box, cold=cold)
    await cache.wait_synced(30)
    for _ in range(2):
        assert ["mine"] == [box.metadata.name for box in cache.owned_by("owner")]
    assert [] == cache.owned_by("nobody")
    await server.put("later", **OWNED)
    await until(lambda: cache.get("ns", "later"))
    assert 2 == len(cache.owned_by("owner"))
    await informers.stop()


async def test_a_cold_cache_keeps_no_index_that_nobody_has_asked_for(informers: informer.Informers) -> None:
    cold, warm = informers.watch(BOX, Box, cold=True), informers.watch(BOX, Box)
    with pytest.raises(KeyError):
        cold.by("owner", "x")
    assert [] == warm.by("owner", "x")
    await informers.stop()


@pytest.mark.parametrize("cold", [False, True])
async def test_a_warm_cache_keeps_objects_and_a_cold_one_decodes_at_each_read(
    informers: informer.Informers, server: FakeServer, cold: bool
) -> None:
    await server.put("a")
    cache = informers.watch(BOX, Box, cold=cold)
    await cache.wait_synced(30)
    first, second = cache.get("ns", "a"), cache.get("ns", "a")
    assert first == second
    assert cold is (first is not second)
    await informers.stop()


async def test_an_object_that_does_not_fit_is_named_with_its_reason_and_others_are_read(
    cache: Cache, server: FakeServer
) -> None:
    await server.put("good")
    await server.put("bad", size="large")  # type: ignore[arg-type]
    with structlog.testing.capture_logs() as logs:
        cache.start()
        await cache.wait_synced(30)
    with pytest.raises(errors.MalformedAnswer, match=r"Box\.test\.moorage\.dev ns/bad: .*size"):
        cache.get("ns", "bad")
    assert (cache.get("ns", "good") is not None, cache.get("ns", "none")) == (True, None)
    assert [("ns", "bad")] == list(cache.unreadable)
    assert [1] == [entry["count"] for entry in logs if entry["event"] == "objects do not fit their model"]


async def test_nothing_is_said_of_objects_that_all_fit(cache: Cache, server: FakeServer) -> None:
    await server.put("good")
    with structlog.testing.capture_logs() as logs:
        cache.start()
        await cache.wait_synced(30)
    assert [] == logs


async def test_a_subscriber_may_leave_while_it_is_told_and_the_others_go_on(cache: Cache, server: FakeServer) -> None:
    told: list[str] = []
    cache.subscribe(lambda _: (told.append("first"), leave()))
    leave = cache.subscribe(lambda _: told.append("second"))
    cache.subscribe(lambda _: told.append("third"))
    cache.start()
    await cache.wait_synced(30)
    await server.put("a")
    await until(lambda: "third" in told)
    assert ["first", "second", "third"] == told, "who leaves is still told of this one"
    await cache.stop()


# --- health ----------------------------------------------------------------------------------------------------------


async def test_a_cache_counts_as_stale_after_twice_the_silence_that_ends_a_watch(
    cache: Cache, server: FakeServer, clock: Clock
) -> None:
    assert (10.0, 0.0, False) == (cache.stale_after, cache.last_contact, cache.healthy)
    clock.now = 7.0
    cache.start()
    await until(lambda: server.watching)
    assert 7.0 == cache.last_contact
    clock.now = 17.0
    assert cache.healthy
    clock.now = 17.1
    assert not cache.healthy


async def test_how_long_silence_may_last_can_be_chosen(server: FakeServer, clock: Clock) -> None:
    made = informer.Informer(kube_client.Client(server), reflector.Scope(BOX), Box, pace=clock.pace(), stale_after=3.0)
    assert 3.0 == made.stale_after


async def test_trouble_is_logged_once_until_it_is_over_and_so_is_its_end(cache: Cache, server: FakeServer) -> None:
    await server.put("a")
    server.faults.extend([Fault(status=403), Fault(status=500), Fault(status=403)])
    with structlog.testing.capture_logs() as logs:
        cache.start()
        await until(lambda: server.watching)
        await server.put("b")
        await until(lambda: cache.get("ns", "b"))
    assert ["watch in trouble", "watch healed"] == [entry["event"] for entry in logs]
    assert "" == cache.error


async def test_what_is_wrong_is_told_to_who_waits_in_vain(cache: Cache, server: FakeServer) -> None:
    server.answers.extend([errors.TransportError("nobody listens", sent=False)] * 1000)
    cache.start()
    await until(lambda: cache.error)
    with pytest.raises(errors.TransportError, match=r"Box.* not listed within 0\.01 s: .*nobody listens") as caught:
        await cache.wait_synced(0.01)
    assert not caught.value.sent
    assert not cache.synced


async def test_a_server_that_has_not_answered_yet_is_told_as_such(cache: Cache) -> None:
    with pytest.raises(errors.TransportError, match="has not answered yet"):
        await cache.wait_synced(0.01)


# --- life ------------------------------------------------------------------------------------------------------------


async def test_a_cache_is_started_once_and_may_be_stopped_at_any_time(cache: Cache, server: FakeServer) -> None:
    await cache.stop()
    await server.put("a")
    cache.start()
    cache.start()
    await until(lambda: server.watching)
    assert 1 == server.streamed, "one watch"
    with structlog.testing.capture_logs() as logs:
        await cache.stop()
    assert (0, [], "") == (server.watching, logs, cache.error)
    assert cache.get("ns", "a") is not None, "what is stored can still be read"


async def test_a_crash_is_logged_with_its_reason(cache: Cache, server: FakeServer) -> None:
    server.answers.append(RuntimeError("a bug"))
    with structlog.testing.capture_logs() as logs:
        cache.start()
        await until(lambda: cache.error)
    assert ["watch crashed"] == [entry["event"] for entry in logs]


# --- own writes ------------------------------------------------------------------------------------------------------


async def test_a_raw_answer_of_a_delete_is_decoded_as_the_model(cache: Cache) -> None:
    async with cache.writing("ns", "a") as own:
        own.took(msgspec.Raw(msgspec.json.encode(body("a", 5))))
        own.deleted(kube_client.Deletion(accepted=True, answer=msgspec.json.encode(body("a", 6, finalizers=["x/y"]))))
    found = cache.get("ns", "a")
    assert found is not None
    assert ("6", ("x/y",)) == (found.metadata.resource_version, tuple(found.metadata.finalizers))
    async with cache.writing("ns", "a") as own:
        own.deleted(kube_client.Deletion(accepted=True, answer=b'{"kind":"Status"}'))
    assert cache.get("ns", "a") is None


# --- all caches of a process -----------------------------------------------------------------------------------------


async def test_caches_differ_by_what_is_asked_for_and_are_warm_and_whole_unless_asked_otherwise(
    informers: informer.Informers,
) -> None:
    plain = informers.watch(BOX, Box)
    others: list[dict[str, Any]] = [
        {"namespace": "ns"},
        {"labels": "a=b"},
        {"name": "x"},
        {"metadata_only": True},
        {"cold": True},
    ]
    made = [informers.watch(BOX, Box, **other) for other in others]
    assert 6 == len({id(each) for each in [plain, *made]})
    assert (reflector.Scope(BOX), False) == (plain.scope, plain.cold)
    assert plain is informers.watch(BOX, Box)
    assert made == [informers.watch(BOX, Box, **other) for other in others]
    await informers.stop()


async def test_who_shares_a_cache_keeps_it_until_the_last_gives_it_back(
    informers: informer.Informers, server: FakeServer
) -> None:
    first, second = informers.watch(BOX, Box), informers.watch(BOX, Box)
    await first.wait_synced(30)
    await until(lambda: server.watching)
    await informers.release(first)
    assert (1, [second]) == (server.watching, informers.all())
    await informers.release(second)
    assert (0, []) == (server.watching, informers.all())
    again = informers.watch(BOX, Box)
    assert again is not first
    await informers.release(again)
    assert [] == informers.all()


FULLEST: list[dict[str, Any]] = [
    {"namespace": "ns"},
    {},
    {"namespace": "ns", "model": dict},
    {"model": dict},
    {"cold": True},
    {"name": "x"},
    {"labels": "a=b"},
    {"metadata_only": True},
]
"""From the one that serves a reader in the namespace best to the one that does so worst."""


@pytest.mark.parametrize("place", range(len(FULLEST) - 1))
async def test_of_two_that_cover_a_namespace_the_one_that_tells_more_is_found(
    informers: informer.Informers, place: int
) -> None:
    both = []
    for which in (place + 1, place):
        wanted = dict(FULLEST[which])
        both.append(informers.watch(BOX, wanted.pop("model", Box), **wanted))
    worse, better = both
    if {"name", "labels"} <= {*FULLEST[place], *FULLEST[place + 1]}:
        assert informers.of(BOX, "ns") in both, "a part is a part"
    else:
        assert better is informers.of(BOX, "ns")
    assert better is not worse
    await informers.stop()


async def test_what_is_found_is_of_the_resource_the_namespace_and_the_model_that_are_asked_for(
    informers: informer.Informers,
) -> None:
    here = informers.watch(BOX, Box, namespace="ns")
    partial = informers.watch(BOX, Partial)
    other = Resource("test.moorage.dev", "v1", "Other", "others")
    assert here is informers.of(BOX, "ns")
    assert partial is informers.of(BOX, "elsewhere")
    assert partial is informers.of(BOX)
    assert partial is informers.of(BOX, "ns", model=Partial)
    assert [here, partial] == informers.covering(BOX, "ns")
    for resource, namespace, model in ((other, "ns", None), (BOX, "elsewhere", Box), (BOX, "ns", dict)):
        with pytest.raises(errors.NotWatched, match="is not watched"):
            informers.of(resource, namespace, model=model)
    with pytest.raises(errors.NotWatched, match="in all namespaces"):
        informers.of(other)
    await informers.stop()


async def test_those_that_are_not_well_are_named(informers: informer.Informers, server: FakeServer) -> None:
    well, ill = informers.watch(BOX, Box), informers.watch(BOX, Box, name="x")
    for each in (well, ill):
        await each.wait_synced(30)
    ill.trouble(errors.TransportError("cut", sent=False))
    assert [str(ill.scope)] == informers.healthy()
    await informers.stop()


async def test_who_reads_with_other_rights_has_a_watch_of_its_own(server: FakeServer) -> None:
    """So that what one may see is never served to another."""
    made = informer.Informers(kube_client.Client(server))
    users = ("", "account", "account")
    own, other, again = (made.watch(BOX, dict, namespace="ns", user=user) for user in users)
    try:
        assert own is not other
        assert other is again
    finally:
        await made.stop()
