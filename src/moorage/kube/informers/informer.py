"""Informers: what the API server has, kept by watches, and never older than one's own last write.

An `Informer` observes one collection through a `reflector.Reflector`; `replica` holds the rules by which it stays true.
What can go wrong is told by `error` and `healthy`; meanwhile the informer serves what it last knew.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Generic, TypeVar

import msgspec
import structlog

from moorage.api.meta import Resource
from moorage.kube import client as kube_client
from moorage.kube import codec, errors

from . import compressed, reflector, replica, selectors, store, time_slices
from .cached_object import Key, meta_of
from .replica import Change

__all__ = ["Change", "Informer", "Informers", "Own", "meta_of"]

T = TypeVar("T")
log = structlog.get_logger(__name__)


class Informer(Generic[T]):
    """The objects of one scope as `model`. Made by `Informers.watch`; reads are plain lookups."""

    def __init__(
        self,
        client: kube_client.Client,
        scope: reflector.Scope,
        model: type[T],
        *,
        pace: reflector.Pace | None = None,
        stale_after: float = 0.0,
        cold: bool = False,
    ) -> None:
        """`stale_after` seconds without a sign of life make it unhealthy; 0 = twice the idle limit of a watch.

        A `cold` one keeps compressed bytes and decodes at each read: for many large objects that are seldom looked at.
        """
        self.scope = scope
        self.model = model
        self.cold = cold
        self.error = ""  # the last trouble, "" since all is well again
        self.unserved = False  # the trouble is that the server does not know the resource
        self.last_contact = 0.0  # monotonic seconds; 0 = never
        self._pace = pace or reflector.Pace()
        self.stale_after = stale_after or 2 * self._pace.idle
        self._replica: replica.Replica[T] = replica.Replica(
            self._tell,
            namespace=scope.namespace,
            labels=scope.labels,
            name=scope.name,
            entry=compressed.Packer(model).entry if cold else store.Held,
        )
        self.event = self._replica.event  # see `reflector.Sink`
        self._objects = self._replica.objects
        if not cold:
            self._objects.index("owner", store.owner_uids)
        self._reflector = reflector.Reflector(client, scope, model, self, pace=self._pace)
        self._subscribers: tuple[Callable[[Change[T]], None], ...] = ()
        self._synced = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    # reading

    def get(self, namespace: str, name: str) -> T | None:
        """The object, or None. Raises MalformedAnswer when it exists but does not fit the model."""
        key = (namespace, name)
        if key in self._replica.unreadable:
            where = "/".join(filter(None, key))
            why = self._replica.unreadable[key]
            raise errors.MalformedAnswer(f"cached {self.scope.resource.group_kind} {where}: {why}")
        entry = self._objects.get(key)
        return entry.obj if entry else None

    def items(self, namespace: str = "") -> list[T]:
        """All objects, or those of one namespace, in no particular order."""
        return self._objects.objects(namespace)

    def owned_by(self, uid: str) -> list[T]:
        """The objects with an owner reference to that uid. The first call on a cold cache walks it whole."""
        if self.cold:
            self._objects.index("owner", store.owner_uids)
        return self._objects.by("owner", uid)

    def index(self, name: str, indexer: Callable[[T], Iterable[str]]) -> None:
        """Keep an index by what `indexer` returns for each object; see `by`."""
        self._objects.index(name, indexer)

    def by(self, name: str, value: str) -> list[T]:
        """The objects that an index files under `value`. Raises KeyError for an unknown index."""
        return self._objects.by(name, value)

    def subscribe(self, fn: Callable[[Change[T]], None]) -> Callable[[], None]:
        """Call `fn` on each change, from the event loop, in order; what is there already comes first, as initial.

        Echoes of own writes are not told (see `writing`). Returns the function that ends it.
        """
        self._subscribers += (fn,)
        for obj in self._objects.objects():
            self._tell(Change(None, obj, initial=True), (fn,))
        return functools.partial(self._unsubscribe, fn)

    def _unsubscribe(self, fn: Callable[[Change[T]], None]) -> None:
        left = list(self._subscribers)
        left.remove(fn)
        self._subscribers = tuple(left)

    def writing(self, namespace: str, name: str, *, by: Hashable = None) -> Own[T]:
        """Announce a write to one object: `async with cache.writing(ns, name) as own: ...; own.took(answer)`.

        Without `by` nobody is told of the write. With it all subscribers are, and know its author by `Change.by`, so
        that other controllers learn of it and the author's own can leave it out.
        """
        return Own(self._replica, self.model, (namespace, name), by)

    # health

    @property
    def synced(self) -> bool:
        """True once the first list is in."""
        return self._synced.is_set()

    @property
    def healthy(self) -> bool:
        """True when the first list is in, nothing is in trouble, and the server was heard of lately."""
        return self.synced and not self.error and self._pace.clock() - self.last_contact <= self.stale_after

    @property
    def unreadable(self) -> Mapping[Key, str]:
        """Objects that exist but do not fit the model, and why."""
        return self._replica.unreadable

    async def wait_synced(self, timeout: float | None = None) -> None:
        """Return once the first list is in. Raises TransportError after `timeout` seconds."""
        try:
            async with asyncio.timeout(timeout):
                await self._synced.wait()
        except TimeoutError as error:
            why = self.error or "the server has not answered yet"
            raise errors.TransportError(f"{self.scope} not listed within {timeout} s: {why}", sent=False) from error

    # life

    def start(self) -> None:
        """Spawn the watch; needs a running event loop."""
        if self._task is None:
            self._task = asyncio.create_task(self._reflector.run(), name=f"watch {self.scope}")
            self._task.add_done_callback(self._ended)

    async def stop(self) -> None:
        """End the watch. What is stored can still be read."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (bug := task.exception()) is not None:
            self.error = f"the watch crashed: {bug!r}"
            log.error("watch crashed", watch=str(self.scope), exc_info=bug)

    # what the reflector delivers (reflector.Sink)

    def listing(self) -> None:
        """See `reflector.Sink`."""
        self._replica.listing()

    async def listed(self, version: str) -> None:
        """See `reflector.Sink`."""
        self._replica.listed(version)
        pause = time_slices.Slices(self._pace.slice)
        for _ in self._replica.tell():
            if pause.over:
                await pause.rest()
        if self.unreadable:
            log.warning("objects do not fit their model", watch=str(self.scope), count=len(self.unreadable))
        self._synced.set()

    def contact(self) -> None:
        """See `reflector.Sink`."""
        self.last_contact = self._pace.clock()
        self.unserved = False
        if self.error:
            self.error = ""
            log.info("watch healed", watch=str(self.scope))

    def trouble(self, error: errors.KubeError) -> None:
        """See `reflector.Sink`."""
        if not self.error:
            log.warning("watch in trouble", watch=str(self.scope), error=str(error))
        self.error, self.unserved = str(error), isinstance(error, errors.NotFound)

    def _tell(self, change: Change[T], only: tuple[Callable[[Change[T]], None], ...] | None = None) -> None:
        for fn in self._subscribers if only is None else only:
            try:
                fn(change)
            except Exception:
                log.exception("subscriber failed", watch=str(self.scope))


