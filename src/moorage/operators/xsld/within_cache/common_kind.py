"""What DataGrids and GridTemplates do alike as kinds: find their cache, and read what its kind watches and polls.

They write nothing by that.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from moorage.kube.informers import informer
from moorage.operators.xsld import config, names
from moorage.operators.xsld.cache import kind as cache_kind
from moorage.operators.xsld.cache import types as cache_types
from moorage.operators.xsld.group import answers
from moorage.runtime import decision, freshness, kind

from . import common_steps, common_types


class _Spec(Protocol):
    @property
    def cache_ref(self) -> common_types.CacheRef | None:
        """Which cache; None: the only one of the namespace."""


class Dependent(kind.Reconciled, Protocol):
    """An object that lives in a cache's group."""

    @property
    def spec(self) -> _Spec:
        """What the user wants."""

    @property
    def server_name(self) -> str:
        """Its name on the server."""

    @property
    def holder(self) -> str:
        """The cache that it was made in; empty: none yet."""


def rivals(one: Dependent, other: Dependent) -> bool:
    """Whether two of a kind mean the same on the server, if they mean the same cache."""
    (place, name), (others, other_name) = one.metadata.key, other.metadata.key
    return place == others and name != other_name and one.server_name == other.server_name


def _age(obj: Dependent) -> tuple[str, str]:
    return obj.metadata.creation_timestamp, obj.metadata.name


O = TypeVar("O", bound=Dependent)  # noqa: E741 - the object
S = TypeVar("S", bound=common_steps.Seen)
Caches = freshness.Observed[tuple[common_steps.CacheSeen, ...]]


class DependentKind(kind.Kind[O, S]):
    """Starts after the caches' kind, whose watches and polls it reads."""

    _world: kind.World

    def __init__(self, settings: config.Config, caches: cache_kind.CacheKind) -> None:
        self._settings, self._caches, self.resync = settings, caches, settings.resync_seconds

    async def start(self, world: kind.World) -> None:
        """See `Kind.start`."""
        self._world = world
        for cache in self._caches.informers:
            cache.subscribe(self._on_cache)
        for own in self.informers:
            own.subscribe(self._on_own)

    def user(self, obj: O) -> str:
        """The account of its namespace, as for its cache."""
        return self._caches.rights.user(obj.metadata.namespace)

    def lane(self, obj: O) -> str:
        """That of the group."""
        cache = self._the_cache(obj)
        return names.lane(*cache.metadata.key) if cache else ""

    def placement(self, obj: O) -> str:
        """That of its cache, whichever it is: both are in one namespace."""
        return names.placement(obj.metadata.namespace)

    def forget(self, namespace: str, name: str) -> None:
        """See `Kind.forget`."""
        self._caches.groups.leave(self.key(namespace, name))

    def _meant(self, obj: O) -> list[cache_types.XsldCache]:
        """Those that may be meant; what is deleted means the one that it was made in, whatever its spec names."""
        held = common_types.CacheRef(obj.holder) if obj.metadata.deleting and obj.holder else None
        return self._caches.meant(obj.metadata.namespace, held or obj.spec.cache_ref)

    def _others(self, obj: O) -> tuple[str, ...]:
        """The names of all caches that it could name."""
        return tuple(sorted(cache.metadata.name for cache in self._caches.meant(obj.metadata.namespace, None)))

    def _held(self, obj: O) -> str:
        """The cache that it was made in, if that is still there."""
        found = self._caches.meant(obj.metadata.namespace, common_types.CacheRef(obj.holder)) if obj.holder else []
        return obj.holder if found else ""

    def _elsewhere(self, obj: O) -> str:
        """The cache that it was made in, if that is still there and the spec names another."""
        ref = obj.spec.cache_ref
        if obj.metadata.deleting or ref is None or obj.holder == ref.name:
            return ""
        return self._held(obj)

    def _place(self, obj: O) -> str:
        """The cache in which its name is its own: where it is, or is to be; empty: that is not clear."""
        found = self._meant(obj)
        return self._held(obj) or (found[0].metadata.name if len(found) == 1 else "")

    def _older(self, obj: O) -> str:
        """Who was there before it and means the same on the server."""
        here = [it for it in self.items() if rivals(obj, it) and _age(it) < _age(obj)]
        place = self._place(obj) if here else ""
        return next((it.metadata.name for it in sorted(here, key=_age) if place and self._place(it) == place), "")

    def _taken(self, obj: O) -> decision.Conflict | None:
        """Why nothing may be asked of the server for it, right before that."""
        older = self._older(obj)
        return decision.Conflict(f"{older} means the same, and is older") if older else None

    def _the_cache(self, obj: O) -> cache_types.XsldCache | None:
        """The one that is meant, if that is clear."""
        found = self._meant(obj)
        return found[0] if len(found) == 1 and not self._elsewhere(obj) else None

    def _told(self, obj: O) -> tuple[Caches, freshness.Observed[answers.Polled]]:
        """The caches that may be meant, and what the group of the one tells."""
        found, key, polls = self._meant(obj), self.key(*obj.metadata.key), self._caches.groups.polls
        cache = self._the_cache(obj)
        if cache is None:
            return self._caches.seen(found), freshness.not_yet("group")
        place = cache.metadata.key
        return self._caches.seen(found), polls.follow(place, key)

    def _on_own(self, change: informer.Change[O]) -> None:
        """Who means the same may have to wait, or go on."""
        old, new = change.old, change.new
        found = new or old
        if found is None:
            return
        if old and new and (old.spec, old.metadata.deleting) == (new.spec, new.metadata.deleting):
            return
        for obj in self.items():
            if rivals(found, obj):
                self._world.enqueue(self.key(*obj.metadata.key))

    def _on_cache(self, change: informer.Change[cache_types.XsldCache]) -> None:
        found = change.new or change.old
        for obj in self.items():
            if found is not None and obj.metadata.namespace == found.metadata.namespace:
                self._world.enqueue(self.key(*obj.metadata.key))
