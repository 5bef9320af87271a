"""Live looks for one pass over a release, beyond what is watched: asked for only where something is wrong.

A look is asked of a source; its answer is there in a later pass, which its news brings about. What was not asked for
in a pass is forgotten at its end (`done`), so that the same question gets a fresh answer the next time. They write
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from moorage.api import meta
from moorage.children import health, object_events, pod_trouble
from moorage.runtime import freshness

from . import release_sources, release_watches
from .parsing import helm_yaml
from .release import drift
from .release_request import Request

COMPARED_IN_PLACE = 5_000  # keys and values in one pass; what is more is compared by a source


class Looks:
    """Live looks for one pass over a release: what confirms drift, and the last words of containers."""

    def __init__(
        self,
        sources: release_sources.Lookups,
        request: Request,
        key: release_sources.RecordKey,
        loaded: release_sources.Loaded,
        around: Around,
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


class Around:
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
