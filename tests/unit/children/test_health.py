"""Health by kind, and the words that say why."""

from __future__ import annotations

import pytest

from moorage.children import health as h
from moorage.children import pod_trouble

S = h.State


def body(kind, api_version="apps/v1", *, generation=2, status=None, spec=None, **metadata):
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "x", "uid": "u", "generation": generation, **metadata},
        "spec": spec or {},
        "status": status or {},
    }


def condition(type_, status, reason="R", message="m"):
    return {"type": type_, "status": status, "reason": reason, "message": message}


SEEN = {"observedGeneration": 2}
DONE = {**SEEN, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3}
THREE = {"replicas": 3}
CASES = [
    (None, S.NOT_FOUND, "NotFound"),
    (body("Deployment"), S.IN_PROGRESS, "SpecNotObserved"),
    (body("Deployment", status={**DONE, "observedGeneration": 1}, spec=THREE), S.IN_PROGRESS, "SpecNotObserved"),
    (body("Deployment", status=DONE, spec=THREE), S.CURRENT, "Ready"),
    (body("Deployment", status={**DONE, "updatedReplicas": 1}, spec=THREE), S.IN_PROGRESS, "Updating"),
    (body("Deployment", status={**DONE, "replicas": 4}, spec=THREE), S.IN_PROGRESS, "OldPods"),
    (body("Deployment", status={**DONE, "availableReplicas": 2}, spec=THREE), S.IN_PROGRESS, "PodsNotReady"),
    (body("Deployment", status=SEEN, spec={"replicas": 0}), S.CURRENT, "Ready"),
    (body("Deployment", status=SEEN, spec={**THREE, "paused": True}), S.IN_PROGRESS, "RolloutPaused"),
    (body("Deployment", status=DONE, spec={**THREE, "paused": True}), S.CURRENT, "Ready"),
    (
        body(
            "Deployment", status={**DONE, "conditions": [condition("Progressing", "False", "ProgressDeadlineExceeded")]}
        ),
        S.FAILED,
        "ProgressDeadlineExceeded",
    ),
    (body("Deployment", status=DONE, deletionTimestamp="t", finalizers=["a/b"]), S.TERMINATING, "Terminating"),
    (body("StatefulSet", status=DONE, spec=THREE), S.CURRENT, "Ready"),
    (body("StatefulSet", status={**DONE, "replicas": 2}, spec=THREE), S.IN_PROGRESS, "Scaling"),
    (
        body(
            "StatefulSet",
            status={**DONE, "updatedReplicas": 1, "updateRevision": "b", "currentRevision": "a"},
            spec=THREE,
        ),
        S.IN_PROGRESS,
        "Updating",
    ),
    (
        body(
            "StatefulSet",
            status={**DONE, "updatedReplicas": 1, "updateRevision": "b", "currentRevision": "a"},
            spec={**THREE, "updateStrategy": {"rollingUpdate": {"partition": 2}}},
        ),
        S.CURRENT,
        "Ready",
    ),
    (body("StatefulSet", status={**DONE, "readyReplicas": 0}, spec=THREE), S.IN_PROGRESS, "PodsNotReady"),
    (body("DaemonSet", status=SEEN), S.IN_PROGRESS, "SpecNotObserved"),
    (
        body(
            "DaemonSet", status={**SEEN, "desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 2}
        ),
        S.CURRENT,
        "Ready",
    ),
    (body("ReplicaSet", status={**SEEN, "availableReplicas": 1}), S.CURRENT, "Ready"),
    (body("Job", "batch/v1", status={"active": 1}), S.IN_PROGRESS, "JobRunning"),
    (body("Job", "batch/v1", status={"conditions": [condition("Complete", "True")]}), S.CURRENT, "JobComplete"),
    (body("Job", "batch/v1", status={"conditions": [condition("Failed", "True")]}), S.FAILED, "JobFailed"),
    (body("Job", "batch/v1", spec={"suspend": True}), S.CURRENT, "JobSuspended"),
    (body("PersistentVolumeClaim", "v1"), S.CURRENT, "Unused"),
    (body("PersistentVolumeClaim", "v1", status={"phase": "Bound"}), S.CURRENT, "Bound"),
    (body("PersistentVolumeClaim", "v1", status={"phase": "Lost"}), S.FAILED, "VolumeLost"),
    (body("Service", "v1"), S.CURRENT, "Exists"),
    (body("Service", "v1", spec={"type": "LoadBalancer"}), S.CURRENT, "Exists"),
    (body("PodDisruptionBudget", "policy/v1", status={**SEEN, "desiredHealthy": 2}), S.CURRENT, "Ready"),
    (body("PodDisruptionBudget", "policy/v1"), S.IN_PROGRESS, "SpecNotObserved"),
    (body("Ingress", "networking.k8s.io/v1"), S.CURRENT, "Exists"),
    (body("ConfigMap", "v1"), S.CURRENT, "Exists"),
    (body("Thing", "x.example/v1"), S.CURRENT, "Exists"),
    (body("Thing", "x.example/v1", status={"observedGeneration": -1}), S.IN_PROGRESS, "SpecNotObserved"),
    (
        body("Thing", "x.example/v1", status={**SEEN, "conditions": [condition("Ready", "False", "Slow")]}),
        S.IN_PROGRESS,
        "Slow",
    ),
    (body("Thing", "x.example/v1", status={"conditions": [condition("Ready", "True", "Fine")]}), S.CURRENT, "Fine"),
    (
        body(
            "Thing",
            "x.example/v1",
            status={"conditions": [condition("Ready", "True"), condition("Stalled", "True", "Bad")]},
        ),
        S.FAILED,
        "Bad",
    ),
    (
        body("Thing", "x.example/v1", status={"conditions": [condition("Reconciling", "True", "Busy")]}),
        S.IN_PROGRESS,
        "Busy",
    ),
    (body("Thing", "x.example/v1", status={"conditions": "odd"}), S.CURRENT, "Exists"),
]


@pytest.mark.parametrize(("obj", "state", "reason"), CASES, ids=range(len(CASES)))
def test_state(obj, state, reason):
    found = h.health(obj)
    assert (found.state, found.reason) == (state, reason)
    assert found.message
    assert found.ok is (state is S.CURRENT)


def pod(container=None, *, phase="Pending", conditions=(), node="n", init=None, **status):
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "p", "uid": "pu"},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "reg/i:1"}]},
        "status": {
            "phase": phase,
            "conditions": list(conditions),
            "containerStatuses": [{"name": "c", **container}] if container else [],
            "initContainerStatuses": [init] if init else [],
            **status,
        },
    }


