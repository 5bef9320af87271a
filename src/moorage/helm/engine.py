"""A helm engine: observes the releases of one kind, and gives its operations and guards.

A kind hands in a `Request` per object and gets a `ReleaseSeen`, which `steps` decide on. Reads go to caches and sources
alone, and a source that is read begins to fetch: what is not known yet is `Failed` now, and its news brings the object
back. So each part of the observation asks for what it is made of, and nothing that hangs on what isn't known:

    claim -> chart -> render -> rights        what is wanted, as far as the claim is the owner's
    record -> objects, hooks                  what there is (`release_objects`, with `live_looks`)
    claim, record -> leftovers                what there should no longer be

What must not be in an observation (values, manifests) stays here, by key.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import Any

import msgspec

from moorage.api import conditions, meta
from moorage.kube import discovery
from moorage.runtime import cancellation, freshness, kind, namespace_watches, tasks

from . import live_looks, observation, operations, release_objects, release_sources, release_watches
from .charts import resolver, values
from .parsing import aside
from .reasons import Reason
from .release import claim, manifest, records, surplus
from .release_request import Request
from .runs import binary


class Engine:
    """One per kind. `entitled` says whether the operator has its rights in a namespace."""

    def __init__(
        self,
        world: kind.World,
        *,
        helm: binary.Helm,
        store: resolver.Charts,
        chart_source: Callable[[str], Awaitable[resolver.ChartSource]],
        request: Callable[[Any], Request],
        user: Callable[[str], str],
        work: aside.Aside,
        place: Callable[[str], str],
    ) -> None:
        """`user`: with whose rights all in a namespace is read and written, helm's doings included."""
        self._world, self._request = world, request
        self._watches = namespace_watches.Watches(
            lambda namespace: release_watches.NamespaceView(world, namespace, user(namespace))
        )
        served = discovery.Discovery(world.client)
        self._lookups = release_sources.Lookups(
            world.client, served, helm, store, chart_source, world.enqueue, user, work, place
        )
        self._runs = operations.Operations(world, served, helm, self.job, user, work)
        self.operations, self.guards = self._runs.operations, self._runs.guards
        self._objects = release_objects.Objects(world, self._lookups, self._runs)

    async def stop(self) -> None:
        """Close sources and watches."""
        await cancellation.stopped(*self._lookups.all, self._watches)

    def forget(self, key: Hashable) -> None:
        """The object is gone."""
        for each in self._lookups.all:
            each.forget(key)
        self._watches.leave(key)
        self._objects.forget(key)

    # --- observing -------------------------------------------------------------------------------

    def observe(self, request: Request, now: float, *, entitled: bool) -> observation.ReleaseSeen:
        """What is seen of the release. Without rights in its namespace nothing there is looked at."""
        view = self._watches.enter(request.target.namespace, request.key) if entitled else None
        if view is None:
            self._watches.leave(request.key)  # what may not be watched is not asked for again and again
        held = self._claim(request, view)
        record_key = self._record_key(request, view)
        loaded = self._record(request, view, record_key)
        at_hand = self._chart(request, held)
        render = self._render(request, at_hand, record_key, loaded)
        nothing = freshness.not_yet("objects")
        around = live_looks.Around(self._lookups, request)
        children = self._objects.seen(request, view, record_key, loaded, around) if not request.leaving else nothing
        hooks = self._objects.hooks(request, view, loaded, around)
        around.done()
        return observation.ReleaseSeen(
            now=now,
            owner=request.owner,
            target=request.target,
            policy=request.policy,
            wanted=request.wanted,
            status=request.status,
            reconcile_at=request.reconcile_at,
            released_before=_released(request),
            claim=held,
            chart=_each(at_hand, lambda it: it.chart),
            render=render,
            record=_each(loaded, lambda it: it.seen if it else None),
            children=children,
            leftovers=self._leftovers(request, view, held, loaded),
            missing_rules=self._missing_rules(request, render, loaded),
            hooks=hooks,
            task=self._world.tasks.state(request.target.lane),
            settles_in=self._world.gate.settles_in,
        )

    def job(self, obj: Any) -> operations.Job:
        """What a run for this object needs."""
        request = self._request(obj)
        view = self._watches.enter(request.target.namespace, request.key)
        at_hand = freshness.value_of(self._chart(request, self._claim(request, view)))
        known = self._record(request, view, self._record_key(request, view))
        return operations.Job(
            target=request.target,
            policy=request.policy,
            owner=request.owner,
            values=request.values(at_hand.contents) if at_hand and request.values else None,
            archive=at_hand.archive if at_hand else None,
            record=freshness.value_of(known),
            hooks=self._objects.hooks(request, view, known, live_looks.Around(self._lookups, request)),
        )

    def _claim(
        self, request: Request, view: release_watches.NamespaceView | None
    ) -> freshness.Observed[observation.ClaimSeen | None]:
        if view is None:
            return freshness.Failed(observation.NO_RIGHTS, f"no rights in namespace {request.target.namespace} yet")
        if not view.claims.synced:
            return freshness.unsynced(view.claims.error, "claims")
        found = view.claims.get(request.target.namespace, claim.name(request.target.release))
        if found is None:
            return freshness.Fresh(None)
        try:
            return freshness.Fresh(claim.read(found))
        except manifest.ManifestError as error:
            message = f"ConfigMap {found.metadata.name} is not readable as a claim: {error}"
            return freshness.Failed(claim.BROKEN, message, transient=False)

    def _chart(
        self, request: Request, held: freshness.Observed[observation.ClaimSeen | None]
    ) -> freshness.Observed[release_sources.AtHand]:
        known = freshness.value_of(held)
        if request.leaving or known is None or known.owner.uid != request.owner.uid:
            return freshness.not_yet("chart")
        wanted, sources = request.wanted, self._lookups
        if known.pin is not None and known.pin.wanted == wanted:
            key = (wanted.source, known.pin.chart)
            sources.chosen.forget(request.key)
            return sources.pinned.follow(key, request.key)
        return sources.chosen.follow(wanted, request.key)

    def _render(
        self,
        request: Request,
        at_hand: freshness.Observed[release_sources.AtHand],
        record_key: release_sources.RecordKey | None,
        loaded: freshness.Observed[release_sources.Loaded | None],
    ) -> freshness.Observed[observation.RenderSeen]:
        at = freshness.value_of(at_hand)
        if at is None or request.values is None:
            return freshness.not_yet("render")
        given = request.values(at.contents)
        reads = at.contents.reads_capabilities
        capabilities = ""
        if reads:
            cluster = freshness.value_of(self._lookups.capabilities.read("", request.key))
            if cluster is None:
                return freshness.not_yet("capabilities")
            capabilities = values.digest(msgspec.to_builtins(cluster))
        is_upgrade = False
        if at.contents.reads_release:  # what is rendered is what will be done
            if isinstance(loaded, freshness.Failed):
                return freshness.not_yet("record")
            is_upgrade = record_key is not None and record_key.installed
        key = release_sources.RenderKey(
            at.chart.digest, given.digest, request.target, capabilities, given, at.archive, reads, is_upgrade
        )
        return self._lookups.rendered.follow(key, request.key)

    def _missing_rules(
        self,
        request: Request,
        render: freshness.Observed[observation.RenderSeen],
        loaded: freshness.Observed[release_sources.Loaded | None],
    ) -> freshness.Observed[tuple[str, ...]]:
        """Asked for only when helm has something to do."""
        made, record = freshness.value_of(render), freshness.value_of(loaded)
        is_current = made and record and (record.seen.status, record.seen.digest) == ("deployed", made.digest)
        at_work = isinstance(self._world.tasks.state(request.target.lane), tasks.Running)
        if made is None or made.problems or is_current or at_work or isinstance(loaded, freshness.Failed):
            self._lookups.rights.forget(request.key)
            return freshness.Fresh(())
        return self._lookups.rights.follow(
            release_sources.RightsKey(request.target.namespace, made.resources), request.key
        )

    # --- the record ------------------------------------------------------------------------------

    def _record_key(
        self, request: Request, view: release_watches.NamespaceView | None
    ) -> release_sources.RecordKey | None:
        """The latest revision's record, and whether any was ever deployed: helm supersedes only such."""
        if view is None or not view.records.synced:
            return None
        mine = self._records_of(request, view)
        latest = records.latest(mine)
        if latest is None:
            return None
        installed = any(each.labels.get("status") in ("deployed", "superseded") for each in mine)
        return release_sources.RecordKey(request.target.namespace, latest.name, latest.resource_version, installed)

    @staticmethod
    def _records_of(request: Request, view: release_watches.NamespaceView) -> list[meta.ObjectMeta]:
        """What bears the labels of the release's records."""
        return [
            partial.metadata
            for partial in view.records.items(request.target.namespace)
            if partial.metadata.labels.get("name") == request.target.release
        ]

    def _record(
        self, request: Request, view: release_watches.NamespaceView | None, key: release_sources.RecordKey | None
    ) -> freshness.Observed[Any]:
        """The record of that key as `release_sources.Loaded`, or None when there is none."""
        if view is None:
            return freshness.Failed(observation.NO_RIGHTS, f"no rights in namespace {request.target.namespace} yet")
        if not view.records.synced:
            return freshness.unsynced(view.records.error, "release records")
        if key is None:
            self._lookups.records.forget(request.key)
            strange = self._records_of(request, view)
            if strange and not request.leaving:  # helm would find no revision of what it takes to be there
                words = f"Secret {strange[0].name} in namespace {request.target.namespace} bears the labels of a record"
                return freshness.Failed(Reason.RECORD_BROKEN, f"{words}, and is none", transient=False)
            return freshness.Fresh(None)
        return self._lookups.records.follow(key, request.key)

    def _leftovers(
        self,
        request: Request,
        view: release_watches.NamespaceView | None,
        held: freshness.Observed[observation.ClaimSeen | None],
        loaded: freshness.Observed[release_sources.Loaded | None],
    ) -> freshness.Observed[tuple[observation.Leftover, ...]]:
        """Looked for only when there may be some: polled live, since silence of a watch is no evidence."""
        known = freshness.value_of(held)
        if view is None or known is None or isinstance(loaded, freshness.Failed):
            return freshness.not_yet("leftovers")
        record = loaded.value.seen if loaded.value else None
        if request.leaving:
            items = () if record else surplus.surplus(known, None)
        else:
            items = surplus.surplus(known, record) if record and record.status == "deployed" else ()
        if not items:
            self._lookups.leftovers.forget(request.key)
            return freshness.Fresh(())
        found = view.claims.get(request.target.namespace, claim.name(request.target.release))
        since = found.metadata.creation_timestamp if found else ""
        key = release_sources.LeftoverKey(request.target, items, since)
        return self._lookups.leftovers.follow(key, request.key)


def _released(request: Request) -> bool:
    """Whether the last status says that this generation is released."""
    found = conditions.find(request.status.conditions, "Released")
    return found is not None and found.status == "True" and found.observed_generation == request.generation


def _each(fact: freshness.Observed[Any], of: Callable[[Any], Any]) -> freshness.Observed[Any]:
    """The same fact with its value mapped."""
    match fact:
        case freshness.Failed():
            return fact
        case freshness.Fresh(value=value, at=at):
            return freshness.Fresh(of(value), at)
        case freshness.Stale(value=value, at=at, why=why):
            return freshness.Stale(of(value), at, why)
    raise TypeError(f"not a fact: {fact!r}")
