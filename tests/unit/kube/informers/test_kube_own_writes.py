"""Reads never go back behind one's own write, and its echo causes no work."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from kube_fakes import BOX, Box, Clock, FakeServer, body, box, until

from moorage.kube import client as kube_client
from moorage.kube import codec, errors
from moorage.kube.informers import informer, reflector, replica

Cache = informer.Informer[Box]
Changes = list[informer.Change[Box]]


@pytest.fixture
def changes() -> Changes:
    return []


@pytest.fixture
async def running(cache: Cache, server: FakeServer, changes: Changes) -> Cache:
    """A cache that holds `mine` at version 101 and follows the server."""
    await server.put("mine")
    cache.start()
    await until(lambda: server.watching)
    cache.subscribe(changes.append)
    changes.clear()
    return cache


def size(cache: Cache, name: str = "mine") -> int | None:
    found = cache.get("ns", name)
    return None if found is None else found.size


async def settle(cache: Cache, server: FakeServer) -> None:
    """Wait until the watch has delivered all there is, by a box that comes after it."""
    marker = f"marker-{server.version}"
    await server.put(marker)
    await until(lambda: cache.get("ns", marker))


async def test_echo_after_the_answer(running: Cache, server: FakeServer, changes: Changes) -> None:
    async with running.writing("ns", "mine") as own:
        own.took(msgspec.convert(await server.put("mine", size=1, quiet=True), Box))
    assert size(running) == 1
    await settle(running, server)

    assert [change.new.metadata.name for change in changes if change.new] == ["marker-102"]


async def test_echo_before_the_answer(running: Cache, server: FakeServer, changes: Changes) -> None:
    async with running.writing("ns", "mine") as own:
        written = await server.put("mine", size=1)
        await settle(running, server)
        assert size(running) == 0
        own.took(msgspec.convert(written, Box))
    assert size(running) == 1
    assert [change.new.metadata.name for change in changes if change.new] == ["marker-102"]


async def test_someone_elses_change_during_the_write_is_told(
    running: Cache, server: FakeServer, changes: Changes
) -> None:
    async with running.writing("ns", "mine") as own:
        written = await server.put("mine", size=1)
        await server.put("mine", size=2)
        await settle(running, server)
        own.took(msgspec.convert(written, Box))

    told = [(change.old and change.old.size, change.new and change.new.size) for change in changes[1:]]
    assert told == [(1, 2)]
    assert size(running) == 2


async def test_an_unknown_outcome_lets_the_watch_tell(running: Cache, server: FakeServer, changes: Changes) -> None:
    with pytest.raises(errors.TransportError):
        async with running.writing("ns", "mine"):
            await server.put("mine", size=1)
            await settle(running, server)
            raise errors.TransportError("answer lost", sent=True)

    assert size(running) == 1
    assert [change.new.size for change in changes if change.new and change.old] == [1]


async def test_two_writers_hold_until_both_are_done(running: Cache, server: FakeServer, changes: Changes) -> None:
    async with running.writing("ns", "mine") as first:
        one = await server.put("mine", size=1)
        async with running.writing("ns", "mine") as second:
            two = await server.put("mine", size=2)
            await settle(running, server)
            second.took(msgspec.convert(two, Box))
        first.took(msgspec.convert(one, Box))
    assert size(running) == 2
    assert len(changes) == 1


async def test_deleted_and_made_anew_by_others(running: Cache, server: FakeServer, changes: Changes) -> None:
    await server.remove("mine")
    await server.put("mine", uid="second", size=5)
    await until(lambda: size(running) == 5)

    uids = [(c.old and c.old.metadata.uid, c.new and c.new.metadata.uid) for c in changes]
    assert uids == [("uid-mine", None), (None, "second")]


async def test_made_anew_before_the_deletion_of_the_old_is_told(
    running: Cache, server: FakeServer, changes: Changes
) -> None:
    await server.remove("mine", quiet=True)
    async with running.writing("ns", "mine") as own:
        own.took(msgspec.convert(await server.put("mine", uid="second", size=1, quiet=True), Box))
    await settle(running, server)
    assert size(running) == 1
    assert len(changes) == 1


async def test_own_delete_is_gone_at_once_and_told_to_nobody(
    running: Cache, server: FakeServer, changes: Changes
) -> None:
    await server.put("mine", size=7, quiet=True)  # still on its way when the delete is answered
    async with running.writing("ns", "mine") as own:
        await server.remove("mine", quiet=True)
        own.deleted(kube_client.Deletion(accepted=True, answer=b'{"kind":"Status"}'))
    assert size(running) is None
    await settle(running, server)
    assert size(running) is None
    assert len(changes) == 1

    await server.put("mine", uid="second", size=1)
    await until(lambda: size(running) == 1)


async def test_a_delete_that_waits_for_finalizers(running: Cache, server: FakeServer, changes: Changes) -> None:
    async with running.writing("ns", "mine") as own:
        marked = await server.put("mine", size=3, deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["a/b"])
        own.deleted(kube_client.Deletion(accepted=True, answer=msgspec.json.encode(marked)))
    found = running.get("ns", "mine")
    assert found is not None
    assert found.metadata.deleting
    await server.remove("mine")
    await until(lambda: size(running) is None)
    assert [change.new for change in changes] == [None]


async def test_gone_said_too_early_heals(running: Cache, server: FakeServer) -> None:
    async with running.writing("ns", "mine") as own:
        own.gone()
    assert size(running) is None
    await server.put("mine", size=4, deletionTimestamp="2026-01-01T00:00:00Z")
    await until(lambda: size(running) == 4)


async def test_a_named_author_is_told_to_all(running: Cache, server: FakeServer, changes: Changes) -> None:
    """Other controllers must learn of a write, and the author's own must be able to leave it out."""
    async with running.writing("ns", "mine", by="grids") as own:
        own.took(msgspec.convert(await server.put("mine", size=1), Box))
    async with running.writing("ns", "mine", by="grids") as own:
        await server.remove("mine")
        own.gone()
    await settle(running, server)

    assert [(change.by, change.new and change.new.size) for change in changes[:2]] == [("grids", 1), ("grids", None)]
    assert [change.by for change in changes[2:]] == [None]


