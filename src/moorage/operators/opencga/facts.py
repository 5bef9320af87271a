"""What is true of an installation on every pass, wherever its steps stop; and the fields of its status. Pure."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

from moorage.api import conditions
from moorage.children import pod_replacement, volumes
from moorage.runtime import decision, freshness
from moorage.runtime.decision import Fact

from . import control, names, types
from .observation import Seen
from .reasons import Reason
from .wanted import automation, heeded

MOST_WORDS = 1024
"""Characters of the message in the status; the condition Ready has all of it."""


def _known(seen: Seen) -> bool:
    return freshness.value_of(seen.objects) is not None


def valid(seen: Seen) -> Fact:
    """Whether what the user gives can be worked with."""
    if not seen.allowed:
        return Fact("Valid", False, Reason.NAMESPACE_NOT_ALLOWED, f"namespace {seen.meta.namespace}")
    if seen.wanted.fault:
        return Fact("Valid", False, Reason.SPEC_UNSOUND, seen.wanted.fault)
    if not seen.spec.database.hosts:
        return Fact("Valid", False, Reason.DATABASE_MISSING, "spec.database.hosts is empty")
    if seen.catalog_of:
        return Fact("Valid", False, Reason.CATALOG_TAKEN, f"OpenCGACommunity {seen.catalog_of} has the same catalog")
    known = freshness.value_of(seen.secrets)
    if known is not None and known.fault:
        return Fact("Valid", False, Reason.SECRET_INVALID, known.fault)
    return Fact("Valid", True, Reason.CURRENT, "")


def config_applied(seen: Seen) -> Fact:
    """Whether all agents have applied the document as it is."""
    if not _known(seen) or isinstance(seen.told, freshness.Failed):
        return Fact("ConfigApplied", None, Reason.MEMBERS_UNKNOWN, "the agents were not asked")
    if seen.wanted.fault:
        return Fact("ConfigApplied", False, Reason.SPEC_UNSOUND, "the spec gives no configuration")
    if not seen.is_documented:
        return Fact("ConfigApplied", None, Reason.SECRETS_UNKNOWN, "the Secrets are not known, and so no configuration")
    if seen.asleep and seen.there.document.good:
        return Fact("ConfigApplied", True, Reason.HIBERNATED, f"version {seen.version}, for who wakes up")
    pods = [seen.master_pod, *seen.rest_pods(seen.placed.members)]
    behind = [pod for pod in pods if not seen.has_applied(pod)]
    if not seen.there.document.good or behind:
        said = f"version {seen.version}: not applied by {', '.join(behind) or 'anybody'}"
        return Fact("ConfigApplied", False, Reason.APPLYING_CONFIGURATION, said)
    return Fact("ConfigApplied", True, Reason.CURRENT, f"version {seen.version}")


def catalog_installed(seen: Seen) -> Fact:
    """Whether the catalog is in the database, by the MASTER's word; of a silent one, as it was remembered."""
    master = seen.master if _known(seen) else None
    if master is not None and master.installed is not None:
        reason = Reason.INSTALLED if master.installed else Reason.INSTALLING_CATALOG
        return Fact("CatalogInstalled", master.installed, reason, master.error)
    if seen.status.catalog_version:
        return Fact(
            "CatalogInstalled", True, Reason.INSTALLED, f"of version {seen.status.catalog_version}, when last told"
        )
    return Fact("CatalogInstalled", None, Reason.MEMBERS_UNKNOWN, "the MASTER tells nothing of it")


def migrated(seen: Seen) -> Fact:
    """Whether the catalog is of the spec's version."""
    master = seen.master if _known(seen) else None
    catalog, wanted = (master.catalog if master else "") or seen.status.catalog_version, seen.spec.version
    if catalog == wanted == seen.status.catalog_version:
        return Fact("Migrated", True, Reason.MIGRATED, f"of version {catalog}")
    return Fact("Migrated", False, Reason.MIGRATING, f"of version {catalog or 'unknown'}, {wanted} is wanted")


