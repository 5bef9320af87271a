"""An installation's whole life on an API server in memory, with everything around it played."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.kube import client as kube_client
from moorage.operators.opencga import config, kind
from moorage.runtime import manager
from tests.unit.opencga import played
from tests.unit.runtime import fake_api

ROOT = Path(__file__).resolve().parents[3]
SAMPLE = list(yaml.safe_load_all((ROOT / "examples/opencga/community.yaml").read_text()))
SPEC: dict[str, Any] = SAMPLE[-1]["spec"]
SETTINGS = config.Config("moorage-accounts", "moorage-opencga-namespace", poll=config.Poll(0.02, 0.02))
WITHIN = 120.0


async def applied(**spec: Any) -> played.Api:
    """A server with the sample on it, and the cluster around."""
    api = played.Api()
    await api.put("namespaces", "ns", namespace="")
    for each in SAMPLE[:-1]:
        data = {key: base64.b64encode(text.encode()).decode() for key, text in each["stringData"].items()}
        await api.put("secrets", each["metadata"]["name"], {"data": data})
    metadata = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    await api.put("opencgacommunity", "demo", {"metadata": metadata, "spec": {**SPEC, **spec}})
    return api


@contextlib.asynccontextmanager
async def operating(api: played.Api, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """The operator runs."""
    monkeypatch.setattr(kind.asking, "Http", lambda: api)
    stop = asyncio.Event()
    options = manager.Settings(identity="me", namespace="moorage-system", elect=False, port=0)
    made = kind.CommunityKind(SETTINGS, "moorage-system")
    running = asyncio.create_task(manager.Manager(kube_client.Client(api), [made], options).run(stop))
    try:
        yield
    finally:
        stop.set()
        await running


async def edited(api: played.Api, **spec: Any) -> None:
    """Somebody applies another spec."""
    await api.put("opencgacommunity", "demo", {"spec": spec})


async def test_one_with_anothers_catalog_is_begun_once_that_one_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not after the next look by the clock, which is ten minutes away."""
    api = await applied()
    spec = {
        **SPEC,
        "additionalOpenCGAConfig": {"email.password": "x"},
    }  # it comes to nothing, and is there all the same
    await api.put("opencgacommunity", "a", {"metadata": {"creationTimestamp": "2025-01-01T00:00:00Z"}, "spec": spec})
    async with operating(api, monkeypatch):
        await fake_api.until(lambda: "OpenCGACommunity a has its catalog in" in api.status().get("message", ""))
        assert {} == api.running()

        await api.mark_deleted("opencgacommunity", "a")
        await fake_api.until(api.settled, within=WITHIN)


