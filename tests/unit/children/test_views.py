"""What is watched of owned objects in a namespace, and what around them is asked for."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from moorage.api import builtin, meta
from moorage.children.live import surroundings, views
from moorage.kube import client as kube_client
from moorage.kube.informers import informer
from moorage.runtime import freshness, gate, kind
from tests.unit.children.depots import LABEL
from tests.unit.runtime.fake_api import Asked, FakeApi, Refusal, until

DEPOT = meta.ObjectMeta(name="d", namespace="ns", uid="uid-d")
MINE: dict[str, Any] = {"labels": {LABEL: "d"}}
READER = ("Depot", "ns", "d")


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


@pytest.fixture
async def world(api: FakeApi) -> AsyncIterator[kind.World]:
    client = kube_client.Client(api)
    made = kind.World(client, informer.Informers(client), gate.Gate(), lambda *_, **__: None)
    yield made
    await made.informers.stop()


@contextlib.asynccontextmanager
async def watched(world: kind.World) -> AsyncIterator[views.View]:
    """The view of what there is by now."""
    resources = (builtin.STATEFUL_SET, builtin.POD, builtin.VOLUME_CLAIM, builtin.SERVICE, builtin.SECRET)
    view = views.View(world, "ns", "system:one", label=LABEL, resources=resources)
    try:
        await until(lambda: not view.unsynced)
        yield view
    finally:
        await view.close()


def owner(kind_: str, name: str, uid: str) -> dict[str, Any]:
    return {"ownerReferences": [{"apiVersion": "v1", "kind": kind_, "name": name, "uid": uid, "controller": True}]}


async def test_what_is_watched_is_labelled_and_read_with_the_right_account(api: FakeApi, world: kind.World) -> None:
    """Of Secrets nothing but metadata is held: their content is nobody's business."""
    async with watched(world) as view:
        only = {resource.kind for resource, cache in view.objects.items() if cache.scope.metadata_only}

    assert {"system:one"} == {asked.user for asked in api.requests}
    assert {LABEL} == {str(asked.query["labelSelector"]) for asked in api.requests}
    assert {"Secret"} == only


async def test_what_is_seen_is_in_one_order_whatever_came_first(api: FakeApi, world: kind.World) -> None:
    for number in (10, 2, 0, 1):
        await api.put("persistentvolumeclaims", f"data-d-{number}", {"metadata": MINE})
    await api.put("persistentvolumeclaims", "data-e-0", {"metadata": {"labels": {LABEL: "e"}}})
    async with watched(world) as view:
        found = [it["metadata"]["name"] for it in view.of(builtin.VOLUME_CLAIM, "d")]

    assert ["data-d-0", "data-d-1", "data-d-2", "data-d-10"] == found


async def test_another_owners_object_counts_as_missing(api: FakeApi, world: kind.World) -> None:
    await api.put("services", "d", {"metadata": MINE | owner("Depot", "d", "uid-d")})
    await api.put("services", "d-other", {"metadata": {"labels": {LABEL: "e"}}})
    await api.put("services", "d-left", {"metadata": MINE | owner("Depot", "d", "uid-of-old")})
    async with watched(world) as view:
        found = [view.mine(builtin.SERVICE, name, DEPOT) for name in ("d", "d-other", "d-left", "d-none")]

    assert [True, False, False, False] == [it is not None for it in found]


async def test_members_are_told_by_ownership_and_not_by_their_label(api: FakeApi, world: kind.World) -> None:
    """Anybody who may make pods may give them a label and a name."""
    await api.put("statefulsets", "d", {"metadata": {"uid": "uid-s"} | MINE | owner("Depot", "d", "uid-d")})
    await api.put("pods", "d-0", {"metadata": MINE | owner("StatefulSet", "d", "uid-s")})
    await api.put("pods", "d-1", {"metadata": MINE})
    await api.put("pods", "d-2", {"metadata": MINE | owner("StatefulSet", "d", "uid-of-old")})
    await api.put("pods", "d-3", {"metadata": MINE | owner("ReplicaSet", "d", "uid-r")})

    def named(pods: list[dict[str, Any]]) -> list[str]:
        return [pod["metadata"]["name"] for pod in pods]

    async with watched(world) as view:
        assert ["d-0", "d-1", "d-2"] == named(view.pods_of("d"))
        assert ["d-0"] == named(view.members_of("d", "uid-d"))
        assert [] == view.members_of("d", "uid-of-another"), "its StatefulSet is not this owner's"
        assert [] == view.members_of("e", "uid-d")


