"""What an observation says of the objects that one object owns, and of those that it is to own. Plain, frozen.

Steps take these parts one by one; a system that has no workload, or no volumes, hands in none. Nothing in here is
secret: bodies are completed by a filler of the kind, right before they are sent.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from moorage.api import additions, meta

from . import apply
from . import reasons as object_reasons

Key: TypeAlias = tuple[str, str]
"""(namespace, name) of an object."""


class Desired(msgspec.Struct, frozen=True):
    """One object to be had: its kind and its stamped body. `fill` completes it with what is secret."""

    resource: meta.Resource
    body: dict[str, Any]
    fill: str = ""

    @property
    def name(self) -> str:
        """The object's name."""
        return str(self.body["metadata"]["name"])

    @property
    def id(self) -> str:
        """Names it among those of its owner."""
        return f"{self.resource.kind}/{self.name}"


Pair: TypeAlias = tuple[Desired, apply.Child]
"""An object to be had, and what there is of it."""


class PodSeen(msgspec.Struct, frozen=True):
    """One pod. What is said of its container is said of its first."""

    name: str
    ordinal: int  # -1 for one that has none
    uid: str
    address: str = ""
    image: str = ""
    revision: str = ""  # of the template that it was made from
    came_up: bool = False  # its container is ready, or has been
    held: bool = False  # its container can't be made, or ends again and again
    unplaced_since: float = 0.0  # epoch seconds, since when there is no node for it; 0: it has one, or nobody looked
    running: bool = False
    ready: bool = False  # its container is, by its own probe
    since: float = 0.0  # epoch seconds, since when it is ready, or is not
    started_at: float = 0.0  # epoch seconds, of its container
    gate: bool | None = None  # what its readiness gate says; None: nothing, or it has none
    deleting: bool = False
    overdue: bool = False  # it should have ended a while ago
    trouble: str = ""  # why it does not run, or does not end, in words
    cause: str = ""  # the reason of that
    fix: str = ""  # what a person must do, where nothing comes by itself

    @property
    def expendable(self) -> bool:
        """Nobody is served by it, and nothing is lost with it: it never came up, or can't be kept running."""
        return not self.came_up or self.held

    @property
    def cut_off(self) -> bool:
        """Its node does not answer, so nobody knows whether it runs there still."""
        return self.cause == object_reasons.PodReason.NODE_DOWN


class VolumeSeen(msgspec.Struct, frozen=True):
    """One PersistentVolumeClaim."""

    name: str
    ordinal: int  # of the pod that it is for
    uid: str
    size: str = ""
    made_at: float = 0.0  # epoch seconds
    deleting: bool = False
    expandable: bool | None = None  # None: not known


class WorkloadSeen(msgspec.Struct, frozen=True):
    """The StatefulSet."""

    uid: str
    replicas: int
    revision: str = ""  # of the current template; empty until its controller has looked at it
    child: apply.Child = apply.Child()
    fixed: tuple[str, ...] = ()  # paths of wanted fields that can't be changed in place
    version: str = ""
    added: tuple[additions.Place, ...] = ()  # what others put into its template, the last first


class SurplusSeen(msgspec.Struct, frozen=True):
    """An object of the owner that its spec does not ask for."""

    resource: meta.Resource
    name: str
    uid: str
    deleting: bool = False

    @property
    def id(self) -> str:
        """Names it among those of its owner."""
        return f"{self.resource.kind}/{self.name}"


class Objects(msgspec.Struct, frozen=True):
    """What the cluster holds of one owner with a StatefulSet."""

    children: tuple[Pair, ...]
    workload: WorkloadSeen | None
    pods: tuple[PodSeen, ...] = ()
    volumes: tuple[VolumeSeen, ...] = ()
    surplus: tuple[SurplusSeen, ...] = ()
    disruptions: int | None = None  # how many pods the budget lets go now; None where there is none, or nobody knows
    unmade: str = ""  # why a pod that is wanted can't be made

    def pod(self, name: str) -> PodSeen | None:
        """The pod of that name."""
        return next((pod for pod in self.pods if pod.name == name), None)

    @property
    def up(self) -> frozenset[str]:
        """Pods whose server works, and is to go on."""
        return frozenset(pod.name for pod in self.pods if pod.running and pod.ready and not pod.deleting)
