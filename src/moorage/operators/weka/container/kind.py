"""The WekaContainer as the runtime runs it: its observation, its orders, and the guard of what it gets.

It reads watches and sources alone; it writes nothing by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from moorage.api import builtin
from moorage.children import apply, objects, reading
from moorage.children.live import guards
from moorage.operators.weka import agents, allocation, answers, common_kind, names, place, shared
from moorage.operators.weka.cluster import types as cluster_types
from moorage.runtime import decision, freshness, kind

from . import build, control, deletion, facts, observation, types
from .reasons import ContainerReason as Reason


class ContainerKind(common_kind.CommonKind[types.WekaContainer, observation.Seen]):
    """WekaContainers."""

    resource = names.CONTAINER
    model = types.WekaContainer
    finalizer = names.CONTAINER_FINALIZER
    ready_facts = facts.READY_FACTS
    steps = control.STEPS
    deletion_steps = deletion.DELETION_STEPS
    facts = facts.FACTS

    def __init__(self, common: shared.Shared) -> None:
        super().__init__(common)
        common.containers = self

    async def start(self, world: kind.World) -> None:
        """Open the watches; see `Kind.start`."""
        self._common.open(world)
        for cache in self.informers:
            cache.subscribe(self._common.on_container)
        self._children = apply.Children(world.verified)
        within = ("container.allow_stop", "container.write_resources", "container.join", "drive.add")
        outside = ("member.deactivate", "member.remove", "drive.deactivate", "drive.remove")
        self.operations = {
            **{order: self._order(order) for order in within},
            **{order: self._order_of_cluster(order) for order in outside},
        }
        self.guards = {
            control.ALLOCATION_IS_FREE: self._common.allocation_is_free,
            objects.NAME_IS_FREE: self._name_is_free,
            "others_stay": self._common.neighbours.stay,
        }

    def lane(self, obj: types.WekaContainer) -> str:
        """All that is done to one cluster."""
        cluster = self._common.cluster_of(obj)
        return lane(cluster) if cluster is not None else ""

    def report(self, seen: observation.Seen, standing: decision.StepTaken | None) -> dict[str, Any]:
        """See `Kind.report`."""
        return facts.report(seen, standing)

    # --- the observation -----------------------------------------------------------------------------------------

    def observe(self, obj: types.WekaContainer, now: float) -> observation.Seen:
        """See `Kind.observe`."""
        inside, key, cluster = self._common.inside, self.key(*obj.metadata.key), self._common.cluster_of(obj)
        objects: freshness.Observed[observation.Objects] = freshness.not_yet("objects")
        local: freshness.Observed[answers.Local] = freshness.not_yet("container")
        told: freshness.Observed[answers.Cluster] = freshness.not_yet("cluster")
        view = self._enter(obj)
        if view is not None:
            objects = self._objects(obj, cluster, view, now)
            known = not isinstance(objects, freshness.Failed)  # else nobody would be found who could be asked
            if known and view.pod(obj) is not None:
                local = inside.local(obj, key)
            if known and cluster is not None:
                told = inside.cluster(cluster.metadata.key, key)
        return observation.Seen(
            **msgspec.structs.asdict(self._placed(obj, now)),
            spec=obj.spec,
            status=obj.status,
            pod_body=build.pod(build.of(obj, _owner_uid(cluster), self._settings.dialect)),
            revision=build.revision(obj.spec),
            objects=objects,
            local=local,
            cluster=told,
        )

    def _objects(
        self, obj: types.WekaContainer, cluster: cluster_types.WekaCluster | None, view: agents.View, now: float
    ) -> freshness.Observed[observation.Objects]:
        if (late := self._common.unsynced(view)) is not None:
            return late
        live = view.pod(obj)
        pod = None
        if live is not None:
            annotations = live["metadata"].get("annotations") or {}
            seen = reading.pod(live, -1, around=reading.Around(now))
            node_name, phase = (live.get("spec") or {}).get("nodeName", ""), (live.get("status") or {}).get("phase")
            ended = phase in ("Failed", "Succeeded") and not seen.deleting
            pod = observation.PodSeen(seen, node_name, annotations.get(build.REVISION, ""), ended=ended)
        pinned = obj.status.node_affinity or obj.spec.node_affinity or ""
        name = pinned or (pod.node if pod else "")
        node = self._common.node(name) if name else None
        wanted = build.scripts(obj.metadata.namespace, self._settings.dialect)
        scripts = self._children.look(wanted.body, view.scripts.get(obj.metadata.namespace, names.SCRIPTS))
        return freshness.Fresh(
            observation.Objects(
                pod=pod,
                scripts=(wanted, scripts),
                node=shared.node_seen(node, domain(obj)) if node is not None else None,
                node_gone=bool(pinned) and node is None,
                owner=self._owner(cluster, obj, view) if cluster is not None else None,
                taken=self._common.taken(name, obj.metadata.uid) if name else (),
            )
        )

    def _owner(
        self, cluster: cluster_types.WekaCluster, obj: types.WekaContainer, view: agents.View
    ) -> observation.OwnerSeen:
        ports, spec = cluster.status.ports, cluster.spec
        confirmed = place.confirmed(cluster.metadata)
        return observation.OwnerSeen(
            name=cluster.metadata.name,
            uid=cluster.metadata.uid,
            deleting=cluster.metadata.deleting,
            guid=cluster.status.cluster_id,
            ports=allocation.Span(ports.base_port, ports.port_range) if ports and ports.base_port else None,
            stripe=cluster_types.weakest_stripe(spec),
            single_node=bool(spec.overrides and spec.overrides.disregard_redundancy),
            forces=bool(confirmed & {"upgradeForceReplace", "upgradeForceReplaceDrives"}),
            away=frozenset(self._away(cluster, obj, view)),
        )

    def _away(self, cluster: cluster_types.WekaCluster, obj: types.WekaContainer, view: agents.View) -> Iterator[int]:
        """Of two that are to end, none of which may stop yet, the one that was deleted first waits for no other."""
        own = _ends(view.pod(obj), obj.metadata.name)
        for it in self._common.members(cluster.metadata.key) if own < NEVER else ():
            pod, host = view.pod(it), it.status.container_id
            if it.metadata.uid != obj.metadata.uid and host is not None:
                ends = _ends(pod, it.metadata.name)
                may_stop = it.status.progress.reason == Reason.ENDING_POD and ends < NEVER
                if pod is None or may_stop or ends < own:
                    yield host

    # --- orders, and what is checked live -------------------------------------------------------------------------

    def _order(self, order: str) -> kind.Operation[types.WekaContainer]:
        """An order to the container itself, to that very pod of it that was seen."""

        async def told(obj: types.WekaContainer, args: dict[str, Any]) -> decision.Outcome:
            cluster = self._common.cluster_of(obj)
            place = cluster.metadata.key if cluster is not None else None
            return await self._common.inside.tell(
                obj.metadata.key, place, order, args, Reason.ORDER_REFUSED, uid=str(args["pod"])
            )

        return told

    def _order_of_cluster(self, order: str) -> kind.Operation[types.WekaContainer]:
        """An order to its cluster, about it."""

        async def told(obj: types.WekaContainer, args: dict[str, Any]) -> decision.Outcome:
            cluster = self._common.cluster_of(obj)
            if cluster is None:
                return decision.Conflict("its WekaCluster is gone")
            return await self._common.inside.tell_cluster(
                cluster.metadata.key, order, args, Reason.ORDER_REFUSED, but=obj.metadata.name
            )

        return told

    async def _name_is_free(self, obj: types.WekaContainer, args: dict[str, Any]) -> str:
        if args["kind"] == builtin.CONFIG_MAP.kind:
            return ""  # it is the namespace's own, and applied by whoever comes first
        client = self._common.inside.within(obj.metadata.namespace)
        return await guards.name_is_free(
            client, builtin.POD, str(args["name"]), obj.metadata, label=names.CONTAINER_NAME, called="container"
        )


NEVER = ("~", "")


def _ends(pod: dict[str, Any] | None, name: str) -> tuple[str, str]:
    """By which pods that are being deleted are put in order; one that is not comes last."""
    at = pod["metadata"].get("deletionTimestamp") if pod is not None else None
    return (str(at), name) if at else NEVER


def lane(cluster: cluster_types.WekaCluster) -> str:
    """All that is done to one cluster is done one thing at a time."""
    return f"weka:{cluster.metadata.namespace}/{cluster.metadata.name}"


def _owner_uid(cluster: cluster_types.WekaCluster | None) -> str:
    return cluster.metadata.uid if cluster is not None else ""


def domain(obj: types.WekaContainer) -> tuple[str, ...]:
    """The labels of nodes that a failure domain is made of."""
    given = obj.spec.failure_domain or {}
    label, labels = given.get("label"), given.get("compositeLabels")
    found = [label] if isinstance(label, str) and label else labels if isinstance(labels, list) else []
    return tuple(it for it in found if isinstance(it, str))[:8]
