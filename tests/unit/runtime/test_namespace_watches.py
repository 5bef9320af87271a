"""Watches of namespaces: opened with the first reader, shared, closed after the last."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from moorage.api import builtin
from moorage.kube import client as kube_client
from moorage.kube.informers import informer
from moorage.runtime import gate, kind, namespace_watches
from tests.unit.runtime.fake_api import FakeApi, until


class View(namespace_watches.View):
    """ConfigMaps and Services of one namespace."""

    def __init__(self, world: kind.World, namespace: str) -> None:
        super().__init__(world, namespace)
        self.maps: informer.Informer[dict[str, Any]] = self.open(builtin.CONFIG_MAP, dict)
        self.services: informer.Informer[dict[str, Any]] = self.open(builtin.SERVICE, dict)


@pytest.fixture
def woken() -> list[Any]:
    return []


@pytest.fixture
async def world(api: FakeApi, woken: list[Any]) -> AsyncIterator[kind.World]:
    client = kube_client.Client(api)
    made = kind.World(client, informer.Informers(client), gate.Gate(), lambda key, **_: woken.append(key))
    yield made
    await made.informers.stop()


@pytest.fixture
async def it(world: kind.World) -> AsyncIterator[namespace_watches.Watches[View]]:
    made = namespace_watches.Watches(lambda namespace: View(world, namespace))
    yield made
    await made.stop()


def opened(world: kind.World) -> list[tuple[str, str]]:
    """Namespace and plural of each running watch."""
    return sorted((cache.scope.namespace, cache.scope.resource.plural) for cache in world.informers.all())


async def test_the_first_reader_opens_and_the_next_one_shares(
    world: kind.World, it: namespace_watches.Watches[View]
) -> None:
    assert it.peek("ns") is None
    view = it.enter("ns", "r1")

    assert view is it.enter("ns", "r2")
    assert view is it.peek("ns")
    assert [("ns", "configmaps"), ("ns", "services")] == opened(world)


async def test_an_empty_first_list_is_news(it: namespace_watches.Watches[View], woken: list[Any]) -> None:
    view = it.enter("ns", "r")
    assert [view.maps, view.services] == view.unsynced

    await until(lambda: not view.unsynced and len(woken) == 2)

    assert ["r", "r"] == woken, "once for each watch"


async def test_every_change_wakes_all_readers_of_its_namespace(
    api: FakeApi, it: namespace_watches.Watches[View], woken: list[Any]
) -> None:
    views = [it.enter("ns", "r1"), it.enter("ns", "r2"), it.enter("other", "r3")]
    await until(lambda: not any(view.unsynced for view in views) and len(woken) == 6)
    woken.clear()

    await api.put("configmaps", "one")
    await until(lambda: len(woken) == 2)
    await api.put("services", "one", namespace="other")
    await until(lambda: len(woken) == 3)
    await api.drop("configmaps", "one")
    await until(lambda: len(woken) == 5)

    assert ["r1", "r2", "r3", "r1", "r2"] == [*sorted(woken[:2]), woken[2], *sorted(woken[3:])]


async def test_a_reader_that_left_is_woken_no_more(
    api: FakeApi, it: namespace_watches.Watches[View], woken: list[Any]
) -> None:
    view = it.enter("ns", "r1")
    it.enter("ns", "r2")
    it.leave("r1")
    await until(lambda: not view.unsynced and len(woken) == 2)

    await api.put("configmaps", "one")
    await until(lambda: len(woken) == 3)

    assert {"r2"} == set(woken)
    assert view is it.peek("ns")


async def test_the_last_reader_closes_everywhere_it_read(
    world: kind.World, it: namespace_watches.Watches[View]
) -> None:
    it.enter("a", "r1")
    it.enter("b", "r1")
    it.enter("b", "r2")

    it.leave("r1")
    await until(lambda: [("b", "configmaps"), ("b", "services")] == opened(world))

    assert it.peek("a") is None
    it.leave("r2")
    await until(lambda: not opened(world))


async def test_a_reader_that_comes_back_at_once_sees_what_is_there(
    api: FakeApi, world: kind.World, it: namespace_watches.Watches[View], woken: list[Any]
) -> None:
    await api.put("configmaps", "one")
    first = it.enter("ns", "r")
    await until(lambda: not first.unsynced)
    it.leave("r")
    second = it.enter("ns", "r")

    assert first is not second
    await until(lambda: not second.unsynced and len(second.maps.items()) == 1)
    await until(lambda: len(opened(world)) == 2)
    woken.clear()
    await api.put("configmaps", "two")
    await until(lambda: len(second.maps.items()) == 2 and woken)

    assert {"r"} == set(woken)
    assert not first.readers, "the old view wakes nobody"


async def test_to_leave_without_having_read_is_nothing(it: namespace_watches.Watches[View]) -> None:
    it.leave("r")

    assert it.peek("ns") is None


async def test_one_watch_can_be_shared_with_others_who_ask_alike(
    world: kind.World, it: namespace_watches.Watches[View]
) -> None:
    other = world.informers.watch(builtin.CONFIG_MAP, dict, namespace="ns")

    for _ in range(3):
        assert other is it.enter("ns", "r").maps
        it.leave("r")
        await until(lambda: [("ns", "configmaps")] == opened(world))
    assert () == other._subscribers, "who left is not told for ever"


async def test_stop_closes_everything(world: kind.World, it: namespace_watches.Watches[View]) -> None:
    it.enter("a", "r")
    it.enter("b", "r")

    await it.stop()

    assert [] == opened(world)
    assert it.peek("a") is None
