"""One healthy installation of three REST members as an observation; tests change what they are about, one at a time."""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.api import conditions, meta
from moorage.children import apply, parts
from moorage.operators import accounts
from moorage.operators.opencga import answers, dialect, names, observation, types
from moorage.operators.opencga.wanted import automation, basis, build
from moorage.runtime import freshness

NOW = 1_800_000_000.0
BUSY = 5.0
RIGHTS = accounts.Rights("opencga", "moorage-system", "moorage-accounts", "moorage-opencga-namespace")
BOUND = accounts.BindingSeen("rb-uid", "5", role=True, subject=True)
MASTER = "demo-client-0"
SPEC: dict[str, Any] = {"version": "5.0.0", "members": 3, "database": {"hosts": ["mongo-0:27017"]}}


def ago(seconds: float) -> str:
    """That long before NOW."""
    return conditions.timestamp(NOW - seconds)


def rest(ordinal: int) -> str:
    """A REST member."""
    return f"demo-{ordinal}"


def pod(name: str, **changes: Any) -> parts.PodSeen:
    """A pod that is well."""
    made = parts.PodSeen(
        name=name,
        ordinal=int(name.rpartition("-")[2]),
        uid=f"uid-{name}",
        address="10.0.0.1",
        revision="new",
        came_up=True,
        running=True,
        ready=True,
        since=NOW - 600.0,
    )
    return msgspec.structs.replace(made, **changes)


def volume(name: str, **changes: Any) -> parts.VolumeSeen:
    """The volume of the pod of that name."""
    made = parts.VolumeSeen(f"data-volume-{name}", int(name.rpartition("-")[2]), f"pvc-{name}", "10G")
    return msgspec.structs.replace(made, **changes)


class It(msgspec.Struct, frozen=True):
    """What there is; `seen` is what is observed of it. Each method gives another one with one thing changed."""

    spec: dict[str, Any]
    status: types.CommunityStatus
    meta: meta.ObjectMeta
    pods: dict[str, parts.PodSeen]
    volumes: dict[str, parts.VolumeSeen]
    live: parts.WorkloadSeen | None
    master: parts.WorkloadSeen | None
    told: dict[str, answers.Told]
    published: automation.Published | None = None  # None: as it is wanted
    document: apply.Child | None = None  # None: by whether it is as wanted
    token: apply.Child = apply.Child("uid-token")
    children: dict[str, apply.Child] = {}
    surplus: tuple[parts.SurplusSeen, ...] = ()
    disruptions: int | None = None
    facts: dict[str, Any] = {}

    def but(self, **changes: Any) -> It:
        """Any field replaced."""
        return msgspec.structs.replace(self, **changes)

    def wants(self, **fields: Any) -> It:
        """Another spec, by the names of a manifest."""
        return self.but(spec={**self.spec, **fields})

    def object(self, **changes: Any) -> It:
        """Other metadata."""
        return self.but(meta=msgspec.structs.replace(self.meta, **changes))

    def says(self, **changes: Any) -> It:
        """Another status as last written."""
        return self.but(status=msgspec.structs.replace(self.status, **changes))

    def fact(self, **facts: Any) -> It:
        """Other facts of the observation."""
        return self.but(facts={**self.facts, **facts})

    def pod(self, name: str, **changes: Any) -> It:
        """One pod is otherwise, or there is one more."""
        return self.but(pods={**self.pods, name: msgspec.structs.replace(self.pods.get(name) or pod(name), **changes)})

    def no_pod(self, *gone: str) -> It:
        """These pods are gone."""
        return self.but(pods={name: it for name, it in self.pods.items() if name not in gone})

    def volume(self, name: str, **changes: Any) -> It:
        """One volume is otherwise, or there is one more."""
        old = self.volumes.get(name) or volume(name)
        return self.but(volumes={**self.volumes, name: msgspec.structs.replace(old, **changes)})

    def set_of(self, replicas: int, **changes: Any) -> It:
        """The REST members' StatefulSet has so many pods, and all of them are there."""
        live = msgspec.structs.replace(self.live or workload(replicas), replicas=replicas, **changes)
        it = self.but(live=live)
        for ordinal in range(replicas):
            if rest(ordinal) not in it.pods:
                it = it.pod(rest(ordinal)).volume(rest(ordinal)).says_(rest(ordinal))
        return it

    def says_(self, name: str, **changes: Any) -> It:
        """What one pod tells; fields of its agent, or `server`, `fault`, `server_fault`."""
        old = self.told.get(name) or answers.Told(name, f"uid-{name}", answers.Agent(), answers.Server("5.0.0"))
        whole = {key: changes.pop(key) for key in ("server", "fault", "server_fault", "uid") if key in changes}
        agent = msgspec.structs.replace(old.agent or answers.Agent(), **changes)
        made = msgspec.structs.replace(old, agent=None if whole.get("fault") else agent, **whole)
        return self.but(told={**self.told, name: made})

    def behind(self, name: str, **changes: Any) -> It:
        """That agent has an old configuration, and is at a step."""
        step = {"move": "Start", "step": "WaitPing", "since": NOW - 60.0, **changes}
        return self.says_(name, configuration=1, in_goal=False, **step)

    @property
    def seen(self) -> observation.Seen:
        """The observation."""
        spec = msgspec.convert(self.spec, types.CommunitySpec)
        wanted = basis.of("ns", "demo", self.meta.uid, spec, dialect.Dialect())
        base = observation.Seen(
            meta=self.meta,
            spec=spec,
            status=self.status,
            now=NOW,
            busy=BUSY,
            rights=RIGHTS,
            allowed=True,
            binding=freshness.Fresh(BOUND),
            secrets=freshness.Fresh(observation.SecretsSeen(revisions={"demo-admin-password": "r1"})),
            wanted=wanted,
            objects=freshness.not_yet("objects"),
            told=freshness.not_yet("agents"),
        )
        base = msgspec.structs.replace(base, **{k: v for k, v in self.facts.items() if k not in ("objects", "told")})
        if base.wanted.fault:
            there = observation.There(self._rest(), self._master())
            return self._with(base, there)
        return self._with(base, self._there(base))

    def _with(self, base: observation.Seen, there: observation.There) -> observation.Seen:
        found = msgspec.structs.replace(base, objects=freshness.Fresh(there))
        told = tuple(self._as_of(found, each) for each in self.told.values())
        found = msgspec.structs.replace(found, told=freshness.Fresh(told))
        return msgspec.structs.replace(found, **self.facts)

    @staticmethod
    def _as_of(seen: observation.Seen, told: answers.Told) -> answers.Told:
        """An agent that has nothing else to say has applied what is wanted."""
        if told.agent is None or told.agent.configuration != -1 or told.agent.step == "Begin":
            return told
        agent = msgspec.structs.replace(told.agent, configuration=7, in_goal=True)
        return msgspec.structs.replace(told, agent=agent)

    def _there(self, base: observation.Seen) -> observation.There:
        there = observation.There(self._rest(), self._master())
        known = msgspec.structs.replace(base, objects=freshness.Fresh(there))
        digest = automation.digest(known.document)
        published = self.published or automation.Published(7, digest)
        good = published.digest == digest
        document = self.document or apply.Child("uid-document", differs=() if good else ("data",))
        there = observation.There(self._rest(), self._master(), published, document, self.token)
        known = msgspec.structs.replace(base, objects=freshness.Fresh(there), told=freshness.Fresh(()))
        told = tuple(self._as_of(known, each) for each in self.told.values())
        known = msgspec.structs.replace(known, told=self.facts.get("told", freshness.Fresh(told)))
        live = self.live
        if live is not None and not live.child.uid:
            wrong = (apply.STAMP,) if live.replicas != known.replicas else ()
            live = msgspec.structs.replace(live, child=apply.Child(live.uid, differs=wrong))
        master = self.master
        if master is not None and not master.child.uid:
            wrong = (apply.STAMP,) if master.replicas != known.masters else ()
            master = msgspec.structs.replace(master, child=apply.Child(master.uid, differs=wrong))
        made = build.children(base.wanted)
        children = tuple((it, self.children.get(it.id, apply.Child(f"uid-{it.id}"))) for it in made)
        rest_ = msgspec.structs.replace(there.rest, workload=live, children=children)
        return msgspec.structs.replace(there, rest=rest_, master=msgspec.structs.replace(there.master, workload=master))

    def _rest(self) -> parts.Objects:
        pods = tuple(it for name, it in self.pods.items() if name != MASTER)
        claims = tuple(it for name, it in self.volumes.items() if name != MASTER)
        return parts.Objects((), self.live, pods, claims, self.surplus, self.disruptions)

    def _master(self) -> parts.Objects:
        pods = tuple(it for name, it in self.pods.items() if name == MASTER)
        claims = tuple(it for name, it in self.volumes.items() if name == MASTER)
        return parts.Objects((), self.master, pods, claims)


