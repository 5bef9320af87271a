"""Is an object what its spec says, and if not, why. Pure.

States follow kstatus, so that this agrees with `kubectl wait`, helm --wait, Flux and Argo CD where they agree. A kind
with a status of its own (custom resources) is read by its conditions Ready, Reconciling and Stalled and by
observedGeneration; one without is Current when it exists. Where this differs from kstatus is in docs/collector.md.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from . import diagnosis, pod_trouble

__all__ = ["Health", "State", "health", "removes_itself"]

Object = Mapping[str, Any]


class State(enum.Enum):
    """kstatus' states."""

    CURRENT = "Current"
    IN_PROGRESS = "InProgress"
    FAILED = "Failed"
    TERMINATING = "Terminating"
    NOT_FOUND = "NotFound"


class Health(msgspec.Struct, frozen=True):
    """One object's state with a CamelCase reason and a sentence."""

    state: State
    reason: str
    message: str
    wants_log: tuple[str, str] | None = None  # (pod, container), see pods.Trouble
    previous: bool = False
    fix: str = ""  # what a person must do, where nothing comes by itself

    @property
    def ok(self) -> bool:
        return self.state is State.CURRENT


def health(
    obj: Object | None,
    pods: Iterable[Object] = (),
    events: Iterable[Object] = (),
    *,
    claims: Iterable[Object] = (),
    nodes: Iterable[Object] = (),
) -> Health:
    """The state of a live object; None means that it isn't there.

    `pods` are those of a workload, or those that use a claim; the rest is what is around them. When the object is not
    Current, they tell why (see `diagnosis`).
    """
    if obj is None:
        return Health(State.NOT_FOUND, "NotFound", "the object does not exist")
    there = list(pods)
    found = _state(obj)
    if found.reason == "VolumePending" and not there:
        return Health(State.CURRENT, "Unused", "no volume is bound to it, and no pod uses it")
    if found.state is State.CURRENT:
        return found
    cause = diagnosis.cause(obj, pods=there, claims=claims, events=events, nodes=nodes)
    if cause is None:
        return found
    said = f"{found.message}; {cause.message}"
    return Health(found.state, cause.reason, said, cause.wants_log, cause.previous, cause.fix)


def removes_itself(body: Object) -> bool:
    """Whether the object is a Job that goes when it has finished: its absence says that it has."""
    spec = body.get("spec") or {}
    return _kind(body) == ("batch", "Job") and spec.get("ttlSecondsAfterFinished") is not None


def _state(obj: Object) -> Health:
    if _meta(obj).get("deletionTimestamp"):
        waits = ", ".join(_meta(obj).get("finalizers") or ())
        return Health(
            State.TERMINATING, "Terminating", f"being deleted, waits for {waits}" if waits else "being deleted"
        )
    generation, observed = _meta(obj).get("generation"), _status(obj).get("observedGeneration")
    if observed is not None and generation is not None and observed != generation:
        return _progress("SpecNotObserved", f"its controller has seen generation {observed} of {generation}")
    rule = _RULES.get(_kind(obj))
    return rule(obj) if rule else _custom(obj)


def _deployment(obj: Object) -> Health:
    wanted, status = _wanted(obj), _status(obj)
    if "observedGeneration" not in status:
        return _progress("SpecNotObserved", "its controller has not looked at it yet")
    for condition in _conditions(obj):
        if condition.get("type") == "Progressing" and condition.get("reason") == "ProgressDeadlineExceeded":
            return Health(State.FAILED, "ProgressDeadlineExceeded", str(condition.get("message") or "no progress"))
    updated, total = int(status.get("updatedReplicas") or 0), int(status.get("replicas") or 0)
    if updated < wanted:
        words = f"{updated} of {wanted} replicas are of the current template"
        if (obj.get("spec") or {}).get("paused"):
            return _progress("RolloutPaused", f"its rollout is paused; {words}")
        return _progress("Updating", words)
    if total > updated:
        return _progress("OldPods", f"{total - updated} old replicas are still to end")
    return _counted(int(status.get("availableReplicas") or 0), wanted)


def _stateful_set(obj: Object) -> Health:
    wanted, status, spec = _wanted(obj), _status(obj), obj.get("spec") or {}
    if "observedGeneration" not in status:
        return _progress("SpecNotObserved", "its controller has not looked at it yet")
    strategy = spec.get("updateStrategy") or {}
    there, updated = int(status.get("replicas") or 0), int(status.get("updatedReplicas") or 0)
    if there != wanted:
        return _progress("Scaling", f"{there} of {wanted} replicas exist")
    kept_back = int((strategy.get("rollingUpdate") or {}).get("partition") or 0)
    rolls = strategy.get("type") != "OnDelete" and status.get("updateRevision") != status.get("currentRevision")
    if rolls and updated < wanted - kept_back:
        return _progress("Updating", f"{updated} of {wanted - kept_back} replicas are of the current template")
    return _counted(int(status.get("readyReplicas") or 0), wanted)


def _daemon_set(obj: Object) -> Health:
    status, on_delete = _status(obj), ((obj.get("spec") or {}).get("updateStrategy") or {}).get("type") == "OnDelete"
    if "observedGeneration" not in status or "desiredNumberScheduled" not in status:
        return _progress("SpecNotObserved", "its controller has not looked at it yet")
    wanted, updated = int(status["desiredNumberScheduled"]), int(status.get("updatedNumberScheduled") or 0)
    if updated < wanted and not on_delete:
        return _progress("Updating", f"{updated} of {wanted} pods are of the current template")
    return _counted(int(status.get("numberAvailable") or 0), wanted)


