"""The observation of an installation, made from an API server, and the live looks right before what can't be undone."""

from __future__ import annotations

import base64
import contextlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
import pytest

from moorage.api import meta, proof
from moorage.children import apply
from moorage.children.live import surroundings
from moorage.kube import client as kube_client
from moorage.kube.informers import informer
from moorage.operators import accounts
from moorage.operators.opencga import config, control, kind, names, objects, observation, types
from moorage.operators.opencga.wanted import basis
from moorage.runtime import decision, freshness, gate
from moorage.runtime import kind as runtime_kind
from tests.unit.opencga import played, states
from tests.unit.opencga.test_life import applied
from tests.unit.runtime import fake_api

SETTINGS = config.Config("moorage-accounts", "moorage-opencga-namespace")
Made = tuple[kind.CommunityKind, types.Community]


@contextlib.asynccontextmanager
async def started(api: fake_api.FakeApi, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Made]:
    """The kind on a server with an installation, with all rights bound, and all known that can be."""
    monkeypatch.setattr(kind.asking, "Http", lambda: api)
    await api.put("rolebindings", states.RIGHTS.binding, accounts.binding("ns", states.RIGHTS))
    client = kube_client.Client(api)
    informers = informer.Informers(client)
    made = kind.CommunityKind(SETTINGS, "moorage-system")
    made.informers = [informers.watch(names.COMMUNITY, types.Community)]
    await made.start(runtime_kind.World(client, informers, gate.Gate(), lambda *_, **__: None))
    try:
        for cache in informers.all():
            await cache.wait_synced(5)
        obj = made.find("ns", "demo")
        assert obj is not None
        for fact in ("secrets", "objects", "told"):
            await fake_api.until(
                lambda fact=fact: not isinstance(getattr(made.observe(obj, states.NOW), fact), freshness.Failed)
            )
        yield made, obj
    finally:
        await made.stop()
        await informers.stop()


async def grown(**spec: Any) -> played.Api:
    """A server on which an installation has what its steps make: document, StatefulSets, pods."""
    api = await applied(**spec)
    community = await api.put("opencgacommunity", "demo", {"metadata": {"finalizers": [names.FINALIZER]}})
    uid = community["metadata"]["uid"]
    seen = states.demo(**{key: value for key, value in {**community["spec"]}.items() if key != "members"}).seen
    wanted = basis.of("ns", "demo", uid, seen.spec, SETTINGS.dialect)
    revisions = {"demo-admin-password": "r"}
    placed = kind.automation.Placed(3, "5.0.0", "5.0.0")
    document = kind.automation.document("ns", "demo", seen.spec, SETTINGS.dialect, placed, revisions, wanted.args)
    for each in (
        kind.build.configuration(wanted, document, 4),
        kind.build.master(wanted, "5.0.0"),
        kind.build.members(wanted, 3, "5.0.0"),
    ):
        await api.put(each.resource.plural, each.name, each.body)
    await api.put("secrets", "demo-agent-password", kind.tokens._body(_named(uid), "demo-agent-password", TOKEN))
    await api.settle()
    return api


TOKEN = base64.b64encode(b"t" * 43).decode()


def _named(uid: str) -> types.Community:
    spec = types.CommunitySpec("5.0.0")
    return types.Community(meta.ObjectMeta(name="demo", namespace="ns", uid=uid), spec)


def there(made: Made) -> observation.There:
    seen = made[0].observe(made[1], states.NOW)
    assert isinstance(seen.objects, freshness.Fresh)
    return seen.objects.value


EARLIER, LATER = "2025-12-31T23:59:59Z", "2026-01-01T00:00:01Z"


