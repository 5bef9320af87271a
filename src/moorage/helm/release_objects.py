"""The objects of a release as they are live, and the hooks that a run of helm stands at.

Each is judged by what is watched: is it there, is it as helm applied it, is it well. What a judgement needs beyond that
is a live look (`live_looks`): drift is told only once a read has confirmed it, and that an object is missing only once
a read has not found it either. It remembers what has been compared, by the versions of object and record.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from moorage.api import builtin, comparison, meta
from moorage.children import diagnosis, health, object_events
from moorage.kube.informers import informer
from moorage.runtime import freshness, kind, tasks

from . import live_looks, observation, operations, release_sources, release_watches
from .release_request import Request
from .runs import failures

_JOB_NAME = "batch.kubernetes.io/job-name"

_Watched: TypeAlias = dict[tuple[str, str], informer.Informer[Any] | None]
"""By (apiVersion, kind)."""


class Objects:
    """Those of all releases of one engine."""

    def __init__(self, world: kind.World, sources: release_sources.Lookups, runs: operations.Operations) -> None:
        self._world, self._sources, self._operations = world, sources, runs
        self._compared: dict[meta.ObjectRef, tuple[str, str, tuple[str, ...]]] = {}
        self._named: dict[Hashable, frozenset[meta.ObjectRef]] = {}  # of which objects each has something remembered
        self._hooks: dict[Hashable, list[meta.ObjectRef]] = {}  # of the run that is at work, by its record so far

    def seen(
        self,
        request: Request,
        view: release_watches.NamespaceView | None,
        key: release_sources.RecordKey | None,
        loaded: freshness.Observed[release_sources.Loaded | None],
        around: live_looks.Around,
    ) -> freshness.Observed[tuple[observation.ChildSeen, ...]]:
        """Each object that the record names: first all are asked for, then, once all are there, each is judged."""
        if view is None or isinstance(loaded, freshness.Failed):
            return freshness.not_yet("objects")
        if loaded.value is None or key is None:
            self.remember(request.key, ())
            return freshness.Fresh(())
        items = [item.ref for item in loaded.value.seen.inventory if not item.hook]
        self.remember(request.key, items)
        watched = self._watched(request, view, items)
        if isinstance(watched, freshness.Failed):
            return watched
        looks = live_looks.Looks(self._sources, request, key, loaded.value, around)
        found = [self._child(looks, view, ref, watched[ref.api_version, ref.kind]) for ref in items]
        looks.done()
        children = tuple(child for child in found if child is not None)
        return freshness.Fresh(children) if len(children) == len(found) else freshness.not_yet("objects")

    def _watched(
        self, request: Request, view: release_watches.NamespaceView, items: Sequence[meta.ObjectRef]
    ) -> _Watched | freshness.Failed:
        """The watch of each kind among the objects, None for one that is not served; Failed while one is not filled."""
        informers: _Watched = {}
        missing: freshness.Failed | None = None
        for kind_key in {(ref.api_version, ref.kind) for ref in items}:  # all are asked for before any is waited for
            resource = self._sources.kinds.read(kind_key, request.key)
            if isinstance(resource, freshness.Failed):
                if resource.transient:
                    missing = resource
                informers[kind_key] = None
                continue
            informers[kind_key] = cache = view.children(resource.value)
            if cache.unserved:
                self._sources.kinds.refresh(kind_key)
            if not cache.synced:
                missing = freshness.unsynced(cache.error, f"{kind_key[1]} objects")
        if missing is None and not view.pods.synced:
            missing = freshness.unsynced(view.pods.error, "pods")
        return informers if missing is None else missing

    def forget(self, key: Hashable) -> None:
        """Nothing of that release is kept."""
        self.remember(key, ())
        self._hooks.pop(key, None)

    def remember(self, key: Hashable, refs: Iterable[meta.ObjectRef]) -> None:
        """These objects alone: what is kept of others goes."""
        named = frozenset(refs)
        for ref in self._named.pop(key, frozenset()) - named:
            self._compared.pop(ref, None)
            self._operations.forget(ref)
        if named:
            self._named[key] = named

    def _child(
        self,
        looks: live_looks.Looks,
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
        settled = self._operations.settled.get(ref, frozenset())
        if resource == builtin.SECRET:
            found = looks.confirm(ref, resource, live.metadata.resource_version)
            here = not live.metadata.deleting
            return observation.ChildSeen(ref, here, drift=_without(found, settled), yielded=_among(found, settled))
        version = str(live["metadata"].get("resourceVersion", ""))
        differs = self._differences(looks, ref, live, version)
        confirmed = looks.confirm(ref, resource, version) if _without(differs, settled) else ()
        child = observation.ChildSeen(
            ref,
            True,
            drift=_without(confirmed, settled),
            refusal=self._refusal(looks, ref, version),
            yielded=_among(differs, settled),
        )
        trouble = self._trouble(looks, view, ref, live)
        if trouble is None:
            return child
        return msgspec.structs.replace(
            child, ready=False, reason=trouble.reason, message=trouble.message, fix=trouble.fix
        )

    @staticmethod
    def _trouble(
        looks: live_looks.Looks, view: release_watches.NamespaceView, ref: meta.ObjectRef, live: dict[str, Any]
    ) -> health.Health | None:
        """What is wrong with an object that is not well, with what its pods have said where that may be told."""
        mine = looks.around.speak(diagnosis.pods_of(live, view.pods.items(ref.namespace)))
        body = looks.around.speak([live])[0] if ref.kind == "Pod" else live
        if health.health(body, mine).ok:
            return None
        there = looks.around.look()
        judged = health.health(body, mine, there.events, claims=there.claims)
        if judged.ok:
            return None
        if judged.wants_log and (last := looks.last_words(view, *judged.wants_log, previous=judged.previous)):
            return msgspec.structs.replace(judged, message=f"{judged.message}; {last}")
        return judged

    def _unseen(
        self, looks: live_looks.Looks, ref: meta.ObjectRef, resource: meta.Resource
    ) -> observation.ChildSeen | None:
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

    def hooks(
        self,
        request: Request,
        view: release_watches.NamespaceView | None,
        loaded: freshness.Observed[release_sources.Loaded | None],
        around: live_looks.Around,
    ) -> tuple[observation.HookSeen, ...]:
        """The hooks that a run of helm stands at, by their pods, and what is wrong there."""
        if not isinstance(self._world.tasks.state(request.target.lane), tasks.Running):
            self._hooks.pop(request.key, None)
            return ()
        if (record := freshness.value_of(loaded)) is not None:
            named = [item.ref for item in record.seen.inventory if item.hook and item.ref.kind in ("Job", "Pod")]
            self._hooks[request.key] = named
        hooks = self._hooks.get(request.key)  # helm writes the record at its end, which is then to be read anew
        if not hooks or view is None or not view.pods.synced:
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

    def _refusal(self, looks: live_looks.Looks, ref: meta.ObjectRef, version: str) -> str:
        """Why the repair of this state of the object is not tried again."""
        given_up = self._operations.given_up.get(ref)
        if given_up is None or time.monotonic() >= given_up.until:
            return ""
        same = (given_up.version, given_up.record) == (version, looks.key.resource_version)
        return given_up.words if same else ""

    def _differences(
        self, looks: live_looks.Looks, ref: meta.ObjectRef, live: dict[str, Any], version: str
    ) -> tuple[str, ...]:
        """What differs as the watch has it; compared once per state of object and record, none until that is done."""
        before = self._compared.get(ref)
        states = (version, looks.key.resource_version)
        if before is not None and before[:2] == states:
            return before[2]
        found = looks.compare(ref, live, version)
        if found is not None:
            self._compared[ref] = (*states, found)
        return found or ()


def _created(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"].get("creationTimestamp") or "")


def _is_of_hook(pod: Mapping[str, Any], hook: meta.ObjectRef) -> bool:
    """A hook is a Pod, or a Job, whose pods bear its name."""
    labels = pod["metadata"].get("labels") or {}
    return bool(hook.name == (pod["metadata"]["name"] if hook.kind == "Pod" else labels.get(_JOB_NAME)))


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


def _without(paths: tuple[str, ...], settled: frozenset[str]) -> tuple[str, ...]:
    """Paths that a repair can put right."""
    return tuple(path for path in paths if path not in settled)


def _among(paths: tuple[str, ...], settled: frozenset[str]) -> tuple[str, ...]:
    """Paths where a repair has had no effect."""
    return tuple(path for path in paths if path in settled)
