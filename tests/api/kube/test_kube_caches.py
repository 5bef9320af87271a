"""Caches against a real API server: they follow, they heal, and they know their own writes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from moorage.api import builtin, crd
from moorage.api.meta import ObjectMeta, Partial, Resource
from moorage.kube import client as kube_client
from moorage.kube import credentials, errors
from moorage.kube.http import transport
from moorage.kube.informers import informer, reflector
from tests.api.faults import faulty, waiting

from . import conftest

Client = kube_client.Client
Make = Callable[..., Awaitable[dict[str, Any]]]
CONFIG_MAP = builtin.CONFIG_MAP
until = waiting.until


class ConfigMap(msgspec.Struct, frozen=True, gc=False):
    metadata: ObjectMeta
    data: dict[str, str] = {}


async def test_follows_without_listing_again(
    informers: informer.Informers, wire: faulty.Wire, client: Client, namespace: str, configmap: Make
) -> None:
    """Each watch lives for seconds only, so several are needed, and each resumes where the last one was.

    A streaming list is the beginning of the first watch, and a list in pages one request more.
    """
    await configmap("first", x="1")
    cache = informers.watch(CONFIG_MAP, ConfigMap, namespace=namespace)
    thin = informers.watch(CONFIG_MAP, Partial, namespace=namespace, metadata_only=True)
    await cache.wait_synced(60)
    await configmap("first", x="2")
    await configmap("second")
    await client.delete(CONFIG_MAP, namespace, "second", propagation="Background")
    await until(lambda: wire.calls["watch"] >= 8)
    await configmap("third")
    await until(lambda: bool(cache.get(namespace, "third") and thin.get(namespace, "third")))

    found = cache.get(namespace, "first")
    assert found is not None
    assert found.data == {"x": "2"}
    assert cache.get(namespace, "second") is None
    assert wire.calls["GET"] + wire.watched_from.count("") == 2
    assert informers.healthy() == []


async def test_bookmarks_move_the_version(
    admin: credentials.Credentials, client: Client, namespace: str, configmap: Make
) -> None:
    """What happens elsewhere must not age a quiet watch until its version is compacted away."""
    wire = faulty.Wire(transport.HttpTransport(admin))
    pace = reflector.Pace(lifetime=4.0, chance=lambda: 0.0)
    cache = informer.Informer(Client(wire), reflector.Scope(CONFIG_MAP, namespace, "none=such"), ConfigMap, pace=pace)
    cache.start()
    await cache.wait_synced(60)
    later = await configmap("elsewhere")
    version = int(later["metadata"]["resourceVersion"])
    await until(lambda: int(wire.watched_from[-1] or 0) >= version)  # a bookmark may have come right before it

    assert 1 == wire.watched_from.count("")
    assert wire.calls["GET"] == 0
    await cache.stop()
    await wire.close()


async def test_own_writes_are_read_back_and_cause_no_work(
    informers: informer.Informers, client: Client, namespace: str, configmap: Make
) -> None:
    cache = informers.watch(CONFIG_MAP, ConfigMap, namespace=namespace)
    await cache.wait_synced(60)
    told: list[informer.Change[ConfigMap]] = []
    cache.subscribe(told.append)
    told.clear()
    for count in range(50):
        async with cache.writing(namespace, "mine") as own:
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}, "data": {"n": str(count)}}
            own.took(await client.apply(CONFIG_MAP, namespace, "mine", body, field_manager="test", as_=ConfigMap))
        found = cache.get(namespace, "mine")
        assert found is not None
        assert found.data == {"n": str(count)}
    async with cache.writing(namespace, "mine") as own:
        own.deleted(await client.delete(CONFIG_MAP, namespace, "mine", propagation="Background"))
    assert cache.get(namespace, "mine") is None
    await configmap("theirs")
    await until(lambda: cache.get(namespace, "theirs") is not None)

    names = [change.new and change.new.metadata.name for change in told]
    names = [name for name in names if name != "kube-root-ca.crt"]  # which the cluster writes, at any time
    assert names == ["theirs"]


async def test_rights_withdrawn_and_given_back(
    account: credentials.InCluster, client: Client, namespace: str, configmap: Make
) -> None:
    await configmap("a", x="1")
    wire = faulty.Wire(transport.HttpTransport(account))
    scope = reflector.Scope(CONFIG_MAP, namespace)
    cache = informer.Informer(Client(wire), scope, ConfigMap, pace=conftest.QUICK)
    cache.start()
    await until(lambda: cache.healthy)
    await client.delete(builtin.ROLE_BINDING, namespace, "reader", propagation="Background")
    await until(lambda: "403 Forbidden" in cache.error)
    assert not cache.healthy
    assert cache.get(namespace, "a") is not None
    await configmap("a", x="2")
    await client.create(builtin.ROLE_BINDING, namespace, conftest.binding(namespace), field_manager="test")
    await until(lambda: cache.healthy)

    def renewed() -> bool:
        found = cache.get(namespace, "a")
        return found is not None and found.data == {"x": "2"}

    await until(renewed)
    await cache.stop()
    await wire.close()


class Nothing(msgspec.Struct, frozen=True):
    """A spec without fields."""


async def test_a_definition_deleted_and_made_anew(
    informers: informer.Informers, client: Client, namespace: str
) -> None:
    group = f"{namespace}.moorage.dev"
    reed = Resource(group, "v1", "Reed", "reeds")
    definition = crd.crd(group=group, version="v1", kind="Reed", plural="reeds", spec=Nothing)
    name = definition["metadata"]["name"]

    async def define() -> None:
        await client.apply(builtin.CRD, "", name, definition, field_manager="test")
        await until(lambda: served(reed))

    async def served(resource: Resource) -> bool:
        """By the definition that is there now: one that has just gone may be served for a moment longer."""
        try:
            found = await client.get(builtin.CRD, "", name)
            await client.list(resource, namespace)
        except errors.ApiError:
            return False
        stated = (found.get("status") or {}).get("conditions") or ()
        return any((each["type"], each["status"]) == ("Established", "True") for each in stated)

    async def make(name: str) -> None:
        body = {"apiVersion": reed.api_version, "kind": "Reed", "metadata": {"name": name}}
        await client.create(reed, namespace, body, field_manager="test")

    cache = informers.watch(reed, Partial)
    await until(lambda: "404" in cache.error)
    assert not cache.synced
    await define()
    await make("old")
    await until(lambda: cache.healthy and cache.get(namespace, "old") is not None)

    await client.delete(builtin.CRD, "", name, propagation="Background")
    await until(lambda: not cache.healthy, within=60)

    async def gone() -> bool:
        try:
            await client.get(builtin.CRD, "", name)
        except errors.NotFound:
            return True
        return False

    await until(gone, within=60)
    await define()
    await make("new")
    await until(lambda: cache.healthy and cache.get(namespace, "new") is not None)
    assert cache.get(namespace, "old") is None
    await client.delete(builtin.CRD, "", name, propagation="Background")


async def test_many_watches_stop_at_once(informers: informer.Informers, namespace: str) -> None:
    for number in range(30):
        informers.watch(CONFIG_MAP, Partial, namespace=namespace, labels=f"n={number}")
    await asyncio.gather(*(cache.wait_synced(60) for cache in informers.all()))
    async with asyncio.timeout(30):
        await informers.stop()