async def test_a_write_that_changed_nothing(running: Cache, server: FakeServer, changes: Changes) -> None:
    async with running.writing("ns", "mine", by="me") as own:
        own.took(box("mine", 101))
    assert changes == []


async def test_raw_answers_fit_any_model(server: FakeServer, clock: Clock) -> None:
    informers = informer.Informers(kube_client.Client(server), pace=clock.pace())
    typed, raw = informers.watch(BOX, Box), informers.watch(BOX, dict)
    await typed.wait_synced(30)
    await raw.wait_synced(30)
    answer = msgspec.Raw(msgspec.json.encode({**body("new", 500), "extra": True}))
    for cache in informers.covering(BOX, "ns"):
        async with cache.writing("ns", "new") as own:
            own.took(answer)

    assert typed.get("ns", "new") == box("new", 500)
    found = raw.get("ns", "new")
    assert found is not None
    assert found["extra"] is True
    await informers.stop()


class TestListOlderThanAnOwnWrite:
    """The list was answered before the write was, and arrives after it."""

    @pytest.fixture
    async def relisting(self, running: Cache, server: FakeServer) -> Cache:
        """A list is under way: the server has made its answer and keeps it until `list_gate` opens."""
        server.list_gate = asyncio.Event()
        lists = server.calls["list"]
        server.forget()
        running._reflector._version = ""
        await running.stop()
        running._task = None
        running.start()
        await until(lambda: server.calls["list"] == lists + 1)
        return running

    async def arrive(self, cache: Cache, server: FakeServer) -> None:
        assert server.list_gate is not None
        server.list_gate.set()
        await settle(cache, server)

    async def test_update(self, relisting: Cache, server: FakeServer, changes: Changes) -> None:
        async with relisting.writing("ns", "mine") as own:
            own.took(msgspec.convert(await server.put("mine", size=1, quiet=True), Box))
        await self.arrive(relisting, server)
        assert size(relisting) == 1
        assert len(changes) == 1

    async def test_create(self, relisting: Cache, server: FakeServer, changes: Changes) -> None:
        async with relisting.writing("ns", "new") as own:
            own.took(msgspec.convert(await server.put("new", size=1, quiet=True), Box))
        await self.arrive(relisting, server)
        assert size(relisting, "new") == 1
        assert len(changes) == 1

    async def test_delete(self, relisting: Cache, server: FakeServer, changes: Changes) -> None:
        async with relisting.writing("ns", "mine") as own:
            await server.remove("mine", quiet=True)
            own.gone()
        await self.arrive(relisting, server)
        assert size(relisting) is None
        assert len(changes) == 1

    async def test_list_arrives_while_the_write_is_in_flight(
        self, relisting: Cache, server: FakeServer, changes: Changes
    ) -> None:
        async with relisting.writing("ns", "mine") as own, relisting.writing("ns", "new") as other:
            mine = await server.put("mine", size=1, quiet=True)
            new = await server.put("new", size=2, quiet=True)
            await self.arrive(relisting, server)
            own.took(msgspec.convert(mine, Box))
            other.took(msgspec.convert(new, Box))
        assert (size(relisting), size(relisting, "new")) == (1, 2)
        assert len(changes) == 1


