"""A visit to the zoo: each chart is kept by plain helm in one namespace and by moorage in another, and compared."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
import traceback
import uuid
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec

from moorage.api import builtin
from moorage.kube import client as kube_client
from moorage.kube import credentials
from moorage.kube.http import transport
from tests.api.collector import operating
from tests.api.faults import observer, waiting

from . import charts, controllers, keepers, world

TOGETHER = 8
"""Charts at a time."""

HELM = 2
"""Processes of plain helm at a time; moorage has as many again, and its renders."""

CALM = 1.5
"""Seconds that a difference has to go: moorage, or a controller of the cluster, may be putting something right."""


class Seen(msgspec.Struct):
    """What came of one chart."""

    differences: list[str]
    seconds: float


def visit(kubeconfig: str, helm: str, folder: Path, chosen: Sequence[charts.Odd]) -> dict[str, Seen]:
    """Keep all of them at once, and return what differs by chart."""
    return asyncio.run(_visit(kubeconfig, helm, folder, chosen))


async def _visit(kubeconfig: str, helm: str, folder: Path, chosen: Sequence[charts.Odd]) -> dict[str, Seen]:
    (folder / "charts").mkdir()
    (folder / "scratch").mkdir()
    for odd in chosen:
        for version, _ in odd.versions():
            odd.pack(version, folder / "charts")
    async with _keeper(kubeconfig, helm, folder) as keeper:
        room = asyncio.Semaphore(TOGETHER)

        async def keep(odd: charts.Odd) -> Seen:
            async with room:
                began = time.monotonic()
                try:
                    differences = await keeper.keep(odd)
                except Exception:
                    differences = [traceback.format_exc()]
                return Seen(differences, time.monotonic() - began)

        # those that take long first
        ordered = sorted(chosen, key=lambda odd: not odd.told.broken)
        seen = await asyncio.gather(*map(keep, ordered))
    return dict(zip((odd.name for odd in ordered), seen, strict=True))


@contextlib.asynccontextmanager
async def _keeper(kubeconfig: str, helm: str, folder: Path) -> AsyncIterator[Keeper]:
    prefix = f"zoo-{uuid.uuid4().hex[:6]}"
    wire = transport.HttpTransport(await credentials.from_kubeconfig(kubeconfig))
    client = kube_client.Client(wire)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(wire.close)
        await operating.define(client)
        await world.first_consumer(client)
        around = world.World(client, f"{prefix}-")
        stack.push_async_callback(around.stop)
        await around.look()
        acting = controllers.Controllers(around, alone=not await world.has_controllers(client))
        stack.push_async_callback(acting.stop)
        given = {"folder": folder / "scratch", "charts": folder / "charts", "kubeconfig": kubeconfig}
        moorage = await stack.enter_async_context(keepers.moorage(client, prefix, **given))
        yield Keeper(around, keepers.Plain(helm, kubeconfig, folder, together=HELM), moorage, prefix)


class Keeper:
    """Does each step with both, and compares."""

    def __init__(self, around: world.World, plain: keepers.Plain, moorage: keepers.Moorage, prefix: str) -> None:
        self._world, self._plain, self._moorage, self._prefix = around, plain, moorage, prefix

    async def keep(self, odd: charts.Odd) -> list[str]:
        """All steps of a chart and its end; what differs and is not meant to, or is meant to and does not."""
        mine, theirs = f"{self._prefix}-{odd.name}-m", f"{self._prefix}-{odd.name}-h"
        for name in (mine, theirs):
            account = f"{operating.RIGHTS.accounts}:{operating.RIGHTS.account(name)}"
            await world.tenant(self._world.client, name, self._prefix, account, odd.told.rules)
        found: list[str] = []
        try:
            for number, (version, step) in enumerate(odd.versions(), 1):
                words = f"install {number}" if number == 1 else f"upgrade {number}"
                found += await self._step(odd, words, version, step, theirs, mine)
            found += await self._end(odd, theirs, mine)
        finally:
            for name in (mine, theirs):
                await self._world.client.delete(builtin.NAMESPACE, "", name, propagation="Background")
        return _unmeant(odd, found)

    async def _step(
        self, odd: charts.Odd, words: str, version: str, step: charts.Step, theirs: str, mine: str
    ) -> list[str]:
        for change in step.meanwhile:
            await asyncio.gather(*(self._change(change, where) for where in (theirs, mine)))
        said = await self._plain.bring(odd, theirs, version, step.values)
        if step.rollback:
            await self._plain.roll_back(odd, theirs, step.rollback)
        await self._moorage.bring(odd, mine, version, step.values)
        told = await self._moorage.settled(odd, step.reason)
        wrong = []
        if bool(said) != step.fails:
            wrong.append(f"plain helm {'said: ' + said if said else 'did not fail'}")
        if step.reason and not re.match(f"({step.reason}):", told):
            wrong.append(f"moorage is not {step.reason}: {told or 'Ready'}")
        if not step.reason and (bool(told) != step.fails or told.startswith(keepers.ENDLESS)):
            wrong.append(f"moorage is {told or 'Ready'}")
        return [f"{words}: {each}" for each in wrong] + await self._compared(odd, words, theirs, mine)

    async def _end(self, odd: charts.Odd, theirs: str, mine: str) -> list[str]:
        said = await self._plain.remove(odd, theirs)
        told = await self._moorage.removed(odd)
        wrong = []
        if bool(said) != bool(odd.told.stays):
            wrong.append(f"plain helm {'said: ' + said if said else 'did not fail'}")
        if told.partition(":")[0] != odd.told.stays:
            wrong.append(f"moorage is {told or 'gone'}")
        return [f"uninstall: {each}" for each in wrong] + await self._compared(odd, "uninstall", theirs, mine)

    async def _compared(self, odd: charts.Odd, words: str, theirs: str, mine: str) -> list[str]:
        await self._world.look()

        def differing() -> list[str]:
            wanted, found = (self._world.state(where, odd.told.mask) for where in (theirs, mine))
            return [f"{words}: {each}" for each in observer.differences(wanted, found)]

        with contextlib.suppress(TimeoutError):
            await waiting.until(lambda: not differing(), within=CALM)
        with contextlib.suppress(TimeoutError):  # only what is not meant to differ is worth more patience
            await waiting.until(lambda: not _beyond(odd, differing()))
        return differing()

    async def _change(self, change: charts.Change, namespace: str) -> None:
        resource = self._world.resource(change.kind)
        where = (resource, namespace, change.name)
        if change.create:
            body = {"apiVersion": resource.api_version, "kind": change.kind, "metadata": {"name": change.name}}
            await self._world.client.create(resource, namespace, body | change.create, field_manager="by-hand")
        if change.delete:
            await self._world.client.delete(*where, propagation="Background")
        if change.scale is not None:
            scale = {"spec": {"replicas": change.scale}}
            await self._world.client.patch_merge(*where, scale, field_manager="by-hand", subresource="scale")
        if change.merge:
            await self._world.client.patch_merge(*where, change.merge, field_manager="by-hand")


def _beyond(odd: charts.Odd, found: list[str]) -> list[str]:
    """What of this is not meant to differ."""
    return [each for each in found if not any(re.search(it.where, each) for it in odd.told.differs)]


def _unmeant(odd: charts.Odd, found: list[str]) -> list[str]:
    rest = _beyond(odd, found)
    always = [it for it in odd.told.differs if it.always]
    gone = [it for it in always if not any(re.search(it.where, each) for each in found)]
    return rest + [f"no longer differs: {it.where} ({it.why})" for it in gone]
