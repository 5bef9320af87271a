"""Twenty versions of five nodes at rest: what the operator, a process of its own, asks, writes and takes.

The Runtime's servers are stand-ins, and pods do nothing; the API server and all controllers are real. It needs them
without a node, `testbed up --level control`, and runs with the campaigns.

    pytest tests/api/faults/test_many_versions.py -m campaign
"""

from __future__ import annotations

import asyncio
import collections
from pathlib import Path
from typing import Any

import pytest

from moorage.api import meta
from moorage.kube import client as kube_client
from moorage.operators.kre import kinds
from tests.api.kre import servers

from . import at_rest, report, run, scenario, waiting

pytestmark = pytest.mark.campaign

ROOT = Path(__file__).parents[3]
SCENARIO = ROOT / "tests" / "api" / "kre" / "many.yaml"
VERSIONS, NODES = 20, 5
RESYNC = 40.0
"""Seconds, as the scenario says."""

RESYNCS = 3
WITHIN = 900.0
"""Seconds in which all come up, on a machine that has other things to do."""


class User:
    """Who makes a Runtime and its versions in a namespace."""

    def __init__(self, client: kube_client.Client, namespace: str) -> None:
        self._client, self._namespace = client, namespace

    async def make(self, resource: meta.Resource, name: str, spec: dict[str, Any]) -> None:
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        body = {**kind, "metadata": {"name": name}, "spec": spec}
        await self._client.create(resource, self._namespace, body, field_manager="user")

    async def phases(self, resource: meta.Resource) -> collections.Counter[str]:
        """How many are in which phase; of those that are not Ready, why."""
        found = (await self._client.list(resource, self._namespace)).items
        return collections.Counter(_phase(each.get("status") or {}) for each in found)

    async def leave(self) -> None:
        """Delete all, and wait until it is gone."""
        for resource in (kinds.RUNTIME_VERSION, kinds.RUNTIME):
            for each in (await self._client.list(resource, self._namespace)).items:
                await self._client.delete(resource, self._namespace, each["metadata"]["name"], propagation="Background")

            async def gone(resource: meta.Resource = resource) -> bool:
                return not (await self.phases(resource))

            await waiting.until(gone, within=WITHIN)

    async def started(self, resource: meta.Resource, many: int) -> None:
        """Wait until so many are."""
        last: collections.Counter[str] = collections.Counter()

        async def are() -> bool:
            nonlocal last
            last = await self.phases(resource)
            return last["STARTED"] == many

        try:
            await waiting.until(are, within=WITHIN)
        except TimeoutError as error:
            raise AssertionError(f"{many} {resource.plural} are not STARTED: {last}") from error


def _phase(status: dict[str, Any]) -> str:
    stated: list[dict[str, Any]] = status.get("conditions") or []
    ready = next((each for each in stated if each["type"] == "Ready"), {})
    phase = str(status.get("phase", ""))
    return phase if ready.get("status") == "True" else f"{phase}, {ready.get('reason')}: {ready.get('message')}"


def spec(number: int) -> dict[str, Any]:
    """One version: its nodes in a row."""
    names = [f"n{at}" for at in range(NODES)]
    nodes = [
        {"name": name, "image": "a/b:1", "src": f"{name}.py", "subscriptions": [before]}
        for before, name in zip(["entrypoint", *names], names, strict=False)
    ]
    return {
        "version": f"v{number}",
        "entrypoint": {"image": "a/entrypoint:1", "proto": {"inline": "service A {}"}},
        "workflows": [{"name": "flow", "entrypoint": "Flow", "exitpoint": names[-1], "nodes": nodes}],
    }


async def test_many_versions_at_rest(
    stage: run.Stage, client: kube_client.Client, namespace: str, tmp_path: Path, told: report.Report
) -> None:
    """Over three resyncs nothing is written, to NATS neither."""
    await stage.define(scenario.load(SCENARIO, namespace))
    node = servers.Node(client, namespace, tmp_path)
    await node.start()
    nats = node.jetstream
    user = User(client, namespace)
    try:
        async with at_rest.operating(stage, SCENARIO, namespace) as it:
            small = {"sharedStorageClass": "none", "influxdb": {"enabled": False}, "reclaim": "Delete"}
            await user.make(kinds.RUNTIME, "demo", small)
            await user.started(kinds.RUNTIME, 1)
            for number in range(VERSIONS):
                await user.make(kinds.RUNTIME_VERSION, f"version-{number}", spec(number))
            await user.started(kinds.RUNTIME_VERSION, VERSIONS)
            await asyncio.sleep(RESYNC)  # what was begun while they came up ends
            asked, changed = len(nats.asked), len(nats.changes)
            found = await it.over(RESYNCS * RESYNC)
            rows = [
                ("versions, nodes of each", f"{VERSIONS}, {NODES}"),
                ("streams and buckets in NATS", len(nats.streams)),
                ("requests to JetStream a minute", f"{(len(nats.asked) - asked) / found.minutes:.0f}"),
                *found.rows,
            ]
            told.table(("at rest", ""), rows)

            assert [] == found.writes
            assert [] == nats.changes[changed:]
            assert len(nats.asked) > asked
            await user.leave()
    finally:
        await node.stop()
