"""The observation of a RuntimeVersion, made from an API server and from NATS: whose it is, and what is known of it."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage.api import builtin
from moorage.helm.runs import binary
from moorage.kube import client as kube_client
from moorage.kube.informers import informer
from moorage.operators import accounts, system
from moorage.operators.kre import config, kinds
from moorage.operators.kre.reasons import VersionReason as Reason
from moorage.operators.kre.runtime import kind as runtime_kind
from moorage.operators.kre.runtime import servers
from moorage.operators.kre.runtime import types as runtime_types
from moorage.operators.kre.runtime.observation import PublishedSeen, VersionSeen
from moorage.operators.kre.version import inputs, jetstream, kind, nats_access, types
from moorage.operators.kre.version.observation import RuntimeSeen, Seen
from moorage.runtime import decision, freshness, gate
from moorage.runtime import kind as any_kind
from tests.unit.runtime import fake_api

from . import nats_stub, versions
from .versions import SPEC, STREAM

NOW = 1_800_000_000.0
RIGHTS = accounts.Rights("kre", "moorage-system", "moorage-accounts", "moorage-kre-namespace")
SETTINGS = config.Config("moorage-accounts", "moorage-kre-namespace", poll=config.Poll(0.05, 0.05))
READY = {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready"}]}


class Made:
    """The kind on a server, and what it was told to look at."""

    def __init__(
        self, api: fake_api.FakeApi, of: kind.VersionKind, runtimes: runtime_kind.RuntimeKind, woken: list[Any]
    ) -> None:
        self.api, self.kind, self.runtimes, self.woken = api, of, runtimes, woken

    def view(self) -> servers.View:
        """Of its Runtime's kind, which is not started here."""
        return servers.View(self.runtimes._world, "ns", RIGHTS.user("ns"))

    def obj(self, name: str = "one") -> types.RuntimeVersion:
        found = self.kind.find("ns", name)
        assert found is not None
        return found

    def seen(self, name: str = "one") -> Seen:
        return self.kind.observe(self.obj(name), NOW)

    async def known(self, name: str = "one") -> Seen:
        """What is seen once all was looked at but NATS."""
        await fake_api.until(lambda: not isinstance(self.seen(name).objects, freshness.Failed))
        await fake_api.until(lambda: not isinstance(self.seen(name).inputs, freshness.Failed))
        return self.seen(name)

    async def call(self, operation: str, **args: Any) -> decision.Outcome:
        return await self.kind.operations[operation](self.obj(), args)


@contextlib.asynccontextmanager
async def started(*, bound: bool = True, runtime: dict[str, Any] | None = None, **changed: Any) -> AsyncIterator[Made]:
    """A Runtime `demo` and a version `one`; `bound`: with all rights."""
    api = fake_api.FakeApi()
    if bound:
        await api.put("rolebindings", RIGHTS.binding, accounts.binding("ns", RIGHTS))
    await api.put("runtimes", "demo", {"spec": runtime or {}, "status": READY})
    await api.put("secrets", kinds.IN_USE, {"data": {key: base64.b64encode(b"x y").decode() for key in KEYS}})
    await put(api, "one", "2026-01-02T00:00:00Z", **changed)
    client = kube_client.Client(api)
    informers = informer.Informers(client)
    around = system.Environment("moorage-system", Path("scratch"), Path("helm"), binary.KubeAccess(), 3.0)
    runtimes = runtime_kind.RuntimeKind(SETTINGS, around)
    runtimes.informers = [informers.watch(kinds.RUNTIME, runtime_types.Runtime)]
    made = kind.VersionKind(SETTINGS, around, runtimes)
    made.informers = [informers.watch(kinds.RUNTIME_VERSION, types.RuntimeVersion)]
    woken: list[Any] = []
    world = any_kind.World(client, informers, gate.Gate(), lambda key, **_: woken.append(key))
    runtimes._world = world  # all that it needs of its own start here
    await made.start(world)
    try:
        for cache in informers.all():
            await cache.wait_synced(5)
        yield Made(api, made, runtimes, woken)
    finally:
        await made.stop()
        await informers.stop()


