"""The conditions of a WekaContainer, under the original's names where it had one, and what its status tells. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from moorage.operators.weka import heeding
from moorage.runtime import decision, freshness
from moorage.runtime.decision import Fact

from . import build, control, types
from .observation import Seen
from .reasons import ContainerReason as Reason


def affinity_set(seen: Seen) -> Fact:
    """ContainerAffinitySet: it has a node for good."""
    node = seen.status.node_affinity
    return Fact("ContainerAffinitySet", bool(node), Reason.RUNNING if node else Reason.PINNING, node)


def allocated(seen: Seen) -> Fact:
    """ContainerResourcesAllocated: its ports and drives are written down."""
    got = seen.status.allocations
    if got is None:
        return Fact("ContainerResourcesAllocated", False, Reason.ALLOCATING)
    return Fact("ContainerResourcesAllocated", True, Reason.RUNNING, f"ports from {got.weka_port} on")


def written(seen: Seen) -> Fact:
    """ContainerResourcesWritten: its pod was told, by its own word."""
    told = _told(seen)
    if told is None:
        return Fact("ContainerResourcesWritten", None, Reason.AGENT_UNKNOWN)
    right = told.resources == build.resources_digest(seen.resources)
    return Fact("ContainerResourcesWritten", right, Reason.RUNNING if right else Reason.WRITING_RESOURCES)


def joined(seen: Seen) -> Fact:
    """JoinedCluster: by its own word."""
    told = _told(seen)
    if told is None:
        return Fact("JoinedCluster", None, Reason.AGENT_UNKNOWN)
    return Fact("JoinedCluster", bool(told.cluster), Reason.RUNNING if told.cluster else Reason.NOT_FORMED)


def drives_added(seen: Seen) -> Fact:
    """EnsuredDrives: the cluster lists all that are its own; which of them do not work is told."""
    given = seen.status.allocations.drives if seen.status.allocations else ()
    cluster = freshness.value_of(seen.cluster)
    if not given:
        return Fact("EnsuredDrives", True, Reason.RUNNING, "it is to have none")
    if cluster is None:
        return Fact("EnsuredDrives", None, Reason.CLUSTER_UNKNOWN)
    if lacking := control.lacking(seen, cluster):
        return Fact("EnsuredDrives", False, Reason.ADDING_DRIVE, f"not added: {', '.join(lacking)}")
    active = seen.dialect.words.drive_active
    idle = [it for it in cluster.of(seen.host) if it.serial in given and not seen.dialect.words.has(active, it.status)]
    told = ", ".join(f"{it.serial} ({it.status or 'in no known state'})" for it in idle)
    return Fact("EnsuredDrives", True, Reason.RUNNING, f"not active: {told}" if told else "")


def available(seen: Seen) -> Fact:
    """Available: up, by its cluster's word."""
    if freshness.value_of(seen.cluster) is None:
        return Fact("Available", None, Reason.CLUSTER_UNKNOWN)
    member, words = seen.listed, seen.dialect.words
    up = member is not None and words.has(words.up, member.status)
    return Fact("Available", up, Reason.RUNNING if up else Reason.NOT_UP)


def spec_heeded(seen: Seen) -> Fact:
    """Added: SpecHeeded: which fields nothing follows from yet; those of its WekaCluster are told there."""
    owned = any(it.controller for it in seen.meta.owner_references)
    return heeding.told(types.unheeded(seen.spec, of_cluster=owned), Reason.UNHEEDED, Reason.HEEDED)


Told = Callable[[Seen], Fact]


def _as_it_was(fact: Told, of: Callable[[Seen], freshness.Observed[Any]]) -> Told:
    """The same, but that who was not asked yet, as after a restart, stands as it stood."""

    def told(seen: Seen) -> Fact:
        found = fact(seen)
        return decision.as_it_stood(found, seen.status.conditions) if freshness.is_unseen(of(seen)) else found

    return told


FACTS: tuple[Told, ...] = (
    affinity_set,
    allocated,
    _as_it_was(written, lambda seen: seen.local),
    _as_it_was(joined, lambda seen: seen.local),
    _as_it_was(drives_added, lambda seen: seen.cluster),
    _as_it_was(available, lambda seen: seen.cluster),
    spec_heeded,
)
READY_FACTS = frozenset({"Available"})


def _told(seen: Seen) -> Any:
    return seen.told if freshness.value_of(seen.objects) is not None else None


WORDS: dict[str, str] = {
    "paused_has_no_pod": "Paused",
    "pod_that_ends_is_let_go": "PodTerminating",
    "pod_that_has_ended_goes": "PodNotRunning",
    "pod_is_there": "PodNotRunning",
    "pod_is_of_this_spec": "PodTerminating",
    "pod_runs": "PodNotRunning",
    "node_is_pinned": "PodRunning",
    "container_answers": "PodRunning",
    "resources_are_allocated": "PodRunning",
    "resources_are_written": "PodRunning",
    "weka_runs": "Starting",
    "drives_are_added": "DrivesAdding",
    "it_is_up": "Degraded",
}
"""The original's word for where the steps stand. Of others that are before its pod it is Init; behind it, Running."""

_BEFORE = frozenset(step.__name__ for step in control.STEPS[: control.STEPS.index(control.pod_that_ends_is_let_go)]) - {
    "paused_has_no_pod"
}


def word(seen: Seen, standing: decision.StepTaken | None) -> str:
    """The status in the original's word."""
    if seen.meta.deleting:
        return "Destroying" if seen.spec.state == "destroying" else "Deleting"
    if standing is None:
        return "Running"
    if isinstance(standing.verdict, decision.Blocked):
        return "Error"
    if standing.name in _BEFORE:
        return "Init"
    return WORDS.get(standing.name, "Running")


def report(seen: Seen, standing: decision.StepTaken | None) -> dict[str, Any]:
    """The fields of the status that say how it stands; what is not known stays as it was."""
    fields: dict[str, Any] = {}
    told, cluster = _told(seen), freshness.value_of(seen.cluster)
    if standing is None or not isinstance(standing.verdict, decision.Wait) or not standing.verdict.unseen:
        fields["status"] = word(seen, standing)
    printer: dict[str, str] = {}
    if told is not None:
        fields["internalStatus"] = told.internal
        fields["managementIPs"] = list(told.addresses)
        fields["managementIP"] = told.addresses[0] if told.addresses else ""
        more = f" (+{len(told.addresses) - 1})" if len(told.addresses) > 1 else ""
        printer["managementIPs"] = f"{fields['managementIP']}{more}"
        if told.cluster and told.host is not None and _is_ours(seen, told.cluster):
            fields["clusterID"], fields["containerID"] = told.cluster, told.host
    if cluster is not None and cluster.guid and seen.host is not None and seen.guid == cluster.guid:
        drives = cluster.of(seen.host)
        fields["addedDrives"] = [
            msgspec.to_builtins(types.AddedDrive(it.uuid, it.added, it.path, it.serial, it.status)) for it in drives
        ]
        if seen.spec.mode == "drive":
            printer["drives"] = f"{len(drives)}/{seen.spec.num_drives}"
    if printer:
        fields["printer"] = {**seen.status.printer, **printer}
    pod = seen.there.pod if freshness.value_of(seen.objects) is not None else None
    if pod is not None and pod.seen.running and pod.revision == seen.revision and standing is None:
        fields["lastAppliedImage"] = seen.spec.image
    return fields


def _is_ours(seen: Seen, guid: str) -> bool:
    """What a container says of itself is not believed against its WekaCluster."""
    owner = seen.there.owner
    return owner is None or owner.guid in ("", guid)