async def test_made_scaled_upgraded_and_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sample: ready, at rest without a write, up and down, a new version, and gone without a trace."""
    api = await applied(volumes={"data": {"size": "10G", "reclaimOnDelete": "Delete"}})
    async with operating(api, monkeypatch):
        await fake_api.until(api.settled, within=WITHIN)
        status = api.status()

        assert ("Running", "5.0.0", "5.0.0") == (status["phase"], status["version"], status["catalogVersion"])
        assert (3, 3, "") == (
            status["currentStatefulSetReplicas"],
            status["currentOpenCGARESTMembers"],
            status["message"],
        )
        assert "http://demo-rest.ns.svc.cluster.local:9090/opencga" == status["opencgarestUri"]
        assert dict.fromkeys(("demo-client-0", "demo-0", "demo-1", "demo-2"), "5.0.0") == api.running()
        assert {"demo-client-0": "master", "demo-0": "rest", "demo-1": "rest", "demo-2": "rest"} == {
            it["name"]: it["role"] for it in status["memberStatuses"]
        }
        first = api.document()["version"]
    before = len(api.writes())
    async with operating(api, monkeypatch):  # another process, which knows nothing
        asked = len(api.requests)
        await fake_api.until(lambda: any(it.at.plural == "secrets" for it in api.requests[asked:]), within=WITHIN)

        await edited(api, members=5)
        await fake_api.until(lambda: len(api.running()) == 6 and api.settled(), within=WITHIN)
        assert first < api.document()["version"]
        assert [] == [it for it in api.writes()[before:] if it.at.plural in ("services", "rolebindings")]

        await edited(api, members=1)
        await fake_api.until(lambda: len(api.running()) == 2 and api.settled(), within=WITHIN)

        await edited(api, members=3)
        await fake_api.until(lambda: len(api.running()) == 4 and api.settled(), within=WITHIN)

        await edited(api, version="5.0.1")
        await fake_api.until(lambda: set(api.running().values()) == {"5.0.1"} and api.settled(), within=WITHIN)
        made = [name for name, version in api.versions if version == "5.0.1"]
        assert ["demo-client-0", "demo-2", "demo-1", "demo-0"] == made
        assert "5.0.1" == api.status()["version"] == api.catalog()
        assert {"5.0.1"} == {each["version"] for each in api.document()["processes"]}

        await api.mark_deleted("opencgacommunity", "demo")
        await fake_api.until(lambda: not api.community(), within=WITHIN)
        await api.settle()
    assert [] == api.wrong
    assert {"namespaces", "secrets"} == api.left()
    assert {"demo-admin-password", "demo-database"} == {
        place.name for place in api.objects if place.plural == "secrets"
    }


async def test_stopped_and_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    """REST servers before the MASTER; volumes and configuration as they were; kept by another process; all back."""
    api = await applied()
    async with operating(api, monkeypatch):
        await fake_api.until(api.settled, within=WITHIN)
        document, claims = api.document(), api.names("persistentvolumeclaims")
        api.held_awake = True
        await edited(api, hibernate=True)
        told = "demo-client-0 is at Migrate, Run"
        await fake_api.until(lambda: told in api.condition("Hibernated").get("message", ""), within=WITHIN)
        assert 4 == len(api.running())
        api.held_awake = False
        await fake_api.until(lambda: api.stands("Hibernated") and api.settled(), within=WITHIN)
    assert {} == api.running()
    assert ["demo-client-0"] == api.ended[-1:]
    assert "Hibernated" == api.status()["phase"]
    assert (document, claims) == (api.document(), api.names("persistentvolumeclaims"))

    before = len(api.writes())
    async with operating(api, monkeypatch):  # another process, which knows nothing
        await edited(api, hibernate=True, version="5.0.1")
        await fake_api.until(lambda: api.stands("Migrated", "False"), within=WITHIN)
        assert {} == api.running()
        assert {"opencgacommunity", "secrets", "statefulsets", "events"} >= {
            it.at.plural for it in api.writes()[before:]
        }
        await edited(api, hibernate=False, version="5.0.1")
        await fake_api.until(lambda: len(api.running()) == 4 and api.settled(), within=WITHIN)
    assert {"5.0.1"} == set(api.running().values())
    assert [] == api.wrong


async def test_at_rest_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents and servers are asked many times over, by two processes one after another."""
    api = await applied()
    asked: list[str] = []
    answer = api.get

    async def counted(address: str, port: int, path: str) -> tuple[int, bytes]:
        asked.append(path)
        return await answer(address, port, path)

    monkeypatch.setattr(api, "get", counted)
    async with operating(api, monkeypatch):
        await fake_api.until(api.settled, within=WITHIN)
        still, rounds = len(api.writes()), len(asked)
        await fake_api.until(lambda: len(asked) > rounds + 50, within=WITHIN)
        assert still == len(api.writes())
    rounds = len(asked)
    async with operating(api, monkeypatch):
        await fake_api.until(lambda: len(asked) > rounds + 50, within=WITHIN)

    assert [] == [(it.method, it.at) for it in api.writes()[still:]]


async def test_a_document_that_somebody_edits_is_put_right_in_a_later_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that every agent sees it as news; what is in it is the spec's, whoever wrote last."""
    api = await applied()
    async with operating(api, monkeypatch):
        await fake_api.until(api.settled, within=WITHIN)
        before = api.document()
        forged = {**before, "processes": [], "version": 900}
        data = {"cluster-config.json": base64.b64encode(json.dumps(forged).encode()).decode()}
        await api.put("secrets", "demo-config", {"data": data})
        await fake_api.until(lambda: api.document()["processes"], within=WITHIN)

        assert {**before, "version": api.document()["version"]} == api.document()
        await api.drop("secrets", "demo-config")
        await fake_api.until(api.document, within=WITHIN)
        await fake_api.until(api.settled, within=WITHIN)
        assert before["processes"] == api.document()["processes"]


async def test_a_password_that_changes_is_news_and_stands_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents get another version; no request of the operator has the password but the Secret's own."""
    api = await applied()
    monkeypatch.setattr("moorage.operators.opencga.secrets.EVERY", 0.02)
    async with operating(api, monkeypatch):
        await fake_api.until(api.settled, within=WITHIN)
        before = api.document()["version"]
        await api.put("secrets", "demo-database", {"data": {"password": base64.b64encode(b"Another-1").decode()}})
        await fake_api.until(lambda: api.document()["version"] > before and api.settled(), within=WITHIN)
    written = json.dumps([it.body for it in api.writes()])

    for word in ("Another-1", "Change-Me-2-too", "Change-Me-2-day"):
        assert word not in written
        assert base64.b64encode(word.encode()).decode() not in written
        assert word not in json.dumps(api.document())


