"""The XsldCache as the runtime runs it: its observation, and the live checks before what can't be undone.

It reads watches and sources alone; it writes nothing by itself.
"""

from __future__ import annotations

import asyncio
import base64
import functools
from collections.abc import Iterable
from typing import Any

import msgspec
import prometheus_client as prometheus

from moorage.api import builtin, conditions
from moorage.children import apply, ordinals, parts, pod_replacement, reading, volumes
from moorage.children.live import guards, views
from moorage.operators import accounts, tenancy
from moorage.operators.xsld import config, group_access, names
from moorage.operators.xsld.group import answers
from moorage.operators.xsld.within_cache import common_steps
from moorage.runtime import decision, freshness, kind

from . import build, control, facts, member_trouble, metrics, observation, types


class CacheKind(kind.Kind[types.XsldCache, observation.Seen]):
    """XsldCaches."""

    resource = names.CACHE
    model = types.XsldCache
    finalizer = names.CACHE_FINALIZER
    ready_facts = facts.READY_FACTS
    steps = member_trouble.told(control.STEPS)
    deletion_steps = member_trouble.told(control.DELETION_STEPS)
    facts = facts.FACTS

    groups: group_access.Groups
    _world: kind.World
    _places: tenancy.Places

    def __init__(self, settings: config.Config, namespace: str) -> None:
        """`namespace` is the operator's own."""
        self._settings, self.resync = settings, settings.resync_seconds
        self.rights = accounts.Rights(names.SYSTEM, namespace, settings.accounts, settings.cluster_role)
        self._secrets: dict[group_access.Place, str] = {}  # resourceVersion of the Secret that is ours, as last seen
        self._neighbours = tenancy.Neighbours(self.items, lambda obj: obj.metadata.namespace, "namespace")

    async def start(self, world: kind.World) -> None:
        """Open the watches; see `Kind.start`."""
        self._world = world
        self._children = apply.Children(world.verified)
        self.groups = group_access.Groups(world, self._settings, self.rights, self.find)
        wake = functools.partial(tenancy.wake, world, self)
        self._places = tenancy.Places(world, self.rights, self._settings.namespaces, wake)
        self._synced = asyncio.create_task(self._places.announce())
        self.operations = self.groups.operations
        self.guards = {
            "member_has_left": self._member_has_left,
            "others_are_online": self._others_are_online,
            "those_who_stay_are_online": self._those_who_stay_are_online,
            "pod_is_expendable": self._pod_is_expendable,
            "pod_is_off": self._pod_is_off,
            "name_is_free": self._name_is_free,
            "others_stay": self._neighbours.stay,
        }
        self.fillers = {"credentials": self._credentials}

    async def stop(self) -> None:
        """See `Kind.stop`."""
        self._synced.cancel()
        await self.groups.stop()

    def user(self, obj: types.XsldCache) -> str:
        """The account of its namespace."""
        return self.rights.user(obj.metadata.namespace)

    def lane(self, obj: types.XsldCache) -> str:
        """All that is done to one group."""
        return names.lane(*obj.metadata.key)

    def placement(self, obj: types.XsldCache) -> str:
        """Its namespace, as for its grids and templates; see `dependent`."""
        return names.placement(obj.metadata.namespace)

    def forget(self, namespace: str, name: str) -> None:
        """See `Kind.forget`."""
        self.groups.forget((namespace, name), self.key(namespace, name))
        self._secrets.pop((namespace, name), None)
        self._neighbours.forget()

    def report(self, seen: observation.Seen, standing: decision.StepTaken | None) -> dict[str, Any]:
        """See `Kind.report`."""
        return facts.report(seen, standing)

    def metrics(self) -> Iterable[prometheus.Metric]:
        """See `Kind.metrics`."""
        return metrics.collect(self.items(), self.groups.polls.peek)

    # --- the observation -----------------------------------------------------------------------------------------

    def observe(self, obj: types.XsldCache, now: float) -> observation.Seen:
        """See `Kind.observe`."""
        place, key = obj.metadata.key, self.key(*obj.metadata.key)
        binding = self._places.binding(obj.metadata.namespace)
        bound = (found := freshness.value_of(binding)) is not None and found.right
        entrypoint = self._entrypoint(obj, key) if bound else freshness.not_yet("entrypoint")
        script = freshness.value_of(entrypoint)
        spec = msgspec.structs.replace(_plain(obj.spec), image=types.image_to_run(obj))
        wanted = build.Wanted(*place, obj.metadata.uid, spec, self._settings.dialect, script or None)
        given = group_access.given(obj)
        told = self.groups.credentials.follow(given, key) if bound else freshness.not_yet("credentials")
        ours = obj.spec.credentials_secret_ref is None
        polled = self.groups.polls.read(place, key) if bound else freshness.not_yet("group")
        seen = observation.Seen(
            meta=obj.metadata.without_last_applied(),
            spec=spec,
            refused_image=obj.spec.image if obj.spec.image != spec.image else "",
            status=obj.status,
            now=now,
            limits=self._settings.retry,
            busy=self._settings.poll.busy_seconds,
            rights=self.rights,
            allowed=self._places.allow(obj.metadata.namespace),
            namespace_ending=self._places.is_ending(obj.metadata.namespace),
            binding=binding,
            neighbours=self._neighbours.count(obj),
            # a Secret of ours that differs is no fault of the user's: it is written anew
            credentials=freshness.Fresh("") if freshness.value_of(told) == group_access.DIFFERS else told,
            credentials_since=self.groups.credentials_since(place),
            entrypoint=_fault_of(entrypoint),
            unsent=self.groups.unsent(place),
            wanted=wanted,
            objects=freshness.not_yet("objects"),
            polled=polled,
        )
        if bound:
            moved = self._secret_moved(given, wanted.credentials[0])
            differs = ours and not moved and isinstance(told, freshness.Fresh) and told.value == group_access.DIFFERS
            seen = msgspec.structs.replace(seen, objects=self._objects(seen, key, secret_differs=differs))
            if isinstance(polled, freshness.Failed) and not isinstance(seen.objects, freshness.Failed):
                self.groups.may_ask(place)
        self.groups.set_pace(place, _pace(obj, self._settings.poll))
        return seen

    def _secret_moved(self, given: group_access.Given, name: str) -> bool:
        """Whether the Secret that is ours has changed since it was last read; then it is read anew."""
        place = given.place
        view = self.groups.watches.peek(place[0])
        found = view.objects[builtin.SECRET].get(place[0], name) if view else None
        version = found["metadata"]["resourceVersion"] if found else ""
        if self._secrets.get(place, version) == version:
            self._secrets[place] = version
            return False
        self._secrets[place] = version
        self.groups.credentials.outdate(given, "the Secret has changed")
        return True

    def meant(self, namespace: str, ref: Any) -> list[types.XsldCache]:
        """The caches that a grid or template may mean: the named one, or all of the namespace."""
        here = [obj for obj in self.items() if obj.metadata.namespace == namespace]
        return [obj for obj in here if obj.metadata.name == ref.name] if ref is not None else here

    def seen(self, found: list[types.XsldCache]) -> freshness.Observed[tuple[common_steps.CacheSeen, ...]]:
        """Those caches as grids and templates see them."""
        if any(not cache.synced for cache in self.informers):
            return freshness.not_yet("caches")
        return freshness.Fresh(tuple(_shared(obj) for obj in sorted(found, key=lambda it: it.metadata.name)))

    def _entrypoint(self, obj: types.XsldCache, key: kind.Key) -> freshness.Observed[str]:
        if not obj.spec.entrypoint_config_map:
            self.groups.entrypoints.forget(key)
            return freshness.Fresh("")
        return self.groups.entrypoints.follow((obj.metadata.namespace, obj.spec.entrypoint_config_map), key)

    def _objects(
        self, seen: observation.Seen, key: kind.Key, *, secret_differs: bool
    ) -> freshness.Observed[parts.Objects]:
        view = self.groups.watches.enter(seen.meta.namespace, key)
        if unsynced := view.unsynced:
            return freshness.unsynced(unsynced[0].error, "objects")
        name = seen.name
        claims = view.of(builtin.VOLUME_CLAIM, name)
        events = self.groups.around.warnings_about(view.pods_of(name), seen.spec.size, seen.meta.namespace, key)
        pods = _pods(view, name, reading.Around(seen.now, tuple(claims), events))
        volumes = tuple(each for it in claims if (each := self._volume(it, seen, key)).ordinal >= 0)
        live = view.mine(builtin.STATEFUL_SET, name, seen.meta)
        workload = reading.workload(live) if live else None
        known = msgspec.structs.replace(seen, objects=freshness.Fresh(parts.Objects((), workload, pods, volumes)))
        if live and workload:
            workload = reading.beside(workload, live, build.workload(seen.wanted, known.replicas).body, self._children)
        chief = known.primary.name if known.primary else seen.status.primary_of(name)
        scripts = view.mine(builtin.CONFIG_MAP, f"{name}-scripts", seen.meta) or {}
        alone = known.alone((scripts.get("data") or {}).get(build.ALONE))
        wanted = build.children(seen.wanted, primary=chief, pods=known.replicas, alone=alone)
        children = []
        for child in wanted:
            there = self._children.look(child.body, view.mine(child.resource, child.name, seen.meta))
            if secret_differs and child.resource == builtin.SECRET and there.uid:
                there = msgspec.structs.replace(there, differs=("data",))
            children.append((child, there))
        given = f"{builtin.SECRET.kind}/{seen.wanted.credentials[0]}"  # named by the user, where it is none of ours
        others = {resource: view.of(resource, name) for resource in group_access.OTHERS}
        needed = not pod_replacement.all_are_current(pods, workload)  # by a pod of an old template, it may be
        surplus = () if needed else reading.surplus(others, seen.meta.uid, {given, *(child.id for child in wanted)})
        return freshness.Fresh(
            parts.Objects(
                tuple(children),
                workload,
                pods,
                volumes,
                surplus,
                disruptions=reading.disruptions(view.mine(builtin.DISRUPTION_BUDGET, name, seen.meta)),
                unmade=reading.unmade(live, view.pods_of(name), events) if live else "",
            )
        )

    def _volume(self, it: dict[str, Any], seen: observation.Seen, key: kind.Key) -> parts.VolumeSeen:
        return reading.volume(
            it,
            ordinals.of_claim(names.VOLUME, seen.name, it["metadata"]["name"]),
            smaller_than=volumes.whole_bytes(seen.spec.storage.size),
            expandable=lambda class_: freshness.value_of(self.groups.around.classes.read(class_, key)),
        )

    # --- what is checked live, and what is filled in ---------------------------------------------------------------

    async def _member_has_left(self, obj: types.XsldCache, args: dict[str, Any]) -> str:
        """A pod or a volume goes only when the group itself says that its member is none, or that nobody ever was."""
        name = ordinals.pod(obj.metadata.name, int(args["ordinal"]))
        polled = await self.groups.look(obj.metadata.key)
        group = observation.group_of(freshness.Fresh(polled), obj.status, obj.metadata.name)
        if group is None:
            return "nobody tells of the group"
        if group.member(name) is not None:
            return f"{name} is a member"
        if group.teller == name:
            return f"nobody but {name} tells of the group"
        return f"{name} has a task" if any(answer.pod == name for answer, _ in polled.running) else ""

    async def _others_are_online(self, obj: types.XsldCache, args: dict[str, Any]) -> str:
        """Every member but that of one pod, and no task runs."""
        polled, group = await self._asked_now(obj)
        if group is None:
            return "nobody tells of the group"
        weak = [m.name for m in group.members if not m.online and m.name != args["pod"]]
        if weak:
            return f"{', '.join(weak)} is not online"
        running = [answer.pod for answer, _ in polled.running]
        return f"{', '.join(running)} has a task" if running else ""

    async def _those_who_stay_are_online(self, obj: types.XsldCache, args: dict[str, Any]) -> str:
        """All of the first so many members, and all grids: so nothing is held by others alone. No task runs."""
        polled, group = await self._asked_now(obj)
        if group is None:
            return "nobody tells of the group"
        stay = [ordinals.pod(obj.metadata.name, ordinal) for ordinal in range(int(args["size"]))]
        if weak := [name for name in stay if not ((member := group.member(name)) and member.online)]:
            return f"{', '.join(weak)} is not online"
        if polled.grids is None:
            return "nobody tells of the grids"
        if bad := [grid.name for grid in polled.grids if grid.status != self._settings.dialect.grid_online]:
            return f"grid {', '.join(bad)} is not online"
        running = [answer.pod for answer, _ in polled.running]
        return f"{', '.join(running)} has a task" if running else ""

    async def _asked_now(self, obj: types.XsldCache) -> tuple[answers.Polled, answers.Group | None]:
        """The group as it is told right now; whose pod is not well is not Online."""
        polled = await self.groups.look(obj.metadata.key)
        group = observation.group_of(freshness.Fresh(polled), obj.status, obj.metadata.name)
        view = self.groups.watches.enter(obj.metadata.namespace, self.key(*obj.metadata.key))
        return polled, group.among(parts.Objects((), None, _pods(view, obj.metadata.name)).up) if group else None

    async def _name_is_free(self, obj: types.XsldCache, args: dict[str, Any]) -> str:
        resource = next(it for it in (builtin.STATEFUL_SET, *group_access.OTHERS) if it.kind == args["kind"])
        client = self.groups.within(obj.metadata.namespace)
        return await guards.name_is_free(
            client, resource, str(args["name"]), obj.metadata, label=build.LABEL, called="cache"
        )

    async def _pod_is_expendable(self, obj: types.XsldCache, args: dict[str, Any]) -> str:
        """It serves nobody still; and where its container runs, nobody counts it as Online, and it has no task."""
        namespace, name = obj.metadata.namespace, str(args["name"])
        return await guards.pod_is_expendable(
            self.groups.within(namespace),
            builtin.POD.ref(namespace, name, str(args["uid"])),
            lambda live: _pod(live, obj.metadata.name),
            lambda: self._is_at_work(obj, name),
        )

    async def _pod_is_off(self, obj: types.XsldCache, args: dict[str, Any]) -> str:
        """The group, asked now, does not count it as Online, and it has no task. Its own word of itself is none."""
        polled = await self.groups.look(obj.metadata.key)
        group = observation.group_of(freshness.Fresh(polled), obj.status, obj.metadata.name)
        if group is None or group.teller == args["name"]:
            return f"nobody but {args['name']} tells of the group" if group else "nobody tells of the group"
        return await self._is_at_work(obj, str(args["name"]))

    async def _is_at_work(self, obj: types.XsldCache, name: str) -> str:
        """Whether the group, asked now, counts that member as Online, or it has a task; silence says nothing."""
        polled = await self.groups.look(obj.metadata.key)
        if not polled.answers:
            return "nobody could be asked"
        group = observation.group_of(freshness.Fresh(polled), obj.status, obj.metadata.name)
        member = group.member(name) if group else None
        if member is not None and member.online:
            return f"the group counts {name} as Online"
        return f"{name} has a task" if any(answer.pod == name for answer, _ in polled.running) else ""

    async def _credentials(self, obj: types.XsldCache, body: dict[str, Any]) -> dict[str, Any]:
        given = {"adminPwd": obj.spec.admin_pwd or "", "secretKey": obj.spec.secret_key or ""}
        return {**body, "data": {key: base64.b64encode(text.encode()).decode() for key, text in given.items()}}


