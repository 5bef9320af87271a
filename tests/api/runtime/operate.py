"""An operator in this process, on a wire that records its writes and can be told to fail, and a user beside it."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator
from typing import Any, TypeVar

from moorage.api import builtin, meta
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.kube.informers import reflector
from moorage.runtime import kind, manager
from moorage.runtime.leading import election
from tests.api.faults import faulty, waiting
from tests.api.runtime import widget

T = TypeVar("T")
TIMING = election.Timing(duration=7, renew=6, retry=0.2)
"""Long enough that no lease is lost for want of CPU."""

PATIENCE = waiting.PATIENCE
QUICK = reflector.Pace(base=0.01, cap=0.2, settled=0.5)
"""Watches that break lose no time."""

Write = faulty.Write
until = waiting.until


class Operator:
    """One manager over the kinds of one namespace, Widgets unless a subclass says otherwise."""

    def __init__(
        self,
        client: kube_client.Client,
        namespace: str,
        *,
        elect: bool = False,
        fault: faulty.Fault | None = None,
        plan: faulty.Plan | None = None,
        pace: reflector.Pace | None = None,
        timing: election.Timing = TIMING,
        shards: int = 1,
        lease: str = "moorage",
        **more: Any,
    ) -> None:
        """Those with another `lease` are another installation."""
        self.wire = faulty.Wire(client.transport, plan)
        if fault:
            self.wire.fault = fault
        kinds = self.make(namespace, **more)
        self.kind = kinds[0]
        settings = manager.Settings(
            identity=uuid.uuid4().hex[:8],
            namespace=namespace,
            timing=timing,
            elect=elect,
            port=0,
            drain=10.0,
            backoff=0.05,
            shards=shards,
            lease=lease,
        )
        self.manager = manager.Manager(kube_client.Client(self.wire), kinds, settings)
        if pace:
            self.manager._informers._pace = pace
        self.stopping = asyncio.Event()
        self.task = asyncio.create_task(self.manager.run(self.stopping))

    def make(self, namespace: str, **more: Any) -> list[kind.Kind[Any, Any]]:
        """The kinds that it looks after; other operators under test have their own."""
        return [widget.WidgetKind(namespace, **more)]

    @property
    def leads(self) -> bool:
        return self.manager._gate.is_open

    @property
    def passes(self) -> int:
        """Passes so far."""
        samples = [s for metric in self.manager.metrics.reconciles.collect() for s in metric.samples]
        return int(sum(s.value for s in samples if s.name.endswith("_total")))

    def ends(self, reason: str) -> int:
        """How many passes ended so."""
        samples = [s for metric in self.manager.metrics.reconciles.collect() for s in metric.samples]
        return int(sum(s.value for s in samples if s.name.endswith("_total") and s.labels["reason"] == reason))

    @property
    def idle(self) -> bool:
        """No key waits for a worker or is with one."""
        return not len(self.manager._keys) and not self.manager._keys.working

    def knows_label(self, name: str, label: str) -> bool:
        """Whether its cache holds the Widget with that label."""
        found = self.kind.find(self.kind.namespaces[0], name)
        return found is not None and label in found.metadata.labels

    @property
    def wrote(self) -> list[str]:
        """What it has changed so far."""
        return [write.what for write in self.wire.writes]

    async def stop(self) -> bool:
        self.stopping.set()
        return await self.task

    async def kill(self) -> None:
        """As SIGKILL: not one request more."""
        self.wire.dead.set()
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@contextlib.asynccontextmanager
async def operating(client: kube_client.Client, namespace: str, **more: Any) -> AsyncIterator[Operator]:
    """A running operator, killed in the end if it was not stopped."""
    it = Operator(client, namespace, **more)
    try:
        yield it
    finally:
        await it.kill()


class User:
    """What people do, and see, with a client of their own."""

    def __init__(self, client: kube_client.Client, namespace: str, *, group: str = widget.GROUP) -> None:
        self.client, self.namespace, self.resource = client, namespace, widget.resource(group)

    async def create(self, name: str, **spec: str) -> None:
        body = {
            "apiVersion": self.resource.api_version,
            "kind": "Widget",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": spec,
        }
        await self.client.create(self.resource, self.namespace, body, field_manager="user")

    async def change(self, name: str, body: Any, resource: meta.Resource | None = None) -> None:
        await self.client.patch_merge(resource or self.resource, self.namespace, name, body, field_manager="user")

    async def delete(self, name: str, resource: meta.Resource | None = None) -> None:
        await self.client.delete(resource or self.resource, self.namespace, name, propagation="Background")

    async def leave(self) -> None:
        """Let go of what no operator will clean up any more, or its namespace would be terminating for ever."""
        for left in (await self.client.list(self.resource, self.namespace, as_=meta.Partial)).items:
            with contextlib.suppress(errors.NotFound):
                await self.change(left.metadata.name, {"metadata": {"finalizers": None}})

    async def look(self, name: str) -> widget.Widget | None:
        return await self._find(self.resource, name, widget.Widget)

    async def child(self, name: str) -> dict[str, Any] | None:
        return await self._find(builtin.CONFIG_MAP, f"{name}-widget", dict[str, Any])

    async def _find(self, resource: meta.Resource, name: str, as_: type[T]) -> T | None:
        try:
            return await self.client.get(resource, self.namespace, name, as_=as_)
        except errors.NotFound:
            return None

    async def ready(self, name: str) -> widget.Widget:
        """Wait until the latest generation is Ready."""

        async def is_ready() -> widget.Widget | None:
            found = await self.look(name)
            if found is None or found.status.observed_generation != found.metadata.generation:
                return None
            ready = next((c for c in found.status.conditions if c.type == "Ready"), None)
            return found if ready is not None and ready.status == "True" else None

        found: widget.Widget = await until(is_ready)
        return found

    async def gone(self, name: str) -> None:
        """Wait until the Widget is gone."""

        async def is_gone() -> bool:
            return await self.look(name) is None

        await until(is_gone)
