"""An API server's list and watch in memory, with faults on order, and a clock that only sleeping moves."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from moorage.api.meta import ObjectMeta, Resource
from moorage.kube import errors
from moorage.kube.http import transport
from moorage.kube.informers import reflector

NOTHING: transport.Query = {}
BOX = Resource("test.moorage.dev", "v1", "Box", "boxes")


class Box(msgspec.Struct, frozen=True, gc=False):
    metadata: ObjectMeta
    size: int = 0


def body(name: str, version: int, *, uid: str = "", size: int = 0, **meta: Any) -> dict[str, Any]:
    """A Box as the server sends it."""
    metadata = {"namespace": "ns", "name": name, "uid": uid or f"uid-{name}", "resourceVersion": str(version), **meta}
    return {"apiVersion": "test.moorage.dev/v1", "kind": "Box", "metadata": metadata, "size": size}


def box(name: str, version: int, *, uid: str = "", size: int = 0, deleting: bool = False) -> Box:
    """The same, decoded."""
    stamp = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleting else {}
    return msgspec.convert(body(name, version, uid=uid, size=size, **stamp), Box)


def answer(status: int, content: Any = None, **headers: str) -> transport.Response:
    return transport.Response(status, headers, msgspec.json.encode(content or {}))


def refusal(code: int, reason: str = "", message: str = "no", **extra: Any) -> dict[str, Any]:
    return {"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": message, **extra}


def line(kind: str, content: Any) -> bytes:
    return msgspec.json.encode({"type": kind, "object": content}) + b"\n"


def end_of_list(version: int) -> bytes:
    """The bookmark that ends a streaming list."""
    return line("BOOKMARK", body("", version, annotations={"k8s.io/initial-events-end": "true"}))


class Clock:
    """Time that passes only by sleeping; sleepers yield to the loop so that others run."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def time(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    def pace(self, **changes: Any) -> reflector.Pace:
        return reflector.Pace(clock=self.time, sleep=self.sleep, chance=lambda: 1.0, **changes)


class Fault(msgspec.Struct, frozen=True):
    """What becomes of the next watch. Without a status it opens, sends `chunks`, and ends (or stays silent)."""

    status: int = 0
    chunks: tuple[bytes, ...] = ()
    silent: bool = False
    broken: bool = False  # the connection breaks after `chunks`
    status_body: Any = None
    headers: dict[str, str] = {}


class FakeStream:
    def __init__(self, status: int, headers: Mapping[str, str], source: AsyncGenerator[bytes, None]) -> None:
        self.status = status
        self.headers = headers
        self._source = source

    def chunks(self) -> AsyncGenerator[bytes, None]:
        return self._source