KEYS = ("mongoUser", "mongoPassword")


async def put(api: fake_api.FakeApi, name: str, created: str, **changed: Any) -> None:
    metadata = {"finalizers": [kinds.VERSION_FINALIZER], "creationTimestamp": created}
    await api.put("runtimeversions", name, {"metadata": metadata, "spec": SPEC | changed})


# --- its place --------------------------------------------------------------------------------------------------------


async def test_without_rights_nothing_is_watched() -> None:
    """All is read with the rights of the namespace's account."""
    async with started(bound=False) as made:
        found = made.seen()

        assert freshness.Fresh(None).value == freshness.value_of(found.binding)
        assert {"NotYet"} == {each.reason for each in (found.inputs, found.nats, found.objects)}  # type: ignore[union-attr]
        assert RIGHTS.user("ns") not in {asked.user for asked in made.api.requests}


async def test_with_rights_all_is_read_as_the_namespace_s_account() -> None:
    """But what is everywhere."""
    async with started() as made:
        await made.known()

        own = {"configmaps", "secrets", "services", "deployments", "pods"}
        assert {RIGHTS.user("ns")} == {asked.user for asked in made.api.requests if asked.at.plural in own}
        assert RIGHTS.user("ns") == made.kind.user(made.obj())
        assert "kre:ns" == made.kind.placement(made.obj())


async def test_the_runtime_that_is_meant() -> None:
    """The only one, or the named one; as it stands by its own status."""
    spec = {"publishedVersion": "v1", "nats_streaming": {"replicas": 3}}
    async with started(runtime=spec) as made:
        await made.api.put("runtimes", "demo", {"status": {"natsServers": 3}})
        await fake_api.until(lambda: 3 == made.seen().runtime.servers)  # type: ignore[union-attr]
        (found,) = made.seen().runtimes.value  # type: ignore[union-attr]
        assert RuntimeSeen("demo", found.uid, True, False, "v1", servers=3) == found
        assert found.uid == made.api.one("runtimes", "demo")["metadata"]["uid"]

        await made.api.put("runtimes", "other", {"spec": {}})
        await fake_api.until(lambda: ("demo", "other") == made.seen().others)
        assert 2 == len(made.seen().runtimes.value)  # type: ignore[union-attr]
        await made.api.put("runtimeversions", "one", {"spec": {"runtimeRef": {"name": "other"}}})
        await fake_api.until(lambda: made.seen().runtime is not None)
        assert ("other", False) == (made.seen().runtime.name, made.seen().runtime.ready)  # type: ignore[union-attr]


async def test_what_is_deleted_means_the_runtime_that_it_was_made_in() -> None:
    """Whatever its spec names by then."""
    async with started(runtimeRef={"name": "nobody"}) as made:
        assert made.seen().runtime is None
        await made.api.put("runtimeversions", "one", {"status": {"made": True, "runtime": "demo"}})
        await made.api.mark_deleted("runtimeversions", "one")
        await fake_api.until(lambda: made.seen().runtime is not None)

        assert "demo" == made.seen().names.runtime


async def test_of_two_of_one_name_the_older_has_it() -> None:
    """And who has waited hears when the other is gone."""
    async with started() as made:
        await put(made.api, "old", "2026-01-01T00:00:00Z")
        await fake_api.until(lambda: "old" == made.seen().older)
        assert "" == made.seen("old").older
        await put(made.api, "else", "2026-01-01T00:00:00Z", version="v2")
        made.woken.clear()
        await made.api.drop("runtimeversions", "old")
        await fake_api.until(lambda: "" == made.seen().older)

        assert ("RuntimeVersion", "ns", "one") in made.woken


async def test_runtimes_and_versions_are_neighbours() -> None:
    """The last of them gives the rights back."""
    async with started() as made:
        assert 1 == made.seen().neighbours
        await made.api.drop("runtimes", "demo")
        await fake_api.until(lambda: 0 == made.seen().neighbours)

        assert "it has become the last one of its namespace" == await made.kind.guards["others_stay"](made.obj(), {})


