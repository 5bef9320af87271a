"""Starts and stops everything in order.

    up:    watches -> caches filled -> lease -> workers
    down:  no new work -> workers and tasks end -> events out -> lease released -> connections closed

All of the way down fits into the 60 s that a pod gets: `Settings.drain` for what is under way, then at most 20 s.
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

from . import controller, election, events, gate, health, kind, lanes, lifecycle, queue, server, telemetry

log = structlog.get_logger(__name__)

CUT = 4.0
"""Seconds that something cancelled gets to clean up; less when the lease is lost and ends before."""

FILL = 20.0
"""Seconds that the watches of children get to fill before work begins; what is not seen by then is said to be so."""

UNREADABLE_EVERY = 5.0
"""Seconds between looks for objects that do not fit their model."""


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
    drain: float = 40.0
    backoff: float = 0.5  # until the first new try of what failed


class Manager:
    """One operator process over the given kinds. Raises ValueError when two of them have the same name."""

    def __init__(self, client: kube_client.Client, kinds: Sequence[kind.Kind[Any, Any]], settings: Settings) -> None:
        self._client, self._settings = client, settings
        self.metrics = telemetry.Metrics()
        self._gate = gate.Gate()
        self._gate.open_until(None)
        self._keys: queue.WorkQueue[kind.Key] = queue.WorkQueue(base=settings.backoff)
        self._caches = kube_cache.Caches(client)
        self._world = kind.World(client, self._caches, self._gate, self._enqueue, task_limit=settings.task_limit)
        self._recorder = events.Recorder(client, self._gate, instance=settings.identity)
        shared = lanes.Lanes()
        self._controllers: dict[str, controller.Controller[Any, Any]] = {}
        for of in kinds:
            if of.resource.kind in self._controllers:
                raise ValueError(f"two kinds are called {of.resource.kind}; keys could not tell them apart")
            self._controllers[of.resource.kind] = controller.Controller(
                of, self._world, keys=self._keys, recorder=self._recorder, metrics=self.metrics, shared_lanes=shared
            )
        self._synced = False
        self._began = time.monotonic()

    async def run(self, stop: asyncio.Event) -> bool:
        """Run until `stop` is set (True) or the lease is lost (False)."""
        probes = self._server()
        if probes:
            await probes.start()
        stopping = asyncio.create_task(stop.wait(), name="stop")
        try:
            for each in self._controllers.values():
                await each.start()
            if not await lifecycle.unless(stopping, self._fill()):
                return True
            return await self._lead(stopping)
        finally:
            stopping.cancel()
            try:
                async with asyncio.timeout(CUT):
                    await self._close(probes)
            except TimeoutError:
                log.warning("not closed in time", seconds=CUT)

    async def _close(self, probes: server.Server | None) -> None:
        closing = [each.kind.stop() for each in self._controllers.values()]
        for failed in await asyncio.gather(*closing, return_exceptions=True):
            if failed is not None:
                log.error("kind not closed", exc_info=failed)
        await self._caches.stop()
        if probes:
            await probes.stop()

    async def _fill(self) -> None:
        for each in self._controllers.values():
            await each.wait_synced()
        try:  # the others that were opened so far too, but for their sake alone nobody is kept waiting for ever
            async with asyncio.timeout(FILL):
                for cache in self._caches.all():
                    await cache.wait_synced()
        except TimeoutError:
            log.warning("caches not filled in time", watches=self._caches.healthy())
        self._synced = True
        log.info("caches filled", seconds=round(time.monotonic() - self._began, 2))

    async def _lead(self, stopping: asyncio.Task[Any]) -> bool:
        if not self._settings.elect:
            self._gate.open_until(float("inf"))
            kept, _ = await self._serve(stopping, asyncio.create_task(_for_ever(), name="no lease"))
            return kept
        candidate = election.Election(
            self._client,
            self._gate,
            namespace=self._settings.namespace,
            name=self._settings.lease,
            identity=self._settings.identity,
            timing=self._settings.timing,
        )
        if not await lifecycle.unless(stopping, candidate.acquire()):
            await candidate.release()  # the request that took it may have been under way
            return True
        held = asyncio.create_task(candidate.hold(), name="lease")
        kept, quiet = await self._serve(stopping, held)
        if kept and quiet:
            await candidate.release()
        return kept

    async def _serve(self, stopping: asyncio.Task[Any], held: asyncio.Task[Any]) -> tuple[bool, bool]:
        """Work until told to stop: whether the lease was kept to the end, and whether nothing is left under way."""
        self.metrics.leading.set(1)
        workers = [asyncio.create_task(self._work(), name=f"worker-{n}") for n in range(self._settings.workers)]
        recorder = asyncio.create_task(self._recorder.run(), name="events")
        finding = asyncio.create_task(self._look_for_unreadable(), name="unreadable")
        kept = drained = False
        try:
            await asyncio.wait({held, stopping}, return_when=asyncio.FIRST_COMPLETED)
            kept = not held.done() and await lifecycle.unless(held, self._drain(workers))
            drained = kept and all(worker.done() for worker in workers)
        finally:
            self.metrics.leading.set(0)
            self._keys.close()
            within = CUT if kept else min(CUT, 0.8 * self._settings.timing.margin)
            cut = (lifecycle.cancel(*workers, finding, within=within), self._world.tasks.stop(within))
            ended = all(await asyncio.gather(*cut))
            if kept:
                await self._recorder.flush(2.0)
            await lifecycle.cancel(recorder, held, within=CUT)
        return kept, drained and ended

    async def _drain(self, workers: list[asyncio.Task[None]]) -> None:
        """Take nothing new, let what is begun end, and say what was left when the time was up."""
        log.info("draining", working=self._keys.working, tasks=self._world.tasks.running)
        ends = time.monotonic() + self._settings.drain
        self._keys.close()
        _, late = await asyncio.wait(workers, timeout=self._settings.drain)
        self._world.tasks.close()
        idle = await self._world.tasks.ended(within=max(0.0, ends - time.monotonic()))
        if late or not idle:
            log.warning("cut short", workers=len(late), tasks=self._world.tasks.running)

    async def _work(self) -> None:
        with contextlib.suppress(queue.Closed):
            while True:
                key = await self._keys.get()
                try:
                    await self._controllers[key[0]].reconcile(key)
                except Exception:
                    log.exception("worker failed", key=key)  # a key of no kind, say: never the end of the worker
                finally:
                    self._keys.done(key)

    async def _look_for_unreadable(self) -> None:
        while True:
            for each in self._controllers.values():
                each.look_for_unreadable()
            await asyncio.sleep(UNREADABLE_EVERY)

    def _enqueue(self, key: Hashable) -> None:
        self._keys.add(cast("kind.Key", key))

    def _server(self) -> server.Server | None:
        if not self._settings.port:
            return None
        return server.Server(
            host=self._settings.host,
            port=self._settings.port,
            unhealthy=lambda: health.beyond_cure(self._caches.all()),
            unready=lambda: [] if self._synced else ["caches are being filled"],
            metrics=self._measure,
        )

    def _measure(self) -> telemetry.Metrics:
        self.metrics.queued.set(len(self._keys))
        self.metrics.delayed.set(self._keys.delayed)
        self.metrics.running.set(self._world.tasks.running)
        self.metrics.unhealthy.set(len(self._caches.healthy()))
        return self.metrics


async def _for_ever() -> None:
    await asyncio.Event().wait()
