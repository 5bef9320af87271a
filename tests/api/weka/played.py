"""Nodes whose pods are Weka's containers, played within the test beside a real API server, which answer exec too.

What an order does lasts, as it does in a pod: it is carried out to its end whoever has asked is gone, and one that is
given again meanwhile looks first, as the tool does. All that the product would be told more than once is on record.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moorage.api import builtin, conditions
from moorage.kube import client as kube_client
from moorage.kube.http import exec_protocol
from moorage.operators.weka import names
from tests.api.xsld import kubelet
from tests.unit.operators.weka import fake_weka

SLOTS = ("s1", "s2", "s3", "s4", "s5")
"""For drives, of each node."""

LASTS = 0.1
"""Seconds that an order takes."""

ONCE = (
    "cluster.form",
    "cluster.start_io",
    "drive.add",
    "drive.remove",
    "filesystem.add",
    "group.add",
    "member.remove",
    "upgrade.finish",
    "upgrade.phase",
    "user.add",
)
"""What the product does, and how often, must be the same however often it was asked for."""


class Product(fake_weka.Product):
    """The cluster of one namespace."""

    def __init__(self, node: Node) -> None:
        super().__init__()
        self._node, self.slots = node, SLOTS
        self.done: Counter[str] = Counter()
        self.wrong: list[str] = []

    def of(self, plural: str) -> dict[str, dict[str, Any]]:
        """See `fake_weka.Product`."""
        return self._node.of(plural)

    def is_done(self, what: str, args: dict[str, Any]) -> bool:
        """Whether the tool finds that there is nothing left to do."""
        match what:
            case "cluster.form":
                return self.formed
            case "cluster.start_io":
                return self.io == args["started"]
            case "upgrade.phase":
                return bool(self.phase == args["phase"])
            case "upgrade.finish":
                return not self.phase
            case "user.add":
                return args["user"] in self.users
            case "group.add":
                return args["name"] in self.groups
            case "filesystem.add":
                return args["name"] in self.filesystems
            case "drive.add":
                return args["serial"] in [it["serial"] for it in self.drives.values()]
            case "drive.deactivate" | "drive.remove":
                return args["uuid"] not in self.drives
            case "member.deactivate" | "member.remove":
                return args["host"] not in self.members.values()
        return False

    def said(self, pod: str, what: str, args: dict[str, Any]) -> dict[str, Any]:
        """What the tool in that pod prints."""
        live = self.of("pods")[pod]
        if what in fake_weka.ASKS:
            return dict(getattr(self, what)(pod, live, args))
        if self.is_done(what, args):
            return {}
        try:
            getattr(self, what.replace(".", "_"))(pod, live, args)
        except AssertionError as error:
            self.wrong.append(f"{what} at {pod}: {error}")
        if what in ONCE:
            about = [str(args[it]) for it in ("serial", "name", "phase", "user") if args.get(it)]
            self.done[" ".join([what, *about[:1]])] += 1
        return {}

    def state(self) -> dict[str, Any]:
        """What it has come to."""
        return {
            "members": [[name, host, self.states[host]] for name, host in sorted(self.members.items())],
            "drives": [dict(it) for _, it in sorted(self.drives.items())],
            "users": sorted(self.users),
            "groups": sorted(self.groups),
            "filesystems": sorted(self.filesystems),
            "set": [self.io, self.phase, self.data, self.parity, self.spare],
            "done": [f"{what}: {count}" for what, count in sorted(self.done.items())],
            "wrong": list(self.wrong),
        }


class Node(kubelet.Node):
    """All nodes of one test, each with drives that are signed."""

    def __init__(self, client: kube_client.Client, namespace: str, folder: Path, count: int) -> None:
        super().__init__(client, namespace, folder, folder, env={})
        self.names = [f"n{it}-{namespace}" for it in range(count)]
        self.product = Product(self)

    async def start(self) -> None:
        """See `kubelet.Node`. No scheduler places anything here."""
        for name in self.names:
            serials = json.dumps([f"{name}-{it}" for it in SLOTS])
            body = {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "annotations": {names.DRIVES: serials}},
                "spec": {"taints": [{"key": "test/played", "effect": "NoSchedule"}]},
            }
            await self._client.create(kubelet.NODE, "", body, field_manager="test")
            self._spawn(self._beats(name))
        opened = {"metadata": {"labels": {names.OPENED: "privileged"}}}
        await self._client.patch_merge(builtin.NAMESPACE, "", self._namespace, opened, field_manager="test")
        self._containers = self._caches.watch(names.CONTAINER, dict, namespace=self._namespace)
        self._pods = self._caches.watch(builtin.POD, dict, namespace=self._namespace)
        for cache in (self._containers, self._pods):
            await cache.wait_synced(60)
        self._pods.subscribe(self._on_pod)

    async def stop(self) -> None:
        """See `kubelet.Node`."""
        await super().stop()
        for name in self.names:
            await self._client.delete(kubelet.NODE, "", name, propagation="Background")

    async def _beats(self, name: str) -> None:
        while True:
            now = conditions.timestamp(asyncio.get_running_loop().time())
            ready = {"type": "Ready", "status": "True", "reason": "Test", "lastHeartbeatTime": now}
            told = {"status": {"conditions": [ready], "allocatable": {"cpu": "64", "memory": "64Gi", "pods": "500"}}}
            await self._client.patch_merge(kubelet.NODE, "", name, told, subresource="status", field_manager="test")
            await asyncio.sleep(kubelet.BEAT)

    def of(self, plural: str) -> dict[str, dict[str, Any]]:
        """All pods or WekaContainers, by name."""
        cache = self._pods if plural == "pods" else self._containers
        return {it["metadata"]["name"]: it for it in cache.items()}

    def is_mine(self, pod: dict[str, Any]) -> bool:
        """See `kubelet.Node`."""
        return names.CONTAINER_NAME in (pod["metadata"].get("labels") or {})

    def container(self, pod: dict[str, Any], address: str) -> kubelet.Container:
        """See `kubelet.Node`."""
        return Pod(self, pod, address)

    def place(self, pod: dict[str, Any]) -> str:
        """That which it is pinned to, else one by its number."""
        terms = pod["spec"]["affinity"].get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution")
        if terms:
            return str(terms["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])
        name, mode = pod["metadata"]["name"], pod["metadata"]["labels"][names.MODE]
        first = 0 if mode == "drive" else len(self.names) // 2  # apart, so that nobody's ports depend on who was first
        return self.names[(first + int(name.rpartition("-")[2])) % len(self.names)]

    async def bind(self, pod: dict[str, Any]) -> None:
        """See `kubelet.Node`."""
        self.name = self.place(pod)
        await super().bind(pod)

    # --- exec ----------------------------------------------------------------------------------------------------

    def order(self, query: Mapping[str, Any]) -> str:
        """See `faulty.Execs`."""
        what = str(query["command"][2])
        return "" if what in fake_weka.ASKS else what

    async def run(self, pod: str, query: Mapping[str, Any]) -> exec_protocol.ExecResult:
        """See `faulty.Execs`."""
        _, _, what, text = query["command"]
        live = self.of("pods").get(pod)
        running = self._running.get(live["metadata"]["uid"]) if live is not None else None
        if running is None or not running.ready:
            return exec_protocol.ExecResult("", "its container does not run", 1)
        if self.order(query):
            await asyncio.sleep(LASTS)
        if pod not in self.of("pods"):
            return exec_protocol.ExecResult("", "it has ended meanwhile", 137)
        return exec_protocol.ExecResult(json.dumps(self.product.said(pod, what, json.loads(text))), "", 0)

    def state(self) -> dict[str, Any]:
        """See `surroundings.Around`."""
        return {"Product weka": self.product.state()}


class Pod(kubelet.Container):
    """One incarnation of a container's pod: it runs until it is deleted and may stop."""

    _node: Node
    ready = False

    async def _run_once(self) -> None:
        self.ready = True
        await self._tell("Running", {"running": {"startedAt": conditions.timestamp(0)}}, ready=True)
        await self.deleted.wait()
        uid = self.pod["metadata"]["uid"]
        while not self._node.product.flags.get(uid):
            await asyncio.sleep(0.02)
        self.ready = False
