"""The first cause by its name: from an object to its pods, and on to their claims, nodes, quotas and events. Pure.

It knows nothing of helm or any system. Whatever was not read may be left out, and is then not spoken of: without nodes
a dead one is known by what its pods say, without claims a missing class by the events. Events are forgotten by the API
server after an hour, so conditions are preferred where there are both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from . import object_events, pod_trouble
from .pod_trouble import Trouble

__all__ = ["cause", "claims_of", "of_claim", "of_pod", "pods_of"]

Object = Mapping[str, Any]
_REPLACE_AT_ONCE = frozenset(["Deployment", "ReplicaSet"])
"""Their controller makes a pod for each that is being deleted, and waits for the end of none."""

_ABOUT_VOLUMES = frozenset(["VolumePending", "Unschedulable"])


def cause(
    obj: Object,
    *,
    pods: Iterable[Object] = (),
    claims: Iterable[Object] = (),
    events: Iterable[Object] = (),
    nodes: Iterable[Object] = (),
) -> Trouble | None:
    """What keeps the object from being what its spec says, of what most needs someone's doing; None if nothing does.

    `pods` are the object's own; of the others all of the namespace, and of the cluster, may be given.
    """
    seen, there, around, alive = list(events), list(pods), list(claims), list(nodes)
    match obj.get("kind"):
        case "Pod":
            return of_pod(obj, claims=around, events=seen, nodes=alive)
        case "PersistentVolumeClaim":
            return of_claim(obj, seen, there)
    if _deleting(obj):
        return None  # its finalizers say what it waits for
    if (refused := _refused(obj, there, seen)) is not None:
        return refused
    if obj.get("kind") in _REPLACE_AT_ONCE:
        there = [pod for pod in there if not _deleting(pod)] or there
    found = (of_pod(pod, claims=around, events=seen, nodes=alive) for pod in there)
    return pod_trouble.worst([each for each in found if each is not None])


def of_pod(
    pod: Object, *, claims: Iterable[Object] = (), events: Iterable[Object] = (), nodes: Iterable[Object] = ()
) -> Trouble | None:
    """Why a pod is not ready, or does not end; of one that waits for a volume, why its claim has none."""
    seen = list(events)
    found = pod_trouble.trouble(pod, seen, nodes)
    if found is None or found.reason not in _ABOUT_VOLUMES:
        return found
    known = {_name(claim): claim for claim in claims}
    for name in claims_of(pod):
        claim = known.get(name) or {"kind": "PersistentVolumeClaim", "metadata": {"name": name}}
        if (deeper := of_claim(claim, seen, [pod])) is not None:
            return Trouble(deeper.reason, f"{found.message}; {deeper.message}")
    return found


def pods_of(obj: Object, pods: Iterable[Object]) -> list[Object]:
    """Those that a workload's selector takes, or that it owns; of a claim, those that use it and have not ended."""
    if obj.get("kind") == "PersistentVolumeClaim":
        return [pod for pod in pods if _name(obj) in claims_of(pod) and not pod_trouble.has_ended(pod)]
    selector = (obj.get("spec") or {}).get("selector")
    wanted = selector.get("matchLabels") if isinstance(selector, Mapping) else None
    labels = wanted.items() if isinstance(wanted, Mapping) and wanted else None
    uid = (obj.get("metadata") or {}).get("uid")
    return [pod for pod in pods if (labels and labels <= _labels(pod).items()) or uid in _owners(pod)]


def claims_of(pod: Object) -> Iterator[str]:
    """The names of the claims that a pod mounts."""
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        if claim := volume.get("persistentVolumeClaim"):
            yield str(claim.get("claimName"))
        elif volume.get("ephemeral"):
            yield f"{_name(pod)}-{volume.get('name')}"


def of_claim(claim: Object, events: Iterable[Object] = (), users: Iterable[Object] = ()) -> Trouble | None:
    """Why a claim has no volume, or does not end; None if it has one, or if nothing is known of it."""
    metadata, spec, name = claim.get("metadata") or {}, claim.get("spec"), f"claim {_name(claim)}"
    phase = (claim.get("status") or {}).get("phase")
    if metadata.get("deletionTimestamp"):
        by = ", ".join((*(f"pod {_name(pod)}" for pod in users), *(metadata.get("finalizers") or ())))
        return Trouble("FinalizerLeft", f"{name} is being deleted and is held by {by or 'nobody any more'}")
    if phase == "Bound":
        return None
    if phase == "Lost":
        return Trouble("VolumeLost", f"{name} has lost its volume")
    if said := object_events.about(claim, events):
        text = object_events.words(said[0])
        no_class = "storageclass" in text.lower() and "not found" in text
        return Trouble("NoStorageClass" if no_class else "VolumePending", f"{name}: {text}")
    if spec is None:
        return None
    if spec.get("storageClassName") is None:
        return Trouble("NoStorageClass", f"{name} names no storage class, and the cluster has no default one")
    class_ = spec["storageClassName"]
    waits = f"for storage class {class_}" if class_ else "for a volume that somebody makes, as it names no class"
    return Trouble("VolumePending", f"{name} waits {waits}")


def _refused(obj: Object, pods: list[Object], events: list[Object]) -> Trouble | None:
    """Pods that can't even be created: by a quota, a policy or missing rights."""
    conditions = (obj.get("status") or {}).get("conditions")
    failures = [
        object_events.cut(each.get("message"))
        for each in (conditions if isinstance(conditions, list) else ())
        if isinstance(each, Mapping) and (each.get("type"), each.get("status")) == ("ReplicaFailure", "True")
    ]
    newest = max((str((pod.get("metadata") or {}).get("creationTimestamp") or "") for pod in pods), default="")
    # an event stays for an hour: one that is older than a pod has been overtaken
    said = [
        event
        for event in object_events.about(obj, events, "FailedCreate")
        if object_events.when(event) >= newest and not _has_come(event, obj, pods)
    ]
    text = next((words for words in (*failures, *map(object_events.words, said)) if words), "")
    if not text:
        return None
    return Trouble("Quota" if "exceeded quota" in text else "Denied", f"its pods can't be created: {text}")


def _has_come(event: Object, obj: Object, pods: list[Object]) -> bool:
    """Whether the pod that could not be created is there, though the event may bear the very second of its coming.

    Times are in whole seconds, and a controller tries again within one, so they order only what is further apart.
    """
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    match obj.get("kind"):
        case "ReplicaSet":
            wanted = spec.get("replicas", 1)
        case "DaemonSet":
            wanted = status.get("desiredNumberScheduled")
        case "Job":
            wanted = spec.get("parallelism", 1)
        case _:  # its pods have names of their own, by which the event speaks of them
            said = set(re.findall(r"[\w.-]+", object_events.words(event)))
            return any(_name(pod) in said for pod in pods)
    there = [pod for pod in pods if not _deleting(pod) and not pod_trouble.has_ended(pod)]
    return wanted is not None and len(there) >= int(wanted)


def _name(obj: Object) -> str:
    return str((obj.get("metadata") or {}).get("name"))


def _labels(obj: Object) -> dict[str, Any]:
    return (obj.get("metadata") or {}).get("labels") or {}


def _owners(obj: Object) -> list[Any]:
    return [owner["uid"] for owner in (obj.get("metadata") or {}).get("ownerReferences") or () if owner.get("uid")]


def _deleting(obj: Object) -> bool:
    return bool((obj.get("metadata") or {}).get("deletionTimestamp"))
