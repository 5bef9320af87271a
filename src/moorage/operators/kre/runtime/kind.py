"""The Runtime as the runtime runs it: its watches, its observation, and the helm engine that it stands on.

It reads watches and sources alone; it writes nothing by itself.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import msgspec

from moorage.api import builtin, common_status, conditions
from moorage.children import ordinals, parts, reading, volumes
from moorage.children.live import surroundings
from moorage.helm import engine, release_request
from moorage.helm import observation as helm_observation
from moorage.helm.charts import resolver, values
from moorage.helm.parsing import aside
from moorage.helm.runs import binary
from moorage.kube import client as kube_client
from moorage.kube.informers import informer
from moorage.operators import accounts, system, tenancy
from moorage.operators.kre import config, kinds, names
from moorage.operators.kre.version import types as version_types
from moorage.runtime import cancellation, decision, freshness, kind, namespace_watches

from . import build, control, credentials, deletion, facts, observation, servers, sizes, types

ADOPT = "moorage.dev/adopt"
SOURCE = "default"
READY_LIMIT = 600.0
"""Seconds after which it is told that the servers are not ready."""

MOST_WORDS = 500
"""Characters that are told of a version in the words of its own status."""

HOOK_LIMIT = 60.0
"""Seconds for a hook of the chart, which has none."""


Versions: TypeAlias = Callable[[], Iterable[version_types.RuntimeVersion] | None]
"""None while they are not known."""


class RuntimeKind(kind.Kind[types.Runtime, observation.Seen]):
    """Runtimes."""

    resource = kinds.RUNTIME
    model = types.Runtime
    finalizer = kinds.RUNTIME_FINALIZER
    ready_facts = facts.READY_FACTS
    steps = control.STEPS
    deletion_steps = deletion.DELETION_STEPS
    facts = facts.FACTS

    _world: kind.World
    _engine: engine.Engine
    _places: tenancy.Places
    _watches: namespace_watches.Watches[servers.View]
    _credentials: credentials.Credentials
    _servers: servers.Servers
    _around: surroundings.Surroundings
    _aside: aside.Aside

    def __init__(self, settings: config.Config, environment: system.Environment) -> None:
        self._settings, self._environment, self.resync = settings, environment, settings.resync_seconds
        self.rights = accounts.Rights(
            kinds.SYSTEM, environment.namespace, settings.accounts, settings.cluster_role, here=environment.alone
        )
        self.namespaces = (environment.namespace,) if environment.alone else ()
        self.versions: Versions = lambda: ()
        """All that there are, told by their own kind; it is given before either starts."""
        self.on_credentials: Callable[[str], None] = lambda namespace: None
        """Told of a namespace whose servers take other credentials than before; given as the versions are."""
        self.neighbours = tenancy.Neighbours(self._all, lambda obj: obj.metadata.namespace, "namespace")
        self._values: dict[kind.Key, tuple[tuple[Any, ...], values.Given]] = {}  # made once for each spec

    async def start(self, world: kind.World) -> None:
        """Open the watches; see `Kind.start`."""
        self._world = world
        wake = functools.partial(tenancy.wake, world, self)
        self._places = tenancy.Places(world, self.rights, self._settings.namespaces, wake)
        self._watches = namespace_watches.Watches(
            lambda namespace: servers.View(world, namespace, self.rights.user(namespace))
        )
        self._credentials = credentials.Credentials(
            world, self._within, lambda namespace: self.on_credentials(namespace), self._settings.poll.idle_seconds
        )
        self._servers = servers.Servers(world, self._settings.poll, self._watches, self._credentials, self.find)
        self._around = surroundings.Surroundings(world, self._within)
        self._synced = asyncio.create_task(self._places.announce())
        around = self._environment
        helm = binary.Helm(around.helm, around.access, around.scratch / "helm", grace=around.grace)
        self._aside = aside.Aside()
        self._engine = engine.Engine(
            world,
            helm=helm,
            store=resolver.Charts(helm, self._aside, around.scratch / "charts"),
            chart_source=self._chart_source,
            request=self._request,
            user=self.rights.user,
            work=self._aside,
            place=lambda _: f"chart folder {self._settings.charts}",
        )
        self.operations = {
            **self._engine.operations,
            **self._credentials.operations,
            **self._servers.operations,
        }
        self.guards = {
            **self._engine.guards,
            "others_stay": self.neighbours.stay,
            "server_has_left": self._servers.cluster.has_left,
        }

    async def stop(self) -> None:
        """See `Kind.stop`."""
        self._synced.cancel()
        await cancellation.stopped(
            self._servers, self._credentials, *self._around.all, self._engine, self._watches, self._aside
        )

    def user(self, obj: types.Runtime) -> str:
        """The account of its namespace."""
        return self.rights.user(obj.metadata.namespace)

    def claimed_by(self, obj: types.Runtime) -> str | None:
        """By the RoleBinding that the account would have there."""
        return self._places.claimed_by(obj.metadata.namespace)

    def lane(self, obj: types.Runtime) -> str:
        """All who want the one release of the namespace."""
        return helm_observation.Target(kinds.RELEASE, obj.metadata.namespace).lane

    def placement(self, obj: types.Runtime) -> str:
        """Its namespace, where it is alone."""
        return kinds.placement(obj.metadata.namespace)

    def forget(self, namespace: str, name: str) -> None:
        """See `Kind.forget`."""
        key = self.key(namespace, name)
        self._engine.forget(key)
        self._credentials.forget((namespace, name), key)
        self._servers.forget((namespace, name), key)
        for each in self._around.all:
            each.forget(key)
        self._watches.leave(key)
        self._values.pop(key, None)
        self.neighbours.forget()
        tenancy.wake(self._world, self, namespace)  # who was second may be first now

    # --- the observation -----------------------------------------------------------------------------------------

    def observe(self, obj: types.Runtime, now: float) -> observation.Seen:
        """See `Kind.observe`."""
        place, key, namespace = obj.metadata.key, self.key(*obj.metadata.key), obj.metadata.namespace
        binding = self._places.binding(namespace)
        older = self._older(obj)
        bound = (found := freshness.value_of(binding)) is not None and found.right
        mine = bound and not older
        view = self._watches.enter(namespace, key) if mine else None
        if view is None:
            self._watches.leave(key)
        wanted = types.settings(obj.spec, obj.metadata.name)
        held = self._held(wanted.volumes, view, key)
        # of a second Runtime it is seen only whose the release is, once it leaves
        release = self._engine.observe(self._request(obj), now, entitled=mine or (bound and obj.metadata.deleting))
        known = self._servers if mine else None
        told = self._credentials.seen(credentials.given(obj), key) if bound else freshness.not_yet("credentials")
        settled = conditions.is_true(obj.status.conditions, "Ready") and not obj.metadata.deleting
        self._servers.set_pace(place, busy=not settled)
        if mine and isinstance(told, freshness.Fresh) and not isinstance(held, freshness.Failed):
            self._servers.may_ask(place)
        not_yet = freshness.not_yet
        seen = observation.Seen(
            meta=obj.metadata.without_last_applied(),
            settings=wanted,
            status=obj.status,
            rights=self.rights,
            allowed=self._places.allow(namespace),
            namespace_ending=self._places.is_ending(namespace),
            binding=binding,
            neighbours=self.neighbours.count(obj),
            older=older,
            versions=self._made_in(obj),
            credentials=told,
            held=held,
            published=self._published(obj, view),
            components=_components(view, release),
            nats=known.nats.read(place, key) if known else not_yet("nats"),
            mongo=known.mongo.read(place, key) if known else not_yet("mongo"),
            store=known.store.read(place, key) if known else not_yet("store"),
            metrics=self._metrics(obj, place, key, known),
            release=release,
        )
        return msgspec.structs.replace(seen, streams=self._streams(seen, place, key, known))

    def _streams(
        self, seen: observation.Seen, place: credentials.Place, key: kind.Key, known: servers.Servers | None
    ) -> freshness.Observed[observation.StreamsSeen]:
        """They are asked for while a server of NATS is to leave."""
        if known is not None and seen.leaving and not seen.meta.deleting:
            return known.cluster.streams.read(place, key)
        self._servers.cluster.streams.forget(key)
        return freshness.not_yet("streams")

    def report(self, seen: observation.Seen, standing: decision.StepTaken | None) -> dict[str, Any]:
        """See `Kind.report`."""
        return facts.report(seen, standing)

    def _older(self, obj: types.Runtime) -> str:
        """The name of the Runtime that was there first; an object's time is of whole seconds, so names decide then."""

        def age(it: types.Runtime) -> tuple[str, str]:
            return it.metadata.creation_timestamp, it.metadata.name

        here = [it for it in self.items() if it.metadata.namespace == obj.metadata.namespace]
        first = min(here, key=age, default=obj)
        return "" if first.metadata.uid == obj.metadata.uid else first.metadata.name

    def _made_in(self, obj: types.Runtime) -> freshness.Observed[tuple[observation.VersionSeen, ...]]:
        """Versions of which something is in this Runtime; one that has made nothing yet waits for another as well."""
        found, (namespace, name) = self.versions(), obj.metadata.key
        if found is None:
            return freshness.not_yet("versions")
        mine = (it for it in found if it.metadata.namespace == namespace and it.status.made)
        held = [
            observation.VersionSeen(it.metadata.name, it.metadata.deleting)
            for it in mine
            if it.status.runtime in ("", name)
        ]
        return freshness.Fresh(tuple(sorted(held, key=lambda it: it.name)))

    def _published(self, obj: types.Runtime, view: servers.View | None) -> observation.PublishedSeen:
        """By the Service, and by the status of the version that is to be published."""
        wanted = obj.spec.published_version
        if view is None or view.unsynced or (found := self.versions()) is None:
            return observation.PublishedSeen(wanted, None)
        led = view.led_to(names.Names(obj.metadata.name, "").active, obj.metadata.uid)
        here = (it for it in found if (it.metadata.namespace, it.spec.version) == (obj.metadata.namespace, wanted))
        return observation.PublishedSeen(wanted, led, _trouble(next(here, None)) if wanted else "")

    def _all(self) -> list[Any]:
        """Who has the rights of a namespace bound."""
        return [*self.items(), *(self.versions() or ())]

    def _metrics(
        self, obj: types.Runtime, place: credentials.Place, key: kind.Key, known: servers.Servers | None
    ) -> freshness.Observed[bool] | None:
        """None where the values that the chart is given switch InfluxDB off."""
        given = self._given(obj)
        if given is not None and (given.get("influxdb") or {}).get("enabled") is False:
            self._servers.metrics.forget(key)
            return None
        return known.metrics.read(place, key) if known else freshness.not_yet("metrics")

    def _held(
        self, wanted: dict[str, types.Kept], view: servers.View | None, key: kind.Key
    ) -> freshness.Observed[tuple[observation.HeldSeen, ...]]:
        if view is None:
            return freshness.not_yet("volumes")
        if unsynced := view.unsynced:
            return freshness.unsynced(unsynced[0].error, "volumes")
        return freshness.Fresh(
            tuple(
                observation.HeldSeen(
                    server, self._volumes(view, server, wanted[server].size, key), tuple(view.pods_of(server))
                )
                for server in kinds.SERVERS
            )
        )

    def _volumes(self, view: servers.View, server: str, size: str, key: kind.Key) -> tuple[parts.VolumeSeen, ...]:
        found = [
            (ordinal, claim)
            for claim in view.claims()
            if (ordinal := ordinals.of_claim(kinds.CLAIM, kinds.workload(server), claim["metadata"]["name"])) >= 0
        ]
        return tuple(
            reading.volume(
                claim,
                ordinal,
                smaller_than=volumes.whole_bytes(size),
                expandable=lambda class_: freshness.value_of(self._around.classes.read(class_, key)),
            )
            for ordinal, claim in sorted(found, key=lambda it: it[0])
        )

    # --- the release ---------------------------------------------------------------------------------------------

    def _request(self, obj: types.Runtime) -> release_request.Request:
        annotations, given = obj.metadata.annotations, self._given(obj)
        return release_request.Request(
            key=self.key(*obj.metadata.key),
            owner=kinds.RUNTIME.ref(*obj.metadata.key, obj.metadata.uid),
            target=helm_observation.Target(kinds.RELEASE, obj.metadata.namespace),
            policy=helm_observation.Policy(
                rollback=False,  # back to fewer NATS servers would be with fewer streams
                ready_timeout=READY_LIMIT,
                hook_timeout=HOOK_LIMIT,
                adopt=annotations.get(ADOPT) == "true",
                orphan=annotations.get(common_status.ON_DELETE) == "Orphan",
                delete_hooks=annotations.get(common_status.ON_DELETE) != "NoHooks",
            ),
            wanted=helm_observation.Wanted(build.CHART, build.VERSION, SOURCE),
            status=obj.status,
            reconcile_at=annotations.get(common_status.RECONCILE_AT, ""),
            generation=obj.metadata.generation,
            leaving=obj.metadata.deleting,
            values=None if given is None else lambda _: given,
        )

    def _given(self, obj: types.Runtime) -> values.Given | None:
        """The chart's values; None before it is known what servers were made with, or where there are too many.

        Of the spec, as of a generation, they are made once.
        """
        view, digests = self._watches.peek(obj.metadata.namespace), self._credentials.digests(obj.metadata.key)
        if view is None or view.unsynced or digests is None:
            return None
        made = {server: size for server in kinds.SERVERS if (size := _template_size(view.workload(server)))}
        active = names.Names(obj.metadata.name, "").active
        led = active if view.led_to(active, obj.metadata.uid) else ""
        nats = _nats_servers(obj, view)
        key, basis = self.key(*obj.metadata.key), (obj.metadata.uid, obj.metadata.generation, made, led, nats, digests)
        known = self._values.get(key)
        if known is None or known[0] != basis:
            if len(msgspec.json.encode(obj.spec.values)) > types.MOST_VALUES:
                return None
            given = build.chart_values(obj.metadata.name, obj.spec, self._settings.values, made, led, nats, digests)
            known = self._values[key] = (basis, given)
        return known[1]

    async def _chart_source(self, _: str) -> resolver.ChartSource:
        return resolver.FolderSource(self._settings.charts)

    def _within(self, namespace: str) -> kube_client.Client:
        """What acts in that namespace and nowhere else."""
        return self._world.client.as_(self.rights.user(namespace))

    # --- news ----------------------------------------------------------------------------------------------------

    def on_version(self, change: informer.Change[version_types.RuntimeVersion]) -> None:
        """Who waits for the end of versions goes on, and who publishes one tells how that is."""
        old, new = change.old, change.new
        if (found := new or old) is None:
            return
        told = old is None or new is None or _trouble(old) != _trouble(new)
        for obj in self.items():
            if obj.metadata.namespace != found.metadata.namespace:
                continue
            if obj.metadata.deleting or (told and obj.spec.published_version == found.spec.version):
                self._world.enqueue(self.key(*obj.metadata.key))


