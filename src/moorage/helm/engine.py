"""A helm engine: observes the releases of one kind, and gives its operations and guards.

A kind hands in a `Request` per object and gets a `ReleaseSeen`, which `steps` decide on. Reads go to caches and sources
alone. What must not be in an observation (values, manifests) stays here, by key.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from typing import Any

import msgspec

from moorage.api import builtin, comparison, conditions, meta
from moorage.children import diagnosis, health, object_events, pod_trouble
from moorage.kube import discovery
from moorage.kube.informers import informer
from moorage.runtime import freshness, kind, namespace_watches, tasks

from . import observation, operations, release_sources, release_status, release_watches
from .charts import chart_archive, resolver, values
from .parsing import aside, helm_yaml
from .reasons import Reason
from .release import claim, drift, manifest, records, surplus
from .runs import binary, failures

COMPARED_IN_PLACE = 5_000  # keys and values in one pass; what is more is compared by a source


@dataclasses.dataclass(frozen=True)
class Request:
    """What one object asks of the engine."""

    key: Hashable
    owner: meta.ObjectRef
    target: observation.Target
    policy: observation.Policy
    wanted: observation.Wanted
    status: release_status.HelmStatus
    reconcile_at: str
    generation: int
    leaving: bool
    values: Callable[[chart_archive.Contents], values.Given] | None
    """The release's values, given the chart; None when they can't be had, or not yet."""


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
        self._compared: dict[meta.ObjectRef, tuple[str, str, tuple[str, ...]]] = {}
        self._named: dict[Hashable, frozenset[meta.ObjectRef]] = {}  # of which objects each has something remembered

    async def stop(self) -> None:
        """Close sources and watches."""
        for each in self._lookups.all:
            await each.stop()
        await self._watches.stop()

    def forget(self, key: Hashable) -> None:
        """The object is gone."""
        for each in self._lookups.all:
            each.forget(key)
        self._watches.leave(key)
        self._remember(key, ())

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
        around = _Around(self._lookups, request)
        children = self._children(request, view, record_key, loaded, around) if not request.leaving else nothing
        hooks = self._hooks(request, view, loaded, around)
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
            hooks=self._hooks(request, view, known, _Around(self._lookups, request)),
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
        if made is None or made.problems or is_current or isinstance(loaded, freshness.Failed):
            self._lookups.rights.forget(request.key)
            return freshness.Fresh(())
        return self._lookups.rights.follow(
            release_sources.RightsKey(request.target.namespace, made.resources), request.key
        )

    # --- the record and its objects --------------------------------------------------------------

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

    def _children(
        self,
        request: Request,
        view: release_watches.NamespaceView | None,
        key: release_sources.RecordKey | None,
        loaded: freshness.Observed[release_sources.Loaded | None],
        around: _Around,
    ) -> freshness.Observed[tuple[observation.ChildSeen, ...]]:
        if view is None or isinstance(loaded, freshness.Failed):
            return freshness.not_yet("objects")
        if loaded.value is None or key is None:
            self._remember(request.key, ())
            return freshness.Fresh(())
        items = [item.ref for item in loaded.value.seen.inventory if not item.hook]
        self._remember(request.key, items)
        informers: dict[tuple[str, str], informer.Informer[Any] | None] = {}
        missing: freshness.Failed | None = None
        for kind_key in {(ref.api_version, ref.kind) for ref in items}:  # all are asked for before any is waited for
            resource = self._lookups.kinds.read(kind_key, request.key)
            if isinstance(resource, freshness.Failed):
                if resource.transient:
                    missing = resource
                informers[kind_key] = None
                continue
            informers[kind_key] = cache = view.children(resource.value)
            if cache.unserved:
                self._lookups.kinds.refresh(kind_key)
            if not cache.synced:
                missing = freshness.unsynced(cache.error, f"{kind_key[1]} objects")
        if missing is None and not view.pods.synced:
            missing = freshness.unsynced(view.pods.error, "pods")
        if missing is not None:
            return missing
        looks = _Looks(self._lookups, request, key, loaded.value, around)
        found = [self._child(looks, view, ref, informers[ref.api_version, ref.kind]) for ref in items]
        looks.done()
        children = tuple(child for child in found if child is not None)
        return freshness.Fresh(children) if len(children) == len(found) else freshness.not_yet("objects")

    def _remember(self, key: Hashable, refs: Iterable[meta.ObjectRef]) -> None:
        """These objects alone: what is kept of others goes."""
        named = frozenset(refs)
        for ref in self._named.pop(key, frozenset()) - named:
            self._compared.pop(ref, None)
            self._runs.forget(ref)
        if named:
            self._named[key] = named

    def _child(
        self,
        looks: _Looks,
        view: release_watches.NamespaceView,
        ref: meta.ObjectRef,
        cache: informer.Informer[Any] | None,
    ) -> observation.ChildSeen | None:
        """One object as it is live; None while nobody has looked whether it has removed itself."""
        if cache is None:
            return observation.ChildSeen(
                ref, False, failures.FailureKind.UNKNOWN_KIND, f"{ref.kind} is no longer served in any version"
            )
        resource, live = cache.scope.resource, cache.get(ref.namespace, ref.name)
        if resource.api_version != ref.api_version:
            return _of_another_version(ref, resource, live)
        if live is None:
            return self._unseen(looks, ref, resource)
        settled = self._runs.settled.get(ref, frozenset())
        if resource == builtin.SECRET:
            found = looks.confirm(ref, resource, live.metadata.resource_version)
            here = not live.metadata.deleting
            return observation.ChildSeen(ref, here, drift=_without(found, settled), yielded=_among(found, settled))
        version = str(live["metadata"].get("resourceVersion", ""))
        differs, found = self._differences(looks, ref, live, version), ()
        if _without(differs, settled):
            found = _without(looks.confirm(ref, resource, version), settled)
        yielded = _among(differs, settled)
        mine = looks.around.speak(diagnosis.pods_of(live, view.pods.items(ref.namespace)))
        body = looks.around.speak([live])[0] if ref.kind == "Pod" else live
        judged = health.health(body, mine)
        if not judged.ok:
            there = looks.around.look()
            judged = health.health(body, mine, there.events, claims=there.claims)
        refusal = self._refusal(looks, ref, version)
        if judged.ok:
            return observation.ChildSeen(ref, True, drift=found, refusal=refusal, yielded=yielded)
        message = judged.message
        if judged.wants_log and (last := looks.last_words(view, *judged.wants_log, previous=judged.previous)):
            message = f"{message}; {last}"
        return observation.ChildSeen(ref, False, judged.reason, message, found, refusal, yielded)

    def _unseen(self, looks: _Looks, ref: meta.ObjectRef, resource: meta.Resource) -> observation.ChildSeen | None:
        """An object that the watch doesn't have: it is gone, has lost the label, or was a Job that removes itself."""
        may_go = looks.may_remove_itself(ref)
        if may_go and (removed := looks.removed(ref, resource)) != release_sources.STILL_THERE:
            match removed:
                case freshness.Failed():
                    return None
                case freshness.Fresh(value=words) | freshness.Stale(value=words) if words:
                    return observation.ChildSeen(
                        ref, False, "JobFailed", f"it has failed, and has removed itself: {words}"
                    )
            return observation.ChildSeen(ref, True)
        wrong = looks.confirm_unseen(ref, resource)
        gone = wrong in ((), (comparison.THE_OBJECT,))
        if gone and wrong and may_go:
            return None  # it went between the two looks
        words = "it is not there" if gone else "it has lost the label it is seen by"
        return observation.ChildSeen(ref, False, "Missing", words, wrong, self._refusal(looks, ref, ""))

    def _hooks(
        self,
        request: Request,
        view: release_watches.NamespaceView | None,
        loaded: freshness.Observed[release_sources.Loaded | None],
        around: _Around,
    ) -> tuple[observation.HookSeen, ...]:
        """The hooks that a run of helm stands at, by their pods, and what is wrong there."""
        record = freshness.value_of(loaded)
        running = isinstance(self._world.tasks.state(request.target.lane), tasks.Running)
        if not running or view is None or record is None or not view.pods.synced:
            return ()
        hooks = [item.ref for item in record.seen.inventory if item.hook and item.ref.kind in ("Job", "Pod")]
        if not hooks:
            return ()
        started, there = request.status.attempt.started, around.look()
        run = around.speak(pod for pod in view.pods.items(request.target.namespace) if _created(pod) >= started)
        events = [event for event in there.events if object_events.when(event) >= started]  # not of an earlier run's
        found: list[observation.HookSeen] = []
        for ref in hooks:
            mine = [pod for pod in run if _is_of_hook(pod, ref)]
            body = next(iter(mine), None) if ref.kind == "Pod" else {"kind": "Job", "metadata": {"name": ref.name}}
            trouble = diagnosis.cause(body, pods=mine, claims=there.claims, events=events) if body else None
            if trouble is not None:
                found.append(observation.HookSeen(ref, trouble.message, trouble.reason))
        return tuple(found)

    def _refusal(self, looks: _Looks, ref: meta.ObjectRef, version: str) -> str:
        """Why the repair of this state of the object is not tried again."""
        given_up = self._runs.given_up.get(ref)
        if given_up is None or time.monotonic() >= given_up.until:
            return ""
        same = (given_up.version, given_up.record) == (version, looks.key.resource_version)
        return given_up.words if same else ""

    def _differences(self, looks: _Looks, ref: meta.ObjectRef, live: dict[str, Any], version: str) -> tuple[str, ...]:
        """What differs as the watch has it; compared once per state of object and record, none until that is done."""
        before = self._compared.get(ref)
        states = (version, looks.key.resource_version)
        if before is not None and before[:2] == states:
            return before[2]
        found = looks.compare(ref, live, version)
        if found is not None:
            self._compared[ref] = (*states, found)
        return found or ()

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


