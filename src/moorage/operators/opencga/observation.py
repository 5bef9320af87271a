"""Everything that is decided on for an installation, and what follows from it at once. Pure, and without secrets."""

from __future__ import annotations

import functools
from collections.abc import Iterable

import msgspec

from moorage.api import meta, quantities
from moorage.children import apply, ordinals, parts, waits
from moorage.operators import accounts
from moorage.runtime import freshness

from . import answers, names, types
from .wanted import automation, basis


class SecretsSeen(msgspec.Struct, frozen=True):
    """What is known of the Secrets that the spec names; none of their values."""

    fault: str = ""
    fix: str = ""
    revisions: dict[str, str] = {}  # by name: another one once it holds something else


class There(msgspec.Struct, frozen=True):
    """What the cluster holds. Services and the budget are among the objects of `rest`."""

    rest: parts.Objects
    master: parts.Objects
    published: automation.Published | None = None  # the document that is there
    document: apply.Child = apply.Child()  # its Secret, beside what is wanted of it
    token: apply.Child = apply.Child()  # the Secret with the agents' token; not good: what it holds is none

    @property
    def pods(self) -> tuple[parts.PodSeen, ...]:
        """Those of both."""
        return (*self.master.pods, *self.rest.pods)

    def pod(self, name: str) -> parts.PodSeen | None:
        """The pod of that name."""
        return next((pod for pod in self.pods if pod.name == name), None)