def rest_available(seen: Seen) -> Fact:
    """Whether queries are answered: by one member at least."""
    if not _known(seen):
        return Fact("RestAvailable", None, Reason.CLUSTER_UNKNOWN, "")
    if seen.asleep:
        return Fact("RestAvailable", True, Reason.HIBERNATED, "")
    if seen.spec.members == 0:
        return Fact("RestAvailable", True, Reason.NOBODY_WANTED, "")
    up = [pod for pod in seen.rest_pods(seen.spec.members) if pod in seen.there.rest.up]
    said = f"{len(up)} of {seen.spec.members} members are ready"
    return Fact("RestAvailable", bool(up), Reason.SERVING if up else Reason.MEMBERS_NOT_READY, said)


def master_available(seen: Seen) -> Fact:
    """Whether the MASTER's pod is ready."""
    if not _known(seen):
        return Fact("MasterAvailable", None, Reason.CLUSTER_UNKNOWN, "")
    if seen.asleep:
        return Fact("MasterAvailable", True, Reason.HIBERNATED, "")
    if seen.master_pod in seen.there.master.up:
        return Fact("MasterAvailable", True, Reason.SERVING, "")
    return Fact("MasterAvailable", False, Reason.MASTER_NOT_READY, seen.troubles([seen.master_pod]))


def healthy(seen: Seen) -> Fact:
    """Whether servers have what they need, by their own word."""
    if _known(seen) and seen.asleep:
        return Fact("Healthy", True, Reason.HIBERNATED, "")
    if not _known(seen) or isinstance(seen.told, freshness.Failed):
        return Fact("Healthy", None, Reason.MEMBERS_UNKNOWN, "the servers were not asked")
    failing = control.failing_of(seen)
    if seen.spec.members and not any(seen.server(pod) for pod in seen.rest_pods(seen.placed.members)):
        return Fact("Healthy", None, Reason.MEMBERS_UNKNOWN, "no server tells how it is")
    return Fact("Healthy", not failing, Reason.DEPENDENCY_DOWN if failing else Reason.SERVING, failing)


def upgrading(seen: Seen) -> Fact:
    """Whether pods are of an old template, or the catalog of an old version."""
    if not _known(seen):
        return Fact("Upgrading", None, Reason.CLUSTER_UNKNOWN, "")
    both = (seen.there.master, seen.there.rest)
    old = [pod.name for each in both for pod in pod_replacement.outdated(each.pods, each.workload)]
    if seen.stopped:
        said = f"REST servers are stopped while the catalog is migrated to {seen.spec.version}"
        return Fact("Upgrading", True, Reason.STOPPING, said)
    if old:
        return Fact("Upgrading", True, Reason.UPDATING, f"to be replaced: {', '.join(old)}")
    if seen.status.catalog_version not in ("", seen.spec.version):
        return Fact("Upgrading", True, Reason.MIGRATING, f"{seen.status.catalog_version} to {seen.spec.version}")
    return Fact("Upgrading", False, Reason.CURRENT, "")


def hibernated(seen: Seen) -> Fact:
    """Whether it has no pod, and should have none."""
    if not _known(seen):
        return Fact("Hibernated", None, Reason.CLUSTER_UNKNOWN, "")
    if not seen.spec.hibernate:
        return Fact("Hibernated", False, Reason.CURRENT, "")
    if not seen.asleep:
        return Fact("Hibernated", False, Reason.HIBERNATION_WAITS, f"{seen.kept_awake}; all is stopped after that")
    if left := [pod.name for pod in seen.there.pods]:
        return Fact("Hibernated", False, Reason.HIBERNATING, f"still there: {', '.join(left)}")
    return Fact("Hibernated", not seen.masters, Reason.HIBERNATED if not seen.masters else Reason.HIBERNATING, "")


def spec_heeded(seen: Seen) -> Fact:
    """Whether something follows from all that the spec sets; nothing stops where it does not."""
    if seen.wanted.fault:
        return Fact("SpecHeeded", None, Reason.SPEC_UNSOUND, "the spec gives no configuration")
    fields = heeded.unheeded(seen.name, seen.spec)
    nothing = f"nothing follows from spec.{', spec.'.join(fields)}" if fields else ""
    if seen.wanted.odd:
        return Fact("SpecHeeded", False, Reason.UNKNOWN_KEYS, "; ".join(filter(None, (seen.wanted.odd, nothing))))
    return Fact("SpecHeeded", not fields, Reason.UNHEEDED if fields else Reason.HEEDED, nothing)