class _Looks:
    """Live looks for one pass over a release: what confirms drift, and the last words of containers."""

    def __init__(
        self,
        sources: release_sources.Lookups,
        request: Request,
        key: release_sources.RecordKey,
        loaded: release_sources.Loaded,
        around: _Around,
    ) -> None:
        self._sources, self.request, self.key, self._loaded, self.around = sources, request, key, loaded, around
        self._compared: list[release_sources.CompareKey] = []
        self._left = COMPARED_IN_PLACE
        self._drift: list[release_sources.DriftKey] = []
        self._unseen: list[release_sources.DriftKey] = []
        self._removed: list[release_sources.DriftKey] = []
        self._logs: list[tuple[str, str, str, int]] = []

    def wanted(self, ref: meta.ObjectRef) -> dict[str, Any]:
        """The object as helm applied it."""
        target = self.request.target
        return drift.desired(self._loaded.objects[ref], target.release, target.namespace)

    def compare(self, ref: meta.ObjectRef, live: dict[str, Any], version: str) -> tuple[str, ...] | None:
        """The field paths that differ from `live`; None until a comparison that is too much for one pass is done."""
        wanted = self.wanted(ref)
        self._left -= sum(helm_yaml.count(each, COMPARED_IN_PLACE) for each in (wanted, live))
        if self._left >= 0:
            return drift.differing(wanted, live)
        asked = release_sources.CompareKey(ref, version, self.key, wanted, live)
        self._compared.append(asked)
        return freshness.value_of(self._sources.compared.read(asked, self.request.key))

    def confirm(self, ref: meta.ObjectRef, resource: meta.Resource, version: str) -> tuple[str, ...]:
        """The field paths that differ by a live read; none until that is done."""
        asked = self._key(ref, resource, version)
        self._drift.append(asked)
        return freshness.value_of(self._sources.drift.read(asked, self.request.key)) or ()

    def confirm_unseen(self, ref: meta.ObjectRef, resource: meta.Resource) -> tuple[str, ...]:
        """What a live read found wrong with an object that the watch doesn't have; none until that is done."""
        asked = self._key(ref, resource, "")
        self._unseen.append(asked)
        return freshness.value_of(self._sources.unseen.read(asked, self.request.key)) or ()

    def may_remove_itself(self, ref: meta.ObjectRef) -> bool:
        """Whether it is a Job that goes when it has ended, and helm has made it."""
        return self._loaded.seen.status == "deployed" and health.removes_itself(self._loaded.objects[ref])

    def removed(self, ref: meta.ObjectRef, resource: meta.Resource) -> freshness.Observed[str]:
        """That such a Job is gone, and the words of its failure, if it failed."""
        asked = self._key(ref, resource, "")
        self._removed.append(asked)
        return self._sources.removed.read(asked, self.request.key)

    def _key(self, ref: meta.ObjectRef, resource: meta.Resource, version: str) -> release_sources.DriftKey:
        return release_sources.DriftKey(ref, resource, version, self.key, self._loaded.seen.updated, self.wanted(ref))

    def last_words(self, view: release_watches.NamespaceView, pod: str, container: str, *, previous: bool) -> str:
        """The last line of a container's log, asked for once per restart; or where it can be read."""
        if not self.around.may_quote:
            earlier = " --previous" if previous else ""
            return f"its words: kubectl logs -n {view.namespace} {pod} -c {container}{earlier}"
        found = view.pods.get(view.namespace, pod)
        if found is None:
            return ""
        statuses = found.get("status", {}).get("containerStatuses") or ()
        restarts = next((s.get("restartCount", 0) for s in statuses if s.get("name") == container), 0)
        asked = (view.namespace, pod, container, restarts)
        self._logs.append(asked)
        said = freshness.value_of(self._sources.last_words.read(asked, self.request.key))
        return f"its last words: {said}" if said else ""

    def done(self) -> None:
        """What was not asked for in this pass is asked afresh the next time."""
        self._sources.compared.forget(self.request.key, keep=tuple(self._compared))
        self._sources.drift.forget(self.request.key, keep=tuple(self._drift))
        self._sources.unseen.forget(self.request.key, keep=tuple(self._unseen))
        self._sources.removed.forget(self.request.key, keep=tuple(self._removed))
        self._sources.last_words.forget(self.request.key, keep=tuple(self._logs))


