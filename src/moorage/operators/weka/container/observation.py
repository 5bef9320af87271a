"""Everything that is decided on for a WekaContainer. Pure, and without secrets."""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.children import parts
from moorage.operators.weka import allocation, answers, place
from moorage.runtime import freshness

from . import types


class NodeSeen(msgspec.Struct, frozen=True):
    """The node of the container."""

    name: str
    ready: bool = True
    cordoned: bool = False
    drives: tuple[str, ...] = ()  # serials that are signed
    blocked: frozenset[str] = frozenset()
    failure_domain: str = ""
    fault: str = ""  # what can't be read of it


class PodSeen(msgspec.Struct, frozen=True):
    """The pod of the container."""

    seen: parts.PodSeen
    node: str = ""
    revision: str = ""  # what it was made for; see `build.revision`
    ended: bool = False  # none of it runs, or will again


class OwnerSeen(msgspec.Struct, frozen=True):
    """The WekaCluster of the container, as far as it is there."""

    name: str
    uid: str
    deleting: bool = False
    guid: str = ""  # of the cluster, as status has it
    ports: allocation.Span | None = None
    stripe: int = 0  # drive containers below which no stripe can be whole
    single_node: bool = False  # redundancy is disregarded
    forces: bool = False  # a replaced pod is not stopped gracefully; confirmed
    away: frozenset[int] = frozenset()  # numbers of other containers that have no pod, or one that was to end before


class Objects(msgspec.Struct, frozen=True):
    """What the watches have of the container."""

    pod: PodSeen | None = None
    scripts: parts.Pair | None = None  # the ConfigMap
    node: NodeSeen | None = None  # that which it is pinned to, or which its pod is on; None: there is none, or no pod
    node_gone: bool = False  # it is pinned to a node that is not there
    owner: OwnerSeen | None = None
    taken: tuple[allocation.Taken, ...] = ()  # by other containers on the node


class Seen(place.Placed, frozen=True, kw_only=True):
    """The observation."""

    spec: types.WekaContainerSpec
    status: types.WekaContainerStatus
    pod_body: parts.Desired  # to be had
    revision: str  # of the spec, see `build.revision`
    objects: freshness.Observed[Objects]
    local: freshness.Observed[answers.Local]
    cluster: freshness.Observed[answers.Cluster]

    @property
    def there(self) -> Objects:
        """The objects; only for steps after they are known."""
        found = freshness.value_of(self.objects)
        if found is None:
            raise ValueError("the objects of the container are not known yet")
        return found

    @property
    def told(self) -> answers.Local | None:
        """What the container last said, if that was this very pod."""
        found, pod = freshness.value_of(self.local), self.there.pod
        return found if found is not None and pod is not None and found.pod == pod.seen.uid else None

    @property
    def host(self) -> int | None:
        """By which the cluster knows it: by its own word, else as status remembers it."""
        objects = freshness.value_of(self.objects)
        told = self.told if objects is not None else None
        return told.host if told is not None and told.cluster else self.status.container_id

    @property
    def listed(self) -> answers.Member | None:
        """How the cluster lists it: under its number, and its own name."""
        found = freshness.value_of(self.cluster)
        member = found.member(self.host) if found else None
        return member if member is not None and member.name in ("", self.spec.name) else None

    @property
    def guid(self) -> str:
        """The cluster that it belongs to; empty: none, as far as is known."""
        told = self.told if freshness.value_of(self.objects) is not None else None
        return (told.cluster if told else "") or self.status.cluster_id

    @property
    def resources(self) -> dict[str, Any]:
        """What the container is told, as its runtime reads it."""
        got = self.status.allocations or types.Allocations()
        return {
            "drives": list(got.drives),
            "wekaPort": got.weka_port,
            "agentPort": got.agent_port,
            "failureDomain": got.failure_domain,
            "machineIdentifier": got.machine_identifier,
            "netDevices": list(got.net_devices),
        }
