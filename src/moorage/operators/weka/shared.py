"""What both kinds stand on: the places that are opened for them, the nodes, what has whom, and what is asked by exec.

It reads watches and sources alone. What is given out and not written yet is kept here until it is: so two that decide
at once get different ports and drives.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from moorage.api import builtin, meta
from moorage.kube.informers import informer
from moorage.operators import accounts, system, tenancy
from moorage.runtime import freshness, kind

from . import agents, allocation, config, names
from .cluster import types as cluster_types
from .container import observation
from .container import types as container_types
from .operation import types as operation_types


class NodeSpec(msgspec.Struct, frozen=True):
    """spec of a node, as far as it is read."""

    unschedulable: bool = False


class NodeCondition(msgspec.Struct, frozen=True):
    """A condition of a node."""

    type: str
    status: str = "Unknown"


class NodeInfo(msgspec.Struct, frozen=True):
    """What a node says of its machine."""

    boot_id: str = msgspec.field(name="bootID", default="")


class NodeStatus(msgspec.Struct, frozen=True, rename="camel"):
    """status of a node, as far as it is read."""

    conditions: tuple[NodeCondition, ...] = ()
    node_info: NodeInfo = NodeInfo()


class Node(msgspec.Struct, frozen=True):
    """A node, as its cache holds it."""

    metadata: meta.ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def ready(self) -> bool:
        """Whether its kubelet says so."""
        return any(it.type == "Ready" and it.status == "True" for it in self.status.conditions)

    def told(self, *called: str) -> tuple[dict[str, tuple[str, ...]], str]:
        """The serials in each of these annotations that can be read, and what can't be."""
        found: dict[str, tuple[str, ...]] = {}
        fault = ""
        for name in called:
            try:
                found[name] = allocation.serials(self.metadata.annotations.get(name, ""))
            except ValueError as error:
                fault = f"the annotation {name} can't be read: {error}"
        return found, fault


def node_seen(node: Node, domain: tuple[str, ...] = ()) -> observation.NodeSeen:
    """What is seen of a node; `domain` are the labels that its failure domain is made of."""
    found, fault = node.told(names.DRIVES, names.BLOCKED_DRIVES)
    return observation.NodeSeen(
        name=node.metadata.name,
        ready=node.ready,
        cordoned=node.spec.unschedulable,
        drives=() if fault else found[names.DRIVES],
        blocked=frozenset(found.get(names.BLOCKED_DRIVES, ())),
        failure_domain=allocation.failure_domain([node.metadata.labels.get(it, "") for it in domain]),
        fault=fault,
    )


