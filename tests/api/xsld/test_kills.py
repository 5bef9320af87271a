"""Killed at any write and any request to the group, a fresh operator ends where an unharmed one does.

The points are counted in a life without harm: create three, scale to five and down to two, change the image, fail over,
make and change and remove a grid and its template, delete. Then each is run anew with one kill, before the server has
the request or after. Whatever happened, every member joined and left as often as in the undisturbed life, no more
volumes were deleted, and a grid was made and dropped no more often.

    pytest tests/api/xsld/test_kills.py -m campaign            all points
    pytest tests/api/xsld/test_kills.py -k "scale"             those of one chapter
    MOORAGE_TEST_SEED=7 pytest tests/api/xsld/test_kills.py    another slice
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import os
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from moorage.api import builtin
from moorage.operators.xsld import names
from moorage.operators.xsld.group import admin
from tests.api.faults import run
from tests.api.runtime import operate

from . import bench

SEED = int(os.environ.get("MOORAGE_TEST_SEED", "20261128"))
Tale = Callable[[bench.Site], Awaitable[None]]


class Points(run.Points):
    """Numbers what the operator does to the cluster and to the group, and ends its life at one of them."""

    def __init__(self, kill: tuple[int, str] | None, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(kill)
        self.dead = asyncio.Event()
        call = admin.Admin.call

        async def watched(it: admin.Admin, target: admin.Target, method: str, path: str, body: Any = None) -> Any:
            if method == "GET":
                return await call(it, target, method, path, body)
            command = body.get("command", path) if isinstance(body, dict) else path
            when = self.reached(f"{method} {command}")
            if when == "before" or self.dead.is_set():
                await self._die()
            answer = await call(it, target, method, path, body)
            if when == "after":
                await self._die()
            return answer

        monkeypatch.setattr(admin.Admin, "call", watched)

    def fault(self, write: operate.Write) -> str:
        """What becomes of a write to the API server."""
        when = self.reached(write.what)
        return f"kill {when}" if when else ""

    async def _die(self) -> None:
        self.dead.set()
        await asyncio.Event().wait()


class Life:
    """One operator after another, and what they do in all."""

    def __init__(self, site: bench.Site, points: Points) -> None:
        self._site, self._points = site, points
        self._deleted: set[str] = set()
        self._seen: dict[str, str] = {}
        self._keeper = asyncio.create_task(self._keep())

    async def _keep(self) -> None:
        """Bury who was killed, raise the next, and note which volumes go."""
        operator = self._site.operator(fault=self._points.fault)
        while True:
            if operator.wire.dead.is_set() or self._points.dead.is_set():
                await operator.kill()
                self._points.dead.clear()
                operator = self._site.operator(fault=self._points.fault)
            await self.look()
            await asyncio.sleep(0.05)

    async def look(self) -> None:
        """Note which volumes there are, and which are gone since."""
        found = await self._site.client.list(builtin.VOLUME_CLAIM, self._site.namespace)
        now = {it["metadata"]["uid"]: it["metadata"]["name"] for it in found.items}
        self._deleted |= self._seen.keys() - now.keys()
        self._seen |= now

    async def close(self) -> None:
        self._keeper.cancel()
        await asyncio.gather(self._keeper, return_exceptions=True)

    def reclaimed(self) -> dict[str, int]:
        """How often a volume of each name went."""
        return dict(collections.Counter(self._seen[uid] for uid in self._deleted))


async def tasks(site: bench.Site) -> dict[str, int]:
    """How often each command was ever begun by a member that still runs, by its target."""
    counted: collections.Counter[str] = collections.Counter()
    for container in site.node.containers:
        with contextlib.suppress(Exception):
            for task in await site.ask(container.name, "GET", "/task"):
                if task["command"] in ("NewMemberJoinTaskCommand", "RemoveMemberTaskCommand"):
                    counted[f"{task['command']} {task['parameters'].get('memberName')}"] += 1
    return dict(counted)


async def changes(site: bench.Site) -> dict[str, int]:
    """How often members that still run took a change of a grid or template."""
    counted: collections.Counter[str] = collections.Counter()
    for container in site.node.containers:
        with contextlib.suppress(Exception):
            counted.update(what for what in await site.changes(container.name) if "/" in what)
    return dict(counted)


async def create(site: bench.Site) -> None:
    """Three members."""
    await site.make_cache(size=3)
    await site.ready()


async def scale(site: bench.Site) -> None:
    """Two more, then three fewer."""
    await site.change(size=5)
    await site.ready()
    await site.change(size=2)
    await site.ready()

    async def reclaimed() -> bool:
        return await site.claims() == ["vol-cache-0", "vol-cache-1"]

    await site.until(reclaimed)


async def update(site: bench.Site) -> None:
    """Another image."""
    await site.change(image="ibmcom/xsld:8614")

    async def rolled() -> bool:
        found = await site.get(names.CACHE, "cache")
        images = {m["image"] for m in found["status"]["memberStatuses"]} if found else set()
        return images == {"ibmcom/xsld:8614"}

    await site.until(rolled)
    await site.ready()


async def failover(site: bench.Site) -> None:
    """The primary dies, and comes back after its copy took over."""
    await site.change(derbyReplication={"failoverSeconds": 5})
    found = await site.ready()
    primary, heir = found["status"]["primary"], found["status"]["replication"]["slave"]
    container = site.node.pod(primary)
    container.held = True
    await container.crash()

    async def taken_over() -> bool:
        now = await site.get(names.CACHE, "cache")
        return now is not None and now["status"]["primary"] == heir

    await site.until(taken_over)
    container.held = False
    await site.ready()


async def grids(site: bench.Site) -> None:
    """A template and a grid of it; both are changed, the grid in place and then by permission anew; both go."""
    document = {"objectGridXml": "<objectGridConfig/>", "deploymentXml": "<deploymentPolicy/>"}
    await site.make(names.TEMPLATE, "shop", {"source": {"inline": document}})
    await site.make(names.GRID, "orders", {"gridType": "Custom", "templateName": "shop", "numAsyncReplicas": 0})
    await site.ready("orders", resource=names.GRID)
    await site.patch(names.GRID, "orders", {"spec": {"gridCapacity": 200}})
    await site.ready("orders", resource=names.GRID)
    await site.patch(
        names.TEMPLATE, "shop", {"spec": {"source": {"inline": {"deploymentXml": "<deploymentPolicy />"}}}}
    )
    await site.ready("shop", resource=names.TEMPLATE)
    permission = {"metadata": {"annotations": {names.ALLOW_RECREATE: "true"}}}
    await site.patch(names.GRID, "orders", {**permission, "spec": {"numPartition": 5}})
    await site.ready("orders", resource=names.GRID)
    await site.delete(names.GRID, "orders")
    await site.delete(names.TEMPLATE, "shop")
    await site.gone(names.TEMPLATE, "shop")
    assert [] == await site.ask("cache-0", "GET", "/grid") + await site.ask("cache-0", "GET", "/gridTemplate")


async def delete(site: bench.Site) -> None:
    """Everything goes."""
    await site.delete(names.CACHE, "cache")
    await site.gone(names.CACHE, "cache")
    assert [] == await site.claims()


CHAPTERS: dict[str, tuple[tuple[Tale, ...], Tale]] = {
    "create": ((), create),
    "scale": ((create,), scale),
    "update": ((create,), update),
    "failover": ((create,), failover),
    "grids": ((create,), grids),
    "delete": ((create,), delete),
}
LENGTHS = {"create": 43, "scale": 55, "update": 32, "failover": 20, "grids": 57, "delete": 10}
"""How many points an undisturbed life has, about; a kill that is not reached is told so."""

ALL = [
    (chapter, number, when)
    for chapter, length in LENGTHS.items()
    for number in range(1, length + 1)
    for when in ("before", "after")
]
SLICE = random.Random(SEED).sample(ALL, 3)


async def live(
    site: bench.Site, monkeypatch: pytest.MonkeyPatch, chapter: str, kill: tuple[int, str] | None
) -> tuple[list[str], dict[str, int], dict[str, int], bool]:
    """One life: what was done in the chapter, tasks by member, volumes that went, whether it was killed."""
    before, tale = CHAPTERS[chapter]
    if before:
        first = site.operator()
        for earlier in before:
            await earlier(site)
        await first.kill()
    points = Points(kill, monkeypatch)
    them = Life(site, points)
    try:
        await tale(site)
        await them.look()
        counted = await tasks(site) | await changes(site)
    finally:
        await them.close()
    return points.done, counted, them.reclaimed(), bool(points.killed)


async def _kill(site: bench.Site, monkeypatch: pytest.MonkeyPatch, point: tuple[str, int, str]) -> None:
    chapter, number, when = point
    _, counted, reclaimed, killed = await live(site, monkeypatch, chapter, (number, when))
    print(f"{chapter} {number} {when}: {'killed' if killed else 'not reached'}; {counted}; {reclaimed}")
    expected = EXPECTED[chapter]
    assert expected[0] == {key: n for key, n in counted.items() if key in expected[0]}
    assert expected[1] == reclaimed


EXPECTED: dict[str, tuple[dict[str, int], dict[str, int]]] = {
    "create": ({"NewMemberJoinTaskCommand cache-1": 1, "NewMemberJoinTaskCommand cache-2": 1}, {}),
    "scale": (
        {
            "RemoveMemberTaskCommand cache-4": 1,
            "RemoveMemberTaskCommand cache-3": 1,
            "RemoveMemberTaskCommand cache-2": 1,
        },
        {"vol-cache-4": 1, "vol-cache-3": 1, "vol-cache-2": 1},
    ),
    "update": ({}, {}),
    "failover": ({}, {}),
    "grids": ({"POST /grid/orders": 2, "DELETE /grid/orders": 2, "DELETE /gridTemplate/shop": 1}, {}),
    "delete": ({}, {"vol-cache-0": 1, "vol-cache-1": 1, "vol-cache-2": 1}),
}
"""What the surviving members' history shows, and volumes that go, in an undisturbed life. What may be repeated (a join
that was not taken, an edit, an upload) is left out."""


@pytest.mark.parametrize("chapter", CHAPTERS)
async def test_without_harm(site: bench.Site, monkeypatch: pytest.MonkeyPatch, chapter: str) -> None:
    done, counted, reclaimed, _ = await live(site, monkeypatch, chapter, None)
    print(f"{chapter}: {len(done)} points: {done}")
    expected = EXPECTED[chapter]
    assert expected[0] == {key: n for key, n in counted.items() if key in expected[0]}
    assert expected[1] == reclaimed


@pytest.mark.parametrize("point", SLICE, ids=lambda p: "-".join(map(str, p)))
async def test_a_kill_is_survived(
    site: bench.Site, monkeypatch: pytest.MonkeyPatch, point: tuple[str, int, str]
) -> None:
    await _kill(site, monkeypatch, point)


@pytest.mark.campaign
@pytest.mark.parametrize("point", ALL, ids=lambda p: "-".join(map(str, p)))
async def test_every_kill_is_survived(
    site: bench.Site, monkeypatch: pytest.MonkeyPatch, point: tuple[str, int, str]
) -> None:
    await _kill(site, monkeypatch, point)
