"""A node that is played: pods are bound to it, and after a while it says that they run. Nothing runs.

So what is measured is who installs releases, and not kubelets and images, and each pod takes as long as the next. What
can go wrong: RefusedError, when the API server does not take what it says.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import functools
import itertools
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from benchmarks import bare, cases, protocol

NAME = "played"
STARTS = 1.0
"""Seconds from the binding of a pod to its readiness: about what one takes whose image is there."""

RENEWS = 10.0
NODE = f"/api/v1/nodes/{NAME}"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{NAME}"
ROOM = {"cpu": "64", "memory": "256Gi", "pods": "1000", "ephemeral-storage": "1Ti"}


class Meta(msgspec.Struct, rename="camel"):
    """Of a pod."""

    name: str
    namespace: str
    uid: str
    deletion_timestamp: str | None = None


class Container(msgspec.Struct):
    """Of a pod."""

    name: str
    image: str = ""


class Spec(msgspec.Struct):
    """Of a pod."""

    containers: list[Container]


class Status(msgspec.Struct):
    """Of a pod."""

    phase: str = ""


class Pod(msgspec.Struct):
    """A pod as a node reads it."""

    metadata: Meta
    spec: Spec
    status: Status = msgspec.field(default_factory=Status)

    @property
    def path(self) -> str:
        """Of the API."""
        return f"/api/v1/namespaces/{self.metadata.namespace}/pods/{self.metadata.name}"


@contextlib.asynccontextmanager
async def played(client: bare.Client) -> AsyncIterator[None]:
    """The node, as soon as pods are bound to it; taken away in the end."""
    await client.apply(NODE, _body(), manager=NAME)
    await client.merge(f"{NODE}/status", {"status": _node_status()})
    working = asyncio.create_task(_work(client))
    try:
        await cases.until(functools.partial(_admits, client))
        yield
    finally:
        working.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await working
        await client.send("DELETE", NODE)


async def _admits(client: bare.Client) -> bool:
    """Whether its taints are gone, which a new node has until a controller has seen that it is ready."""
    return "taints" not in msgspec.json.decode(await client.send("GET", NODE))["spec"]


async def _work(client: bare.Client) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(_renew(client))
        await _follow(client, group)


async def _renew(client: bare.Client) -> None:
    """Say that the node lives."""
    while True:
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": NAME, "leaseDurationSeconds": 40, "renewTime": now}
        body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": NAME}, "spec": spec}
        await client.apply(LEASE, body, manager=NAME)
        await asyncio.sleep(RENEWS)


async def _follow(client: bare.Client, group: asyncio.TaskGroup) -> None:
    """Begin with each pod that is bound here, and end with each that is to go."""
    decoder, mine = msgspec.json.Decoder(Pod), {"fieldSelector": f"spec.nodeName={NAME}"}
    begun, addresses = set[str](), itertools.count(1)

    def take(pod: Pod) -> None:
        if pod.metadata.deletion_timestamp:
            group.create_task(_remove(client, pod))
        elif pod.metadata.uid not in begun:
            begun.add(pod.metadata.uid)
            number = next(addresses)
            group.create_task(_start(client, pod, f"10.250.{number // 250}.{number % 250 + 1}"))

    while True:
        pods, version = await client.list("/api/v1/pods", Pod, **mine)
        for pod in pods:
            take(pod)
        async for event in client.watch("/api/v1/pods", version, **mine):
            if event.type == "ERROR":
                break
            if event.type in ("ADDED", "MODIFIED"):
                take(decoder.decode(event.object))


async def _start(client: bare.Client, pod: Pod, address: str) -> None:
    await asyncio.sleep(STARTS)
    with _gone():
        await client.merge(f"{pod.path}/status", {"status": running(pod, address)})


async def _remove(client: bare.Client, pod: Pod) -> None:
    with _gone():
        await client.send("DELETE", pod.path, content=protocol.JSON, gracePeriodSeconds="0")


@contextlib.contextmanager
def _gone() -> Any:
    """A pod that is no longer there needs nothing more."""
    try:
        yield
    except bare.RefusedError as error:
        if error.status != 404:
            raise


def running(pod: Pod, address: str) -> dict[str, Any]:
    """The status of a pod whose containers all run and are ready."""
    now = _now()
    said = ("PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")
    containers = [
        {
            "name": each.name,
            "image": each.image,
            "imageID": each.image,
            "ready": True,
            "started": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": now}},
        }
        for each in pod.spec.containers
    ]
    return {
        "phase": "Running",
        "startTime": now,
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": [{"type": type_, "status": "True", "lastTransitionTime": now} for type_ in said],
        "containerStatuses": containers,
    }


def _body() -> dict[str, Any]:
    labels = {"kubernetes.io/hostname": NAME, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NAME, "labels": labels}}


def _node_status() -> dict[str, Any]:
    ready = {"type": "Ready", "status": "True", "reason": "Played", "message": "it is played"}
    times = {"lastHeartbeatTime": _now(), "lastTransitionTime": _now()}
    return {"capacity": ROOM, "allocatable": ROOM, "conditions": [{**ready, **times}]}


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
