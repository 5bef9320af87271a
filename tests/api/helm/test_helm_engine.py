"""What a helm engine sees of a release's objects on a real API server, whose controllers the tests play."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from moorage.api import comparison, conditions, meta
from moorage.helm import engine, observation, release_request, release_status
from moorage.helm.parsing import aside
from moorage.kube import errors
from moorage.kube.informers import informer
from moorage.runtime import decision, freshness, kind
from moorage.runtime import gate as runtime_gate
from tests.api.faults import waiting

pytestmark = pytest.mark.api

SERVICE_ACCOUNT = meta.Resource("", "v1", "ServiceAccount", "serviceaccounts")

JOBS = """apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  managedBy: example.com/test
  ttlSecondsAfterFinished: 5
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: stays}
spec:
  managedBy: example.com/test
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}
"""
WORKLOAD = """apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  serviceName: web
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, image: i}]
      volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {storageClassName: nope, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: nobody}
spec: {minAvailable: 1, selector: {matchLabels: {nobody: here}}}
---
apiVersion: v1
kind: Service
metadata: {name: balanced}
spec: {type: LoadBalancer, ports: [{port: 80}]}
"""
HOOKED = """apiVersion: batch/v1
kind: Job
metadata: {name: migrate, annotations: {helm.sh/hook: pre-install}}
spec:
  managedBy: example.com/test
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: "reg/none:1"}]}}
"""
JOB = "/apis/batch/v1/namespaces/{}/jobs"
POD = "/api/v1/namespaces/{}/pods"


class Stage:
    """An engine beside a real helm, and one release."""

    def __init__(self, api, helm, client, namespace) -> None:
        self.api, self.helm, self.namespace = api, helm, namespace
        self.informers = informer.Informers(client)
        self.world = kind.World(client, self.informers, runtime_gate.Gate(), lambda *_, **__: None)
        self.work = aside.Aside()
        self.engine = self.another_engine()
        self.target = observation.Target("r", namespace)
        self.started = conditions.timestamp(time.time())
        self.request = release_request.Request(
            key="it",
            owner=meta.ObjectRef("example.com/v1", "Thing", namespace, "it", "u"),
            target=self.target,
            policy=observation.Policy(),
            wanted=observation.Wanted("app", "", ""),
            status=release_status.HelmStatus(attempt=release_status.Attempt(started=self.started)),
            reconcile_at="",
            generation=1,
            leaving=False,
            values=None,
        )

    def another_engine(self) -> engine.Engine:
        """As after a restart of the operator."""
        return engine.Engine(
            self.world,
            helm=self.helm,
            store=None,
            chart_source=None,
            request=lambda it: it,
            user=lambda _: "",
            work=self.work,
            place=str,
        )

    def look(self) -> observation.ReleaseSeen:
        return self.engine.observe(self.request, time.time(), entitled=True)

    def children(self) -> dict[str, observation.ChildSeen]:
        """By name; empty while they are not looked at."""
        return {child.ref.name: child for child in freshness.value_of(self.look().children) or ()}

    async def until(self, good: Callable[[], Any]) -> Any:
        """What it returns once it is true; looks as often as a kind may."""
        for _ in range(9000):
            if found := good():
                return found
            await asyncio.sleep(0.01)
        raise AssertionError(f"it stayed at {self.look()}")

    async def post(self, path: str, body: dict[str, Any], **status_: Any) -> None:
        """An object, with a status of its own."""
        where = path.format(self.namespace)
        await self.api.call("POST", where, body)
        if status_:
            await self.api.merge(f"{where}/{body['metadata']['name']}", {"status": status_}, "kubelet", "status")

    async def warn(self, kind_: str, name: str, reason: str, words: str) -> None:
        """An event of a controller, as of now."""
        now = conditions.timestamp(time.time())
        body = {
            "metadata": {"name": f"{name}.{reason.lower()}"},
            "type": "Warning",
            "reason": reason,
            "message": words,
            "involvedObject": {"kind": kind_, "name": name, "namespace": self.namespace},
            "lastTimestamp": now,
        }
        await self.api.call("POST", f"/api/v1/namespaces/{self.namespace}/events", body)


@pytest.fixture
async def stage(api, helm, client, namespace) -> AsyncIterator[Stage]:
    made = Stage(api, helm, client, namespace)
    with contextlib.suppress(errors.AlreadyExists):  # where a controller manager runs; pods need it
        body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        await client.create(SERVICE_ACCOUNT, namespace, body, field_manager="test")
    yield made
    await made.world.tasks.stop(10)
    await made.engine.stop()
    await made.work.stop()
    await made.informers.stop()


async def test_a_job_that_removed_itself_is_done_and_never_missing(stage, make_chart):
    """Neither for a moment after it went, nor after a restart of the operator; one without a TTL is made anew."""
    await stage.helm.upgrade_install("r", stage.namespace, make_chart({"templates/a.yaml": JOBS}), {})
    await stage.until(lambda: stage.children().get("once"))
    for name in ("once", "stays"):
        await stage.api.call("DELETE", f"{JOB.format(stage.namespace)}/{name}", propagationPolicy="Background")
    looks: list[observation.ChildSeen] = []

    def both_gone() -> bool:
        there = stage.children()
        looks.extend([there["once"]] if there else [])
        return bool(there) and there["once"].ready and there["stays"].drift == (comparison.THE_OBJECT,)

    await stage.until(both_gone)
    await stage.engine.stop()
    stage.engine = stage.another_engine()
    await stage.until(both_gone)

    assert {()} == {look.drift for look in looks}
    assert {"", "JobRunning"} >= {look.reason for look in looks}


async def test_a_job_that_failed_and_removed_itself_is_not_done(stage, make_chart):
    await stage.helm.upgrade_install("r", stage.namespace, make_chart({"templates/a.yaml": JOBS}), {})
    await stage.warn("Job", "once", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    await stage.api.call("DELETE", f"{JOB.format(stage.namespace)}/once", propagationPolicy="Background")
    failed = await stage.until(lambda: (it := stage.children().get("once")) and it.reason == "JobFailed" and it)

    assert "it has failed, and has removed itself: Job has reached the specified backoff limit" == failed.message
    assert () == failed.drift


async def test_what_nobody_waits_for_is_ready(stage, make_chart):
    """A claim without a consumer, a Service without a balancer, and a budget that matches nothing."""
    unused = WORKLOAD.replace("claimName: data", "claimName: another")
    await stage.helm.upgrade_install("r", stage.namespace, make_chart({"templates/a.yaml": unused}), {})
    budget = f"/apis/policy/v1/namespaces/{stage.namespace}/poddisruptionbudgets/nobody"
    counted = {"observedGeneration": 1, "desiredHealthy": 1, "currentHealthy": 0, "expectedPods": 0}
    await stage.api.merge(budget, {"status": {**counted, "disruptionsAllowed": 0}}, "kcm", "status")
    expected = {"data": True, "balanced": True, "nobody": True, "web": False}

    assert await stage.until(lambda: expected == {name: it.ready for name, it in stage.children().items()})


async def test_a_cause_two_objects_away_is_named(stage, make_chart):
    """A quota that lets no pod be made; then a pod whose claim names a class that is not there."""
    none: dict[str, Any] = {"hard": {"pods": "0"}}
    quotas = f"/api/v1/namespaces/{stage.namespace}/resourcequotas"
    await stage.post(quotas, {"metadata": {"name": "small"}, "spec": none}, **none, used={"pods": "0"})
    await stage.helm.upgrade_install("r", stage.namespace, make_chart({"templates/a.yaml": WORKLOAD}), {})
    web = f"/apis/apps/v1/namespaces/{stage.namespace}/statefulsets/web"
    await stage.api.merge(web, {"status": {"observedGeneration": 1, "replicas": 0}}, "kcm", "status")
    await stage.warn("StatefulSet", "web", "FailedCreate", "pods web-0 is forbidden: exceeded quota: small")
    quota = await stage.until(lambda: (it := stage.children().get("web")) and it.reason == "Quota" and it)
    pod = {
        "metadata": {"name": "web-0", "labels": {"app": "web"}},
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
        },
    }
    await asyncio.sleep(1.1)  # times of events are in seconds
    unbound = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "unbound claims"}
    await stage.warn("PersistentVolumeClaim", "data", "ProvisioningFailed", 'storageclass "nope" not found')
    await stage.api.call("DELETE", f"{quotas}/small")
    where = f"{POD.format(stage.namespace)}/web-0"

    async def waits_for_its_claim() -> bool:
        """Where a StatefulSet's controller runs, it makes the pod, or makes anew what it finds there."""
        try:
            await stage.api.call("POST", POD.format(stage.namespace), pod)
        except AssertionError as error:  # it is there, or the server has not heard that the quota is gone
            if ": 409 " not in str(error) and "exceeded quota: small" not in str(error):
                raise
        try:
            await stage.api.merge(where, {"status": {"phase": "Pending", "conditions": [unbound]}}, "kubelet", "status")
        except AssertionError as error:
            if ": 404 " not in str(error):
                raise
            return False
        return True

    await waiting.until(waits_for_its_claim)
    stage.engine._lookups.around.refresh(stage.namespace)
    class_ = await stage.until(lambda: (it := stage.children()) and it["web"].reason == "NoStorageClass" and it)

    assert quota.message.startswith("0 of 1 replicas exist; its pods can't be created: ")
    assert "exceeded quota: small" in quota.message
    assert "claim data: storageclass" in class_["web"].message
    assert '"nope" not found' in class_["web"].message
    assert "NoStorageClass" == class_["data"].reason


