"""The one fault transport under the client: records what goes to a real API server, and harms it on order.

A `Plan` says in one word what becomes of each write, read, watch and event; `Wire` carries the word out and knows
nothing of chance. What a word stands for is in WRITES, READS, WATCHES and EVENTS, which the report of a campaign prints
too. Faults below HTTP, such as half a TLS record, are the `proxy`'s.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Protocol

import msgspec

from moorage.kube import errors
from moorage.kube.http import exec_protocol, transport

from . import events

WRITES = {
    "refused": "never left",
    "drop": "not applied, no answer",
    "lose": "applied, answer lost",
    "409": "refused with 409",
    "422": "refused with 422",
    "429": "refused with 429",
    "429 wait": "refused with 429, Retry-After 1",
    "500": "not applied, told 500",
    "500 after": "applied, told 500",
    "503": "not applied, told 503",
    "503 wait": "not applied, told 503, Retry-After 1",
    "slow": "applied after a pause",
    "slow after": "applied, told after a pause",
    "kill before": "the process dies before it",
    "kill after": "the process dies after it, before its answer",
}
READS = {
    "refused": "never left",
    "lose": "answer lost",
    "403": "a blip of RBAC",
    "404": "a blip of the definition",
    "410": "the continue token, or the version, is too old",
    "429": "refused with 429",
    "429 wait": "refused with 429, Retry-After 1",
    "500": "told 500",
    "503": "told 503",
    "slow": "answered after a pause",
    "half": "half an answer",
}
WATCHES = {word: READS[word] for word in ("refused", "403", "404", "410", "429", "429 wait", "500", "503")}
"""Of the opening; what can happen later is in EVENTS."""

EVENTS = events.EVENTS


class Write(msgspec.Struct, frozen=True):
    """One request that may change something, and whether the server has carried it out."""

    method: str
    path: str
    body: Any
    number: int
    at: float  # epoch seconds
    applied: bool = False

    @property
    def what(self) -> str:
        """`PATCH configmaps`, `PATCH widgets/status`, `EXEC drive.add`."""
        if self.method == "EXEC":
            return f"EXEC {self.body}"
        parts = self.path.partition("/namespaces/")[2].split("/")
        if len(parts) < 2:  # not in a namespace, or one itself
            return f"{self.method} {self.path.rpartition('/namespaces')[1].strip('/') or self.path.split('/')[-1]}"
        return f"{self.method} {parts[1]}" + (f"/{parts[3]}" if len(parts) > 3 else "")


class Read(msgspec.Struct, frozen=True):
    """A list, a get, or the opening of a watch."""

    path: str
    query: Mapping[str, Any] = {}

    @property
    def is_further_page(self) -> bool:
        """Whether it carries a continue token."""
        return "continue" in self.query


Fault = Callable[[Write], str]
"""What becomes of a write: a word of WRITES, or "" for nothing."""


class Plan:
    """What becomes of what. This one does no harm."""

    pause = 0.1
    """Seconds that something slow, late or coalesced takes."""

    page = 0
    """How many objects a list may bring at once; 0: as many as were asked for. Small ones need continue tokens."""

    touches_events = False
    """Whether `event` is asked at all; else watches go through as they come."""

    def write(self, it: Write) -> str:
        """A word of WRITES, or ""."""
        return ""

    def apart(self, it: Write) -> str:
        """The same for Events and Leases."""
        return ""

    async def wrote(self, it: Write) -> None:
        """A write has been carried out; its answer is handed on when this returns."""

    def read(self, it: Read) -> str:
        """A word of READS, or ""."""
        return ""

    def watch(self, it: Read) -> str:
        """A word of WATCHES, or ""."""
        return ""

    def event(self, it: Read, line: bytes) -> str:
        """A word of EVENTS, or ""."""
        return ""

    def coalesced(self, dropped: int) -> None:
        """So many events were never delivered, as later ones of their objects have overwritten them."""

    def instead(self, it: Read) -> transport.Response | None:
        """An answer of one's own to a read."""
        return None

    def listened(self, it: Read, answer: transport.Response) -> None:
        """What the server answered to a read."""

    async def hold(self, it: Read) -> None:
        """Returns when a watch may be opened."""


