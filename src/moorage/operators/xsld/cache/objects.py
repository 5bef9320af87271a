"""Steps that see to the objects in the cluster: rights, credentials, children, the StatefulSet, volumes. Pure."""

from __future__ import annotations

from moorage.api import additions, builtin, meta
from moorage.children import apply
from moorage.operators import access, steps
from moorage.operators.xsld import names
from moorage.operators.xsld.reasons import Reason
from moorage.runtime import decision, freshness
from moorage.runtime.decision import DONE, Act, Blocked, Verdict, Wait

from . import build, causes, types
from .seen import PodSeen, Seen, VolumeSeen, WorkloadSeen

MINUTE = 60.0
VOLUMES_GONE = 10 * MINUTE


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
    return access.is_bound(seen.binding, seen.meta.namespace, seen.rights, Reason.BINDING, why)


def credentials_are_given(seen: Seen) -> Verdict:
    """Both credentials as the product takes them, and the authority of the members' certificates."""
    if isinstance(seen.credentials, freshness.Failed):
        if seen.spec.credentials_secret_ref is None:
            return DONE  # they are in the spec, and sound by its rules
        return decision.unknown(Reason.CREDENTIALS_UNKNOWN, seen.credentials, "credentials")
    if not seen.credentials.value:
        return DONE
    return Blocked(Reason.CREDENTIALS_INVALID, seen.credentials.value, "correct the Secret")


def entrypoint_is_given(seen: Seen) -> Verdict:
    """The user's own start script, if the spec names one."""
    if not seen.spec.entrypoint_config_map:
        return DONE
    if isinstance(seen.entrypoint, freshness.Failed):
        return decision.unknown(Reason.CLUSTER_UNKNOWN, seen.entrypoint, "entrypoint")
    if not seen.entrypoint.value:
        return DONE
    return Blocked(Reason.ENTRYPOINT_MISSING, seen.entrypoint.value, "create it, or take the field out of the spec")


def cluster_is_known(seen: Seen) -> Verdict:
    """Nothing is decided on watches that are not filled."""
    if isinstance(seen.objects, freshness.Failed):
        return decision.unknown(Reason.CLUSTER_UNKNOWN, seen.objects, "objects")
    return DONE


def children_exist(seen: Seen) -> Verdict:
    """Services, scripts, credentials and disruption budget are as they should be."""
    wrong = [(child, live) for child, live in seen.there.children if not live.good and not live.deleting]
    if not wrong:
        return DONE
    actions = tuple(
        apply.write(
            child.resource,
            child.body,
            live,
            why=f"{child.id} is {_how(live)}",
            fill=child.fill,
            require=() if live.uid else (_free(child.resource, child.name),),
        )
        for child, live in wrong
    )
    said = ", ".join(f"{child.id} ({_how(live)})" for child, live in wrong)
    return Act(Reason.APPLYING, f"put right: {said}", actions)


def children_stay(seen: Seen) -> Verdict:
    """What somebody deletes is made anew, once it is gone."""
    ending = [child.id for child, live in seen.there.children if live.deleting]
    if not ending:
        return DONE
    return Wait(Reason.CHILD_ENDING, f"{', '.join(ending)} is being deleted", on="child", within=10 * MINUTE)


def _free(resource: meta.Resource, name: str) -> decision.Guard:
    return decision.Guard("name_is_free", {"kind": resource.kind, "name": name})


def _how(live: apply.Child) -> str:
    if not live.uid:
        return "missing"
    return "outdated" if live.differs == (apply.STAMP,) else f"changed at {', '.join(live.differs[:5])}"


def leftover_volumes_are_cleared(seen: Seen) -> Verdict:
    """An ordinal that is to have a new member must not find the volume of an earlier one."""
    workload = seen.there.workload
    if workload is None:
        return DONE
    wanted = max(seen.spec.size, seen.replicas)
    left = [v for v in seen.there.volumes if workload.replicas <= v.ordinal < wanted and not _in_use(seen, v)]
    left = [v for v in left if names.pod(seen.name, v.ordinal) not in seen.known]
    if not left:
        return DONE
    said = ", ".join(volume.name for volume in left)
    if not all(volume.deleting for volume in left):  # those that may go were deleted by `volumes_are_reclaimed`
        return Blocked(
            Reason.LEFTOVER_VOLUME,
            f"{said} of earlier members is in the way of new ones",
            "save what you need of it and delete it",
        )
    holders = [pod for v in left if (pod := names.pod(seen.name, v.ordinal)) and seen.there.pod(pod)]
    held = f", and held by pod {causes.of_all(seen, holders)}" if holders else ""
    return Wait(Reason.CLEARING_VOLUME, f"{said} is being deleted{held}", on="volume", within=VOLUMES_GONE)


