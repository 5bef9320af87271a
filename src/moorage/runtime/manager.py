"""Starts and stops everything in order.

    up:    watches -> caches filled -> lease -> workers
    down:  no new work -> workers and tasks end -> events out -> lease released -> connections closed

All of the way down fits into the 60 s that a pod gets: `Settings.drain` for what is under way, then at most 20 s.
Losing the lease is not survived: workers and tasks are cancelled at once and the process ends, to start afresh.

Nothing goes on half alive. What fails within one turn of a worker or a helper (events, care) is contained there:
logged, and the next turn comes. One that ends all the same is a defect of unknown reach, so that the process ends as at
a stop, but as a failure: what is under way is drained, and who starts next begins from what is there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec
import structlog

from moorage.kube import client as kube_client
from moorage.kube.informers import informer

from . import cancellation, error_text, gate, kind
from .leading import election, shard_balancer, shards
from .reconcile import controller
from .reporting import event_recorder, http_server, liveness, telemetry
from .workqueue import lanes, pressure, queue, workers

if TYPE_CHECKING:
    from .reporting import tracing

log = structlog.get_logger(__name__)

CUT = 4.0
"""Seconds that something cancelled gets to clean up; less when the lease is lost and ends before."""

FILL = 20.0
"""Seconds that the watches of children get to fill before work begins; what is not seen by then is said to be so."""

LOOK_EVERY = 5.0
"""Seconds between looks for passes that do not end and objects that do not fit their model."""


class Settings(msgspec.Struct, frozen=True):
    """How one operator process runs. Times in seconds."""

    identity: str
    namespace: str
    lease: str = "moorage"
    shards: int = 1  # with more, each has a lease of that name and its number
    timing: election.Timing = election.Timing()
    elect: bool = True
    host: str = "0.0.0.0"  # noqa: S104 - probes come from the node
    port: int = 8080  # 0: no server
    workers: int = 8
    task_limit: int = 4
    drain: float = 40.0
    backoff: float = 0.5  # until the first new try of what failed
    events: event_recorder.Wanted = "all"


class End(NamedTuple):
    """How working came to its end: the lease was kept, nothing is left under way, no part had died before."""

    kept: bool
    quiet: bool
    whole: bool


class Manager:
    """One operator process over the given kinds. Raises ValueError when two of them have the same name."""

    def __init__(
        self,
        client: kube_client.Client,
        kinds: Sequence[kind.Kind[Any, Any]],
        settings: Settings,
        *,
        traces: tracing.Traces | None = None,
    ) -> None:
        if traces is not None:
            client = kube_client.Client(traces.wire(client.transport))
        self._client, self._settings, self._traces = client, settings, traces
        self.metrics = telemetry.Metrics()
        self._gate = gate.Gate()
        self._gate.open_until(None)
        self._shards = shards.Shards(settings.shards, self._gate)
        slack = pressure.Pressure()
        self._keys: queue.WorkQueue[kind.Key] = queue.WorkQueue(
            base=settings.backoff,
            flow=lambda key: (key[0], key[1]),
            limits={of.resource.kind: of.concurrency for of in kinds if of.concurrency},
            backlog_limit=max(1, settings.workers // 2),
            pressure=slack,
        )
        self._informers = informer.Informers(client)
        self._world = kind.World(
            client,
            self._informers,
            self._gate,
            self._enqueue,
            pressure=slack,
            traces=traces,
            task_limit=settings.task_limit,
            operator=f"{settings.namespace}/{settings.lease}" if settings.elect else "",
        )
        self._recorder = event_recorder.Recorder(client, self._gate, instance=settings.identity, wanted=settings.events)
        shared = lanes.Lanes()
        self._controllers: dict[str, controller.Controller[Any, Any]] = {}
        for of in kinds:
            if of.resource.kind in self._controllers:
                raise ValueError(f"two kinds are called {of.resource.kind}; keys could not tell them apart")
            self._controllers[of.resource.kind] = controller.Controller(
                of,
                self._world,
                keys=self._keys,
                recorder=self._recorder,
                metrics=self.metrics,
                shared_lanes=shared,
                among=self._shards,
            )
        self._workers = workers.Workers(self._keys, self._reconcile, self._deadline, count=settings.workers)
        self._elections: list[election.Election] = []
        self._synced = False
        self._began = time.monotonic()

    async def run(self, stop: asyncio.Event) -> bool:
        """Run until `stop` is set (True), or the lease is lost or a worker or helper has died (False)."""
        probes = self._server()
        if probes:
            await probes.start()
        stopping = asyncio.create_task(stop.wait(), name="stop")
        try:
            for each in self._controllers.values():
                await each.start()
            if not await cancellation.unless(stopping, self._fill()):
                return True
            return await self._lead(stopping)
        finally:
            stopping.cancel()
            try:
                async with asyncio.timeout(CUT):
                    await self._close(probes)
            except TimeoutError:
                log.warning("not closed in time", seconds=CUT)

    async def _close(self, probes: http_server.Server | None) -> None:
        closing = [each.kind.stop() for each in self._controllers.values()]
        for failed in await asyncio.gather(*closing, return_exceptions=True):
            if failed is not None:
                error_text.tell("kind not closed", failed)
        await self._world.others.stop()
        await self._informers.stop()
        if probes:
            await probes.stop()

    async def _fill(self) -> None:
        for each in self._controllers.values():
            await each.wait_synced()
        try:  # the others that were opened so far too, but for their sake alone nobody is kept waiting for ever
            async with asyncio.timeout(FILL):
                for cache in self._informers.all():
                    await cache.wait_synced()
        except TimeoutError:
            log.warning("caches not filled in time", watches=self._informers.healthy())
        self._synced = True
        log.info("caches filled", seconds=round(time.monotonic() - self._began, 2))

    async def _lead(self, stopping: asyncio.Task[Any]) -> bool:
        if not self._settings.elect:
            for shard in self._shards.all:
                shard.held = True
                shard.gate.open_until(float("inf"))
                self._on_taken(shard)
            end = await self._serve(stopping, asyncio.create_task(_for_ever(), name="no lease"))
            return end.kept and end.whole
        candidate = self._candidate(stopping)
        if not await cancellation.unless(stopping, candidate.acquire()):
            await candidate.release()  # the request that took it may have been under way
            return True
        held = asyncio.create_task(candidate.hold(), name="lease")
        end = await self._serve(stopping, held)
        if end.kept and end.quiet:
            await candidate.release()
        return end.kept and end.whole

    def _candidate(self, stopping: asyncio.Task[Any]) -> election.Election | shard_balancer.Balancer:
        if not self._shards.are_many:
            return self._election(self._settings.lease, self._gate)
        news = asyncio.Event()
        return shard_balancer.Balancer(
            self._shards,
            [self._election(f"{self._settings.lease}-{shard.number}", shard.gate, news) for shard in self._shards.all],
            self._election(self._settings.lease, self._shards.division, news, f"{len(self._shards.all)} shards"),
            timing=self._settings.timing,
            drain=self._settings.drain,
            taken=self._on_taken,
            given=self._on_given,
            tasks_end=lambda shard: self._world.tasks.ended_at(shard.gate),
            news=news,
            is_stopping=stopping.done,
        )

    def _election(
        self, name: str, at: gate.Gate, news: asyncio.Event | None = None, identity: str = ""
    ) -> election.Election:
        settings = self._settings
        made = election.Election(
            self._client,
            at,
            namespace=settings.namespace,
            name=name,
            identity=identity or settings.identity,
            timing=settings.timing,
            news=news,
        )
        self._elections.append(made)
        return made

    def _on_taken(self, shard: shards.Shard) -> None:
        if self._shards.are_many:
            for each in self._controllers.values():
                each.take_over(shard)

    def _on_given(self, _: shards.Shard) -> None:
        for each in self._controllers.values():
            each.give_up()

    async def _serve(self, stopping: asyncio.Task[Any], held: asyncio.Task[Any]) -> End:
        """Work until told to stop, or until there is no going on."""
        self.metrics.leading.set(1)
        self._workers.start()
        recorder = asyncio.create_task(self._recorder.run(), name="events")
        caring = asyncio.create_task(self._look_after(), name="care")
        crew = (*self._workers.tasks, recorder, caring)
        kept = drained = False
        try:
            await asyncio.wait({held, stopping, *crew}, return_when=asyncio.FIRST_COMPLETED)
            whole = not _tell_dead(crew)
            kept = not held.done() and await cancellation.unless(held, self._drain())
            drained = kept and all(worker.done() for worker in self._workers.tasks)
        finally:
            self.metrics.leading.set(0)
            self._keys.close()
            within = CUT if kept else min(CUT, 0.8 * self._settings.timing.margin)
            cut = (cancellation.cancel(*self._workers.tasks, caring, within=within), self._world.tasks.stop(within))
            ended = all(await asyncio.gather(*cut))
            if kept:
                await self._recorder.flush(2.0)
            await cancellation.cancel(recorder, held, within=CUT)
        return End(kept, drained and ended, whole)

    async def _drain(self) -> None:
        """Take nothing new, let what is begun end, and say what was left when the time was up."""
        log.info("draining", working=self._keys.working, tasks=self._world.tasks.running)
        ends = time.monotonic() + self._settings.drain
        self._keys.close()
        _, late = await asyncio.wait(self._workers.tasks, timeout=self._settings.drain)
        self._world.tasks.close()
        idle = await self._world.tasks.ended(within=max(0.0, ends - time.monotonic()))
        if late or not idle:
            log.warning("cut short", workers=len(late), tasks=self._world.tasks.running)

    async def _reconcile(self, key: kind.Key) -> None:
        waited = time.monotonic() - self._keys.asked_at(key)
        self.metrics.began(key[0], waited)
        if self._traces is None:
            await self._controllers[key[0]].reconcile(key)
            return
        with self._traces.looking(key, waited):
            await self._controllers[key[0]].reconcile(key)

    def _deadline(self, key: kind.Key) -> float:
        return self._controllers[key[0]].kind.deadline

    async def _look_after(self) -> None:
        """What no event tells of: passes that do not end, objects that do not fit their model."""
        while True:
            self._workers.look_after()
            for each in self._controllers.values():
                try:
                    each.look_for_unreadable()
                except Exception as error:
                    error_text.tell("not looked for the unreadable", error, kind=each.kind.resource.kind)
            await asyncio.sleep(LOOK_EVERY)

    def _enqueue(self, key: Hashable, *, backlog: bool = False) -> None:
        at = cast("kind.Key", key)
        if not self._shards.are_many or self._controllers[at[0]].is_mine(at):
            self._keys.add(at, backlog=backlog)

    def _server(self) -> http_server.Server | None:
        if not self._settings.port:
            return None
        return http_server.Server(
            host=self._settings.host,
            port=self._settings.port,
            unhealthy=lambda: [*liveness.beyond_cure(self._informers.all()), *self._workers.stuck],
            unready=lambda: [] if self._synced else ["caches are being filled"],
            metrics=self._measure,
        )

    def _measure(self) -> telemetry.Metrics:
        self.metrics.queued.set(len(self._keys))
        self.metrics.delayed.set(self._keys.delayed)
        self.metrics.shards.set(sum(shard.held and shard.gate.is_open for shard in self._shards.all))
        self.metrics.paused.set(not self._world.pressure.room(0))
        self.metrics.running.set(self._world.tasks.running)
        self.metrics.left.set(len(self._world.others))
        self.metrics.unhealthy.set(len(self._informers.healthy()) + sum(each.is_deaf for each in self._elections))
        return self.metrics


def _tell_dead(crew: Iterable[asyncio.Task[None]]) -> bool:
    """Whether some are dead, who of themselves never end."""
    dead = [task for task in crew if task.done()]
    for task in dead:
        error = None if task.cancelled() else task.exception()
        log.error("a part of the operator has died; it stops", part=task.get_name(), exc_info=error)
    return bool(dead)


async def _for_ever() -> None:
    await asyncio.Event().wait()
