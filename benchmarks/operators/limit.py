"""What the API server allows: a bare client that sends the two writes of each Widget, with the two watches open.

It compares nothing and keeps nothing, so nothing that does the same work can be much faster.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal

import msgspec
import uvloop

from benchmarks import bare
from benchmarks.operators import names


class Meta(msgspec.Struct, rename="camel"):
    name: str
    uid: str = ""
    generation: int = 0
    resource_version: str = ""


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

    def __init__(self, client: bare.Client, namespace: str) -> None:
        self._client, self._namespace = client, namespace
        self._work: asyncio.Queue[Widget] = asyncio.Queue()

    async def run(self, workers: int) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._widgets())
            group.create_task(self._children())
            for _ in range(workers):
                group.create_task(self._write())

    async def _widgets(self) -> None:
        path = names.widgets(self._namespace)
        found, version = await self._client.list(path, Widget)
        for widget in found:
            self._take(widget)
        decoder = msgspec.json.Decoder(Widget)
        async for event in self._client.watch(path, version):
            if event.type in ("ADDED", "MODIFIED"):
                self._take(decoder.decode(event.object))

    def _take(self, widget: Widget) -> None:
        if widget.status.observed_generation != widget.metadata.generation:
            self._work.put_nowait(widget)

    async def _children(self) -> None:
        path = names.config_maps(self._namespace)
        _, version = await self._client.list(path, msgspec.Raw, labelSelector=names.OWNER)
        async for _ in self._client.watch(path, version, labelSelector=names.OWNER):
            pass

    async def _write(self) -> None:
        while True:
            widget = await self._work.get()
            it = widget.metadata
            body = names.body(self._namespace, it.name, it.uid, widget.spec.text)
            await self._client.apply(names.config_maps(self._namespace, names.child(it.name)), body, manager="limit")
            status = names.status(widget.spec.text, it.generation)
            await self._client.merge(names.widgets(self._namespace, it.name, "status"), {"status": status})


async def _run() -> None:
    given = names.options()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with bare.connected(given.kubeconfig, connections=given.workers) as client:
        working = asyncio.create_task(Limit(client, given.namespace).run(given.workers))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            await working
        working.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await working


def main() -> None:
    """Run until SIGTERM."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run())


if __name__ == "__main__":
    main()
