"""The Collector as the runtime runs it: its watches, its observation, and the helm engine it stands on.

It watches Collectors, tenants' namespaces and the operator's own RoleBindings; it writes nothing by itself.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from typing import Any

import msgspec

from moorage.api import builtin, common_status, meta
from moorage.helm import engine, facts, release_request
from moorage.helm import observation as helm_observation
from moorage.helm.charts import resolver
from moorage.helm.parsing import aside
from moorage.helm.runs import binary
from moorage.kube import errors
from moorage.kube.informers import informer
from moorage.operators import accounts, system, tenancy
from moorage.runtime import cancellation, decision, freshness, kind

from . import build, chart_sources, config, control, parsed_configuration, types

ADOPT = "moorage.dev/adopt"


class NamespaceCondition(msgspec.Struct, frozen=True):
    """What keeps a namespace from ending."""

    type: str = ""
    status: str = ""
    message: str = ""


class NamespaceStatus(msgspec.Struct, frozen=True):
    """What a namespace tells of its own end."""

    conditions: tuple[NamespaceCondition, ...] = ()


class Namespace(msgspec.Struct, frozen=True):
    """A namespace, as far as tenants need it."""

    metadata: meta.ObjectMeta
    status: NamespaceStatus = NamespaceStatus()


@dataclasses.dataclass(frozen=True)
class Settings:
    """What the operator's configuration says about Collectors."""

    rights: accounts.Rights
    charts: config.Charts
    namespace_labels: dict[str, str]
    image_repository: str
    namespaces: tuple[str, ...]
    resync: float
    environment: system.Environment


