"""An operator that starts in the past: its first lists are old ones, and only later time goes on.

That is what a client sees that is connected anew to an API server which lags behind. A `Memory` keeps what the server
answered to each list at chosen moments of a run; a `Past` serves one of these moments to the next life, holds its
watches back, and lets them go when told: the server then tells all that has happened since.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable

import msgspec

from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.kube.http import transport

from . import faulty

Moment = dict[Hashable, transport.Response]
"""Answers to lists, by what was asked."""


class Listener(faulty.Plan):
    """Knows which lists an operator asks for."""

    def __init__(self) -> None:
        self.asked: dict[Hashable, faulty.Read] = {}

    def listened(self, it: faulty.Read, answer: transport.Response) -> None:
        """See `faulty.Plan`."""
        if _is_list(answer):
            self.asked[_key(it)] = it

    def watch(self, it: faulty.Read) -> str:
        """Initial lists by watch are refused, as by a server that has none; so that there is a list to be old."""
        return "422" if "sendInitialEvents" in it.query else ""


async def moment(client: kube_client.Client, reads: Iterable[faulty.Read]) -> Moment:
    """What the server answers to these lists now."""
    found: Moment = {}
    for it in reads:
        try:
            found[_key(it)] = await client.raw("GET", it.path, query=it.query)
        except errors.ApiError:
            continue
    return found


class Past(Listener):
    """Serves each list once from a moment of the past; `go_on` lets time go on."""

    def __init__(self, served: Moment) -> None:
        super().__init__()
        self._left = dict(served)
        self._on = asyncio.Event()
        self.stale = 0
        """Lists that were answered from the past."""

    def go_on(self) -> None:
        """From now on watches open."""
        self._on.set()

    def instead(self, it: faulty.Read) -> transport.Response | None:
        """See `faulty.Plan`."""
        old = self._left.pop(_key(it), None)
        self.stale += old is not None
        return old

    async def hold(self, it: faulty.Read) -> None:
        """See `faulty.Plan`. A list by watch is not held, but refused."""
        if "sendInitialEvents" not in it.query:
            await self._on.wait()


def _key(it: faulty.Read) -> Hashable:
    return it.path, tuple(sorted((key, str(value)) for key, value in it.query.items()))


class _Kinded(msgspec.Struct):
    kind: str = ""


def _is_list(answer: transport.Response) -> bool:
    """By its kind, which stands first in lists of built-in kinds and last in those of others."""
    return answer.status == 200 and msgspec.json.decode(answer.body, type=_Kinded).kind.endswith("List")