def _replica_set(obj: Object) -> Health:
    if "observedGeneration" not in _status(obj):
        return _progress("SpecNotObserved", "its controller has not looked at it yet")
    return _counted(int(_status(obj).get("availableReplicas") or 0), _wanted(obj))


def _counted(there: int, wanted: int) -> Health:
    if there < wanted:
        return _progress("PodsNotReady", f"{there} of {wanted} replicas are ready")
    return Health(State.CURRENT, "Ready", f"{wanted} of {wanted} replicas are ready")


def _job(obj: Object) -> Health:
    for condition in _conditions(obj):
        if condition.get("type") == "Failed" and _is(condition, "True"):
            return Health(State.FAILED, "JobFailed", str(condition.get("message") or condition.get("reason") or ""))
        if condition.get("type") == "Complete" and _is(condition, "True"):
            return Health(State.CURRENT, "JobComplete", "it has completed")
    if (obj.get("spec") or {}).get("suspend"):
        return Health(State.CURRENT, "JobSuspended", "it is suspended, as its spec says")
    # kstatus calls a started job Current; a release with a job that may still fail is not ready
    return _progress("JobRunning", f"{int(_status(obj).get('active') or 0)} pods run, it has not completed")


def _claim(obj: Object) -> Health:
    phase = str(_status(obj).get("phase") or "Pending")
    if phase == "Bound":
        return Health(State.CURRENT, "Bound", "the volume is bound")
    if phase == "Lost":
        return Health(State.FAILED, "VolumeLost", "the volume that it was bound to is gone")
    return _progress("VolumePending", "no volume is bound to it yet")


def _pod(obj: Object) -> Health:
    phase = str(_status(obj).get("phase") or "Pending")
    if phase == "Succeeded":
        return Health(State.CURRENT, "PodSucceeded", "it has ended well")
    if pod_trouble.ready(obj):
        return Health(State.CURRENT, "Ready", "it is ready")
    return (
        Health(State.FAILED, "PodFailed", "it failed")
        if phase == "Failed"
        else _progress("PodNotReady", f"it is {phase}")
    )


def _budget(obj: Object) -> Health:
    """It is what it is meant to be once its controller counts for it, whatever the count: pods speak for themselves."""
    if "observedGeneration" not in _status(obj):
        return _progress("SpecNotObserved", "its controller has not looked at it yet")
    return Health(State.CURRENT, "Ready", "its controller watches over the pods that it selects")


def _exists(obj: Object) -> Health:
    return Health(State.CURRENT, "Exists", "it exists")


def _custom(obj: Object) -> Health:
    """Any other kind, by the conditions that kstatus defines; without them it is Current when it exists."""
    conditions = {str(c.get("type")): c for c in _conditions(obj)}
    for name, state in (("Stalled", State.FAILED), ("Reconciling", State.IN_PROGRESS)):
        if (condition := conditions.get(name)) and _is(condition, "True"):
            return _told(state, name, condition)
    if (condition := conditions.get("Ready")) is None:
        return _exists(obj)
    return _told(State.CURRENT if _is(condition, "True") else State.IN_PROGRESS, "Ready", condition)


def _told(state: State, name: str, condition: Object) -> Health:
    default = "Ready" if state is State.CURRENT else name if name != "Ready" else "NotReady"
    return Health(state, str(condition.get("reason") or default), str(condition.get("message") or default))


def _definition(obj: Object) -> Health:
    conditions = {str(c.get("type")): c for c in _conditions(obj)}
    if (names := conditions.get("NamesAccepted")) and _is(names, "False"):
        return _told(State.FAILED, "NamesNotAccepted", names)
    if _is(conditions.get("Established") or {}, "True"):
        return Health(State.CURRENT, "Established", "it is served")
    return _progress("NotEstablished", "it is not served yet")


def _progress(reason: str, message: str) -> Health:
    return Health(State.IN_PROGRESS, reason, message)


def _wanted(obj: Object) -> int:
    wanted = (obj.get("spec") or {}).get("replicas")
    return 1 if wanted is None else int(wanted)


def _kind(obj: Object) -> tuple[str, str]:
    return str(obj.get("apiVersion", "")).rpartition("/")[0], str(obj.get("kind"))


def _meta(obj: Object) -> Object:
    return obj.get("metadata") or {}


def _status(obj: Object) -> Object:
    return obj.get("status") or {}


def _conditions(obj: Object) -> list[Object]:
    found = _status(obj).get("conditions")
    return [c for c in found if isinstance(c, Mapping)] if isinstance(found, list) else []


def _is(condition: Object, status: str) -> bool:
    return bool(condition.get("status") == status)


_RULES: dict[tuple[str, str], Callable[[Object], Health]] = {
    ("apps", "Deployment"): _deployment,
    ("apps", "StatefulSet"): _stateful_set,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "ReplicaSet"): _replica_set,
    ("batch", "Job"): _job,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Pod"): _pod,
    ("", "Service"): _exists,  # one of type LoadBalancer too: its cluster address serves without the other
    ("policy", "PodDisruptionBudget"): _budget,
    ("networking.k8s.io", "Ingress"): _exists,  # an address is optional: many controllers give none
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
}