async def test_while_helm_runs_its_hook_is_looked_at(stage, make_chart):
    """Helm itself says nothing before its time is over; it is told as well while a record that changed is read."""
    chart = make_chart({"templates/a.yaml": HOOKED})

    async def work() -> decision.Outcome:
        await stage.helm.upgrade_install("r", stage.namespace, chart, {}, timeout=60)
        return decision.Ok()

    stage.world.tasks.start(stage.target.lane, "release.upgrade", "a", work, key="it", deadline=60)
    labels = {"batch.kubernetes.io/job-name": "migrate"}
    pod = {
        "metadata": {"name": "migrate-x", "labels": labels},
        "spec": {"containers": [{"name": "c", "image": "reg/none:1"}], "schedulerName": "nobody"},
    }
    pulls = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    container = {"name": "c", "image": "reg/none:1", "imageID": "", "ready": False, "restartCount": 0, "state": pulls}
    await stage.post(POD, pod, phase="Pending", containerStatuses=[container])
    (hook,) = await stage.until(lambda: [it for it in stage.look().hooks if "being started" not in str(it)])

    assert "hook Job migrate: pod migrate-x, container c: ImagePullBackOff of reg/none:1: no such image" == str(hook)

    record = f"/api/v1/namespaces/{stage.namespace}/secrets/sh.helm.release.v1.r.v1"
    await stage.api.merge(record, {"metadata": {"annotations": {"touched": "x"}}}, "test")
    looks: list[observation.ReleaseSeen] = []

    def was_read_anew() -> bool:
        looks.append(stage.look())
        unread = [isinstance(look.record, freshness.Failed) for look in looks]
        return any(unread) and not unread[-1]

    await stage.until(was_read_anew)
    assert {hook} == {it for look in looks for it in look.hooks}
    assert all(look.hooks for look in looks)
