"""What is remembered of objects has an end: a process that runs for months has seen more than it may keep."""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Iterator, Mapping, Set
from typing import Any

import msgspec

from moorage.api import builtin
from moorage.children import apply
from moorage.kube import client as kube_client
from moorage.runtime import decision, manager, tasks
from moorage.runtime.decision import DONE, Act, Verdict
from moorage.runtime.reporting import event_recorder
from moorage.runtime.workqueue import queue
from tests.unit.runtime import gadgets
from tests.unit.runtime.fake_api import Asked, FakeApi, Refusal, until
from tests.unit.runtime.gadgets import GadgetKind, Seen

MANY = 1000


def containers(it: Any, path: str = "", known: set[int] | None = None) -> Iterator[tuple[str, int]]:
    """Each collection that `it` holds, however deep within moorage's own objects, and how much is in it."""
    known = set() if known is None else known
    if id(it) in known:
        return
    known.add(id(it))
    inside: list[tuple[str, Any]] = []
    if isinstance(it, Mapping | Set | list | collections.deque):
        yield path, len(it)
        values = it.values() if isinstance(it, Mapping) else it
        inside = [(f"{path}[]", each) for each in tuple(values)]
    elif type(it).__module__.startswith(("moorage.", "tests.")) and not isinstance(it, msgspec.Struct | FakeApi):
        names = [
            *getattr(it, "__dict__", ()),
            *(name for of in type(it).__mro__ for name in getattr(of, "__slots__", ())),
        ]
        inside = [(f"{path}.{name}", getattr(it, name, None)) for name in names]
    for where, each in inside:
        yield from containers(each, where, known)


class Grown(GadgetKind):
    """Each Gadget has a child and a task, and its first write is refused; all that is remembered somewhere."""

    finalizer = gadgets.FINALIZER

    def __init__(self) -> None:
        super().__init__((self.is_held, self.has_child, self.has_run), deletion_steps=(self.child_goes, self.goes))
        self.operations = {"work": self.work}

    async def work(self, *_: Any) -> decision.Outcome:
        return decision.Ok()

    def observe(self, obj: gadgets.Gadget, now: float) -> Seen:
        live = self.children.get("ns", obj.metadata.name)
        return Seen(now, obj, (live,) if live else ())

    def forget(self, namespace: str, name: str) -> None:
        pass

    def is_held(self, seen: Seen) -> Verdict:
        if gadgets.FINALIZER in seen.gadget.metadata.finalizers:
            return DONE
        return Act("Holding", "held", (decision.EditFinalizer(why="w", present=True),))

    def has_child(self, seen: Seen) -> Verdict:
        name = seen.gadget.metadata.name
        body = apply.stamped(gadgets.child(name, name))
        found = apply.Children(self.world.verified).look(body, seen.children[0] if seen.children else None)
        if found.good:
            return DONE
        return Act("Applying", "applied", (apply.write(builtin.CONFIG_MAP, body, found, why="w"),))

    def has_run(self, seen: Seen) -> Verdict:
        if isinstance(self.world.tasks.state(seen.gadget.metadata.uid), tasks.Ended):
            return DONE
        return Act("Running", "runs", (decision.Run(why="w", task="work", lane=seen.gadget.metadata.uid),))

    def child_goes(self, seen: Seen) -> Verdict:
        if not seen.children:
            return DONE
        metadata = seen.children[0]["metadata"]
        ref = builtin.CONFIG_MAP.ref("ns", metadata["name"], metadata["uid"])
        return Act("Leaving", "goes", (decision.Delete(why="w", resource=builtin.CONFIG_MAP, ref=ref),))

    def goes(self, _: Seen) -> Verdict:
        return Act("Left", "gone", (decision.EditFinalizer(why="w", present=False),))


async def test_of_a_thousand_objects_that_are_gone_nothing_is_left(api: FakeApi) -> None:
    """Whichever collection grows with objects: it is as it was before them."""
    refused: set[str] = set()

    async def refuse_once(asked: Asked) -> None:
        wanted = asked.at.plural == "configmaps" and asked.method == "PATCH" and asked.at.name.endswith("7")
        if wanted and asked.at.name not in refused:
            refused.add(asked.at.name)
            raise Refusal(422, "Invalid")

    api.before = refuse_once
    kind_ = Grown()
    settings = manager.Settings(identity="me", namespace="ns", elect=False, port=0, backoff=0.01)
    it = manager.Manager(kube_client.Client(api), [kind_], settings)
    stop = asyncio.Event()
    running = asyncio.create_task(it.run(stop))
    await _come(api, ["first"])
    await _go(api, it, ["first"])
    before = dict(containers(it))
    many = [f"g{n}" for n in range(MANY)]
    await _come(api, many)
    between = {path.rpartition(".")[2] for path, size in containers(it) if size >= MANY / 10}
    await _go(api, it, many)
    after = {path: size for path, size in containers(it) if size > before.get(path, 0)}
    stop.set()
    await running

    assert {"_memories", "_wishes", "_states", "_lanes_of", "_pairs"} <= between, "all that is meant is looked at"
    bounds = {
        "._recorder._told": event_recorder.REMEMBERED,  # for ten minutes
        "._keys._delayed": 2 * queue.KEPT,  # until their time
        ".metrics._acts": 100,  # by reason
        ".metrics._passes": 100,
    }
    assert {} == {path: size for path, size in after.items() if size > bounds.get(path, 0)}


async def _come(api: FakeApi, names: list[str]) -> None:
    for name in names:
        await api.put("gadgets", name)
    await until(lambda: all(_is_ready(api, name) for name in names), within=60)


async def _go(api: FakeApi, it: manager.Manager, names: list[str]) -> None:
    for name in names:
        await api.mark_deleted("gadgets", name)
    await until(lambda: not any(at.plural in ("gadgets", "configmaps") for at in api.objects), within=60)
    await until(lambda: not it._keys.working and not len(it._keys) and not it._recorder._notes.qsize())


def _is_ready(api: FakeApi, name: str) -> bool:
    said = api.one("gadgets", name).get("status", {}).get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in said)
