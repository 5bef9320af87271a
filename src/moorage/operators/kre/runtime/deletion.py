"""The steps of a Runtime that is being deleted: the release, then volumes and Secret as spec.reclaim says. Pure.

Versions go before it, each by its own deletion: nodes still take what is there, and NATS is where that is.

It ends although servers never answered: all that it needs is the API server.
"""

from __future__ import annotations

from collections.abc import Callable

from moorage.api import builtin
from moorage.children import ordinals, removal
from moorage.children.parts import VolumeSeen
from moorage.helm import deletion as helm_deletion
from moorage.helm import steps as helm_steps
from moorage.operators import steps
from moorage.operators.kre import kinds
from moorage.operators.kre.reasons import RuntimeReason as Reason
from moorage.runtime import decision, freshness
from moorage.runtime.decision import DONE, Act, Blocked, Verdict, Wait

from . import control
from .observation import Seen

VERSIONS_WITHIN = 900.0
"""Seconds within which versions that are deleted are gone; each drains for so long as its own wait says."""


def namespace_ends(seen: Seen) -> Verdict:
    """With the namespace everything goes, and rights with it."""
    return steps.namespace_ends(seen.namespace_ending, Reason.LEAVING)


def nothing_was_made(seen: Seen) -> Verdict:
    """Where no rights were ever bound there is nothing to remove."""
    return steps.nothing_was_made(seen.binding, seen.allowed, Reason.BINDING, Reason.LEAVING)


def orphaning_is_honoured(seen: Seen) -> Verdict:
    """As for every release; the last Runtime of a namespace also gives the operator's rights back."""
    return helm_deletion.orphaning_is_honoured(seen, _rights_returned(seen))


def claim_is_known(seen: Seen) -> Verdict:
    """As for every release; that of a namespace's one Runtime is not for another to remove."""
    return helm_deletion.claim_is_known(seen, _rights_returned(seen))


def versions_go_first(seen: Seen) -> Verdict:
    """What was made of them is in this Runtime; of a second Runtime there is none."""
    if seen.older:
        return DONE
    if isinstance(seen.versions, freshness.Failed):
        return decision.unknown(Reason.CLUSTER_UNKNOWN, seen.versions, "versions")
    if not seen.versions.value:
        return DONE
    names = [each.name for each in seen.versions.value]
    staying = [each.name for each in seen.versions.value if not each.deleting]
    kind = kinds.RUNTIME_VERSION.kind
    if not staying:
        fix = f"see why with kubectl describe {kind.lower()} {names[0]} -n {seen.meta.namespace}"
        said = f"{kind} {steps.some(names)} is being deleted, and goes first"
        return Wait(Reason.VERSIONS_LEAVE, said, on="versions", within=VERSIONS_WITHIN, fix=fix)
    said = f"{kind} {steps.some(staying)} runs in this Runtime, or has something there"
    fix = f"delete each once it is not needed: kubectl delete {kind.lower()} {staying[0]} -n {seen.meta.namespace}"
    return Blocked(Reason.VERSIONS_STAY, said, fix)


def volumes_go(seen: Seen) -> Verdict:
    """By spec.reclaim, each once its own pod is gone."""
    if not seen.settings.reclaim:
        return DONE
    if isinstance(seen.held, freshness.Failed):
        return decision.unknown(Reason.CLUSTER_UNKNOWN, seen.held, "volumes")
    for held in seen.held.value:

        def in_use(volume: VolumeSeen, server: str = held.server, pods: tuple[str, ...] = held.pods) -> bool:
            return ordinals.pod(kinds.workload(server), volume.ordinal) in pods

        verdict = removal.volumes_go(
            held.volumes,
            seen.meta.namespace,
            Reason.CLEARING_VOLUME,
            in_use=in_use,
            why="the Runtime is deleted, and spec.reclaim is Delete",
        )
        if verdict is not DONE:
            return verdict
    return DONE


def volumes_are_gone(seen: Seen) -> Verdict:
    """Whatever holds one of them is told of by the claim itself."""
    if not seen.settings.reclaim:
        return DONE
    left = [volume for held in freshness.value_of(seen.held) or () for volume in held.volumes]
    return removal.volumes_are_gone(left, Reason.CLEARING_VOLUME)


def credentials_go(seen: Seen) -> Verdict:
    """With the volumes, which nobody could read without them; a Secret that moorage did not make stays."""
    if not seen.settings.reclaim:
        return DONE
    if isinstance(seen.credentials, freshness.Failed):
        return decision.unknown(Reason.CREDENTIALS_UNKNOWN, seen.credentials, "credentials")
    found, made = seen.credentials.value, dict[str, str]()
    if found.made and not seen.settings.named:
        made[seen.settings.secret] = found.uid
    if found.former:
        made[kinds.CREDENTIALS] = found.former
    if found.used_made:
        made[kinds.IN_USE] = found.used
    if found.system_made:
        made[kinds.NATS_LOGIN] = found.system
    why = "the Runtime is deleted, and spec.reclaim is Delete"
    # the source does not see the end of it before its next look, so that nothing is waited for
    removes = tuple(
        decision.Delete(why=why, resource=builtin.SECRET, ref=builtin.SECRET.ref(seen.meta.namespace, name, uid))
        for name, uid in made.items()
        if uid
    )
    if not removes:
        return DONE
    return Act(Reason.REMOVING_CREDENTIALS, f"Secret {', '.join(made)} is deleted", removes, go_on=True)


def owner_may_go(seen: Seen) -> Verdict:
    """As for every release; the last Runtime of a namespace also gives the operator's rights back."""
    return helm_deletion.owner_may_go(seen, _rights_returned(seen))


def _rights_returned(seen: Seen) -> helm_deletion.Last:
    binding, why = freshness.value_of(seen.binding), f"no Runtime and no version is left in {seen.meta.namespace}"
    return steps.rights_returned(binding, seen.meta.namespace, seen.rights, seen.neighbours, why)


DELETION_STEPS: tuple[Callable[[Seen], Verdict], ...] = (
    namespace_ends,
    nothing_was_made,
    helm_steps.no_helm_runs,
    control.rights_are_bound,
    orphaning_is_honoured,
    versions_go_first,
    claim_is_known,
    helm_steps.last_run_is_noted,
    helm_steps.retry_is_heard,
    helm_steps.record_stays_inside,
    helm_deletion.release_is_uninstalled,
    helm_deletion.leftovers_are_gone,
    volumes_go,
    volumes_are_gone,
    credentials_go,
    owner_may_go,
)
