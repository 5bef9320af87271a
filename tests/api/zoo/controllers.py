"""What goes on around a release: Jobs end, Deployments come up, autoscalers scale.

Where no controller manager runs, this says what its controllers would; where one runs, it says of pods what a kubelet
would, and of Jobs what their manager would if that is another. A pod that is meant has the nodeSelector `zoo: nowhere`,
so that no real node takes it; the label `zoo` of the pod, or of the template that it would be made from, is `fails` or
`hangs` if it is not to go well.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Any

from moorage.api import builtin, conditions, meta
from moorage.kube import errors

from . import world

Body = dict[str, Any]


class Controllers:
    """Listens to a world, and writes statuses there."""

    def __init__(self, around: world.World, *, alone: bool) -> None:
        self._client, self._world = around.client, around
        self._alone = alone
        acts = {"Pod": self._pod, "Job": self._job}
        if alone:
            acts |= {
                "Deployment": self._workload,
                "StatefulSet": self._workload,
                "DaemonSet": self._daemon_set,
                "PodDisruptionBudget": self._budget,
                "HorizontalPodAutoscaler": self._autoscaler,
                "PersistentVolumeClaim": self._claim,
            }
        self._acts: dict[str, Callable[[meta.Resource, Body], Awaitable[None]]] = acts
        self._tasks: set[asyncio.Task[None]] = set()
        around.listeners.append(self._heard)

    async def stop(self) -> None:
        """No write more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _heard(self, resource: meta.Resource, body: Body) -> None:
        act = self._acts.get(resource.kind)
        if act is not None and ("deletionTimestamp" not in body["metadata"] or resource == builtin.VOLUME_CLAIM):
            task = asyncio.create_task(self._act(act, resource, body))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _act(
        self, act: Callable[[meta.Resource, Body], Awaitable[None]], resource: meta.Resource, body: Body
    ) -> None:
        with contextlib.suppress(errors.NotFound, errors.Conflict):  # it is gone, or there is news of it
            await act(resource, body)

    async def _say(self, resource: meta.Resource, body: Body, status: Body) -> None:
        before = body.get("status", {})
        if any(before.get(key) != value for key, value in status.items()):
            change = {"metadata": {"uid": body["metadata"]["uid"]}, "status": status}
            where = (resource, body["metadata"]["namespace"], body["metadata"]["name"])
            await self._client.patch_merge(*where, change, field_manager="zoo", subresource="status")

    async def _pod(self, resource: meta.Resource, body: Body) -> None:
        if body["spec"].get("nodeSelector", {}).get("zoo") != "nowhere" or body["status"].get("phase") != "Pending":
            return
        fate = _fate(body["metadata"])
        if fate == "hangs":
            return
        ends = body["spec"].get("restartPolicy") != "Always"
        phase = ("Failed" if fate == "fails" else "Succeeded") if ends else "Running"
        ready = {"type": "Ready", "status": "False" if ends else "True", "lastTransitionTime": _now()}
        await self._say(resource, body, {"phase": phase, "conditions": [ready]})

    async def _job(self, resource: meta.Resource, body: Body) -> None:
        spec, fate = body["spec"], _fate(body["spec"]["template"]["metadata"])
        if not self._alone and "managedBy" not in spec:
            return
        if not body["status"].get("conditions") and not spec.get("suspend") and fate != "hangs":
            await self._say(resource, body, _ended("Failed" if fate == "fails" else "Complete"))
        elif body["status"].get("conditions") and (lasts := spec.get("ttlSecondsAfterFinished")) is not None:
            await asyncio.sleep(lasts)
            where = (resource, body["metadata"]["namespace"], body["metadata"]["name"])
            await self._client.delete(*where, propagation="Background", uid=body["metadata"]["uid"])

    async def _workload(self, resource: meta.Resource, body: Body) -> None:
        wanted = body["spec"].get("replicas", 1)
        status = {"observedGeneration": body["metadata"]["generation"]}
        if body["spec"].get("paused") and "replicas" not in body["status"]:
            wanted = 0
        if _fate(body["spec"]["template"]["metadata"]) == "":
            status |= dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), wanted)
        await self._say(resource, body, status)

    async def _daemon_set(self, resource: meta.Resource, body: Body) -> None:
        numbers = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
        status = {"observedGeneration": body["metadata"]["generation"], **dict.fromkeys(numbers, 0)}
        await self._say(resource, body, status)

    async def _budget(self, resource: meta.Resource, body: Body) -> None:
        numbers = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
        status = {"observedGeneration": body["metadata"]["generation"], **dict.fromkeys(numbers, 0)}
        await self._say(resource, body, status | {"desiredHealthy": body["spec"].get("minAvailable", 0)})

    async def _claim(self, resource: meta.Resource, body: Body) -> None:
        if "deletionTimestamp" in body["metadata"]:
            where = (resource, body["metadata"]["namespace"], body["metadata"]["name"])
            free = {"metadata": {"uid": body["metadata"]["uid"], "finalizers": None}}
            await self._client.patch_merge(*where, free, field_manager="zoo")
        elif not body["spec"].get("storageClassName"):  # one with a class waits for its first consumer
            await self._say(resource, body, {"phase": "Bound"})

    async def _autoscaler(self, _: meta.Resource, body: Body) -> None:
        target, least = body["spec"]["scaleTargetRef"], body["spec"].get("minReplicas", 1)
        where = (self._world.resource(target["kind"]), body["metadata"]["namespace"], target["name"])
        if (await self._client.get(*where))["spec"]["replicas"] < least:
            change = {"spec": {"replicas": least}}
            await self._client.patch_merge(*where, change, field_manager="autoscaler", subresource="scale")


def _fate(metadata: Body) -> str:
    return str(metadata.get("labels", {}).get("zoo", ""))


def _ended(how: str) -> Body:
    before = "SuccessCriteriaMet" if how == "Complete" else "FailureTarget"
    reason = "CompletionsReached" if how == "Complete" else "BackoffLimitExceeded"
    said = {"status": "True", "reason": reason, "message": "as the zoo wants it", "lastTransitionTime": _now()}
    status: Body = {"startTime": _now(), "conditions": [{"type": before, **said}, {"type": how, **said}]}
    return status | ({"completionTime": _now(), "succeeded": 1} if how == "Complete" else {"failed": 1})


def _now() -> str:
    return conditions.timestamp(time.time())
