"""The collector while caches fill, and the cold tier."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kube_fakes import BOX, Box, Clock, FakeServer, body, box, until

from moorage.api.meta import Partial
from moorage.kube import client as kube_client
from moorage.kube.informers import compressed, garbage_collector, informer, reflector


class TestFilling:
    @pytest.fixture(autouse=True)
    def thresholds(self) -> Iterator[tuple[int, int, int]]:
        normal = gc.get_threshold()
        yield normal
        gc.unfreeze()
        assert gc.get_threshold() == normal

    def test_the_last_to_finish_restores_the_thresholds(self, thresholds: tuple[int, int, int]) -> None:
        filling = garbage_collector.Filling()
        with filling:
            relaxed = gc.get_threshold()
            with filling:
                pass
            assert gc.get_threshold() == relaxed
        assert relaxed > thresholds
        assert gc.get_threshold() == thresholds

    def test_what_many_have_made_together_is_frozen_in_the_end(self) -> None:
        filling, kept = garbage_collector.Filling(), []
        with filling:
            with filling:
                kept.append([[] for _ in range(40_000)])
            assert gc.get_freeze_count() == 0
            kept.append([[] for _ in range(40_000)])
        assert gc.get_freeze_count() >= 80_000

    def test_few_are_not_worth_it_and_each_fill_counts_anew(self) -> None:
        filling, kept = garbage_collector.Filling(), []
        for _ in range(4):
            with filling:
                kept.append([[] for _ in range(20_000)])
        assert gc.get_freeze_count() == 0

    def test_older_generations_are_left_alone_meanwhile(self) -> None:
        before = [generation["collections"] for generation in gc.get_stats()]
        with garbage_collector.Filling():
            kept = [[] for _ in range(400_000)]  # type: ignore[var-annotated]
        young, *older = [generation["collections"] for generation in gc.get_stats()]
        assert young >= before[0] + 10
        assert older == before[1:]
        assert len(kept) == 400_000

    @pytest.mark.parametrize("streaming", ["served", "refused"])
    async def test_a_big_list_freezes_what_it_brought(self, streaming: str, clock: Clock) -> None:
        server = FakeServer(streaming=streaming)  # type: ignore[arg-type]
        more = {"labels": {"a": "b"}, "annotations": {"a": "b"}, "ownerReferences": [{"uid": "u"}], "finalizers": ["f"]}
        for number in range(12_000):
            await server.put(f"box-{number}", quiet=True, **more)
        cache = informer.Informer(kube_client.Client(server), reflector.Scope(BOX), dict, pace=clock.pace())
        cache.start()
        await cache.wait_synced(60)
        await until(lambda: gc.get_freeze_count() > 0)
        assert gc.get_freeze_count() >= 12_000
        await cache.stop()


def test_what_was_imported_is_walked_no_more_and_what_is_young_less_often() -> None:
    normal = gc.get_threshold()
    garbage_collector.settle()
    try:
        assert gc.get_freeze_count() > 10_000
        assert len(gc.get_objects()) < 1000
        assert normal[0] < gc.get_threshold()[0] < 25_000, "in between that of Python and that of a fill"
        assert gc.get_threshold()[1:] == normal[1:]
    finally:
        gc.unfreeze()
        gc.set_threshold(*normal)


TEXTS = st.text(max_size=40)
BOXES = st.lists(st.builds(lambda size, note: {"size": size, "labels": {"note": note}}, st.integers(0, 99), TEXTS))


@given(BOXES)
def test_what_is_packed_comes_out_the_same(items: list[dict[str, object]]) -> None:
    typed, raw, partial = compressed.Packer(Box), compressed.Packer(dict), compressed.Packer(Partial)
    entries = []
    for number, item in enumerate(items):
        made = body("a", number, size=item["size"], labels=item["labels"])  # type: ignore[arg-type]
        for packer, model in ((typed, Box), (raw, dict), (partial, Partial)):
            obj = msgspec.convert(made, model)
            entries.append((obj, packer.entry(obj, "u", number)))  # type: ignore[attr-defined]
    for obj, entry in entries:
        assert entry.obj == obj
        assert (entry.uid, entry.told) == ("u", True)


def test_objects_that_are_alike_become_small() -> None:
    packer = compressed.Packer(dict)
    bodies = [
        body(f"box-{number}", number, labels={f"label-{n}": "value" * 9 for n in range(20)}) for number in range(9)
    ]
    sizes = [len(packer.entry(made, "u", 1).data) for made in bodies]

    assert min(sizes[:2]) > 1000  # the first serve the others
    assert max(sizes[2:]) < 150


async def test_a_cold_cache_reads_like_any_other(server: FakeServer, clock: Clock) -> None:
    owner = {"apiVersion": "v1", "kind": "X", "name": "o", "uid": "owner-uid"}
    for number in range(5):
        await server.put(f"box-{number}", size=number, ownerReferences=[owner])
    informers = informer.Informers(kube_client.Client(server), pace=clock.pace())
    cold = informers.watch(BOX, Box, cold=True)
    assert informers.watch(BOX, Box, cold=True) is cold
    warm = informers.watch(BOX, Box)
    assert informers.of(BOX) is warm
    cold.index("size", lambda item: [str(item.size)])
    changes: list[informer.Change[Box]] = []
    cold.subscribe(changes.append)
    await cold.wait_synced(30)
    await warm.wait_synced(30)
    await server.put("box-3", size=9)
    await server.remove("box-4")
    await until(lambda: len(changes) == 7 and len(warm.items()) == 4)

    assert sorted(cold.items(), key=str) == sorted(warm.items(), key=str)
    assert cold.get("ns", "box-3") == warm.get("ns", "box-3")
    assert [item.metadata.name for item in cold.by("size", "9")] == ["box-3"]
    assert cold.by("size", "3") == []
    assert len(cold.owned_by("owner-uid")) == 3
    assert changes[5].old is not None
    assert changes[5].old.size == 3
    async with cold.writing("ns", "box-1") as own:
        own.took(box("box-1", 900, size=77))
    found = cold.get("ns", "box-1")
    assert found is not None
    assert found.size == 77
    assert len(changes) == 7

    await informers.release(cold)
    await informers.release(cold)
    assert informers.all() == [warm]
    await informers.stop()
