"""The Widgets of one case: made, changed, watched until they are settled, and removed. The harness's own two watches.

A Widget is settled when its ConfigMap holds its text and its status speaks of its generation.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Protocol, TypeVar

import msgspec

from benchmarks import bare
from benchmarks.operators import names

WRITERS = 16
T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class Take(Protocol[T_contra]):
    """What an object that came or went is handed to."""

    def __call__(self, obj: T_contra, /, *, gone: bool) -> None:
        """Keep it, or drop it."""


class Meta(msgspec.Struct, rename="camel"):
    """Of any object."""

    name: str = ""
    generation: int = 0
    resource_version: str = ""
    labels: dict[str, str] = {}


class Spec(msgspec.Struct):
    """Of a Widget."""

    text: str = ""


class Status(msgspec.Struct, rename="camel"):
    """Of a Widget."""

    observed_generation: int = -1
    text: str = ""


class Widget(msgspec.Struct):
    """A Widget as the harness reads it."""

    metadata: Meta
    spec: Spec = msgspec.field(default_factory=Spec)
    status: Status = msgspec.field(default_factory=Status)


class Child(msgspec.Struct):
    """A ConfigMap as the harness reads it."""

    metadata: Meta
    data: dict[str, str] = {}


class World:
    """One namespace and what is in it."""

    def __init__(self, client: bare.Client, namespace: str) -> None:
        self.client, self.namespace = client, namespace
        self._widgets: dict[str, Widget] = {}
        self._texts: dict[str, str] = {}
        self._unsettled: set[str] = set()
        self._awaited: dict[tuple[str, str], asyncio.Future[float]] = {}
        self._news = asyncio.Event()
        self.settled_at = 0.0
        """When the last Widget became settled (monotonic seconds)."""

    # --- doing -------------------------------------------------------------------------------------------------------

    async def make(self, count: int, *, first: int = 0) -> None:
        """New Widgets, as fast as the server takes them."""
        path = names.widgets(self.namespace)

        async def one(number: int) -> None:
            body = {
                "apiVersion": f"{names.GROUP}/{names.VERSION}",
                "kind": "Widget",
                "metadata": {"name": name_of(number), "namespace": self.namespace},
                "spec": {"text": f"text {number}"},
            }
            await self.client.send("POST", path, body)

        await _many(one, range(first, first + count))

    async def make_strangers(self, count: int) -> None:
        """ConfigMaps that belong to no Widget."""
        path = names.config_maps(self.namespace)

        async def one(number: int) -> None:
            body = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": f"stranger-{number:06}", "labels": {"app": "somebody-else"}},
                "data": {"key": f"value {number}" * 20},
            }
            await self.client.send("POST", path, body)

        await _many(one, range(count))

    async def change(self, name: str, text: str) -> tuple[float, float]:
        """Seconds from sending a change of the spec, and from its answer, to the child that has it."""
        seen = self._awaited[name, text] = asyncio.get_running_loop().create_future()
        sent = time.monotonic()
        await self.client.merge(names.widgets(self.namespace, name), {"spec": {"text": text}})
        taken = time.monotonic()
        async with asyncio.timeout(120):
            at = await seen
        return at - sent, max(0.0, at - taken)

    async def heal(self, name: str) -> float:
        """Seconds from the deletion of a Widget's child to its return."""
        seen: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._awaited[name, self._texts[name]] = seen
        sent = time.monotonic()
        await self.client.send("DELETE", names.config_maps(self.namespace, names.child(name)))
        async with asyncio.timeout(30):
            return await seen - sent

    async def settled(self, check: Callable[[], None], *, count: int, within: float = 300.0) -> float:
        """When (monotonic seconds) all `count` Widgets were settled. Raises TimeoutError, and what `check` raises."""
        ends = time.monotonic() + within
        while len(self._widgets) < count or self._unsettled:
            self._news.clear()
            if time.monotonic() > ends:
                raise TimeoutError(f"{len(self._unsettled)} of {len(self._widgets)} Widgets are not settled")
            check()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._news.wait()
        return self.settled_at

    async def first_child(self, *, within: float = 60.0) -> None:
        """Return once there is a child."""
        ends = time.monotonic() + within
        while not self._texts:
            if time.monotonic() > ends:
                raise TimeoutError("no child came")
            await asyncio.sleep(0.002)

    @property
    def unsettled(self) -> int:
        """How many Widgets are not settled."""
        return len(self._unsettled)

    async def clear(self) -> None:
        """Remove all. The namespace itself stays, as nobody would end it at this level."""
        await asyncio.gather(*(self._empty(path(self.namespace)) for path in (names.widgets, names.config_maps)))

    async def _empty(self, path: str) -> None:
        while True:
            try:
                await self.client.send("DELETE", path)
            except (TimeoutError, bare.RefusedError):  # many objects take longer than one request may
                await asyncio.sleep(0.2)
            else:
                break

    # --- seeing ------------------------------------------------------------------------------------------------------

    async def follow(self) -> None:
        """Keep both collections in view, for ever."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(names.widgets(self.namespace), Widget, self._on_widget, {}))
            selected = {"labelSelector": names.OWNER}
            group.create_task(self._follow(names.config_maps(self.namespace), Child, self._on_child, selected))

    async def _follow(self, path: str, model: type[T], take: Take[T], query: dict[str, str]) -> None:
        decoder = msgspec.json.Decoder(model)
        while True:
            found, version = await self.client.list(path, model, **query)
            for obj in found:
                take(obj, gone=False)
            async for event in self.client.watch(path, version, **query):
                if event.type == "ERROR":
                    break
                if event.type != "BOOKMARK":
                    take(decoder.decode(event.object), gone=event.type == "DELETED")

    def _on_widget(self, widget: Widget, *, gone: bool) -> None:
        name = widget.metadata.name
        if gone:
            self._widgets.pop(name, None)
            self._unsettled.discard(name)
        else:
            self._widgets[name] = widget
            self._judge(name)

    def _on_child(self, child: Child, *, gone: bool) -> None:
        name = child.metadata.labels.get(names.OWNER, "")
        text = child.data.get("text", "")
        if gone:
            self._texts.pop(name, None)
        else:
            self._texts[name] = text
            seen = self._awaited.pop((name, text), None)
            if seen and not seen.done():  # who waited may have given up
                seen.set_result(time.monotonic())
        self._judge(name)

    def _judge(self, name: str) -> None:
        widget = self._widgets.get(name)
        if widget is None:
            return
        wanted, said = widget.spec.text, widget.status
        well = self._texts.get(name) == wanted == said.text and said.observed_generation == widget.metadata.generation
        if not well:
            self._unsettled.add(name)
        elif name in self._unsettled:
            self._unsettled.discard(name)
            self.settled_at = time.monotonic()
        if not self._unsettled:
            self._news.set()


def name_of(number: int) -> str:
    """What the Widget of that number is called."""
    return f"w{number:06}"


async def _many(one: Callable[[int], Awaitable[None]], numbers: Iterable[int]) -> None:
    left = iter(numbers)

    async def some() -> None:
        for number in left:
            await one(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(WRITERS):
            group.create_task(some())


@contextlib.asynccontextmanager
async def world(client: bare.Client, namespace: str) -> AsyncIterator[World]:
    """A fresh namespace in view; emptied in the end."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    await client.send("POST", "/api/v1/namespaces", body)
    it = World(client, namespace)
    following = asyncio.create_task(it.follow())
    try:
        yield it
    finally:
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await following
        await it.clear()
