"""One pass over one object: observe, decide, execute, write status, schedule the next look.

It alone writes the status of its kind. A pass that fails in an unforeseen way, or does not end within the kind's
deadline, is contained: cut, logged, counted, retried with back-off, and said in the status.
"""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any, Generic

import msgspec
import structlog

from moorage.api import common_status
from moorage.kube import errors
from moorage.kube.informers import informer
from moorage.runtime import cancellation, decision, error_text, gate, kind
from moorage.runtime.leading import shards
from moorage.runtime.leading.installations import OPERATOR
from moorage.runtime.reasons import Reason
from moorage.runtime.reporting import event_recorder, pass_events, telemetry
from moorage.runtime.workqueue import lanes, queue

from . import executor, schedule, status, unreadable_objects

log = structlog.get_logger(__name__)


class Pass(msgspec.Struct, Generic[kind.O], frozen=True):
    """What one pass has seen, decided and done so far."""

    key: kind.Key
    obj: kind.O
    now: float  # epoch seconds
    begun: float  # monotonic seconds
    made: decision.Decision
    performed: tuple[status.Performed, ...]
    stands: status.Standing
    often: bool  # an act came back too often
    unseen_for: float


class Controller(Generic[kind.O, kind.S]):
    """Reconciles the objects of one kind."""

    def __init__(
        self,
        of: kind.Kind[kind.O, kind.S],
        world: kind.World,
        *,
        keys: queue.WorkQueue[kind.Key],
        recorder: event_recorder.Recorder,
        metrics: telemetry.Metrics,
        shared_lanes: lanes.Lanes,
        among: shards.Shards,
    ) -> None:
        self.kind, self._world, self._keys = of, world, keys
        self._recorder, self._metrics, self._lanes, self._shards = recorder, metrics, shared_lanes, among
        self._unreadable = unreadable_objects.Unreadable(of, world, recorder)
        self._memories: dict[kind.Key, schedule.Memory] = {}

    # --- what brings an object here ------------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the watches of the kind; every change of an object enqueues it."""
        self.kind.informers = [
            self._world.informers.watch(self.kind.resource, self.kind.model, namespace=namespace)
            for namespace in self.kind.namespaces or ("",)
        ]
        for cache in self.kind.informers:
            cache.subscribe(self._on_change)
        await self.kind.start(self._world)
        self._metrics.add(self.kind.metrics)

    async def wait_synced(self) -> None:
        """Return once every object of the kind has been seen."""
        for cache in self.kind.informers:
            await cache.wait_synced(timeout=None)

    def look_for_unreadable(self) -> None:
        """Enqueue objects that newly do not fit the model."""
        for key in self._unreadable.news():
            self._keys.add(key)

    def _on_change(self, change: informer.Change[kind.O]) -> None:
        """An own write is no news, unless its answer brings another's change along: the watch then is silent of it."""
        old, new = change.old, change.new
        if (obj := new if new is not None else old) is None:
            return
        if self._shards.are_many and not self._shards.of(self.kind.placement(obj)).is_mine:
            return
        key = self.kind.key(*obj.metadata.key)
        if change.initial:
            self._keys.add(key, backlog=True)
        elif old is not None and new is not None and not _wants_other(old, new):
            self._world.enqueue(key)
        elif new is not None or not self._world.echoes(key):
            self._keys.wake(key)

    # --- shards that come and go ---------------------------------------------------------------------------------

    def is_mine(self, key: kind.Key) -> bool:
        """Whether a look at this key is this process's business."""
        try:
            obj = self.kind.find(*key[1:])
        except errors.MalformedAnswer:
            return True
        return obj is None or self._shards.of(self.kind.placement(obj)).is_mine

    def take_over(self, shard: shards.Shard) -> None:
        """Enqueue all objects of a shard that this process has got."""
        for obj in self.kind.items():
            if self._shards.of(self.kind.placement(obj)) is shard:
                self._keys.add(self.kind.key(*obj.metadata.key), backlog=True)

    def give_up(self) -> None:
        """Drop what is kept for objects of shards that this process no longer has: sources ask for them no more."""
        for key in [key for key in self._memories if not self.is_mine(key)]:
            self._forget(key)

    # --- a pass --------------------------------------------------------------------------------------------------

    async def reconcile(self, key: kind.Key) -> None:
        """One pass, which ends in time. Never raises, but for the worker's own cancellation."""
        alarm = asyncio.timeout(self.kind.deadline)
        try:
            with kind.acting_for(key):
                async with alarm:
                    await self._look(key)
        except (errors.Conflict, errors.NotFound, gate.NotLeading):
            self._keys.retry(key)  # the world has moved: quietly look again
        except errors.KubeError as error:
            log.warning("status not written", kind=key[0], namespace=key[1], name=key[2], error=str(error))
            self._keys.retry(key, at_least=self._world.pressure.told(error))
        except (Exception, asyncio.CancelledError) as error:
            if cancellation.is_cancelled(error):
                raise
            if isinstance(error, TimeoutError) and alarm.expired():
                await self._cut(key)
            else:
                await self._failed(key, error)

    async def _cut(self, key: kind.Key) -> None:
        seconds = self.kind.deadline
        log.error("reconcile cut at its deadline", kind=key[0], namespace=key[1], name=key[2], seconds=seconds)
        self._metrics.reconciles.labels(key[0], Reason.DEADLINE_EXCEEDED.value).inc()
        self._keys.retry(key)
        message = f"a pass did not end within {seconds:g} s and was cut short; it is tried again"
        await self._say_failed(key, Reason.DEADLINE_EXCEEDED, message)

    async def _failed(self, key: kind.Key, error: BaseException) -> None:
        error_text.tell("reconcile failed", error, kind=key[0], namespace=key[1], name=key[2])
        self._metrics.reconciles.labels(key[0], Reason.INTERNAL_ERROR.value).inc()
        self._keys.rest(key)
        await self._say_failed(key, Reason.INTERNAL_ERROR, error_text.words(error))

    async def _look(self, key: kind.Key) -> None:
        try:
            obj = self.kind.find(*key[1:])
        except errors.MalformedAnswer:
            await self._look_at_unreadable(key)
            return
        if obj is None:
            self._forget(key)
            return
        if not self._shards.are_many:
            await self._take_lane(key, obj)
        elif (shard := self._shards.of(self.kind.placement(obj))).is_mine:
            with shard.passing():
                await self._take_lane(key, obj)
        else:
            self._forget(key)

    async def _look_at_unreadable(self, key: kind.Key) -> None:
        shard = self._shards.of(" ".join(key))  # where it is placed nobody can read
        if shard.is_mine:
            with shard.passing():
                await self._unreadable.say(key)

    async def _take_lane(self, key: kind.Key, obj: kind.O) -> None:
        lane = self.kind.lane(obj)
        if not self._lanes.enter(lane, lambda: self._keys.add(key)):
            return
        try:
            await self._pass(key, obj)
        finally:
            self._lanes.leave(lane)

    async def _pass(self, key: kind.Key, obj: kind.O) -> None:
        begun, now = time.monotonic(), time.time()
        if obj.metadata.deleting and self.kind.finalizer not in obj.metadata.finalizers:
            self._forget(key)  # what is left to do is another's
            return
        others = self._world.others
        plainly_ours = obj.metadata.annotations.get(OPERATOR, "") == others.mine and not len(others)
        plainly_ours = plainly_ours and not self.kind.claimed_by(obj)
        if others.mine and not plainly_ours and not await self._is_ours(key, obj):
            return
        memory = self._remember(key, obj)
        made = self._decide(obj, now)
        writer = executor.Executor(self.kind, self._world, obj)
        performed = await writer.carry_out(made)
        it = Pass(
            key=key,
            obj=obj,
            now=now,
            begun=begun,
            made=made,
            performed=performed,
            stands=status.standing(made, performed),
            often=memory.acted(made, performed, begun),
            unseen_for=memory.unseen(made, begun),
        )
        about = self.kind.resource.ref(*obj.metadata.key, obj.metadata.uid)
        self._note(pass_events.of_acts(about, made, performed))
        wrote = await self._conclude(it, writer)
        if self._world.traces is not None:
            self._world.traces.tell(key, obj.metadata.uid, obj.metadata.generation, it.stands, len(performed))
        telemetry.reconciled(
            self._metrics,
            *key,
            made,
            performed,
            it.stands,
            generation=obj.metadata.generation,
            wrote=wrote,
            seconds=time.monotonic() - begun,
        )

    async def _is_ours(self, key: kind.Key, obj: kind.O) -> bool:
        """Whether the look goes on: not at an object of another installation, before that is gone for good.

        What is looked after bears the name of who does it; one that has lost it, or never had it, is claimed. A place
        that an installation has for itself is never another's.
        """
        others = self._world.others
        marked, claimed = obj.metadata.annotations.get(OPERATOR, ""), self.kind.claimed_by(obj)
        if claimed is None:
            return False  # it is looked at anew once that is known
        alone = bool(claimed) and claimed != others.mine
        other = "" if marked == others.mine else others.whose(key, obj, self.kind.placement)
        other = claimed if alone else other
        if other and (alone or not others.is_gone(other, key)):
            if others.leave(key, other, obj, self.kind.placement):
                self._drop(key)
                self._note((pass_events.of_other(self.kind.resource.ref(*obj.metadata.key, obj.metadata.uid), other),))
                log.warning("left to another installation", kind=key[0], namespace=key[1], name=key[2], operator=other)
            return False
        if other:
            log.info("taken over", kind=key[0], namespace=key[1], name=key[2], operator=other)
        others.forget(key)
        if marked == others.mine or not (marked or self.kind.finalizer in obj.metadata.finalizers):
            return True  # it gets its name together with its finalizer
        await executor.Executor(self.kind, self._world, obj).take_over(marked)
        self._keys.again(key)
        return False

    def _decide(self, obj: kind.O, now: float) -> decision.Decision:
        return decision.decide(
            self.kind.observe(obj, now),
            steps=self.kind.deletion_steps if obj.metadata.deleting else self.kind.steps,
            facts=self.kind.facts,
            report=self.kind.report,
            paused=obj.metadata.annotations.get(common_status.PAUSED) == "true",
        )

    async def _conclude(self, it: Pass[kind.O], writer: executor.Executor[kind.O]) -> bool:
        """Status and next look of the same incarnation; whether status was written."""
        fresh = self.kind.find(*it.obj.metadata.key)
        if fresh is None:
            self._forget(it.key)
            return False
        if fresh.metadata.uid != it.obj.metadata.uid:
            self._keys.add(it.key)
            return False
        at = status.progress(it.stands, fresh.status.progress, it.now)
        wrote = False
        failures = self._keys.failures(it.key)
        quiet = schedule.is_quiet(
            it.made,
            it.performed,
            often=it.often,
            unseen_for=it.unseen_for,
            shed=not self._world.pressure.room(0) and failures < schedule.PATIENT,
            failures=failures,
        )
        if not quiet:
            after = status.compose(
                it.made,
                it.stands,
                fresh.status,
                generation=it.obj.metadata.generation,
                now=it.now,
                ready_facts=self.kind.ready_facts,
            )
            wrote = await self._say(writer, after.fields)
            about = self.kind.resource.ref(*it.obj.metadata.key, it.obj.metadata.uid)
            self._note(pass_events.of_change(about, fresh.status, after, it.stands))
            self._note(pass_events.of_facts(about, it.made, fresh.status.conditions, self.kind.told_facts))
        self._schedule(it, at.since)
        return wrote

    async def _say(self, writer: executor.Executor[kind.O], fields: dict[str, Any]) -> bool:
        if self._world.traces is None:
            return await writer.write_status(fields)
        with self._world.traces.saying():
            return await writer.write_status(fields)

    def _schedule(self, it: Pass[kind.O], since: str) -> None:
        look = schedule.next_look(
            it.made,
            it.performed,
            since,
            now=it.now,
            resync=self.kind.resync * random.uniform(0.9, 1.1),  # noqa: S311 - spreads load
            often=it.often,
            unseen_for=it.unseen_for,
        )
        match look.how:
            case schedule.How.NOW:
                self._keys.again(it.key)
            case schedule.How.RETRY:
                self._keys.retry(it.key, at_least=look.seconds)
            case schedule.How.REST:
                self._keys.rest(it.key)
            case schedule.How.AFTER:
                self._keys.add_after(it.key, look.seconds, backlog=look.backlog)
                self._keys.forget(it.key)

    def _note(self, notes: tuple[event_recorder.Note, ...]) -> None:
        for note in notes:
            self._recorder.note(note)

    # --- an unforeseen failure, and the end ----------------------------------------------------------------------

    async def _say_failed(self, key: kind.Key, reason: Reason, message: str) -> None:
        """Best effort: why the object is not ready, without the exception's own words, as they may quote secrets."""
        try:
            fresh = self.kind.find(*key[1:])
            if fresh is None:
                return
            shard = self._shards.of(self.kind.placement(fresh))
            if not shard.is_mine:
                return
            fields = status.failed(fresh.status, reason, message, generation=fresh.metadata.generation, now=time.time())
            with kind.acting_for(key), shard.passing():
                await executor.Executor(self.kind, self._world, fresh).write_status(fields)
                about = self.kind.resource.ref(*fresh.metadata.key, fresh.metadata.uid)
                self._note((event_recorder.Note(about, reason, message, "reconcile", warning=True),))
        except Exception as second:
            log.warning("failure not written to status", name=key[2], error=str(second))

    def _remember(self, key: kind.Key, obj: kind.O) -> schedule.Memory:
        """The memory of this incarnation; what was kept for an earlier one of the same name is dropped."""
        memory = self._memories.get(key)
        if memory is not None and memory.uid != obj.metadata.uid:
            self._forget(key)
            memory = None
        if memory is None:
            memory = self._memories[key] = schedule.Memory(obj.metadata.uid)
        return memory

    def _forget(self, key: kind.Key) -> None:
        """The object is gone, or another process' of ours."""
        self._world.others.forget(key)
        self._drop(key)

    def _drop(self, key: kind.Key) -> None:
        """Nothing is kept for it any more."""
        self._keys.drop(key)
        self._memories.pop(key, None)
        self._world.tasks.forget(key)
        self._metrics.forget(*key)
        self.kind.forget(*key[1:])


def _wants_other(old: kind.Reconciled, new: kind.Reconciled) -> bool:
    """Whether more has changed than its status."""
    return msgspec.structs.replace(old.metadata, resource_version=new.metadata.resource_version) != new.metadata
