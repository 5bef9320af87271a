"""A node on which the servers of a Runtime run within the test, as far as moorage asks them and tells them something.

Each pod has an address of its own on loopback, so that every server listens where it always does. What mongo was told
is with its volume; NATS is as large as it has pods that run, which keep their streams together. Pods of versions run
and are ready, and do nothing.
"""

from __future__ import annotations

import base64
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from aiohttp import web

from moorage.api import builtin, conditions
from moorage.kube import client as kube_client
from moorage.kube.informers import informer
from moorage.operators.kre import kinds
from moorage.operators.kre.runtime import servers
from moorage.operators.kre.version import nats_access
from tests.api.xsld import kubelet
from tests.unit.operators.kre import mongo_stub, nats_stub


class Node(kubelet.Node):
    """The node of one test."""

    def __init__(self, client: kube_client.Client, namespace: str, folder: Path) -> None:
        super().__init__(client, namespace, folder, folder, env={})
        self._mongos: dict[Path, mongo_stub.MongoStub] = {}
        self.jetstream = nats_stub.NatsStub()

    def container(self, pod: dict[str, Any], address: str) -> kubelet.Container:
        """See `kubelet.Node`."""
        return Server(self, pod, address)

    def takes(self, pod: dict[str, Any]) -> bool:
        """See `kubelet.Node`; a version's pods ask for no node."""
        return super().takes(pod) or kinds.OF_VERSION in (pod["metadata"].get("labels") or {})

    def _on_pod(self, change: informer.Change[dict[str, Any]]) -> None:
        """One that was deleted before it had a node goes at once."""
        if change.new is None and change.old is not None:
            if gone := self._running.get(change.old["metadata"]["uid"]):
                gone.deleted.set()
            return
        super()._on_pod(change)

    @contextlib.asynccontextmanager
    async def serving(self, server: Server) -> AsyncIterator[None]:
        """What runs in that pod listens."""
        match server.component:
            case "mongo":
                mongo = await self._mongo(server.pod)
                async with mongo.running(server.address, servers.MONGO_PORT):
                    yield
            case "nats":
                async with (
                    _http(server.address, servers.NATS_PORT, lambda: self._nats(server.name)),
                    self.jetstream.running(server.address, nats_access.PORT),
                ):
                    yield
            case "minio":
                async with _http(server.address, servers.MINIO_PORT, dict):
                    yield
            case "influxdb":
                async with _http(server.address, servers.INFLUX_PORT, dict):
                    yield
            case _:
                yield

    async def _mongo(self, pod: dict[str, Any]) -> mongo_stub.MongoStub:
        """That of the pod's volume; a fresh one knows the administrator that its Secret names."""
        volume = await self.volume(pod)
        if volume not in self._mongos:
            (name,) = (it["secret"]["secretName"] for it in pod["spec"]["volumes"] if "secret" in it)
            data = (await self._client.get(builtin.SECRET, self._namespace, name))["data"]
            login = (base64.b64decode(data[key]).decode() for key in ("mongoUser", "mongoPassword"))
            self._mongos[volume] = mongo_stub.MongoStub(*login)
        return self._mongos[volume]

    def _nats(self, asked: str) -> dict[str, Any]:
        """What that server tells of JetStream."""
        there = [it for it in self.containers if isinstance(it, Server) and it.component == "nats"]
        leader, *others = sorted(it.name for it in there if it.listens)
        if not others:
            return {"server_id": asked}
        known = [{"name": name, "current": True} for name in others]
        return {"meta_cluster": {"name": "kre", "leader": leader, "replicas": known if asked == leader else []}}


class Server(kubelet.Container):
    """One incarnation of a pod, in this process."""

    _node: Node

    def __init__(self, node: Node, pod: dict[str, Any], address: str) -> None:
        super().__init__(node, pod, address)
        self.component: str = pod["metadata"]["labels"].get(kinds.COMPONENT, "")
        self.listens = False

    async def _run_once(self) -> None:
        began = {"startedAt": conditions.timestamp(time.time())}
        self.listens = True
        try:
            async with self._node.serving(self):
                await self._tell("Running", {"running": began}, ready=True)
                await self.deleted.wait()
        finally:
            self.listens = False


@contextlib.asynccontextmanager
async def _http(address: str, port: int, answer: Any) -> AsyncIterator[None]:
    """Every path is answered with that."""

    async def handle(_: web.Request) -> web.Response:
        return web.json_response(answer())

    app = web.Application()
    app.router.add_get("/{path:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, address, port).start()
    try:
        yield
    finally:
        await runner.cleanup()
