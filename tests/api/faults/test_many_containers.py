"""A hundred containers of Weka at rest: what the operator, a process of its own, asks, runs in pods, writes and takes.

Nodes, pods and the product are played; the API server is real. It runs with the campaigns.

    pytest tests/api/faults/test_many_containers.py -m campaign
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from moorage.kube import client as kube_client
from moorage.kube.http import exec_protocol
from moorage.operators.weka import names

from . import at_rest, faulty, report, run, scenario, surroundings, waiting

pytestmark = pytest.mark.campaign

SCENARIO = Path(__file__).parents[3] / "tests" / "api" / "weka" / "many.yaml"
EACH = 50
"""Containers of each of two roles."""

RESYNCS, RESYNC = 3, 240.0
"""Seconds, as the scenario says; all of it is more than the time between two looks into a container that is ready."""

FLAT = 2 * 2 * EACH
"""Runs in pods a minute, where each container is looked into every 30 s whatever it does."""

WITHIN = 900.0


class Counted:
    """See `faulty.Execs`."""

    def __init__(self, inner: faulty.Execs) -> None:
        self._inner, self.runs = inner, 0

    def order(self, query: Mapping[str, Any]) -> str:
        """See `faulty.Execs`."""
        return self._inner.order(query)

    async def run(self, pod: str, query: Mapping[str, Any]) -> exec_protocol.ExecResult:
        """See `faulty.Execs`."""
        self.runs += 1
        return await self._inner.run(pod, query)


async def test_a_hundred_containers_at_rest(
    stage: run.Stage, client: kube_client.Client, namespace: str, told: report.Report
) -> None:
    """Over three resyncs nothing is written; in pods a tenth is run of what flat polling would, at most."""
    await stage.define(scenario.load(SCENARIO, namespace))
    body = {
        "apiVersion": names.CLUSTER.api_version,
        "kind": names.CLUSTER.kind,
        "metadata": {"name": "demo"},
        "spec": {
            "image": "registry.example/weka:4.4.1",
            "dynamicTemplate": {"driveContainers": EACH, "computeContainers": EACH, "numDrives": 1},
            "podConfig": {"schedulerName": "played"},
            "gracefulDestroyDuration": "0",
        },
    }

    async def ready() -> bool:
        status = (await client.get(names.CLUSTER, namespace, "demo")).get("status") or {}
        stands = {it["type"]: it["status"] for it in status.get("conditions") or ()}
        found = (await client.list(names.CONTAINER, namespace)).items
        return stands.get("Ready") == "True" and len(found) == 2 * EACH and all(map(_is_ready, found))

    async with surroundings.around("containers", client, namespace, many=EACH) as around:
        assert around.execs is not None
        execs = Counted(around.execs)
        async with at_rest.operating(stage, SCENARIO, namespace, execs) as it:
            await client.create(names.CLUSTER, namespace, body, field_manager="user")
            await waiting.until(ready, within=WITHIN)
            await it.over(60.0)  # what was begun while they came up ends
            before = execs.runs
            found = await it.over(RESYNCS * RESYNC)
            ran = (execs.runs - before) / found.minutes
            rows = [
                ("containers", 2 * EACH),
                ("runs in pods a minute", f"{ran:.1f}"),
                ("of flat polling each 30 s", f"{100 * ran / FLAT:.1f} %"),
                *found.rows,
            ]
            told.table(("at rest", ""), rows)

            assert [] == found.writes
            assert 0 < ran <= FLAT / 10


def _is_ready(container: dict[str, Any]) -> bool:
    stated = (container.get("status") or {}).get("conditions") or ()
    return any(it["type"] == "Ready" and it["status"] == "True" for it in stated)