class Shared:
    """One for all kinds. `containers`, `clusters` and `operations` set themselves, before anything starts."""

    containers: kind.Kind[container_types.WekaContainer, Any]
    clusters: kind.Kind[cluster_types.WekaCluster, Any]
    operations: kind.Kind[operation_types.WekaManualOperation, Any]
    world: kind.World
    inside: agents.Agents
    places: tenancy.Places
    _nodes: informer.Informer[Node]

    def __init__(self, settings: config.Config, environment: system.Environment) -> None:
        self.settings = settings
        self.rights = accounts.Rights(
            names.SYSTEM, environment.namespace, settings.accounts, settings.cluster_role, names.BINDING_FINALIZER
        )
        self.neighbours = tenancy.Neighbours(self._all, lambda obj: obj.metadata.namespace, "namespace")
        self._open = 0
        self._given: dict[str, tuple[str, allocation.Taken]] = {}  # by uid: on which node what
        self._ranges: dict[str, allocation.Span] = {}  # by uid

    def open(self, world: kind.World) -> None:
        """Called by each kind as it starts; the first opens the watches."""
        self._open += 1
        if self._open > 1:
            return
        self.world = world
        self.inside = agents.Agents(world, self.settings, self.rights, self.containers.find, self.members)
        opened = (names.OPENED, "privileged")
        self.places = tenancy.Places(world, self.rights, self.settings.namespaces, self._wake, opened)
        self._nodes = world.informers.watch(builtin.NODE, Node)
        self._nodes.subscribe(self._on_node)
        self._synced = asyncio.create_task(self._announce())

    async def close(self) -> None:
        """Called by each kind as it stops; the last closes what the first has opened."""
        self._open -= 1
        if not self._open:
            self._synced.cancel()
            await self.inside.stop()

    # --- what is watched ------------------------------------------------------------------------------------------

    def unsynced(self, view: agents.View) -> freshness.Failed | None:
        """What is not watched yet."""
        caches: list[informer.Informer[Any]] = [
            self._nodes,
            *self.containers.informers,
            *self.clusters.informers,
            *self.operations.informers,
        ]
        late = [*view.unsynced, *(it for it in caches if not it.synced)]
        return freshness.unsynced(late[0].error, "objects") if late else None

    def node(self, name: str) -> Node | None:
        """The node of that name."""
        return self._nodes.get("", name)

    def nodes(self) -> Iterable[Node]:
        """All nodes."""
        return self._nodes.items()

    # --- whose is whose ------------------------------------------------------------------------------------------

    def cluster_of(self, obj: container_types.WekaContainer) -> cluster_types.WekaCluster | None:
        """The WekaCluster that manages that container."""
        ref = next((it for it in obj.metadata.owner_references if it.controller), None)
        if ref is None or ref.kind != names.CLUSTER.kind:
            return None
        found = self.clusters.find(obj.metadata.namespace, ref.name)
        return found if found is not None and found.metadata.uid == ref.uid else None

    def members(self, place: agents.Place) -> Iterator[container_types.WekaContainer]:
        """The containers of the WekaCluster at a place."""
        cluster = self.clusters.find(*place)
        for it in self.containers.items():
            if cluster is not None and it.metadata.namespace == place[0]:
                if any(ref.controller and ref.uid == cluster.metadata.uid for ref in it.metadata.owner_references):
                    yield it

    # --- what is given out ---------------------------------------------------------------------------------------

    def taken(self, node: str, but: str) -> tuple[allocation.Taken, ...]:
        """What all containers but that of one uid have on a node, and what was given and is not written yet."""
        found = []
        for it in self.containers.items():
            uid, got = it.metadata.uid, it.status.allocations
            if uid == but or (it.status.node_affinity or it.spec.node_affinity) != node or got is None:
                continue
            found.append(_taken(uid, got.drives, got.weka_port, got.agent_port, self.settings))
        found += [it for uid, (where, it) in self._given.items() if where == node and uid != but]
        found += self._held(node)
        return tuple(sorted(found, key=lambda it: it.owner))

    def _held(self, node: str) -> Iterator[allocation.Taken]:
        """Drives of a node that are just being signed anew, which nobody gets meanwhile."""
        for it in self.operations.items():
            entry = it.status.nodes.get(node)
            live = self.node(node)
            if live is None or entry is None or entry.status != "Running" or not operation_types.destroys(it.spec):
                continue
            yield allocation.Taken(it.metadata.uid, frozenset(node_seen(live).drives))

    def whose(self, node: str) -> dict[str, str]:
        """Serials of drives of a node that containers have, and whose each is."""
        found: dict[str, str] = {}
        for it in self.containers.items():
            got = it.status.allocations
            if got is not None and (it.status.node_affinity or it.spec.node_affinity) == node:
                found |= dict.fromkeys(got.drives, f"WekaContainer {it.metadata.namespace}/{it.metadata.name}")
        for uid, (where, given) in self._given.items():
            if where == node:
                found = dict.fromkeys(given.drives, f"a WekaContainer (uid {uid})") | found
        return found

    async def allocation_is_free(self, obj: container_types.WekaContainer, args: dict[str, Any]) -> str:
        """The guard of what is about to be written: nobody else has it, and from now on nobody else gets it."""
        self._given.pop(obj.metadata.uid, None)
        node = str(args["node"])
        mine = _taken(obj.metadata.uid, args["drives"], args["wekaPort"], args["agentPort"], self.settings)
        for other in self.taken(node, obj.metadata.uid):
            if shared := sorted(mine.drives & other.drives):
                return f"another container has drive {', '.join(shared)}"
            if any(it.meets(theirs) for it in mine.ports for theirs in other.ports):
                return f"another container has ports from {args['wekaPort']} on"
        self._given[obj.metadata.uid] = (node, mine)
        return ""

    def ranges(self, but: str) -> tuple[allocation.Span, ...]:
        """The ports of all clusters but that of one uid, and those that were given and are not written yet."""
        found = [
            allocation.Span(it.status.ports.base_port, it.status.ports.port_range)
            for it in self.clusters.items()
            if it.metadata.uid != but and it.status.ports is not None and it.status.ports.base_port
        ]
        return tuple(sorted([*found, *(it for uid, it in self._ranges.items() if uid != but)]))

    async def range_is_free(self, obj: cluster_types.WekaCluster, args: dict[str, Any]) -> str:
        """The same for a cluster's range of ports."""
        mine = allocation.Span(int(args["first"]), int(args["count"]))
        if any(mine.meets(it) for it in self.ranges(obj.metadata.uid)):
            return f"another cluster has ports from {mine.first} on"
        self._ranges[obj.metadata.uid] = mine
        return ""

    def written(self, uid: str) -> None:
        """What was given to that one is in its status, or it is gone."""
        self._given.pop(uid, None)
        self._ranges.pop(uid, None)

    # --- news ----------------------------------------------------------------------------------------------------

    def _all(self) -> Iterable[Any]:
        return [*self.containers.items(), *self.clusters.items(), *self.operations.items()]

    def _on_node(self, change: informer.Change[Node]) -> None:
        old, new = change.old, change.new
        if old is not None and new is not None and node_seen(old) == node_seen(new):
            if old.metadata.labels == new.metadata.labels:
                return  # a heartbeat
        found = new or old
        for it in self.containers.items():
            if found is not None and found.metadata.name in (it.status.node_affinity, it.spec.node_affinity):
                self.world.enqueue(self.containers.key(*it.metadata.key), backlog=change.initial)
        for op in self.operations.items():
            if found is not None and op.status.status in ("", "Running"):
                if not op.status.nodes or found.metadata.name in op.status.nodes:
                    self.world.enqueue(self.operations.key(*op.metadata.key), backlog=change.initial)

    def on_operation(self, change: informer.Change[operation_types.WekaManualOperation]) -> None:
        """News of an operation: drives that it has held may be free for containers of its nodes."""
        old = change.old
        if old is None or not operation_types.destroys(old.spec) or old.status.status != "Running":
            return
        for it in self.containers.items():
            if it.status.node_affinity in old.status.nodes:
                self.world.enqueue(self.containers.key(*it.metadata.key))

    def on_container(self, change: informer.Change[container_types.WekaContainer]) -> None:
        """News of a container: its cluster may go on, and what was given to it may be written."""
        found = change.new or change.old
        if found is None:
            return
        if change.new is None or change.new.status.allocations is not None:
            self.written(found.metadata.uid)
        ref = next((it for it in found.metadata.owner_references if it.controller), None)
        if ref is not None:
            self.world.enqueue(self.clusters.key(found.metadata.namespace, ref.name), backlog=change.initial)

    def on_cluster(self, change: informer.Change[cluster_types.WekaCluster]) -> None:
        """News of a cluster: its containers may go on."""
        found, old, new = change.new or change.old, change.old, change.new
        if found is None:
            return
        if new is None or new.status.ports is not None:
            self.written(found.metadata.uid)
        if old and new and _matters(old) == _matters(new):
            return
        for it in self.containers.items():
            if any(ref.uid == found.metadata.uid for ref in it.metadata.owner_references):
                self.world.enqueue(self.containers.key(*it.metadata.key), backlog=change.initial)

    def _wake(self, namespace: str = "") -> None:
        kinds: tuple[kind.Kind[Any, Any], ...] = (self.containers, self.clusters, self.operations)
        for of in kinds:
            tenancy.wake(self.world, of, namespace)

    async def _announce(self) -> None:
        await self.places.wait_synced()
        await self._nodes.wait_synced(timeout=None)
        self._wake()


def _matters(obj: cluster_types.WekaCluster) -> Any:
    """What a container sees of its cluster."""
    return obj.spec, obj.metadata.deleting, obj.metadata.annotations, obj.status.ports, obj.status.cluster_id


def _taken(uid: str, drives: Iterable[str], first: int, agent: int, settings: config.Config) -> allocation.Taken:
    spans = (allocation.Span(first, settings.dialect.ports.container), allocation.Span(agent, 1))
    return allocation.Taken(uid, frozenset(drives), tuple(it for it in spans if it.first))
