"""What lies around owned objects and is not watched: a namespace's warnings, what classes allow, which kinds there are.

It reads on demand and by the clock, and writes nothing. Where it may not read it tells of nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import msgspec

from moorage.api import builtin, meta
from moorage.children import pod_trouble
from moorage.kube import client as kube_client
from moorage.kube import codec, errors
from moorage.runtime import freshness, kind, source

EVERY = 30.0
"""Seconds between looks."""

MAX_WARNINGS = 1000
"""Of one namespace; of more, the rest is not looked at."""


class _Named(msgspec.Struct, frozen=True):
    name: str = ""


class _Served(msgspec.Struct, frozen=True):
    resources: tuple[_Named, ...] = ()


class Surroundings:
    """The sources of a kind. `within` gives what acts in a namespace and nowhere else."""

    def __init__(self, world: kind.World, within: Callable[[str], kube_client.Client]) -> None:
        self._world, self._within = world, within
        self.classes = source.Source[str, bool](
            "storage class", self._expandable, world.enqueue, every=EVERY, concurrency=4
        )
        self.warnings = source.Source[str, tuple[dict[str, Any], ...]](
            "events", self._warnings, world.enqueue, every=EVERY, concurrency=4
        )
        self.kinds = source.Source[meta.Resource, bool](
            "kinds that are served", self._is_served, world.enqueue, every=EVERY, concurrency=4
        )

    @property
    def all(self) -> tuple[source.Source[Any, Any], ...]:
        """To be stopped, and to be told who is gone."""
        return self.classes, self.warnings, self.kinds

    def warnings_about(
        self, pods: Sequence[dict[str, Any]], wanted: int, namespace: str, reader: Hashable
    ) -> tuple[dict[str, Any], ...]:
        """The namespace's warnings, asked for while one of so many pods is missing or not ready, and else forgotten."""
        if len(pods) >= wanted and all(pod_trouble.ready(pod) for pod in pods):
            self.warnings.forget(reader)
            return ()
        return freshness.value_of(self.warnings.follow(namespace, reader)) or ()

    async def _is_served(self, resource: meta.Resource) -> bool:
        """Whether the API server knows a kind that comes by a definition: it says so to everybody."""
        path = f"/apis/{resource.api_version}"
        try:
            answer = await self._world.client.raw("GET", path)
        except errors.NotFound:
            return False
        found = codec.decode(answer.body, _Served, f"get {path}")
        return resource.plural in {each.name for each in found.resources}

    async def _expandable(self, name: str) -> bool:
        if not name:
            return False
        try:
            found = await self._world.client.get(builtin.STORAGE_CLASS, "", name)
        except errors.NotFound:
            return False
        return found.get("allowVolumeExpansion") is True

    async def _warnings(self, namespace: str) -> tuple[dict[str, Any], ...]:
        """Warnings of a namespace, the first so many; none where they may not be read."""
        found: list[dict[str, Any]] = []
        with contextlib.suppress(errors.Forbidden):
            async for page in self._within(namespace).pages(builtin.EVENT, namespace, fields="type=Warning", limit=100):
                found = [*([] if page.first else found), *page.items]
                if len(found) >= MAX_WARNINGS:
                    break
        return tuple(found)
