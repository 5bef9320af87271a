"""From an object to the first cause, however far away."""

from __future__ import annotations

import pytest

from moorage.children import diagnosis, health, object_events

QUOTA = 'pods "web-2" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2'
NO_CLASS = 'storageclass.storage.k8s.io "nope" not found'


def obj(kind, name, *, status=None, spec=None, **metadata):
    return {
        "apiVersion": "apps/v1" if kind in ("Deployment", "StatefulSet") else "v1",
        "kind": kind,
        "metadata": {"name": name, "uid": f"uid-{name}", "generation": 1, **metadata},
        "spec": spec or {},
        "status": status or {},
    }


def condition(type_, status, reason="", message=""):
    return {"type": type_, "status": status, "reason": reason, "message": message}


def pod(name="web-0", *conditions, claim="", **metadata):
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}] if claim else []
    runs = {"name": "c", "ready": True, "state": {"running": {"startedAt": "t"}}}
    status = {"phase": "Running", "conditions": list(conditions), "containerStatuses": [runs]}
    return obj("Pod", name, status=status, spec={"nodeName": "n1", "volumes": volumes}, **metadata)


def unplaced(claim="data-web-0", words="pod has unbound immediate PersistentVolumeClaims"):
    found = pod("web-0", condition("PodScheduled", "False", "Unschedulable", words), claim=claim)
    return {**found, "spec": {**found["spec"], "nodeName": ""}, "status": {**found["status"], "phase": "Pending"}}


def event(about, reason, words, at="2026-01-01T00:00:05Z"):
    where = {"kind": about["kind"], "name": about["metadata"]["name"], "uid": about["metadata"]["uid"]}
    return {"type": "Warning", "reason": reason, "note": words, "regarding": where, "deprecatedLastTimestamp": at}


SET = obj("StatefulSet", "web", status={"observedGeneration": 1, "replicas": 2}, spec={"replicas": 3})
CLAIM = obj("PersistentVolumeClaim", "data-web-0", spec={"storageClassName": "nope"}, status={"phase": "Pending"})
GONE = {"deletionTimestamp": "2026-01-01T00:00:30Z"}
READY = (condition("Ready", "True"), condition("ContainersReady", "True"))
SILENCED = (condition("Ready", "False"), condition("ContainersReady", "True"))
GATED = (condition("Ready", "False", "ReadinessGatesNotReady", "gate"), condition("ContainersReady", "True"))
TAINTED = condition("DisruptionTarget", "True", "DeletionByTaintManager")
CASES = {
    "a quota, by an event": (SET, {"events": [event(SET, "FailedCreate", QUOTA)]}, "Quota", "exceeded quota: small"),
    "a policy, by a condition": (
        obj("Deployment", "web", status={"conditions": [condition("ReplicaFailure", "True", message="violates it")]}),
        {},
        "Denied",
        "violates it",
    ),
    "a quota is named before any pod": (
        SET,
        {"events": [event(SET, "FailedCreate", QUOTA)], "pods": [pod("web-0", *SILENCED, creationTimestamp="2025")]},
        "Quota",
        "can't be created",
    ),
    "a pod that came later has overtaken it": (
        SET,
        {"events": [event(SET, "FailedCreate", QUOTA)], "pods": [pod("web-0", creationTimestamp="2026-02")]},
        "Starting",
        "pod web-0",
    ),
    "a missing class, by the claim's event": (
        SET,
        {"pods": [unplaced()], "events": [event(CLAIM, "ProvisioningFailed", NO_CLASS)]},
        "NoStorageClass",
        f"claim data-web-0: {NO_CLASS}",
    ),
    "no class and no default": (
        SET,
        {"pods": [unplaced()], "claims": [{**CLAIM, "spec": {}}]},
        "NoStorageClass",
        "the cluster has no default one",
    ),
    "a class that takes its time": (
        SET,
        {"pods": [unplaced()], "claims": [CLAIM]},
        "VolumePending",
        "waits for storage class nope",
    ),
    "a claim that nobody provisions": (
        SET,
        {"pods": [unplaced()], "claims": [{**CLAIM, "spec": {"storageClassName": ""}}]},
        "VolumePending",
        "a volume that somebody makes",
    ),
    "a lost volume": (
        SET,
        {"pods": [unplaced()], "claims": [{**CLAIM, "status": {"phase": "Lost"}}]},
        "VolumeLost",
        "",
    ),
    "a claim that is being deleted": (
        SET,
        {
            "pods": [unplaced()],
            "claims": [obj("PersistentVolumeClaim", "data-web-0", **GONE, finalizers=["kubernetes.io/pvc-protection"])],
        },
        "FinalizerLeft",
        "held by pod web-0, kubernetes.io/pvc-protection",
    ),
    "no place, whatever the claim": (
        SET,
        {"pods": [unplaced(words="0/3 nodes: Insufficient cpu")], "claims": [{**CLAIM, "status": {"phase": "Bound"}}]},
        "Unschedulable",
        "Insufficient cpu",
    ),
    "a finalizer": (
        SET,
        {"pods": [{**pod(**GONE, finalizers=["x.example/hold"]), "status": {"phase": "Succeeded"}}]},
        "FinalizerLeft",
        "is held by x.example/hold",
    ),
    "a pod that ends": (SET, {"pods": [pod("web-0", *READY, **GONE)]}, "Ending", "until 2026-01-01T00:00:30Z"),
    "a dead node, by the pod": (SET, {"pods": [pod("web-0", *SILENCED)]}, "NodeDown", "node n1 does not answer"),
    "a dead node, when it is evicted": (
        SET,
        {"pods": [pod("web-0", *READY, TAINTED, **GONE)]},
        "NodeDown",
        "only it can say that the containers have ended",
    ),
    "a dead node, by the node": (
        SET,
        {
            "pods": [pod("web-0", *SILENCED)],
            "nodes": [obj("Node", "n1", status={"conditions": [condition("Ready", "Unknown", message="stopped")]})],
        },
        "NodeDown",
        "node n1 is not ready: stopped",
    ),
    "a node that is gone": (
        SET,
        {"pods": [pod("web-0", *READY)], "nodes": [obj("Node", "n2")]},
        "NodeDown",
        "node n1 is gone",
    ),
    "a gate is no dead node": (SET, {"pods": [pod("web-0", *GATED)]}, "NotReady", "gate"),
}


