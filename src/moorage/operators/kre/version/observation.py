"""Everything that is decided on for a RuntimeVersion, as plain data. Pure, and without secrets."""

from __future__ import annotations

import functools

import msgspec

from moorage.api import meta
from moorage.children import apply, parts
from moorage.operators import accounts
from moorage.operators.kre import kinds, names
from moorage.runtime import freshness

from . import streams, types
from .inputs import Inputs
from .streams import ConsumerSeen, StreamSeen


class RuntimeSeen(msgspec.Struct, frozen=True):
    """A Runtime that may be meant, as its own status says how it stands."""

    name: str
    uid: str = ""
    ready: bool = True
    deleting: bool = False
    published: str = ""  # spec.publishedVersion: the version's name
    servers: int = 1  # of NATS
    previous: str = ""  # the version before the published one, where it is to stand in for one that is broken


class NatsSeen(msgspec.Struct, frozen=True):
    """What NATS has: of all versions the streams, of this one the consumers."""

    streams: dict[str, StreamSeen] = {}
    consumers: dict[str, dict[str, ConsumerSeen]] = {}  # by stream


class NodeSeen(msgspec.Struct, frozen=True):
    """A node's Deployment and pods, or the entrypoint's (of no workflow). It is judged as `readiness` wants it."""

    workflow: str
    name: str
    ref: meta.ObjectRef
    pods_ready: int
    wanted: int
    former: int = 0  # pods beyond those that are wanted: those of before, which end what they have begun
    ready: bool = True  # all is as its spec says
    restarts: int = 0
    reason: str = ""
    message: str = ""
    fix: str = ""

    def __str__(self) -> str:
        """NODE of WORKFLOW."""
        return f"node {self.name} of workflow {self.workflow}" if self.workflow else "the entrypoint"


class ActiveSeen(msgspec.Struct, frozen=True):
    """The Service of what is published."""

    uid: str = ""  # empty: it is not there
    resource_version: str = ""
    version: str = ""  # the RuntimeVersion that it leads to
    wanted: parts.Desired | None = None  # as this version would have it; None where the Runtime is not clear
    child: apply.Child = apply.Child()


class ObjectsSeen(msgspec.Struct, frozen=True):
    """The objects of this version."""

    there: tuple[parts.SurplusSeen, ...] = ()  # all that it owns
    children: tuple[parts.Pair, ...] | None = None  # what is wanted of it; None while that can't be said
    nodes: tuple[NodeSeen, ...] = ()
    active: ActiveSeen = ActiveSeen()

    @property
    def surplus(self) -> tuple[parts.SurplusSeen, ...]:
        """What the spec does not ask for; nothing while it can't be said what it asks for."""
        if self.children is None:
            return ()
        wanted = {desired.id for desired, _ in self.children}
        return tuple(each for each in self.there if each.id not in wanted)


class Seen(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The observation."""

    meta: meta.ObjectMeta
    spec: types.RuntimeVersionSpec
    status: types.RuntimeVersionStatus = types.RuntimeVersionStatus()
    now: float = 0.0  # epoch seconds
    rights: accounts.Rights
    allowed: bool = True  # the namespace may hold Runtimes
    namespace_ending: bool = False
    binding: freshness.Observed[accounts.BindingSeen | None]
    neighbours: int = 0  # Runtimes and other versions of the namespace
    runtimes: freshness.Observed[tuple[RuntimeSeen, ...]]  # those that may be meant
    others: tuple[str, ...] = ()  # all Runtimes of the namespace
    published_fails: bool = False  # the version that the Runtime publishes has a node without any ready pod
    previous_is_whole: bool = False  # the one before has none
    older: str = ""  # an older RuntimeVersion with the same version's name
    fetcher: bool = True  # there is an image that brings archives from the object store
    ack_wait: float = 60.0
    inputs: freshness.Observed[Inputs]
    nats: freshness.Observed[NatsSeen]
    objects: freshness.Observed[ObjectsSeen]

    @property
    def runtime(self) -> RuntimeSeen | None:
        """The one that is meant, if that is clear."""
        found = freshness.value_of(self.runtimes) or ()
        return found[0] if len(found) == 1 else None

    @property
    def names(self) -> names.Names:
        """What all of it is called."""
        return names.Names(self.runtime.name if self.runtime else self.status.runtime, self.spec.version)

    @property
    def published(self) -> bool:
        """Whether it is what its Runtime is to publish."""
        return self.runtime is not None and self.runtime.published == self.spec.version

    @property
    def stands_in(self) -> bool:
        """Whether it is to be led to in place of what is published, and broken."""
        runtime = self.runtime
        return runtime is not None and self.published_fails and runtime.previous == self.spec.version

    @property
    def yields(self) -> bool:
        """Whether another stands in for it until it is whole again."""
        runtime = self.runtime
        return (
            self.published
            and runtime is not None
            and bool(runtime.previous)
            and (self.published_fails and self.previous_is_whole and not self.whole)
        )

    @property
    def active(self) -> ActiveSeen:
        """The Service of what is published, as far as it is known."""
        found = freshness.value_of(self.objects)
        return found.active if found else ActiveSeen()

    @property
    def serving(self) -> bool:
        """Whether calls are led here, whatever the Runtime says."""
        return bool(self.active.uid) and self.active.version == self.meta.name

    @property
    def discards(self) -> bool:
        """Whether messages that wait may be lost."""
        return self.meta.annotations.get(kinds.DISCARD) == "true"

    def waited_at(self, step: str) -> float:
        """Seconds for which the steps have stood at that one."""
        return self.status.progress.waited_at(step, self.now)

    @functools.cached_property
    def wanted(self) -> tuple[streams.Wanted, ...]:
        """What it needs in NATS; nothing, where it is more than one version can be."""
        if self.spec.too_large:
            return ()
        servers = self.runtime.servers if self.runtime else 1
        return streams.wanted(self.names, self.spec.graph, self.meta.name, servers, self.ack_wait)

    @functools.cached_property
    def mine(self) -> dict[str, StreamSeen]:
        """What NATS has of it, wanted or not."""
        there = freshness.value_of(self.nats) or NatsSeen()
        return {name: each for name, each in sorted(there.streams.items()) if each.mark == self.meta.name}

    @property
    def counting(self) -> str:
        """What messages are counted for; empty: they are not, as of what runs each count would be news all the time.

        It changes when the entrance is closed: no count of before is taken for one of after.
        """
        if self.spec.running and not self.meta.deleting:
            return ""
        found, entrance = freshness.value_of(self.objects) or ObjectsSeen(), (kinds.DEPLOYMENT, self.names.entrypoint)
        is_open = any((each.resource, each.name) == entrance for each in found.there)
        return "while calls come in" if is_open else "after the last call"

    def pending(self) -> dict[str, int]:
        """Messages that nodes have not taken yet, by consumer; that of the entrypoint itself is none of a node's."""
        there = freshness.value_of(self.nats) or NatsSeen()
        wanted = {name for each in self.wanted for name in each.consumers}
        counts = {
            name: each.pending
            for stream, found in there.consumers.items()
            for name, each in found.items()
            if stream in self.mine and (each.mark == self.meta.name or name in wanted)
        }
        return {name: left for name, left in sorted(counts.items()) if left}

    @property
    def whole(self) -> bool:
        """Whether each node and the entrypoint is there and ready."""
        found, nodes = freshness.value_of(self.objects), sum(len(each.nodes) for each in self.spec.graph)
        return found is not None and len(found.nodes) == nodes + 1 and all(each.ready for each in found.nodes)