async def test_a_runtime_knows_what_is_made_in_it() -> None:
    """Of its namespace, and not before versions are known; who waits for their end is woken by each."""

    def held(made: Made) -> Any:
        (runtime,) = made.runtimes.items()
        return freshness.value_of(made.runtimes._made_in(runtime))

    async with started() as made:
        assert () == held(made)  # nothing of it is there yet
        await made.api.put("runtimeversions", "one", {"status": {"made": True, "runtime": "demo"}})
        await fake_api.until(lambda: (VersionSeen("one"),) == held(made))
        await made.api.put("runtimeversions", "one", {"status": {"made": True, "runtime": "other"}})
        await fake_api.until(lambda: () == held(made))
        await made.api.put("runtimeversions", "one", {"status": {"runtime": ""}})
        await fake_api.until(lambda: (VersionSeen("one"),) == held(made))

        (runtime,) = made.runtimes.items()
        assert not [key for key in made.woken if key[0] == "Runtime"]
        await made.api.put("runtimes", "demo", {"metadata": {"finalizers": [kinds.RUNTIME_FINALIZER]}})
        await made.api.mark_deleted("runtimes", "demo")
        await fake_api.until(lambda: made.runtimes.items()[0].metadata.deleting)
        await made.api.drop("runtimeversions", "one")
        await fake_api.until(lambda: ("Runtime", "ns", "demo") in made.woken)
        assert () == held(made)
        made.runtimes.versions = lambda: None
        assert isinstance(made.runtimes._made_in(runtime), freshness.Failed)


async def test_a_runtime_wakes_its_versions_by_what_they_read_of_it() -> None:
    """Not by each of its status' writes."""
    async with started(bound=False) as made:
        await made.api.put("runtimes", "demo", {"spec": {"publishedVersion": "v1"}})
        await fake_api.until(lambda: made.seen().published)
        made.woken.clear()
        await made.api.put("runtimes", "demo", {"status": {"phase": "STARTED"}})
        await made.api.put("runtimes", "demo", {"spec": {"publishedVersion": "v2"}})
        await fake_api.until(lambda: not made.seen().published)

        assert [("RuntimeVersion", "ns", "one")] == made.woken


BEFORE = {"publishOnFailure": "Previous", "publishedVersion": "v2"}
KNOWN = {"publishedVersion": "v2", "previousVersion": "v1"}
BROKEN = {"phase": "ERROR", "nodes": [{"workflow": "", "name": "entrypoint", "ready": 0, "wanted": 1}]}


async def test_a_version_stands_in_for_one_that_is_broken_by_its_own_word() -> None:
    """Where the Runtime asks for that, and has published the other before; both are woken by how the other is."""
    async with started(runtime=BEFORE) as made:
        await put(made.api, "two", "2026-01-03T00:00:00Z", version="v2")
        await fake_api.until(lambda: made.kind.find("ns", "two") is not None)
        assert (False, False) == (made.seen().stands_in, made.seen("two").yields)
        await made.api.put("runtimeversions", "two", {"status": BROKEN})
        await made.api.put("runtimeversions", "one", {"status": {"phase": "STARTED"}})
        await fake_api.until(lambda: made.obj().status.phase == "STARTED")
        assert (False, False) == (made.seen().stands_in, made.seen("two").yields)  # v2 was never led to
        await made.api.put("runtimes", "demo", {"status": KNOWN})
        await fake_api.until(lambda: made.seen().stands_in)

        assert (False, True) == (made.seen().yields, made.seen("two").yields)
        await made.api.put("runtimes", "demo", {"spec": {"publishOnFailure": "Keep"}})
        await fake_api.until(lambda: not made.seen().stands_in)
        await made.api.put("runtimes", "demo", {"spec": {"publishOnFailure": "Previous"}})
        await fake_api.until(lambda: made.seen().stands_in)
        made.woken.clear()
        await made.api.put("runtimeversions", "two", {"status": {"nodes": [{**BROKEN["nodes"][0], "ready": 1}]}})
        await fake_api.until(lambda: not made.seen().stands_in)
        assert {("RuntimeVersion", "ns", name) for name in ("one", "two")} <= set(made.woken)


