"""Why a pod is not ready, or does not end, in its own words. Pure: live objects and events in, a sentence out.

What lies beyond the pod, such as its claims, is told by `diagnosis`. The words come from the kubelet, the scheduler and
the API server, so they name images, nodes and probes. A container that ends again and again says why in its log only:
`wants_log` names it, and who may read logs adds the last line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from . import object_events

__all__ = ["OUT_OF_SERVICE", "Trouble", "ready", "trouble", "worst"]

Object = Mapping[str, Any]

_IMAGE = frozenset(["ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"])
_CONFIG = frozenset(["CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError"])
_STARTING = frozenset(["ContainerCreating", "PodInitializing", ""])
_STATUSES = ("initContainerStatuses", "containerStatuses")
_VOLUME_EVENTS = frozenset(["FailedMount", "FailedAttachVolume", "FailedMapVolume"])
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
"""By this taint Kubernetes takes it as said that nothing runs on a node any more."""

_LOST_NODE = frozenset(["DeletionByTaintManager", "DeletionByPodGC"])
_RANK = (
    *("ImagePull", "ContainerConfig", "OutOfMemory", "CrashLoop", "Exited", "Evicted", "Quota", "Denied"),
    *("NodeDown", "FinalizerLeft", "VolumeLost", "NoStorageClass", "Unschedulable", "VolumePending", "Sandbox"),
    *("ProbeFailing", "NotReady", "Ending", "Starting"),
)


class Trouble(msgspec.Struct, frozen=True):
    """One reason why a pod, or its owner, is not ready."""

    reason: str  # CamelCase, from a small fixed set: see _RANK
    message: str
    wants_log: tuple[str, str] | None = None  # (pod, container) whose last log line would say more
    previous: bool = False  # it is the log of the container's last, ended run
    fix: str = ""  # what a person must do, where nothing comes by itself


def ready(pod: Object) -> bool:
    """Running and with condition Ready."""
    status = pod.get("status") or {}
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in status.get("conditions") or ())


def has_ended(pod: Object) -> bool:
    """Whether none of its containers runs, nor will."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def trouble(pod: Object, events: Iterable[Object] = (), nodes: Iterable[Object] = ()) -> Trouble | None:
    """Why this pod is not ready; None if it is and stays, or has succeeded. One that is being deleted says so."""
    status, name = pod.get("status") or {}, str((pod.get("metadata") or {}).get("name"))
    lost = _lost_node(pod, nodes)
    if (pod.get("metadata") or {}).get("deletionTimestamp"):
        return _ending(name, pod, lost)
    if lost:
        return Trouble("NodeDown", f"pod {name}: {lost}")
    if ready(pod) or status.get("phase") == "Succeeded":
        return None
    if status.get("phase") == "Failed" and status.get("reason"):
        return Trouble("Evicted", f"pod {name}: {status['reason']}: {object_events.cut(status.get('message'))}")
    found = [t for c in _containers(status) if (t := _container(name, pod, c)) is not None]
    if found:
        return min(found, key=_rank)
    return _placement(name, pod) or _from_events(name, pod, events) or _waiting(name, status)


def without_words(pod: Object) -> Object:
    """The pod without what its containers have said themselves when they ended: for readers elsewhere."""
    status = pod.get("status") or {}
    if not any(_ended_with_words(container) for container in _containers(status)):
        return pod
    kept = {name: [_speechless(each) for each in status.get(name) or ()] for name in _STATUSES}
    return {**pod, "status": {**status, **kept}}


def _ended_with_words(container: Object) -> bool:
    return any(((container.get(at) or {}).get("terminated") or {}).get("message") for at in ("state", "lastState"))


def _speechless(container: Object) -> Object:
    said = dict(container)
    for at in ("state", "lastState"):
        state = container.get(at) or {}
        if ended := state.get("terminated"):
            said[at] = {**state, "terminated": {key: value for key, value in ended.items() if key != "message"}}
    return said


def _lost_node(pod: Object, nodes: Iterable[Object]) -> str:
    """That the pod's node does not answer, by the node itself or by what was written into the pod; else empty."""
    at = str((pod.get("spec") or {}).get("nodeName") or "")
    if not at or has_ended(pod):
        return ""
    if known := {str((node.get("metadata") or {}).get("name")): node for node in nodes}:
        if at not in known:
            return f"node {at} is gone"
        said = _conditions(known[at]).get("Ready") or {}
        return (
            "" if said.get("status") == "True" else f"node {at} is not ready: {object_events.cut(said.get('message'))}"
        )
    own, containers = _conditions(pod).get("Ready") or {}, _conditions(pod).get("ContainersReady") or {}
    # the kubelet sets both alike but for gates; where it is not heard, others set the one alone
    silenced = (own.get("status"), containers.get("status")) == ("False", "True") and not own.get("reason")
    evicted = (_conditions(pod).get("DisruptionTarget") or {}).get("reason") in _LOST_NODE
    return f"node {at} does not answer" if silenced or evicted else ""


def _ending(name: str, pod: Object, lost: str) -> Trouble:
    metadata, status = pod["metadata"], pod.get("status") or {}
    what = f"pod {name} is being deleted"
    if lost:
        said = f"{what}, but {lost}, and only it can say that the containers have ended"
        return Trouble("NodeDown", said, fix=_node_is_off(str((pod.get("spec") or {}).get("nodeName"))))
    runs = any("running" in (c.get("state") or {}) for c in _containers(status))
    if metadata.get("finalizers") and not runs:
        return Trouble("FinalizerLeft", f"{what} and is held by {', '.join(metadata['finalizers'])}")
    return Trouble("Ending", f"{what}; its containers have until {metadata['deletionTimestamp']}")


