"""Members that don't run for a while, or seldom: what was acknowledged stays, whoever believes whom to be dead.

The first test stops processes for chosen times, in all orders; the others put a load beside the members and wait.

    MOORAGE_TEST_SEED=7 pytest tests/api/xsld/test_slow_machine.py -m campaign -s
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from moorage.api import builtin
from moorage.operators.xsld import names

from . import bench, members

SEED = int(os.environ.get("MOORAGE_TEST_SEED") or 20261128)
SILENCE = 0.6
"""Seconds after which these members give each other up: less than they are stopped for."""

STOPPED = 1.0
APART = 0.25
"""Seconds between one that wakes and the next."""

SYNCED = {"numPartition": "7", "numSyncReplicas": "1", "numAsyncReplicas": "0"}
LOAD = 20
SHORT, LONG = 10.0, 600.0
"""Seconds for which nobody does anything."""

AWAY = (2.0, 8.0, 20.0)
"""Seconds without a run: less than members wait for each other, and more."""


async def in_turn(group: members.Group, order: Sequence[str]) -> None:
    """One after the other does not run."""
    for name in order:
        group.signal(name, signal.SIGSTOP)
        await asyncio.sleep(STOPPED)
        group.signal(name, signal.SIGCONT)


async def one_stays(group: members.Group, order: Sequence[str]) -> None:
    """All but the last don't run, and then that one does not."""
    for name in order[:-1]:
        group.signal(name, signal.SIGSTOP)
    await asyncio.sleep(STOPPED)
    group.signal(order[-1], signal.SIGSTOP)
    for name in order[:-1]:
        group.signal(name, signal.SIGCONT)
    await asyncio.sleep(STOPPED)
    group.signal(order[-1], signal.SIGCONT)


async def together(group: members.Group, order: Sequence[str]) -> None:
    """None runs, then one after the other wakes."""
    for name in order:
        group.signal(name, signal.SIGSTOP)
    await asyncio.sleep(STOPPED)
    for name in order:
        group.signal(name, signal.SIGCONT)
        await asyncio.sleep(APART)


async def stopped(binary: Path, size: int, how: Any) -> list[str]:
    """What is lost when members are stopped that way, in every order."""
    said = []
    with tempfile.TemporaryDirectory(prefix="xsld-") as folder:
        async with members.group(binary, Path(folder), size, XSLD_SILENCE_SECONDS=str(SILENCE)) as group:
            await group.grid("g", **SYNCED)
            for order in itertools.permutations(group.names):
                await group.whole()
                async with members.Clients(group, "g", group.names) as clients:
                    await clients.served()
                    await how(group, order)
                    await group.whole()
                    await clients.served()
                    said += [f"{size} {how.__name__} {'-'.join(order)}: {it}" for it in await clients.lost()]
    return said


async def test_members_that_are_stopped_and_woken_lose_nothing(binary: Path) -> None:
    ways = itertools.product((2, 3), (in_turn, one_stays, together))
    said = await asyncio.gather(*(stopped(binary, size, how) for size, how in ways))

    assert [] == list(itertools.chain.from_iterable(said))


async def begun(site: bench.Site) -> list[str]:
    """A cache of three with a grid of which each entry is held twice; its pods."""
    site.operator()
    await site.make_cache(size=3)
    await site.ready()
    spec = {"cacheRef": {"name": "cache"}, "numSyncReplicas": 1, "numAsyncReplicas": 0}
    await site.make(names.GRID, "g", spec)
    await site.ready("g", resource=names.GRID)
    return [f"cache-{number}" for number in range(3)]


async def left_alone(site: bench.Site, seconds: float) -> None:
    """Under a load nothing is lost, and nobody is taken for dead so that the operator would act."""
    pods = await begun(site)
    before = await site.changes(*pods)
    async with members.Clients(site, "g", pods) as clients:
        with members.busy(LOAD):
            await asyncio.sleep(seconds)
            await clients.served()
        lost = await clients.lost()
        print(f"{seconds:g} s beside {LOAD}: {clients.count} acknowledged, {clients.failed} failed, {len(lost)} lost")

    assert [] == lost
    assert before == await site.changes(*pods)
    assert [0, 0, 0] == [site.node.pod(pod).restarts for pod in pods]


async def test_a_busy_machine_loses_nothing(site: bench.Site) -> None:
    await left_alone(site, SHORT)


@pytest.mark.campaign
async def test_a_machine_that_is_busy_for_long_loses_nothing(site: bench.Site) -> None:
    await left_alone(site, LONG)


async def crash(site: bench.Site, pod: str, _: random.Random) -> str:
    """Its process dies."""
    await site.node.pod(pod).crash()
    return "crashed"


async def delete(site: bench.Site, pod: str, _: random.Random) -> str:
    """Its pod is deleted, and comes back elsewhere."""
    await site.delete(builtin.POD, pod)
    return "deleted"


async def stop(site: bench.Site, pod: str, draw: random.Random) -> str:
    """It does not run for a while."""
    process, seconds = site.node.pod(pod).process, draw.choice(AWAY)
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    await asyncio.sleep(seconds)
    process.send_signal(signal.SIGCONT)
    return f"stopped for {seconds:g} s"


@pytest.mark.campaign
async def test_one_failure_after_another_on_a_busy_machine_loses_nothing(site: bench.Site) -> None:
    """Each member in each way, and all is whole in between."""
    pods, draw = await begun(site), random.Random(SEED)
    ways = list(itertools.product(pods, (crash, delete, stop, stop)))
    draw.shuffle(ways)
    said = []
    with members.busy(LOAD):
        for pod, harm in ways:
            async with members.Clients(site, "g", pods) as clients:
                await clients.served()
                what = await harm(site, pod, draw)
                await whole(site, pods)
                await clients.served()
                lost = await clients.lost()
            said += [f"{pod} {what}: {it}" for it in lost]
            print(f"seed {SEED}: {pod} {what}: {clients.count} acknowledged, {clients.failed} failed, {len(lost)} lost")

    assert [] == said


async def whole(site: bench.Site, pods: Sequence[str]) -> None:
    """Return when all see each other online, and each entry is held twice again."""

    async def is_whole() -> bool:
        try:
            told = [await site.members(pod) for pod in pods]
            placed = [await site.placement(pod) for pod in pods]
        except members.TROUBLES:
            return False
        seen = [it["status"] for group in told for it in group.values()]
        return ["Online"] * len(pods) ** 2 == seen and all(map(members.complete, placed))

    await site.until(is_whole, within=5 * bench.WITHIN)