@pytest.mark.parametrize(("it", "around", "reason", "words"), CASES.values(), ids=CASES)
def test_the_cause_is_named(it, around, reason, words):
    found = diagnosis.cause(it, **around)

    assert found is not None
    assert reason == found.reason
    assert words in found.message


def test_a_pod_that_cant_end_is_a_persons_business_by_the_taint_that_says_so():
    """One that is only silent is told to go by Kubernetes, so nobody need do anything yet."""
    silent = diagnosis.cause(SET, pods=[pod("web-0", *SILENCED)])
    stuck = diagnosis.cause(SET, pods=[pod("web-0", *SILENCED, TAINTED, **GONE)])

    assert silent.fix == ""
    assert stuck.fix.startswith("bring node n1 back; or, once it is certain that it is off,")
    assert stuck.fix.endswith("kubectl taint node n1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")
    assert stuck.fix == health.health(SET, [pod("web-0", *SILENCED, TAINTED, **GONE)]).fix


def test_a_deployment_has_another_pod_for_the_one_that_cant_end():
    """So what keeps it is the other's trouble, if it has any."""
    deployment = obj("Deployment", "web", status={"observedGeneration": 1}, spec={"replicas": 1})
    stuck = pod("web-a", *READY, TAINTED, **GONE)

    assert "Unschedulable" == diagnosis.cause(deployment, pods=[stuck, unplaced(words="0/2 nodes fit")]).reason
    assert "NodeDown" == diagnosis.cause(SET, pods=[stuck, unplaced(words="0/2 nodes fit")]).reason
    assert "NodeDown" == diagnosis.cause(deployment, pods=[stuck]).reason


def test_of_a_ready_pod_on_a_node_that_answers_nothing_is_said():
    nodes = [obj("Node", "n1", status={"conditions": [condition("Ready", "True")]})]

    assert diagnosis.cause(SET, pods=[pod("web-0", *READY)], nodes=nodes) is None
    assert diagnosis.cause(obj("PersistentVolumeClaim", "c", status={"phase": "Bound"})) is None


