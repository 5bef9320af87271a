"""Starts and stops everything in order.

    up:    watches -> caches filled -> lease -> workers
    down:  no new work -> workers finish -> tasks end -> events out -> lease released -> connections closed

Losing the lease is not survived: workers and tasks are cancelled at once and the process ends, to start afresh.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Hashable, Sequence
from typing import Any, cast

import msgspec
import structlog

from moorage.kube import cache as kube_cache
from moorage.kube import client as kube_client

from . import controller, election, events, kind, lanes, queue, server, telemetry

log = structlog.get_logger(__name__)


class Settings(msgspec.Struct, frozen=True):
    """How one operator process runs. Times in seconds."""

    identity: str
    namespace: str
    lease: str = "moorage"
    timing: election.Timing = election.Timing()
    elect: bool = True
    host: str = "0.0.0.0"  # noqa: S104 - probes come from the node
    port: int = 8080  # 0: no server
    workers: int = 8
    task_limit: int = 4
    drain: float = 45.0


class Manager:
    """One operator process over the given kinds."""

    def __init__(self, client: kube_client.Client, kinds: Sequence[kind.Kind[Any, Any]], settings: Settings) -> None:
        self._client, self._settings = client, settings
        self.metrics = telemetry.Metrics()
        self._gate = election.Gate()
        self._keys: queue.WorkQueue[kind.Key] = queue.WorkQueue()
        self._caches = kube_cache.Caches(client)
        self._world = kind.World(client, self._caches, self._gate, self._enqueue, task_limit=settings.task_limit)
        self._recorder = events.Recorder(client, self._gate, instance=settings.identity)
        shared = lanes.Lanes()
        self._controllers = {
            of.resource.kind: controller.Controller(
                of,
                self._world,
                keys=self._keys,
                recorder=self._recorder,
                metrics=self.metrics,
                shared_lanes=shared,
            )
            for of in kinds
        }
        self._synced = False
        self._began = time.monotonic()

    async def run(self, stop: asyncio.Event) -> bool:
        """Run until `stop` is set (True) or the lease is lost (False)."""
        probes = self._server()
        if probes:
            await probes.start()
        try:
            for each in self._controllers.values():
                await each.start()
            if not await self._unless(stop, self._fill()):
                return True
            return await self._lead(stop)
        finally:
            for each in self._controllers.values():
                await each.kind.stop()
            await self._caches.stop()
            if probes:
                await probes.stop()

    async def _fill(self) -> None:
        for each in self._controllers.values():
            await each.wait_synced()
        self._synced = True
        log.info("caches filled", seconds=round(time.monotonic() - self._began, 2))

    async def _lead(self, stop: asyncio.Event) -> bool:
        if not self._settings.elect:
            return await self._serve(stop, None)
        candidate = election.Election(
            self._client,
            self._gate,
            namespace=self._settings.namespace,
            name=self._settings.lease,
            identity=self._settings.identity,
            timing=self._settings.timing,
        )
        if not await self._unless(stop, candidate.acquire()):
            return True
        return await self._serve(stop, candidate)

    async def _serve(self, stop: asyncio.Event, candidate: election.Election | None) -> bool:
        self.metrics.leading.set(1)
        workers = [asyncio.create_task(self._work(), name=f"worker-{n}") for n in range(self._settings.workers)]
        recorder = asyncio.create_task(self._recorder.run(), name="events")
        held = asyncio.create_task(candidate.hold() if candidate else asyncio.Event().wait(), name="lease")
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({held, stopping, *workers}, return_when=asyncio.FIRST_COMPLETED)
            kept = not held.done()
            if kept:
                await self._drain(workers)
            return kept
        finally:
            self.metrics.leading.set(0)
            await _cancel(*workers)
            await self._world.tasks.stop()
            await _cancel(recorder, held, stopping)
            if candidate:
                await candidate.release()

    async def _drain(self, workers: list[asyncio.Task[None]]) -> None:
        """Take nothing new, let what is begun end, and say what was left when the time was up."""
        log.info("draining", working=self._keys.working, tasks=self._world.tasks.running)
        self._keys.close()
        _, late = await asyncio.wait(workers, timeout=self._settings.drain / 2)
        if late:
            log.warning("workers cut short", count=len(late))
        await self._world.tasks.stop()
        await self._recorder.flush(2.0)

    async def _work(self) -> None:
        with contextlib.suppress(queue.Closed):
            while True:
                key = await self._keys.get()
                try:
                    await self._controllers[key[0]].reconcile(key)
                finally:
                    self._keys.done(key)

    def _enqueue(self, key: Hashable) -> None:
        self._keys.add(cast("kind.Key", key))

    @staticmethod
    async def _unless(stop: asyncio.Event, work: Any) -> bool:
        """Run `work`; False when `stop` came first and it was cancelled."""
        doing, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
        await asyncio.wait({doing, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finished = doing.done()
        await _cancel(stopping, *(() if finished else (doing,)))
        if finished:
            doing.result()
        return finished

    def _server(self) -> server.Server | None:
        if not self._settings.port:
            return None
        return server.Server(
            host=self._settings.host,
            port=self._settings.port,
            unhealthy=self._caches.healthy,
            unready=lambda: [] if self._synced else ["caches are being filled"],
            metrics=self._measure,
        )

    def _measure(self) -> telemetry.Metrics:
        self.metrics.queued.set(len(self._keys))
        self.metrics.delayed.set(self._keys.delayed)
        self.metrics.running.set(self._world.tasks.running)
        self.metrics.unhealthy.set(len(self._caches.healthy()))
        return self.metrics


async def _cancel(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