@pytest.mark.parametrize(
    ("created", "namespace", "database", "taken"),
    [
        (EARLIER, "ns", {"hosts": ["mongo-0.mongo"]}, True),
        (LATER, "ns", {"hosts": ["mongo-0.mongo"]}, False),
        (EARLIER, "ns", {"hosts": ["mongo-0.mongo"], "prefix": "another"}, False),
        (EARLIER, "ns", {"hosts": ["mongo-1.mongo", "MONGO-0.mongo.ns.svc.cluster.local:27017"]}, True),
        (EARLIER, "ns", {"hosts": ["mongo-0.mongo.ns"]}, True),
        (EARLIER, "ns", {"hosts": ["mongo-0.mongo:27018"]}, False),
        (EARLIER, "ns", {"hosts": ["mongo-1.mongo"]}, False),
        (EARLIER, "ns", {}, False),
        (EARLIER, "beside", {"hosts": ["mongo-0.mongo"]}, False),
    ],
)
async def test_who_was_there_before_in_the_same_databases_is_seen(
    monkeypatch: pytest.MonkeyPatch, created: str, namespace: str, database: dict[str, Any], taken: bool
) -> None:
    """Of the same namespace alone: what tenants write elsewhere stops nobody."""
    api = await applied(database={"hosts": ["mongo-0.mongo:27017", "mongo-2.mongo"]})
    spec = {"version": "5.0.0", "database": database}
    other = {"metadata": {"creationTimestamp": created}, "spec": spec}
    await api.put("opencgacommunity", "other", other, namespace=namespace)
    async with started(api, monkeypatch) as made:
        assert ("other" if taken else "") == made[0].observe(made[1], states.NOW).catalog_of


