"""A cache is made, grows and shrinks: who joins and leaves when, and what becomes of pods and volumes."""

from __future__ import annotations

import time
from typing import Any

from moorage.api import builtin
from moorage.operators.xsld import names

from . import bench


async def test_two_members_and_a_grid(site: bench.Site) -> None:
    site.operator()
    await site.make_cache(size=2)
    await site.make(names.GRID, "orders", {"numSyncReplicas": 1, "numAsyncReplicas": 0})
    found = await site.ready()
    grid = await site.ready("orders", resource=names.GRID)

    status: dict[str, Any] = found["status"]
    assert (2, 2, 0) == (status["members"], status["online"], status["pendingTasks"])
    assert ["cache-0", "cache-1"] == [m["name"] for m in status["memberStatuses"]]
    assert "Online" == grid["status"]["status"]
    assert ["vol-cache-0", "vol-cache-1"] == await site.claims()
    members = await site.members()
    assert members["cache-0"]["primary"]
    assert members["cache-1"]["catalogServer"]


async def test_up_and_down_by_two(site: bench.Site) -> None:
    operator = site.operator()
    await site.make_cache(size=1)
    await site.ready()
    await site.change(size=3)
    found = await site.ready()
    assert 3 == found["status"]["online"]
    await site.change(size=1)
    found = await site.ready()
    assert ["cache-0"] == [m["name"] for m in found["status"]["memberStatuses"]]

    async def only_the_first() -> bool:
        return await site.claims() == ["vol-cache-0"] and await site.pods() == ["cache-0"]

    await site.until(only_the_first)
    asked = [t["body"] for t in await site.trace("cache-0") if t["method"] == "POST" and t["path"].endswith("/task")]
    left = [it["parameters"]["memberName"] for it in asked if it["command"] == "RemoveMemberTaskCommand"]
    assert ["cache-2", "cache-1"] == left
    assert {("Join", "succeeded"): 2, ("Leave", "succeeded"): 2} == measured(operator)
    assert time.time() - 30 < last_poll(operator, site.namespace)


def measured(operator: bench.Operator) -> dict[tuple[str, str], int]:
    """Commands by outcome, as the operator's metrics count them; replication apart, as it is not about size."""
    samples = [s for metric in operator.manager.metrics.operations.collect() for s in metric.samples]
    return {
        (s.labels["operation"], s.labels["outcome"]): int(s.value)
        for s in samples
        if s.name.endswith("_count") and s.labels["operation"] in ("Join", "Leave")
    }


def last_poll(operator: bench.Operator, namespace: str) -> float:
    """When the group was last asked, as metrics tell (epoch seconds)."""
    name, labels = "moorage_xsld_last_poll_timestamp_seconds", {"namespace": namespace, "name": "cache"}
    return operator.manager.metrics.registry.get_sample_value(name, labels) or 0.0


async def test_deleted_with_everything(site: bench.Site) -> None:
    site.operator()
    await site.make_cache(size=2)
    await site.ready()
    await site.delete(names.CACHE, "cache")
    await site.gone(names.CACHE, "cache")
    assert [] == await site.claims()
    assert [] == await site.pods()
    assert await site.get(builtin.STATEFUL_SET, "cache") is None
