"""What the API server allows: a bare client that sends the two writes of each Widget, with the two watches open.

It compares nothing and keeps nothing, and speaks HTTP by moorage's own transport, the leanest of those compared; so
nothing that does the same work can be much faster.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import uvloop

from benchmarks import protocol
from benchmarks.operators import names
from moorage.kube import credentials
from moorage.kube.http import transport

TIMEOUT = 30.0


class Meta(msgspec.Struct):
    name: str = ""
    uid: str = ""
    generation: int = 0


class Spec(msgspec.Struct):
    text: str = ""


class Status(msgspec.Struct, rename="camel"):
    observed_generation: int = -1


class Widget(msgspec.Struct):
    metadata: Meta
    spec: Spec = msgspec.field(default_factory=Spec)
    status: Status = msgspec.field(default_factory=Status)


class Limit:
    """`workers` write at a time."""

    def __init__(self, wire: transport.Transport, namespace: str) -> None:
        self._wire, self._namespace = wire, namespace
        self._work: asyncio.Queue[Widget] = asyncio.Queue()

    async def run(self, workers: int) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._widgets())
            group.create_task(self._children())
            for _ in range(workers):
                group.create_task(self._write())

    async def _widgets(self) -> None:
        path = names.widgets(self._namespace)
        found = msgspec.json.decode(await self._send("GET", path), type=protocol.Page[Widget])
        for widget in found.items or ():
            self._take(widget)
        decoder = msgspec.json.Decoder(Widget)
        async for event in self._watch(path, found.metadata.resource_version):
            if event.type in ("ADDED", "MODIFIED"):
                self._take(decoder.decode(event.object))

    def _take(self, widget: Widget) -> None:
        if widget.status.observed_generation != widget.metadata.generation:
            self._work.put_nowait(widget)

    async def _children(self) -> None:
        async for _ in self._watch(names.config_maps(self._namespace), "0", labelSelector=names.OWNER):
            pass

    async def _write(self) -> None:
        while True:
            widget = await self._work.get()
            it = widget.metadata
            path = names.config_maps(self._namespace, names.child(it.name))
            body = names.body(self._namespace, it.name, it.uid, widget.spec.text)
            await self._send("PATCH", path, body, protocol.APPLY, fieldManager="limit", force="true")
            status = names.status(widget.spec.text, it.generation)
            await self._send(
                "PATCH", names.widgets(self._namespace, it.name, "status"), {"status": status}, protocol.MERGE
            )

    async def _send(self, method: str, path: str, body: Any = None, content_type: str = "", **query: str) -> bytes:
        given = None if body is None else msgspec.json.encode(body)
        answer = await self._wire.request(
            method, path, query=query, body=given, content_type=content_type, timeout=TIMEOUT
        )
        if answer.status >= 400:
            raise RuntimeError(f"{method} {path}: {answer.status}: {answer.body[:300]!r}")
        return answer.body

    async def _watch(self, path: str, version: str, **query: str) -> AsyncIterator[protocol.Event]:
        given = protocol.watching(version, query)
        async with self._wire.stream("GET", path, query=given, timeout=TIMEOUT) as answer:
            if answer.status >= 400:
                raise RuntimeError(f"watch {path}: {answer.status}")
            async for event in protocol.events(answer.chunks()):
                yield event


async def _run() -> None:
    given = names.options()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    wire = transport.HttpTransport(await credentials.from_kubeconfig(given.kubeconfig))
    working = asyncio.create_task(Limit(wire, given.namespace).run(given.workers))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if working.done():
        await working
    working.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await working
    await wire.close()


def main() -> None:
    """Run until SIGTERM."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run())


if __name__ == "__main__":
    main()
