"""List, then watch, for ever: turns one collection of the API server into calls on a `Sink`.

Observes the collection; alone decides when to list again, when to reconnect, and how long to wait before. What can go
wrong heals here: a resourceVersion that is too old (410 as a status or as an event), a watch that ends at once, a
stream that falls silent, a line cut in half, RBAC or a CRD that is away for a while. Nothing but cancellation ends
`run`, and no answer of a server makes it a hot loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from moorage.api.meta import Resource

from . import client as kube_client
from . import codec, errors, transport, views

__all__ = ["Pace", "Reflector", "Scope", "Sink"]

T = TypeVar("T")
_META_WATCH = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"


class Scope(msgspec.Struct, frozen=True):
    """Which objects, seen how."""

    resource: Resource
    namespace: str = ""  # "" = all
    labels: str = ""
    name: str = ""  # only objects of this name, in whichever namespace
    metadata_only: bool = False

    @property
    def fields(self) -> str:
        """The field selector."""
        return f"metadata.name={self.name}" if self.name else ""

    def __str__(self) -> str:
        named = f" named {self.name}" if self.name else ""
        labelled = f" with {self.labels}" if self.labels else ""
        return f"{self.resource.group_kind}{named} in {self.namespace or 'all namespaces'}{labelled}"


class Pace(msgspec.Struct, frozen=True):
    """Time and chance, in one place, so that tests can put their own. All durations are seconds."""

    idle: float = 90.0  # silence after which a watch counts as dead; bookmarks come about each minute
    lifetime: float = 290.0  # asked of the server as timeoutSeconds, plus up to a tenth of jitter
    connect: float = 15.0  # until response headers, and per page of a list
    base: float = 0.2  # first delay of a streak of short-lived tries
    cap: float = 10.0  # longest delay; Retry-After may exceed it
    settled: float = 10.0  # a try that lasted this long ends the streak
    relist_after: int = 5  # watches in a row that did not open, after which the resourceVersion itself is distrusted
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep
    chance: Callable[[], float] = random.random

    def delay(self, streak: int) -> float:
        """The wait before try number `streak` + 1 of a streak: exponential, capped, between half and whole."""
        return min(self.cap, self.base * 2.0 ** min(streak - 1, 30)) * (0.5 + self.chance() / 2)


class Sink(Protocol[T]):
    """Where a reflector delivers."""

    def listing(self) -> None:
        """A list is about to be asked for."""

    def replace(self, listing: kube_client.Listing[T]) -> None:
        """The whole state at listing.resource_version."""

    def event(self, event: codec.Event[T] | codec.Event[codec.Unreadable]) -> None:
        """One ADDED, MODIFIED or DELETED."""

    def contact(self) -> None:
        """The server has answered well, or sent something."""

    def trouble(self, error: errors.KubeError) -> None:
        """A try failed; another follows."""


class Reflector(Generic[T]):
    """One list+watch. `run` returns only by cancellation."""

    def __init__(
        self, client: kube_client.Client, scope: Scope, model: type[T], sink: Sink[T], *, pace: Pace | None = None
    ) -> None:
        self._client = client
        self._scope = scope
        self._model = model
        self._sink = sink
        self._pace = pace or Pace()
        self._version = ""  # where to resume; "" = list first
        self._failures = 0  # tries in a row in which no watch was opened
        self._first = True

    async def run(self) -> None:
        """Keep the sink true to the collection."""
        streak = 0
        while True:
            began = self._pace.clock()
            failed, wait = await self._try()
            # a watch that ends properly counts too when it ends at once: else a broken proxy gets a hot loop
            settled = self._pace.clock() - began >= self._pace.settled
            streak = int(failed) if settled else streak + 1
            if streak:
                await self._pace.sleep(max(wait, self._pace.delay(streak)))

    async def _try(self) -> tuple[bool, float]:
        """One list if needed and one watch: (whether it failed, seconds the server asks to wait)."""
        try:
            await self._once()
        except errors.KubeError as error:
            self._failures += 1
            if _too_old(error):
                self._version = ""
            else:
                self._sink.trouble(error)
            if self._failures >= self._pace.relist_after or isinstance(error, errors.MalformedAnswer):
                self._version, self._failures = "", 0
            return True, getattr(error, "retry_after", 0.0)
        return False, 0.0

    async def _once(self) -> None:
        if not self._version:
            await self._list()
        await self._watch()

    async def _list(self) -> None:
        scope = self._scope
        self._sink.listing()
        with _RELAXED_GC if self._first else contextlib.nullcontext():
            listing = await self._client.list(
                scope.resource,
                scope.namespace,
                labels=scope.labels,
                fields=scope.fields,
                as_=self._model,
                metadata_only=scope.metadata_only,
                timeout=self._pace.connect,
            )
            self._sink.replace(listing)
        self._first = False
        self._version = listing.resource_version
        self._sink.contact()

    async def _watch(self) -> None:
        """From the last version until the server ends it, or silence or an error does."""
        scope, pace = self._scope, self._pace
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(int(pace.lifetime * (1 + pace.chance() / 10))),
        }
        if scope.labels:
            query["labelSelector"] = scope.labels
        if scope.fields:
            query["fieldSelector"] = scope.fields
        opening = self._client.transport.stream(
            "GET",
            scope.resource.path(scope.namespace),
            query=query,
            accept=_META_WATCH if scope.metadata_only else transport.JSON,
            timeout=pace.connect,
        )
        async with opening as stream:
            if stream.status >= 400:
                raise await _refusal(stream, f"watch {scope}", pace.connect)
            self._failures = 0
            self._sink.contact()
            await self._read(stream)

    async def _read(self, stream: transport.Stream) -> None:
        """Split the stream into lines. What follows the last newline when it ends was cut off, and is dropped."""
        loop = asyncio.get_running_loop()
        idle = self._pace.idle
        rest: list[bytes] = []
        try:
            async with asyncio.timeout(idle) as alarm, contextlib.aclosing(stream.chunks()) as chunks:
                async for chunk in chunks:
                    alarm.reschedule(loop.time() + idle)
                    self._sink.contact()
                    head, newline, tail = chunk.rpartition(b"\n")
                    if newline:
                        for line in b"".join((*rest, head)).split(b"\n"):
                            self._line(line)
                        rest = []
                    if tail:
                        rest.append(tail)
        except TimeoutError as error:
            raise errors.TransportError(
                f"watch {self._scope}: silent for {idle:g} s, taken for dead; reconnecting", sent=True
            ) from error

    def _line(self, line: bytes) -> None:
        if not line.strip():
            return
        if codec.is_control(line):
            self._version = codec.bookmark(line) or self._version
            return
        event = codec.decode_event(line, self._model)
        if event.type in ("ERROR", "BOOKMARK"):  # a server that orders or spaces its JSON otherwise
            self._version = codec.bookmark(line) or self._version
            return
        self._sink.event(event)
        self._version = views.version_of(event.object) or self._version


async def _refusal(stream: transport.Stream, what: str, timeout: float) -> errors.ApiError:
    body = b""
    with contextlib.suppress(TimeoutError, errors.TransportError):
        async with asyncio.timeout(timeout):
            async for chunk in stream.chunks():
                body += chunk
    return codec.failure(what, stream.status, body, stream.headers.get("Retry-After", ""))


def _too_old(error: errors.KubeError) -> bool:
    """True when only a new list helps: the version is forgotten by the server, or from its future (a restored etcd)."""
    if isinstance(error, errors.Gone):
        return True
    return isinstance(error, errors.ApiError) and any(
        cause.get("reason") == "ResourceVersionTooLarge" for cause in error.status.causes()
    )


class _RelaxedGC:
    """Fewer collections while many objects are made that will stay: a full one over a filling cache stalls the loop.

    The thresholds belong to the process, so one object counts all who want them raised.
    """

    def __init__(self) -> None:
        self._users = 0
        self._normal = gc.get_threshold()

    def __enter__(self) -> None:
        if self._users == 0:
            self._normal = gc.get_threshold()
            gc.set_threshold(50_000, 50, 1000)
        self._users += 1

    def __exit__(self, *_: object) -> None:
        self._users -= 1
        if self._users == 0:
            gc.set_threshold(*self._normal)


_RELAXED_GC = _RelaxedGC()