async def test_what_is_there_is_seen_by_its_role(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pods and claims of both StatefulSets, each under its own; and which version the document has."""
    async with started(await grown(), monkeypatch) as made:
        found = there(made)

    assert ["demo-0", "demo-1", "demo-2"] == [pod.name for pod in found.rest.pods]
    assert ["demo-client-0"] == [pod.name for pod in found.master.pods]
    assert {"data-volume-demo-0", "data-volume-demo-1", "data-volume-demo-2"} == {it.name for it in found.rest.volumes}
    assert ["data-volume-demo-client-0"] == [it.name for it in found.master.volumes]
    assert found.published is not None
    assert 4 == found.published.version
    assert found.master.workload is not None
    assert found.master.workload.child.good
    assert {"demo-client-0", "demo-0", "demo-1", "demo-2"} == set(found.rest.up | found.master.up)


async def test_a_service_monitor_follows_the_definition_of_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the API server does not know the kind nothing is missing; once it does it is made, and goes with it."""
    monkeypatch.setattr(surroundings, "EVERY", 0.01)
    api = await grown(metrics={"enabled": True})

    def monitors(made: Made) -> list[str]:
        return [
            f"{it.resource.kind} {live.uid}"
            for it, live in there(made).rest.children
            if it.name == "demo" and it.resource == names.SERVICE_MONITOR
        ]

    async with started(api, monkeypatch) as made:
        assert [] == monitors(made)
        assert not [it for it in api.requests if it.at.plural == "servicemonitors"]
        api.served.add("servicemonitors")
        await fake_api.until(lambda: ["ServiceMonitor "] == monitors(made))
        seen = made[0].observe(made[1], states.NOW)
        assert isinstance(objects.children_exist(seen), decision.Act)
        uid = (await api.put("servicemonitors", "demo", dict(_monitor(made))))["metadata"]["uid"]
        await fake_api.until(lambda: [f"ServiceMonitor {uid}"] == monitors(made))
        api.served.clear()
        await fake_api.until(lambda: [] == monitors(made))


async def test_a_service_monitor_that_is_not_wanted_any_more_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that was made before the operator began."""
    api = await grown()
    api.served.add("servicemonitors")
    community = api.one("opencgacommunity", "demo")
    owner = {"apiVersion": "opencga.zetta.com/v1", "kind": "OpenCGACommunity", "name": "demo", "controller": True}
    reference = {**owner, "uid": community["metadata"]["uid"]}
    metadata = {"labels": {names.LABEL: "demo"}, "ownerReferences": [reference]}
    await api.put("servicemonitors", "demo", {"metadata": metadata})

    async with started(api, monkeypatch) as made:
        await fake_api.until(lambda: ["ServiceMonitor/demo"] == [it.id for it in there(made).rest.surplus])


def _monitor(made: Made) -> dict[str, Any]:
    """As the kind would have it."""
    community = made[1]
    wanted = basis.of("ns", "demo", community.metadata.uid, community.spec, SETTINGS.dialect)
    return next(it.body for it in kind.build.children(wanted, monitored=True) if it.resource == names.SERVICE_MONITOR)


async def test_a_member_is_ready_by_its_agent_whatever_a_user_puts_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kubelet lists containers by name, and somebody's own may come first."""
    api = await grown()
    told = api.one("pods", "demo-1")["status"]["containerStatuses"]
    beside = {"name": "a-log", "ready": True, "state": {"running": {}}}
    agent = {**told[0], "ready": False}
    await api.put("pods", "demo-1", {"status": {"containerStatuses": [beside, agent]}})
    async with started(api, monkeypatch) as made:
        found = there(made)

    assert {"demo-0", "demo-2"} == set(found.rest.up)


@pytest.mark.parametrize(
    ("off", "expected"), [((), {"demo-0", "demo-2"}), (("demo-1",), {"demo-0", "demo-1", "demo-2"})]
)
async def test_a_member_is_ready_once_services_send_it_queries(
    monkeypatch: pytest.MonkeyPatch, off: tuple[str, ...], expected: set[str]
) -> None:
    """One whose server is switched off is ready without, as it is to have none; so that nobody waits for it."""
    api = await grown(automationConfig={"processes": [{"name": name, "disabled": True} for name in off]})
    told = api.one("pods", "demo-1")["status"]["containerStatuses"]
    server = {"name": "opencga-rest", "ready": False, "state": {"running": {}}}
    await api.put("pods", "demo-1", {"status": {"containerStatuses": [*told, server]}})
    async with started(api, monkeypatch) as made:
        assert expected == set(there(made).rest.up)
        away = await made[0].guards["others_are_ready"](made[1], {"pod": "demo-0"})

    assert bool(off) == (away == "")


async def test_nobody_looks_for_what_is_wrong_with_who_should_not_be_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a server that is switched off, and of one that hibernates: events are read where a pod is in trouble alone."""
    api = await grown(automationConfig={"processes": [{"name": "demo-1", "disabled": True}]})
    api.broken.add("demo-1")
    await api.settle()
    async with started(api, monkeypatch) as (made, obj):
        assert freshness.is_unseen(made._around.warnings.peek("ns"))
        plain = msgspec.structs.replace(obj.spec, automation_config=types.AutomationConfig())
        made.observe(msgspec.structs.replace(obj, spec=plain), states.NOW)
        await fake_api.until(lambda: not freshness.is_unseen(made._around.warnings.peek("ns")))


async def test_a_spec_that_can_not_be_still_shows_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that it can be deleted, and that it is told what is wrong."""
    api = await grown()
    await api.put("opencgacommunity", "demo", {"spec": {"statefulSet": {"spec": {"template": {"spec": "x"}}}}})
    async with started(api, monkeypatch) as made:
        seen = made[0].observe(made[1], states.NOW)
        standing = decision.decide(seen, steps=control.STEPS).standing

    assert standing is not None
    assert "spec_is_sound" == standing.name
    assert 4 == len(seen.there.pods)
    assert "" == seen.there.document.uid or seen.there.document.differs == (apply.STAMP,)


async def test_what_is_not_asked_yet_is_no_news(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the Secrets were looked at nobody knows what the document should be: status stays as it was."""
    async with started(await grown(), monkeypatch) as (made, obj):
        seen = made.observe(obj, states.NOW)
        unseen = kind.msgspec.structs.replace(seen, secrets=freshness.not_yet("secrets"))
        told = {fact(unseen).type: fact(unseen).status for fact in kind.facts.FACTS}

        assert told["ConfigApplied"] is None
        assert "configurationVersion" not in made.report(unseen, None)
        assert "memberStatuses" in made.report(unseen, None)


async def test_nobody_is_asked_but_pods_that_the_installation_manages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels are for anybody to set."""
    api = await grown()
    labels = api.one("pods", "demo-0")["metadata"]["labels"]
    strangers = {"metadata": {"labels": labels}, "status": {"phase": "Running", "podIP": "10.0.0.99"}}
    await api.put("pods", "demo-7", strangers)
    asked = set()
    answer = api.get

    async def get(address: str, port: int, path: str) -> tuple[int, bytes]:
        asked.add(address)
        return await answer(address, port, path)

    monkeypatch.setattr(api, "get", get)
    async with started(api, monkeypatch) as (made, obj):
        seen = made.observe(obj, states.NOW)

    assert 4 == len(asked)
    assert "10.0.0.99" not in asked
    assert isinstance(seen.told, freshness.Fresh)
    assert {"demo-client-0", "demo-0", "demo-1", "demo-2"} == {it.pod for it in seen.told.value}


def forging(api: played.Api, how: str) -> Callable[..., Awaitable[tuple[int, bytes, dict[str, str]]]]:
    """A pod that answers in an agent's place, as far as it can."""
    honest = api.exchange

    async def exchange(
        address: str, port: int, path: str, headers: dict[str, str]
    ) -> tuple[int, bytes, dict[str, str]]:
        status, text, told = await honest(address, port, path, headers)
        proved = told[proof.TOLD]
        match how:
            case "no proof":
                return status, text, {}
            case "another word":
                return status, text.replace(b"5.0.0", b"9.9.9"), {proof.TOLD: proved}
            case "another nonce":
                asked = {proof.ASKED: proof.question(api.token(), "demo-client-0", time.time(), "a1")}
                _, text, told = await honest(address, port, path, asked)
                return status, text, dict(told)
            case _:
                return 401, b"a\x1b[31m token that differs", {}

    return exchange


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("no proof", "its answer has no proof of the installation's token"),
        ("another word", "its answer is proved by another token"),
        ("another nonce", "its answer is proved by another token"),
        ("refused", "it refuses to tell: a [31m token that differs"),
    ],
)
async def test_nobody_is_believed_without_the_token(monkeypatch: pytest.MonkeyPatch, how: str, words: str) -> None:
    """Neither who has none, nor who changes what was told, nor who repeats it."""
    api = await grown()
    monkeypatch.setattr(api, "exchange", forging(api, how))
    async with started(api, monkeypatch) as (made, obj):
        seen = made.observe(obj, states.NOW)

    assert seen.master is None
    assert isinstance(seen.told, freshness.Fresh)
    (master,) = (it for it in seen.told.value if it.pod == "demo-client-0")
    assert master.fault.startswith(words)


