"""What moorage does for a Collector, step by step. Pure: read top to bottom.

Its own steps make sure of the spec, the tenant's namespace and the rights there; the rest is a release like any other
(`moorage.helm.steps`).
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from moorage.api import builtin, meta
from moorage.helm import deletion as helm_deletion
from moorage.helm import facts as helm_facts
from moorage.helm import observation as helm_observation
from moorage.helm import steps as helm_steps
from moorage.operators import accounts, steps
from moorage.runtime import decision, freshness
from moorage.runtime.decision import DONE, Act, Blocked, Fact, Verdict, Wait

from . import build, types
from .reasons import Reason

MINUTE = 60.0


class TenantSeen(msgspec.Struct, frozen=True):
    """The tenant's namespace as it is."""

    uid: str
    terminating: bool
    admits: tuple[str, ...]
    ending: str = ""  # what the namespace says of its own end


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is decided on. The configuration is left out, as it may hold secrets: only its fault is seen."""

    meta: meta.ObjectMeta
    spec: types.CollectorSpec
    rights: accounts.Rights
    namespace_labels: dict[str, str]
    configuration: freshness.Observed[str]  # what is wrong with it, or nothing
    tenant: freshness.Observed[TenantSeen | None]
    binding: freshness.Observed[accounts.BindingSeen | None]
    neighbours: int  # other Collectors in the same tenant's namespace
    release: helm_observation.ReleaseSeen


# --- steps --------------------------------------------------------------------------------------


def configuration_is_sound(seen: Seen) -> Verdict:
    """Bad base64 or YAML is refused before anything is called."""
    if isinstance(seen.configuration, freshness.Failed):
        return decision.unknown(Reason.READING_CONFIGURATION, seen.configuration, "configuration")
    if not seen.configuration.value:
        return DONE
    return Blocked(
        Reason.INVALID_CONFIGURATION,
        f"spec.collector.configuration: {seen.configuration.value}",
        "correct it; it must be the base64 of a YAML mapping",
    )


def finalizer_is_set(seen: Seen) -> Verdict:
    """Before the first outside effect."""
    why = "nothing may be left behind when it is deleted"
    return steps.finalizer_is_set(seen.meta, types.FINALIZER, Reason.TAKING_CARE, why)


def tenant_admits(seen: Seen) -> Verdict:
    """The tenant's namespace is created when absent; an existing one decides for itself whose Collectors it admits."""
    name = seen.spec.namespace
    if seen.rights.is_moorages_own(name):
        return Blocked(
            Reason.FORBIDDEN_NAMESPACE,
            f"namespace {name} is no tenant's",
            "use another tenant.reference, with a new Collector",
        )
    if isinstance(seen.tenant, freshness.Failed):
        return decision.unknown(Reason.NAMESPACE_UNKNOWN, seen.tenant, "namespace")
    tenant = seen.tenant.value
    if tenant is None:
        body = build.namespace(seen.spec, seen.meta.namespace, seen.namespace_labels)
        create = decision.Create(
            why="the tenant has no namespace", resource=builtin.NAMESPACE, body=body, as_operator=True
        )
        return Act(Reason.CREATING_NAMESPACE, f"namespace {name} is created", (create,))
    if tenant.terminating:
        return _ending(name, tenant)
    if seen.meta.namespace not in tenant.admits:
        return Blocked(
            Reason.NOT_ADMITTED,
            f"namespace {name} does not admit Collectors of namespace {seen.meta.namespace}",
            f"an administrator of {name} may add {seen.meta.namespace} to its annotation {build.ADMITS}",
        )
    return DONE


def _ending(name: str, tenant: TenantSeen) -> Verdict:
    """It is waited for with the namespace's own words, as it may wait for something itself."""
    said = f": {tenant.ending}" if tenant.ending else ""
    return Wait(Reason.NAMESPACE_ENDING, f"namespace {name} is being deleted{said}", on="namespace", within=10 * MINUTE)


def rights_are_bound(seen: Seen) -> Verdict:
    """The account of the tenant's namespace is bound to its one role there."""
    why = "all that is done in the namespace is done with these rights"
    return accounts.is_bound(seen.binding, seen.spec.namespace, seen.rights, Reason.BINDING, why)


