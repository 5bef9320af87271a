"""An API server in memory on which a Runtime lives, with the real chart and what helm renders of it.

Helm's runs are played, as are the kubelet's doings; servers answer on this machine.
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

from moorage.children import ordinals
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
PLURALS = {
    "ConfigMap": "configmaps",
    "Deployment": "deployments",
    "Ingress": "ingresses",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "Service": "services",
    "StatefulSet": "statefulsets",
}
SERVED = {
    "v1": ("ConfigMap", "Service"),
    "apps/v1": ("Deployment", "StatefulSet"),
    "networking.k8s.io/v1": ("Ingress",),
    "policy/v1": ("PodDisruptionBudget",),
}
CLAIMS = "persistentvolumeclaims"
RECORD = "sh.helm.release.v1.kre.v"
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
        played = {"install": self._install, "upgrade": self._install, "uninstall": self._uninstall}
        self.operations = {**self.operations, **{f"release.{name}": done for name, done in played.items()}}

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
        owned = {"meta.helm.sh/release-name": "kre", "meta.helm.sh/release-namespace": "ns"}
        body["metadata"]["annotations"] = {**body["metadata"].get("annotations", {}), **owned}
        made = await self.api.put(PLURALS[body["kind"]], name, body)
        status = {"observedGeneration": made["metadata"]["generation"]} | dict.fromkeys(counts, replicas)
        conditions = [{"type": "Available", "status": "True"}]
        conditions += [{"type": "DisruptionAllowed", "status": "True"}]
        await self.api.put(PLURALS[body["kind"]], name, {"status": {**status, "conditions": conditions}})
        if body["kind"] == "StatefulSet":
            await self._run_pods(made, replicas)

    async def _run_pods(self, workload: dict[str, Any], replicas: int) -> None:
        """As many as there are to be; who is too much ends."""
        name = workload["metadata"]["name"]
        owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name, "controller": True}
        owner["uid"] = workload["metadata"]["uid"]
        for ordinal in range(replicas):
            for claim in workload["spec"]["volumeClaimTemplates"]:
                content = {"metadata": {"labels": claim["metadata"]["labels"]}, "spec": claim["spec"]}
                if fake_api.Place(CLAIMS, "ns", f"data-{name}-{ordinal}") not in self.api.objects:
                    await self.api.put(CLAIMS, f"data-{name}-{ordinal}", content)
            running = {"phase": "Running", "podIP": await self.runs(f"{name}-{ordinal}")}
            metadata = {"ownerReferences": [owner]}
            await self.api.put("pods", f"{name}-{ordinal}", {"metadata": metadata, "status": running})
        for place in list(self.api.objects):
            if place.plural == "pods" and ordinals.of(name, place.name) >= replicas:
                await self.ends(place.name)
                await self.api.drop("pods", place.name)

    async def runs(self, pod: str) -> str:
        """The pod runs, from now on if it did not; returns its address."""
        return "127.0.0.1"

    async def ends(self, pod: str) -> None:
        """It is to end, and has ended."""

    async def _record(self, text: str, args: dict[str, Any]) -> None:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        info = {"status": "deployed", "description": f"moorage attempt {args['attempt']}", "last_deployed": now}
        before = [place.name for place in self.api.objects if place.name.startswith(RECORD)]
        revision = 1 + max((int(name.removeprefix(RECORD)) for name in before), default=0)
        body = {"name": "kre", "namespace": "ns", "version": revision, "info": info, "manifest": text, "config": {}}
        packed = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(body).encode()))).decode()
        labels = {"name": "kre", "owner": "helm", "status": "deployed", "version": str(revision)}
        labels |= {"moorage.dev/attempt": args["attempt"], "moorage.dev/digest": args["digest"]}
        content = {"type": "helm.sh/release.v1", "metadata": {"labels": labels}, "data": {"release": packed}}
        await self.api.put("secrets", f"{RECORD}{revision}", content)
        for name in before:  # its history is as short as can be
            await self.api.drop("secrets", name)

    async def _uninstall(self, _: Any, __: dict[str, Any]) -> decision.Outcome:
        gone = {*PLURALS.values(), "pods"} - {"configmaps"}
        for place in list(self.api.objects):
            if (
                place.plural in gone
                or place.name.startswith(RECORD)
                or place.name in ("kre-nats", "kre-default-backend")
            ):
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


def helm() -> str:
    """The binary of this tree's testbed, or the one on the path."""
    own = ROOT / ".testbed/bin/helm"
    found = str(own) if own.exists() else shutil.which("helm")
    if not found:
        pytest.skip("no helm binary in .testbed/bin nor on the PATH; `testbed/testbed up` builds it")
    return found


@contextlib.asynccontextmanager
async def operating(
    api: Api, scratch: Path, made: type[Played] = Played, *, alone: bool = False, elect: bool = False
) -> AsyncIterator[None]:
    namespace = "ns" if alone else "moorage-system"
    around = system.Environment(namespace, scratch, Path(helm()), binary.KubeAccess(), 3.0, alone)
    settings = config.Config(
        "moorage-accounts", "moorage-kre-namespace", charts=str(ROOT / "charts"), poll=config.Poll(0.2, 0.2)
    )
    played = made(settings, around)
    played.api = api
    stop = asyncio.Event()
    options = manager.Settings(identity="me", namespace=namespace, elect=elect, port=0)
    running = asyncio.create_task(manager.Manager(kube_client.Client(api), [played], options).run(stop))
    try:
        yield
    finally:
        stop.set()
        await running