class _Around:
    """What is around a release's objects, asked for in one pass only if something is wrong, and else forgotten."""

    def __init__(self, sources: release_sources.Lookups, request: Request) -> None:
        self._sources, self._request = sources, request
        self._asked: tuple[str, ...] = ()

    @property
    def may_quote(self) -> bool:
        """What a tenant's pods say is told where their own readers read alone: a status elsewhere has others."""
        return self._request.owner.namespace == self._request.target.namespace

    def speak(self, found: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """The pods with what they have said themselves, if that may be told."""
        return list(found) if self.may_quote else [pod_trouble.without_words(pod) for pod in found]

    def look(self) -> release_sources.Around:
        """Empty until it has been read."""
        self._asked = (self._request.target.namespace,)
        found = self._sources.around.read(self._request.target.namespace, self._request.key)
        there = freshness.value_of(found) or release_sources.Around()
        return (
            there if self.may_quote else release_sources.Around(object_events.without_words(there.events), there.claims)
        )

    def done(self) -> None:
        """What was not asked for in this pass is asked afresh the next time."""
        self._sources.around.forget(self._request.key, keep=self._asked)


def _created(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"].get("creationTimestamp") or "")


def _is_of_hook(pod: Mapping[str, Any], hook: meta.ObjectRef) -> bool:
    """A hook is a Pod, or a Job, whose pods bear its name."""
    labels = pod["metadata"].get("labels") or {}
    return bool(hook.name == (pod["metadata"]["name"] if hook.kind == "Pod" else labels.get(_JOB_NAME)))


_JOB_NAME = "batch.kubernetes.io/job-name"


def _of_another_version(ref: meta.ObjectRef, resource: meta.Resource, live: Any) -> observation.ChildSeen:
    """An object whose recorded version is no longer served: it is there or not; nothing in it can be compared."""
    if live is None:
        words = f"it is not there, and {ref.api_version} of its record is no longer served"
        return observation.ChildSeen(ref, False, "Missing", words)
    if resource == builtin.SECRET:
        return observation.ChildSeen(ref, not live.metadata.deleting)
    judged = health.health(live)
    return observation.ChildSeen(
        ref, judged.ok, "" if judged.ok else judged.reason, "" if judged.ok else judged.message
    )


def _released(request: Request) -> bool:
    """Whether the last status says that this generation is released."""
    found = conditions.find(request.status.conditions, "Released")
    return found is not None and found.status == "True" and found.observed_generation == request.generation


def _without(paths: tuple[str, ...], settled: frozenset[str]) -> tuple[str, ...]:
    """Paths that a repair can put right."""
    return tuple(path for path in paths if path not in settled)


def _among(paths: tuple[str, ...], settled: frozenset[str]) -> tuple[str, ...]:
    """Paths where a repair has had no effect."""
    return tuple(path for path in paths if path in settled)


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