def relist(kept: replica.Replica[Box], items: list[Box], version: str) -> None:
    """A list, and all that it tells."""
    kept.listing()
    for item in items:
        kept.event("ADDED", item)
    kept.listed(version)
    for _ in kept.tell():
        pass


class TestReplica:
    """Corners that a healthy server does not show."""

    def test_versions_that_went_down_are_believed(self) -> None:
        """An etcd restored from a backup: a fresh list is the truth, whatever was stored."""
        seen: Changes = []
        kept = replica.Replica[Box](seen.append)
        relist(kept, [box("a", 900, size=9), box("b", 901)], "950")
        relist(kept, [box("a", 400, size=4)], "500")
        kept.event("MODIFIED", box("a", 510, size=5))

        entry = kept.objects.get(("ns", "a"))
        assert entry is not None
        assert entry.obj.size == 5
        assert len(kept.objects) == 1

    def test_own_writes_out_of_scope_stay_out(self) -> None:
        kept = replica.Replica[Box](lambda _: None, namespace="ns", labels="app=x", name="labelled")
        kept.took(box("unlabelled", 1))
        kept.took(msgspec.convert(body("labelled", 2, labels={"app": "x"}), Box))
        kept.took(msgspec.convert(body("other", 4, labels={"app": "x"}), Box))
        elsewhere = {**body("labelled", 3, labels={"app": "x"})}
        elsewhere["metadata"]["namespace"] = "other"
        kept.took(msgspec.convert(elsewhere, Box))
        assert list(kept.objects) == [("ns", "labelled")]

    def test_leaving_the_selector_removes_at_the_same_version(self) -> None:
        """The DELETED event of a label change carries the version of the write itself."""
        kept = replica.Replica[Box](lambda _: None, labels="app=x")
        kept.took(msgspec.convert(body("a", 2, labels={"app": "x"}), Box))
        kept.event("DELETED", box("a", 2))
        assert list(kept.objects) == []

    def test_versions_that_are_no_numbers_are_always_news(self) -> None:
        seen: Changes = []
        kept = replica.Replica[Box](seen.append)
        for version in ("x1", "x1", "x0"):
            odd = msgspec.convert({"metadata": {"name": "a", "uid": "u", "resourceVersion": version}}, Box)
            kept.event("MODIFIED", odd)
        assert len(seen) == 3

    def test_of_an_unreadable_and_a_written_state_the_newer_counts(self) -> None:
        kept = replica.Replica[Box](lambda _: None)
        relist(kept, [box("a", 10)], "11")
        for unfit, written, readable in ((12, 15, True), (17, 16, False)):
            kept.listing()
            kept.took(box("a", written, size=5))
            bad = codec.Unreadable(box("a", unfit).metadata, "why")
            kept.event("ADDED", bad)
            kept.listed("20")
            for _ in kept.tell():
                pass
            assert list(kept.unreadable) == ([] if readable else [("ns", "a")])
            entry = kept.objects.get(("ns", "a"))
            assert entry is not None
            assert entry.version == written

    def test_a_list_is_told_before_what_follows_it(self) -> None:
        seen: Changes = []
        kept = replica.Replica[Box](seen.append)
        kept.listing()
        kept.event("ADDED", box("a", 5))
        kept.event("ADDED", box("b", 5))
        kept.listed("5")
        kept.event("MODIFIED", box("a", 6, size=6))
        kept.event("DELETED", box("b", 7))
        for _ in kept.tell():
            pass

        told = [(c.old and c.old.metadata.name, c.new and c.new.metadata.resource_version, c.initial) for c in seen]
        assert told == [(None, "5", True), ("a", "6", False), (None, "5", True), ("b", None, False)]

    def test_what_was_on_its_way_before_an_own_delete_stays_out(self) -> None:
        kept = replica.Replica[Box](lambda _: None)
        relist(kept, [box("a", 10)], "11")
        kept.buried(("ns", "a"))
        for earlier in (1, 9, 10):
            kept.event("MODIFIED", box("a", earlier, uid="another"))
            kept.event("MODIFIED", box("a", earlier))
        kept.event("MODIFIED", box("a", 11))  # by someone else, before the delete
        assert len(kept.objects) == 0
        kept.event("ADDED", box("a", 12, uid="another"))
        assert len(kept.objects) == 1

    def test_nothing_is_remembered_of_writes_between_lists(self) -> None:
        kept = replica.Replica[Box](lambda _: None)
        relist(kept, [], "1")
        for number in range(100):
            kept.took(box(f"box-{number}", number + 2))
            kept.buried(("ns", f"box-{number}"))
            kept.event("DELETED", box(f"box-{number}", 1000 + number))
        assert kept._fresh is None
        assert not kept._tombs
        assert not kept._held


