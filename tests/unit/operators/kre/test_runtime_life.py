"""A Runtime's whole life on an API server in memory, with the real chart and what helm renders of it.

Helm's install and uninstall are played, as are the kubelet's doings; servers answer on this machine.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import json
import shutil
import subprocess
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from aiohttp import web

from moorage.helm.runs import binary
from moorage.kube import client as kube_client
from moorage.kube.http import transport
from moorage.operators import system
from moorage.operators.kre import config
from moorage.operators.kre.runtime import kind, servers
from moorage.runtime import decision, manager
from moorage.runtime import kind as runtime_kind
from tests.unit.runtime import fake_api

from . import mongo_stub

ROOT = Path(__file__).resolve().parents[4]
SAMPLE = yaml.safe_load((ROOT / "examples/kre/runtime.yaml").read_text())
PLURALS = {
    "ConfigMap": "configmaps",
    "Deployment": "deployments",
    "Ingress": "ingresses",
    "Service": "services",
    "StatefulSet": "statefulsets",
}
SERVED = {
    "v1": ("ConfigMap", "Service"),
    "apps/v1": ("Deployment", "StatefulSet"),
    "networking.k8s.io/v1": ("Ingress",),
}
RECORD = "sh.helm.release.v1.kre.v1"
CLUSTER = {"meta_cluster": {"leader": "kre-nats-0", "replicas": [{"name": "kre-nats-1"}]}}


class Api(fake_api.FakeApi):
    """It tells what it serves, and that all is allowed."""

    async def request(self, method: str, path: str, **asked: Any) -> transport.Response:
        found = self._told(path)
        if found is not None:
            return transport.Response(200, {}, msgspec.json.encode(found))
        return await super().request(method, path, **asked)

    def _told(self, path: str) -> dict[str, Any] | None:
        if path.endswith("reviews"):
            anything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
            return {"status": {"allowed": True, "resourceRules": [anything], "nonResourceRules": []}}
        match path:
            case "/version":
                return {"gitVersion": "v1.35.0", "major": "1", "minor": "35"}
            case "/api":
                return {"versions": ["v1"]}
            case "/apis":
                return {"groups": [{"versions": [{"groupVersion": each}]} for each in SERVED if "/" in each]}
        served = SERVED.get(path.removeprefix("/apis/").removeprefix("/api/"))
        return {"resources": [{"name": PLURALS[it], "kind": it} for it in served]} if served else None

    def runtime(self) -> dict[str, Any]:
        return self.objects.get(fake_api.Place("runtimes", "ns", "demo"), {})

    def stands(self, type_: str, status: str) -> bool:
        told = (self.runtime().get("status") or {}).get("conditions", ())
        return any((it["type"], it["status"]) == (type_, status) for it in told)

    def left(self) -> set[str]:
        """What there is, Events aside."""
        return {place.plural for place in self.objects} - {"events", "leases"}


class Played(kind.RuntimeKind):
    """Its helm writes what the chart renders, and that it runs."""

    api: Api

    async def start(self, world: runtime_kind.World) -> None:
        await super().start(world)
        self.operations = {**self.operations, "release.install": self._install, "release.uninstall": self._uninstall}

    async def _install(self, obj: Any, args: dict[str, Any]) -> decision.Outcome:
        given = self._given(obj)
        assert given is not None
        helm, chart = str(self._environment.helm), str(ROOT / "charts/kre-runtime")
        command = [helm, "template", "kre", chart, "-n", "ns", "--values", "-"]
        done = await asyncio.to_thread(subprocess.run, command, input=given.text, capture_output=True, check=True)
        for body in filter(None, yaml.safe_load_all(done.stdout)):
            await self._make(body)
        await self._record(done.stdout.decode(), args)
        return decision.Ok()

    async def _make(self, body: dict[str, Any]) -> None:
        name, replicas = body["metadata"]["name"], body["spec"].get("replicas", 0) if "spec" in body else 0
        counts = ("replicas", "readyReplicas", "availableReplicas", "updatedReplicas")
        status = {"observedGeneration": 1, "conditions": [{"type": "Available", "status": "True"}]}
        status |= dict.fromkeys(counts, replicas)
        body["metadata"]["annotations"] = {"meta.helm.sh/release-name": "kre", "meta.helm.sh/release-namespace": "ns"}
        made = await self.api.put(PLURALS[body["kind"]], name, {**body, "status": status})
        if body["kind"] != "StatefulSet":
            return
        owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name, "controller": True}
        owner["uid"] = made["metadata"]["uid"]
        for ordinal in range(replicas):
            running = {"phase": "Running", "podIP": "127.0.0.1"}
            await self.api.put(
                "pods", f"{name}-{ordinal}", {"metadata": {"ownerReferences": [owner]}, "status": running}
            )
            for claim in body["spec"]["volumeClaimTemplates"]:
                content = {"metadata": {"labels": claim["metadata"]["labels"]}, "spec": claim["spec"]}
                await self.api.put("persistentvolumeclaims", f"data-{name}-{ordinal}", content)

    async def _record(self, text: str, args: dict[str, Any]) -> None:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        info = {"status": "deployed", "description": f"moorage attempt {args['attempt']}", "last_deployed": now}
        body = {"name": "kre", "namespace": "ns", "version": 1, "info": info, "manifest": text, "config": {}}
        packed = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(body).encode()))).decode()
        labels = {"name": "kre", "owner": "helm", "status": "deployed", "version": "1"}
        labels |= {"moorage.dev/attempt": args["attempt"], "moorage.dev/digest": args["digest"]}
        content = {"type": "helm.sh/release.v1", "metadata": {"labels": labels}, "data": {"release": packed}}
        await self.api.put("secrets", RECORD, content)

    async def _uninstall(self, _: Any, __: dict[str, Any]) -> decision.Outcome:
        gone = {*PLURALS.values(), "pods"} - {"configmaps"}
        for place in list(self.api.objects):
            if place.plural in gone or place.name in (RECORD, "kre-nats", "kre-default-backend"):
                await self.api.drop(place.plural, place.name)
        return decision.Ok()


@contextlib.asynccontextmanager
async def servers_run(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[mongo_stub.MongoStub, dict[str, Any]]]:
    """All servers on this machine; what NATS tells can be changed."""
    nats = dict(CLUSTER)

    async def jsz(_: web.Request) -> web.Response:
        return web.json_response(nats)

    async def well(_: web.Request) -> web.Response:
        return web.Response(status=204)

    app = web.Application()
    app.router.add_get("/jsz", jsz)
    app.router.add_get("/ping", well)
    app.router.add_get("/minio/health/ready", well)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    for name in ("NATS_PORT", "MINIO_PORT", "INFLUX_PORT"):
        monkeypatch.setattr(servers, name, runner.addresses[0][1])
    try:
        async with mongo_stub.MongoStub("admin", "123456").running() as mongo:
            monkeypatch.setattr(servers, "MONGO_PORT", mongo.port)
            yield mongo, nats
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def operating(api: Api, scratch: Path) -> AsyncIterator[None]:
    own = ROOT / ".testbed/bin/helm"
    helm = str(own) if own.exists() else shutil.which("helm")
    if not helm:
        pytest.skip("no helm binary in .testbed/bin nor on the PATH; `testbed/testbed up` builds it")
    around = system.Environment("moorage-system", scratch, Path(helm), binary.KubeAccess(), 3.0)
    settings = config.Config(
        "moorage-accounts", "moorage-kre-namespace", charts=str(ROOT / "charts"), poll=config.Poll(0.2, 0.2)
    )
    played = Played(settings, around)
    played.api = api
    stop = asyncio.Event()
    options = manager.Settings(identity="me", namespace="moorage-system", elect=False, port=0)
    running = asyncio.create_task(manager.Manager(kube_client.Client(api), [played], options).run(stop))
    try:
        yield
    finally:
        stop.set()
        await running


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
            assert 1 == len([it for it in api.writes("secrets") if it.method == "POST"])
        before = len(api.writes())
        async with operating(api, tmp_path):
            nats["meta_cluster"] = {"leader": "kre-nats-0", "replicas": [{"name": "kre-nats-1", "offline": True}]}
            await fake_api.until(lambda: api.stands("NatsReady", "False"), within=60)

            assert {"runtimes"} == {it.at.plural for it in api.writes()[before:]}
            assert api.stands("Ready", "False")
            await api.mark_deleted("runtimes", "demo")
            await fake_api.until(lambda: {"namespaces"} == api.left(), within=60)