@pytest.mark.parametrize("spoilt", [None, {"data": {"password": "YQ=="}}])
async def test_a_token_that_is_gone_or_spoilt_is_made_anew(
    monkeypatch: pytest.MonkeyPatch, spoilt: dict[str, Any] | None
) -> None:
    """Meanwhile nobody is asked."""
    api, name = await grown(), "demo-agent-password"
    before = api.token()
    if spoilt is None:
        await api.drop("secrets", name)
    else:
        await api.put("secrets", name, spoilt)
    async with started(api, monkeypatch) as (made, obj):
        seen = made.observe(obj, states.NOW)
        assert not seen.there.token.good
        assert isinstance(seen.told, freshness.Fresh)
        assert {"it is not asked before the installation has a token; moorage makes it"} == {
            it.fault for it in seen.told.value
        }
        assert decision.Ok() == await made.operations["token.make"](obj, {})
        assert made.observe(obj, states.NOW).there.token.good

    assert proof.sound(api.token())
    assert api.token() != before


async def test_a_token_that_is_not_watched_any_more_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody took its label away: that comes back."""
    api, name = await grown(), "demo-agent-password"
    before, live = api.token(), api.one("secrets", name)
    await api.drop("secrets", name)
    labels = {key: text for key, text in live["metadata"]["labels"].items() if key != names.CONFIGURATION}
    metadata = {"labels": labels, "ownerReferences": live["metadata"]["ownerReferences"]}
    await api.put("secrets", name, {"metadata": metadata, "data": live["data"]})
    async with started(api, monkeypatch) as (made, obj):
        assert decision.Ok() == await made.operations["token.make"](obj, {})

    assert live["metadata"]["labels"] == api.one("secrets", name)["metadata"]["labels"]
    assert before == api.token()


async def test_a_secret_of_somebody_else_is_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is it written over."""
    api = await grown()
    await api.drop("secrets", "demo-agent-password")
    theirs = await api.put("secrets", "demo-agent-password", {"data": {"password": TOKEN}})
    async with started(api, monkeypatch) as (made, obj):
        assert "" == made.observe(obj, states.NOW).there.token.uid
        assert isinstance(await made.operations["token.make"](obj, {}), decision.Conflict)

    assert theirs["data"] == api.one("secrets", "demo-agent-password")["data"]


