"""The operator ends at one of its writes, before or after it: nothing is done that must not, and another goes on.

A few of the points in each run, all of them as a campaign.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from moorage.kube import client as kube_client
from moorage.kube.http import transport
from moorage.operators.opencga import kind
from moorage.runtime import manager
from tests.unit.opencga import played
from tests.unit.opencga.test_life import SETTINGS, WITHIN, applied, edited
from tests.unit.runtime import fake_api


class Mortal:
    """A process's way to the server, which ends at one write: that is lost, or its answer is, and all that follows."""

    def __init__(self, api: played.Api, point: int, *, arrives: bool) -> None:
        self._api, self._left, self._arrives, self.ended = api, point, arrives, asyncio.Event()

    async def request(self, method: str, path: str, **asked: Any) -> transport.Response:
        write = method != "GET" and fake_api.Place.of(path).plural not in ("events", "leases")
        self._left -= write
        if self.ended.is_set() or (write and self._left < 0):
            if not self.ended.is_set() and self._arrives:
                await self._api.request(method, path, **asked)
            self.ended.set()
            await asyncio.Event().wait()  # until the process is no more
        return await self._api.request(method, path, **asked)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)


@contextlib.asynccontextmanager
async def process(way: Any) -> AsyncIterator[None]:
    """An operator, killed in the end: it closes nothing, and says goodbye to nobody."""
    options = manager.Settings(identity="me", namespace="moorage-system", elect=False, port=0)
    made = kind.CommunityKind(SETTINGS, "moorage-system")
    running = asyncio.create_task(manager.Manager(kube_client.Client(way), [made], options).run(asyncio.Event()))
    try:
        yield
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


async def lives(api: played.Api) -> None:
    """What people do to an installation, each when the one before is through."""
    await fake_api.until(api.settled, within=WITHIN)
    await edited(api, members=3)
    await fake_api.until(lambda: len(api.running()) == 4 and api.settled(), within=WITHIN)
    await edited(api, hibernate=True)
    await fake_api.until(lambda: api.stands("Hibernated") and api.settled(), within=WITHIN)
    await edited(api, hibernate=False)
    await fake_api.until(lambda: len(api.running()) == 4 and api.settled(), within=WITHIN)
    await edited(api, version="5.0.1")
    await fake_api.until(lambda: set(api.running().values()) == {"5.0.1"} and api.settled(), within=WITHIN)
    await edited(api, members=1)
    await fake_api.until(lambda: len(api.running()) == 2 and api.settled(), within=WITHIN)
    await api.mark_deleted("opencgacommunity", "demo")
    await fake_api.until(lambda: not api.community(), within=WITHIN)


async def lived(monkeypatch: pytest.MonkeyPatch, point: int, *, arrives: bool) -> tuple[played.Api, bool]:
    """A whole life with an operator that ends at that write and another after it; and whether it came to that."""
    api = await applied(members=2, volumes={"data": {"size": "10G", "reclaimOnDelete": "Delete"}})
    monkeypatch.setattr(kind.asking, "Http", lambda: api)
    first = Mortal(api, point, arrives=arrives)
    life = asyncio.create_task(lives(api))
    ended = asyncio.create_task(first.ended.wait())
    async with process(first):
        await asyncio.wait({life, ended}, return_when=asyncio.FIRST_COMPLETED)
    async with process(api):
        await life
    ended.cancel()
    await api.settle()
    return api, first.ended.is_set()


def check(api: played.Api) -> None:
    """What holds at the end, whatever happened on the way."""
    assert [] == api.wrong
    assert {"namespaces", "secrets"} == api.left()
    assert {"demo-admin-password", "demo-database"} == {it.name for it in api.objects if it.plural == "secrets"}
    made = [name for name, version in api.versions if version == "5.0.1"]
    assert ["demo-client-0", "demo-2", "demo-1", "demo-0"] == made, "each pod is made once for a version"


@pytest.mark.parametrize("arrives", [False, True])
@pytest.mark.parametrize("point", [0, 2, 4, 6, 9, 13, 15, 17, 19, 21, 26, 30])
async def test_it_ends_at_a_write(monkeypatch: pytest.MonkeyPatch, point: int, arrives: bool) -> None:
    """The write is lost, or its answer is."""
    api, ended = await lived(monkeypatch, point, arrives=arrives)

    assert ended
    check(api)


@pytest.mark.campaign
@pytest.mark.parametrize("arrives", [False, True])
async def test_it_ends_at_each_of_its_writes(monkeypatch: pytest.MonkeyPatch, arrives: bool) -> None:
    """From the first to the last that there is."""
    ended, point = True, 0
    while ended:
        api, ended = await lived(monkeypatch, point, arrives=arrives)
        check(api)
        point += 1

    assert point > 30, "so many writes has a life at least"