async def test_a_runtime_tells_of_what_it_publishes() -> None:
    """In that version's words, which wake it when they change; and where the Service leads."""
    async with started(runtime={"publishedVersion": "v1"}) as made:
        (runtime,) = made.runtimes.items()
        view = made.view()
        assert PublishedSeen("v1", None) == made.runtimes._published(runtime, None)
        await fake_api.until(lambda: not view.unsynced)
        first = made.runtimes._published(runtime, view)
        assert PublishedSeen("v1", "", "RuntimeVersion one: it was not looked at yet") == first
        stated = [{"type": "Ready", "status": "False", "reason": "x", "message": "no image"}]
        await made.api.put("runtimeversions", "one", {"status": {"phase": "ERROR", "conditions": stated}})
        told = PublishedSeen("v1", "", "RuntimeVersion one: no image")
        await fake_api.until(lambda: told == made.runtimes._published(runtime, view))
        assert ("Runtime", "ns", "demo") in made.woken
        owner = {"apiVersion": "a/b", "kind": "Runtime", "name": "demo", "uid": runtime.metadata.uid}
        labels = {kinds.OF_VERSION: "one"}
        metadata = {"labels": labels, "ownerReferences": [owner]}
        service = {"metadata": metadata, "spec": {"selector": {"version-name": "v1"}}}
        await made.api.put("services", "demo-active-entrypoint", service)
        await made.api.put("runtimeversions", "one", {"status": {"phase": "PUBLISHED"}})
        await fake_api.until(lambda: PublishedSeen("v1", "v1") == made.runtimes._published(runtime, view))

        owner["uid"] = "another"
        await made.api.put("services", "demo-active-entrypoint", {"metadata": metadata})
        await fake_api.until(lambda: PublishedSeen("v1", "") == made.runtimes._published(runtime, view))
        await made.api.drop("runtimeversions", "one")
        none = PublishedSeen("v1", "", "there is no RuntimeVersion of that name")
        await fake_api.until(lambda: none == made.runtimes._published(runtime, view))


# --- what it is given -------------------------------------------------------------------------------------------------

KEY = {"secretKeyRef": {"name": "s", "key": "k"}}
MAP = {"configMapKeyRef": {"name": "m", "key": "k"}}


async def test_config_keys_without_a_value_are_told_with_what_is_missing() -> None:
    """By name; and no value is in what is seen."""
    keys = [{"name": "A"}, {"name": "B", "valueFrom": KEY}, {"name": "C", "valueFrom": MAP}, {"name": "D", "value": ""}]
    async with started(config=keys) as made:
        given = (await made.known()).inputs
        missing = {"A": "", "B": "there is no Secret s", "C": "there is no ConfigMap m"}
        assert missing == given.value.missing  # type: ignore[union-attr]

        await made.api.put("secrets", "s", {"data": {"other": "eA=="}})
        await made.api.put("configmaps", "m", {"data": {"k": "hidden"}})
        asked = inputs.asked("ns", made.obj().spec)
        made.kind._given.source.refresh(asked)
        await fake_api.until(lambda: "C" not in made.seen().inputs.value.missing)  # type: ignore[union-attr]

        found = made.seen().inputs.value  # type: ignore[union-attr]
        assert {"A": "", "B": "Secret s has no key k"} == found.missing
        assert "hidden" not in repr(made.seen())


@pytest.mark.parametrize(
    ("changed", "field", "said"),
    [
        ({"files": {"configMapRef": {"name": "f"}}}, "files", "there is no ConfigMap f"),
        (
            {"entrypoint": {"proto": {"configMapRef": {"name": "p", "key": "a"}}, "image": "a"}},
            "proto",
            "there is no ConfigMap p",
        ),
        (
            {"files": {"object": {"key": "a", "digest": f"sha256:{'0' * 64}"}}},
            "secret",
            "Secret kre-credentials-in-use has no key minioAccessKey",
        ),
        ({}, "secret", ""),
    ],
)
async def test_what_else_it_is_given(changed: dict[str, Any], field: str, said: str) -> None:
    """Files, the service's description, and the Runtime's credentials."""
    async with started(**changed) as made:
        given = (await made.known()).inputs.value  # type: ignore[union-attr]

        assert said == getattr(given, field)