# --- guards --------------------------------------------------------------------------------------------------------

Arrange = Callable[[played.Api], Awaitable[Any]]


async def nothing(_: played.Api) -> None:
    """All is well."""


async def is_away(api: played.Api) -> None:
    """Another member is not ready."""
    api.broken.add("demo-1")
    await api.settle()


async def both_are_away(api: played.Api) -> None:
    """It is not ready itself, and another is not."""
    api.broken |= {"demo-0", "demo-1"}
    await api.settle()


async def is_gone(api: played.Api) -> None:
    """Another member has no pod."""
    await api.drop("pods", "demo-1")


async def document_is_gone(api: played.Api) -> None:
    await api.drop("secrets", "demo-config")


async def document_is_broken(api: played.Api) -> None:
    await api.put("secrets", "demo-config", {"data": {"cluster-config.json": "%"}})


async def workload_is_gone(api: played.Api) -> None:
    await api.drop("statefulsets", "demo")


@pytest.mark.parametrize(
    ("guard", "args", "arrange", "why"),
    [
        ("others_are_ready", {"pod": "demo-0"}, nothing, ""),
        ("others_are_ready", {"pod": "demo-0"}, is_away, "demo-1 is not ready"),
        ("others_are_ready", {"pod": "demo-0"}, both_are_away, ""),
        ("others_are_ready", {"pod": "demo-0"}, is_gone, "demo-1 is not ready"),
        ("others_are_ready", {"pod": "demo-0"}, workload_is_gone, "StatefulSet demo is gone"),
        ("member_has_left", {"pod": "demo-2"}, nothing, "demo-2 has a place in the configuration"),
        ("member_has_left", {"pod": "demo-3"}, nothing, ""),
        ("member_has_left", {"pod": "demo-client-1"}, nothing, ""),
        ("member_has_left", {"pod": "demo-3"}, document_is_gone, "there is no Secret demo-config"),
        ("member_has_left", {"pod": "demo-3"}, document_is_broken, "Secret demo-config can't be read"),
        ("name_is_free", {"kind": "StatefulSet", "name": "demo"}, nothing, ""),
        ("name_is_free", {"kind": "Service", "name": "demo-svc"}, nothing, ""),
        ("name_is_free", {"kind": "Secret", "name": "demo-database"}, nothing, "is not this installation's"),
        ("pod_is_expendable", {"name": "demo-0", "uid": ""}, nothing, ""),  # another incarnation
    ],
)
async def test_a_live_look_before_an_act(
    monkeypatch: pytest.MonkeyPatch, guard: str, args: dict[str, str], arrange: Arrange, why: str
) -> None:
    """Each by what is there right then."""
    api = await grown()
    async with started(api, monkeypatch) as (made, obj):
        await arrange(api)
        said = await made.guards[guard](obj, args)

    assert why in said
    assert bool(why) == bool(said)


def at(move: str, *, since: float, error: str = "") -> dict[str, Any]:
    started_at = states.conditions.timestamp(since)
    step = {"step": "Run", "started": started_at, "completed": None}
    plan = {"started": started_at, "completed": None, "moves": [{"move": move, "steps": [step]}]}
    return {"mmsStatus": {"demo-client-0": {"plans": [plan], "errorString": error}}}