def test_what_is_being_deleted_says_what_holds_it():
    lost = health.health(pod("once", *READY, TAINTED, **GONE))
    held = health.health(obj("PersistentVolumeClaim", "c", **GONE, finalizers=["f"]), [pod("p", claim="c")])
    plain = health.health({**SET, "metadata": {**SET["metadata"], **GONE}}, [pod("p")])

    assert (health.State.TERMINATING, "NodeDown") == (lost.state, lost.reason)
    assert held.message.endswith("claim c is being deleted and is held by pod p, f")
    assert (health.State.TERMINATING, "Terminating") == (plain.state, plain.reason)


@pytest.mark.parametrize(
    "it",
    [
        obj("StatefulSet", "web", spec={"replicas": 3}),
        obj("ReplicaSet", "web", spec={"replicas": 1}),
        obj("DaemonSet", "web", status={"desiredNumberScheduled": 1}),
        obj("Job", "web", spec={"parallelism": 1}),
    ],
    ids=lambda it: it["kind"],
)
def test_a_pod_that_came_within_the_second_has_overtaken_its_refusal(it):
    """Times are in whole seconds, and a controller tries again after some milliseconds."""
    at = "2026-01-01T00:00:05Z"
    refused = [event(it, "FailedCreate", QUOTA, at)]

    assert "Starting" == diagnosis.cause(it, events=refused, pods=[pod("web-2", creationTimestamp=at)]).reason
    assert "Quota" == diagnosis.cause(it, events=refused, pods=[]).reason


@pytest.mark.parametrize("kind", ["StatefulSet", "ReplicaSet", "DaemonSet", "Job"])
def test_a_refusal_within_the_second_of_another_pod_is_told(kind):
    at = "2026-01-01T00:00:05Z"
    it = obj(
        kind, "web", spec={"replicas": 2, "parallelism": 2}, status={"desiredNumberScheduled": 2}, creationTimestamp=at
    )
    refused = [event(it, "FailedCreate", QUOTA, at)]
    leaving = pod("web-3", creationTimestamp=at, deletionTimestamp=at)

    assert "Quota" == diagnosis.cause(it, events=refused, pods=[pod("web-1", creationTimestamp=at), leaving]).reason


def test_events_of_others_and_of_earlier_incarnations_are_not_heard():
    other = {**SET, "metadata": {**SET["metadata"], "uid": "old"}}
    alike = {**SET, "kind": "Job"}

    assert (
        diagnosis.cause(SET, events=[event(other, "FailedCreate", QUOTA), event(alike, "FailedCreate", QUOTA)]) is None
    )


def test_a_claim_that_no_pod_uses_is_waited_for_by_nobody():
    """Bound by its first consumer, it would keep a release from ever being ready."""
    used = unplaced("data-web-0")
    ended = {**used, "status": {"phase": "Succeeded"}}

    assert "Unused" == health.health(CLAIM, diagnosis.pods_of(CLAIM, [ended, pod("other")])).reason
    assert "VolumePending" == health.health(CLAIM, diagnosis.pods_of(CLAIM, [used])).reason
    assert "NoStorageClass" == health.health(CLAIM, [used], [event(CLAIM, "ProvisioningFailed", NO_CLASS)]).reason


def test_pods_are_an_object_s_by_selector_or_owner():
    selected = {**SET, "spec": {"selector": {"matchLabels": {"app": "web"}}}}
    mine = pod("a", labels={"app": "web", "x": "y"})
    owned = pod("b", ownerReferences=[{"uid": "uid-web"}])

    assert [mine, owned] == diagnosis.pods_of(selected, [mine, owned, pod("c", labels={"app": "db"}), pod("d")])


def test_a_job_that_removes_itself():
    assert health.removes_itself({"apiVersion": "batch/v1", "kind": "Job", "spec": {"ttlSecondsAfterFinished": 0}})
    assert not health.removes_itself({"apiVersion": "batch/v1", "kind": "Job", "spec": {}})
    assert not health.removes_itself({"apiVersion": "x/v1", "kind": "Job", "spec": {"ttlSecondsAfterFinished": 0}})


def test_what_a_probe_answered_can_be_left_out():
    """For readers who may not read the pod."""
    quota, probe = event(SET, "FailedCreate", QUOTA), event(pod(), "Unhealthy", "Readiness probe failed: hunter2")

    assert (quota,) == object_events.without_words([quota, probe])
