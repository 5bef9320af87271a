"""The watches of each namespace that holds objects of a system: opened with the first reader, closed after the last.

Rights come per namespace, so the watches do as well. A system says what is watched by a subclass of `View`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from moorage.api import meta
from moorage.kube.informers import informer

from . import kind


class View:
    """What is watched in one namespace, and for whom. Every change there enqueues all readers."""

    def __init__(self, world: kind.World, namespace: str, user: str = "") -> None:
        """`user`: whose rights all is read with; empty is the operator's own."""
        self._world, self.namespace, self._user = world, namespace, user
        self.readers: set[Hashable] = set()
        self._opened: list[informer.Informer[Any]] = []
        self._unsubscribe: list[Callable[[], None]] = []
        self._waiting: set[asyncio.Task[None]] = set()

    def open(self, resource: meta.Resource, model: type[Any], **scope: Any) -> informer.Informer[Any]:
        """One more watch in this namespace; `scope` as for `Informers.watch`."""
        cache = self._world.informers.watch(resource, model, namespace=self.namespace, user=self._user, **scope)
        self._unsubscribe.append(cache.subscribe(self._on_change))
        self._opened.append(cache)
        task = asyncio.get_running_loop().create_task(self._announce(cache))
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)
        return cache

    def drop(self, cache: informer.Informer[Any]) -> None:
        """Give one watch back, as what it watches is no longer served."""
        self._opened.remove(cache)
        task = asyncio.get_running_loop().create_task(self._world.informers.release(cache))
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    @property
    def unsynced(self) -> list[informer.Informer[Any]]:
        """Watches whose first list is not in yet."""
        return [cache for cache in self._opened if not cache.synced]

    async def close(self) -> None:
        """Give all watches back."""
        for waiting in self._waiting:
            waiting.cancel()
        for unsubscribe in self._unsubscribe:
            unsubscribe()  # others may go on reading the same watch
        for cache in self._opened:
            await self._world.informers.release(cache)

    def wake(self, *, backlog: bool = False) -> None:
        """Enqueue all readers."""
        for reader in tuple(self.readers):
            self._world.enqueue(reader, backlog=backlog)

    async def _announce(self, cache: informer.Informer[Any]) -> None:
        """An empty first list is news too."""
        await cache.wait_synced(timeout=None)
        self.wake()

    def _on_change(self, change: informer.Change[Any]) -> None:
        self.wake(backlog=change.initial)


V = TypeVar("V", bound=View)


class Watches(Generic[V]):
    """All namespaces that are watched now."""

    def __init__(self, make: Callable[[str], V]) -> None:
        self._make = make
        self._views: dict[str, V] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def enter(self, namespace: str, reader: Hashable) -> V:
        """The view of the namespace; `reader` is enqueued on every change in it."""
        view = self._views.get(namespace)
        if view is None:
            view = self._views[namespace] = self._make(namespace)
        view.readers.add(reader)
        return view

    def peek(self, namespace: str) -> V | None:
        """The view of the namespace, if anybody reads there."""
        return self._views.get(namespace)

    def leave(self, reader: Hashable) -> None:
        """`reader` needs no namespace any more."""
        for namespace, view in tuple(self._views.items()):
            view.readers.discard(reader)
            if not view.readers:
                del self._views[namespace]
                task = asyncio.get_running_loop().create_task(view.close())
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)

    async def stop(self) -> None:
        """Close everything."""
        for view in self._views.values():
            await view.close()
        self._views.clear()
