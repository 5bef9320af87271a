"""A RuntimeVersion's whole life on an API server in memory, with NATS over its real protocol.

Its Runtime is there and ready; the kubelet's and the Deployment controller's doings are played.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage.helm.runs import binary
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.operators import accounts, system
from moorage.operators.kre import config, kinds
from moorage.operators.kre.runtime import kind as runtime_kind
from moorage.operators.kre.version import jetstream, kind, nats_access
from moorage.runtime import kind as runtime_runtime_kind
from moorage.runtime import manager
from tests.unit.runtime import fake_api

from . import nats_stub
from .versions import SPEC, STREAM

RIGHTS = accounts.Rights("kre", "moorage-system", "moorage-accounts", "moorage-kre-namespace")
DEPLOYMENTS = {"demo-v1-greet-first", "demo-v1-greet-last", "demo-v1-entrypoint"}


class Runtimes(runtime_kind.RuntimeKind):
    """They are watched, and nothing is done for them."""

    steps = deletion_steps = facts = ()

    async def start(self, world: runtime_runtime_kind.World) -> None:
        self._world = world

    async def stop(self) -> None:
        pass

    def claimed_by(self, obj: Any) -> str | None:
        return ""

    def observe(self, obj: Any, now: float) -> Any:
        return None

    def report(self, seen: Any, standing: Any) -> dict[str, Any]:
        return {}

    def forget(self, namespace: str, name: str) -> None:
        pass


class World:
    """The cluster and NATS."""

    def __init__(self, nats: nats_stub.NatsStub) -> None:
        self.api, self.nats = fake_api.FakeApi(), nats

    async def prepared(self) -> None:
        """A namespace with a Runtime, its credentials, and a pod of NATS."""
        api = self.api
        await api.put("namespaces", "ns", namespace="")
        await api.put("rolebindings", RIGHTS.binding, accounts.binding("ns", RIGHTS))
        ready = {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready"}], "observedGeneration": 1}
        await api.put("runtimes", "demo", {"spec": {}, "status": ready})
        given = {"mongoUser": "boss", "mongoPassword": "p@ss/word"}
        data = {key: base64.b64encode(text.encode()).decode() for key, text in given.items()}
        await api.put("secrets", kinds.IN_USE, {"data": data})
        owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "kre-nats", "uid": "n", "controller": True}
        labels = {kinds.COMPONENT: "nats"}
        body = {"metadata": {"ownerReferences": [owner], "labels": labels}}
        await api.put("pods", "kre-nats-0", {**body, "status": {"phase": "Running", "podIP": "127.0.0.1"}})

    async def put(self, name: str = "one", **changed: Any) -> None:
        metadata = {"creationTimestamp": "2026-01-01T00:00:00Z"}
        await self.api.put("runtimeversions", name, {"metadata": metadata, "spec": SPEC | changed})

    async def change(self, name: str = "one", **changed: Any) -> None:
        live = self.version(name)
        generation = {"generation": live["metadata"]["generation"] + 1}
        await self.api.put("runtimeversions", name, {"metadata": generation, "spec": changed})

    def version(self, name: str = "one") -> dict[str, Any]:
        return self.api.objects.get(fake_api.Place("runtimeversions", "ns", name), {})

    def phase(self, name: str = "one") -> str:
        return str((self.version(name).get("status") or {}).get("phase", ""))

    def named(self, plural: str) -> set[str]:
        return {place.name for place in self.api.objects if place.plural == plural}

    def condition(self, type_: str, name: str = "one") -> dict[str, Any]:
        stated = (self.version(name).get("status") or {}).get("conditions", ())
        return next((it for it in stated if it["type"] == type_), {})

    def active(self) -> dict[str, Any]:
        """The Service of what is published."""
        return self.api.one("services", "demo-active-entrypoint")

    async def roll(self) -> None:
        """All Deployments are what their specs say."""
        for place, live in list(self.api.objects.items()):
            counts = ("replicas", "readyReplicas", "availableReplicas", "updatedReplicas")
            if place.plural == "deployments":
                generation = live["metadata"].get("generation", 1)
                status = dict.fromkeys(counts, live["spec"]["replicas"]) | {"observedGeneration": generation}
                if live.get("status") != status:
                    await self.api.put("deployments", place.name, {"status": status})

    async def until(self, condition: Any) -> None:
        await fake_api.until(condition, within=120)


@contextlib.asynccontextmanager
async def operating(world: World, scratch: Path) -> AsyncIterator[None]:
    around = system.Environment("moorage-system", scratch, Path("helm"), binary.KubeAccess(), 3.0)
    settings = config.Config("moorage-accounts", "moorage-kre-namespace", poll=config.Poll(0.1, 0.1))
    runtimes = Runtimes(settings, around)
    versions = kind.VersionKind(settings, around, runtimes)
    stop = asyncio.Event()
    options = manager.Settings(identity="me", namespace="moorage-system", elect=False, port=0)
    running = asyncio.create_task(
        manager.Manager(kube_client.Client(world.api), [runtimes, versions], options).run(stop)
    )
    try:
        yield
    finally:
        stop.set()
        await running


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    async with nats_stub.NatsStub().running() as nats:
        monkeypatch.setattr(nats_access, "PORT", nats.port)
        made = World(nats)
        await made.prepared()
        yield made


async def test_made_started_published_stopped_and_gone(world: World, tmp_path: Path) -> None:
    """Each phase in the product's words, what there is in each, and in the end nothing."""
    nats, api = world.nats, world.api
    await world.put()
    async with operating(world, tmp_path):
        await world.until(lambda: DEPLOYMENTS <= world.named("deployments"))
        await world.until(lambda: "STARTING" == world.phase())
        assert {STREAM, "OBJ_demo_v1_greet_models", "KV_key-store_demo_v1"} <= nats.streams.keys()
        assert {f"{STREAM}-entrypoint-first", f"{STREAM}-first-last"} == nats.consumers[STREAM].keys()
        uri = base64.b64decode(api.one("secrets", "demo-v1-mongo")["data"]["uri"]).decode()
        assert "mongodb://boss:p%40ss%2Fword@kre-mongo:27017/?authSource=admin" == uri
        assert {RIGHTS.user("ns")} == {it.user for it in api.writes("deployments")}

        await world.roll()
        await world.until(lambda: "STARTED" == world.phase())
        await world.until(lambda: "True" == world.condition("Ready").get("status"))
        assert (3, 3) == (world.version()["status"]["ready"], world.version()["status"]["nodeCount"])

        await api.put("runtimes", "demo", {"spec": {"publishedVersion": "v1"}})
        await world.until(lambda: "PUBLISHED" == world.phase())
        assert "v1" == world.active()["spec"]["selector"]["version-name"]

        await world.change(running=False)
        await world.until(lambda: "Published" == world.condition("Ready").get("reason"))
        assert DEPLOYMENTS <= world.named("deployments")

        await api.put("runtimes", "demo", {"spec": {"publishedVersion": ""}})
        nats.pending[f"{STREAM}-first-last"] = 7
        await world.until(lambda: "Draining" == world.condition("Ready").get("reason"))
        assert f"{STREAM}-first-last 7" in world.condition("Ready")["message"]
        assert {"demo-v1-greet-first", "demo-v1-greet-last"} == world.named("deployments")
        await world.until(lambda: "STOPPING" == world.phase())
        assert "demo-active-entrypoint" not in world.named("services")

        nats.pending.clear()
        await world.until(lambda: "STOPPED" == world.phase())
        assert not world.named("deployments") | world.named("services") | world.named("configmaps")
        assert {kinds.IN_USE} == world.named("secrets")
        assert {"key-store_demo_v1", "key-store_demo_v1_greet"} < {
            name.removeprefix("KV_") for name in nats.streams if name.startswith("KV_")
        }
        assert all(name.startswith("KV_") for name in nats.streams)

        await api.mark_deleted("runtimeversions", "one")
        await world.until(lambda: not world.version())
        assert not nats.streams
        assert {RIGHTS.binding} == world.named("rolebindings")


