"""Containers and a cluster of Weka as the tool in their pods tells of them, and a kubelet for an API server in memory.

Pods end only when they were told that they may; members are up while their pod runs.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Any

import msgspec

from moorage.kube import errors
from moorage.operators.weka import answers, names
from tests.unit.runtime import fake_api

HOLD = "test/kubelet"
GUID = "guid-1"
ASKS = ("local", "cluster")


class Product:
    """Containers and their cluster. `orders` are (pod, order, arguments), as they came."""

    def __init__(self) -> None:
        self.orders: list[tuple[str, str, dict[str, Any]]] = []
        self.resources: dict[str, str] = {}  # by container: it lies on its node
        self.flags: dict[str, set[str]] = {}  # by uid of a pod
        self.members: dict[str, int] = {}  # by container
        self.states: dict[int, str] = {}
        self.drives: dict[str, dict[str, Any]] = {}  # by uuid
        self.slots: tuple[str, ...] = ("s1", "s2")  # for drives, of each node
        self.formed = False
        self.io, self.phase = "", ""
        self.parity, self.data, self.spare = 0, 0, 0
        self.users, self.groups, self.filesystems = ["admin"], [], []

    def of(self, plural: str) -> dict[str, dict[str, Any]]:
        """All objects of a kind, by name."""
        raise NotImplementedError

    # --- the tool in the pods ------------------------------------------------------------------------------------

    def _up(self, name: str) -> bool:
        pod = self.of("pods").get(name)
        return pod is not None and bool((pod.get("status") or {}).get("podIP")) and name in self.resources

    def _within(self, name: str) -> str:
        found = self.of("wekacontainers").get(name)
        return str(found["spec"]["name"]) if found else ""

    def local(self, name: str, pod: dict[str, Any], _: dict[str, Any]) -> dict[str, Any]:
        uid, node = pod["metadata"]["uid"], pod["spec"]["nodeName"]
        flags, text = self.flags.get(uid, set()), self.resources.get(name)
        found: dict[str, Any] = {
            "pod": uid,
            "persistent": True,
            "resources": hashlib.sha256(text.encode()).hexdigest() if text else "",
            "allow_stop": "stop" in flags,
            "allow_force_stop": "force" in flags,
            "addresses": [it for it in [(pod.get("status") or {}).get("podIP")] if it],  # the watch may be behind
            "run_status": "Running" if text else "",
            "internal": "READY" if name in self.members else "STEM",
            "devices": [
                {"serial": f"{node}-{it}", "path": f"/dev/{it}", "signed": True, "guid": "", "mounted": False}
                for it in self.slots
            ],
        }
        if name in self.members:
            found |= {"cluster": GUID, "host": self.members[name]}
        return found

    def cluster(self, name: str, *_: Any) -> dict[str, Any]:
        if name not in self.members:
            return {}
        members = [
            {
                "host": host,
                "name": self._within(it),
                "address": "10.1.0.1",
                "status": "UP" if self._up(it) else "DOWN",
                "state": self.states[host],
            }
            for it, host in self.members.items()
        ]
        return msgspec.to_builtins(
            answers.Cluster(
                guid=GUID,
                name="hello",
                status="OK",
                io=self.io,
                data=self.data,
                parity=self.parity,
                hot_spare=self.spare,
                phase=self.phase,
                members=msgspec.convert(members, tuple[answers.Member, ...]),
                drives=msgspec.convert([*self.drives.values()], tuple[answers.Drive, ...]),
                users=tuple(self.users),
                groups=tuple(self.groups),
                filesystems=tuple(self.filesystems),
                capacity=2**40,
            )
        )

    def _join(self, name: str) -> None:
        if name not in self.members:
            host = len(self.states)
            self.members[name], self.states[host] = host, "ACTIVE"

    def container_write_resources(self, name: str, _: dict[str, Any], args: dict[str, Any]) -> None:
        self.resources[name] = args["text"]
        if self.formed and self.of("wekacontainers")[name]["spec"].get("joinIpPorts"):
            self._join(name)

    def container_allow_stop(self, _: str, pod: dict[str, Any], args: dict[str, Any]) -> None:
        assert pod["metadata"].get("deletionTimestamp"), "leave is given to a pod that nobody has deleted"
        self.flags.setdefault(args["pod"], set()).add("force" if args["force"] else "stop")

    def container_join(self, name: str, *_: Any) -> None:
        self._join(name)

    def cluster_form(self, *_: Any) -> None:
        if not self.formed:
            self.formed = True
            for name in sorted(self.resources):
                self._join(name)

    def cluster_set(self, _: str, __: Any, args: dict[str, Any]) -> None:
        self.parity = args.get("parity", self.parity)
        self.data = args.get("data", self.data)
        self.spare = args.get("hot_spare", self.spare)

    def cluster_start_io(self, *_: Any) -> None:
        self.io = "STARTED"

    def user_add(self, _: str, __: Any, args: dict[str, Any]) -> None:
        assert {"user"} == args.keys()
        self.users.append(args["user"])

    def group_add(self, _: str, __: Any, args: dict[str, Any]) -> None:
        self.groups.append(args["name"])

    def filesystem_add(self, _: str, __: Any, args: dict[str, Any]) -> None:
        self.filesystems.append(args["name"])

    def drive_add(self, _: str, __: Any, args: dict[str, Any]) -> None:
        uuid = f"d-{args['serial']}"
        self.drives[uuid] = {"uuid": uuid, "serial": args["serial"], "status": "ACTIVE", "host": args["host"]}

    def drive_deactivate(self, _: str, __: Any, args: dict[str, Any]) -> None:
        self.drives[args["uuid"]]["status"] = "INACTIVE"

    def drive_remove(self, _: str, __: Any, args: dict[str, Any]) -> None:
        assert "INACTIVE" == self.drives[args["uuid"]]["status"]
        del self.drives[args["uuid"]]

    def member_deactivate(self, _: str, __: Any, args: dict[str, Any]) -> None:
        self.states[args["host"]] = "INACTIVE"

    def member_remove(self, _: str, __: Any, args: dict[str, Any]) -> None:
        assert "INACTIVE" == self.states[args["host"]]
        name = next(it for it, host in self.members.items() if host == args["host"])
        del self.members[name]

    def upgrade_phase(self, _: str, __: Any, args: dict[str, Any]) -> None:
        self.phase = args["phase"]

    def upgrade_finish(self, *_: Any) -> None:
        self.phase = ""


class World(Product):
    """All of it."""

    def __init__(self, api: fake_api.FakeApi, nodes: int) -> None:
        super().__init__()
        self.api, self.nodes = api, [f"n{it}" for it in range(nodes)]
        self.down: set[str] = set()  # containers that never come up
        self.away: list[int] = []  # how many pods were ending, whenever one was
        self.asked = 0
        self.loses = False  # the first answer to each order at each container
        self.lost: set[tuple[str, str]] = set()
        self._next = 0

    async def prepare(self) -> None:
        """The namespace and the nodes with their signed drives."""
        await self.api.put("namespaces", "ns", {"metadata": {"labels": {names.OPENED: "privileged"}}}, namespace="")
        for it in self.nodes:
            annotations = {names.DRIVES: json.dumps([f"{it}-{slot}" for slot in self.slots])}
            ready = {"conditions": [{"type": "Ready", "status": "True"}]}
            await self.api.put("nodes", it, {"metadata": {"annotations": annotations}, "status": ready}, namespace="")

    def of(self, plural: str) -> dict[str, dict[str, Any]]:
        """All objects of a kind, by name."""
        return {place.name: it for place, it in self.api.objects.items() if place.plural == plural}

    def serves(self, name: str) -> bool:
        """Whether that container's pod runs, and was not told that it may stop."""
        pod = self.of("pods").get(name)
        return pod is not None and self._up(name) and not self.flags.get(pod["metadata"]["uid"])

    # --- the kubelet ---------------------------------------------------------------------------------------------

    async def kubelet(self) -> None:
        """Gives pods a node and lets them run; ends those that are deleted and may stop."""
        while True:
            pods = self.of("pods")
            ending = [it for it in pods.values() if it["metadata"].get("deletionTimestamp")]
            if ending:
                self.away.append(len(ending))
            for name, pod in pods.items():
                metadata = pod["metadata"]
                if metadata.get("deletionTimestamp"):
                    if self.flags.get(metadata["uid"]):
                        await self.api.drop("pods", name)
                elif not (pod.get("status") or {}).get("podIP"):
                    await self._run(name, pod)
            await asyncio.sleep(0.002)

    async def _run(self, name: str, pod: dict[str, Any]) -> None:
        like = [pod["metadata"]["labels"][it] for it in (names.MODE, names.CLUSTER_ID)]
        terms = pod["spec"]["affinity"].get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution")
        taken = {
            it["spec"].get("nodeName")
            for it in self.of("pods").values()
            if [it["metadata"]["labels"][label] for label in (names.MODE, names.CLUSTER_ID)] == like
        }
        if terms:
            node = terms["nodeSelectorTerms"][0]["matchFields"][0]["values"][0]
        else:
            node = next((it for it in self.nodes if it not in taken), "")
        if not node or name in self.down:
            return
        self._next += 1
        running = {
            "name": names.POD_CONTAINER,
            "ready": True,
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
        }
        status = {
            "phase": "Running",
            "podIP": f"10.1.{self._next // 250}.{self._next % 250}",
            "containerStatuses": [running],
        }
        metadata = {"finalizers": [HOLD]}
        await self.api.put("pods", name, {"metadata": metadata, "spec": {"nodeName": node}, "status": status})

    # --- exec ----------------------------------------------------------------------------------------------------

    async def ask(self, _: Any, namespace: str, pod: str, what: str, args: dict[str, Any], as_: type[Any]) -> Any:
        """In place of `Agents.ask`."""
        await asyncio.sleep(0)
        live = self.of("pods").get(pod)
        if live is None:
            raise errors.TransportError(f"exec in {pod}: it is gone", sent=False)
        assert namespace == "ns"
        self.asked += 1
        if what not in ASKS:
            self.orders.append((pod, what, args))
        found = getattr(self, what.replace(".", "_"))(pod, live, args) or {}
        if self.loses and what not in ASKS and (pod, what) not in self.lost:
            self.lost.add((pod, what))
            raise errors.TransportError(f"exec in {pod}: the answer was lost", sent=True)
        return msgspec.convert(found, as_)