class Own(Generic[T]):
    """One write in flight. When it ends without a result its outcome is unknown, and the watch will tell."""

    def __init__(self, kept: replica.Replica[T], model: type[T], key: Key, by: Hashable) -> None:
        self._replica = kept
        self._model = model
        self._key = key
        self._by = by

    async def __aenter__(self) -> Own[T]:
        self._replica.hold(self._key)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._replica.release(self._key)

    def took(self, obj: T | msgspec.Raw) -> None:
        """The server's answer; raw bytes are decoded as the cache's model."""
        if isinstance(obj, msgspec.Raw):
            obj = codec.decode(obj, self._model)
        self._replica.took(obj, self._by)

    def gone(self) -> None:
        """The object no longer exists. If finalizers keep it after all, the watch brings it back as deleting."""
        self._replica.buried(self._key, self._by)

    def deleted(self, deletion: kube_client.Deletion) -> None:
        """The answer to a delete: gone, or still there and marked as deleting."""
        if deletion.gone:
            self.gone()
        else:
            self.took(msgspec.Raw(deletion.answer))


class Informers:
    """All watches of a process: one per resource, namespace, selector, model, tier and user, shared by who asks so."""

    def __init__(self, client: kube_client.Client, *, pace: reflector.Pace | None = None) -> None:
        self._client = client
        self._pace = pace
        self._informers: dict[tuple[reflector.Scope, Any, bool], Informer[Any]] = {}
        self._users: dict[Informer[Any], int] = {}

    def watch(
        self,
        resource: Resource,
        model: type[T],
        *,
        namespace: str = "",
        labels: str = "",
        name: str = "",
        metadata_only: bool = False,
        cold: bool = False,
        user: str = "",
    ) -> Informer[T]:
        """A running cache, read with the rights of `user`, or one's own; `release` it when done.

        Raises ValueError for a malformed selector.
        """
        selectors.matches(labels, {})
        scope = reflector.Scope(resource, namespace, labels, name, metadata_only, user)
        cache: Informer[T] | None = self._informers.get((scope, model, cold))
        if cache is None:
            cache = Informer(self._client.as_(user), scope, model, pace=self._pace, cold=cold)
            self._informers[scope, model, cold] = cache
            cache.start()
        self._users[cache] = self._users.get(cache, 0) + 1
        return cache

    async def release(self, cache: Informer[Any]) -> None:
        """Give a cache back; the last user's return ends its watch. After `stop` it has ended already."""
        if cache not in self._users:
            return
        self._users[cache] -= 1
        if not self._users[cache]:
            del self._users[cache]
            del self._informers[cache.scope, cache.model, cache.cold]
            await cache.stop()

    def of(self, resource: Resource, namespace: str = "", *, model: Any = None) -> Informer[Any]:
        """The fullest running cache that covers the namespace, or the one of that model. Raises NotWatched."""
        found = [cache for cache in self.covering(resource, namespace) if model in (None, cache.model)]
        if not found:
            where = namespace or "all namespaces"
            raise errors.NotWatched(f"{resource.group_kind} in {where} is not watched; declare it as a source")
        return min(found, key=_thinness)

    def covering(self, resource: Resource, namespace: str) -> list[Informer[Any]]:
        """All caches in which an object of that namespace may be."""
        scopes = ("", namespace)
        return [c for c in self._informers.values() if c.scope.resource == resource and c.scope.namespace in scopes]

    def all(self) -> list[Informer[Any]]:
        """Every running cache."""
        return list(self._informers.values())

    def healthy(self) -> list[str]:
        """The names of watches that are not healthy; empty when all is well."""
        return [str(cache.scope) for cache in self._informers.values() if not cache.healthy]

    async def stop(self) -> None:
        """End all watches."""
        informers = self.all()
        self._informers.clear()
        self._users.clear()
        await asyncio.gather(*(cache.stop() for cache in informers))


def _thinness(cache: Informer[Any]) -> tuple[bool, ...]:
    scope = cache.scope
    return scope.metadata_only, bool(scope.labels or scope.name), cache.cold, cache.model is dict, not scope.namespace
