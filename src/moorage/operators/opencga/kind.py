"""The OpenCGACommunity as the runtime runs it: its observation, and the live checks before what can't be undone.

It reads watches and sources alone; it writes nothing by itself.
"""

from __future__ import annotations

import asyncio
import functools
import time
from typing import Any

import msgspec

from moorage.api import builtin, conditions, quantities
from moorage.children import apply, ordinals, owners, parts, reading, volumes
from moorage.children.live import guards, surroundings
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.operators import accounts, asking, tenancy
from moorage.runtime import cancellation, decision, freshness, kind, namespace_watches, source

from . import answers, config, control, facts, members, names, objects, observation, secrets, tokens, types
from .wanted import automation, basis, build

Object = dict[str, Any]


class CommunityKind(kind.Kind[types.Community, observation.Seen]):
    """Installations of OpenCGA."""

    resource = names.COMMUNITY
    model = types.Community
    finalizer = names.FINALIZER
    ready_facts = facts.READY_FACTS
    told_facts = facts.TOLD_FACTS
    steps = control.told(control.STEPS)
    deletion_steps = control.told(control.DELETION_STEPS)
    facts = facts.FACTS

    _world: kind.World
    _children: apply.Children
    _places: tenancy.Places
    _watches: namespace_watches.Watches[members.View]
    _secrets: secrets.Secrets
    _members: members.Members
    _around: surroundings.Surroundings

    def __init__(self, settings: config.Config, namespace: str) -> None:
        """`namespace` is the operator's own."""
        self._settings, self.resync = settings, settings.resync_seconds
        self.rights = accounts.Rights(names.SYSTEM, namespace, settings.accounts, settings.cluster_role)
        self._neighbours = tenancy.Neighbours(self.items, lambda obj: obj.metadata.namespace, "namespace")
        self._made: dict[kind.Key, tuple[tuple[str, int], basis.Wanted]] = {}

    async def start(self, world: kind.World) -> None:
        """Open the watches; see `Kind.start`."""
        self._world = world
        self._children = apply.Children(world.verified)
        wake = self._wake = functools.partial(tenancy.wake, world, self)
        self._places = tenancy.Places(world, self.rights, self._settings.namespaces, wake)
        self._watches = namespace_watches.Watches(
            lambda namespace: members.View(world, namespace, self.rights.user(namespace))
        )
        self._http = asking.Http()
        self._secrets = secrets.Secrets(world, self._within)
        self._members = members.Members(world, self._settings, self._watches, self.find, self._http)
        self.operations = {"token.make": tokens.Tokens(world, self._within).make}
        self._around = surroundings.Surroundings(world, self._within)
        self._synced = asyncio.create_task(self._places.announce())
        self.guards = {
            "name_is_free": self._name_is_free,
            "member_has_left": self._member_has_left,
            "others_are_ready": self._others_are_ready,
            "master_is_idle": self._master_is_idle,
            "pod_is_expendable": self._pod_is_expendable,
            "may_hibernate": self._may_hibernate,
            "others_stay": self._neighbours.stay,
        }

    async def stop(self) -> None:
        """See `Kind.stop`."""
        self._synced.cancel()
        known = cancellation.stopped(self._members, self._secrets, *self._around.all, self._watches)
        await cancellation.ended(self._http.close(), known)

    def user(self, obj: types.Community) -> str:
        """The account of its namespace."""
        return self.rights.user(obj.metadata.namespace)

    def placement(self, obj: types.Community) -> str:
        """Its namespace."""
        return names.placement(obj.metadata.namespace)

    def forget(self, namespace: str, name: str) -> None:
        """See `Kind.forget`."""
        key = self.key(namespace, name)
        self._members.forget((namespace, name), key)
        self._secrets.forget(key)
        for each in self._around.all:
            each.forget(key)
        self._watches.leave(key)
        self._made.pop(key, None)
        self._neighbours.forget()
        self._wake(namespace)  # its catalog may be another's now

    def report(self, seen: observation.Seen, standing: decision.StepTaken | None) -> dict[str, Any]:
        """See `Kind.report`."""
        return facts.report(seen, standing)

    def _catalog_of(self, obj: types.Community) -> str:
        """Who of the namespace was there before, and is in the same databases."""
        namespace, database = obj.metadata.namespace, obj.spec.database
        for it in self.items():
            if it.metadata.namespace != namespace or it.spec.database.prefix != database.prefix:
                continue
            first = _since(it) < _since(obj)
            if first and it.spec.database.places(namespace) & database.places(namespace):
                return it.metadata.name
        return ""

    def _wanted(self, obj: types.Community) -> basis.Wanted:
        """Made once for each spec."""
        key, origin = self.key(*obj.metadata.key), (obj.metadata.uid, obj.metadata.generation)
        known = self._made.get(key)
        if known is None or known[0] != origin:
            made = basis.of(*obj.metadata.key, obj.metadata.uid, obj.spec, self._settings.dialect)
            known = self._made[key] = (origin, made)
        return known[1]

    # --- the observation -----------------------------------------------------------------------------------------

    def observe(self, obj: types.Community, now: float) -> observation.Seen:
        """See `Kind.observe`."""
        place, key, namespace = obj.metadata.key, self.key(*obj.metadata.key), obj.metadata.namespace
        binding = self._places.binding(namespace)
        bound = (found := freshness.value_of(binding)) is not None and found.right
        seen = observation.Seen(
            meta=obj.metadata.without_last_applied(),
            spec=obj.spec,
            status=obj.status,
            now=now,
            busy=self._settings.poll.busy_seconds,
            rights=self.rights,
            allowed=self._places.allow(namespace),
            namespace_ending=self._places.is_ending(namespace),
            binding=binding,
            neighbours=self._neighbours.count(obj),
            catalog_of=self._catalog_of(obj),
            secrets=self._secrets.seen(secrets.given(obj), key) if bound else freshness.not_yet("secrets"),
            wanted=self._wanted(obj),
            objects=freshness.not_yet("objects"),
            told=self._members.source.read(place, key) if bound else freshness.not_yet("agents"),
        )
        if bound:
            seen = msgspec.structs.replace(seen, objects=self._objects(seen, key))
            if not isinstance(seen.objects, freshness.Failed):
                self._members.may_ask(place)
        settled = conditions.is_true(obj.status.conditions, "Ready") and not obj.metadata.deleting
        self._members.set_pace(place, busy=not settled)
        return seen

    def _objects(self, seen: observation.Seen, key: kind.Key) -> freshness.Observed[observation.There]:
        view = self._watches.enter(seen.meta.namespace, key)
        served = freshness.value_of(self._around.kinds.read(names.SERVICE_MONITOR, key))
        if served is not None:
            view.look_for_monitors(served=served)
        if unsynced := view.unsynced:
            return freshness.unsynced(unsynced[0].error, "objects")
        # who is switched off is never ready, and one that hibernates has no pods: nothing is wrong with either
        off = sum(map(seen.disabled, seen.rest_pods(seen.spec.members)))
        wanted_pods = 0 if seen.spec.hibernate else seen.spec.members + 1 - off
        every = [it for it in view.of(builtin.POD, seen.name) if not seen.disabled(it["metadata"]["name"])]
        events = self._around.warnings_about(every, wanted_pods, seen.meta.namespace, key)
        around = reading.Around(seen.now, tuple(view.of(builtin.VOLUME_CLAIM, seen.name)), events)
        live = {role: self._live(view, role, seen) for role in (names.REST, names.MASTER)}
        held = view.documents.get(seen.meta.namespace, names.configuration(seen.name))
        file = seen.wanted.said.container.configuration_file
        there = observation.There(
            self._part(view, names.REST, live[names.REST], seen, key, around),
            self._part(view, names.MASTER, live[names.MASTER], seen, key, around),
            automation.published(held.get("data") or {}, file) if held else None,
            _bare(held),
            tokens.seen(view.documents.get(seen.meta.namespace, names.agent_token(seen.name)), seen.meta),
        )
        if not seen.is_documented:
            return freshness.Fresh(there)
        return freshness.Fresh(self._beside(seen, there, live, held))

    def _live(self, view: members.View, role: str, seen: observation.Seen) -> Object | None:
        return view.mine(builtin.STATEFUL_SET, members.workload_of(role, seen.name), seen.meta)

    def _part(
        self,
        view: members.View,
        role: str,
        live: Object | None,
        seen: observation.Seen,
        key: kind.Key,
        around: reading.Around,
    ) -> parts.Objects:
        """What there is of one role, as it is by itself."""
        workload = members.workload_of(role, seen.name)
        pods = view.pods_named(seen.name, workload)
        claims = [
            self._volume(it, ordinal, seen, key)
            for it in view.of(builtin.VOLUME_CLAIM, seen.name)
            if (ordinal := ordinals.of_claim(names.CLAIM, workload, it["metadata"]["name"])) >= 0
        ]
        children: tuple[parts.Pair, ...] = ()
        surplus: tuple[parts.SurplusSeen, ...] = ()
        if role == names.REST:
            wanted = build.children(seen.wanted, monitored=view.monitored)
            children = tuple(
                (child, self._children.look(child.body, view.mine(child.resource, child.name, seen.meta)))
                for child in wanted
            )
            others = {resource: view.of(resource, seen.name) for resource in view.others}
            surplus = reading.surplus(others, seen.meta.uid, {child.id for child in wanted})
        budget = view.mine(builtin.DISRUPTION_BUDGET, seen.name, seen.meta)
        return parts.Objects(
            children,
            reading.workload(live) if live else None,
            tuple(self._pod(it, workload, seen.spec, around) for it in pods),
            tuple(claims),
            surplus,
            disruptions=reading.disruptions(budget) if role == names.REST else None,
            unmade=reading.unmade(live, pods, around.events) if live else "",
        )

    def _beside(
        self, seen: observation.Seen, there: observation.There, live: dict[str, Object | None], held: Object | None
    ) -> observation.There:
        """The same, beside what is wanted of the document and of both StatefulSets.

        How many pods there should be hangs on the document, and who has a place in it on how many pods there are.
        """
        known = msgspec.structs.replace(seen, objects=freshness.Fresh(there))
        document = build.configuration(seen.wanted, known.document, known.version)
        looked = self._children.look(document.body, held) if _is_mine(held, seen) else apply.Child()
        there = msgspec.structs.replace(there, document=looked)
        known = msgspec.structs.replace(seen, objects=freshness.Fresh(there))
        wanted = {
            names.REST: build.members(seen.wanted, known.replicas, known.rest_version),
            names.MASTER: build.master(seen.wanted, seen.spec.version, known.masters),
        }
        found = {names.REST: there.rest, names.MASTER: there.master}
        for role, part in found.items():
            there_is = live[role]
            if part.workload is not None and there_is is not None:
                compared = reading.beside(part.workload, there_is, wanted[role].body, self._children)
                found[role] = msgspec.structs.replace(part, workload=compared)
        return msgspec.structs.replace(there, rest=found[names.REST], master=found[names.MASTER])

    def _volume(self, it: Object, ordinal: int, seen: observation.Seen, key: kind.Key) -> parts.VolumeSeen:
        size = "" if seen.wanted.fault else build.data_size(seen.spec)
        return reading.volume(
            it,
            ordinal,
            smaller_than=volumes.whole_bytes(size),
            expandable=lambda class_: freshness.value_of(self._around.classes.read(class_, key)),
        )

    # --- what is checked live ------------------------------------------------------------------------------------

    async def _name_is_free(self, obj: types.Community, args: dict[str, Any]) -> str:
        known = (builtin.STATEFUL_SET, builtin.SECRET, *members.OTHERS, names.SERVICE_MONITOR)
        resource = next(it for it in known if it.kind == args["kind"])
        client = self._within(obj.metadata.namespace)
        return await guards.name_is_free(
            client, resource, str(args["name"]), obj.metadata, label=names.LABEL, called="installation"
        )

    async def _member_has_left(self, obj: types.Community, args: dict[str, Any]) -> str:
        """The document that is there gives that member no place: agents count on it no more."""
        namespace, name = obj.metadata.key
        pod = str(args["pod"])
        try:
            held = await self._within(namespace).get(builtin.SECRET, namespace, names.configuration(name))
        except errors.NotFound:
            return f"there is no Secret {names.configuration(name)} by which {pod} has no place"
        file = self._settings.dialect.container.configuration_file
        placed = automation.has_place(held.get("data") or {}, file, pod)
        if placed is None:
            return f"Secret {names.configuration(name)} can't be read"
        return f"{pod} has a place in the configuration" if placed else ""

    async def _others_are_ready(self, obj: types.Community, args: dict[str, Any]) -> str:
        """Every other REST member is ready right now; or that one is not, so that nobody is lost with it."""
        namespace, name = obj.metadata.key
        labels = ",".join(f"{key}={value}" for key, value in self._wanted(obj).role(names.REST).items())
        found = (await self._within(namespace).list(builtin.POD, namespace, labels=labels)).items
        try:
            live = await self._within(namespace).get(builtin.STATEFUL_SET, namespace, names.rest(name))
        except errors.NotFound:
            return f"StatefulSet {names.rest(name)} is gone"
        uid, workload = live["metadata"]["uid"], names.rest(name)
        mine = [self._pod(it, workload, obj.spec) for it in found if owners.is_controlled(it, uid)]
        up = parts.Objects((), None, tuple(mine)).up
        if args["pod"] not in up:
            return ""
        wanted = (ordinals.pod(names.rest(name), each) for each in range(int(live["spec"].get("replicas", 1))))
        away = [pod for pod in wanted if pod not in up and pod != args["pod"]]
        return f"{', '.join(away)} is not ready" if away else ""

    async def _master_is_idle(self, obj: types.Community, args: dict[str, Any]) -> str:
        """Its agent, asked now, is at no work at the catalog; or it says nothing, and its pod is not ready either."""
        at_work = await self._is_at_work(obj, str(args["pod"]))
        if at_work is not None:
            return at_work
        return await self._is_silent_and_ready(obj, str(args["pod"]))

    async def _is_silent_and_ready(self, obj: types.Community, pod: str) -> str:
        """Of a MASTER whose agent says nothing: silence is no evidence where the pod is well."""
        namespace = obj.metadata.namespace
        try:
            live = await self._within(namespace).get(builtin.POD, namespace, pod)
        except errors.NotFound:
            return ""
        ready = self._pod(live, pod.rpartition("-")[0], obj.spec).ready
        return f"{pod} is ready, and its agent does not tell what it does" if ready else ""

    async def _is_at_work(self, obj: types.Community, pod: str) -> str | None:
        """What that agent does at the catalog, which must not be broken off; None where it says nothing."""
        try:
            told = await self._members.ask(obj.metadata.key)
        except source.SourceError:
            return None
        agent = next((it.agent for it in told if it.pod == pod), None)
        if agent is None:
            return None
        moves = self._settings.dialect.moves
        if not objects.is_at_work(agent, moves.install, moves.backup, moves.migrate):
            return ""
        late = time.time() - agent.since > quantities.seconds(obj.spec.timeouts.migration)
        return "" if late else f"{pod} is at {agent.move}"

    async def _may_hibernate(self, obj: types.Community, args: dict[str, Any]) -> str:
        """The spec still says so, and the MASTER's agent, asked now, has begun nothing at the catalog."""
        namespace, name = obj.metadata.key
        live = await self._world.client.get(names.COMMUNITY, namespace, name)
        if (live.get("spec") or {}).get("hibernate") is not True:
            return "spec.hibernate is not true any more"
        try:
            told = await self._members.ask(obj.metadata.key)
        except source.SourceError as error:
            return f"the agents can't be asked: {error}"
        master = ordinals.pod(names.master(name), 0)
        found = next((it for it in told if it.pod == master), None)
        if found is not None and found.agent is not None:
            at_work = answers.holds_catalog(found.agent, self._settings.dialect.moves, obj.status.catalog_version)
            late = time.time() > found.agent.since + quantities.seconds(obj.spec.timeouts.migration)
            return f"{master} is at {found.agent.move}" if at_work and not late else ""
        return await self._is_silent_and_ready(obj, master)

    async def _pod_is_expendable(self, obj: types.Community, args: dict[str, Any]) -> str:
        """It serves nobody still; where it runs, it is at no work at the catalog."""
        namespace, pod = obj.metadata.namespace, str(args["name"])

        async def at_work() -> str:
            return await self._is_at_work(obj, pod) or ""

        workload = pod.rpartition("-")[0]
        return await guards.pod_is_expendable(
            self._within(namespace),
            builtin.POD.ref(namespace, pod, str(args["uid"])),
            lambda live: self._pod(live, workload, obj.spec),
            at_work,
        )

    def _pod(
        self, it: Object, workload: str, spec: types.CommunitySpec, around: reading.Around = reading.NOTHING
    ) -> parts.PodSeen:
        """The pod, by its agent's container: that is ready when the member is. A user's own may be listed before it.

        That of a REST server counts too, so that Services know of who is called ready; but for a server that is
        switched off, by which that container is never ready.
        """
        agent, server = self._settings.dialect.container.agent, self._settings.dialect.container.rest
        status = it.get("status") or {}
        told = sorted(status.get("containerStatuses") or (), key=lambda each: each.get("name") != agent)
        first = {**it, "status": {**status, "containerStatuses": told}}
        made = reading.pod(first, ordinals.of(workload, it["metadata"]["name"]), around=around)
        waits = any(each.get("name") == server and not each.get("ready") for each in told)
        return msgspec.structs.replace(made, ready=False) if waits and not spec.is_disabled(made.name) else made

    def _within(self, namespace: str) -> kube_client.Client:
        """What acts in that namespace and nowhere else."""
        return self._world.client.as_(self.rights.user(namespace))


# --- from live objects to what is seen of them -------------------------------------------------------------------


def _is_mine(held: Object | None, seen: observation.Seen) -> bool:
    return held is not None and owners.is_of(held, names.LABEL, seen.name, seen.meta.uid)


def _bare(held: Object | None) -> apply.Child:
    """The document's Secret where it is not known what is wanted of it."""
    if held is None:
        return apply.Child()
    return apply.Child(held["metadata"]["uid"], "deletionTimestamp" in held["metadata"], (apply.STAMP,))


def _since(obj: types.Community) -> tuple[str, str]:
    return obj.metadata.creation_timestamp, obj.metadata.uid
