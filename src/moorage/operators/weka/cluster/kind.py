"""The WekaCluster as the runtime runs it: its observation, its orders, and the guard of its ports.

It reads watches and sources alone; it writes nothing by itself.
"""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.api import conditions
from moorage.children import apply, objects, parts
from moorage.children.live import guards
from moorage.operators.weka import agents, common_kind, names, shared
from moorage.operators.weka.container import build as container_build
from moorage.operators.weka.container import kind as container_kind
from moorage.operators.weka.container import types as container_types
from moorage.runtime import decision, freshness, kind

from . import build, control, deletion, facts, observation, rolling, types
from .reasons import ClusterReason as Reason


class ClusterKind(common_kind.CommonKind[types.WekaCluster, observation.Seen]):
    """WekaClusters."""

    resource = names.CLUSTER
    model = types.WekaCluster
    finalizer = names.CLUSTER_FINALIZER
    ready_facts = facts.READY_FACTS
    told_facts = facts.TOLD_FACTS
    steps = control.STEPS
    deletion_steps = deletion.DELETION_STEPS
    facts = facts.FACTS

    def __init__(self, common: shared.Shared) -> None:
        super().__init__(common)
        common.clusters = self

    async def start(self, world: kind.World) -> None:
        """Open the watches; see `Kind.start`."""
        self._common.open(world)
        for cache in self.informers:
            cache.subscribe(self._common.on_cluster)
        orders = (
            "cluster.set",
            "cluster.start_io",
            "user.add",
            "group.add",
            "filesystem.add",
            "upgrade.phase",
            "upgrade.finish",
        )
        self.operations = {order: self._order(order) for order in orders}
        self.operations |= {"cluster.form": self._form, "login.make": self._make_login}
        self.guards = {
            control.RANGE_IS_FREE: self._common.range_is_free,
            objects.NAME_IS_FREE: self._name_is_free,
            "others_stay": self._common.neighbours.stay,
        }

    def lane(self, obj: types.WekaCluster) -> str:
        """All that is done to one cluster."""
        return container_kind.lane(obj)

    def report(self, seen: observation.Seen, standing: decision.StepTaken | None) -> dict[str, Any]:
        """See `Kind.report`."""
        return facts.report(seen, standing)

    # --- the observation -----------------------------------------------------------------------------------------

    def observe(self, obj: types.WekaCluster, now: float) -> observation.Seen:
        """See `Kind.observe`."""
        inside, key = self._common.inside, self.key(*obj.metadata.key)
        seen = observation.Seen(
            **msgspec.structs.asdict(self._placed(obj, now)),
            spec=obj.spec,
            status=obj.status,
            replace=self._settings.replace,
            objects=freshness.not_yet("objects"),
            cluster=freshness.not_yet("cluster"),
        )
        view = self._enter(obj)
        if view is None:
            return seen
        if (late := self._common.unsynced(view)) is not None:  # nobody would be found who could be asked
            return msgspec.structs.replace(seen, objects=late)
        seen = msgspec.structs.replace(seen, cluster=inside.cluster(obj.metadata.key, key))
        return msgspec.structs.replace(seen, objects=self._objects(seen, obj, view, key))

    def _objects(
        self, seen: observation.Seen, obj: types.WekaCluster, view: agents.View, key: kind.Key
    ) -> freshness.Observed[observation.Objects]:
        login = self._login(obj, view, key)
        if isinstance(login, freshness.Failed):
            return login
        mine = list(self._common.members(obj.metadata.key))
        bodies = {it.metadata.name: desired for it in mine if (desired := wanted(seen, it, mine))}
        containers = tuple(sorted((container(seen, it, bodies) for it in mine), key=lambda it: it.name))
        return freshness.Fresh(
            observation.Objects(
                containers=containers,
                bodies=bodies,
                login=login.value,
                ranges=self._common.ranges(obj.metadata.uid),
                scripts=view.scripts_uid,
            )
        )

    def _login(
        self, obj: types.WekaCluster, view: agents.View, key: kind.Key
    ) -> freshness.Fresh[observation.LoginSeen] | freshness.Failed:
        people = view.secret(names.user_secret(obj.metadata.name))
        named = obj.spec.operator_secret_ref
        if not named:
            own = view.secret(names.operator_secret(obj.metadata.uid))
            return freshness.Fresh(observation.LoginSeen(own, people))
        found = self._common.inside.logins.read((obj.metadata.namespace, named), key)
        if isinstance(found, freshness.Failed):
            return found
        return freshness.Fresh(observation.LoginSeen(found.value, people))

    # --- orders --------------------------------------------------------------------------------------------------

    def _order(self, order: str) -> kind.Operation[types.WekaCluster]:
        async def told(obj: types.WekaCluster, args: dict[str, Any]) -> decision.Outcome:
            return await self._common.inside.tell_cluster(obj.metadata.key, order, args, Reason.ORDER_REFUSED)

        return told

    async def _form(self, obj: types.WekaCluster, args: dict[str, Any]) -> decision.Outcome:
        place = obj.metadata.namespace, str(args["pod"])
        return await self._common.inside.tell(place, obj.metadata.key, "cluster.form", args, Reason.ORDER_REFUSED)

    async def _name_is_free(self, obj: types.WekaCluster, args: dict[str, Any]) -> str:
        client = self._common.inside.within(obj.metadata.namespace)
        name = str(args["name"])
        return await guards.name_is_free(
            client, names.CONTAINER, name, obj.metadata, label=names.CLUSTER_NAME, called="cluster"
        )

    async def _make_login(self, obj: types.WekaCluster, args: dict[str, Any]) -> decision.Outcome:
        return await self._common.inside.make_login(obj, str(args["named"]))


