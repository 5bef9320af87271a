"""Steps that see to the objects in the cluster: rights, credentials, children, the StatefulSet, volumes. Pure.

What they do is in `moorage.children`; here is what a cache knows of its objects, such as who is a member.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from moorage.api import builtin
from moorage.children import objects, ordinals, pod_replacement, stateful_set, volumes
from moorage.children.parts import PodSeen, VolumeSeen
from moorage.operators import accounts, steps
from moorage.operators.xsld import names
from moorage.operators.xsld.reasons import Reason
from moorage.runtime import decision, freshness
from moorage.runtime.decision import DONE, Act, Blocked, Verdict

from . import build, member_trouble
from .observation import Seen

WORKLOAD = stateful_set.Reasons(Reason.CREATING, Reason.RESIZING, Reason.REPLACING_WORKLOAD, Reason.CHILD_ENDING)


def namespace_is_allowed(seen: Seen) -> Verdict:
    """Caches live anywhere but in the namespaces of Kubernetes, or in those that the administrator lists."""
    if seen.allowed:
        return DONE
    return Blocked(
        Reason.NAMESPACE_NOT_ALLOWED,
        f"namespace {seen.meta.namespace} may hold no caches",
        "make the cache in another namespace, or have moorage's administrator list this one in systems.xsld.namespaces",
    )


def finalizer_is_set(seen: Seen) -> Verdict:
    """Before the first outside effect."""
    why = "volumes may not be left behind when it is deleted"
    return steps.finalizer_is_set(seen.meta, names.CACHE_FINALIZER, Reason.TAKING_CARE, why)


def rights_are_bound(seen: Seen) -> Verdict:
    """The account of the cache's namespace is bound to its one role there."""
    why = "all that is done in the namespace is done with these rights"
    return accounts.is_bound(seen.binding, seen.meta.namespace, seen.rights, Reason.BINDING, why)


def credentials_are_given(seen: Seen) -> Verdict:
    """Both credentials as the product takes them, and the authority of the members' certificates."""
    if isinstance(seen.credentials, freshness.Failed):
        if seen.spec.credentials_secret_ref is None:
            return DONE  # they are in the spec, and sound by its rules
        return decision.unknown(Reason.CREDENTIALS_UNKNOWN, seen.credentials, "credentials")
    if not seen.credentials.value:
        return DONE
    return Blocked(Reason.CREDENTIALS_INVALID, seen.credentials.value, "correct the Secret, or the field")


def entrypoint_is_given(seen: Seen) -> Verdict:
    """The user's own start script, if the spec names one."""
    if not seen.spec.entrypoint_config_map:
        return DONE
    if isinstance(seen.entrypoint, freshness.Failed):
        return decision.unknown(Reason.CLUSTER_UNKNOWN, seen.entrypoint, "entrypoint")
    if not seen.entrypoint.value:
        return DONE
    return Blocked(Reason.ENTRYPOINT_MISSING, seen.entrypoint.value, "create it, or take spec.entrypointConfigMap out")


def cluster_is_known(seen: Seen) -> Verdict:
    """Nothing is decided on watches that are not filled."""
    if isinstance(seen.objects, freshness.Failed):
        return decision.unknown(Reason.CLUSTER_UNKNOWN, seen.objects, "objects")
    return DONE


def children_exist(seen: Seen) -> Verdict:
    """Services, scripts, credentials and disruption budget are as they should be."""
    return objects.are_right(seen.there.children, Reason.APPLYING)


def children_stay(seen: Seen) -> Verdict:
    """What somebody deletes is made anew, once it is gone."""
    return objects.have_ended(seen.there.children, Reason.CHILD_ENDING)


def surplus_objects_go(seen: Seen) -> Verdict:
    """What the spec no longer asks for leaves, once no pod needs it."""
    return objects.surplus_goes(seen.there.surplus, seen.meta.namespace, Reason.SURPLUS_OBJECT)


def surplus_is_gone(seen: Seen) -> Verdict:
    """What should be gone is gone: pods and volumes beyond the StatefulSet's, and objects that nobody asks for."""
    there, live = seen.there, seen.there.workload
    pods = [member_trouble.of_all(seen, [pod.name]) for pod in there.pods if live and pod.ordinal >= live.replicas]
    ending = [v.name for v in there.volumes if live and v.ordinal >= live.replicas and v.deleting]
    claims = (f"{builtin.VOLUME_CLAIM.kind}/{name}" for name in ending)
    return objects.are_gone([*pods, *claims, *(it.id for it in there.surplus)], Reason.SURPLUS_STAYS)


