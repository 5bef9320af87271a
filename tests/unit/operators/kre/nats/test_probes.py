"""When a server of NATS has started, by the chart's probes and by NATS itself: a rolling restart waits for that."""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import nats
import pytest
import yaml
from nats.js import errors as js_errors

from moorage.operators import asking
from moorage.operators.kre.runtime import credentials
from tests.unit.operators.kre import playing

from . import nats_processes

SERVERS = ("kre-nats-0", "kre-nats-1", "kre-nats-2")
ORDERS = "orders"
EARLY, LATE = 5, 20
"""Messages before one of the servers ends, and those that it misses."""

WITHIN = 60.0
"""Seconds within which a server says what is awaited."""


class Cluster:
    """Servers, with what the chart says of them."""

    def __init__(self, folder: Path, size: int) -> None:
        chart = str(playing.ROOT / "charts/kre-runtime")
        command = [playing.helm(), "template", "kre", chart, f"--set=nats.replicas={size}"]
        done = subprocess.run(command, capture_output=True, check=True)
        objects = [each for each in yaml.safe_load_all(done.stdout) if each]
        made = {(each["kind"], each["metadata"]["name"]): each for each in objects}
        (self._container,) = made["StatefulSet", "kre-nats"]["spec"]["template"]["spec"]["containers"]
        self._configuration = made["ConfigMap", "kre-nats"]["data"]["nats.conf"]
        self._login = credentials._login("of-sixteen-letters")
        self.processes, self.http = nats_processes.Processes(folder), asking.Http()

    async def start(self, name: str) -> None:
        """Its pod runs."""
        await self.processes.start(name, self._configuration, self._login)

    async def says(self, name: str, probe: str) -> tuple[int, str]:
        """What the kubelet would get by that probe; 0: nobody answers."""
        path = self._container[probe]["httpGet"]["path"]
        try:
            status, text = await self.http.get(self.processes.address(name), 8222, path)
        except asking.AskError as error:
            return 0, str(error)
        return status, text.decode()

    async def until(self, name: str, probe: str) -> list[int]:
        """Wait until it says yes by that probe; what it said meanwhile of its start."""
        starts = []
        async with asyncio.timeout(WITHIN):
            while (await self.says(name, probe))[0] != 200:
                starts.append((await self.says(name, "startupProbe"))[0])
                await asyncio.sleep(0.1)
        return starts

    async def until_told(self, name: str, words: str) -> list[int]:
        """Wait until it says so of its start; what it said meanwhile."""
        starts = []
        async with asyncio.timeout(WITHIN):
            while words not in (said := await self.says(name, "startupProbe"))[1]:
                starts.append(said[0])
                await asyncio.sleep(0.1)
        return [*starts, said[0]]

    async def has(self, name: str) -> int:
        """Messages of the stream in that server's own copy."""
        _, text = await self.http.get(self.processes.address(name), 8222, "/jsz?accounts=1&streams=1")
        accounts = json.loads(text)["account_details"]
        (found,) = [it for each in accounts for it in each.get("stream_detail", ()) if it["name"] == ORDERS]
        return int(found["state"]["messages"])

    async def write(self, by: str, count: int) -> None:
        """So many messages, each acknowledged; one that nobody takes while the stream has no leader is sent again."""
        client = await nats.connect(f"nats://{self.processes.address(by)}:{nats_processes.PORT}")
        try:
            async with asyncio.timeout(WITHIN):
                written = 0
                while written < count:
                    try:
                        await client.jetstream(timeout=30).publish(ORDERS, str(written).encode())
                        written += 1
                    except js_errors.NoStreamResponseError:
                        await asyncio.sleep(0.1)
        finally:
            await client.close()


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    """Three servers that run, with a stream that each of them has."""
    one = Cluster(tmp_path, len(SERVERS))
    try:
        for name in SERVERS:
            await one.start(name)
        wanted: dict[str, Any] = {"name": ORDERS, "subjects": [ORDERS], "num_replicas": len(SERVERS)}
        await one.processes.ask(SERVERS[0], f"STREAM.CREATE.{ORDERS}", wanted)
        await one.write(SERVERS[0], EARLY)
        yield one
    finally:
        await one.processes.end_all()
        await one.http.close()


async def test_a_server_that_takes_part_in_no_stream_has_not_started(cluster: Cluster) -> None:
    """It comes back while the others are away: alive, and there for clients, but a restart goes no further.

    What it missed it can't have. Once the others are back it has started, and has all.
    """
    behind, *others = SERVERS
    await cluster.processes.end(behind)
    await cluster.write(others[0], LATE)
    for each in others:
        await cluster.processes.end(each)
    await cluster.start(behind)
    starts = [await cluster.until(behind, probe) for probe in ("livenessProbe", "readinessProbe")]
    starts.append(await cluster.until_told(behind, "JetStream"))

    assert 200 not in itertools.chain(*starts)
    assert await cluster.has(behind) == EARLY
    for each in others:
        await cluster.start(each)
    await cluster.until(behind, "startupProbe")
    async with asyncio.timeout(WITHIN):
        while await cluster.has(behind) != EARLY + LATE:
            await asyncio.sleep(0.1)


async def test_a_stream_without_its_majority_takes_no_server_away(cluster: Cluster) -> None:
    """Of three servers one is left: it has started long ago, and who is asked later says that it is well."""
    for name in SERVERS:
        await cluster.until(name, "startupProbe")
    left, *others = SERVERS
    for each in others:
        await cluster.processes.end(each)
    await cluster.until_told(left, "JetStream")

    assert 200 == (await cluster.says(left, "livenessProbe"))[0]
    assert 200 == (await cluster.says(left, "readinessProbe"))[0]