async def test_what_is_given_is_known_by_what_it_holds() -> None:
    """A change rolls pods; of a Secret it is the version that counts, as nothing may be told of its content."""
    async with started(config=[{"name": "C", "valueFrom": MAP}]) as made:
        await made.api.put("configmaps", "m", {"data": {"k": "one"}})
        first = (await made.known()).inputs.value.print  # type: ignore[union-attr]
        asked = inputs.asked("ns", made.obj().spec)

        async def changes(plural: str, name: str, content: dict[str, Any]) -> str:
            before = made.seen().inputs.value.print  # type: ignore[union-attr]
            await made.api.put(plural, name, content)
            made.kind._given.source.refresh(asked)
            await fake_api.until(lambda: before != made.seen().inputs.value.print)  # type: ignore[union-attr]
            return made.seen().inputs.value.print  # type: ignore[union-attr]

        second = await changes("configmaps", "m", {"data": {"k": "two"}})
        third = await changes("secrets", kinds.IN_USE, {"data": {"mongoPassword": "eg=="}})
        assert 3 == len({first, second, third})


async def test_mongo_s_address_is_made_of_the_credentials_as_they_are_now() -> None:
    """What may not stand in an address is escaped."""
    async with started() as made:
        await made.known()
        body = await made.kind.fillers["mongo"](made.obj(), {"kind": "Secret"})

        uri = base64.b64decode(body["data"]["uri"]).decode()
        assert "mongodb://x%20y:x%20y@kre-mongo:27017/?authSource=admin" == uri


# --- objects ----------------------------------------------------------------------------------------------------------


async def applied(made: Made) -> None:
    """All that is wanted is there."""
    for each, _ in (await made.known()).objects.value.children:  # type: ignore[union-attr]
        await made.api.put(each.resource.plural, each.name, each.body)


async def test_objects_are_seen_beside_what_is_wanted() -> None:
    """Missing, right, or changed by somebody."""
    async with started() as made:
        assert not any(child.uid for _, child in (await made.known()).objects.value.children)  # type: ignore[union-attr]
        await applied(made)

        def children() -> dict[str, Any]:
            return {each.id: child for each, child in made.seen().objects.value.children}  # type: ignore[union-attr]

        await fake_api.until(lambda: all(child.uid for child in children().values()))
        assert 7 == len(made.seen().objects.value.there)  # type: ignore[union-attr]
        await made.api.put("deployments", "demo-v1-greet-first", {"metadata": {"annotations": {}}})
        await fake_api.until(lambda: not children()["Deployment/demo-v1-greet-first"].good)


async def test_bodies_are_made_once_of_what_they_are_made_of() -> None:
    """Of a large version that takes time, in which all others wait."""
    async with started() as made:

        def first() -> Any:
            return made.seen().objects.value.children[0][0]  # type: ignore[union-attr]

        await made.known()
        before = first()
        assert before is first()
        live = made.api.one("runtimeversions", "one")["metadata"]
        config_ = [{"name": "GREETING", "value": "hi"}]
        await made.api.put(
            "runtimeversions", "one", {"metadata": {"generation": live["generation"] + 1}, "spec": {"config": config_}}
        )
        await fake_api.until(lambda: "hi" == first().body["data"]["GREETING"])


async def test_what_somebody_else_owns_is_not_its_own() -> None:
    """Whatever its label says."""
    async with started() as made:
        await made.known()
        owner = {"apiVersion": "v1", "kind": "Thing", "name": "x", "uid": "other", "controller": True}
        metadata = {"labels": {kinds.OF_VERSION: "one"}, "ownerReferences": [owner]}
        await made.api.put("configmaps", "demo-v1-krt-conf", {"metadata": metadata, "data": {}})
        refusal = await made.kind.guards["name_is_free"](made.obj(), {"kind": "ConfigMap", "name": "demo-v1-krt-conf"})

        assert "is there already and belongs to Thing x" in refusal
        assert () == made.seen().objects.value.there  # type: ignore[union-attr]
        free = {"kind": "Deployment", "name": "demo-v1-greet-first"}
        assert "" == await made.kind.guards["name_is_free"](made.obj(), free)


