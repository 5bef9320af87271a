"""List, then watch, for ever: turns one collection of the API server into calls on a `Sink`.

Observes the collection; alone decides when to list again, when to reconnect, and how long to wait before. What can go
wrong heals here: a resourceVersion that is too old (410 as a status or as an event), a watch that ends at once, a
stream that falls silent, a line cut in half, RBAC or a CRD that is away for a while. Nothing but cancellation ends
`run`, and no answer of a server makes it a hot loop.

A list comes as the beginning of a watch (sendInitialEvents) where the server can, else in pages. That it can't shows
in a refusal, in a stream that ends or falls silent before the list is complete, or in a bookmark that leaves it open.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from moorage.api.meta import Resource
from moorage.kube import client as kube_client
from moorage.kube import codec, errors
from moorage.kube.http import transport

from . import cached_object, garbage_collector, time_slices

__all__ = ["Pace", "Reflector", "Scope", "Sink"]

T = TypeVar("T")
T_in = TypeVar("T_in", contravariant=True)
_META_WATCH = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"


class Scope(msgspec.Struct, frozen=True):
    """Which objects, seen how."""

    resource: Resource
    namespace: str = ""  # "" = all
    labels: str = ""
    name: str = ""  # only objects of this name, in whichever namespace
    metadata_only: bool = False
    user: str = ""  # whose rights are used; "" = one's own

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
    connect: float = 15.0  # until response headers, per page of a list, and of silence within a streaming one
    base: float = 0.2  # first delay of a streak of short-lived tries
    cap: float = 10.0  # longest delay; Retry-After may exceed it
    denied: float = 60.0  # longest delay while rights are missing, which only people give
    settled: float = 10.0  # a try that lasted this long ends the streak
    slice: float = 0.005  # of work at a time, then others have their turn
    relist_after: int = 5  # watches in a row that did not open, after which the resourceVersion itself is distrusted
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep
    chance: Callable[[], float] = random.random

    def delay(self, streak: int, *, denied: int = 0) -> float:
        """The wait before try number `streak` + 1 of a streak: exponential, capped, between half and whole.

        The last `denied` of it failed for want of rights: these alone count for the longer waits.
        """
        wait = max(min(self.cap, self._nth(streak)), min(self.denied, self._nth(denied)))
        return wait * (0.5 + self.chance() / 2)

    def _nth(self, tries: int) -> float:
        return self.base * 2.0 ** min(tries - 1, 30) if tries else 0.0


class Sink(Protocol[T_in]):
    """Where a reflector delivers."""

    def listing(self) -> None:
        """A list is about to be asked for; events until `listed` are its objects. An unfinished list is void."""

    def event(self, kind: str, obj: T_in | codec.Unreadable) -> None:
        """One ADDED, MODIFIED or DELETED."""

    async def listed(self, version: str) -> None:
        """The list was the whole state at that version."""

    def contact(self) -> None:
        """The server has answered well, or sent something."""

    def trouble(self, error: errors.KubeError) -> None:
        """A try failed; another follows."""


class _NotStreamed(Exception):  # noqa: N818 - a lack, not a fault
    """The server does not know streaming lists, or does as if."""


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
        self._filling = False  # a streaming list has begun and not ended
        self._failures = 0  # tries in a row in which no watch was opened
        self._broken = 0  # streaming lists in a row that broke off
        self._denied = 0  # tries in a row, up to the last, that failed for want of rights

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
                await self._pace.sleep(max(wait, self._pace.delay(streak, denied=self._denied)))

    async def _try(self) -> tuple[bool, float]:
        """One list if needed and one watch: (whether it failed, seconds the server asks to wait)."""
        denied, self._denied = self._denied, 0
        try:
            await self._once()
        except errors.KubeError as error:
            self._failures += 1
            if isinstance(error, errors.Forbidden):
                self._denied = denied + 1
            if _too_old(error):
                self._version = ""
            else:
                self._sink.trouble(error)
            if self._failures >= self._pace.relist_after or isinstance(error, errors.MalformedAnswer):
                self._version, self._failures = "", 0
            return True, getattr(error, "retry_after", 0.0)
        return False, 0.0

    async def _once(self) -> None:
        only_pages, resource = self._client.only_pages, self._scope.resource
        if not self._version and resource not in only_pages:
            try:
                return await self._stream_list()
            except _NotStreamed:
                only_pages.add(resource)
        if not self._version:
            await self._list()
        return await self._watch()

    async def _stream_list(self) -> None:
        """A watch that begins with all there is, up to a bookmark that says so, and then goes on."""
        self._sink.listing()
        self._filling = True
        try:
            with contextlib.ExitStack() as fill:
                fill.enter_context(garbage_collector.FILLING)
                await self._watch(fill)
        except errors.TransportError as error:
            self._broken = self._broken + 1 if self._filling else 0
            if self._broken == self._pace.relist_after:
                raise _NotStreamed from error  # something on the way cuts long answers
            raise
        finally:
            self._filling = False

    async def _list(self) -> None:
        scope, pause = self._scope, time_slices.Slices(self._pace.slice)
        with garbage_collector.FILLING:
            pages = self._client.pages(
                scope.resource,
                scope.namespace,
                labels=scope.labels,
                fields=scope.fields,
                as_=self._model,
                metadata_only=scope.metadata_only,
                timeout=self._pace.connect,
            )
            version = ""
            self._sink.listing()
            async for page in pages:
                if page.first and version:  # it begins anew
                    self._sink.listing()
                version = page.resource_version
                for obj in page.items:
                    self._sink.event("ADDED", obj)
                    if pause.over:
                        await pause.rest()
                for bad in page.unreadable:
                    self._sink.event("ADDED", bad)
            await self._sink.listed(version)
        self._version = version
        self._sink.contact()

    async def _watch(self, fill: contextlib.ExitStack | None = None) -> None:
        """From the last version until the server ends it, or silence or an error does.

        With `fill` from the beginning, by a streaming list; it is closed when the list is complete.
        """
        scope, pace = self._scope, self._pace
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(int(pace.lifetime * (1 + pace.chance() / 10))),
        }
        if fill is None:
            query["resourceVersion"] = self._version
        else:
            query.update(sendInitialEvents="true", resourceVersionMatch="NotOlderThan")
        if scope.labels:
            query["labelSelector"] = scope.labels
        if scope.fields:
            query["fieldSelector"] = scope.fields
        opening = self._client.transport.stream(
            "GET",
            scope.resource.path(scope.namespace),
            query=query,
            accept=_META_WATCH if scope.metadata_only else transport.JSON,
            user=self._client.user,
            timeout=pace.connect,
        )
        async with opening as stream:
            if stream.status >= 400:
                refusal = await _refusal(stream, f"watch {scope}", pace.connect)
                if self._filling and isinstance(refusal, errors.BadRequest | errors.Invalid):
                    raise _NotStreamed from refusal
                raise refusal
            self._failures = 0
            self._sink.contact()
            await self._read(stream, fill)
        if self._filling:
            raise _NotStreamed

    async def _read(self, stream: transport.Stream, fill: contextlib.ExitStack | None) -> None:
        """Split the stream into lines. What follows the last newline when it ends was cut off, and is dropped."""
        loop, pace, pause = asyncio.get_running_loop(), self._pace, time_slices.Slices(self._pace.slice)
        complete_by, patience = loop.time() + pace.lifetime, min(pace.connect, pace.idle)
        rest = b""
        try:
            async with asyncio.timeout(None) as alarm, contextlib.aclosing(stream.chunks()) as chunks:
                while True:
                    now = loop.time()
                    alarm.reschedule(min(now + patience, complete_by) if self._filling else now + pace.idle)
                    if (chunk := await anext(chunks, None)) is None:
                        break
                    alarm.reschedule(None)  # to work is not to wait
                    self._sink.contact()
                    first, last = chunk.find(b"\n"), chunk.rfind(b"\n")
                    if first < 0:
                        rest += chunk
                        continue
                    # a chunk may be long, so it is not copied: the line that it completes, then a view of its own
                    await self._take(codec.decode_events(rest + chunk[:first], self._model), fill, pause)
                    if first < last:
                        lines = memoryview(chunk)[first:last]
                        await self._take(codec.decode_events(lines, self._model), fill, pause)
                    rest = chunk[last + 1 :]
        except TimeoutError as error:
            if self._filling:
                raise _NotStreamed from error
            raise errors.TransportError(
                f"watch {self._scope}: silent for {pace.idle:g} s, taken for dead; reconnecting", sent=True
            ) from error

    async def _take(
        self,
        events: Iterable[codec.Event[T] | codec.Event[codec.Unreadable]],
        fill: contextlib.ExitStack | None,
        pause: time_slices.Slices,
    ) -> None:
        """Deliver what one chunk has brought, and remember how far that goes."""
        last: T | codec.Unreadable | None = None
        try:
            for event in events:
                if type(event) is codec.Failed:
                    raise errors.from_status(f"watch {self._scope}", event.object)
                if type(event) is codec.Bookmark:
                    last = None
                    await self._marked(event, fill)
                else:
                    last = event.object
                    self._sink.event(event.kind, last)
                    if pause.over:
                        await pause.rest()
        finally:
            if last is not None and not self._filling:
                self._version = cached_object.version_of(last) or self._version

    async def _marked(self, bookmark: codec.Bookmark, fill: contextlib.ExitStack | None) -> None:
        version = bookmark.object.metadata.resource_version
        if self._filling and fill is not None:
            if not bookmark.ends_list:
                raise _NotStreamed
            await self._sink.listed(version)
            fill.close()
            self._filling = False
        self._version = version or self._version


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
