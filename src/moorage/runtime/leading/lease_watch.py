"""Hears of one object as soon as it changes, for those who look at it themselves but don't want to look late.

Observes it by a watch and writes nothing. It only tells: nobody may decide on what is heard here, so that what is late,
lost or denied costs time alone.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Generic, TypeVar

import structlog

from moorage.api.meta import Resource
from moorage.kube import client as kube_client
from moorage.kube import codec, errors
from moorage.kube.informers import reflector
from moorage.runtime import cancellation

log = structlog.get_logger(__name__)

T = TypeVar("T")

CLOSE = 2.0
"""Seconds that closing the watch may take."""


@contextlib.asynccontextmanager
async def listening(
    client: kube_client.Client,
    resource: Resource,
    namespace: str,
    name: str,
    model: type[T],
    told: Callable[[T | None], None],
) -> AsyncIterator[LeaseWatch[T]]:
    """Call `told` with each new state in here, and with None when the object is deleted."""
    scope = reflector.Scope(resource, namespace, name=name)
    hearing: LeaseWatch[T] = LeaseWatch(scope, told)
    task = asyncio.create_task(reflector.Reflector(client, scope, model, hearing).run(), name=f"hear of {scope}")
    try:
        yield hearing
    finally:
        await cancellation.cancel(task, within=CLOSE)


class LeaseWatch(Generic[T]):
    """See `reflector.Sink`. What cannot be read is not told. `deaf`: nothing is heard at the moment."""

    def __init__(self, scope: reflector.Scope, told: Callable[[T | None], None]) -> None:
        self._scope, self._told = scope, told
        self.deaf = False

    def listing(self) -> None:
        """Nothing is kept that would have to be compared."""

    def event(self, kind: str, obj: T | codec.Unreadable) -> None:
        """One state."""
        if not isinstance(obj, codec.Unreadable):
            self._told(None if kind == "DELETED" else obj)

    async def listed(self, version: str) -> None:
        """All there was has been told."""

    def contact(self) -> None:
        """All is well."""
        self.deaf = False

    def trouble(self, error: errors.KubeError) -> None:
        """Changes are found late meanwhile."""
        if not self.deaf:
            log.warning("not heard of changes", watch=str(self._scope), error=str(error))
        self.deaf = True
