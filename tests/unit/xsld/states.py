"""One healthy cache of three members as an observation; tests change what they are about, one thing at a time."""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.api import conditions, meta
from moorage.children import apply, ordinals, parts
from moorage.operators import accounts
from moorage.operators.xsld import config, names
from moorage.operators.xsld.cache import build, observation, types
from moorage.operators.xsld.group import answers, dialect
from moorage.runtime import freshness
from tests.unit import verdicts

NOW = 1_800_000_000.0
BUSY = 10.0
LIMITS = config.Retry()
RIGHTS = accounts.Rights("xsld", "moorage-system", "moorage-accounts", "moorage-xsld-tenant")
BOUND = accounts.BindingSeen("rb-uid", "5", role=True, subject=True)
CAP = 2 * LIMITS.cap_seconds
RUNNING, DONE, FAILED = answers.Phase.RUNNING, answers.Phase.DONE, answers.Phase.FAILED


def ago(seconds: float) -> str:
    """That long before NOW."""
    return conditions.timestamp(NOW - seconds)


def pod_name(ordinal: int) -> str:
    return ordinals.pod("c", ordinal)


def member(ordinal: int) -> answers.Member:
    """A member that is well. The first is primary, the second has the copy."""
    role = {0: "master", 1: "slave"}.get(ordinal, "")
    return answers.Member(
        pod_name(ordinal),
        f"10.0.0.{ordinal}",
        "Online",
        online=True,
        catalog=ordinal < 3,
        primary=ordinal == 0,
        role=role,
    )


def pod(ordinal: int) -> parts.PodSeen:
    """A pod that is well."""
    return parts.PodSeen(
        name=pod_name(ordinal),
        ordinal=ordinal,
        uid=f"uid-{ordinal}",
        address=f"10.0.0.{ordinal}",
        image="ibmcom/xsld:latest",
        revision="new",
        came_up=True,
        running=True,
        ready=True,
        since=NOW - 600.0,
        started_at=NOW - 700.0,
    )


def volume(ordinal: int) -> parts.VolumeSeen:
    """A volume as the spec has it."""
    return parts.VolumeSeen(f"{names.VOLUME}-c-{ordinal}", ordinal, f"pvc-{ordinal}", "100Mi")


def alone(ordinal: int) -> tuple[answers.Member, ...]:
    """What a pod tells that never joined: a group of its own."""
    return (answers.Member(pod_name(ordinal), f"10.0.0.{ordinal}", "Online", online=True, primary=True),)


def task(number: int = 7, phase: answers.Phase = RUNNING, **changes: Any) -> answers.Task:
    """A task at a member, by its intent moorage's own."""
    made = answers.Task(number, "Command", "moorage i-1: it", phase, 30)
    return msgspec.structs.replace(made, **changes)