# --- the StatefulSet ---------------------------------------------------------------------------------------------


def workload_is_right(seen: Seen) -> Verdict:
    """The StatefulSet, its template and its number of pods. Fewer only by live proof that no member loses its pod."""
    verdict = stateful_set.is_right(
        seen.there.workload,
        seen.meta.key,
        seen.replicas,
        lambda pods: build.workload(seen.wanted, pods),
        WORKLOAD,
        owner="the cache",
        may_go=_has_left,
        handed_on=build.handed_on(seen.spec.pod),
    )
    return _growing_later(seen, verdict)


def _growing_later(seen: Seen, verdict: Verdict) -> Verdict:
    """Fewer pods for those who have no place: written down, so that they get theirs after the roll."""
    live = seen.there.workload
    if not isinstance(verdict, Act) or verdict.reason != Reason.RESIZING or live is None:
        return verdict
    if seen.replicas > live.replicas or not seen.yields or seen.status.grows_after == live.revision:
        return verdict
    why = "what a member leaves free while it is replaced is to be its own"
    note = decision.Remember(why=why, fields={"growsAfter": live.revision})
    said = f"{member_trouble.of_all(seen, sorted(seen.without_place))} waits until the members are replaced"
    return msgspec.structs.replace(verdict, message=said, actions=(note, *verdict.actions))


def _has_left(ordinal: int) -> decision.Guard:
    return decision.Guard("member_has_left", {"ordinal": ordinal})


# --- volumes -----------------------------------------------------------------------------------------------------


def volumes_are_reclaimed(seen: Seen) -> Verdict:
    """The volume of a member that has left goes after its pod was taken away."""
    live = seen.there.workload
    if live is None or seen.spec.storage.reclaim_on_scale_down == "Retain":
        return DONE
    left = _nobodys(seen, (v for v in seen.there.volumes if v.ordinal >= live.replicas))
    return volumes.are_reclaimed(
        left, seen.meta.namespace, Reason.CLEARING_VOLUME, guard=lambda volume: _has_left(volume.ordinal)
    )


def leftover_volumes_are_cleared(seen: Seen) -> Verdict:
    """An ordinal that is to have a new member must not find the volume of an earlier one."""
    live = seen.there.workload
    if live is None:
        return DONE
    wanted = max(seen.spec.size, seen.replicas)
    coming = (v for v in seen.there.volumes if live.replicas <= v.ordinal < wanted and not _in_use(seen, v))
    left = _nobodys(seen, coming)
    holders = [pod.name for volume in left if (pod := _pod_of(seen, volume))]
    return volumes.are_cleared(
        left, Reason.CLEARING_VOLUME, blocked=Reason.LEFTOVER_VOLUME, holders=member_trouble.of_all(seen, holders)
    )


def volumes_grow(seen: Seen) -> Verdict:
    """Volumes that are smaller than the spec says are asked to grow."""
    return volumes.grow(
        seen.there.volumes,
        seen.spec.storage.size,
        seen.meta.namespace,
        Reason.GROWING_VOLUMES,
        blocked=Reason.VOLUME_CANNOT_GROW,
        field="storage.size",
    )


def _nobodys(seen: Seen, left: Iterable[VolumeSeen]) -> list[VolumeSeen]:
    """Those of these whose member is none, and was none when last seen."""
    return [volume for volume in left if ordinals.pod(seen.name, volume.ordinal) not in seen.known]


def _pod_of(seen: Seen, volume: VolumeSeen) -> PodSeen | None:
    return seen.there.pod(ordinals.pod(seen.name, volume.ordinal))


def _in_use(seen: Seen, volume: VolumeSeen) -> bool:
    pod = _pod_of(seen, volume)
    return pod is not None and not pod.deleting


# --- pods that never came up -------------------------------------------------------------------------------------


def failing_pods_are_replaced(seen: Seen) -> Verdict:
    """A pod of an old template that serves nobody is made anew at once, whatever else is waited for.

    One that the group counts as Online, or that has a task, is left to the roll: it may hold data, although its own
    probe says nothing good of it.
    """
    live, pods = seen.there.workload, seen.there.pods
    return pod_replacement.dead_are_replaced(
        pods,
        live.revision if live else "",
        seen.meta.namespace,
        Reason.REPLACING_DEAD_POD,
        spared=lambda pod: _at_work(seen, pod),
    )


def _at_work(seen: Seen, pod: PodSeen) -> bool:
    if not pod.running:
        return False
    member = seen.listed.member(pod.name) if seen.listed else None
    return pod.name in seen.with_task or (member is not None and member.online)
