"""Why a pod is not ready, in the pod's own words. Pure: live objects and events in, a sentence out.

The words come from the kubelet, the scheduler and the API server, so they name images, nodes and probes. A container
that ends again and again says why in its log only: `wants_log` names it, and who may read logs adds the last line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

__all__ = ["Trouble", "ready", "trouble", "worst"]

Object = Mapping[str, Any]
MAX_WORDS = 500

_IMAGE = frozenset(["ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"])
_CONFIG = frozenset(["CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError"])
_STARTING = frozenset(["ContainerCreating", "PodInitializing", ""])
_STATUSES = ("initContainerStatuses", "containerStatuses")
_VOLUME_EVENTS = frozenset(["FailedMount", "FailedAttachVolume", "FailedMapVolume"])
_RANK = (
    *("ImagePull", "ContainerConfig", "OutOfMemory", "CrashLoop", "Exited", "Evicted", "Quota", "Denied"),
    *("Unschedulable", "VolumePending", "Sandbox", "ProbeFailing", "NotReady", "Starting"),
)


class Trouble(msgspec.Struct, frozen=True):
    """One reason why a pod, or its owner, is not ready."""

    reason: str  # CamelCase, from a small fixed set: see _RANK
    message: str
    wants_log: tuple[str, str] | None = None  # (pod, container) whose last log line would say more
    previous: bool = False  # it is the log of the container's last, ended run


def ready(pod: Object) -> bool:
    """Running and with condition Ready."""
    status = pod.get("status") or {}
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in status.get("conditions") or ())


def trouble(pod: Object, events: Iterable[Object] = ()) -> Trouble | None:
    """Why this pod is not ready; None if it is, or has succeeded."""
    status, name = pod.get("status") or {}, str((pod.get("metadata") or {}).get("name"))
    if ready(pod) or status.get("phase") == "Succeeded":
        return None
    if status.get("phase") == "Failed" and status.get("reason"):
        return Trouble("Evicted", f"pod {name}: {status['reason']}: {_cut(status.get('message'))}")
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


def worst(found: Sequence[Trouble]) -> Trouble | None:
    """The one that most needs someone's doing."""
    return min(found, key=_rank) if found else None


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
        return Trouble("ImagePull", f"{who}: {reason} of {image}: {_cut(waiting.get('message'))}")
    if reason in _CONFIG:
        return Trouble("ContainerConfig", f"{who}: {reason}: {_cut(waiting.get('message'))}")
    gone = ended or (last if reason == "CrashLoopBackOff" else {})
    if gone and gone.get("reason") == "OOMKilled":
        return Trouble("OutOfMemory", f"{who} was killed as it used more memory than its limit", log, not ended)
    if reason == "CrashLoopBackOff":
        times = f"{container.get('restartCount', 0)} restarts"
        return Trouble("CrashLoop", f"{who} ends with {_exit(last)} each time it is started ({times})", log, True)
    if ended and ended.get("exitCode") != 0:
        return Trouble("Exited", f"{who} ended with {_exit(ended)}", log)
    if reason not in _STARTING:
        return Trouble("ContainerConfig", f"{who}: {reason}: {_cut(waiting.get('message'))}")
    return None


def _exit(ended: Object) -> str:
    said = _cut(ended.get("message"))
    code = f"exit code {ended.get('exitCode', 'unknown')}"
    if signal := ended.get("signal"):
        code = f"signal {signal}"
    return f"{code} ({said})" if said else code


def _placement(name: str, pod: Object) -> Trouble | None:
    status, spec = pod.get("status") or {}, pod.get("spec") or {}
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            words = _cut(condition.get("message")) or str(condition.get("reason"))
            reason = "VolumePending" if "persistentvolumeclaim" in words.lower() else "Unschedulable"
            return Trouble(reason, f"pod {name} can't be scheduled: {words}")
    if status.get("phase") == "Pending" and not spec.get("nodeName"):
        return Trouble("Starting", f"pod {name} has not been given a node yet")  # nobody has refused it so far
    return None


def _from_events(name: str, pod: Object, events: Iterable[Object]) -> Trouble | None:
    """What the kubelet says only in events. Newest first, of this pod's incarnation."""
    uid = (pod.get("metadata") or {}).get("uid")
    about = [e for e in events if e.get("type") == "Warning" and _regards(e).get("uid") in (uid, None)]
    about = [e for e in about if _regards(e).get("name") == name]
    for event in sorted(about, key=_when, reverse=True):
        reason, words = str(event.get("reason") or ""), _cut(event.get("note") or event.get("message"))
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
        return Trouble("NotReady", f"pod {name}: {_cut(gates[0].get('message'))}")
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


def _regards(event: Object) -> Object:
    return event.get("regarding") or event.get("involvedObject") or {}


def _when(event: Object) -> str:
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("deprecatedLastTimestamp"))
    return next((str(t) for t in (*times, event.get("eventTime")) if t), "")


def _cut(text: Any) -> str:
    words = " ".join(str(text or "").split())
    return words if len(words) <= MAX_WORDS else words[: MAX_WORDS - 1] + "…"
