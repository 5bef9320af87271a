"""Members that fail at random while the group changes: it always comes out as wanted once the faults stop.

A schedule is drawn from a seed; `pytest tests/api/xsld/test_chaos.py -m campaign -k seed17` plays one again.
"""

from __future__ import annotations

import asyncio
import os
import random
from typing import Any

import pytest

from . import bench, test_kills

FAULTS: tuple[dict[str, Any], ...] = (
    {"refuse": True},
    {"hang": True},
    {"status503": True},
    {"adminDelayMs": 300},
    {"unauthorized": True},
    {"transientStatus": 5},
    {"failNext": 1},
    {"forgetTasks": True},
    {"conflict": 2},
    {"dropReply": 1},
    {"stuckAt": 45},
    {"failAt": {"percent": 60, "times": 1}},
    {"dieAt": {"percent": 30, "times": 1}},
)
RUNS = 200
FIRST = int(os.environ.get("MOORAGE_TEST_SEED", "20261128"))
SLICE = [f"seed{FIRST % RUNS}"]


async def chaos(site: bench.Site, seed: int) -> None:
    """Faults come and go on all members while the size changes twice; then all is well again."""
    draw = random.Random(seed)
    site.operator()
    await site.make_cache(size=2)
    await site.ready()
    sizes = [draw.choice((1, 3, 4)), draw.choice((2, 3))]
    said = []
    for size in sizes:
        await site.change(size=size)
        for _ in range(draw.randint(2, 4)):
            pod, fault = draw.choice(site.node.containers), draw.choice(FAULTS)
            said.append(f"{pod.name} {fault}")
            try:
                await site.fault(pod.name, **fault)
            except Exception:
                said[-1] += " (not up)"
            if draw.random() < 0.2:
                await pod.crash()
                said[-1] += " crashed"
            await asyncio.sleep(draw.uniform(0.1, 1.0))  # the schedule itself, not a wait for something
    print(f"seed {seed}: sizes {sizes}: {said}")

    async def well() -> dict[str, Any] | None:
        for container in site.node.containers:
            try:
                await site.fault(container.name)
            except Exception:
                return None
        # attempts that are used up while faults last are asked for anew, as a person would
        stamp = f"{asyncio.get_running_loop().time():.0f}"
        await site.patch(bench.names.CACHE, "cache", {"metadata": {"annotations": {"moorage.dev/reconcile-at": stamp}}})
        return {}

    await site.until(lambda: _holds(well))
    found = await site.ready()
    wanted = [f"cache-{n}" for n in range(sizes[-1])]
    assert wanted == [m["name"] for m in found["status"]["memberStatuses"]]
    primary = found["status"]["primary"]
    assert wanted == sorted(await site.members(primary))

    async def settled() -> bool:
        return await site.pods() == wanted and await site.claims() == [f"vol-{name}" for name in wanted]

    await site.until(settled)


async def _holds(well: Any) -> bool:
    return await well() is not None


@pytest.mark.parametrize("seed", SLICE)
async def test_it_comes_out_as_wanted(site: bench.Site, seed: str) -> None:
    await chaos(site, int(seed[4:]))


@pytest.mark.campaign
@pytest.mark.parametrize("seed", [f"seed{n}" for n in range(RUNS)])
async def test_it_always_comes_out_as_wanted(site: bench.Site, seed: str) -> None:
    await chaos(site, int(seed[4:]))


async def test_at_rest_nothing_is_written(site: bench.Site) -> None:
    """Polling goes on, and not one request changes anything."""
    operator = site.operator()
    await site.make_cache(size=2)
    await site.make(bench.names.GRID, "orders", {})
    await site.ready()
    await site.ready("orders", resource=bench.names.GRID)

    async def polls() -> int:
        return sum(t["path"].endswith("/cacheMemberGroup") for t in await site.trace("cache-0"))

    async def written(times: int) -> list[str]:
        """What is written while the group is asked so often."""
        first, before = await polls(), len(operator.wrote)

        async def often() -> bool:
            return await polls() >= first + times

        await site.until(often)
        return operator.wrote[before:]

    async def has_settled() -> bool:
        return [] == await written(5)

    await site.until(has_settled)  # the cluster's controllers may have something to say of the beginning yet
    assert [] == await written(30)
    assert {"NewMemberJoinTaskCommand cache-1": 1} == await test_kills.tasks(site)
