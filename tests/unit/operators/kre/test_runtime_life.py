"""A Runtime's whole life on an API server in memory, with the real chart and what helm renders of it.

Helm's install and uninstall are played, as are the kubelet's doings; servers answer on this machine.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gc
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from moorage.api.common_status import OPERATOR
from moorage.operators.kre.runtime import servers
from moorage.runtime import source
from tests.unit.runtime import fake_api

from .playing import ROOT, Api, operating, servers_run

SAMPLE = yaml.safe_load((ROOT / "examples/kre/runtime.yaml").read_text())


async def test_made_restarted_and_deleted_with_all_that_it_had(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The original's sample: ready by its servers' own word, at rest without a write, and gone without a trace."""
    api = Api()
    await api.put("namespaces", "ns", namespace="")
    metadata = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    await api.put("runtimes", "demo", {"metadata": metadata, "spec": SAMPLE["spec"] | {"reclaim": "Delete"}})
    async with servers_run(monkeypatch) as (mongo, nats):
        async with operating(api, tmp_path):
            await fake_api.until(lambda: api.stands("Ready", "True"), within=60)
            status = api.runtime()["status"]

            assert ("STARTED", 2) == (status["phase"], status["natsServers"])
            assert {"mongo": 1, "nats": 2, "minio": 1, "influxdb": 1, "chronograf": 1} == {
                it["name"]: it["ready"] for it in status["components"]
            }
            assert mongo.config is not None
            assert 1 == mongo.asked.count("replSetInitiate")
            made = [it.body["metadata"]["name"] for it in api.writes("secrets") if it.method == "POST"]
            assert ["kre-credentials", "kre-nats-login", "kre-credentials-in-use"] == made
        before = len(api.writes())
        async with operating(api, tmp_path):
            nats["meta_cluster"] = {"leader": "kre-nats-0", "replicas": [{"name": "kre-nats-1", "offline": True}]}
            await fake_api.until(lambda: api.stands("NatsReady", "False"), within=60)

            assert {"runtimes"} == {it.at.plural for it in api.writes()[before:]}
            assert api.stands("Ready", "False")
            await api.mark_deleted("runtimes", "demo")
            await fake_api.until(lambda: {"namespaces"} == api.left(), within=60)


async def test_passwords_are_changed_in_its_life(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each by one write of the Secret: mongo is told, MinIO is restarted, and what is at rest stays so."""
    api = Api()
    await api.put("namespaces", "ns", namespace="")
    metadata = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    await api.put("runtimes", "demo", {"metadata": metadata, "spec": {}})
    async with servers_run(monkeypatch) as (mongo, nats), operating(api, tmp_path):
        nats["meta_cluster"] = None
        await fake_api.until(lambda: fake_api.Place("secrets", "ns", "kre-credentials") in api.objects, within=60)
        mongo.password = secret(api, "kre-credentials")["mongoPassword"]
        await fake_api.until(lambda: api.stands("Ready", "True"), within=60)
        before, restarted = len(api.writes()), template(api, "minio")

        await change(api, mongoPassword="of-today")
        await fake_api.until(lambda: "of-today" == secret(api, "kre-credentials-in-use")["mongoPassword"], within=60)
        assert "of-today" == mongo.password
        assert {"secrets", "runtimes"} >= {it.at.plural for it in api.writes()[before:]}
        assert restarted == template(api, "minio")

        await change(api, minioSecretKey="of-today")
        await fake_api.until(lambda: restarted != template(api, "minio"), within=60)
        assert "of-today" == secret(api, "kre-credentials-in-use")["minioSecretKey"]
        await fake_api.until(lambda: api.stands("Ready", "True"), within=60)
        assert 1 == mongo.asked.count("updateUser")


async def test_no_connection_stays_open_for_a_server_that_lets_nobody_go(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What is asked of one server does not end in time as moorage ends; those to the others are closed all the same."""
    api, asked, over = Api(), asyncio.Event(), asyncio.Event()

    async def stuck(*_: Any) -> None:
        asked.set()
        while not over.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await over.wait()

    monkeypatch.setattr(servers.Servers, "_ask_mongo", stuck)
    monkeypatch.setattr(source, "ENDING", 60.0)
    await api.put(
        "runtimes", "demo", {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": SAMPLE["spec"]}
    )
    try:
        async with servers_run(monkeypatch), operating(api, tmp_path):
            await fake_api.until(lambda: asked.is_set() and open_sessions(), within=60)
        assert [] == open_sessions()
    finally:
        over.set()


def open_sessions() -> list[aiohttp.ClientSession]:
    return [it for it in gc.get_objects() if isinstance(it, aiohttp.ClientSession) and not it.closed]


def secret(api: Api, name: str) -> dict[str, str]:
    return {key: base64.b64decode(text).decode() for key, text in api.one("secrets", name)["data"].items()}


async def change(api: Api, **texts: str) -> None:
    data = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
    await api.put("secrets", "kre-credentials", {"data": api.one("secrets", "kre-credentials")["data"] | data})


def template(api: Api, server: str) -> Any:
    return api.one("statefulsets", f"kre-{server}")["spec"]["template"]["metadata"]["annotations"]


async def test_in_a_namespace_alone_it_asks_for_nothing_outside(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The same life with moorage in the Runtime's own namespace: as itself, and with nothing of the cluster's."""
    api = Api()
    metadata = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    await api.put("runtimes", "demo", {"metadata": metadata, "spec": SAMPLE["spec"] | {"reclaim": "Delete"}})
    async with servers_run(monkeypatch), operating(api, tmp_path, alone=True):
        await fake_api.until(lambda: api.stands("Ready", "True"), within=60)
        await api.mark_deleted("runtimes", "demo")
        await fake_api.until(lambda: set() == api.left(), within=60)

    assert {""} == {asked.user for asked in api.requests}
    outside = {asked.at.plural for asked in api.requests if asked.at.namespace != "ns"}
    assert outside <= {"storageclasses"}


async def test_a_namespace_that_has_an_installation_of_its_own_is_left_to_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By its binding, and as long as that is there: nothing is written there but an Event that says so."""
    api = Api()
    await api.put("namespaces", "ns", namespace="")
    role = {"roleRef": {"kind": "Role", "name": "of-its-own"}}
    await api.put("rolebindings", "moorage-kre", {"metadata": {"annotations": {OPERATOR: "ns/moorage"}}, **role})
    metadata = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    await api.put("runtimes", "demo", {"metadata": metadata, "spec": SAMPLE["spec"]})
    async with servers_run(monkeypatch), operating(api, tmp_path, elect=True):
        await fake_api.until(lambda: api.writes("events"), within=60)
        told = api.writes("events")[0]

        assert ("OtherOperator", "Warning") == (told.body["reason"], told.body["type"])
        assert "ns/moorage" in told.body["note"]
        assert [] == api.writes()
        await api.drop("rolebindings", "moorage-kre")
        await fake_api.until(lambda: api.runtime()["metadata"].get("finalizers"), within=60)
        await fake_api.until(lambda: api.writes("rolebindings"), within=60)

    assert "ClusterRole" == api.one("rolebindings", "moorage-kre")["roleRef"]["kind"]