async def test_what_lies_outside_restarts_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that is out of order is told, and heals by itself."""
    api = await applied()
    async with operating(api, monkeypatch):
        await fake_api.until(api.settled, within=WITHIN)
        pods = {it["metadata"]["uid"] for it in api.pods()}
        api.failing = "CatalogMongoDB"
        await fake_api.until(lambda: api.stands("Healthy", "False"), within=WITHIN)

        assert "CatalogMongoDB (demo-0, demo-1, demo-2)" in api.status()["message"]
        assert api.stands("Ready", "False")
        api.failing = ""
        await fake_api.until(api.settled, within=WITHIN)

    assert pods == {it["metadata"]["uid"] for it in api.pods()}


async def test_an_upgrade_stops_at_the_member_that_does_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others serve on with the old version, and go on once it is well."""
    api = await applied()
    async with operating(api, monkeypatch):
        await fake_api.until(api.settled, within=WITHIN)
        started = api._start

        async def ill(name: str, *rest: Any) -> None:
            if name == "demo-2":
                api.broken.add(name)
            await started(name, *rest)

        monkeypatch.setattr(api, "_start", ill)
        await edited(api, version="5.0.1")
        await fake_api.until(lambda: api.running().get("demo-2") == "5.0.1", within=WITHIN)
        await fake_api.until(
            lambda: (
                "demo-2 is to come back" in api.status()["message"]
                or "demo-2 did not come back" in api.status()["message"]
            ),
            within=WITHIN,
        )

        assert {"demo-0": "5.0.0", "demo-1": "5.0.0"}.items() <= api.running().items()
        api.broken.clear()
        await api.settle()
        await fake_api.until(lambda: set(api.running().values()) == {"5.0.1"} and api.settled(), within=WITHIN)
    assert [] == api.wrong


async def test_a_member_that_is_lost_while_the_catalog_migrates_comes_back_of_the_old_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The new one may not touch a catalog that is half migrated; after that all follow."""
    api = await applied()
    async with operating(api, monkeypatch):
        await fake_api.until(api.settled, within=WITHIN)
        api.held = "5.0.0"
        await edited(api, version="5.0.1")
        await fake_api.until(lambda: "migrates the catalog to 5.0.1" in api.status()["message"], within=WITHIN)
        await api.drop("pods", "demo-1")
        await api.settle()

        assert {"demo-client-0": "5.0.1", "demo-0": "5.0.0", "demo-1": "5.0.0", "demo-2": "5.0.0"} == api.running()
        assert api.stands("Upgrading")
        api.held = ""
        await fake_api.until(lambda: set(api.running().values()) == {"5.0.1"} and api.settled(), within=WITHIN)
    assert [] == api.wrong


async def test_an_upgrade_is_taken_back_while_nothing_is_migrated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The MASTER goes back, and REST members were never touched."""
    api = await applied()
    async with operating(api, monkeypatch):
        await fake_api.until(api.settled, within=WITHIN)
        rest = {it["metadata"]["uid"] for it in api.pods() if "client" not in it["metadata"]["name"]}
        api.held = "5.0.0"
        await edited(api, version="5.0.1")
        await fake_api.until(lambda: api.running().get("demo-client-0") == "5.0.1", within=WITHIN)
        await edited(api, version="5.0.0")
        await fake_api.until(lambda: set(api.running().values()) == {"5.0.0"} and api.settled(), within=WITHIN)

    assert rest == {it["metadata"]["uid"] for it in api.pods() if "client" not in it["metadata"]["name"]}


async def test_a_secret_that_is_missing_is_named_and_heals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is made before: pods would hang."""
    api = await applied()
    monkeypatch.setattr("moorage.operators.opencga.secrets.EVERY", 0.02)
    held = api.one("secrets", "demo-admin-password")
    await api.drop("secrets", "demo-admin-password")
    async with operating(api, monkeypatch):
        await fake_api.until(lambda: api.status().get("phase") == "Failed", within=WITHIN)

        assert (
            "there is no Secret demo-admin-password, which spec.admin.passwordSecretRef, left out, names"
            == api.status()["message"]
        )
        assert [] == api.pods()
        await api.put("secrets", "demo-admin-password", {"data": held["data"]})
        await fake_api.until(api.settled, within=WITHIN)


async def test_what_others_made_under_our_names_is_not_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A StatefulSet of somebody else stays as it is, and the message says whose name is taken."""
    api = await applied()
    theirs = await api.put(
        "statefulsets",
        "demo-client",
        {"spec": {"replicas": 0, "template": {"metadata": {"annotations": {"opencga.zetta.com/version": "x"}}}}},
    )
    async with operating(api, monkeypatch):
        told = "StatefulSet demo-client is there already and is not this installation's"
        await fake_api.until(
            lambda: any(told in it.get("message", "") for it in api.status().get("conditions", ())), within=WITHIN
        )

    assert theirs["spec"] == api.one("statefulsets", "demo-client")["spec"]