def waiting(reason, message="", **more):
    return {"state": {"waiting": {"reason": reason, "message": message}}, **more}


def event(reason, note, name="p", uid="pu"):
    return {
        "type": "Warning",
        "reason": reason,
        "note": note,
        "regarding": {"name": name, "uid": uid},
        "eventTime": "2026",
    }


UNSCHEDULABLE = condition("PodScheduled", "False", "Unschedulable", "0/3 nodes are available: 3 Insufficient cpu.")
NO_VOLUME = condition("PodScheduled", "False", "Unschedulable", 'persistentvolumeclaim "data" not found')
RUNS = {"state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}, "ready": False}
TROUBLES = [
    (
        pod(waiting("ImagePullBackOff", "Back-off pulling")),
        (),
        "ImagePull",
        "ImagePullBackOff of reg/i:1: Back-off",
        None,
    ),
    (pod(waiting("ErrImagePull", "not found", image="reg/i:2")), (), "ImagePull", "of reg/i:2: not found", None),
    (
        pod(
            waiting(
                "CrashLoopBackOff", restartCount=4, lastState={"terminated": {"exitCode": 3, "message": "no config"}}
            )
        ),
        (),
        "CrashLoop",
        "exit code 3 (no config) each time it is started (4 restarts)",
        ("p", "c"),
    ),
    (
        pod(waiting("CrashLoopBackOff", lastState={"terminated": {"exitCode": 137, "reason": "OOMKilled"}})),
        (),
        "OutOfMemory",
        "more memory than its limit",
        ("p", "c"),
    ),
    (pod({"state": {"terminated": {"exitCode": 1}}}), (), "Exited", "exit code 1", ("p", "c")),
    (
        pod(waiting("CreateContainerConfigError", 'secret "x" not found')),
        (),
        "ContainerConfig",
        'secret "x" not found',
        None,
    ),
    (pod(conditions=[UNSCHEDULABLE], node=""), (), "Unschedulable", "3 Insufficient cpu", None),
    (pod(node=""), (), "Starting", "has not been given a node yet", None),
    (pod(conditions=[NO_VOLUME], node=""), (), "VolumePending", 'persistentvolumeclaim "data"', None),
    (
        pod(waiting("ContainerCreating")),
        [event("FailedMount", "timed out")],
        "VolumePending",
        "FailedMount: timed out",
        None,
    ),
    (pod(waiting("ContainerCreating")), [event("FailedMount", "x", uid="old")], "Starting", "is being started", None),
    (
        pod(RUNS, phase="Running"),
        [event("Unhealthy", "Readiness probe failed: 503")],
        "ProbeFailing",
        "503",
        ("p", "c"),
    ),
    (pod(RUNS, phase="Running"), (), "ProbeFailing", "runs since 2026-01-01T00:00:00Z", ("p", "c")),
    (pod(phase="Failed", reason="Evicted", message="low on disk"), (), "Evicted", "low on disk", None),
    (pod(init={"name": "i", "state": {"terminated": {"exitCode": 2}}}), (), "Exited", "container i ended", ("p", "i")),
]


@pytest.mark.parametrize(("obj", "events", "reason", "words", "log"), TROUBLES, ids=range(len(TROUBLES)))
def test_a_pod_says_why(obj, events, reason, words, log):
    found = pod_trouble.trouble(obj, events)
    assert found is not None
    assert found.reason == reason
    assert words in found.message
    assert found.wants_log == log


def test_a_ready_or_ended_pod_has_no_trouble():
    assert pod_trouble.trouble(pod(phase="Running", conditions=[condition("Ready", "True")])) is None
    assert pod_trouble.trouble(pod(phase="Succeeded")) is None


def test_a_workload_tells_of_its_worst_pod():
    deployment = body("Deployment", status={**DONE, "availableReplicas": 1}, spec=THREE)
    found = h.health(deployment, [pod(RUNS, phase="Running"), pod(waiting("ErrImagePull", "no such tag"))])
    assert (found.state, found.reason) == (S.IN_PROGRESS, "ImagePull")
    assert found.message.startswith("1 of 3 replicas are ready; pod p, container c: ErrImagePull")


def test_what_a_container_said_itself_can_be_left_out():
    """For readers who may not read the pod; how it ended is Kubernetes' own word."""
    said = {"terminated": {"exitCode": 3, "message": "password is hunter2"}}
    quiet = pod_trouble.without_words(pod({"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": said}))
    ended = pod_trouble.without_words(pod({"state": said}))
    well = pod({"state": {"running": {}}})

    assert "exit code 3" in pod_trouble.trouble(quiet).message
    assert "hunter2" not in pod_trouble.trouble(quiet).message
    assert "hunter2" not in pod_trouble.trouble(ended).message
    assert pod_trouble.without_words(well) is well
