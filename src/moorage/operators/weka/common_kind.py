"""What the kinds that are looked after are alike: they stand on what is shared, and are one process's."""

from __future__ import annotations

from moorage.api import conditions
from moorage.runtime import freshness, kind

from . import agents, names, place, shared


class CommonKind(kind.Kind[kind.O, kind.S]):
    """Whichever of them starts first opens what they share."""

    def __init__(self, common: shared.Shared) -> None:
        self._common, self._settings = common, common.settings
        self.resync = common.settings.resync_seconds

    async def stop(self) -> None:
        """See `Kind.stop`."""
        await self._common.close()

    def user(self, obj: kind.O) -> str:
        """The account of its namespace."""
        return self._common.rights.user(obj.metadata.namespace)

    def placement(self, _: kind.O) -> str:
        """All of them are one process's."""
        return names.placement()

    def forget(self, namespace: str, name: str) -> None:
        """See `Kind.forget`."""
        self._common.inside.forget((namespace, name), self.key(namespace, name))
        self._common.neighbours.forget()

    def _enter(self, obj: kind.O) -> agents.View | None:
        """The view of its namespace, where its rights are bound; how it stands decides how often it is asked."""
        common, key = self._common, self.key(*obj.metadata.key)
        found = freshness.value_of(common.places.binding(obj.metadata.namespace))
        if found is None or not found.right:
            common.inside.watches.leave(key)
            return None
        ready = conditions.find(obj.status.conditions, "Ready")
        settled = ready is not None and ready.status == "True" and not obj.metadata.deleting
        common.inside.set_pace(obj.metadata.key, busy=not settled)
        return common.inside.watches.enter(obj.metadata.namespace, key)

    def _placed(self, obj: kind.O, now: float) -> place.Placed:
        """What an observation has of the object and of its place."""
        common, namespace = self._common, obj.metadata.namespace
        return place.Placed(
            meta=obj.metadata.without_last_applied(),
            now=now,
            rights=common.rights,
            allowed=common.places.allow(namespace),
            images=self._settings.images,
            scripts=self._settings.scripts,
            dialect=self._settings.dialect,
            namespace_ending=common.places.is_ending(namespace),
            binding=common.places.binding(namespace),
            neighbours=common.neighbours.count(obj),
        )