# --- from live objects to what is seen of them -------------------------------------------------------------------


def _trouble(version: version_types.RuntimeVersion | None) -> str:
    """Why a version does not answer as it should, in its own words; empty where it does."""
    if version is None:
        return "there is no RuntimeVersion of that name"
    if version.status.phase in ("STARTED", "PUBLISHED"):
        return ""
    ready = conditions.find(version.status.conditions, "Ready")
    words = ready.message if ready is not None else "it was not looked at yet"
    return f"RuntimeVersion {version.metadata.name}: {words}"[:MOST_WORDS]


def _nats_servers(obj: types.Runtime, view: servers.View) -> tuple[int, int]:
    """How many NATS is to have now, and may know of; the latter stay until the last has left, as all are restarted."""
    name, workload = kinds.workload("nats"), view.workload("nats")
    found = (ordinals.of_claim(kinds.CLAIM, name, claim["metadata"]["name"]) for claim in _kept(view.claims()))
    claims = [ordinal for ordinal in found if ordinal >= 0]
    there = workload is not None or bool(view.pods_of("nats"))
    had = sizes.before(obj.status.nats_servers, claims, there=there)
    size = sizes.Size(obj.spec.nats.replicas, had, obj.status.nats_scaled_to)
    written = ((workload or {}).get("metadata") or {}).get("annotations") or {}
    routes = written.get(build.ROUTES, "") if size.leaving is not None else ""
    return size.now, max(size.now, int(routes) if routes in ("1", "2", "3", "4", "5") else 0)


def _kept(claims: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [claim for claim in claims if "deletionTimestamp" not in claim["metadata"]]


def _template_size(workload: dict[str, Any] | None) -> str:
    """What a StatefulSet's claims are made with; empty where it has none, or is not there."""
    templates = ((workload or {}).get("spec") or {}).get("volumeClaimTemplates") or ()
    return next((str(each["spec"]["resources"]["requests"]["storage"]) for each in templates), "")


def _components(view: servers.View | None, release: helm_observation.ReleaseSeen) -> tuple[types.Component, ...]:
    """Each server as its StatefulSet counts it, with its own words where it is not ready."""
    if view is None:
        return ()
    children = freshness.value_of(release.children) or ()
    words = {it.ref.name: it.message for it in children if it.ref.kind == builtin.STATEFUL_SET.kind and not it.ready}
    found = []
    for server in kinds.SERVERS:
        live = view.workload(server)
        if live is None:
            continue
        wanted, status = int((live.get("spec") or {}).get("replicas", 1)), live.get("status") or {}
        ready = int(status.get("readyReplicas") or 0)
        found.append(types.Component(server, ready, wanted, words.get(kinds.workload(server), "")))
    return tuple(found)
