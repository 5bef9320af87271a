"""The RuntimeVersion as the runtime runs it: its watches, and its observation.

It reads watches and sources alone; it writes nothing by itself. It starts after the Runtimes' kind, whose objects it
reads.
"""

from __future__ import annotations

import asyncio
import functools
from typing import Any

from moorage.api import builtin, conditions
from moorage.children import apply, health, owners, parts, pod_trouble
from moorage.children.live import guards, surroundings
from moorage.kube import client as kube_client
from moorage.kube.informers import informer
from moorage.operators import system, tenancy
from moorage.operators.kre import config, kinds, names
from moorage.operators.kre.runtime import kind as runtime_kind
from moorage.operators.kre.runtime import types as runtime_types
from moorage.runtime import cancellation, decision, freshness, kind, namespace_watches

from . import build, control, facts, given, inputs, nats_access, observation, streams, types
from .observation import ActiveSeen, NodeSeen, ObjectsSeen, RuntimeSeen, Seen
from .wanted import Wanted

Object = dict[str, Any]
_EVERYTHING = nats_access.OWNED


class VersionKind(kind.Kind[types.RuntimeVersion, Seen]):
    """RuntimeVersions."""

    resource = kinds.RUNTIME_VERSION
    model = types.RuntimeVersion
    finalizer = kinds.VERSION_FINALIZER
    steps = control.STEPS
    deletion_steps = control.DELETION_STEPS
    facts = facts.FACTS

    _world: kind.World
    _places: tenancy.Places
    _watches: namespace_watches.Watches[nats_access.View]
    _given: given.Given
    _nats: nats_access.Streams
    _around: surroundings.Surroundings
    _children: apply.Children

    def __init__(
        self, settings: config.Config, environment: system.Environment, runtimes: runtime_kind.RuntimeKind
    ) -> None:
        self._settings, self._runtimes, self.resync = settings, runtimes, settings.resync_seconds
        self.rights, self.namespaces = runtimes.rights, runtimes.namespaces
        self._made: dict[kind.Key, tuple[tuple[Any, ...], tuple[parts.Desired, ...]]] = {}
        runtimes.versions = self._known
        runtimes.on_credentials = self._on_credentials
        self._neighbours = runtimes.neighbours

    async def start(self, world: kind.World) -> None:
        """Open the watches; see `Kind.start`."""
        self._world = world
        self._children = apply.Children(world.verified)
        wake = functools.partial(tenancy.wake, world, self)
        self._places = tenancy.Places(world, self.rights, self._settings.namespaces, wake)
        self._watches = namespace_watches.Watches(
            lambda namespace: nats_access.View(world, namespace, self.rights.user(namespace))
        )
        self._given = given.Given(world, self._within, self._settings.poll.idle_seconds)
        self._nats = nats_access.Streams(world, self._settings.poll, self._watches, self._wanted)
        self._around = surroundings.Surroundings(world, self._within)
        self.operations = self._nats.operations
        self.guards = {"name_is_free": self._name_is_free, "others_stay": self._neighbours.stay}
        self.fillers = {"mongo": self._address}
        for cache in self._runtimes.informers:
            cache.subscribe(self._on_runtime)
        for own in self.informers:
            own.subscribe(self._on_own)
            own.subscribe(self._runtimes.on_version)
        self._synced = asyncio.create_task(self._places.announce())

    async def stop(self) -> None:
        """See `Kind.stop`."""
        self._synced.cancel()
        await cancellation.stopped(self._nats, self._given, *self._around.all, self._watches)

    def user(self, obj: types.RuntimeVersion) -> str:
        """The account of its namespace, as for its Runtime."""
        return self.rights.user(obj.metadata.namespace)

    def claimed_by(self, obj: types.RuntimeVersion) -> str | None:
        """As for its Runtime."""
        return self._places.claimed_by(obj.metadata.namespace)

    def lane(self, obj: types.RuntimeVersion) -> str:
        """All versions of a namespace: one of them is published."""
        return f"kre-versions:{obj.metadata.namespace}"

    def placement(self, obj: types.RuntimeVersion) -> str:
        """That of its Runtime."""
        return kinds.placement(obj.metadata.namespace)

    def forget(self, namespace: str, name: str) -> None:
        """See `Kind.forget`."""
        key = self.key(namespace, name)
        self._nats.forget(key)
        self._given.source.forget(key)
        for each in self._around.all:
            each.forget(key)
        self._watches.leave(key)
        self._made.pop(key, None)
        self._neighbours.forget()
        tenancy.wake(self._world, self, namespace)  # who had the same name may go on

    def report(self, seen: Seen, standing: decision.StepTaken | None) -> dict[str, Any]:
        """See `Kind.report`."""
        return facts.report(seen, standing)

    # --- the observation ---------------------------------------------------------------------------------------------

    def observe(self, obj: types.RuntimeVersion, now: float) -> Seen:
        """See `Kind.observe`."""
        namespace, key = obj.metadata.namespace, self.key(*obj.metadata.key)
        binding = self._places.binding(namespace)
        bound = (found := freshness.value_of(binding)) is not None and found.right
        if not bound:
            self._watches.leave(key)
        view = self._watches.enter(namespace, key) if bound else None
        fails, whole = self._stand_in(obj)
        seen = Seen(
            meta=obj.metadata.without_last_applied(),
            spec=obj.spec,
            status=obj.status,
            now=now,
            rights=self.rights,
            allowed=self._places.allow(namespace),
            namespace_ending=self._places.is_ending(namespace),
            binding=binding,
            neighbours=self._neighbours.count(obj),
            runtimes=self._seen_runtimes(obj),
            others=tuple(sorted(it.metadata.name for it in self._here(namespace))),
            published_fails=fails,
            previous_is_whole=whole,
            older=self._older(obj),
            fetcher=bool(self._settings.versions.images.fetcher),
            ack_wait=self._settings.versions.ack_wait_seconds,
            inputs=freshness.not_yet("inputs"),
            nats=freshness.not_yet("nats"),
            objects=freshness.not_yet("objects"),
        )
        if view is None:
            return seen
        seen = _with(seen, inputs=self._inputs(seen, key))
        seen = _with(seen, objects=self._objects(seen, view, key, now))
        return _with(seen, nats=self._streams(seen, view, key))

    def _inputs(self, seen: Seen, key: kind.Key) -> freshness.Observed[inputs.Inputs]:
        if seen.runtime is None:
            return freshness.not_yet("inputs")
        read = self._given.source.follow(inputs.asked(seen.meta.namespace, seen.spec), key)
        if isinstance(read, freshness.Failed):
            return read
        made = inputs.inputs(seen.spec, read.value)
        return freshness.Stale(made, read.at, read.why) if isinstance(read, freshness.Stale) else freshness.Fresh(made)

    def _streams(self, seen: Seen, view: nats_access.View, key: kind.Key) -> freshness.Observed[observation.NatsSeen]:
        namespace, counting = seen.meta.namespace, seen.counting
        busy = bool(counting) or not conditions.is_true(seen.status.conditions, "Ready")
        wanted = tuple(each.name for each in seen.wanted if each.kind == streams.STREAM)
        found = self._nats.seen(namespace, wanted, key, counting=counting)
        self._nats.set_pace(namespace, key, busy=busy)
        if not view.unsynced and view.nats:
            self._nats.may_ask(namespace, key)
        return found

    # --- objects -----------------------------------------------------------------------------------------------------

    def _objects(
        self, seen: Seen, view: nats_access.View, key: kind.Key, now: float
    ) -> freshness.Observed[ObjectsSeen]:
        if unsynced := view.unsynced:
            return freshness.unsynced(unsynced[0].error, "objects")
        there = tuple(
            parts.SurplusSeen(resource, name, it["metadata"]["uid"], "deletionTimestamp" in it["metadata"])
            for resource in _EVERYTHING
            for it in view.of(resource, seen.meta.name)
            if (name := it["metadata"]["name"]) != seen.names.active and view.mine(resource, name, seen.meta)
        )
        known, children = freshness.value_of(seen.inputs), None
        runtime, active = seen.runtime, ActiveSeen()
        if runtime is not None:
            wanted = Wanted(
                metadata=seen.meta,
                spec=seen.spec,
                runtime=runtime.name,
                images=self._settings.versions.images,
                inputs=known.print if known else "",
            )
            if known is not None and not seen.meta.deleting and not seen.spec.too_large:
                children = tuple(
                    (each, self._children.look(each.body, view.mine(each.resource, each.name, seen.meta)))
                    for each in self._bodies(wanted, key)
                )
            active = self._active(wanted, runtime, view)
        nodes = self._nodes(seen, view, key) if runtime is not None and not seen.spec.too_large else ()
        return freshness.Fresh(ObjectsSeen(there, children, nodes, active), now)

    def _bodies(self, wanted: Wanted, key: kind.Key) -> tuple[parts.Desired, ...]:
        """Made once of a spec and what is around it: of a large version that takes time."""
        of = wanted.metadata
        basis = (of.uid, of.generation, wanted.runtime, wanted.inputs)
        known = self._made.get(key)
        if known is None or known[0] != basis:
            known = self._made[key] = (basis, build.children(wanted))
        return known[1]

    def _active(self, wanted: Wanted, runtime: RuntimeSeen, view: nats_access.View) -> ActiveSeen:
        """The Service of what is published; one that the Runtime does not own is somebody else's."""
        owner = kinds.RUNTIME.ref(wanted.metadata.namespace, runtime.name, runtime.uid)
        desired = build.active(wanted, owner)
        live = view.objects[builtin.SERVICE].get(wanted.metadata.namespace, desired.name)
        if live is not None and not owners.is_owned(live, runtime.uid):
            live = None
        labels = ((live or {}).get("metadata") or {}).get("labels") or {}
        metadata = (live or {}).get("metadata") or {}
        return ActiveSeen(
            uid=metadata.get("uid", ""),
            resource_version=metadata.get("resourceVersion", ""),
            version=labels.get(kinds.OF_VERSION, ""),
            wanted=desired,
            child=self._children.look(desired.body, live),
        )

    def _nodes(self, seen: Seen, view: nats_access.View, key: kind.Key) -> tuple[NodeSeen, ...]:
        """Each node whose Deployment is there, and the entrypoint."""
        of, by_node = seen.names, dict[str, list[Object]]()
        for pod in view.of(builtin.POD, seen.meta.name):
            by_node.setdefault((pod["metadata"].get("labels") or {}).get("node-id", ""), []).append(pod)
        rows = [
            (workflow.name, node.name, of.deployment(workflow.name, node.name), node.replicas)
            for workflow in seen.spec.graph
            for node in workflow.nodes
        ]
        ids = {name: name for _, _, name, _ in rows} | {of.entrypoint: "entrypoint"}
        rows.append(("", "entrypoint", of.entrypoint, 1))
        found = [
            (row, live, by_node.get(ids[row[2]], []))
            for row in rows
            if (live := view.mine(kinds.DEPLOYMENT, row[2], seen.meta)) is not None
        ]
        pods = [pod for _, _, own in found for pod in own]
        wanted = sum(row[3] for row, *_ in found)
        events = self._around.warnings_about(pods, wanted, seen.meta.namespace, key)
        return tuple(_node(row, live, own, events) for row, live, own in found)

    # --- Runtimes, and other versions --------------------------------------------------------------------------------

    def _known(self) -> list[types.RuntimeVersion] | None:
        """All versions, for their Runtimes."""
        known = bool(self.informers) and all(cache.synced for cache in self.informers)
        return list(self.items()) if known else None

    def _here(self, namespace: str) -> list[runtime_types.Runtime]:
        return [it for it in self._runtimes.items() if it.metadata.namespace == namespace]

    def _meant(self, obj: types.RuntimeVersion) -> list[runtime_types.Runtime]:
        """Those that may be meant; what is deleted means the one that it was made in, whatever its spec names."""
        here = self._here(obj.metadata.namespace)
        ref = obj.spec.runtime_ref.name if obj.spec.runtime_ref else ""
        if obj.metadata.deleting and obj.status.made:
            ref = obj.status.runtime or ref
        return [it for it in here if ref in ("", it.metadata.name)]

    def _seen_runtimes(self, obj: types.RuntimeVersion) -> freshness.Observed[tuple[RuntimeSeen, ...]]:
        if any(not cache.synced for cache in self._runtimes.informers):
            return freshness.not_yet("runtimes")
        return freshness.Fresh(tuple(_runtime(it) for it in sorted(self._meant(obj), key=lambda it: it.metadata.name)))

    def _older(self, obj: types.RuntimeVersion) -> str:
        """The RuntimeVersion of the same version's name that was there before it."""

        def age(it: types.RuntimeVersion) -> tuple[str, str]:
            return it.metadata.creation_timestamp, it.metadata.name

        same = [
            it
            for it in self.items()
            if it.metadata.namespace == obj.metadata.namespace and it.spec.version == obj.spec.version
        ]
        first = min(same, key=age, default=obj)
        return "" if first.metadata.name == obj.metadata.name else first.metadata.name

    def _of_version(self, namespace: str, version: str) -> types.RuntimeVersion | None:
        """The oldest of that name, which has it."""
        same = [it for it in self.items() if (it.metadata.namespace, it.spec.version) == (namespace, version)]
        return min(same, key=lambda it: (it.metadata.creation_timestamp, it.metadata.name), default=None)

    def _stand_in(self, obj: types.RuntimeVersion) -> tuple[bool, bool]:
        """Whether what is published is broken, and what may stand in for it whole; by their own status."""
        namespace, meant = obj.metadata.namespace, self._meant(obj)
        if len(meant) != 1 or not (previous := _runtime(meant[0]).previous):
            return False, False
        published = self._of_version(namespace, meant[0].spec.published_version)
        before = self._of_version(namespace, previous)
        whole = before is not None and not before.metadata.deleting and before.status.phase in ("STARTED", "PUBLISHED")
        return published is not None and _is_broken(published), whole

    def _wanted(self, obj: types.RuntimeVersion) -> dict[str, streams.Wanted]:
        meant = self._meant(obj)
        if len(meant) != 1:
            return {}
        runtime = _runtime(meant[0])
        found = streams.wanted(
            names.Names(runtime.name, obj.spec.version),
            obj.spec.graph,
            obj.metadata.name,
            runtime.servers,
            self._settings.versions.ack_wait_seconds,
        )
        return {each.name: each for each in found}

    # --- what is checked live, and what is filled in -----------------------------------------------------------------

    def _within(self, namespace: str) -> kube_client.Client:
        """What acts in that namespace and nowhere else."""
        return self._world.client.as_(self.rights.user(namespace))

    async def _name_is_free(self, obj: types.RuntimeVersion, args: dict[str, Any]) -> str:
        resource = next(it for it in _EVERYTHING if it.kind == args["kind"])
        return await guards.name_is_free(
            self._within(obj.metadata.namespace),
            resource,
            str(args["name"]),
            obj.metadata,
            label=kinds.OF_VERSION,
            called="version",
        )

    async def _address(self, obj: types.RuntimeVersion, body: dict[str, Any]) -> dict[str, Any]:
        return await self._given.address(obj.metadata.namespace, body)

    # --- news --------------------------------------------------------------------------------------------------------

    def _on_runtime(self, change: informer.Change[runtime_types.Runtime]) -> None:
        old, new = change.old, change.new
        if (found := new or old) is None or (old and new and _runtime(old) == _runtime(new)):
            return
        tenancy.wake(self._world, self, found.metadata.namespace)

    def _on_credentials(self, namespace: str) -> None:
        """Containers are to have others soon: until they do, their logins fail."""
        for obj in self.items():
            if obj.metadata.namespace == namespace:
                self._given.source.outdate(inputs.asked(namespace, obj.spec), "the Runtime has other credentials")

    def _on_own(self, change: informer.Change[types.RuntimeVersion]) -> None:
        """Who has the same version's name may have to wait, or go on; and one may stand in for another."""
        old, new = change.old, change.new
        if old and new and (old.status.phase, _is_broken(old)) != (new.status.phase, _is_broken(new)):
            self._wake_stand_ins(new.metadata.namespace)
        if (found := new or old) is None or (old and new and old.spec.version == new.spec.version):
            return
        for obj in self.items():
            if (obj.metadata.namespace, obj.spec.version) == (found.metadata.namespace, found.spec.version):
                self._world.enqueue(self.key(*obj.metadata.key))

    def _wake_stand_ins(self, namespace: str) -> None:
        """Where one version may stand in for another, both look at how the other is."""
        pairs = [(_runtime(it).previous, it.spec.published_version) for it in self._here(namespace)]
        for obj in self.items():
            if obj.metadata.namespace == namespace and any(obj.spec.version in pair for pair in pairs if pair[0]):
                self._world.enqueue(self.key(*obj.metadata.key))