async def test_what_was_restored_from_a_backup_is_its_own_again() -> None:
    """Owners are lost there. The Service of what is published is the Runtime's, whose mark ever it bears."""
    async with started() as made:
        active = (await made.known()).active.wanted
        assert active is not None
        children = made.seen().objects.value.children  # type: ignore[union-attr]
        for each in (*(child for child, _ in children), active):
            body = {**each.body, "metadata": {**each.body["metadata"], "ownerReferences": []}}
            await made.api.put(each.resource.plural, each.name, body)
        await fake_api.until(lambda: 7 <= len(made.seen().objects.value.there))  # type: ignore[union-attr]

        there = made.seen().objects.value.there  # type: ignore[union-attr]
        assert {child.id for child, _ in children} == {each.id for each in there}
        assert "" == made.seen().active.uid
        free = {"kind": "Service", "name": active.name}
        assert "" == await made.kind.guards["name_is_free"](made.obj(), free)


async def test_nodes_are_told_by_their_deployments_and_pods() -> None:
    """With the pods' own words, and how often they ended."""
    async with started() as made:
        await applied(made)
        status = {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}
        await made.api.put("deployments", "demo-v1-entrypoint", {"status": status})
        waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "no image a/b:1"}}
        container = {"name": "demo-v1-greet-first", "state": waiting, "restartCount": 3}
        labels = {kinds.OF_VERSION: "one", "node-id": "demo-v1-greet-first"}
        pod = {"metadata": {"labels": labels}, "status": {"phase": "Pending", "containerStatuses": [container]}}
        await made.api.put("deployments", "demo-v1-greet-first", {"status": {"observedGeneration": 1}})
        await made.api.put("pods", "p", pod)

        def nodes() -> dict[str, Any]:
            return {each.name: each for each in made.seen().objects.value.nodes}  # type: ignore[union-attr]

        await fake_api.until(lambda: nodes().get("first") and "ImagePull" == nodes()["first"].reason)
        first, entrance = nodes()["first"], nodes()["entrypoint"]
        assert (False, 0, 1, 3) == (first.ready, first.pods_ready, first.wanted, first.restarts)
        assert "no image a/b:1" in first.message
        assert (True, "", "") == (entrance.ready, entrance.reason, entrance.message)


async def test_the_service_of_what_is_published_is_the_runtime_s() -> None:
    """One of that name that it does not own is somebody else's, and is not led anywhere."""
    async with started() as made:
        active = (await made.known()).active
        assert ("", "demo-active-entrypoint") == (active.uid, active.wanted.name)  # type: ignore[union-attr]
        stranger = {"metadata": {"labels": {kinds.OF_VERSION: "one"}}, "spec": {}}
        await made.api.put("services", "demo-active-entrypoint", stranger)
        await made.api.put("services", "marker", stranger)
        view = made.kind._watches.peek("ns")
        assert view is not None
        await fake_api.until(lambda: view.objects[builtin.SERVICE].get("ns", "marker") is not None)
        assert "" == made.seen().active.uid

        await made.api.put("services", "demo-active-entrypoint", active.wanted.body)  # type: ignore[union-attr]
        await fake_api.until(lambda: made.seen().serving)
        assert "one" == made.seen().active.version


async def test_of_what_is_too_large_nothing_is_made_and_what_there_is_goes() -> None:
    """A deletion ends all the same."""
    async with started() as made:
        await applied(made)
        rows = [{"name": f"n{at}", "image": "a", "src": "a", "subscriptions": ["entrypoint"]} for at in range(101)]
        flows = [{"name": f"w{n}", "entrypoint": f"E{n}", "exitpoint": "n0", "nodes": rows[:100]} for n in range(3)]
        await made.api.put("runtimeversions", "one", {"spec": {"workflows": flows}})
        await fake_api.until(lambda: bool(made.obj().spec.too_large))
        found = (await made.known()).objects.value  # type: ignore[union-attr]

        assert (None, (), 7) == (found.children, found.nodes, len(found.there))


