"""A reference kind for the runtime's unit tests: a Gadget, whose steps a test gives."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import msgspec

from moorage.api import builtin, common_status, meta
from moorage.kube import client as kube_client
from moorage.kube.informers import informer
from moorage.runtime import decision, gate, kind
from moorage.runtime.leading import shards
from moorage.runtime.reconcile import controller
from moorage.runtime.reporting import event_recorder, telemetry
from moorage.runtime.workqueue import lanes, queue
from tests.unit.runtime.fake_api import FakeApi, Object

GADGET = meta.Resource("test.moorage.dev", "v1", "Gadget", "gadgets")
FINALIZER = "test.moorage.dev/gadget"
KEY = ("Gadget", "ns", "one")


class Spec(msgspec.Struct, frozen=True):
    size: int = 0
    lane: str = ""


class Status(common_status.Status, frozen=True, kw_only=True, rename="camel"):
    intent: str = ""
    report: dict[str, Any] = {}
    maybe: str | None = None


class Gadget(msgspec.Struct, frozen=True):
    metadata: meta.ObjectMeta
    spec: Spec = Spec()
    status: Status = Status()


class Seen(msgspec.Struct, frozen=True):
    """All that a Gadget's steps see."""

    now: float
    gadget: Gadget
    children: tuple[dict[str, Any], ...] = ()


class GadgetKind(kind.Kind[Gadget, Seen]):
    resource = GADGET
    model = Gadget
    finalizer = FINALIZER

    def __init__(self, steps: Sequence[decision.Step[Seen]] = (), **given: Any) -> None:
        self.steps = steps
        self.forgotten: list[str] = []
        self.seen: list[Seen] = []
        for name, value in given.items():
            setattr(self, name, value)

    async def start(self, world: kind.World) -> None:
        self.world = world
        self.children = world.informers.watch(builtin.CONFIG_MAP, dict)
        self.children.subscribe(self._on_child)

    def _on_child(self, change: informer.Change[dict[str, Any]]) -> None:
        child = change.new or change.old or {}
        owner = self.key(child["metadata"]["namespace"], child["metadata"]["labels"]["gadget"])
        self.world.enqueue(owner, backlog=change.initial)

    def observe(self, obj: Gadget, now: float) -> Seen:
        mine = [c for c in self.children.items() if c["metadata"]["labels"]["gadget"] == obj.metadata.name]
        self.seen.append(Seen(now, obj, tuple(mine)))
        return self.seen[-1]

    def lane(self, obj: Gadget) -> str:
        return obj.spec.lane

    def forget(self, namespace: str, name: str) -> None:
        self.forgotten.append(name)


class Clock:
    """Stands still in a turn: what a pass puts off is not due in the same one, however slow the machine."""

    def __init__(self) -> None:
        self._stood = 0.0
        self._since: float | None = None

    def __call__(self) -> float:
        return (time.monotonic() if self._since is None else self._since) - self._stood

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """It stands still for so long, also within another such time."""
        if self._since is not None:
            yield
            return
        begun = self._since = time.monotonic()
        try:
            yield
        finally:
            self._stood, self._since = self._stood + time.monotonic() - begun, None


class Bench:
    """One controller on a fake API server, worked by hand: `turn` runs the passes that are due."""

    def __init__(self, api: FakeApi, *kinds_: GadgetKind) -> None:
        self.api, self.kinds = api, kinds_
        self.client = kube_client.Client(api)
        self.informers = informer.Informers(self.client)
        self.gate = gate.Gate()
        self.shards = shards.Shards(1, self.gate)
        self.clock = Clock()
        self.keys: queue.WorkQueue[kind.Key] = queue.WorkQueue(base=0.05, clock=self.clock)
        self.world = kind.World(self.client, self.informers, self.gate, self.keys.add)
        self.recorder = event_recorder.Recorder(self.client, self.gate, instance="test")
        self.notes: list[event_recorder.Note] = []
        self.recorder.note = self.notes.append  # type: ignore[method-assign, assignment]
        self.passes = 0
        shared = lanes.Lanes()
        self.metrics = telemetry.Metrics()
        self.controllers = [
            controller.Controller(
                of,
                self.world,
                keys=self.keys,
                recorder=self.recorder,
                metrics=self.metrics,
                shared_lanes=shared,
                among=self.shards,
            )
            for of in kinds_
        ]

    async def turn(self, *, limit: int = 20) -> int:
        """Run what is due, until nothing is; how many passes that took. Fails when there is no end."""
        ran = 0
        with self.clock.held():
            while taken := self.keys.take():
                ran += 1
                assert ran <= limit, "no end of passes"
                await self.controllers[0].reconcile(taken[0])
                self.keys.done(taken[0])
        self.passes += ran
        return ran

    @property
    def status(self) -> Object:
        found: Object = self.api.one("gadgets", "one").get("status", {})
        return found

    @property
    def conditions(self) -> dict[str, tuple[str, str]]:
        return {c["type"]: (c["status"], c["reason"]) for c in self.status.get("conditions", ())}


@contextlib.asynccontextmanager
async def bench(api: FakeApi, *kinds_: GadgetKind) -> AsyncIterator[Bench]:
    """A started bench."""
    made = Bench(api, *kinds_)
    try:
        for each in made.controllers:
            await each.start()
        for cache in made.informers.all():
            await cache.wait_synced(30)
        yield made
    finally:
        await made.world.tasks.stop(1)
        await made.informers.stop()


def child(name: str, owner: str = "one", **data: str) -> dict[str, Any]:
    """A ConfigMap of a Gadget."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "ns", "labels": {"gadget": owner}},
        "data": data,
    }
