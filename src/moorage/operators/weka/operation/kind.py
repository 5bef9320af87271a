"""The WekaManualOperation as the runtime runs it: its observation, and the one thing that is written of a node.

It reads watches alone. Of nodes it alone writes the annotations that tell of drives, each only if it still is as it
was when that was decided.
"""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.api import builtin
from moorage.children import apply, objects, owners, reading
from moorage.children.live import guards
from moorage.operators.weka import agents, common_kind, names, shared
from moorage.operators.weka.container import build as container_build
from moorage.runtime import decision, freshness, kind

from . import control, observation, types

_ANNOTATIONS = (names.DRIVES, names.BLOCKED_DRIVES, names.BLOCKED_UUIDS, names.SIGN_HASH)


class OperationKind(common_kind.CommonKind[types.WekaManualOperation, observation.Seen]):
    """WekaManualOperations."""

    resource = names.OPERATION
    model = types.WekaManualOperation
    finalizer = names.OPERATION_FINALIZER
    steps = control.STEPS
    deletion_steps = control.DELETION_STEPS
    facts = control.FACTS

    def __init__(self, common: shared.Shared) -> None:
        super().__init__(common)
        common.operations = self

    async def start(self, world: kind.World) -> None:
        """Open the watches; see `Kind.start`."""
        self._common.open(world)
        for cache in self.informers:
            cache.subscribe(self._common.on_operation)
        self._children = apply.Children(world.verified)
        self.operations = {"node.annotate": self._annotate}
        self.guards = {
            objects.NAME_IS_FREE: self._name_is_free,
            control.DRIVES_ARE_NOBODYS: self._drives_are_nobodys,
            "others_stay": self._common.neighbours.stay,
        }

    def lane(self, _: types.WekaManualOperation) -> str:
        """One operation after another, as they may be about the same nodes."""
        return "weka:drives"

    # --- the observation -----------------------------------------------------------------------------------------

    def observe(self, obj: types.WekaManualOperation, now: float) -> observation.Seen:
        """See `Kind.observe`."""
        found: freshness.Observed[observation.Objects] = freshness.not_yet("objects")
        view = self._enter(obj)
        if view is not None:
            found = self._objects(obj, view, now)
        return observation.Seen(
            **msgspec.structs.asdict(self._placed(obj, now)), spec=obj.spec, status=obj.status, objects=found
        )

    def _objects(
        self, obj: types.WekaManualOperation, view: agents.View, now: float
    ) -> freshness.Observed[observation.Objects]:
        if (late := self._common.unsynced(view)) is not None:
            return late
        wanted = container_build.scripts(obj.metadata.namespace, self._settings.dialect)
        scripts = self._children.look(wanted.body, view.scripts.get(obj.metadata.namespace, names.SCRIPTS))
        pods = [it for it in view.operation_pods.items() if owners.is_controlled(it, obj.metadata.uid)]
        nodes = [it for it in self._common.nodes() if _is_for(obj, it)]
        return freshness.Fresh(
            observation.Objects(
                nodes={it.metadata.name: node_seen(it, self._common.whose(it.metadata.name)) for it in nodes},
                pods={it["metadata"]["name"]: pod_seen(it, now) for it in pods},
                scripts=(wanted, scripts),
            )
        )

    # --- what is done, and what is checked live -------------------------------------------------------------------

    async def _annotate(self, obj: types.WekaManualOperation, args: dict[str, Any]) -> decision.Outcome:
        """Annotations of a node, in a name of its own; one that is not as it was makes all a conflict."""
        name, world = str(args["node"]), self._common.world
        live = self._common.node(name)
        there = dict(live.metadata.annotations) if live is not None else {}
        ops: list[dict[str, Any]] = []
        if not there:
            ops = [
                {"op": "test", "path": "/metadata/annotations", "value": None},
                {"op": "add", "path": "/metadata/annotations", "value": {}},
            ]
        for key, value in sorted(args["wanted"].items()):
            path = f"/metadata/annotations/{key.replace('/', '~1')}"
            ops.append({"op": "test", "path": path, "value": args["before"][key]})
            ops.append({"op": "remove", "path": path} if value is None else {"op": "add", "path": path, "value": value})
        async with world.own_write(builtin.NODE, "", name) as own:
            written = await world.client.patch_json(
                builtin.NODE,
                "",
                name,
                ops,
                field_manager=names.NODE_MANAGER,
                as_=msgspec.Raw,
                timeout=world.gate.timeout(15.0),
            )
            own.took(written)
        return decision.Ok()

    async def _drives_are_nobodys(self, _: types.WekaManualOperation, args: dict[str, Any]) -> str:
        """What the pod is told not to touch is all that containers have by now."""
        new = sorted(self._common.whose(str(args["node"])).keys() - {*args["taken"]})
        return f"a container has got drive {', '.join(new)} meanwhile" if new else ""

    async def _name_is_free(self, obj: types.WekaManualOperation, args: dict[str, Any]) -> str:
        if args["kind"] == builtin.CONFIG_MAP.kind:
            return ""  # it is the namespace's own, and applied by whoever comes first
        client = self._common.inside.within(obj.metadata.namespace)
        return await guards.name_is_free(
            client, builtin.POD, str(args["name"]), obj.metadata, label=names.OPERATION_NAME, called="operation"
        )


def _is_for(obj: types.WekaManualOperation, node: shared.Node) -> bool:
    """Whether the operation is for that node: by its status once it has begun, else as its payload says."""
    name, labels = node.metadata.name, node.metadata.labels
    if obj.status.nodes:
        return name in obj.status.nodes
    if named := types.node(obj.spec):
        return name == named
    return all(labels.get(key) == value for key, value in types.selector(obj.spec).items())


def node_seen(node: shared.Node, taken: dict[str, str]) -> observation.NodeSeen:
    """What is seen of a node."""
    annotations = node.metadata.annotations
    found, fault = node.told(names.DRIVES, names.BLOCKED_DRIVES, names.BLOCKED_UUIDS)
    return observation.NodeSeen(
        name=node.metadata.name,
        ready=node.ready,
        boot=node.status.node_info.boot_id[:253],
        drives=found.get(names.DRIVES, ()),
        blocked=found.get(names.BLOCKED_DRIVES, ()),
        blocked_uuids=found.get(names.BLOCKED_UUIDS, ()),
        annotations={name: annotations[name] for name in _ANNOTATIONS if name in annotations},
        taken=taken,
        fault=fault,
    )


def pod_seen(live: dict[str, Any], now: float) -> observation.PodSeen:
    """What is seen of a pod of an operation, and what it left."""
    status = live.get("status") or {}
    inside: dict[str, Any] = next(iter(status.get("containerStatuses") or ()), {})
    ended = (inside.get("state") or {}).get("terminated") or {}
    return observation.PodSeen(
        reading.pod(live, -1, around=reading.Around(now)),
        node=(live.get("spec") or {}).get("nodeName", ""),
        ended=status.get("phase") in ("Failed", "Succeeded"),
        told=str(ended.get("message") or ""),
        why=str(status.get("reason") or ended.get("reason") or ""),
    )