def volumes_are_reclaimed(seen: Seen) -> Verdict:
    """The volume of a member that has left goes after its pod was taken away."""
    workload = seen.there.workload
    if workload is None or seen.spec.storage.reclaim_on_scale_down == "Retain":
        return DONE
    gone = [v for v in seen.there.volumes if v.ordinal >= workload.replicas and not v.deleting]
    left = [v for v in gone if names.pod(seen.name, v.ordinal) not in seen.known]
    if not left:
        return DONE
    said = ", ".join(volume.name for volume in left)
    why = f"{said} belongs to nobody any more"
    actions = tuple(
        decision.Delete(
            why=why,
            resource=builtin.VOLUME_CLAIM,
            ref=builtin.VOLUME_CLAIM.ref(seen.meta.namespace, volume.name, volume.uid),
            require=(decision.Guard("member_has_left", {"ordinal": volume.ordinal}),),
        )
        for volume in left
    )
    return Act(Reason.CLEARING_VOLUME, f"{said} is deleted: {why}", actions)


def _in_use(seen: Seen, volume: VolumeSeen) -> bool:
    pod = seen.there.pod(names.pod(seen.name, volume.ordinal))
    return pod is not None and not pod.deleting


def workload_is_right(seen: Seen) -> Verdict:
    """The StatefulSet, its template and its number of pods. Fewer only by live proof that no member loses its pod."""
    workload = seen.there.workload
    if workload is None:
        body = build.workload(seen.wanted, seen.replicas).body
        free = _free(builtin.STATEFUL_SET, seen.name)
        why = "the cache has no StatefulSet"
        action = decision.Apply(why=why, require=(free,), resource=builtin.STATEFUL_SET, body=body)
        return Act(Reason.CREATING, f"StatefulSet {seen.name} is made with {seen.replicas} pods", (action,))
    if workload.child.deleting:
        return Wait(Reason.CHILD_ENDING, f"StatefulSet {seen.name} is being deleted", on="child", within=10 * MINUTE)
    if workload.fixed:
        ref = builtin.STATEFUL_SET.ref(seen.meta.namespace, seen.name, workload.uid)
        remove = decision.Delete(
            why=f"{', '.join(workload.fixed)} can't be changed in place; the pods stay",
            resource=builtin.STATEFUL_SET,
            ref=ref,
            propagation="Orphan",
        )
        return Act(Reason.REPLACING_WORKLOAD, f"StatefulSet {seen.name} is made anew around its pods", (remove,))
    if workload.child.good:
        return _template_is_its_own(seen, workload)
    down = seen.replicas < workload.replicas
    leaving = [decision.Guard("member_has_left", {"ordinal": n}) for n in range(seen.replicas, workload.replicas)]
    action = apply.write(
        builtin.STATEFUL_SET,
        build.workload(seen.wanted, seen.replicas).body,
        workload.child,
        why=f"{seen.replicas} pods, there are {workload.replicas}" if down else f"it is {_how(workload.child)}",
        require=tuple(leaving),
    )
    if down and seen.yields and seen.status.grows_after != workload.revision:
        why = "what a member leaves free while it is replaced is to be its own"
        note = decision.Remember(why=why, fields={"growsAfter": workload.revision})
        said = f"{causes.of_all(seen, sorted(seen.without_place))} waits until the members are replaced"
        return Act(Reason.RESIZING, said, (note, action))
    if seen.replicas != workload.replicas:
        said = f"StatefulSet {seen.name} goes from {workload.replicas} to {seen.replicas} pods"
        return Act(Reason.RESIZING, said, (action,))
    return Act(Reason.CREATING, f"StatefulSet {seen.name} is put right", (action,))


def _template_is_its_own(seen: Seen, workload: WorkloadSeen) -> Verdict:
    """What others put into the template would replace every member, and is none of the spec."""
    if not workload.added:
        return DONE
    said = ", ".join(".".join(map(str, place)) for place in reversed(workload.added))
    unchanged = {"op": "test", "path": "/metadata/resourceVersion", "value": workload.version}
    patch = decision.Patch(
        why=f"{said} is not of the spec",
        resource=builtin.STATEFUL_SET,
        ref=builtin.STATEFUL_SET.ref(seen.meta.namespace, seen.name, workload.uid),
        ops=(unchanged, *({"op": "remove", "path": additions.pointer(place)} for place in workload.added)),
    )
    message = f"StatefulSet {seen.name} is put right: {said}, which is not of the spec, is taken out"
    return Act(Reason.CREATING, message, (patch,))