async def test_at_rest_nothing_is_written(world: World, tmp_path: Path) -> None:
    """Neither to the API server nor to NATS, also not by another process that takes over."""
    await world.put()
    async with operating(world, tmp_path):
        await world.until(lambda: DEPLOYMENTS <= world.named("deployments"))
        await world.roll()
        await world.until(lambda: "STARTED" == world.phase())
        await world.until(lambda: "True" == world.condition("Ready").get("status"))
    before, asked = len(world.api.writes()), len(world.nats.changes)
    looks = len(world.nats.asked)
    async with operating(world, tmp_path):
        await world.until(lambda: looks + 12 < len(world.nats.asked))

    assert [] == world.api.writes()[before:]
    assert [] == world.nats.changes[asked:]


async def test_a_published_version_gives_way_by_one_write(world: World, tmp_path: Path) -> None:
    """The other leads there until the new one is ready; then one apply of the Service moves calls."""
    await world.api.put("runtimes", "demo", {"spec": {"publishedVersion": "v1"}})
    await world.put()
    await world.put("two", version="v2")
    async with operating(world, tmp_path):
        await world.until(lambda: 6 == len(world.named("deployments")))
        await world.roll()
        await world.until(lambda: ("PUBLISHED", "STARTED") == (world.phase(), world.phase("two")))
        first = world.active()
        before = len([it for it in world.api.writes("services") if "active" in it.at.name])

        await world.api.put("runtimes", "demo", {"spec": {"publishedVersion": "v2"}})
        await world.until(lambda: ("STARTED", "PUBLISHED") == (world.phase(), world.phase("two")))

    now = world.active()
    assert ("v1", "v2") == (first["spec"]["selector"]["version-name"], now["spec"]["selector"]["version-name"])
    assert first["metadata"]["uid"] == now["metadata"]["uid"]
    assert 1 == len([it for it in world.api.writes("services") if "active" in it.at.name]) - before