class It(msgspec.Struct, frozen=True):
    """What there is; `seen` is what is observed of it. Each method gives another one with one thing changed."""

    spec: dict[str, Any]
    members: dict[int, answers.Member]
    pods: dict[int, parts.PodSeen]
    volumes: dict[int, parts.VolumeSeen]
    workload: parts.WorkloadSeen | None
    status: types.XsldCacheStatus
    meta: meta.ObjectMeta
    stories: dict[int, tuple[answers.Member, ...]] = {}  # what is told, where it is not `members`
    silent: dict[int, answers.Fault] = {}
    tasks: dict[int, tuple[answers.Task, ...]] = {}
    grids: tuple[answers.Grid, ...] | None = ()
    children: dict[str, apply.Child] = {}
    surplus: tuple[parts.SurplusSeen, ...] = ()
    disruptions: int | None = None
    facts: dict[str, Any] = {}  # fields of the observation as they are

    # --- the spec and the object ---------------------------------------------------------------------------------

    def but(self, **changes: Any) -> It:
        """Any field replaced."""
        return msgspec.structs.replace(self, **changes)

    def wants(self, **fields: Any) -> It:
        """Another spec, by the names of a manifest; its generation moves with it."""
        it = self.but(spec={**self.spec, **fields})
        return it.object(generation=self.meta.generation + 1)

    def object(self, **changes: Any) -> It:
        """Other metadata."""
        return self.but(meta=msgspec.structs.replace(self.meta, **changes))

    def says(self, **changes: Any) -> It:
        """Another status as last written."""
        return self.but(status=msgspec.structs.replace(self.status, **changes))

    def fact(self, **facts: Any) -> It:
        """Other facts of the observation."""
        return self.but(facts={**self.facts, **facts})

    # --- the group -----------------------------------------------------------------------------------------------

    def member(self, ordinal: int, **changes: Any) -> It:
        """One member is otherwise, or becomes one."""
        old = self.members.get(ordinal) or member(ordinal)
        return self.but(members={**self.members, ordinal: msgspec.structs.replace(old, **changes)})

    def off(self, *ordinals: int) -> It:
        """These members are not online, and do not answer."""
        it = self
        for ordinal in ordinals:
            it = it.member(ordinal, online=False, status="Offline").mute(ordinal)
        return it

    def left(self, *ordinals: int) -> It:
        """These are members no more, and tell of themselves alone."""
        names_ = {pod_name(n) for n in ordinals}
        remembered = tuple(member for member in self.status.member_statuses if member.name not in names_)
        return self.removed(*ordinals).says(member_statuses=remembered)

    def removed(self, *ordinals: int) -> It:
        """These were members when last seen, and tell of themselves alone now."""
        members = {n: m for n, m in self.members.items() if n not in ordinals}
        return self.but(members=members, stories={**self.stories, **{n: alone(n) for n in ordinals}})

    def blank(self, *ordinals: int) -> It:
        """These came back without their state: they tell of a group of their own."""
        return self.but(stories={**self.stories, **{n: alone(n) for n in ordinals}})

    def mute(self, *ordinals: int, fault: answers.Fault = answers.Fault.UNREACHABLE) -> It:
        """These do not answer."""
        return self.but(silent={**self.silent, **dict.fromkeys(ordinals, fault)})

    def primary(self, ordinal: int, slave: int | None = None) -> It:
        """Another primary, and who has its copy."""
        it = self
        for each in self.members:
            role = "master" if each == ordinal else "slave" if each == slave else ""
            it = it.member(each, primary=each == ordinal, role=role)
        return it

    def runs(self, ordinal: int, *tasks: answers.Task) -> It:
        """Tasks at one member."""
        return self.but(tasks={**self.tasks, ordinal: tasks})

    # --- what is remembered --------------------------------------------------------------------------------------

    def asked(self, command: str, target: int, endpoint: int, *, age: float = 60.0, **changes: Any) -> It:
        """A task that was asked for, and that nobody has seen the end of."""
        current = types.CurrentTask("i-1", command, pod_name(target), pod_name(endpoint), ago(age), id=7)
        return self.says(current_task=msgspec.structs.replace(current, **changes))

    def moved(self, percent: int, *, age: float = 0.0) -> It:
        """How far the task that was asked for was, and since when."""
        return self.says(task_progress=types.TaskProgress("i-1", percent, ago(age)))

    def failed(self, command: str, target: int, *, attempts: int = 1, age: float = 0.0, **changes: Any) -> It:
        """A command that failed."""
        made = types.Trouble(command, pod_name(target), attempts, ago(age), "no room", self.meta.generation)
        return self.says(troubles=(*self.status.troubles, msgspec.structs.replace(made, **changes)))

    def stands(self, step: str, reason: str = "", *, age: float = 0.0) -> It:
        """The steps have stood there for so long."""
        return self.says(
            progress=msgspec.structs.replace(self.status.progress, step=step, reason=reason, since=ago(age))
        )

    # --- the cluster ---------------------------------------------------------------------------------------------

    def pod(self, ordinal: int, **changes: Any) -> It:
        """One pod is otherwise, or there is one more."""
        old = self.pods.get(ordinal) or pod(ordinal)
        return self.but(pods={**self.pods, ordinal: msgspec.structs.replace(old, **changes)})

    def allows(self, disruptions: int) -> It:
        """So many pods may go by the budget."""
        return self.but(disruptions=disruptions)

    def no_pod(self, *ordinals: int) -> It:
        """These pods are gone."""
        return self.but(pods={n: p for n, p in self.pods.items() if n not in ordinals})

    def old(self, *ordinals: int) -> It:
        """These pods are of a former template."""
        it = self
        for ordinal in ordinals:
            it = it.pod(ordinal, revision="old")
        return it

    def volume(self, ordinal: int, **changes: Any) -> It:
        """One volume is otherwise, or there is one more."""
        old = self.volumes.get(ordinal) or volume(ordinal)
        return self.but(volumes={**self.volumes, ordinal: msgspec.structs.replace(old, **changes)})

    def no_volume(self, *ordinals: int) -> It:
        """These volumes are gone."""
        return self.but(volumes={n: v for n, v in self.volumes.items() if n not in ordinals})

    def set_of(self, **changes: Any) -> It:
        """The StatefulSet is otherwise. Without `child` it is as its number of pods lets expect."""
        return self.but(workload=msgspec.structs.replace(self.workload or workload(), **changes))

    def child(self, id_: str, **changes: Any) -> It:
        """One of the other objects is otherwise."""
        made = msgspec.structs.replace(apply.Child(f"uid-{id_}"), **changes)
        return self.but(children={**self.children, id_: made})

    def grown(self, replicas: int) -> It:
        """The StatefulSet has so many pods; new ones have not joined."""
        it = self.set_of(replicas=replicas)
        for ordinal in range(replicas):
            if ordinal not in self.pods:
                it = it.pod(ordinal).volume(ordinal).blank(ordinal)
        return it

    def joined(self, *ordinals: int) -> It:
        """These became members, and status knows them."""
        it = self.but(stories={n: told for n, told in self.stories.items() if n not in ordinals})
        for ordinal in ordinals:
            it = it.member(ordinal)
        known = tuple(types.MemberStatus(m.name, n, online_since=ago(1000)) for n, m in it.members.items())
        return it.says(member_statuses=known)

    def online_since(self, ordinal: int, seconds: float | None) -> It:
        """A member is Online for so long, as status remembers it; None: it was not when last seen."""
        since = "" if seconds is None else ago(seconds)
        known = (
            msgspec.structs.replace(it, online_since=since) if it.ordinal == ordinal else it
            for it in self.status.member_statuses
        )
        return self.says(member_statuses=tuple(known))

    # --- what is observed ----------------------------------------------------------------------------------------

    @property
    def polled(self) -> answers.Polled:
        """What the pods say."""
        told = []
        for n, each in self.pods.items():
            if not each.address or each.deleting:
                continue
            fault = self.silent.get(n) or (None if each.running else answers.Fault.UNREACHABLE)
            members = self.stories.get(n, tuple(self.members.values()))
            told.append(
                answers.Answer(each.name, each.uid, each.address, fault, fault.value)
                if fault
                else answers.Answer(each.name, each.uid, each.address, members=members, tasks=self.tasks.get(n, ()))
            )
        return answers.Polled(tuple(told), "c-0" if told else "", self.grids, ())

    @property
    def seen(self) -> observation.Seen:
        """The observation."""
        spec = msgspec.convert(self.spec, types.XsldCacheSpec)
        wanted = build.Wanted("ns", "c", self.meta.uid, spec, dialect.Dialect())
        pods, volumes = tuple(self.pods.values()), tuple(self.volumes.values())
        whole = observation.Seen(
            meta=self.meta,
            spec=spec,
            status=self.status,
            now=NOW,
            limits=LIMITS,
            busy=BUSY,
            rights=RIGHTS,
            allowed=True,
            binding=freshness.Fresh(BOUND),
            credentials=freshness.Fresh(""),
            entrypoint=freshness.Fresh(""),
            wanted=wanted,
            objects=freshness.Fresh(parts.Objects((), self.workload, pods, volumes)),
            polled=freshness.Fresh(self.polled),
        )
        whole = msgspec.structs.replace(whole, **self.facts)
        if isinstance(whole.objects, freshness.Failed):
            return whole
        live = self.workload
        if live is not None and not live.child.uid:
            wrong = (apply.STAMP,) if live.replicas != whole.replicas else ()
            live = msgspec.structs.replace(live, child=apply.Child(live.uid, differs=wrong))
        chief = whole.primary.name if whole.primary else self.status.primary or "c-0"
        made = build.children(wanted, primary=chief, pods=whole.replicas, alone=whole.alone(""))
        children = tuple((it, self.children.get(it.id, apply.Child(f"uid-{it.id}"))) for it in made)
        objects = parts.Objects(children, live, pods, volumes, self.surplus, self.disruptions)
        return msgspec.structs.replace(whole, objects=freshness.Fresh(objects))