class Seen(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The observation."""

    meta: meta.ObjectMeta
    spec: types.CommunitySpec
    status: types.CommunityStatus
    now: float
    busy: float  # seconds between looks while something is under way
    rights: accounts.Rights
    allowed: bool  # the namespace may hold an installation
    namespace_ending: bool = False
    binding: freshness.Observed[accounts.BindingSeen | None]
    neighbours: int = 0  # other installations of the namespace
    catalog_of: str = ""  # another one of the namespace, which was there first, with its catalog in the same databases
    secrets: freshness.Observed[SecretsSeen]
    wanted: basis.Wanted
    objects: freshness.Observed[There]
    told: freshness.Observed[tuple[answers.Told, ...]]

    @property
    def name(self) -> str:
        """The installation's name."""
        return self.meta.name

    @functools.cached_property
    def there(self) -> There:
        """The objects; only for steps after they are known."""
        found = freshness.value_of(self.objects)
        if found is None:
            raise ValueError("the objects of the installation are not known yet")
        return found

    # --- who there should be -------------------------------------------------------------------------------------

    @property
    def master_pod(self) -> str:
        """The MASTER."""
        return ordinals.pod(names.master(self.name), 0)

    def rest_pods(self, number: int) -> list[str]:
        """The first so many REST members."""
        return [ordinals.pod(names.rest(self.name), ordinal) for ordinal in range(number)]

    @property
    def rest_version(self) -> str:
        """REST servers are of the version of the catalog: so they follow the MASTER, once it has migrated that."""
        return self.status.catalog_version or self.spec.version

    # --- whether they should be at all ---------------------------------------------------------------------------

    @functools.cached_property
    def kept_awake(self) -> str:
        """What stands against stopping the MASTER, in words; empty where nothing does, or where it is stopped."""
        live, pod = self.there.master.workload, self.master_pod
        if live is None or live.replicas == 0:
            return ""
        if not isinstance(self.told, freshness.Fresh):
            return f"the agent of {pod} is to be asked first"
        agent = self.master
        if agent is None:
            return f"{pod} is ready, and its agent does not tell what it does" if pod in self.there.master.up else ""
        at_work = answers.holds_catalog(agent, self.wanted.said.moves, self.status.catalog_version)
        late = self.now > agent.since + quantities.seconds(self.spec.timeouts.migration)
        return f"{pod} is at {agent.move}, {agent.step}" if at_work and not late else ""

    @functools.cached_property
    def asleep(self) -> bool:
        """There should be no REST server. Who has none already gets none for what an agent has not told yet."""
        if not self.spec.hibernate or freshness.value_of(self.objects) is None:
            return self.spec.hibernate
        return not self._live or not self.kept_awake

    @property
    def masters(self) -> int:
        """How many MASTERs there should be: one, but for one that hibernates, once all REST servers have stopped."""
        if not self.asleep:
            return 1
        live = self.there.master.workload
        if live is None or live.replicas == 0:
            return 0
        return 1 if self._live or self.there.rest.pods or self.kept_awake else 0

    # --- how many, and of which version --------------------------------------------------------------------------

    @property
    def _live(self) -> int | None:
        found = freshness.value_of(self.objects)
        return found.rest.workload.replicas if found and found.rest.workload else None

    @functools.cached_property
    def placed(self) -> automation.Placed:
        """Who has a place in the document: who comes gets it after its pod, who goes loses it before.

        Where there is no pod, or none should be, all have the places that they wake up to.
        """
        live, wanted = self._live, self.spec.members
        members = wanted if not live or self.asleep else live if live <= wanted else live - 1
        return automation.Placed(members, self.rest_version, self.spec.version, self.stopped)

    @property
    def stopped(self) -> bool:
        """REST servers are stopped for a migration. Not any more once it is through, or another version is wanted."""
        return self.status.stopped_for == self.spec.version != self.status.catalog_version

    @functools.cached_property
    def replicas(self) -> int:
        """How many REST pods there should be now: all where there is none, then one more or one less at a time."""
        live, wanted = self._live, self.spec.members
        if self.asleep:
            return 0
        if not live:
            return wanted
        if wanted > live:
            return live + 1 if self.settled else live
        if wanted < live and self.there.document.good:
            return live - 1
        return live

    # --- the document --------------------------------------------------------------------------------------------

    @property
    def is_documented(self) -> bool:
        """Whether it is known what agents should apply: by a spec that can be, and by Secrets that were looked at."""
        known = freshness.value_of(self.secrets)
        return not self.wanted.fault and known is not None and not known.fault

    @functools.cached_property
    def document(self) -> automation.Document:
        """What agents should apply, its version aside; only where it is known (`is_documented`)."""
        known = freshness.value_of(self.secrets)
        wanted = self.wanted
        return automation.document(
            wanted.namespace,
            wanted.name,
            wanted.spec,
            wanted.said,
            self.placed,
            known.revisions if known else {},
            wanted.args,
        )

    @functools.cached_property
    def version(self) -> int:
        """The version of that content."""
        found = freshness.value_of(self.objects)
        remembered = automation.Published(self.status.configuration_version, self.status.configuration_digest)
        return automation.next_version(automation.digest(self.document), found.published if found else None, remembered)

    # --- what was told -------------------------------------------------------------------------------------------

    def of(self, pod: str) -> answers.Told | None:
        """What that pod told, unless it is another incarnation by now."""
        live = self.there.pod(pod)
        found = next((it for it in freshness.value_of(self.told) or () if it.pod == pod), None)
        return found if found and live and live.uid == found.uid else None

    def agent(self, pod: str) -> answers.Agent | None:
        """What its agent told."""
        found = self.of(pod)
        return found.agent if found else None

    def server(self, pod: str) -> answers.Server | None:
        """What its server told."""
        found = self.of(pod)
        return found.server if found else None

    @property
    def master(self) -> answers.Agent | None:
        """What the MASTER's agent told."""
        return self.agent(self.master_pod)

    def disabled(self, pod: str) -> bool:
        """Whether the spec has that one's server stopped."""
        return self.spec.is_disabled(pod)

    def has_applied(self, pod: str) -> bool:
        """Whether its agent has applied the document as it is wanted."""
        agent = self.agent(pod)
        return agent is not None and agent.in_goal and agent.configuration == self.version

    @functools.cached_property
    def settled(self) -> bool:
        """Whether all members that there are work, and have applied the document, by fresh words."""
        if not self.is_documented or not isinstance(self.told, freshness.Fresh) or not self.there.document.good:
            return False
        here = self.rest_pods(self.placed.members)
        return all(name in self.there.rest.up and self.has_applied(name) for name in here)

    # --- in words ------------------------------------------------------------------------------------------------

    def trouble(self, pod: str) -> str:
        """What is wrong with that pod, or with its agent; empty where nothing is."""
        objects = self.there.master if pod == self.master_pod else self.there.rest
        if wrong := waits.of_pod(objects.pod(pod), objects.unmade):
            return wrong
        found = self.of(pod)
        if found is None:
            return "its agent was not asked yet"
        return f"its agent: {found.fault}" if found.fault else ""

    def troubles(self, pods: Iterable[str]) -> str:
        """These pods, each with what is wrong with it."""
        return waits.each(pods, self.trouble)