async def test_a_node_that_leaves_takes_its_own_along_when_nobody_uses_it(world: World, tmp_path: Path) -> None:
    """Before the change is rolled out its consumer and its subjects are kept; then they go, and stores stay."""
    nats = world.nats
    await world.put()
    async with operating(world, tmp_path):
        await world.until(lambda: DEPLOYMENTS <= world.named("deployments"))
        await world.roll()
        await world.until(lambda: "STARTED" == world.phase())

        flow = SPEC["workflows"][0]
        only = {**flow["nodes"][1], "subscriptions": ["entrypoint"]}
        await world.change(workflows=[{**flow, "nodes": [only]}])
        await world.until(lambda: f"{STREAM}-entrypoint-last" in nats.consumers[STREAM])
        assert f"{STREAM}-first-last" in nats.consumers[STREAM]
        assert f"{STREAM}.first" in nats.streams[STREAM]["subjects"]
        await world.until(lambda: _input(world) == f"{STREAM}.entrypoint")
        await world.roll()
        await world.until(lambda: {f"{STREAM}-entrypoint-last"} == nats.consumers[STREAM].keys())
        await world.until(lambda: f"{STREAM}.first" not in nats.streams[STREAM]["subjects"])

    assert {"demo-v1-greet-last", "demo-v1-entrypoint"} == world.named("deployments")
    assert "KV_key-store_demo_v1_greet_first" in nats.streams


def _input(world: World) -> str:
    spec = world.api.one("deployments", "demo-v1-greet-last")["spec"]["template"]["spec"]
    return {it["name"]: it.get("value", "") for it in spec["containers"][0]["env"]}["KRT_NATS_INPUTS"]


async def test_what_is_somebody_else_s_in_nats_is_left_alone(world: World, tmp_path: Path) -> None:
    """It is told by its name, nothing is made beside it, and it heals when the other is gone."""
    foreign = {"name": STREAM, "subjects": ["x"], "num_replicas": 1}
    world.nats.streams[STREAM], world.nats.consumers[STREAM] = dict(foreign), {}
    await world.put()
    async with operating(world, tmp_path):
        await world.until(lambda: "ForeignStream" == world.condition("Ready").get("reason"))
        assert f"stream {STREAM}" in world.condition("Ready")["message"]
        assert ([], foreign) == (world.nats.changes, world.nats.streams[STREAM])

        del world.nats.streams[STREAM]
        await world.until(lambda: DEPLOYMENTS <= world.named("deployments"))


