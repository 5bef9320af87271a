"""Objects that exist but do not fit their model, as after a downgrade: said once, then left alone until they change.

Nothing can be decided for such an object, so its status alone is written, from a live read of its metadata.
"""

from __future__ import annotations

import time
from typing import Any

import msgspec
import structlog

from moorage.api import conditions, meta
from moorage.runtime import kind
from moorage.runtime.reasons import Reason
from moorage.runtime.reporting import event_recorder

log = structlog.get_logger(__name__)


class Unreadable:
    """The unreadable objects of one kind, and what was said of each."""

    def __init__(self, of: kind.Kind[Any, Any], world: kind.World, recorder: event_recorder.Recorder) -> None:
        self._kind, self._world, self._recorder = of, world, recorder
        self._said: dict[kind.Key, str] = {}

    def news(self) -> list[kind.Key]:
        """The keys of objects of which it is yet to be said: the caches tell nobody of them."""
        found = {self._kind.key(*at): why for cache in self._kind.informers for at, why in cache.unreadable.items()}
        self._said = {key: why for key, why in self._said.items() if key in found}
        return [key for key, why in found.items() if self._said.get(key) != why]

    async def say(self, key: kind.Key) -> None:
        """Say it in log, status and an Event. Raises what the client raises, and NotLeading."""
        _, namespace, name = key
        informers, at = self._kind.informers, (namespace, name)
        why = next((each.unreadable[at] for each in informers if at in each.unreadable), "")
        if not why or self._said.get(key) == why:
            return
        resource, client = self._kind.resource, self._world.client
        live = await client.get(resource, namespace, name, as_=meta.Partial, metadata_only=True)
        if self._world.others.whose(key, live, lambda _: ""):
            self._said[key] = why  # by another installation, whose it is
            return
        message = f"this object can't be read: {why}; correct the field, or use the version of moorage that wrote it"
        log.error("object does not fit its model", kind=resource.kind, namespace=namespace, name=name, why=why)
        body = {
            "metadata": {"uid": live.metadata.uid},
            "status": {"conditions": msgspec.to_builtins(_conditions(message, live.metadata.generation))},
        }
        timeout = self._world.gate.timeout(15.0)
        await client.patch_merge(
            resource, namespace, name, body, subresource="status", field_manager="moorage", timeout=timeout
        )
        about = resource.ref(namespace, name, live.metadata.uid)
        self._recorder.note(event_recorder.Note(about, Reason.UNREADABLE, message, "read", warning=True))
        self._said[key] = why


def _conditions(message: str, generation: int) -> tuple[conditions.Condition, ...]:
    said: dict[str, conditions.Verdict] = {"Ready": "Unknown", "Reconciling": "False", "Stalled": "True"}
    new = (
        conditions.Condition(
            type=type_,
            status=verdict,
            reason=str(Reason.UNREADABLE),
            message=message[:32768],
            observed_generation=generation,
        )
        for type_, verdict in said.items()
    )
    return conditions.merge((), new, time.time())
