"""From live objects to what is seen of them. Pure: raw objects in, parts out."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

import msgspec

from moorage.api import additions, conditions, meta, quantities

from . import apply, diagnosis, owners, parts, pod_trouble, volumes

Object = dict[str, Any]

LINGERS = 60.0
"""Seconds after its grace for which a pod that ends is not called overdue."""


class Around(msgspec.Struct, frozen=True):
    """What is around the pods, and may say what is wrong with them."""

    now: float = 0.0  # epoch seconds
    claims: tuple[Object, ...] = ()
    events: tuple[Object, ...] = ()


NOTHING = Around()


def address(it: Object) -> str:
    """Where that pod is reached. One that has ended, or is ending, has no address: it may be another's by now."""
    ended = pod_trouble.has_ended(it) or "deletionTimestamp" in it["metadata"]
    return "" if ended else str((it.get("status") or {}).get("podIP") or "")


def pod(it: Object, ordinal: int, *, gate: str = "", around: Around = NOTHING) -> parts.PodSeen:
    """A pod. `gate` is the type of its readiness gate.

    Its revision is that of the StatefulSet that has made it; of one that is applied by itself, what was applied last.
    """
    metadata, spec, status = it["metadata"], it.get("spec") or {}, it.get("status") or {}
    inside: Object = next(iter(status.get("containerStatuses") or ()), {})
    state = inside.get("state") or {}
    deleting = "deletionTimestamp" in metadata
    trouble = diagnosis.of_pod(it, claims=around.claims, events=around.events)
    ready = bool(inside.get("ready"))
    return parts.PodSeen(
        name=metadata["name"],
        ordinal=ordinal,
        uid=metadata["uid"],
        address=status.get("podIP", ""),
        image=next((c.get("image", "") for c in spec.get("containers") or ()), ""),
        revision=(metadata.get("labels") or {}).get("controller-revision-hash", "") or _stamp(metadata),
        came_up=ready or _changed(status, "ContainersReady") > _changed(status, "Initialized"),
        held=((state.get("waiting") or {}).get("reason") or "") not in _STARTING,
        unplaced_since=_changed(status, "PodScheduled", "False"),
        running="running" in state and not deleting,
        ready=ready,
        started_at=_epoch((state.get("running") or {}).get("startedAt")),
        since=_changed(status, "ContainersReady") or _epoch(metadata.get("creationTimestamp")),
        gate=next((c.get("status") == "True" for c in status.get("conditions") or () if c.get("type") == gate), None),
        deleting=deleting,
        overdue=deleting and around.now > _epoch(metadata["deletionTimestamp"]) + LINGERS,
        trouble=trouble.message if trouble else "",
        cause=trouble.reason if trouble else "",
        fix=trouble.fix if trouble else "",
    )


_STARTING = frozenset(["", "ContainerCreating", "PodInitializing"])
"""Why a container waits, where nothing is wrong."""


def _changed(status: Object, type_: str, is_: str = "") -> float:
    """When that condition became what it is, in epoch seconds; 0 where it is not stated, or is not `is_`.

    The kubelet states all of a pod's together when it first looks at it. So one that is stated later has changed since.
    """
    stated = (c for c in status.get("conditions") or () if c.get("type") == type_ and is_ in ("", c.get("status")))
    return _epoch(next((c.get("lastTransitionTime") for c in stated), None))


def _stamp(metadata: Object) -> str:
    return str((metadata.get("annotations") or {}).get(apply.STAMP, ""))


def _epoch(text: str | None) -> float:
    return conditions.epoch(text) if text else 0.0


def volume(
    it: Object, ordinal: int, *, smaller_than: int, expandable: Callable[[str], bool | None]
) -> parts.VolumeSeen:
    """A claim. Whether its class lets it grow is asked, by the class's name, only if it has fewer bytes than that."""
    metadata, spec = it["metadata"], it.get("spec") or {}
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage", "")
    small = 0 < volumes.whole_bytes(size) < smaller_than
    return parts.VolumeSeen(
        name=metadata["name"],
        ordinal=ordinal,
        uid=metadata["uid"],
        size=size,
        made_at=_epoch(metadata.get("creationTimestamp")),
        deleting="deletionTimestamp" in metadata,
        expandable=expandable(spec.get("storageClassName") or "") if small else None,
    )


def workload(live: Object) -> parts.WorkloadSeen:
    """The StatefulSet; beside what is wanted of it, see `beside`."""
    metadata, spec, status = live["metadata"], live.get("spec") or {}, live.get("status") or {}
    current = status.get("observedGeneration") == metadata.get("generation")
    return parts.WorkloadSeen(
        uid=metadata["uid"],
        replicas=int(spec.get("replicas", 1)),
        version=metadata["resourceVersion"],
        revision=status.get("updateRevision", "") if current else "",
    )


TEMPLATE = ("spec", "template")
RESTARTED = "kubectl.kubernetes.io/restartedAt"
"""By this annotation in the template `kubectl rollout restart` asks for every pod to be replaced; so it stays."""


def beside(seen: parts.WorkloadSeen, live: Object, body: Object, children: apply.Children) -> parts.WorkloadSeen:
    """The same StatefulSet beside the body that is wanted of it."""
    added = additions.additions(body, live, under=TEMPLATE, manager=children.manager, but=(RESTARTED,))
    added += additions.kept_under_two_names(body, live, under=TEMPLATE)
    return msgspec.structs.replace(seen, child=children.look(body, live), fixed=fixed_claims(body, live), added=added)


def fixed_claims(body: Object, live: Object) -> tuple[str, ...]:
    """The size in a claim template, which a spec may change and the server lets nobody change in place."""

    def size(obj: Object) -> Any:
        templates = obj["spec"].get("volumeClaimTemplates") or ()
        return [quantities.number(t["spec"]["resources"]["requests"]["storage"]) for t in templates]

    return () if size(body) == size(live) else ("spec.volumeClaimTemplates",)


def unmade(workload: Object, pods: list[Object], events: tuple[Object, ...]) -> str:
    """Why the workload's controller can't make a pod, by its own word."""
    found = diagnosis.cause(workload, pods=pods, events=events)
    return found.message if found and found.reason in ("Quota", "Denied") else ""


def disruptions(budget: Object | None) -> int | None:
    """How many pods a disruption budget lets go now; None where its controller has not counted for it as it is."""
    status = (budget or {}).get("status") or {}
    if budget is None or status.get("observedGeneration") != budget["metadata"].get("generation"):
        return None
    return int(status.get("disruptionsAllowed") or 0)


def surplus(
    there: Mapping[meta.Resource, Iterable[Object]], owner: str, wanted: Container[str]
) -> tuple[parts.SurplusSeen, ...]:
    """Of these objects those that the one with the uid `owner` owns, and that are not `wanted` (see `Desired.id`)."""
    found = []
    for resource, objects in there.items():
        for it in objects:
            metadata = it["metadata"]
            seen = parts.SurplusSeen(resource, metadata["name"], metadata["uid"], "deletionTimestamp" in metadata)
            if owners.is_owned(it, owner) and seen.id not in wanted:
                found.append(seen)
    return tuple(found)