class CollectorKind(kind.Kind[types.Collector, control.Seen]):
    """Collectors."""

    resource = types.COLLECTOR
    model = types.Collector
    finalizer = types.FINALIZER
    ready_facts = control.READY_FACTS
    steps = control.STEPS
    deletion_steps = control.DELETION_STEPS
    facts = control.FACTS

    _engine: engine.Engine
    _tenants: informer.Informer[Namespace]
    _bindings: tenancy.Bindings
    _world: kind.World

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._neighbours = tenancy.Neighbours(self.items, lambda obj: obj.spec.namespace, "tenant")
        self.namespaces, self.resync = settings.namespaces, settings.resync

    async def start(self, world: kind.World) -> None:
        """Open the watches; see `Kind.start`."""
        self._world = world
        self._tenants = world.informers.watch(builtin.NAMESPACE, Namespace)
        self._tenants.subscribe(self._on_tenant)
        self._bindings = tenancy.Bindings(world, self._settings.rights, self._wake)
        self._synced = asyncio.create_task(self._announce())
        around = self._settings.environment
        helm = binary.Helm(around.helm, around.access, around.scratch / "helm", grace=around.grace)
        self._places = chart_sources.Places(
            self._settings.charts, world.client, around.namespace, around.scratch / "places"
        )
        self._aside = aside.Aside()
        self._configurations = parsed_configuration.Configurations(self._aside, world.enqueue)
        self._engine = engine.Engine(
            world,
            helm=helm,
            store=resolver.Charts(helm, self._aside, around.scratch / "charts"),
            chart_source=self._places.source,
            request=self._request,
            user=self._settings.rights.user,
            work=self._aside,
            place=self._places.describe,
        )
        self.operations = self._engine.operations
        self.guards = {
            **self._engine.guards,
            "namespace_is_gone": self._namespace_is_gone,
            "namespace_is_ending": self._namespace_is_ending,
            "others_stay": self._neighbours.stay,
        }

    async def stop(self) -> None:
        """See `Kind.stop`."""
        self._synced.cancel()
        await cancellation.stopped(self._configurations, self._engine, self._aside)

    def user(self, obj: types.Collector) -> str:
        """The account of the tenant's namespace."""
        return self._settings.rights.user(obj.spec.namespace)

    def lane(self, obj: types.Collector) -> str:
        """All who want the same release."""
        return helm_observation.Target(obj.spec.release, obj.spec.namespace).lane

    def placement(self, obj: types.Collector) -> str:
        """The tenant's namespace: its releases, its watches and its binding are one process's. It can't be changed."""
        return f"collector:{obj.spec.namespace}"

    def forget(self, namespace: str, name: str) -> None:
        """See `Kind.forget`."""
        self._engine.forget(self.key(namespace, name))
        self._configurations.forget(self.key(namespace, name))
        self._neighbours.forget()

    def observe(self, obj: types.Collector, now: float) -> control.Seen:
        """See `Kind.observe`."""
        tenant, binding = self._tenant(obj), self._bindings.of(obj.spec.namespace)
        bound = freshness.value_of(binding)
        there = freshness.value_of(tenant)
        return control.Seen(
            meta=obj.metadata.without_last_applied(),
            spec=_without_configuration(obj.spec),
            rights=self._settings.rights,
            namespace_labels=self._settings.namespace_labels,
            configuration=_fault(self._configuration(obj)),
            tenant=tenant,
            binding=binding,
            neighbours=self._neighbours.count(obj),
            release=self._engine.observe(
                self._request(obj), now, entitled=bound is not None and bound.right and there is not None
            ),
        )

    def report(self, seen: control.Seen, _: decision.StepTaken | None) -> dict[str, Any]:
        """See `Kind.report`."""
        return facts.report(seen.release)

    # --- what is seen ----------------------------------------------------------------------------

    def _request(self, obj: types.Collector) -> release_request.Request:
        spec, annotations = obj.spec, obj.metadata.annotations
        read = freshness.value_of(self._configuration(obj))
        given, repository = read.given if read else None, self._settings.image_repository
        values = None if given is None else functools.partial(build.chart_values, spec, given, repository)
        return release_request.Request(
            key=self.key(*obj.metadata.key),
            owner=types.COLLECTOR.ref(*obj.metadata.key, obj.metadata.uid),
            target=helm_observation.Target(spec.release, spec.namespace),
            policy=helm_observation.Policy(
                enforce=spec.policy.drift == "Enforce",
                rollback=spec.policy.on_failure == "Rollback",
                ready_timeout=spec.policy.ready_timeout_seconds,
                history_limit=spec.policy.history_limit,
                hook_timeout=spec.policy.hook_timeout_seconds,
                adopt=annotations.get(ADOPT) == "true",
                orphan=annotations.get(common_status.ON_DELETE) == "Orphan",
                delete_hooks=annotations.get(common_status.ON_DELETE) != "NoHooks",
            ),
            wanted=helm_observation.Wanted(
                spec.collector.name, spec.collector.version, self._places.name(spec.cluster)
            ),
            status=obj.status,
            reconcile_at=annotations.get(common_status.RECONCILE_AT, ""),
            generation=obj.metadata.generation,
            leaving=obj.metadata.deleting,
            values=values,
        )

    def _configuration(self, obj: types.Collector) -> freshness.Observed[parsed_configuration.Read]:
        return self._configurations.of(
            obj.spec.namespace, obj.spec.collector.configuration, self.key(*obj.metadata.key)
        )

    def _tenant(self, obj: types.Collector) -> freshness.Observed[control.TenantSeen | None]:
        if not self._tenants.synced:
            return freshness.unsynced(self._tenants.error, "namespaces")
        found = self._tenants.get("", obj.spec.namespace)
        if found is None:
            return freshness.Fresh(None)
        admits = build.admitted(found.metadata.annotations.get(build.ADMITS, ""))
        said = [each.message for each in found.status.conditions if each.status == "True" and each.message]
        return freshness.Fresh(
            control.TenantSeen(found.metadata.uid, found.metadata.deleting, admits, "; ".join(said[:3]))
        )

    # --- news ------------------------------------------------------------------------------------

    def _on_tenant(self, change: informer.Change[Namespace]) -> None:
        found = change.new or change.old
        if found is not None:
            self._wake(found.metadata.name)

    def _wake(self, tenant: str) -> None:
        for obj in self.items():
            if obj.spec.namespace == tenant:
                self._world.enqueue(self.key(*obj.metadata.key))

    async def _announce(self) -> None:
        await self._tenants.wait_synced(timeout=None)
        await self._bindings.wait_synced()
        for obj in self.items():
            self._world.enqueue(self.key(*obj.metadata.key))

    async def _namespace_is_gone(self, _: types.Collector, args: dict[str, Any]) -> str:
        return f"namespace {args['name']} is there" if await self._live_namespace(args) else ""

    async def _namespace_is_ending(self, _: types.Collector, args: dict[str, Any]) -> str:
        found = await self._live_namespace(args)
        return f"namespace {args['name']} stays" if found and not found.metadata.deleting else ""

    async def _live_namespace(self, args: dict[str, Any]) -> Namespace | None:
        try:
            return await self._world.client.get(builtin.NAMESPACE, "", str(args["name"]), as_=Namespace)
        except errors.NotFound:
            return None


def _fault(read: freshness.Observed[parsed_configuration.Read]) -> freshness.Observed[str]:
    return read if isinstance(read, freshness.Failed) else freshness.Fresh(read.value.fault)


def _without_configuration(spec: types.CollectorSpec) -> types.CollectorSpec:
    return msgspec.structs.replace(spec, collector=msgspec.structs.replace(spec.collector, configuration=""))
