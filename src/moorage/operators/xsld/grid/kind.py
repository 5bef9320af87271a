"""The DataGrid as the runtime runs it. It reads what the caches' kind knows of groups, and asks the group's primary."""

from __future__ import annotations

from typing import Any

from moorage.operators.xsld import names
from moorage.operators.xsld.within_cache import common_kind
from moorage.runtime import decision, kind

from . import control, settings, types


class GridKind(common_kind.DependentKind[types.DataGrid, control.Seen]):
    """DataGrids."""

    resource = names.GRID
    model = types.DataGrid
    finalizer = names.GRID_FINALIZER
    ready_facts = control.READY_FACTS
    steps = control.STEPS
    deletion_steps = control.DELETION_STEPS
    facts = control.FACTS

    async def start(self, world: kind.World) -> None:
        """See `Kind.start`."""
        self.operations = {"ask": self._ask}
        self.guards = {"grid_is_gone": self._grid_is_gone}
        await super().start(world)

    def observe(self, obj: types.DataGrid, now: float) -> control.Seen:
        """See `Kind.observe`."""
        caches, polled = self._told(obj)
        return control.Seen(
            meta=obj.metadata.without_last_applied(),
            spec=obj.spec,
            status=obj.status,
            now=now,
            limits=self._settings.retry,
            busy=self._settings.poll.busy_seconds,
            said=self._settings.dialect,
            grid_name=obj.server_name,
            caches=caches,
            others=self._others(obj),
            elsewhere=self._elsewhere(obj),
            older=self._older(obj),
            polled=polled,
            unsent=self._caches.groups.unsent(self.key(*obj.metadata.key)),
        )

    def report(self, seen: control.Seen, _: decision.StepTaken | None) -> dict[str, Any]:
        """See `Kind.report`."""
        return control.report(seen)

    # --- what is done to the group ---------------------------------------------------------------------------------

    async def _ask(self, obj: types.DataGrid, args: dict[str, Any]) -> decision.Outcome:
        methods = {control.CREATE: "POST", control.UPDATE: "PUT", control.DELETE: "DELETE"}
        method, groups, cache = methods[str(args["what"])], self._caches.groups, self._the_cache(obj)
        if cache is None:
            return decision.Conflict("the cache is no longer clear")
        if taken := self._taken(obj):
            return taken
        body = None if method == "DELETE" else settings.body(obj.spec)
        path = self._settings.dialect.paths.grid.format(name=obj.server_name)

        async def send() -> decision.Outcome:
            answer = await groups.ask_primary(cache, method, path, body)
            return decision.Ok({"taskId": groups.number(answer)})

        def refused(words: str) -> decision.Outcome:
            said = {"asked": "", "refused": words, "refusedGeneration": obj.metadata.generation}
            return decision.Ok(said)

        return await groups.attempt(self.key(*obj.metadata.key), send(), refused)

    async def _grid_is_gone(self, obj: types.DataGrid, args: dict[str, Any]) -> str:
        found = self._meant(obj)
        if len(found) != 1:
            return "" if not found else "the cache is no longer clear"
        polled = await self._caches.groups.look(found[0].metadata.key)
        if polled.grids is None:
            return "nobody tells of the grids"
        return "the grid is there" if any(grid.name == args["grid"] for grid in polled.grids) else ""
