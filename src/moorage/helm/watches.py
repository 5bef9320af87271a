"""The watches of each namespace that holds releases: opened with the first owner there, closed after the last.

Claims and release records are always watched there (records by their metadata alone), pods too; the kinds of a
release's objects as its inventory names them. Secrets are only ever watched by their metadata. Rights come per
namespace, so the watches do as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Any

from moorage.api import kinds, meta
from moorage.kube import cache as kube_cache
from moorage.runtime import kind

from . import claim, records

CHILDREN = "app.kubernetes.io/managed-by=Helm"


class NamespaceView:
    """What is watched in one namespace, and for whom."""

    def __init__(self, world: kind.World, namespace: str) -> None:
        self._world, self.namespace = world, namespace
        self.readers: set[Hashable] = set()
        self._opened: list[kube_cache.Cache[Any]] = []
        self._waiting: set[asyncio.Task[None]] = set()
        self._kinds: dict[meta.Resource, kube_cache.Cache[Any]] = {}
        self.claims = self._open(kinds.CONFIG_MAP, claim.ClaimObject, labels=claim.SELECTOR)
        self.records = self._open(kinds.SECRET, meta.Partial, labels=records.SELECTOR, metadata_only=True)
        self.pods: kube_cache.Cache[dict[str, Any]] = self._open(kinds.POD, dict)

    def children(self, resource: meta.Resource) -> kube_cache.Cache[Any]:
        """The release objects of one kind: whole, but Secrets by metadata."""
        cache = self._kinds.get(resource)
        if cache is None:
            secret = resource == kinds.SECRET
            cache = self._open(resource, meta.Partial if secret else dict, labels=CHILDREN, metadata_only=secret)
            self._kinds[resource] = cache
        return cache

    async def close(self) -> None:
        """Give all watches back."""
        for waiting in self._waiting:
            waiting.cancel()
        for cache in self._opened:
            await self._world.caches.release(cache)

    def _open(self, resource: meta.Resource, model: type[Any], **scope: Any) -> kube_cache.Cache[Any]:
        cache = self._world.caches.watch(resource, model, namespace=self.namespace, **scope)
        cache.subscribe(self._on_change)
        self._opened.append(cache)
        task = asyncio.get_running_loop().create_task(self._announce(cache))
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)
        return cache

    async def _announce(self, cache: kube_cache.Cache[Any]) -> None:
        """An empty first list is news too."""
        await cache.wait_synced(timeout=None)
        self._wake()

    def _on_change(self, _: kube_cache.Change[Any]) -> None:
        self._wake()

    def _wake(self) -> None:
        for reader in tuple(self.readers):
            self._world.enqueue(reader)


class Watches:
    """All namespaces that are watched now."""

    def __init__(self, world: kind.World) -> None:
        self._world = world
        self._views: dict[str, NamespaceView] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def enter(self, namespace: str, reader: Hashable) -> NamespaceView:
        """The view of the namespace; `reader` is enqueued on every change in it."""
        view = self._views.get(namespace)
        if view is None:
            view = self._views[namespace] = NamespaceView(self._world, namespace)
        view.readers.add(reader)
        return view

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
