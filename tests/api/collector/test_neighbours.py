"""What one tenant makes large or slow delays nobody else: twenty healthy Collectors beside one that means harm."""

from __future__ import annotations

import asyncio
import base64
import time
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from moorage.api import builtin, meta
from moorage.kube import client as kube_client
from moorage.operators.collector import types

from . import operating
from .test_confined import PLAIN

NEIGHBOURS = 20


def merge_keys(n: int) -> str:
    """A chain of n nested merge keys, each of which stands for all before it."""
    lines = (f"a{i}: &a{i} {{<<: *a{i - 1}, k{i}: 1}}\n" for i in range(1, n + 1))
    return "a0: &a0 {k: 1}\n" + "".join(lines)


def aliases(n: int) -> str:
    """Lists of lists, each ten times what stands before it."""
    lines = (f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, n + 1))
    return "a0: &a0 x\n" + "".join(lines)


REFUSED: dict[str, Callable[[], str]] = {
    "merge keys": lambda: merge_keys(4000),
    "aliases": lambda: aliases(9),
    "depth": lambda: "[" * 100_000,
}
TAKEN: dict[str, Callable[[], str]] = {"the largest": lambda: "".join(f"k{i}: {i}\n" for i in range(45_000))}


class Fleet:
    """Twenty tenants, and how long a change of each takes."""

    def __init__(self, people: operating.People, namespace: str) -> None:
        self.people, self.names = people, [f"n{i}" for i in range(NEIGHBOURS)]
        self.tenants = {name: f"{namespace}-{name}" for name in self.names}

    async def begin(self) -> None:
        """All of them ready."""
        for name in self.names:
            await self.people.collector(name, self.tenants[name], "plain", word="one")
        for name in self.names:
            await self.people.ready(name)

    async def change(self, number: int) -> list[float]:
        """Change a word of each spec at once; the seconds until each was looked at and is Ready, in order."""
        began = time.monotonic()

        async def one(name: str) -> float:
            body = {"spec": {"policy": {"historyLimit": number}}}
            where = (types.COLLECTOR, self.people.namespace, name)
            await self.people.client.patch_merge(*where, body, field_manager="people")
            await self.people.ready(name)
            return time.monotonic() - began

        return sorted(await asyncio.gather(*(one(name) for name in self.names)))


async def longest_stall(stop: asyncio.Event) -> float:
    """Seconds for which nothing else of this process had a turn, at the most; the operator runs in it."""
    worst = 0.0
    while not stop.is_set():
        before = time.monotonic()
        await asyncio.sleep(0.005)
        worst = max(worst, time.monotonic() - before - 0.005)
    return worst


@pytest.fixture
async def fleet(client: kube_client.Client, namespace: str) -> AsyncIterator[Fleet]:
    await operating.define(client)
    it = Fleet(operating.People(client, namespace), namespace)
    yield it
    await it.people.leave()
    for tenant in (*it.tenants.values(), f"{namespace}-eve"):
        await client.delete(builtin.NAMESPACE, "", tenant, propagation="Background")


async def test_harmful_values_are_refused_and_the_neighbours_hear_nothing_of_it(
    client: kube_client.Client, namespace: str, fleet: Fleet, tmp_path: Path, cluster: str
) -> None:
    """Each is refused with its figure, or taken; all neighbours' changes arrive meanwhile, and the loop goes on."""
    charts, folder = tmp_path / "charts", tmp_path / uuid.uuid4().hex
    folder.mkdir()
    operating.chart(charts, PLAIN, name="plain", word="one")
    operator = operating.Operator(client, namespace, kubeconfig=cluster, folder=folder, charts=charts)
    try:
        await fleet.begin()
        alone = await fleet.change(5)
        rows = []
        for number, (sort, made) in enumerate((REFUSED | TAKEN).items()):
            stop = asyncio.Event()
            watching = asyncio.create_task(longest_stall(stop))
            text = base64.b64encode(made().encode()).decode()
            spec = {
                "collector": {"name": "plain", "configuration": text},
                "tenant": {"reference": f"{namespace}-eve", "instance": f"eve{number}"},
            }
            body = {"apiVersion": "example.com/v1alpha", "kind": "Collector", "metadata": {"name": f"eve{number}"}}
            await client.apply(types.COLLECTOR, namespace, f"eve{number}", body | {"spec": spec}, field_manager="eve")
            beside = await fleet.change(6 + number)
            stop.set()
            stall = await watching
            it = await fleet.people.until(f"eve{number}", _settled)
            told = operating.said(it, "Ready")
            figures = f"{beside[len(beside) // 2]:6.2f} {beside[-1]:6.2f} {stall * 1000:6.0f}"
            rows.append(f"{sort:12} {len(text):>8} {figures}  {told.reason}: {told.message}")

            assert ("InvalidConfiguration" if sort in REFUSED else "Ready") == told.reason
        print(f"\nalone: median {alone[len(alone) // 2]:.2f} s, last {alone[-1]:.2f} s")
        print("input           bytes median   last  stall  what it is told   (seconds, milliseconds)")
        print("\n".join(rows))
        found = (await client.list(types.COLLECTOR, namespace, as_=meta.Partial)).items
        assert NEIGHBOURS + len(REFUSED | TAKEN) == len(found)
    finally:
        await operator.kill()


def _settled(it: types.Collector) -> bool:
    return "True" in (operating.said(it, "Stalled").status, operating.said(it, "Ready").status)