class FakeServer:
    """One collection of boxes. Versions count up with each change, as etcd's do."""

    def __init__(self, *, streaming: Literal["refused", "ignored", "served"] = "refused") -> None:
        self.streaming = streaming  # what becomes of a list that is asked for as a stream
        self.streamed = 0  # how often it was
        self.version = 100
        self.objects: dict[str, dict[str, Any]] = {}
        self.log: list[tuple[int, bytes]] = []
        self.forgotten = 0  # versions up to here are compacted
        self.calls: Counter[str] = Counter()
        self.requests: list[tuple[str, str, dict[str, Any], bytes | None]] = []
        self.answers: deque[transport.Response | Exception] = deque()  # for requests, before the collection is asked
        self.faults: deque[Fault] = deque()  # for watches
        self.always: Fault | None = None  # for all watches after those
        self.lifetime: Callable[[], None] = lambda: None  # called when a scripted watch ends
        self.list_gate: asyncio.Event | None = None  # a list waits here with its answer made
        self._news = asyncio.Condition()
        self._cuts = 0
        self.watching = 0

    # the world changes

    async def put(self, name: str, *, size: int = 0, uid: str = "", quiet: bool = False, **meta: Any) -> dict[str, Any]:
        self.version += 1
        kind = "MODIFIED" if name in self.objects else "ADDED"
        made = body(name, self.version, size=size, uid=uid, **meta)
        self.objects[name] = made
        await self._tell(kind, made, quiet)
        return made

    async def remove(self, name: str, *, quiet: bool = False) -> None:
        self.version += 1
        gone = self.objects.pop(name)
        meta = {**gone["metadata"], "resourceVersion": str(self.version)}
        await self._tell("DELETED", {**gone, "metadata": meta}, quiet)

    async def _tell(self, kind: str, content: Any, quiet: bool) -> None:
        self.log.append((self.version, line(kind, content)))
        if not quiet:
            await self.flush()

    async def flush(self) -> None:
        """Let watchers see what was changed quietly."""
        async with self._news:
            self._news.notify_all()

    def forget(self) -> None:
        """Compaction: a new watch can only begin at the present; open ones go on."""
        self.forgotten = self.version

    # transport.Transport

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: transport.Query = NOTHING,
        body: bytes | None = None,
        content_type: str = "",
        accept: str = transport.JSON,
        user: str = "",
        timeout: float,
    ) -> transport.Response:
        self.calls["list" if method == "GET" else method] += 1
        self.requests.append((method, path, {**query, "content_type": content_type, "accept": accept}, body))
        if self.answers:
            scripted = self.answers.popleft()
            if isinstance(scripted, Exception):
                raise scripted
            return scripted
        if method != "GET":
            return answer(200, {})
        made = self._page(query)
        if self.list_gate is not None:
            await self.list_gate.wait()
        return made

    def _page(self, query: transport.Query) -> transport.Response:
        names = sorted(self.objects)
        start, limit = int(str(query.get("continue") or 0)), int(str(query.get("limit") or 0))
        end = start + limit if limit else len(names)
        meta: dict[str, Any] = {"resourceVersion": str(self.version)}
        if end < len(names):
            meta["continue"] = str(end)
        return answer(200, {"metadata": meta, "items": [self.objects[name] for name in names[start:end]]})

    @contextlib.asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        query: transport.Query = NOTHING,
        accept: str = transport.JSON,
        user: str = "",
        timeout: float,
    ) -> AsyncIterator[transport.Stream]:
        initial = "sendInitialEvents" in query
        if initial:
            self.streamed += 1
            self.requests.append(("STREAM", path, {**query, "accept": accept}, None))
            if self.streaming == "refused":
                sent = (msgspec.json.encode(refusal(422, "Invalid")),)
                yield FakeStream(422, {}, self._play(sent, silent=False))
                return
        else:
            self.calls["watch"] += 1
            self.requests.append(("WATCH", path, {**query, "accept": accept}, None))
        fault = self.faults.popleft() if self.faults else self.always
        since = 0 if initial else int(str(query["resourceVersion"]))
        if fault is None and not initial and since < self.forgotten:
            fault = Fault(status=410, status_body=refusal(410, "Expired"))
        self.watching += 1
        try:
            if fault is None:
                yield FakeStream(200, {}, self._initial() if initial else self._follow(since))
            elif fault.status:
                sent = (msgspec.json.encode(fault.status_body or {}),)
                yield FakeStream(fault.status, fault.headers, self._play(sent, silent=False))
            else:
                yield FakeStream(200, {}, self._play(fault.chunks, silent=fault.silent, broken=fault.broken))
        finally:
            self.watching -= 1

    async def _play(
        self, chunks: Sequence[bytes], *, silent: bool, broken: bool = False
    ) -> AsyncGenerator[bytes, None]:
        for chunk in chunks:
            yield chunk
        if broken:
            raise errors.TransportError("broken off", sent=True)
        if silent:
            await asyncio.Event().wait()
        self.lifetime()

    async def cut(self) -> None:
        """End all open watches."""
        self._cuts += 1
        await self.flush()

    async def _initial(self) -> AsyncGenerator[bytes, None]:
        """A streaming list of this moment, and what follows."""
        since, lines = self.version, [line("ADDED", self.objects[name]) for name in sorted(self.objects)]
        for text in lines:
            yield text
        if self.list_gate is not None:
            await self.list_gate.wait()
        if self.streaming == "served":
            yield end_of_list(since)
        async for text in self._follow(since):
            yield text

    async def _follow(self, since: int) -> AsyncGenerator[bytes, None]:
        cuts = self._cuts
        while cuts == self._cuts:
            for version, text in list(self.log):
                if version > since:
                    since = version
                    yield text[: version % len(text)]
                    yield text[version % len(text) :]
            async with self._news:
                while self.version <= since and cuts == self._cuts:
                    await self._news.wait()

    def socket(self, path: str, **_: Any) -> Any:
        raise NotImplementedError

    async def close(self) -> None:
        pass


async def until(condition: Any, *, turns: int = 10_000) -> None:
    """Let the loop run until the condition holds."""
    for _ in range(turns):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("the condition never came true")
