"""The runtime's reference kind on a real API server: a Widget owns one ConfigMap, and may ask for a long task."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import msgspec

from moorage.api import builtin, common_status, crd, meta
from moorage.children import apply
from moorage.kube import errors
from moorage.kube.informers import informer
from moorage.runtime import decision, freshness, kind, tasks
from moorage.runtime.decision import DONE, Act, Fact, Verdict, Wait

GROUP = "test.moorage.dev"
FINALIZER = f"{GROUP}/widget"
OWNER = f"{GROUP}/widget"


class Spec(msgspec.Struct, frozen=True):
    text: Annotated[str, msgspec.Meta(max_length=100)] = ""
    task: Annotated[str, msgspec.Meta(max_length=100)] = ""


class Status(common_status.Status, frozen=True, kw_only=True, rename="camel"):
    text: str = ""
    begun: str = ""
    finished: str = ""


class Widget(msgspec.Struct, frozen=True):
    metadata: meta.ObjectMeta
    spec: Spec = Spec()
    status: Status = Status()


class Seen(msgspec.Struct, frozen=True):
    meta: meta.ObjectMeta
    spec: Spec
    status: Status
    body: dict[str, Any]
    children: freshness.Observed[apply.Child]
    task: tasks.TaskState

    @property
    def child(self) -> apply.Child:
        return freshness.value_of(self.children) or apply.Child()


def resource(group: str = GROUP) -> meta.Resource:
    return meta.Resource(group, "v1", "Widget", "widgets")


def definition(group: str = GROUP) -> dict[str, Any]:
    return crd.crd(group=group, version="v1", kind="Widget", plural="widgets", spec=Spec, status=Status, categories=())


# --- facts and steps -------------------------------------------------------------------------------------------------


def available(seen: Seen) -> Fact:
    return Fact("Available", bool(seen.child.uid), "Present" if seen.child.uid else "Missing")


def finalizer_is_set(seen: Seen) -> Verdict:
    if FINALIZER in seen.meta.finalizers:
        return DONE
    action = decision.EditFinalizer(why="nothing may be left behind", present=True)
    return Act("TakingCare", "the finalizer is set", (action,))


def child_is_known(seen: Seen) -> Verdict:
    if isinstance(seen.children, freshness.Failed):
        return decision.unknown("Looking", seen.children, "child")
    return DONE


def child_is_applied(seen: Seen) -> Verdict:
    if seen.child.good:
        return DONE
    write = apply.write(builtin.CONFIG_MAP, seen.body, seen.child, why="it is wanted")
    return Act("Applying", f"the ConfigMap differs in {seen.child.differs}", (write,))


def task_has_run(seen: Seen) -> Verdict:
    """Written ahead: `begun` names the attempt before it starts, `finished` when it ended well."""
    wanted, status = seen.spec.task, seen.status
    if not wanted or status.finished == wanted:
        return DONE
    match seen.task:
        case tasks.Running():
            return Wait("Running", "the task runs", on="task", within=60)
        case tasks.Ended(attempt=attempt, outcome=decision.Ok()) if attempt == wanted:
            note = decision.Remember(why="it is done", fields={"finished": wanted})
            return Act("Finished", "the task has ended", (note,))
    note = decision.Remember(why="written ahead", fields={"begun": wanted})
    run = decision.Run(why="it is asked for", task="work", lane=seen.meta.uid, args={"attempt": wanted})
    return Act("Starting", "the task is started", (note, run))


def child_is_gone(seen: Seen) -> Verdict:
    if not seen.child.uid:
        return DONE
    if seen.child.deleting:
        return Wait("Leaving", "the ConfigMap goes", on="child", within=60)
    ref = builtin.CONFIG_MAP.ref(seen.meta.namespace, f"{seen.meta.name}-widget", seen.child.uid)
    return Act("Leaving", "the ConfigMap is deleted", (decision.Delete(why="w", resource=builtin.CONFIG_MAP, ref=ref),))


def finalizer_goes(seen: Seen) -> Verdict:
    gone = decision.Guard("child_is_gone")
    action = decision.EditFinalizer(why="all is gone", present=False, require=(gone,))
    return Act("Left", "all is gone", (action,))


STEPS = (finalizer_is_set, child_is_known, child_is_applied, task_has_run)
DELETION_STEPS = (child_is_known, child_is_gone, finalizer_goes)


class WidgetKind(kind.Kind[Widget, Seen]):
    """`work` is what a task does; `on_observe` lets a test stop the world."""

    resource = resource()
    model = Widget
    finalizer = FINALIZER
    ready_facts = frozenset({"Available"})
    steps = STEPS
    deletion_steps = DELETION_STEPS
    facts = (available,)

    def __init__(self, namespace: str, *, group: str = GROUP, resync: float = 600.0) -> None:
        self.namespaces, self.resync = (namespace,), resync
        self.resource = resource(group)  # type: ignore[misc]
        self.work: Callable[[], Awaitable[None]] = _nothing
        self.on_observe: Callable[[], None] = lambda: None
        self.operations = {"work": self._work}
        self.guards = {"child_is_gone": self._child_is_gone}

    async def start(self, world: kind.World) -> None:
        self._world = world
        self._compared = apply.Children(world.verified)
        self._children = world.informers.watch(builtin.CONFIG_MAP, dict, namespace=self.namespaces[0], labels=OWNER)
        self._children.subscribe(self._on_child)

    def _on_child(self, change: informer.Change[dict[str, Any]]) -> None:
        metadata = (change.new or change.old or {})["metadata"]
        self._world.enqueue(self.key(metadata["namespace"], metadata["labels"][OWNER]), backlog=change.initial)

    def observe(self, obj: Widget, now: float) -> Seen:
        self.on_observe()
        body = _body(obj)
        live = self._children.get(obj.metadata.namespace, body["metadata"]["name"])
        child = (
            freshness.Fresh(self._compared.look(body, live)) if self._children.synced else freshness.not_yet("child")
        )
        return Seen(
            meta=obj.metadata,
            spec=obj.spec,
            status=obj.status,
            body=body,
            children=child,
            task=self._world.tasks.state(obj.metadata.uid),
        )

    def report(self, seen: Seen, _: decision.StepTaken | None) -> dict[str, Any]:
        return {"text": seen.spec.text if seen.child.good else ""}

    async def _work(self, _: Widget, args: dict[str, Any]) -> decision.Outcome:
        await self.work()
        return decision.Ok()

    async def _child_is_gone(self, obj: Widget, _: dict[str, Any]) -> str:
        try:
            await self._world.client.get(builtin.CONFIG_MAP, obj.metadata.namespace, f"{obj.metadata.name}-widget")
        except errors.NotFound:
            return ""
        return "the ConfigMap is there"


def _body(obj: Widget) -> dict[str, Any]:
    metadata = obj.metadata
    return apply.stamped(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": f"{metadata.name}-widget",
                "namespace": metadata.namespace,
                "labels": {OWNER: metadata.name},
            },
            "data": {"text": obj.spec.text},
        }
    )


async def _nothing() -> None:
    """Ends in its first step, so surely before the pass that started it has its next answer."""