async def test_with_its_namespace_s_runtime_a_version_ends(world: World, tmp_path: Path) -> None:
    """NATS is gone with it: objects go, rights are bound for that and given back by the last."""
    await world.put()
    async with operating(world, tmp_path):
        await world.until(lambda: DEPLOYMENTS <= world.named("deployments"))
        await world.api.drop("runtimes", "demo")
        await world.api.drop("rolebindings", RIGHTS.binding)
        await world.api.mark_deleted("runtimeversions", "one")
        await world.until(lambda: not world.version())

    assert not world.named("deployments") | world.named("rolebindings")


# --- killed at each write ---------------------------------------------------------------------------------------------


class Cut:
    """At the nth write, to the API server or to NATS, everything breaks off: right before it, or right after it."""

    def __init__(self, world: World, at: int, *, before: bool) -> None:
        self.world, self.at, self._before = world, at, before
        self.writes = 0
        self.over = False
        world.api.before, world.api.after, world.nats.answer = self._on_request, self._on_answer, self._on_question

    def mended(self) -> None:
        self.world.api.before = self.world.api.after = None
        self.world.nats.answer = lambda _: None
        self.world.nats.silent = ""

    async def _on_request(self, asked: fake_api.Asked) -> None:
        if self.over or (_writes(asked) and self._hits() and self._before):
            raise fake_api.Refusal(503)

    async def _on_answer(self, asked: fake_api.Asked) -> None:
        if _writes(asked) and self.over:
            raise errors.TransportError("broken off", sent=True)

    def _on_question(self, what: str) -> bytes | None:
        if self.over:
            return b""
        if any(verb in what for verb in ("CREATE", "UPDATE", "DELETE")) and self._hits():
            if self._before:
                return b""
            self.world.nats.silent = what
        return None

    def _hits(self) -> bool:
        self.writes += 1
        self.over = self.over or self.writes == self.at
        return self.over


def _writes(asked: fake_api.Asked) -> bool:
    return asked.method != "GET" and asked.at.plural not in ("events", "leases")


def left(world: World) -> dict[str, Any]:
    """All there is, but for what tells one time from another."""
    version = (world.version().get("status") or {}).get("phase")
    objects = {(place.plural, place.name) for place in world.api.objects if place.plural not in ("events", "leases")}
    return {"phase": version, "objects": objects, "nats": world.nats.streams, "consumers": world.nats.consumers}


async def lived(world: World, scratch: Path, story: str) -> None:
    """One process from where it finds things until all is as that story ends."""
    async with operating(world, scratch):
        if story == "gone":
            await world.until(lambda: not world.version())
            return
        async with asyncio.timeout(120):
            while story.upper() != world.phase():
                await world.roll()
                await asyncio.sleep(0.01)


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.campaign)], ids=["some", "each"])
@pytest.mark.parametrize("story", ["started", "stopped", "gone"])
async def test_killed_at_any_write_it_goes_on(
    story: str, step: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whatever was lost with it, another process comes to the very end that an undisturbed one comes to."""
    expected, at, before = None, 0, False
    while True:
        monkeypatch.setattr(jetstream, "REQUEST_LIMIT", 30.0)
        async with nats_stub.NatsStub().running() as nats:
            monkeypatch.setattr(nats_access, "PORT", nats.port)
            world = World(nats)
            await world.prepared()
            await world.put()
            if story != "started":
                await lived(world, tmp_path, "started")
                await (world.change(running=False) if story == "stopped" else _delete(world))
            cut = Cut(world, at, before=before)
            if at:
                monkeypatch.setattr(jetstream, "REQUEST_LIMIT", 0.1)  # what is broken off gets no answer
                async with operating(world, tmp_path):
                    async with asyncio.timeout(120):
                        while not cut.over and not _is_over(world, story):
                            await world.roll()
                            await asyncio.sleep(0.01)
                cut.mended()
            monkeypatch.setattr(jetstream, "REQUEST_LIMIT", 30.0)
            await lived(world, tmp_path, story)
            if expected is None:
                expected = left(world)
            assert expected == left(world), f"broken off at write {at}, {'before' if before else 'after'} it"
            if at and not cut.over:
                break
        at, before = at + step, not before
    assert at > 5


async def _delete(world: World) -> None:
    await world.api.mark_deleted("runtimeversions", "one")


def _is_over(world: World, story: str) -> bool:
    return not world.version() if story == "gone" else story.upper() == world.phase()
