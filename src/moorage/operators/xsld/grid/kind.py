"""The DataGrid as the runtime runs it. It reads the hub of the caches' kind, and asks the group's primary."""

from __future__ import annotations

from typing import Any

from moorage.kube import cache as kube_cache
from moorage.operators.xsld import config, names
from moorage.operators.xsld.cache import kind as cache_kind
from moorage.operators.xsld.cache import types as cache_types
from moorage.runtime import decision, kind, observed

from . import control, settings, types


class GridKind(kind.Kind[types.DataGrid, control.Seen]):
    """DataGrids. Starts after the caches' kind, whose watches and polls it reads."""

    resource = names.GRID
    model = types.DataGrid
    finalizer = names.GRID_FINALIZER
    ready_facts = control.READY_FACTS
    steps = control.STEPS
    farewell = control.FAREWELL
    facts = control.FACTS

    def __init__(self, settings_: config.Config, caches: cache_kind.CacheKind) -> None:
        self._settings, self._caches, self.resync = settings_, caches, settings_.resync_seconds

    async def start(self, world: kind.World) -> None:
        """See `Kind.start`."""
        self._world = world
        self.operations = {"ask": self._ask}
        self.guards = {"grid_is_gone": self._grid_is_gone}
        for cache in self._caches.caches:
            cache.subscribe(self._on_cache)

    def lane(self, obj: types.DataGrid) -> str:
        """That of the group."""
        found = self._caches.meant(obj.metadata.namespace, obj.spec.cache_ref)
        return names.lane(*found[0].metadata.key) if len(found) == 1 else ""

    def forget(self, namespace: str, name: str) -> None:
        """See `Kind.forget`."""
        self._caches.hub.polls.forget(self.key(namespace, name))

    def observe(self, obj: types.DataGrid, now: float) -> control.Seen:
        """See `Kind.observe`."""
        found = self._caches.meant(obj.metadata.namespace, obj.spec.cache_ref)
        polled: observed.Observed[Any] = observed.not_yet("group")
        if len(found) == 1:
            place, key = found[0].metadata.key, self.key(*obj.metadata.key)
            polled = self._caches.hub.polls.read(place, key)
            self._caches.hub.polls.forget(key, keep=(place,))
        return control.Seen(
            meta=obj.metadata.without_last_applied(),
            spec=obj.spec,
            status=obj.status,
            now=now,
            limits=self._settings.retry,
            busy=self._settings.poll.busy_seconds,
            said=self._settings.dialect,
            grid_name=obj.grid,
            caches=self._caches.seen(found),
            polled=polled,
        )

    def report(self, seen: control.Seen, _: decision.StepTaken | None) -> dict[str, Any]:
        """See `Kind.report`."""
        return control.report(seen)

    def _on_cache(self, change: kube_cache.Change[cache_types.XsldCache]) -> None:
        found = change.new or change.old
        for obj in self.items():
            if found is not None and obj.metadata.namespace == found.metadata.namespace:
                self._world.enqueue(self.key(*obj.metadata.key))

    # --- what is done to the group ---------------------------------------------------------------------------------

    async def _ask(self, obj: types.DataGrid, args: dict[str, Any]) -> decision.Outcome:
        methods = {control.CREATE: "POST", control.UPDATE: "PUT", control.DELETE: "DELETE"}
        method, hub = methods[str(args["what"])], self._caches.hub
        found = self._caches.meant(obj.metadata.namespace, obj.spec.cache_ref)
        if len(found) != 1:
            return decision.Conflict("the cache is no longer clear")
        cache = found[0]
        body = None if method == "DELETE" else settings.body(obj.spec)
        path = self._settings.dialect.paths.grid.format(name=obj.grid)

        async def send() -> decision.Outcome:
            answer = await hub.ask(cache.metadata.key, cache.status.primary, method, path, body)
            return decision.Ok({"taskId": hub.number(answer)})

        def refused(words: str) -> decision.Outcome:
            said = {"asked": "", "refused": words, "refusedGeneration": obj.metadata.generation}
            return decision.Ok(said)

        return await hub.attempt(send(), refused)

    async def _grid_is_gone(self, obj: types.DataGrid, args: dict[str, Any]) -> str:
        found = self._caches.meant(obj.metadata.namespace, obj.spec.cache_ref)
        if len(found) != 1:
            return "" if not found else "the cache is no longer clear"
        polled = await self._caches.hub.poll(found[0].metadata.key)
        if polled.grids is None:
            return "nobody tells of the grids"
        return "the grid is there" if any(grid.name == args["grid"] for grid in polled.grids) else ""
