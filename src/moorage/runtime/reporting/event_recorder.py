"""Kubernetes Events, written when a verdict changes and when something was done: never once per pass or twice alike.

Events go out from a small buffer beside the workers; losing one loses no state. It alone writes Events.
"""

from __future__ import annotations

import asyncio
import collections
import datetime
import time
import uuid
from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec
import structlog

from moorage.api import builtin, meta
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.runtime import gate

log = structlog.get_logger(__name__)

QUIET = 600.0
"""Seconds for which the same thing is not told again about the same object."""

REMEMBERED = 10_000
"""How many notes are remembered for that."""


Wanted: TypeAlias = Literal["all", "warnings", "none"]
"""Which notes become Events: each is one more write, and one more object for an hour, in the API server."""


class Note(msgspec.Struct, frozen=True):
    """One thing worth telling about an object."""

    about: meta.ObjectRef
    reason: str
    message: str
    action: str
    warning: bool = False


class Recorder:
    """Takes notes without waiting; `run` posts them."""

    def __init__(
        self,
        client: kube_client.Client,
        at: gate.Gate,
        *,
        instance: str,
        wanted: Wanted = "all",
        size: int = 1000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._gate, self._instance, self._clock = client, at, instance, clock
        self._wanted = wanted
        self._notes: asyncio.Queue[tuple[Note, gate.Gate]] = asyncio.Queue(size)
        self._told: collections.OrderedDict[Note, float] = collections.OrderedDict()

    def note(self, note: Note) -> None:
        """Have the note posted if it is wanted; not if it was lately, and dropped when the buffer is full."""
        if self._wanted == "none" or (self._wanted == "warnings" and not note.warning):
            return
        now = self._clock()
        if now - self._told.get(note, -QUIET) < QUIET:
            return
        try:
            self._notes.put_nowait((note, gate.current(self._gate)))
        except asyncio.QueueFull:
            log.warning("event dropped", reason=note.reason, about=str(note.about))
            return
        self._told[note] = now
        self._told.move_to_end(note)
        while len(self._told) > REMEMBERED or now - next(iter(self._told.values())) >= QUIET:
            self._told.popitem(last=False)

    async def run(self) -> None:
        """Post notes until cancelled."""
        while True:
            note, at = await self._notes.get()
            try:
                await self._post(note, at)
            except Exception:
                log.exception("event not posted", about=str(note.about), reason=note.reason)
            finally:
                self._notes.task_done()

    async def flush(self, within: float) -> None:
        """Wait up to `within` seconds until all notes so far are posted."""
        try:
            async with asyncio.timeout(within):
                await self._notes.join()
        except TimeoutError:
            log.warning("events dropped at exit", left=self._notes.qsize())

    async def _post(self, note: Note, at: gate.Gate) -> None:
        try:
            timeout = at.timeout(5.0)
            await self._client.create(
                builtin.EVENT,
                note.about.namespace or "default",
                self._body(note),
                field_manager="moorage",
                timeout=timeout,
            )
        except (errors.KubeError, gate.NotLeading) as error:
            log.debug("event not posted", about=str(note.about), reason=note.reason, error=str(error))

    def _body(self, note: Note) -> dict[str, object]:
        about = note.about
        return {
            "apiVersion": builtin.EVENT.api_version,
            "kind": builtin.EVENT.kind,
            "metadata": {
                "name": f"{about.name[:200].rstrip('-.')}.{uuid.uuid4().hex[:12]}",
                "namespace": about.namespace or "default",
            },
            "eventTime": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": "moorage.dev/operator",
            "reportingInstance": self._instance[:128],
            "action": note.action[:128],
            "reason": note.reason[:128],
            "regarding": msgspec.to_builtins(about),
            "note": note.message[:1024],
            "type": "Warning" if note.warning else "Normal",
        }
