"""Five clusters at once on a real API server, whose nodes and pods are played: nothing is given out twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from moorage.kube import client as kube_client
from moorage.operators.weka import names
from tests.api.faults import conftest, run, waiting

stage = conftest.stage
SCENARIO = Path(__file__).parent / "five.yaml"


async def _given(client: kube_client.Client, namespace: str) -> list[dict[str, Any]]:
    found = await client.list(names.CONTAINER, namespace)
    return [it["status"] for it in found.items if "allocations" in it.get("status", {})]


async def test_five_clusters_at_once_share_no_port_and_no_drive(stage: run.Stage, client: kube_client.Client) -> None:
    """Ranges of ports are apart; on each node each port, and each drive, is one container's."""
    whole = run.Run(stage, SCENARIO)
    await stage.define(whole.scenario)
    async with whole.running() as it:
        await it.play()

        async def all_given() -> list[dict[str, Any]] | None:
            found = await _given(client, it.namespace)
            return found if len(found) == 15 else None

        given = await waiting.until(all_given)
        clusters = (await client.list(names.CLUSTER, it.namespace)).items
    ranges = sorted(each["status"]["ports"]["basePort"] for each in clusters)
    ports = [(each["nodeAffinity"], each["allocations"][port]) for each in given for port in ("wekaPort", "agentPort")]
    drives = [serial for each in given for serial in each["allocations"].get("drives", ())]

    assert [35_000 + 500 * number for number in range(5)] == ranges
    assert 30 == len({*ports})
    assert 10 == len(drives) == len({*drives})