def workload(replicas: int = 3) -> parts.WorkloadSeen:
    """The StatefulSet as it should be."""
    return parts.WorkloadSeen("sts-uid", replicas, "new")


def cache(size: int = 3, **spec: Any) -> It:
    """A healthy cache of so many members."""
    members = {n: member(n) for n in range(size)}
    status = types.XsldCacheStatus(
        observed_generation=1,
        conditions=(conditions.Condition("Available", "True", "Available", "", 1, ago(1000)),),
        members=size,
        primary="c-0",
        member_statuses=tuple(
            types.MemberStatus(m.name, n, m.address, m.address, m.status, online_since=ago(1000))
            for n, m in members.items()
        ),
    )
    return It(
        spec={"license": "accept", "size": size, "credentialsSecretRef": {"name": "given"}, **spec},
        members=members,
        pods={n: pod(n) for n in range(size)},
        volumes={n: volume(n) for n in range(size)},
        workload=workload(size),
        status=status,
        meta=meta.ObjectMeta(name="c", namespace="ns", uid="uid-c", generation=1, finalizers=(names.CACHE_FINALIZER,)),
    )


def fresh(size: int = 3, **spec: Any) -> It:
    """A cache that was just created: its pods run, and nobody has joined."""
    it = cache(size, **spec)
    return it.left(*range(1, size)).but(status=types.XsldCacheStatus(observed_generation=1))


def submits(reason: str, what: str) -> verdicts.Acts:
    """A task is remembered, then asked for."""
    return verdicts.Acts(reason, ("remember currentTask", f"submit {what}"))