# --- from WekaContainers to what is seen of them ----------------------------------------------------------------------


def wanted(
    seen: observation.Seen,
    it: container_types.WekaContainer,
    all_: list[container_types.WekaContainer],
) -> parts.Desired | None:
    """The container as it is to be, but for what it must be restarted for; None for one with another's name.

    Where its cluster is it is told once that says of itself that it is formed, and does not list the container as up.
    """
    role, number = it.spec.mode, names.number(seen.name, it.spec.mode, it.metadata.name)
    if role not in names.BACKEND or number < 0:
        return None
    join = it.spec.join_ip_ports
    if seen.known is not None and not join and not it.status.cluster_id and not seen.lists(it.spec.name):
        join = build.endpoints(
            sorted(
                (other.status.management_ip, other.status.allocations.weka_port)
                for other in all_
                if other.status.cluster_id and other.status.management_ip and other.status.allocations is not None
            )[:5]
        )
    given = it.spec.overrides
    return build.container(
        seen.meta,
        seen.spec,
        role,
        number,
        login=seen.spec.operator_secret_ref or names.operator_secret(seen.meta.uid),
        join=join,
        state=deletion.state(
            seen.meta.deletion_timestamp, seen.spec, seen.now, it.spec.state, ends=seen.namespace_ending
        ),
        keeps=build.kept(it.spec),
        force=bool(given and given.upgrade_force_replace and rolling.forces(seen, role)),
    )


def container(
    seen: observation.Seen, it: container_types.WekaContainer, bodies: dict[str, parts.Desired]
) -> observation.ContainerSeen:
    """One container of the cluster, beside what is wanted of it."""
    role = it.spec.mode
    desired = bodies.get(it.metadata.name)
    since, ready = it.status.progress.since, conditions.find(it.status.conditions, "Ready")
    return observation.ContainerSeen(
        name=it.metadata.name,
        uid=it.metadata.uid,
        role=role,
        number=names.number(seen.name, role, it.metadata.name),
        spec=it.spec,
        status=it.status,
        deleting=it.metadata.deleting,
        down=ready is not None and ready.status == "False",
        since=conditions.epoch(since) if since else 0.0,
        child=apply.Child(it.metadata.uid, it.metadata.deleting, differs(it, desired)),
        revision=container_build.revision(it.spec),
        wanted=container_build.revision(build.rolled(seen.spec, it.spec)) if desired else "",
    )


def differs(it: container_types.WekaContainer, desired: parts.Desired | None) -> tuple[str, ...]:
    """Paths at which it is not as it is to be; what others have added is no matter."""
    if desired is None:
        return ()
    metadata, spec = desired.body["metadata"], desired.body["spec"]
    meant = msgspec.convert(spec, container_types.WekaContainerSpec)
    live, want = msgspec.to_builtins(it.spec), msgspec.to_builtins(meant)
    paths = [f"spec.{name}" for name in spec if live[name] != want[name]]
    for part, have in (("labels", it.metadata.labels), ("annotations", it.metadata.annotations)):
        paths += [f"metadata.{part}.{name}" for name, value in metadata[part].items() if have.get(name) != value]
    if paths == [f"metadata.annotations.{apply.STAMP}"]:
        return (apply.STAMP,)
    return tuple(paths)
