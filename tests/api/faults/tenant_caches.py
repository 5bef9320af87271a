"""A tenant with an XSLD cache: the cache and its grids, their status, objects with or without the cache's label.

And members of it, whose answers are lies. A pod that is the cache's own says where they are asked.
"""

from __future__ import annotations

import contextlib
from typing import Any

from moorage.api import builtin, meta
from moorage.kube import errors
from moorage.operators.xsld import names
from tests.api.xsld import kubelet

from . import hostile_members, proxy, tenant
from .tenant import Body

NAME = "cache"
IMAGE = "ibmcom/xsld:8613"


class CacheTenant(tenant.Tenant):
    """Its cache is called NAME."""

    binding = "moorage-xsld"
    owned = (
        builtin.STATEFUL_SET,
        builtin.SERVICE,
        builtin.CONFIG_MAP,
        builtin.SECRET,
        builtin.DISRUPTION_BUDGET,
        builtin.VOLUME_CLAIM,
        builtin.POD,
    )

    _network: kubelet.Network
    _liar: hostile_members.Member
    _next_door: hostile_members.Member

    async def begin(self, certificate: proxy.Certificate, stack: contextlib.AsyncExitStack) -> None:
        """See `tenant.Tenant`."""
        self._network = kubelet.Network()
        stack.callback(self._network.close)
        here, there = self._network.address(), self._network.address()
        elsewhere = [there, "kubernetes.default.svc", "cache-0.cache", *self._others]
        self._next_door = hostile_members.Member(NAME, there, [here], self._draw)
        self._liar = hostile_members.Member(NAME, here, elsewhere, self._draw)
        for each in (self._next_door, self._liar):
            await stack.enter_async_context(each.serving(certificate))
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        with contextlib.suppress(
            errors.AlreadyExists
        ):  # without it there are no pods; a controller makes it, if it runs
            await self._client.create(tenant.ACCOUNT, self.namespace, account, field_manager="tenant")
        await self._answering()

    @property
    def answers(self) -> int:
        """See `tenant.Tenant`."""
        return len(self._liar.asked)

    def astray(self) -> list[str]:
        """See `tenant.Tenant`."""
        return [f"asked where a member's answer points: {what}" for what in self._next_door.asked]

    def alterations(self) -> tuple[tuple[int, tenant.Alteration], ...]:
        """See `tenant.Tenant`."""
        return (
            (8, self._object),
            (4, self._workload),
            (5, self._foreign),
            (3, self._pod),
            (6, self._answering),
            (3, self._cache_spec),
            (3, self._cache_status),
            (2, self._cache_notes),
            (2, self._dependent),
            (2, self._binding),
            (1, self._event),
        )

    def _labels(self) -> Body:
        return self._draw.choice([{names.APP: NAME}, {names.APP: ""}, {names.APP: "another"}, {}])

    def _member(self) -> str:
        numbers = ["0", "1", "7", "-1", "00", "99999999999999999999", "x", ""]
        return f"{NAME}-{self._draw.choice(numbers)}".rstrip("-")

    async def _workload(self) -> str:
        """The StatefulSet, whose pods and claims are the members'."""
        draw = self._draw
        template: Body = {"metadata": {"labels": draw.choice([{names.APP: NAME, "x": "y"}, {names.APP: NAME}])}}
        changes: list[Body] = [
            # 2**31 - 1 would cost the controller-manager 16 GiB, as it makes room for a pod pointer each
            {"spec": {"replicas": draw.choice([0, 1, 7, 60])}},
            {"spec": {"template": template}},
            {"spec": {"template": {"spec": {"serviceAccountName": draw.choice(["default", "x"])}}}},
            {"spec": {"template": {"spec": {"hostNetwork": True, "nodeName": "x"}}}},
            {"metadata": {"labels": {names.APP: draw.choice(["another", None])}}},
            {"metadata": {"annotations": {"moorage.dev/applied": draw.choice(["x", None])}}},
        ]
        change = draw.choice(changes)
        await self._patch(builtin.STATEFUL_SET, NAME, change)
        return f"StatefulSet: {change}"

    async def _foreign(self) -> str:
        """Something that bears the cache's label, or its members' names, and is none of its objects."""
        draw = self._draw
        resource = draw.choice([builtin.CONFIG_MAP, builtin.SECRET, builtin.SERVICE, builtin.VOLUME_CLAIM, builtin.POD])
        claims = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
        specs: dict[meta.Resource, Body] = {
            builtin.SERVICE: {"spec": {"ports": [{"port": 80}], "selector": {names.APP: NAME}}},
            builtin.VOLUME_CLAIM: {"spec": {**claims, "storageClassName": "none"}},
            builtin.POD: {
                "spec": {"containers": [{"name": "main", "image": "none"}], "nodeSelector": {"zoo": "nowhere"}}
            },
        }
        name = draw.choice([self._member(), f"{names.VOLUME}-{self._member()}", f"foreign-{draw.randrange(10**6)}"])
        owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": NAME, "uid": "no-uid", "controller": True}
        metadata: Body = {"name": name, "labels": self._labels()}
        if draw.random() < 0.3:
            metadata["ownerReferences"] = [owner]
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
        await self._client.create(resource, self.namespace, body | specs.get(resource, {}), field_manager="tenant")
        return f"foreign {resource.kind} {name}: {metadata['labels']}"

    async def _pod(self) -> str:
        """What a pod says of itself."""
        draw = self._draw
        pods = (await self._client.list(builtin.POD, self.namespace)).items
        if not pods:
            return "pod: none"
        name = draw.choice(pods)["metadata"]["name"]
        ready = {"type": draw.choice(["Ready", "x"]), "status": draw.choice(["True", "x"])}
        status: Body = draw.choice(
            [
                {"podIP": draw.choice(["127.0.0.1", "169.254.169.254", "0.0.0.0", "::1"])},
                {"phase": draw.choice(["Running", "Failed", "Succeeded"]), "conditions": [ready]},
                {
                    "containerStatuses": [
                        {"name": "main", "ready": True, "restartCount": 2**31 - 1, "image": "", "imageID": ""}
                    ]
                },
            ]
        )
        if "podIP" in status:
            status["podIPs"] = [{"ip": status["podIP"]}]
        await self._patch(builtin.POD, name, {"status": status}, subresource="status")
        return f"pod {name}: {status}"

    async def _answering(self) -> str:
        """A member's pod that is the StatefulSet's own, at the address of what answers for it."""
        workload = await self._client.get(builtin.STATEFUL_SET, self.namespace, NAME)
        name = f"{NAME}-{self._draw.choice([0, 0, 0, 1, 7])}"
        owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": NAME, "uid": workload["metadata"]["uid"]}
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "labels": workload["spec"]["template"]["metadata"]["labels"],
                "ownerReferences": [{**owner, "controller": True}],
            },
            "spec": {"containers": [{"name": "xsld", "image": IMAGE}], "nodeSelector": {"zoo": "nowhere"}},
        }
        with contextlib.suppress(errors.AlreadyExists):
            await self._client.create(builtin.POD, self.namespace, body, field_manager="tenant")
        address = self._liar.address
        runs = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
        container = {"name": "xsld", "ready": True, "restartCount": 0, "image": IMAGE, "imageID": "", "state": runs}
        status: Body = {
            "phase": "Running",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{**container, "started": True}],
        }
        with contextlib.suppress(errors.NotFound):  # one too many, which the StatefulSet's controller has removed
            await self._patch(builtin.POD, name, {"status": status}, subresource="status")
        return f"pod {name} answers"

    async def _cache_spec(self) -> str:
        draw = self._draw
        spec: Body = draw.choice(
            [
                {"size": draw.choice([1, 2, 100])},
                {"image": draw.choice([IMAGE, "x", "a/b:c"])},
                {"entrypointConfigMap": draw.choice(["kube-root-ca.crt", "x", "../x", ""])},
                {"adminPwd": draw.choice(["another-password", "é" * 20, "line\nbreak-\r"])},
                {"adminPwd": None, "secretKey": None, "credentialsSecretRef": {"name": draw.choice(["x", "cache"])}},
                {"pod": {"nodeSelector": {"a": "b"}, "labels": {names.APP: "another"}}},
                {"debugNodePorts": draw.choice([True, False])},
                {draw.choice(["storage", "timeouts", "tls", "service"]): self._strange()},
            ]
        )
        await self._patch(names.CACHE, NAME, {"spec": spec})
        return f"spec: {spec}"

    async def _cache_status(self) -> str:
        draw = self._draw
        word = draw.choice(["Join", "Leave", "Replicate", "Failover", "x"])
        task = {"intent": "x", "command": word, "target": self._member(), "endpoint": "127.0.0.1", "startedAt": "x"}
        status: Body = draw.choice(
            [
                {"currentTask": task},
                {"currentTask": {**task, "startedAt": "9999-01-01T00:00:00Z"}},
                {
                    "memberStatuses": [
                        {"name": self._member(), "ordinal": draw.choice([-1, 0, 9]), "podIP": "127.0.0.1"}
                    ]
                },
                {"left": [{"member": self._member(), "claim": self._member(), "at": "x"}]},
                {"troubles": [{"command": word, "target": self._member(), "attempts": 9, "at": "x", "message": "x"}]},
                {"replication": {"master": self._member(), "slave": self._member(), "state": "Running"}},
                {"observedGeneration": 10**6, "conditions": []},
                {"progress": {"step": "x", "reason": "x", "since": draw.choice(["", "x"])}, "reconciledAt": "x"},
                {draw.choice(["primary", "members", "pendingTasks", "goodImage", "size"]): self._strange()},
            ]
        )
        await self._patch(names.CACHE, NAME, {"status": status}, subresource="status")
        return f"status: {status}"

    async def _cache_notes(self) -> str:
        draw = self._draw
        notes = {
            "moorage.dev/reconcile-at": draw.choice([str(draw.random()), "x" * 2000, None]),
            "moorage.dev/paused": draw.choice(["true", None, None]),
            "moorage.dev/on-delete": draw.choice(["Orphan", "x", None]),
        }
        await self._patch(names.CACHE, NAME, {"metadata": {"annotations": notes}})
        if draw.random() < 0.3:
            await self._client.delete(names.CACHE, self.namespace, NAME, propagation="Background")
            return f"notes: {notes}, and deleted"
        return f"notes: {notes}"

    async def _dependent(self) -> str:
        """A grid or a template that wants something odd."""
        draw = self._draw
        resource = draw.choice([names.GRID, names.TEMPLATE])
        spec: Any = {"cacheRef": {"name": draw.choice([NAME, "another", self._others[0]])}}
        metadata = {"name": f"odd-{draw.randrange(10**6)}", "labels": self._labels()}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}
        await self._client.create(resource, self.namespace, body, field_manager="tenant")
        return f"{resource.kind}: {spec}"