# --- around them --------------------------------------------------------------------------------------------------


@pytest.fixture
async def around(world: kind.World) -> AsyncIterator[surroundings.Surroundings]:
    made = surroundings.Surroundings(world, lambda namespace: world.client.as_(f"system:{namespace}"))
    yield made
    for source in made.all:
        await source.stop()


CLASSES: dict[str, tuple[str, bool]] = {
    "it lets them grow": ("grows", True),
    "it does not": ("fixed", False),
    "it says nothing": ("silent", False),
    "it is not there": ("missing", False),
    "none is named": ("", False),
}


@pytest.mark.parametrize(("name", "expected"), CLASSES.values(), ids=CLASSES)
async def test_whether_a_class_lets_volumes_grow(
    api: FakeApi, around: surroundings.Surroundings, name: str, expected: bool
) -> None:
    await api.put("storageclasses", "grows", {"allowVolumeExpansion": True}, namespace="")
    await api.put("storageclasses", "fixed", {"allowVolumeExpansion": False}, namespace="")
    await api.put("storageclasses", "silent", {}, namespace="")
    around.classes.read(name, READER)
    await until(lambda: not isinstance(around.classes.peek(name), freshness.Failed))

    assert expected is freshness.value_of(around.classes.peek(name))


@pytest.mark.parametrize("may", [True, False], ids=["it may read events", "it may not"])
async def test_warnings_are_read_with_the_namespaces_account(
    api: FakeApi, around: surroundings.Surroundings, *, may: bool
) -> None:
    """Where they may not be read nothing is told, and nothing fails for it."""
    await api.put("events", "d.1", {"type": "Warning", "note": "no"})

    async def forbid(asked: Asked) -> None:
        if asked.at.plural == "events" and not may:
            raise Refusal(403, "Forbidden")

    api.before = forbid
    around.warnings.follow("ns", READER)
    await until(lambda: not isinstance(around.warnings.peek("ns"), freshness.Failed))

    found = freshness.value_of(around.warnings.peek("ns"))
    assert found is not None
    assert (["no"] if may else []) == [event["note"] for event in found]
    assert {"system:ns"} == {asked.user for asked in api.requests if asked.at.plural == "events"}


READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
LOOKS: dict[str, tuple[list[dict[str, Any]], bool]] = {
    # id: (the pods of two that are wanted, whether warnings are asked for)
    "both are ready": ([READY, READY], False),
    "one is missing": ([READY], True),
    "one is not ready": ([READY, {}], True),
    "one is too many": ([READY, READY, READY], False),
}


@pytest.mark.parametrize(("pods", "asks"), LOOKS.values(), ids=LOOKS)
async def test_warnings_are_asked_for_while_something_is_wrong(
    api: FakeApi, around: surroundings.Surroundings, pods: list[dict[str, Any]], asks: bool
) -> None:
    """And nobody goes on asking once all is well."""
    await api.put("events", "d.1", {"type": "Warning", "note": "no"})
    assert () == around.warnings_about(pods, 2, "ns", READER)
    if asks:
        await until(lambda: around.warnings_about(pods, 2, "ns", READER))
        assert ["no"] == [event["note"] for event in around.warnings_about(pods, 2, "ns", READER)]

    around.warnings_about([READY, READY], 2, "ns", READER)
    assert isinstance(around.warnings.peek("ns"), freshness.Failed), "what nobody asks for is forgotten"


async def test_of_very_many_warnings_the_first_are_looked_at(
    api: FakeApi, around: surroundings.Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surroundings, "MAX_WARNINGS", 1)
    asked: list[Asked] = []

    async def note(it: Asked) -> None:
        asked.append(it)

    api.before = note
    await api.put("events", "d.1", {"type": "Warning"})
    around.warnings.follow("ns", READER)
    await until(lambda: not isinstance(around.warnings.peek("ns"), freshness.Failed))

    assert "type=Warning" == asked[0].query["fieldSelector"]
    assert 1 == len([it for it in asked if it.at.plural == "events"])
