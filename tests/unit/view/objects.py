"""Objects as the API server hands them out, for the tests of what people see."""

from __future__ import annotations

from typing import Any


def condition(type_: str, status: str, reason: str = "", message: str = "") -> dict[str, Any]:
    """One condition."""
    return {"type": type_, "status": status, "reason": reason, "message": message, "observedGeneration": 2}


def collector(*conditions: dict[str, Any], observed: int = 2, **status: Any) -> dict[str, Any]:
    """A Collector of generation 2 with these conditions and status fields."""
    return {
        "metadata": {"name": "hello", "namespace": "default", "uid": "u1", "generation": 2},
        "spec": {},
        "status": {"observedGeneration": observed, "conditions": list(conditions), **status},
    }


READY = collector(
    condition("Ready", "True", "Ready", "all steps are done"),
    condition("Stalled", "False", "Settled"),
    chart={"name": "collector", "version": "1.0.0", "digest": "sha256:0123456789abcdef", "constraint": "^1"},
    release={"name": "collector-main", "namespace": "acme", "revision": 3, "status": "deployed"},
    inventory={"objects": 2, "ready": 2, "kinds": {"Deployment": 1, "Service": 1}},
)
WAITING = collector(
    condition("Ready", "False", "Starting", "Deployment collector-main: 0 of 1 replicas are ready"),
    condition("Reconciling", "True", "Starting"),
    condition("Stalled", "False", "Settled"),
    progress={
        "step": "children_are_ready",
        "reason": "Starting",
        "since": "2026-01-01T00:00:00Z",
        "next": "the node is awaited",
    },
)
STALLED = collector(
    condition("Ready", "False", "SchemaViolation", "at '/replicas': got string; correct it; or the chart"),
    condition("Stalled", "True", "SchemaViolation"),
    progress={
        "step": "chart_renders",
        "reason": "SchemaViolation",
        "since": "2026-01-01T00:00:00Z",
        "next": "correct it; or the chart",
    },
    lastError="schema",
)
PAUSED = collector(
    condition("Ready", "False", "Paused", "not carried out while paused: put right"),
    condition("Paused", "True", "Paused"),
    condition("Stalled", "False", "Settled"),
    progress={"step": "drift_is_undone", "reason": "Paused", "next": "remove the annotation"},
)


def changed(at: str) -> dict[str, Any]:
    """One that was ready, and whose spec somebody has changed since."""
    obj = READY | {"metadata": dict(READY["metadata"]), "status": READY["status"] | {"observedGeneration": 1}}
    earlier = {"manager": "kubectl", "time": "2026-01-01T00:00:01Z"}
    own = {"manager": "moorage", "time": "2026-01-01T00:00:08Z"}
    of_status = {"manager": "x", "subresource": "status", "time": "2026-01-01T00:00:09Z"}
    obj["metadata"]["managedFields"] = [earlier, {"manager": "kubectl-edit", "time": at}, own, of_status]
    return obj


def event(at: str, reason: str, message: str = "words") -> dict[str, Any]:
    """An event."""
    return {"metadata": {}, "eventTime": at, "reason": reason, "note": message, "type": "Normal"}


def deployment(ready: int) -> dict[str, Any]:
    """A Deployment of one replica."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "acme", "uid": "d1", "generation": 1},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}},
        "status": {
            "observedGeneration": 1,
            "replicas": 1,
            "updatedReplicas": 1,
            "readyReplicas": ready,
            "availableReplicas": ready,
        },
    }


def pod(**labels: str) -> dict[str, Any]:
    """A pod whose image can't be had."""
    waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
    return {
        "metadata": {"name": "web-1", "namespace": "acme", "labels": labels},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "example.org/x:1"}]},
        "status": {
            "phase": "Pending",
            "containerStatuses": [{"name": "c", "image": "example.org/x:1", "state": {"waiting": waiting}}],
        },
    }
