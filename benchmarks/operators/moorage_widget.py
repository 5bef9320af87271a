"""The benchmark's Widget operator on moorage, as an operator's author writes it."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Iterable
from typing import Annotated, Any

import msgspec
import prometheus_client as prometheus
import uvloop
from prometheus_client import metrics_core

from benchmarks.operators import names
from moorage.api import builtin, common_status, crd, meta
from moorage.children import apply
from moorage.kube import client as kube_client
from moorage.kube import credentials
from moorage.kube.http import transport
from moorage.kube.informers import garbage_collector, informer
from moorage.runtime import decision, freshness, kind, manager
from moorage.runtime.decision import DONE, Act, Fact, Verdict
from moorage.runtime.reporting import telemetry

RESOURCE = meta.Resource(names.GROUP, names.VERSION, "Widget", "widgets")


class Spec(msgspec.Struct, frozen=True):
    text: Annotated[str, msgspec.Meta(max_length=100)] = ""


class Status(common_status.Status, frozen=True, kw_only=True, rename="camel"):
    text: str = ""


class Widget(msgspec.Struct, frozen=True):
    metadata: meta.ObjectMeta
    spec: Spec = Spec()
    status: Status = Status()


class Seen(msgspec.Struct, frozen=True):
    spec: Spec
    body: dict[str, Any]
    children: freshness.Observed[apply.Child]

    @property
    def child(self) -> apply.Child:
        return freshness.value_of(self.children) or apply.Child()


def definition() -> dict[str, Any]:
    return crd.crd(
        group=names.GROUP,
        version=names.VERSION,
        kind="Widget",
        plural="widgets",
        spec=Spec,
        status=Status,
        categories=(),
    )


def available(seen: Seen) -> Fact:
    return Fact("Available", bool(seen.child.uid), "Present" if seen.child.uid else "Missing")


def child_is_known(seen: Seen) -> Verdict:
    if isinstance(seen.children, freshness.Failed):
        return decision.unknown("Looking", seen.children, "child")
    return DONE


def child_is_applied(seen: Seen) -> Verdict:
    if seen.child.good:
        return DONE
    write = apply.write(builtin.CONFIG_MAP, seen.body, seen.child, why="it is wanted")
    return Act("Applying", "the ConfigMap is not as it is wanted", (write,))


class WidgetKind(kind.Kind[Widget, Seen]):
    """`idle` counts passes over an object that was settled already: outside resyncs, work that an echo has caused."""

    resource = RESOURCE
    model = Widget
    finalizer = f"{names.GROUP}/widget"  # never set: the ConfigMap goes with its owner
    ready_facts = frozenset({"Available"})
    steps = (child_is_known, child_is_applied)
    facts = (available,)

    def __init__(self, namespace: str, *, resync: float, wide: bool, crowd: str = "") -> None:
        """`crowd` is a namespace whose ConfigMaps are watched although they are nobody's business."""
        self.namespaces, self.resync = (namespace,), resync
        self._wide, self._crowd = wide, crowd
        self._idle = 0

    async def start(self, world: kind.World) -> None:
        self._world = world
        self._compared = apply.Children(world.verified)
        namespace = self.namespaces[0]
        self._children = world.informers.watch(builtin.CONFIG_MAP, dict, namespace=namespace, labels=names.OWNER)
        self._children.subscribe(self._on_child)
        for other in names.WIDE if self._wide else ():
            world.informers.watch(meta.Resource(*other), dict, namespace=namespace)
        if self._crowd:
            world.informers.watch(builtin.CONFIG_MAP, meta.Partial, namespace=self._crowd)

    def _on_child(self, change: informer.Change[dict[str, Any]]) -> None:
        metadata = (change.new or change.old or {})["metadata"]
        self._world.enqueue(self.key(metadata["namespace"], metadata["labels"][names.OWNER]), backlog=change.initial)

    def observe(self, obj: Widget, now: float) -> Seen:
        there = obj.metadata
        body = apply.stamped(names.body(there.namespace, there.name, there.uid, obj.spec.text))
        live = self._children.get(there.namespace, names.child(there.name))
        child = (
            freshness.Fresh(self._compared.look(body, live)) if self._children.synced else freshness.not_yet("child")
        )
        seen = Seen(obj.spec, body, child)
        self._idle += seen.child.good and obj.status.observed_generation == there.generation
        return seen

    def report(self, seen: Seen, _: decision.StepTaken | None) -> dict[str, Any]:
        return {"text": seen.spec.text if seen.child.good else ""}

    def metrics(self) -> Iterable[prometheus.Metric]:
        yield metrics_core.CounterMetricFamily("bench_idle_passes", "Passes over settled objects.", value=self._idle)


def _options() -> argparse.Namespace:
    parser = names.parser()
    parser.add_argument("--elect", action="store_true", help="a lease")
    parser.add_argument("--identity", default="bench", help="by which the lease is held")
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--crowd", default="", help="a namespace whose ConfigMaps are kept in view")
    return parser.parse_args()


async def _run() -> bool:
    given = _options()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    settings = manager.Settings(
        identity=given.identity,
        namespace=given.namespace,
        shards=given.shards,
        elect=given.wide or given.elect,
        host="127.0.0.1",
        port=given.port,
        workers=given.workers,
        events="none",  # as the peers' operators write none
    )
    wire = transport.HttpTransport(await credentials.from_kubeconfig(given.kubeconfig))
    widget = WidgetKind(given.namespace, resync=given.resync, wide=given.wide, crowd=given.crowd)
    try:
        return await manager.Manager(kube_client.Client(wire), (widget,), settings).run(stop)
    finally:
        await wire.close()


def main() -> None:
    """Run until SIGTERM."""
    telemetry.configure_logging("warning", as_json=True)
    garbage_collector.settle()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if not runner.run(_run()):
            sys.exit(1)


if __name__ == "__main__":
    main()