async def test_scope_and_sharing(server: FakeServer, clock: Clock) -> None:
    informers = informer.Informers(kube_client.Client(server), pace=clock.pace())
    everywhere = informers.watch(BOX, Box)
    assert informers.watch(BOX, Box) is everywhere
    thin = informers.watch(BOX, Box, namespace="ns", metadata_only=True)
    raw = informers.watch(BOX, dict)
    assert informers.of(BOX, "ns") is everywhere
    assert informers.of(BOX, "ns", model=dict) is raw
    assert informers.covering(BOX, "ns") == [everywhere, thin, raw]
    assert informers.covering(BOX, "other") == [everywhere, raw]
    assert len(informers.healthy()) == 3
    for cache in informers.all():
        await cache.wait_synced(30)
    assert informers.healthy() == []

    await informers.release(everywhere)
    assert informers.of(BOX, "ns") is everywhere
    await informers.release(everywhere)
    assert informers.of(BOX, "other") is raw
    await informers.release(raw)
    with pytest.raises(errors.NotWatched, match=r"Box\.test\.moorage\.dev in other"):
        informers.of(BOX, "other")
    with pytest.raises(ValueError, match="selector"):
        informers.watch(BOX, Box, labels="a=b=c")
    await informers.stop()
    assert server.watching == 0


async def test_a_failing_subscriber_hurts_nobody(running: Cache, server: FakeServer, changes: Changes) -> None:
    def broken(change: informer.Change[Box]) -> None:
        raise RuntimeError("a bug")

    end = running.subscribe(broken)
    await server.put("mine", size=1)
    await until(lambda: size(running) == 1)
    end()
    assert len(changes) == 1


async def test_late_subscribers_are_told_what_is_there(running: Cache) -> None:
    late: Changes = []
    running.subscribe(late.append)
    assert [(change.initial, change.new and change.new.metadata.name) for change in late] == [(True, "mine")]


async def test_a_crash_of_the_watch_is_seen(cache: Cache, server: FakeServer) -> None:
    server.answers.append(RuntimeError("a bug"))
    cache.start()
    await until(lambda: cache.error)
    assert "RuntimeError" in cache.error
    assert not cache.healthy


def test_scope_reads_well() -> None:
    assert str(reflector.Scope(BOX)) == "Box.test.moorage.dev in all namespaces"
    assert str(reflector.Scope(BOX, "ns", "a=b", "x")) == "Box.test.moorage.dev named x in ns with a=b"
