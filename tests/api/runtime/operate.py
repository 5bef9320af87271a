"""An operator in this process, on a wire that records its writes and can be told to fail, and a user beside it."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import msgspec

from moorage.api import kinds, meta
from moorage.kube import client as kube_client
from moorage.kube import errors, transport
from moorage.runtime import election, kind, manager
from tests.api.runtime import widget

T = TypeVar("T")
TIMING = election.Timing(duration=3, renew=2, retry=0.2)
PATIENCE = 30.0


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
        """`PATCH configmaps`, `PATCH widgets/status`."""
        parts = self.path.partition("/namespaces/")[2].split("/")
        return f"{self.method} {parts[1]}" + (f"/{parts[3]}" if len(parts) > 3 else "")


Fault = Callable[[Write], str]
"""What becomes of a write: "" (nothing), "drop", "lose", "409", "429", "500", "kill before", "kill after".
"429 wait" and "503 wait" ask to wait for a second."""


class Wire:
    """A transport that numbers the writes from 1 on. Events and Leases are kept apart, as they are no effect."""

    def __init__(self, inner: transport.Transport) -> None:
        self._inner = inner
        self.writes: list[Write] = []
        self.other: list[Write] = []
        self.fault: Fault = lambda _: ""
        self.dead = asyncio.Event()

    async def request(self, method: str, path: str, **given: Any) -> transport.Response:
        if self.dead.is_set():
            raise errors.TransportError("this process is dead", sent=False)
        if method == "GET":
            return await self._inner.request(method, path, **given)
        apart = "/events" in path or "/leases" in path
        log = self.other if apart else self.writes
        write = Write(method, path, msgspec.json.decode(given.get("body") or b"null"), len(log) + 1, time.time())
        log.append(write)
        verdict = "" if apart else self.fault(write)
        return await self._with(verdict, write, log, lambda: self._inner.request(method, path, **given))

    async def _with(
        self, verdict: str, write: Write, log: list[Write], send: Callable[[], Awaitable[transport.Response]]
    ) -> transport.Response:
        code, _, more = verdict.partition(" ")
        if code.isdigit():
            body = {"kind": "Status", "code": int(code), "reason": "Conflict" if code == "409" else ""}
            return transport.Response(
                int(code), {"Retry-After": "1"} if more == "wait" else {}, msgspec.json.encode(body)
            )
        if verdict == "drop":
            raise errors.TransportError("dropped", sent=True)
        if verdict == "kill before":
            await self._die()
        answer = await send()
        log[write.number - 1] = msgspec.structs.replace(write, applied=answer.status < 400)
        if verdict == "kill after":
            await self._die()
        if verdict == "lose":
            raise errors.TransportError("the answer is lost", sent=True)
        return answer

    async def _die(self) -> None:
        self.dead.set()
        await asyncio.Event().wait()

    def stream(self, *args: Any, **given: Any) -> Any:
        return self._inner.stream(*args, **given)

    def socket(self, *args: Any, **given: Any) -> Any:
        return self._inner.socket(*args, **given)

    async def close(self) -> None:
        pass


class Operator:
    """One manager over the kinds of one namespace, Widgets unless a subclass says otherwise."""

    def __init__(
        self,
        client: kube_client.Client,
        namespace: str,
        *,
        elect: bool = False,
        fault: Fault | None = None,
        timing: election.Timing = TIMING,
        shards: int = 1,
        **more: Any,
    ) -> None:
        self.wire = Wire(client.transport)
        if fault:
            self.wire.fault = fault
        kinds = self.make(namespace, **more)
        self.kind = kinds[0]
        settings = manager.Settings(
            identity=uuid.uuid4().hex[:8],
            namespace=namespace,
            timing=timing,
            elect=elect,
            port=0,
            drain=10.0,
            backoff=0.05,
            shards=shards,
        )
        self.manager = manager.Manager(kube_client.Client(self.wire), kinds, settings)
        self.stopping = asyncio.Event()
        self.task = asyncio.create_task(self.manager.run(self.stopping))

    def make(self, namespace: str, **more: Any) -> list[kind.Kind[Any, Any]]:
        """The kinds that it looks after; other operators under test have their own."""
        return [widget.WidgetKind(namespace, **more)]

    @property
    def leads(self) -> bool:
        return self.manager._gate.is_open

    @property
    def passes(self) -> int:
        """Passes so far."""
        samples = [s for metric in self.manager.metrics.reconciles.collect() for s in metric.samples]
        return int(sum(s.value for s in samples if s.name.endswith("_total")))

    @property
    def idle(self) -> bool:
        """No key waits for a worker or is with one."""
        return not len(self.manager._keys) and not self.manager._keys.working

    def knows_label(self, name: str, label: str) -> bool:
        """Whether its cache holds the Widget with that label."""
        found = self.kind.find(self.kind.namespaces[0], name)
        return found is not None and label in found.metadata.labels

    @property
    def wrote(self) -> list[str]:
        """What it has changed so far."""
        return [write.what for write in self.wire.writes]

    async def stop(self) -> bool:
        self.stopping.set()
        return await self.task

    async def kill(self) -> None:
        """As SIGKILL: not one request more."""
        self.wire.dead.set()
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@contextlib.asynccontextmanager
async def operating(client: kube_client.Client, namespace: str, **more: Any) -> AsyncIterator[Operator]:
    """A running operator, killed in the end if it was not stopped."""
    it = Operator(client, namespace, **more)
    try:
        yield it
    finally:
        await it.kill()


class User:
    """What people do, and see, with a client of their own."""

    def __init__(self, client: kube_client.Client, namespace: str, *, group: str = widget.GROUP) -> None:
        self.client, self.namespace, self.resource = client, namespace, widget.resource(group)

    async def create(self, name: str, **spec: str) -> None:
        body = {
            "apiVersion": self.resource.api_version,
            "kind": "Widget",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": spec,
        }
        await self.client.create(self.resource, self.namespace, body, field_manager="user")

    async def change(self, name: str, body: Any, resource: meta.Resource | None = None) -> None:
        await self.client.patch_merge(resource or self.resource, self.namespace, name, body, field_manager="user")

    async def delete(self, name: str, resource: meta.Resource | None = None) -> None:
        await self.client.delete(resource or self.resource, self.namespace, name, propagation="Background")

    async def leave(self) -> None:
        """Let go of what no operator will clean up any more, or its namespace would be terminating for ever."""
        for left in (await self.client.list(self.resource, self.namespace, as_=meta.Partial)).items:
            with contextlib.suppress(errors.NotFound):
                await self.change(left.metadata.name, {"metadata": {"finalizers": None}})

    async def look(self, name: str) -> widget.Widget | None:
        return await self._find(self.resource, name, widget.Widget)

    async def child(self, name: str) -> dict[str, Any] | None:
        return await self._find(kinds.CONFIG_MAP, f"{name}-widget", dict[str, Any])

    async def _find(self, resource: meta.Resource, name: str, as_: type[T]) -> T | None:
        try:
            return await self.client.get(resource, self.namespace, name, as_=as_)
        except errors.NotFound:
            return None

    async def ready(self, name: str) -> widget.Widget:
        """Wait until the latest generation is Ready."""

        async def is_ready() -> widget.Widget | None:
            found = await self.look(name)
            if found is None or found.status.observed_generation != found.metadata.generation:
                return None
            ready = next((c for c in found.status.conditions if c.type == "Ready"), None)
            return found if ready is not None and ready.status == "True" else None

        found: widget.Widget = await until(is_ready)
        return found

    async def gone(self, name: str) -> None:
        """Wait until the Widget is gone."""

        async def is_gone() -> bool:
            return await self.look(name) is None

        await until(is_gone)


async def until(condition: Callable[[], Any], *, within: float = PATIENCE) -> Any:
    """Ask again and again until the (perhaps awaited) answer is true, and return it."""
    async with asyncio.timeout(within):
        while True:
            answer = condition()
            if isinstance(answer, Awaitable):
                answer = await answer
            if answer:
                return answer
            await asyncio.sleep(0.01)