# --- from live objects to what is seen of them -----------------------------------------------------------------------


def _with(seen: Seen, **changed: Any) -> Seen:
    """As it is, but for that; nothing that was made of it before is kept."""
    fields = {field: getattr(seen, field) for field in seen.__struct_fields__}
    return Seen(**fields | changed)


def _is_broken(version: types.RuntimeVersion) -> bool:
    """Whether calls to it can't be answered, by its own status: a node, or the entrypoint, has no pod that is ready."""
    return version.status.phase == "ERROR" and any(not each.ready for each in version.status.nodes)


def _runtime(obj: runtime_types.Runtime) -> RuntimeSeen:
    before, published = obj.status.previous_version, obj.spec.published_version
    falls_back = obj.spec.publish_on_failure == "Previous" and published == obj.status.published_version
    return RuntimeSeen(
        name=obj.metadata.name,
        uid=obj.metadata.uid,
        ready=conditions.is_true(obj.status.conditions, "Ready"),
        deleting=obj.metadata.deleting,
        published=published,
        previous=before if falls_back and before != published else "",
        servers=obj.status.nats_servers or 1,
    )


def _node(row: tuple[str, str, str, int], live: Object, pods: list[Object], events: tuple[Object, ...]) -> NodeSeen:
    workflow, name, deployment, replicas = row
    found = health.health(live, pods, events)
    statuses = [each for pod in pods for each in (pod.get("status") or {}).get("containerStatuses") or ()]
    return NodeSeen(
        workflow=workflow,
        name=name,
        ref=kinds.DEPLOYMENT.ref(live["metadata"]["namespace"], deployment, live["metadata"]["uid"]),
        pods_ready=sum(pod_trouble.ready(pod) for pod in pods),
        wanted=replicas,
        former=max(0, sum(not pod_trouble.has_ended(pod) for pod in pods) - replicas),
        ready=found.ok,
        restarts=sum(int(each.get("restartCount") or 0) for each in statuses),
        reason="" if found.ok else found.reason,
        message="" if found.ok else found.message,
        fix=found.fix,
    )