# --- from live objects to what is seen of them -------------------------------------------------------------------


def _shared(obj: types.XsldCache) -> common_steps.CacheSeen:
    task = obj.status.current_task
    return common_steps.CacheSeen(
        name=obj.metadata.name,
        available=conditions.is_true(obj.status.conditions, "Available"),
        deleting=obj.metadata.deleting,
        task=f"{task.command} {task.target}" if task else "",
    )


def _pods(view: views.View, cache: str, around: reading.Around = reading.NOTHING) -> tuple[parts.PodSeen, ...]:
    return tuple(_pod(it, cache, around) for it in view.pods_of(cache))


def _pod(it: dict[str, Any], cache: str, around: reading.Around = reading.NOTHING) -> parts.PodSeen:
    return reading.pod(it, ordinals.of(cache, it["metadata"]["name"]), gate=build.GATE, around=around)


def _plain(spec: types.XsldCacheSpec) -> types.XsldCacheSpec:
    return msgspec.structs.replace(spec, admin_pwd=None, secret_key=None)


def _fault_of(entrypoint: freshness.Observed[str]) -> freshness.Observed[str]:
    """Of the user's script only what is wrong with it."""
    match entrypoint:
        case freshness.Failed(reason="Missing", message=message):
            return freshness.Fresh(message)
        case freshness.Failed():
            return entrypoint
    return freshness.Fresh("")


def _pace(obj: types.XsldCache, poll: config.Poll) -> float:
    if obj.status.current_task is not None:
        return poll.task_seconds
    settled = conditions.is_true(obj.status.conditions, "Ready") and not obj.metadata.deleting
    return poll.idle_seconds if settled else poll.busy_seconds