@pytest.mark.parametrize(
    ("health", "ready", "why"),
    [
        (at("Start", since=1.8e9), True, ""),
        (at("Migrate", since=4e9), True, "demo-client-0 is at Migrate"),
        (at("CatalogInstall", since=4e9), False, "demo-client-0 is at CatalogInstall"),
        (at("Backup", since=4e9), True, "demo-client-0 is at Backup"),
        (at("Migrate", since=4e9, error="x"), True, ""),
        (at("Migrate", since=1.0), True, ""),  # for longer than it may take
        (None, True, "demo-client-0 is ready, and its agent does not tell what it does"),
        (None, False, ""),
    ],
)
async def test_a_master_that_works_at_the_catalog_is_not_taken_away(
    monkeypatch: pytest.MonkeyPatch, health: dict[str, Any] | None, ready: bool, why: str
) -> None:
    """By its own word, asked right then; a silent one goes only if its pod serves nobody."""
    api = await grown()
    async with started(api, monkeypatch) as (made, obj):

        async def get(_: str, port: int, __: str) -> tuple[int, bytes]:
            if health is None:
                raise kind.asking.AskError("no answer")
            return (200, json.dumps(health).encode()) if port == 5000 else (200, b"{}")

        monkeypatch.setattr(api, "get", get)
        if not ready:
            told = api.one("pods", "demo-client-0")["status"]["containerStatuses"][0]
            await api.put("pods", "demo-client-0", {"status": {"containerStatuses": [{**told, "ready": False}]}})
        said = await made.guards["master_is_idle"](obj, {"pod": "demo-client-0"})

    assert why == said


@pytest.mark.parametrize(
    ("health", "ready", "hibernate", "why"),
    [
        (at("Start", since=1.8e9), True, True, ""),
        (at("Start", since=1.8e9), True, False, "spec.hibernate is not true any more"),
        (at("Migrate", since=4e9), True, True, "demo-client-0 is at Migrate"),
        (at("CatalogInstall", since=4e9), True, True, "demo-client-0 is at CatalogInstall"),
        (at("Migrate", since=1.0), True, True, ""),  # for longer than it may take
        (None, True, True, "demo-client-0 is ready, and its agent does not tell what it does"),
        (None, False, True, ""),
    ],
)
async def test_nobody_is_stopped_by_a_word_that_was_taken_back(
    monkeypatch: pytest.MonkeyPatch, health: dict[str, Any] | None, ready: bool, hibernate: bool, why: str
) -> None:
    """Nor beside a MASTER that works at the catalog, asked right then."""
    api = await grown(hibernate=True)
    async with started(api, monkeypatch) as (made, obj):

        async def get(_: str, port: int, __: str) -> tuple[int, bytes]:
            if health is None:
                raise kind.asking.AskError("no answer")
            return (200, json.dumps(health).encode()) if port == 5000 else (200, b"{}")

        monkeypatch.setattr(api, "get", get)
        await api.put("opencgacommunity", "demo", {"spec": {"hibernate": hibernate}})
        if not ready:
            told = api.one("pods", "demo-client-0")["status"]["containerStatuses"][0]
            await api.put("pods", "demo-client-0", {"status": {"containerStatuses": [{**told, "ready": False}]}})
        said = await made.guards["may_hibernate"](obj, {"pod": "demo-1"})

    assert why == said


async def test_others_in_the_namespace_keep_the_rights_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two that leave at once one knows that it is the last."""
    api = await grown()
    await api.put("opencgacommunity", "other", {"spec": {"version": "5.0.0"}})
    async with started(api, monkeypatch) as (made, obj):
        other = made.find("ns", "other")
        assert other is not None
        first = await made.guards["others_stay"](obj, {})
        second = await made.guards["others_stay"](other, {})

    assert ("", "it has become the last one of its namespace") == (first, second)
