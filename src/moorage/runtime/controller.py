"""One pass over one object: observe, decide, execute, write status, schedule the next look.

It alone writes the status of its kind. A pass that fails in an unforeseen way is contained: logged, counted, retried
with back-off, and said in the status.
"""

from __future__ import annotations

import random
import time
from typing import Any, Generic

import structlog

from moorage.api import conditions
from moorage.api import status as api_status
from moorage.kube import cache as kube_cache
from moorage.kube import errors

from . import decision, election, events, executor, kind, lanes, queue, status, telemetry

log = structlog.get_logger(__name__)

SAME_ACT_LIMIT = 3
"""Passes that may decide the very same act in a row before they back off: an effect that does not show up."""


class Controller(Generic[kind.O, kind.S]):
    """Reconciles the objects of one kind."""

    def __init__(
        self,
        of: kind.Kind[kind.O, kind.S],
        world: kind.World,
        *,
        keys: queue.WorkQueue[kind.Key],
        recorder: events.Recorder,
        metrics: telemetry.Metrics,
        shared_lanes: lanes.Lanes,
    ) -> None:
        self.kind, self._world, self._keys = of, world, keys
        self._recorder, self._metrics, self._lanes = recorder, metrics, shared_lanes
        self._executor = executor.Executor(of, world)
        self._repeated: dict[kind.Key, tuple[str, str, int]] = {}

    async def start(self) -> None:
        """Open the watches of the kind; every change of an object enqueues it."""
        self.kind.caches = [
            self._world.caches.watch(self.kind.resource, self.kind.model, namespace=namespace)
            for namespace in self.kind.namespaces or ("",)
        ]
        for cache in self.kind.caches:
            cache.subscribe(self._on_change)
        await self.kind.start(self._world)

    async def wait_synced(self) -> None:
        """Return once every object of the kind has been seen."""
        for cache in self.kind.caches:
            await cache.wait_synced(timeout=None)

    async def reconcile(self, key: kind.Key) -> None:
        """One pass. Never raises."""
        _, namespace, name = key
        obj = self._get(namespace, name)
        if obj is None:
            self._forget(key)
            return
        lane = self.kind.lane(obj)
        if not self._lanes.enter(lane, lambda: self._keys.add(key)):
            return
        try:
            await self._pass(key, obj)
        except (errors.Conflict, election.NotLeading):
            self._keys.retry(key)
        except Exception as error:
            log.exception("reconcile failed", kind=self.kind.resource.kind, namespace=namespace, name=name)
            self._keys.retry(key)
            await self._say_failed(obj, error)
        finally:
            self._lanes.leave(lane)

    async def _pass(self, key: kind.Key, obj: kind.O) -> None:
        begun, now = time.monotonic(), time.time()
        deleting = obj.metadata.deleting
        if deleting and self.kind.finalizer not in obj.metadata.finalizers:
            return  # what is left to do is another's
        seen = self.kind.observe(obj, now)
        made = decision.decide(
            seen,
            steps=self.kind.farewell if deleting else self.kind.steps,
            facts=self.kind.facts,
            report=self.kind.report,
            paused=obj.metadata.annotations.get(api_status.PAUSED) == "true",
        )
        performed = await self._executor.carry_out(obj, made)
        stands = status.standing(made, performed)
        fresh = self._get(*obj.metadata.key)
        wrote = False
        if fresh is not None and fresh.metadata.uid == obj.metadata.uid:
            fields = status.compose(
                made,
                performed,
                fresh.status,
                generation=obj.metadata.generation,
                now=now,
                ready_facts=self.kind.ready_facts,
            )
            if not _says_nothing(made, performed):
                await self._executor.write_status(fresh, fields)
                wrote = self._get(*obj.metadata.key) is not fresh
            self._tell(obj, made, performed, stands, changed=_verdict_changed(fresh.status, stands))
            self._schedule(key, made, performed, stands, fields, now)
        telemetry.reconciled(
            self._metrics,
            *key,
            made,
            performed,
            stands,
            generation=obj.metadata.generation,
            wrote=wrote,
            seconds=time.monotonic() - begun,
        )

    def _schedule(
        self,
        key: kind.Key,
        made: decision.Decision,
        performed: tuple[status.Performed, ...],
        stands: status.Standing,
        fields: dict[str, Any],
        now: float,
    ) -> None:
        if performed and not isinstance(performed[-1].outcome, decision.Ok):
            self._keys.retry(key)
            return
        taken = made.standing
        resync = self.kind.resync * random.uniform(0.9, 1.1)  # noqa: S311 - spreads load
        match taken.verdict if taken else decision.DONE:
            case decision.Act(reason=reason) if not made.paused:
                assert taken is not None  # noqa: S101 - an Act comes from a step
                if self._repeats(key, taken.name, str(reason)):
                    self._keys.retry(key)
                else:
                    self._keys.add(key)
                return
            case decision.Wait(within=within, again=again):
                overdue_in = conditions.epoch(fields["progress"]["since"]) + within - now
                looks = [resync, *(t for t in (again, overdue_in) if t > 0)]
                self._keys.add_after(key, min(looks))
            case _:
                self._keys.add_after(key, resync)
        self._repeated.pop(key, None)
        self._keys.forget(key)

    def _repeats(self, key: kind.Key, step: str, reason: str) -> bool:
        last_step, last_reason, count = self._repeated.get(key, ("", "", 0))
        count = count + 1 if (last_step, last_reason) == (step, reason) else 1
        self._repeated[key] = (step, reason, count)
        return count > SAME_ACT_LIMIT

    def _tell(
        self,
        obj: kind.O,
        made: decision.Decision,
        performed: tuple[status.Performed, ...],
        stands: status.Standing,
        *,
        changed: bool,
    ) -> None:
        about = self.kind.resource.ref(*obj.metadata.key, obj.metadata.uid)
        done = {p.step for p in performed if isinstance(p.outcome, decision.Ok)}
        for taken in made.steps:
            if taken.name in done and isinstance(taken.verdict, decision.Act):
                self._recorder.note(events.Note(about, taken.verdict.reason, taken.verdict.message, taken.name))
        if changed and not _says_nothing(made, performed) and not (made.acts and stands.step in done):
            reason = stands.reason or "Ready"
            self._recorder.note(
                events.Note(
                    about, reason, stands.message or "all steps are done", stands.step or "reconcile", stands.stalled
                )
            )

    async def _say_failed(self, obj: kind.O, error: Exception) -> None:
        """Best effort: the exception's own words as the reason why the object is not ready."""
        fresh = self._get(*obj.metadata.key)
        if fresh is None:
            return
        message = f"{type(error).__name__}: {error}; this is a defect of moorage, its log has the trace"
        fact = conditions.Condition(
            type="Ready",
            status="Unknown",
            reason="InternalError",
            message=message[:32768],
            observed_generation=obj.metadata.generation,
        )
        others = tuple(c for c in fresh.status.conditions if c.type != "Ready")
        merged = conditions.merge(fresh.status.conditions, (*others, fact), time.time())
        try:
            await self._executor.write_status(fresh, {"conditions": merged})
        except (errors.KubeError, election.NotLeading):
            log.warning("failure not written to status", name=obj.metadata.name)

    def _on_change(self, change: kube_cache.Change[kind.O]) -> None:
        obj = change.new if change.new is not None else change.old
        if obj is not None:
            self._keys.add(self.kind.key(*obj.metadata.key))

    def _get(self, namespace: str, name: str) -> kind.O | None:
        for cache in self.kind.caches:
            if (obj := cache.get(namespace, name)) is not None:
                return obj
        return None

    def _forget(self, key: kind.Key) -> None:
        self._keys.forget(key)
        self._repeated.pop(key, None)
        self.kind.forget(*key[1:])


def _says_nothing(made: decision.Decision, performed: tuple[status.Performed, ...]) -> bool:
    """Whether status is left as it is: nothing is known yet, or a short act is followed by another look right away."""
    taken = made.standing
    if taken is None:
        return False
    if isinstance(taken.verdict, decision.Wait):
        return taken.verdict.unseen and not performed
    last = performed[-1] if performed else None
    if last is None or not isinstance(last.outcome, decision.Ok) or isinstance(last.action, decision.Run):
        return False
    return isinstance(taken.verdict, decision.Act)


def _verdict_changed(before: api_status.Status, stands: status.Standing) -> bool:
    ready = next((c for c in before.conditions if c.type == "Ready"), None)
    if stands.settled:
        return ready is None or ready.status != "True"
    return (before.progress.step, before.progress.reason) != (stands.step, str(stands.reason))
