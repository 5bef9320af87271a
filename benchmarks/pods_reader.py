"""Takes in all Pods of `pods_server`, then a modification of each, and prints what that took as JSON.

typed, cold   moorage's cache with a model of 12 fields, plain and in its cold tier
dicts         the way that kopf goes: list and lines, json.loads, a dict of dicts
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import os
import time
from collections.abc import AsyncIterator, Callable

import aiohttp
import msgspec
import uvloop

from benchmarks import bare, measure
from moorage.api import kinds, meta
from moorage.kube import cache as kube_cache
from moorage.kube import client as kube_client
from moorage.kube import credentials, transport


class State(msgspec.Struct, frozen=True, rename="camel", gc=False):
    name: str
    ready: bool = False
    restart_count: int = 0


class Condition(msgspec.Struct, frozen=True, gc=False):
    type: str
    status: str


class PodStatus(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    pod_ip: str = msgspec.field(name="podIP", default="")
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[State, ...] = ()


class PodSpec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    node_name: str = ""


class Pod(msgspec.Struct, frozen=True):
    metadata: meta.ObjectMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class Stall:
    """How late the event loop came at worst, in seconds."""

    def __init__(self) -> None:
        self.worst = 0.0

    async def watch(self) -> None:
        every = 0.001
        while True:
            begun = time.perf_counter()
            await asyncio.sleep(every)
            self.worst = max(self.worst, time.perf_counter() - begun - every)


Modified = Callable[[], int]


@contextlib.asynccontextmanager
async def moorage(given: argparse.Namespace, *, cold: bool) -> AsyncIterator[Modified]:
    """Yields when the list is in."""
    wire = transport.AiohttpTransport(await credentials.from_kubeconfig(given.kubeconfig))
    caches = kube_cache.Caches(kube_client.Client(wire))
    cache = caches.watch(kinds.POD, Pod, namespace="default", cold=cold)
    modified = 0

    def count(change: kube_cache.Change[Pod]) -> None:
        nonlocal modified
        modified += not change.initial

    await cache.wait_synced()
    cache.subscribe(count)
    modified = 0
    try:
        yield lambda: modified
    finally:
        await caches.stop()
        await wire.close()


@contextlib.asynccontextmanager
async def dicts(given: argparse.Namespace) -> AsyncIterator[Modified]:
    """Yields when the list is in."""
    store: dict[tuple[str, str], dict[str, object]] = {}
    modified = 0
    server, _, context = bare.access(given.kubeconfig)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
        path = f"{server}/api/v1/namespaces/default/pods"
        async with session.get(path) as answer:
            for pod in json.loads(await answer.read())["items"]:
                store[pod["metadata"]["namespace"], pod["metadata"]["name"]] = pod

        async def follow() -> None:
            nonlocal modified
            timeout = aiohttp.ClientTimeout(total=None)
            async with session.get(path, params={"watch": "true"}, timeout=timeout) as answer:
                async for line in answer.content:
                    pod = json.loads(line)["object"]
                    store[pod["metadata"]["namespace"], pod["metadata"]["name"]] = pod
                    modified += 1

        following = asyncio.create_task(follow())
        try:
            yield lambda: modified
        finally:
            following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await following


async def _run(given: argparse.Namespace) -> dict[str, float]:
    pid, stall = os.getpid(), Stall()
    gc.collect()
    before, begun, watching = measure.memory(pid)[0], time.process_time(), asyncio.create_task(stall.watch())
    way = dicts(given) if given.tier == "dicts" else moorage(given, cold=given.tier == "cold")
    async with way as modified:
        listed = time.process_time() - begun
        figures = {"list cpu s": listed, "stall ms": 1000 * stall.worst}
        watching.cancel()
        await asyncio.sleep(0.2)
        now = measure.memory(pid)[0]
        figures |= {"rss MiB": now, "KiB/object": 1024 * (now - before) / given.count}
        begun = time.process_time()
        async with bare.connected(given.kubeconfig) as client:
            await client.send("GET", "/begin")
        while modified() < given.count:  # noqa: ASYNC110 - to be told of each would be measured too
            await asyncio.sleep(0.01)
        figures["events/s and core"] = given.count / (time.process_time() - begun)
        figures["peak rss MiB"] = measure.memory(pid)[1]
    return figures


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("tier", choices=("typed", "cold", "dicts"))
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--count", type=int, required=True)
    print(json.dumps(uvloop.run(_run(parser.parse_args()))))


if __name__ == "__main__":
    main()