# --- steps of a Collector that is being deleted -------------------------------------------------


def tenant_is_there(seen: Seen) -> Verdict:
    """With the namespace all is gone; while it goes, it is waited for, but not by a Collector inside it."""
    if isinstance(seen.tenant, freshness.Failed):
        return decision.unknown(Reason.NAMESPACE_UNKNOWN, seen.tenant, "namespace")
    tenant, name = seen.tenant.value, seen.spec.namespace
    if tenant is None:
        gone = decision.Guard("namespace_is_gone", {"name": name})
        action = decision.EditFinalizer(why=f"namespace {name} is gone", present=False, require=(gone,))
        return Act(Reason.LEAVING, f"namespace {name} is gone, and all that was in it", (action,))
    if tenant.terminating and seen.meta.namespace == name:  # each would wait for the other
        ending = decision.Guard("namespace_is_ending", {"name": name})
        action = decision.EditFinalizer(why=f"all in namespace {name} ends with it", present=False, require=(ending,))
        return Act(Reason.LEAVING, f"namespace {name} is being deleted with all that is in it", (action,))
    if tenant.terminating:
        return _ending(name, tenant)
    return DONE


def never_admitted_may_go(seen: Seen) -> Verdict:
    """A Collector that was never let into the namespace has made nothing there."""
    name = seen.spec.namespace
    binding = freshness.value_of(seen.binding)
    if seen.rights.is_moorages_own(name) or (
        not seen.release.status.release.name and not _admitted(seen) and binding is None
    ):
        action = decision.EditFinalizer(why="nothing was made", present=False)
        return Act(Reason.LEAVING, f"nothing was made in namespace {name}", (action,))
    return DONE


def rights_are_bound_to_leave(seen: Seen) -> Verdict:
    """Rights that somebody took away are bound again, as the release can't be removed without them."""
    binding = freshness.value_of(seen.binding)
    if (binding is None or not binding.right) and not _admitted(seen):
        return Blocked(
            Reason.NOT_ADMITTED,
            f"namespace {seen.spec.namespace} no longer admits Collectors of {seen.meta.namespace}, "
            "so the release there can't be removed",
            f"restore its annotation {build.ADMITS}, or annotate this Collector with moorage.dev/on-delete=Orphan",
        )
    return rights_are_bound(seen)


def orphaning_is_honoured(seen: Seen) -> Verdict:
    """As for every release; the last Collector of a tenant also gives the operator's rights back."""
    return helm_deletion.orphaning_is_honoured(seen, _rights_returned(seen))


def claim_is_known(seen: Seen) -> Verdict:
    """As for every release; rights that an interrupted deletion bound again are given back too."""
    return helm_deletion.claim_is_known(seen, _rights_returned(seen))


def owner_may_go(seen: Seen) -> Verdict:
    """As for every release; the last Collector of a tenant also gives the operator's rights back."""
    return helm_deletion.owner_may_go(seen, _rights_returned(seen))


def _rights_returned(seen: Seen) -> helm_deletion.Last:
    binding, why = freshness.value_of(seen.binding), f"no Collector is left in {seen.spec.namespace}"
    return steps.rights_returned(binding, seen.spec.namespace, seen.rights, seen.neighbours, why)


def _admitted(seen: Seen) -> bool:
    tenant = freshness.value_of(seen.tenant)
    return tenant is not None and seen.meta.namespace in tenant.admits


STEPS: tuple[Callable[[Seen], Verdict], ...] = (
    configuration_is_sound,
    finalizer_is_set,
    tenant_admits,
    rights_are_bound,
    *helm_steps.STEPS,
)

DELETION_STEPS: tuple[Callable[[Seen], Verdict], ...] = (
    tenant_is_there,
    helm_steps.no_helm_runs,
    orphaning_is_honoured,
    never_admitted_may_go,
    rights_are_bound_to_leave,
    claim_is_known,
    helm_steps.last_run_is_noted,
    helm_steps.retry_is_heard,
    helm_steps.record_stays_inside,
    helm_deletion.release_is_uninstalled,
    helm_deletion.leftovers_are_gone,
    owner_may_go,
)

FACTS: tuple[Callable[[Seen], Fact], ...] = helm_facts.FACTS
READY_FACTS = frozenset({"Released", "Available"})