def _node_is_off(node: str) -> str:
    """What somebody must say who knows it: else two pods of one name might run, on one volume."""
    return (
        f"bring node {node} back; or, once it is certain that it is off, have its pods made elsewhere: "
        f"kubectl taint node {node} {OUT_OF_SERVICE}"
    )


def worst(found: Sequence[Trouble]) -> Trouble | None:
    """The one that most needs someone's doing."""
    return min(found, key=_rank) if found else None


def _conditions(obj: Object) -> dict[str, Object]:
    return {str(c.get("type")): c for c in (obj.get("status") or {}).get("conditions") or ()}


def _rank(found: Trouble) -> int:
    return _RANK.index(found.reason) if found.reason in _RANK else len(_RANK)


def _containers(status: Object) -> list[Object]:
    return [container for name in _STATUSES for container in status.get(name) or ()]


def _container(name: str, pod: Object, container: Object) -> Trouble | None:
    state, last = container.get("state") or {}, (container.get("lastState") or {}).get("terminated") or {}
    waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
    who, reason = f"pod {name}, container {container.get('name')}", str(waiting.get("reason") or "")
    log = (name, str(container.get("name")))
    if reason in _IMAGE:
        image = container.get("image") or _image_of(pod, container.get("name"))
        return Trouble("ImagePull", f"{who}: {reason} of {image}: {object_events.cut(waiting.get('message'))}")
    if reason in _CONFIG:
        return Trouble("ContainerConfig", f"{who}: {reason}: {object_events.cut(waiting.get('message'))}")
    gone = ended or (last if reason == "CrashLoopBackOff" else {})
    if gone and gone.get("reason") == "OOMKilled":
        return Trouble("OutOfMemory", f"{who} was killed as it used more memory than its limit", log, not ended)
    if reason == "CrashLoopBackOff":
        times = f"{container.get('restartCount', 0)} restarts"
        return Trouble("CrashLoop", f"{who} ends with {_exit(last)} each time it is started ({times})", log, True)
    if ended and ended.get("exitCode") != 0:
        return Trouble("Exited", f"{who} ended with {_exit(ended)}", log)
    if reason not in _STARTING:
        return Trouble("ContainerConfig", f"{who}: {reason}: {object_events.cut(waiting.get('message'))}")
    return None


def _exit(ended: Object) -> str:
    said = object_events.cut(ended.get("message"))
    code = f"exit code {ended.get('exitCode', 'unknown')}"
    if signal := ended.get("signal"):
        code = f"signal {signal}"
    return f"{code} ({said})" if said else code


def _placement(name: str, pod: Object) -> Trouble | None:
    status, spec = pod.get("status") or {}, pod.get("spec") or {}
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            words = object_events.cut(condition.get("message")) or str(condition.get("reason"))
            reason = "VolumePending" if "persistentvolumeclaim" in words.lower() else "Unschedulable"
            return Trouble(reason, f"pod {name} can't be scheduled: {words}")
    if status.get("phase") == "Pending" and not spec.get("nodeName"):
        return Trouble("Starting", f"pod {name} has not been given a node yet")  # nobody has refused it so far
    return None


def _from_events(name: str, pod: Object, events: Iterable[Object]) -> Trouble | None:
    """What the kubelet says only in events. Newest first, of this pod's incarnation."""
    for event in object_events.about(pod, events):
        reason, words = str(event.get("reason") or ""), object_events.words(event)
        if reason in _VOLUME_EVENTS:
            return Trouble("VolumePending", f"pod {name}: {reason}: {words}")
        if reason == "FailedCreatePodSandBox":
            return Trouble("Sandbox", f"pod {name}: {reason}: {words}")
        if reason == "Unhealthy":
            return Trouble("ProbeFailing", f"pod {name}: {words}", _first_unready(name, pod))
    return None


def _waiting(name: str, status: Object) -> Trouble:
    unready = [c for c in status.get("containerStatuses") or () if not c.get("ready")]
    running = [c for c in unready if (c.get("state") or {}).get("running")]
    if running:
        names = ", ".join(str(c.get("name")) for c in running)
        since = min(str(c["state"]["running"].get("startedAt") or "") for c in running)
        message = f"pod {name}: {names} runs since {since} and its readiness probe has not passed"
        return Trouble("ProbeFailing", message, (name, str(running[0].get("name"))))
    gates = [c for c in status.get("conditions") or () if c.get("status") == "False" and c.get("type") == "Ready"]
    if gates and gates[0].get("reason") == "ReadinessGatesNotReady":
        return Trouble("NotReady", f"pod {name}: {object_events.cut(gates[0].get('message'))}")
    return Trouble("Starting", f"pod {name} is being started")


def _first_unready(name: str, pod: Object) -> tuple[str, str] | None:
    for container in (pod.get("status") or {}).get("containerStatuses") or ():
        if not container.get("ready"):
            return name, str(container.get("name"))
    return None


def _image_of(pod: Object, container: Any) -> str:
    spec = pod.get("spec") or {}
    for entry in [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]:
        if entry.get("name") == container:
            return str(entry.get("image"))
    return "its image"
