"""A node on which the servers of a Runtime run within the test, as far as moorage asks them and tells them something.

Each pod has an address of its own on loopback, so that every server listens where it always does. What mongo was told
is with its volume; NATS is as large as it has pods that run, which keep their streams together. Pods of versions run
and are ready, and do nothing.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from moorage.api import builtin
from moorage.kube import client as kube_client
from moorage.operators.kre import kinds
from moorage.operators.kre.runtime import servers
from moorage.operators.kre.version import nats_access
from tests.api import in_process
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

    def is_mine(self, pod: dict[str, Any]) -> bool:
        """See `kubelet.Node`; a version's pods ask for no node."""
        return super().is_mine(pod) or kinds.OF_VERSION in (pod["metadata"].get("labels") or {})

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
                    in_process.http(server.address, servers.NATS_PORT, lambda _: self._nats(server.name)),
                    self.jetstream.running(server.address, nats_access.PORT),
                ):
                    yield
            case "minio":
                async with in_process.http(server.address, servers.MINIO_PORT, _nothing):
                    yield
            case "influxdb":
                async with in_process.http(server.address, servers.INFLUX_PORT, _nothing):
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

    async def _nats(self, asked: str) -> dict[str, Any]:
        """What that server tells of JetStream."""
        there = [it for it in self.containers if isinstance(it, Server) and it.component == "nats"]
        listening = sorted(it.name for it in there if it.listens)
        if len(listening) < 2:  # one alone is no cluster; and the last may be asked while it ends
            return {"server_id": asked}
        leader, *others = listening
        known = [{"name": name, "current": True} for name in others]
        return {"meta_cluster": {"name": "kre", "leader": leader, "replicas": known if asked == leader else []}}


class Server(in_process.Server):
    """One incarnation of a pod, in this process."""

    _node: Node

    def __init__(self, node: Node, pod: dict[str, Any], address: str) -> None:
        super().__init__(node, pod, address)
        self.component: str = pod["metadata"]["labels"].get(kinds.COMPONENT, "")

    def serving(self) -> contextlib.AbstractAsyncContextManager[None]:
        """See `in_process.Server`."""
        return self._node.serving(self)


async def _nothing(_: str) -> dict[str, Any]:
    return {}