class Execs(Protocol):
    """Who answers what is run in pods, in place of their kubelets."""

    def order(self, query: Mapping[str, Any]) -> str:
        """What that command changes; empty: nothing, it is a question."""

    async def run(self, pod: str, query: Mapping[str, Any]) -> exec_protocol.ExecResult:
        """To its end."""


class Wire:
    """A transport that numbers the writes from 1 on. Events and Leases are kept apart, as they are no effect."""

    def __init__(self, inner: transport.Transport, plan: Plan | None = None) -> None:
        self._inner = inner
        self.plan = plan or Plan()
        self.fault: Fault = lambda write: self.plan.write(write)
        self.writes: list[Write] = []
        self.other: list[Write] = []
        self.calls: Counter[str] = Counter()
        """Requests by method, and "watch"."""

        self.watched_from: list[str] = []
        self.sent: list[float] = []
        """When each request was made (monotonic seconds)."""

        self.opened: list[float] = []
        """When the opening of each watch was tried."""

        self.dead = asyncio.Event()
        self.execs: Execs | None = None
        self._begun: set[asyncio.Task[Any]] = set()

    @property
    def busiest(self) -> int:
        """The most requests in any one second."""
        return busiest(self.sent)

    async def request(self, method: str, path: str, **given: Any) -> transport.Response:
        """See `transport.Transport`."""
        if self.dead.is_set():
            raise errors.TransportError("this process is dead", sent=False)
        self.calls[method] += 1
        self.sent.append(time.monotonic())
        if method == "GET":
            return await self._read(Read(path, given.get("query") or {}), given)
        apart = "/events" in path or "/leases" in path
        log = self.other if apart else self.writes
        write = Write(method, path, msgspec.json.decode(given.get("body") or b"null"), len(log) + 1, time.time())
        log.append(write)
        return await self._write(self.plan.apart(write) if apart else self.fault(write), write, log, given)

    async def _write(self, word: str, write: Write, log: list[Write], given: dict[str, Any]) -> transport.Response:
        if word == "kill before":
            await self._die()
        await self._fail_before(word)
        if status := _status(word):
            return status
        answer = await self._inner.request(write.method, write.path, **given)
        log[write.number - 1] = msgspec.structs.replace(write, applied=answer.status < 400)
        await self.plan.wrote(log[write.number - 1])
        match word:
            case "kill after":
                await self._die()
            case "lose":
                raise errors.TransportError("injected: the answer is lost", sent=True)
            case "500 after":
                return _told(500)
            case "slow after":
                await asyncio.sleep(self.plan.pause)
        return answer

    async def _read(self, it: Read, given: dict[str, Any]) -> transport.Response:
        if answer := self.plan.instead(it):
            return answer
        word = self.plan.read(it)
        await self._fail_before(word)
        if status := _status(word):
            return status
        if self.plan.page and "limit" in it.query:
            given = {**given, "query": {**it.query, "limit": str(self.plan.page)}}
        answer = await self._inner.request("GET", it.path, **given)
        self.plan.listened(it, answer)
        match word:
            case "lose":
                raise errors.TransportError("injected: the answer is lost", sent=True)
            case "half":
                return transport.Response(answer.status, answer.headers, answer.body[: len(answer.body) // 2])
        return answer

    async def _fail_before(self, word: str) -> None:
        match word:
            case "refused":
                raise errors.TransportError("injected: no connection", sent=False)
            case "drop":
                raise errors.TransportError("injected: dropped", sent=True)
            case "slow":
                await asyncio.sleep(self.plan.pause)

    async def _die(self) -> None:
        self.dead.set()
        await asyncio.Event().wait()

    @contextlib.asynccontextmanager
    async def stream(self, method: str, path: str, **given: Any) -> AsyncIterator[transport.Stream]:
        """See `transport.Transport`."""
        it = Read(path, given["query"])
        self.calls["watch"] += 1
        self.opened.append(time.monotonic())
        self.sent.append(self.opened[-1])
        self.watched_from.append(it.query.get("resourceVersion", ""))
        await self.plan.hold(it)
        word = self.plan.watch(it)
        await self._fail_before(word)
        if status := _status(word):
            yield events.Stream(status.status, status.headers, events.play(status.body))
            return
        async with self._inner.stream(method, path, **given) as stream:
            if self.plan.touches_events and stream.status < 400:
                yield events.Stream(stream.status, stream.headers, events.disturbed(stream, self.plan, it))
            else:
                yield stream

    def socket(self, path: str, **given: Any) -> Any:
        """See `transport.Transport`."""
        return self._inner.socket(path, **given) if self.execs is None else self._exec(path, given["query"], self.execs)

    @contextlib.asynccontextmanager
    async def _exec(self, path: str, query: Mapping[str, Any], execs: Execs) -> AsyncIterator[transport.Socket]:
        """What is run goes on in the pod, also when whoever has asked is gone."""
        if self.dead.is_set():
            raise errors.TransportError("this process is dead", sent=False)
        self.calls["exec"] += 1
        self.sent.append(time.monotonic())
        order = execs.order(query)
        if order:
            self.writes.append(write := Write("EXEC", path, order, len(self.writes) + 1, time.time()))
        word = self.fault(write) if order else self.plan.read(Read(path, query))
        if word == "kill before":
            await self._die()
        await self._fail_before(word)
        if (refusal := _status(word)) is not None:
            raise errors.from_status(f"exec {path}", errors.Status(code=refusal.status, message="injected"))
        task = asyncio.create_task(execs.run(path.split("/")[-2], query))
        self._begun.add(task)
        task.add_done_callback(self._begun.discard)
        if word == "kill after":
            await self._die()
        said = await asyncio.shield(task)
        if order:
            self.writes[write.number - 1] = msgspec.structs.replace(write, applied=True)
        if word in ("lose", "500 after", "half"):
            raise errors.TransportError("injected: the answer is lost", sent=True)
        if word == "slow after":
            await asyncio.sleep(self.plan.pause)
        yield _Said(said)

    async def close(self) -> None:
        """Closes the transport below."""
        await self._inner.close()


class _Said:
    """The end of a command, as a socket that tells it."""

    protocol = exec_protocol.PROTOCOLS[0]

    def __init__(self, said: exec_protocol.ExecResult) -> None:
        self._said = said

    async def frames(self) -> AsyncIterator[bytes]:
        """See `transport.Socket`."""
        yield b"\x01" + self._said.stdout.encode()
        yield b"\x02" + self._said.stderr.encode()
        cause = {"reason": "ExitCode", "message": str(self._said.code)}
        ended: dict[str, Any] = {"status": "Success"}
        if self._said.code:
            ended = {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": [cause]}}
        yield b"\x03" + msgspec.json.encode(ended)

    async def send(self, frame: bytes) -> None:
        """See `transport.Socket`."""


def busiest(moments: list[float]) -> int:
    """The most of these moments (seconds, in order) that lie within one second."""
    first = most = 0
    for last, at in enumerate(moments):
        while moments[first] < at - 1:
            first += 1
        most = max(most, last - first + 1)
    return most


_REASONS = {403: "Forbidden", 404: "NotFound", 409: "Conflict", 410: "Expired", 422: "Invalid", 429: "TooManyRequests"}


def _status(word: str) -> transport.Response | None:
    """The answer that "409" or "429 wait" stands for; "500 after" is none, as it comes after the real one."""
    code, _, more = word.partition(" ")
    if not code.isdigit() or more == "after":
        return None
    return _told(int(code), {"Retry-After": "1"} if more == "wait" else {})


def _told(code: int, headers: Mapping[str, str] | None = None) -> transport.Response:
    body = {"kind": "Status", "code": code, "reason": _REASONS.get(code, ""), "message": "injected"}
    return transport.Response(code, headers or {}, msgspec.json.encode(body))