# --- NATS -------------------------------------------------------------------------------------------------------------


async def server(made: Made, name: str = "kre-nats-0", owner: str = "kre-nats", address: str = "127.0.0.1") -> None:
    by = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": owner, "uid": "n", "controller": True}
    metadata = {"labels": {kinds.COMPONENT: "nats"}, "ownerReferences": [by]}
    await made.api.put("pods", name, {"metadata": metadata, "status": {"phase": "Running", "podIP": address}})


@pytest.fixture
async def nats(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[nats_stub.NatsStub]:
    async with nats_stub.NatsStub().running() as made:
        monkeypatch.setattr(nats_access, "PORT", made.port)
        yield made


async def reached(made: Made) -> None:
    await made.known()
    await fake_api.until(lambda: isinstance(made.seen().nats, freshness.Fresh))


async def test_nobody_to_ask_is_told_and_who_comes_is_asked(nats: nats_stub.NatsStub) -> None:
    """A pod that the StatefulSet does not manage is nobody."""
    async with started() as made:
        await server(made, "stranger", "other")
        await made.known()
        await fake_api.until(lambda: "NobodyToAsk" == getattr(made.seen().nats, "reason", ""))
        assert [] == nats.asked
        await server(made)
        await reached(made)

        assert {"STREAM.LIST", f"CONSUMER.LIST.{STREAM}"} == set(nats.asked)


async def test_the_next_server_is_asked_where_one_does_not_answer(nats: nats_stub.NatsStub) -> None:
    """An address that nobody has any more refuses."""
    async with started() as made:
        await server(made, "kre-nats-0", address="127.0.0.2")
        await server(made, "kre-nats-1")
        await reached(made)

        assert nats.asked


async def test_no_server_that_answers_is_told_by_name(nats: nats_stub.NatsStub) -> None:
    """With its own words."""
    nats.jetstream = False
    async with started() as made:
        await server(made)
        await made.known()
        await fake_api.until(lambda: "Unreachable" == getattr(made.seen().nats, "reason", ""))

        words = "NATS does not answer: kre-nats-0: JetStream is switched off there, or has no leader"
        assert words == made.seen().nats.message  # type: ignore[union-attr]


async def test_a_change_outdates_what_was_read_before(nats: nats_stub.NatsStub) -> None:
    """So that nothing is done twice on it; then it is seen."""
    async with started() as made:
        await server(made)
        await reached(made)
        subjects = [f"{STREAM}.entrypoint", "more"]
        assert decision.Ok() == await made.call("nats.put_stream", name=STREAM, subjects=subjects)
        assert isinstance(made.seen().nats, freshness.Stale)
        await fake_api.until(lambda: STREAM in made.seen().mine)
        assert decision.Ok() == await made.call("nats.put_consumer", stream=STREAM, name=f"{STREAM}-entrypoint-first")
        await reached(made)

        assert frozenset(subjects) == made.seen().mine[STREAM].subjects
        assert {f"{STREAM}-entrypoint-first"} == made.seen().nats.value.consumers[STREAM].keys()  # type: ignore[union-attr]
        for _ in range(2):
            assert decision.Ok() == await made.call(
                "nats.drop_consumer", stream=STREAM, name=f"{STREAM}-entrypoint-first"
            )
            assert decision.Ok() == await made.call("nats.drop_stream", name=STREAM)
        assert {} == nats.streams


async def test_what_is_no_longer_wanted_is_not_made(nats: nats_stub.NatsStub) -> None:
    """The spec has changed since it was decided."""
    async with started() as made:
        await server(made)
        await reached(made)
        outcomes = [
            await made.call("nats.put_stream", name="other", subjects=[]),
            await made.call("nats.put_consumer", stream=STREAM, name="other"),
        ]

        assert [decision.Conflict] * 2 == [type(each) for each in outcomes]
        assert [] == nats.changes


async def test_outcomes_are_told_as_they_are(nats: nats_stub.NatsStub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused, not sent, or lost."""
    monkeypatch.setattr(jetstream, "REQUEST_LIMIT", 30.0)
    async with started() as made:
        not_sent = await made.call("nats.drop_stream", name=STREAM)
        await server(made)
        await reached(made)
        nats.refuse["STREAM.CREATE"] = nats_stub.ApiError(400, 10047, "insufficient storage")
        refused = await made.call("nats.put_stream", name=STREAM, subjects=[])
        nats.refuse.clear()
        nats.silent = "STREAM.CREATE"
        monkeypatch.setattr(jetstream, "REQUEST_LIMIT", 0.2)
        lost = await made.call("nats.put_stream", name=STREAM, subjects=[])

    assert isinstance(not_sent, decision.Refused)
    assert decision.Refused(Reason.NATS_REFUSES, "insufficient storage (10047)") == refused
    assert decision.Unknown("JetStream gives no answer within 0.2 s") == lost


async def test_messages_are_counted_for_who_stops_alone(nats: nats_stub.NatsStub) -> None:
    """For who runs each count would be news, all the time."""
    async with started() as made:
        await server(made)
        await reached(made)
        await made.call("nats.put_stream", name=STREAM, subjects=["a"])
        await made.call("nats.put_consumer", stream=STREAM, name=f"{STREAM}-entrypoint-first")
        nats.pending[f"{STREAM}-entrypoint-first"] = 5
        await reached(made)
        assert {} == made.seen().pending()
        await made.api.put("runtimeversions", "one", {"spec": {"running": False}})
        await fake_api.until(lambda: {f"{STREAM}-entrypoint-first": 5} == made.seen().pending())


async def test_no_count_from_before_the_entrance_was_closed_counts(nats: nats_stub.NatsStub) -> None:
    """What came in last may have come after it."""
    async with started() as made:
        await server(made)
        await applied(made)
        await made.call("nats.put_stream", name=STREAM, subjects=["a"])
        await made.call("nats.put_consumer", stream=STREAM, name=f"{STREAM}-entrypoint-first")
        await made.api.put("runtimeversions", "one", {"spec": {"running": False}})
        await fake_api.until(lambda: "while calls come in" == made.seen().counting)
        await reached(made)
        assert {} == made.seen().pending()

        nats.pending[f"{STREAM}-entrypoint-first"] = 5
        await made.api.drop("deployments", "demo-v1-entrypoint")
        await fake_api.until(lambda: "after the last call" == made.seen().counting)
        while isinstance((it := made.seen()).nats, freshness.Failed):
            await asyncio.sleep(0)
        assert {f"{STREAM}-entrypoint-first": 5} == it.pending()


async def test_pods_of_before_are_counted_as_long_as_they_are_there() -> None:
    """Whatever their Deployment says; who has ended by itself ends nothing more."""
    async with started() as made:
        await applied(made)
        for name, phase in (("a", "Running"), ("b", "Running"), ("former", "Running"), ("evicted", "Failed")):
            labels = {kinds.OF_VERSION: "one", "node-id": "demo-v1-greet-last"}
            await made.api.put("pods", name, {"metadata": {"labels": labels}, "status": {"phase": phase}})

        def former() -> dict[str, int]:
            return {each.name: each.former for each in made.seen().objects.value.nodes}  # type: ignore[union-attr]

        await fake_api.until(lambda: {"first": 0, "last": 1, "entrypoint": 0} == former())
        await made.api.drop("pods", "former")
        await fake_api.until(lambda: {"first": 0, "last": 0, "entrypoint": 0} == former())


async def test_who_is_forgotten_is_asked_for_no_more(nats: nats_stub.NatsStub) -> None:
    """Its watches close, and NATS is left alone."""
    async with started() as made:
        await server(made)
        await reached(made)
        made.kind.forget("ns", "one")

        assert made.kind._watches.peek("ns") is None
        assert freshness.is_unseen(made.kind._nats.streams.peek("ns"))


def test_spec_of_tests_is_whole() -> None:
    """Else all above would test something else."""
    assert not versions.spec().told.errors
