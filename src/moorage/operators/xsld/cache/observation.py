"""Everything that is decided on for an XsldCache, and what follows from it at once. Pure, and without secrets."""

from __future__ import annotations

import functools

import msgspec

from moorage.api import conditions, meta
from moorage.children import ordinals, parts
from moorage.operators import accounts
from moorage.operators.xsld import config, names
from moorage.operators.xsld.group import answers
from moorage.runtime import freshness

from . import build, types

PLACED = 120.0
"""Seconds after which a pod that has no place is not expected to get one soon."""


class Seen(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The observation. The credentials' fields of the spec are left out."""

    meta: meta.ObjectMeta
    spec: types.XsldCacheSpec
    status: types.XsldCacheStatus
    now: float
    limits: config.Retry
    busy: float  # seconds between polls while something is under way
    rights: accounts.Rights
    refused_image: str = ""  # what the user asks for, where `spec` has the image that is run instead
    allowed: bool  # the namespace may hold caches
    namespace_ending: bool = False
    binding: freshness.Observed[accounts.BindingSeen | None]
    neighbours: int = 0  # other caches of the namespace
    credentials: freshness.Observed[str]  # what is wrong with them
    credentials_since: float = 0.0  # epoch seconds; a container that is older may have others
    entrypoint: freshness.Observed[str]  # what is wrong with the user's script
    unsent: bool = False  # the last command was certainly not carried out
    wanted: build.Wanted
    objects: freshness.Observed[parts.Objects]
    polled: freshness.Observed[answers.Polled]

    @property
    def name(self) -> str:
        """The cache's name."""
        return self.meta.name

    @functools.cached_property
    def group(self) -> answers.Group | None:
        """The group, however old the news of it. Whose pod is not well is not Online."""
        found, objects = self.listed, freshness.value_of(self.objects)
        return found.among(objects.up) if found and objects else found

    @functools.cached_property
    def listed(self) -> answers.Group | None:
        """The group in its own words."""
        return group_of(self.polled, self.status, self.name)

    @functools.cached_property
    def there(self) -> parts.Objects:
        """The objects; only for steps after they are known."""
        found = freshness.value_of(self.objects)
        if found is None:
            raise ValueError("the objects of the cache are not known yet")
        return found

    @property
    def told(self) -> answers.Polled:
        """The last answers, however old."""
        return freshness.value_of(self.polled) or answers.Polled()

    def answer(self, pod: str) -> answers.Answer | None:
        """What the pod of that name said, unless it is another incarnation by now."""
        found = self.told.answer(pod)
        live = self.there.pod(pod)
        return found if found and live and live.uid == found.uid else None

    def fault(self, pod: str) -> answers.Answer | None:
        """How the pod of that name failed to answer."""
        objects = freshness.value_of(self.objects)
        live = objects.pod(pod) if objects else None
        return next((a for a in self.told.answers if a.fault and a.pod == pod and live and a.uid == live.uid), None)

    @functools.cached_property
    def primary(self) -> answers.Member | None:
        """The primary, if it answers and tells of the very group that the others tell of."""
        group = self.group
        chief = group.primary if group else None
        answer = self.answer(chief.name) if chief else None
        if group is None or chief is None or answer is None:
            return None
        return chief if any(m.name == group.teller for m in answer.members) else None

    @functools.cached_property
    def known(self) -> frozenset[str]:
        """Who is a member, or was when last seen."""
        return self.group.names if self.group else frozenset(m.name for m in self.status.member_statuses)

    def online_since(self, name: str) -> str:
        """Since when that member is Online, as status remembers it; of one that has just come, now. Empty: never."""
        member = self.group.member(name) if self.group else None
        if member is None or not member.online:
            return ""
        before = next((it.online_since for it in self.status.member_statuses if it.name == name), "")
        return before or conditions.timestamp(self.now)

    def online_run(self, name: str) -> str:
        """When the container was started in which that member was Online last, as status remembers it."""
        return next((it.started_at for it in self.status.member_statuses if it.name == name), "")

    def alone(self, before: str | None) -> str:
        """Who may serve clients although it knows of nobody else: it is the whole group. Empty: nobody is.

        Else a member that lost its state would serve, as it takes itself for a group. Only positive evidence names one:
        that the group lists nobody else, or that there was never anything of this cache. While nothing is known it
        stays as it was `before`; None: that is not known either, and who was a member when last seen counts.
        """
        task = self.task
        if self.group is not None:
            going = {task.target} if task is not None and task.command == "Leave" else set[str]()
            rest = self.group.names - going  # told a while before: the kubelet is slow to hand it on
            return next(iter(rest)) if len(rest) == 1 else ""
        never = self.there.workload is None and not self.known
        if never and not any(volume.ordinal > 0 for volume in self.there.volumes):
            return ordinals.pod(self.name, 0)
        if before is None:
            return next(iter(self.known)) if len(self.known) == 1 else ""
        return before

    def waited_at(self, step: str) -> float:
        """Seconds for which the steps have stood at that one, for whatever reason."""
        return self.status.progress.waited_at(step, self.now)

    @functools.cached_property
    def replicas(self) -> int:
        """How many pods there should be; while others are replaced none for those who have no place."""
        objects = freshness.value_of(self.objects)
        live = objects.workload.replicas if objects and objects.workload else None
        leftover = frozenset(volume.ordinal for volume in objects.volumes) if objects else frozenset[int]()
        certain = isinstance(self.polled, freshness.Fresh)
        return replicas(
            self.name,
            1 if self.yields else self.spec.size,
            live=live,
            group=self.group if certain else None,
            busy=self.with_task,
            remembered=frozenset(member.name for member in self.status.member_statuses),
            leftover=leftover,
        )

    @functools.cached_property
    def missing(self) -> tuple[str, ...]:
        """Who is wanted, has its place in the StatefulSet, and is no member."""
        objects = freshness.value_of(self.objects)
        size = min(self.spec.size, objects.workload.replicas) if objects and objects.workload else 0
        wanted = (ordinals.pod(self.name, ordinal) for ordinal in range(size))
        return tuple(name for name in wanted if self.group is None or name not in self.group.names)

    @functools.cached_property
    def without_place(self) -> frozenset[str]:
        """Of those the ones whose pod can't be made, has no node, or does not end, for so long that it may stay so."""
        return frozenset(name for name in self.missing if self._has_no_place(name))

    def _has_no_place(self, name: str) -> bool:
        pod, late = self.there.pod(name), self.now - PLACED
        if pod is not None:
            return pod.overdue or 0.0 < pod.unplaced_since < late
        # the one controller makes a pod right after its claim, if it can
        mine = (v for v in self.there.volumes if ordinals.pod(self.name, v.ordinal) == name)
        return any(not volume.deleting and volume.made_at < late for volume in mine)

    @functools.cached_property
    def yields(self) -> bool:
        """Whether those who have no place are left out until the members are of the current template.

        Else they would take the place of a member that is replaced: what is free by it, of a quota or of a node, goes
        to whoever comes first. It stays so for one template: a place that is free meanwhile is none to build on.
        """
        objects = freshness.value_of(self.objects)
        workload = objects.workload if objects else None
        if workload is None or not workload.revision or self.group is None:
            return False
        members = [pod for pod in self.there.pods if pod.name in self.group.names]
        if all(pod.revision == workload.revision for pod in members) or self.spec.update_strategy.type == "OnDelete":
            return False
        if self.status.grows_after == workload.revision:
            return True
        kept = self.spec.storage.reclaim_on_scale_down == "Retain" and not self.spec.storage.ephemeral
        top = 1 + max(ordinals.of(self.name, name) for name in self.group.names | self.with_task)
        beyond = {name for name in self.missing if ordinals.of(self.name, name) >= top}
        return bool(beyond) and beyond <= self.without_place and not kept

    @functools.cached_property
    def with_task(self) -> frozenset[str]:
        """Members that a task is under way at, or that ours is about."""
        task = self.task
        return frozenset(answer.pod for answer, _ in self.told.running) | ({task.target} if task else set())

    @functools.cached_property
    def task(self) -> types.CurrentTask | None:
        """What was asked of the group, as status remembers it.

        Others may write a status: what names no member that there is, may be, or was is nothing that was asked, and
        must not move the StatefulSet.
        """
        task = self.status.current_task
        if task is None or task.command not in types.COMMANDS or not task.intent:
            return None
        return task if self._may_be(task.target) and ordinals.of(self.name, task.endpoint) >= 0 else None

    def _may_be(self, name: str) -> bool:
        ordinal, objects = ordinals.of(self.name, name), freshness.value_of(self.objects)
        if not 0 <= ordinal < names.MOST_MEMBERS:
            return False
        if objects is None:
            return True
        live = objects.workload.replicas if objects.workload else 0
        left = {volume.ordinal for volume in objects.volumes} | {pod.ordinal for pod in objects.pods}
        return ordinal < max(self.spec.size, live) or ordinal in left or name in self.known


def group_of(
    polled: freshness.Observed[answers.Polled], status: types.XsldCacheStatus, cache: str
) -> answers.Group | None:
    """The group that the answers tell of, given who was a member before."""
    told = freshness.value_of(polled)
    if told is None:
        return None
    remembered = [member.name for member in status.member_statuses]
    return answers.group(told, remembered=remembered, primary=status.primary_of(cache))


def replicas(
    cache: str,
    size: int,
    *,
    live: int | None,
    group: answers.Group | None,
    busy: frozenset[str],
    remembered: frozenset[str],
    leftover: frozenset[int],
) -> int:
    """How many pods the StatefulSet should have.

    Never fewer than there are while the group is unknown, and never so few that a member, or one with a task, would
    lose its pod: ordinals can have gaps, so members are not counted. Going up stops before an ordinal whose old volume
    is still there, unless there is no StatefulSet at all: then the volumes are the group's own. A group may list whom
    it likes: who is beyond what a cache can have is none of it.
    """
    known = group.names if group is not None else remembered
    theirs = {ordinal for name in known | busy if (ordinal := ordinals.of(cache, name)) < names.MOST_MEMBERS}
    needed = 1 + max(theirs, default=0)
    if live is None:
        return max(size, needed)
    if group is None:  # who is only remembered may have left since
        needed = live
    target = max(size, needed)
    if target <= live:
        return target
    blocked = min((ordinal for ordinal in leftover - theirs if live <= ordinal < target), default=target)
    return max(blocked, live)