def volumes_grow(seen: Seen) -> Verdict:
    """Volumes that are smaller than the spec says are asked to grow."""
    wanted = types.whole_bytes(seen.spec.storage.size)
    small = [v for v in seen.there.volumes if not v.deleting and (types.whole_bytes(v.size) or wanted) < wanted]
    if not small:
        return DONE
    said = ", ".join(volume.name for volume in small)
    stuck = [volume.name for volume in small if volume.expandable is False]
    if stuck:
        return Blocked(
            Reason.VOLUME_CANNOT_GROW,
            f"{', '.join(stuck)} is of a storage class that does not let volumes grow",
            "set allowVolumeExpansion on the class, or set storage.size back",
        )
    claimed = types.claimed(seen.spec.storage.size)
    actions = tuple(
        decision.Patch(
            why=f"{volume.size} is less than {seen.spec.storage.size}",
            resource=builtin.VOLUME_CLAIM,
            ref=builtin.VOLUME_CLAIM.ref(seen.meta.namespace, volume.name, volume.uid),
            ops=({"op": "replace", "path": "/spec/resources/requests/storage", "value": claimed},),
        )
        for volume in small
    )
    return Act(Reason.GROWING_VOLUMES, f"{said} grows to {seen.spec.storage.size}", actions)


def failing_pods_are_replaced(seen: Seen) -> Verdict:
    """A pod of an old template that serves nobody is made anew at once, whatever else is waited for.

    A bad image, node selector or limit must not outlive its correction. Nothing is lost: the pod has never been ready,
    or its container can't be kept running. One that the group counts as Online, or that has a task, is left to the
    roll: it may hold data, although its own probe says nothing good of it.
    """
    workload = seen.there.workload
    if workload is None or not workload.revision:
        return DONE
    failing = [
        pod
        for pod in seen.there.pods
        if pod.revision and pod.revision != workload.revision and pod.expendable and not pod.deleting
    ]
    failing = [pod for pod in failing if not _at_work(seen, pod)]
    if not failing:
        return DONE
    actions = tuple(
        decision.Delete(
            why="it does not come up, and the template has changed since",
            resource=builtin.POD,
            ref=builtin.POD.ref(seen.meta.namespace, pod.name, pod.uid),
            require=(decision.Guard("pod_is_expendable", {"name": pod.name, "uid": pod.uid}),),
        )
        for pod in failing
    )
    said = ", ".join(pod.name for pod in failing)
    return Act(
        Reason.REPLACING_DEAD_POD, f"{said} does not come up and is made anew from the current template", actions
    )


def _at_work(seen: Seen, pod: PodSeen) -> bool:
    if not pod.running:
        return False
    member = seen.listed.member(pod.name) if seen.listed else None
    return pod.name in seen.with_task or (member is not None and member.online)


def surplus_objects_go(seen: Seen) -> Verdict:
    """What the spec no longer asks for leaves, once no pod needs it."""
    going = [it for it in seen.there.surplus if not it.deleting]
    if not going:
        return DONE
    actions = tuple(
        decision.Delete(
            why="the spec no longer asks for it",
            resource=it.resource,
            ref=it.resource.ref(seen.meta.namespace, it.name, it.uid),
        )
        for it in going
    )
    said = ", ".join(f"{it.resource.kind}/{it.name}" for it in going)
    return Act(Reason.SURPLUS_OBJECT, f"no longer asked for: {said}", actions)


def surplus_is_gone(seen: Seen) -> Verdict:
    """What should be gone is gone: pods and volumes beyond the StatefulSet's, and objects that nobody asks for."""
    workload = seen.there.workload
    beyond = workload.replicas if workload else 0
    pods = [pod.name for pod in seen.there.pods if pod.ordinal >= beyond]
    volumes = [
        f"{builtin.VOLUME_CLAIM.kind}/{v.name}" for v in seen.there.volumes if v.ordinal >= beyond and v.deleting
    ]
    objects = [f"{it.resource.kind}/{it.name}" for it in seen.there.surplus]
    if workload is None or not (pods or volumes or objects):
        return DONE
    said = ", ".join(filter(None, (causes.of_all(seen, pods), *volumes, *objects)))
    return Wait(Reason.SURPLUS_STAYS, f"should be gone, and is there still: {said}", on="surplus", within=10 * MINUTE)