FactOf: TypeAlias = Callable[[Seen], Fact]


def _as_it_was(fact: FactOf) -> FactOf:
    """The same, but that who was not asked yet, as after a restart, stands as it stood."""

    @functools.wraps(fact)
    def told(seen: Seen) -> Fact:
        found = fact(seen)
        unseen = any(map(freshness.is_unseen, (seen.told, seen.objects, seen.secrets)))
        return decision.as_it_stood(found, seen.status.conditions) if found.status is None and unseen else found

    return told


FACTS: tuple[FactOf, ...] = (
    valid,
    _as_it_was(config_applied),
    _as_it_was(catalog_installed),
    migrated,
    _as_it_was(rest_available),
    _as_it_was(master_available),
    _as_it_was(healthy),
    _as_it_was(upgrading),
    _as_it_was(hibernated),
    spec_heeded,
)
READY_FACTS = frozenset(
    {"ConfigApplied", "CatalogInstalled", "Migrated", "RestAvailable", "MasterAvailable", "Healthy"}
)

TOLD_FACTS = frozenset({"SpecHeeded"})


# --- status -------------------------------------------------------------------------------------------------------


def report(seen: Seen, standing: decision.StepTaken | None) -> dict[str, Any]:
    """The fields of the status that say how it stands; what is not known stays as it was."""
    verdict = standing.verdict if standing else None
    fields: dict[str, Any] = {
        "phase": phase(standing, asleep=_known(seen) and seen.asleep),
        "message": getattr(verdict, "message", "")[:MOST_WORDS],
        "opencgarestUri": automation.endpoint(seen.meta.namespace, seen.name, seen.wanted.said),
        "selector": ",".join(f"{key}={value}" for key, value in seen.wanted.role(names.REST).items()),
    }
    if not _known(seen):
        return fields
    there = seen.there
    fields["currentStatefulSetReplicas"] = there.rest.workload.replicas if there.rest.workload else 0
    fields["currentOpenCGARESTMembers"] = seen.placed.members
    if seen.is_documented and there.document.good:
        fields["configurationVersion"] = seen.version
        fields["configurationDigest"] = automation.digest(seen.document)
    sizes = [it.size for it in (*there.rest.volumes, *there.master.volumes) if volumes.whole_bytes(it.size)]
    if sizes:
        fields["volumeSize"] = min(sizes, key=volumes.whole_bytes)
    if not isinstance(seen.told, freshness.Failed):
        pods = {seen.master_pod: names.MASTER} | dict.fromkeys(seen.rest_pods(seen.placed.members), names.REST)
        fields["memberStatuses"] = [
            _member(seen, pod, role) for pod, role in pods.items() if not seen.asleep or there.pod(pod)
        ]
    return fields


def _member(seen: Seen, pod: str, role: str) -> types.MemberStatus:
    agent, server = seen.agent(pod), seen.server(pod)
    up = seen.there.master.up | seen.there.rest.up
    if agent is None:
        return types.MemberStatus(pod, role, ready=pod in up, error=seen.trouble(pod))
    return types.MemberStatus(
        pod,
        role,
        ready=pod in up,
        version=server.version if server else agent.catalog if role == names.MASTER else "",
        configuration=agent.configuration,
        step=f"{agent.move}, {agent.step}" if agent.busy else "",
        since=conditions.timestamp(agent.since) if agent.busy and agent.since > 0 else "",
        error=agent.error,
    )


def phase(standing: decision.StepTaken | None, *, asleep: bool) -> str:
    """One word for people, of the original's three and one more; `standing` is where the steps stopped."""
    match standing:
        case None:
            return "Hibernated" if asleep else "Running"
        case decision.StepTaken(verdict=decision.Blocked()):
            return "Failed"
    return "Pending"