def workload(replicas: int = 3, uid: str = "sts-uid") -> parts.WorkloadSeen:
    """A StatefulSet as it should be."""
    return parts.WorkloadSeen(uid, replicas, "new")


def demo(members: int = 3, **spec: Any) -> It:
    """A healthy installation, whose document has version 7."""
    every = [MASTER, *(rest(n) for n in range(members))]
    told = {name: answers.Told(name, f"uid-{name}", answers.Agent(), answers.Server("5.0.0")) for name in every}
    told[MASTER] = answers.Told(MASTER, f"uid-{MASTER}", answers.Agent(installed=True, catalog="5.0.0"))
    status = types.CommunityStatus(
        observed_generation=1, version="5.0.0", catalog_version="5.0.0", configuration_version=7
    )
    return It(
        spec={**SPEC, "members": members, **spec},
        status=status,
        meta=meta.ObjectMeta(name="demo", namespace="ns", uid="uid-demo", generation=1, finalizers=(names.FINALIZER,)),
        pods={name: pod(name) for name in every},
        volumes={name: volume(name) for name in every},
        live=workload(members),
        master=workload(1, "master-uid"),
        told=told,
    )


def asleep(**spec: Any) -> It:
    """One that hibernates, and was well before."""
    return demo(hibernate=True, **spec).but(live=workload(0), master=workload(0, "master-uid"), pods={}, told={})


def fresh(**spec: Any) -> It:
    """One that was just created: pods run, and the MASTER installs the catalog."""
    it = demo(**spec).says(version="", catalog_version="")
    installs = {"move": "CatalogInstall", "step": "WaitMongo", "since": NOW - 60.0}
    it = it.says_(MASTER, installed=False, catalog="", configuration=0, in_goal=False, **installs)
    for name in it.pods:
        it = it.pod(name, ready=False, came_up=False)
    return it
