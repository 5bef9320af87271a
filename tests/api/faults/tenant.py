"""A tenant who means harm: it alters at random whatever it may write in its namespace.

All is drawn from the seed, and written with the rights of somebody who may do everything in that namespace and nothing
outside. What it writes points elsewhere where it can: at others' objects, namespaces, releases, accounts, the cluster.
What there is to alter beside what all have is in `tenant_releases` and `tenant_caches`.
"""

from __future__ import annotations

import abc
import asyncio
import base64
import contextlib
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from moorage.api import builtin, meta
from moorage.kube import client as kube_client
from moorage.kube import errors

from . import proxy

ACCOUNT = meta.Resource("", "v1", "ServiceAccount", "serviceaccounts")

Body = dict[str, Any]
Alteration = Callable[[], Awaitable[str]]
"""Returns what was done, in words."""

STRANGE: tuple[Any, ...] = (
    *(None, "", "x", "-1", "1e9", "0x9", " 7 ", "a b", "../..", "{{ .Values }}", "\U0001f600", "\u202e", "é" * 300),
    *(-1, 0, 7, 2**31, 2**63, 10**40, 1e308, -0.0, True, False, [], {}, [[]], [None], {"a": None}, {"": ""}),
)


class Tenant(abc.ABC):
    """One namespace, and what is to be harmed elsewhere. `binding` is the operator's RoleBinding there."""

    binding: str
    owned: tuple[meta.Resource, ...]
    """Kinds of what is made for the tenant."""

    def __init__(self, client: kube_client.Client, namespace: str, others: Sequence[str], draw: random.Random) -> None:
        self._client, self.namespace, self._others, self._draw = client, namespace, others, draw
        self.did: list[str] = []

    async def begin(self, certificate: proxy.Certificate, stack: contextlib.AsyncExitStack) -> None:
        """Bring up what the tenant runs, until the stack ends."""
        self.did = []

    @property
    def answers(self) -> int:
        """How many answers of what it runs have been asked for."""
        return 0

    def astray(self) -> list[str]:
        """What was asked where the tenant's lies point, and nobody should ask."""
        return []

    @abc.abstractmethod
    def alterations(self) -> tuple[tuple[int, Alteration], ...]:
        """Each with its weight."""

    async def alter(self) -> None:
        """One alteration; that the server refuses it, or that what it is about is gone, is no matter."""
        weights, acts = zip(*self.alterations(), strict=True)
        (chosen,) = self._draw.choices(acts, weights)
        try:
            said = await chosen()
        except errors.ApiError as error:
            said = f"{chosen.__name__.strip('_')}: refused with {error.status.code}"
        self.did.append(said)

    async def pause(self) -> None:
        """As long as it pleases."""
        await asyncio.sleep(self._draw.choice((0.0, 0.0, 0.05, 0.3, 1.0)))

    # --- what points elsewhere -----------------------------------------------------------------------------------

    def _elsewhere(self) -> Body:
        """An object that is not the tenant's to have."""
        where = self._draw.choice(self._others)
        name = self._draw.choice(["planted", "cache", "anything-main", self.binding, "default", "kube-root-ca.crt"])
        metadata: Body = {"name": name, "namespace": where}
        rbac = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
        subjects = [{"kind": "ServiceAccount", "name": "default", "namespace": self.namespace}]
        everything = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
        bodies: list[Body] = [
            {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}},
            {"apiVersion": "v1", "kind": "Secret", "stringData": {"a": "b"}},
            {"apiVersion": "v1", "kind": "ServiceAccount"},
            {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80}]}},
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "RoleBinding",
                "roleRef": rbac,
                "subjects": subjects,
            },
            {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": everything},
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "roleRef": rbac,
                "subjects": subjects,
            },
            {"apiVersion": "v1", "kind": "Namespace"},
            {"apiVersion": "example.com/v1alpha", "kind": "Collector", "spec": {}},
        ]
        return {**self._draw.choice(bodies), "metadata": metadata}

    def _strange(self) -> Any:
        return self._draw.choice(STRANGE)

    # --- what all tenants have ----------------------------------------------------------------------------------

    async def _binding(self) -> str:
        draw, name = self._draw, self.binding
        if draw.random() < 0.5:
            await self._client.delete(builtin.ROLE_BINDING, self.namespace, name, propagation="Background")
        if draw.random() < 0.4:
            return "binding: deleted"
        subjects = [
            {
                "kind": "ServiceAccount",
                "name": draw.choice(["default", f"collector.{self._others[0]}", f"xsld.{self.namespace}"]),
                "namespace": draw.choice([self.namespace, self._others[-1]]),
            }
        ]
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": draw.choice(["view", "admin"])}
        body = {
            "apiVersion": builtin.ROLE_BINDING.api_version,
            "kind": "RoleBinding",
            "metadata": {"name": name},
            "roleRef": role,
            "subjects": subjects,
        }
        with contextlib.suppress(errors.Conflict, errors.AlreadyExists):
            await self._client.create(builtin.ROLE_BINDING, self.namespace, body, field_manager="tenant")
            return f"binding: to {role['name']} for {subjects[0]['name']}"
        await self._patch(builtin.ROLE_BINDING, name, {"subjects": subjects})
        return f"binding: for {subjects[0]['name']}"

    async def _object(self) -> str:
        """Anything of the release."""
        draw = self._draw
        resource = draw.choice(self.owned)
        found = (await self._client.list(resource, self.namespace)).items
        if not found:
            return f"{resource.kind}: none"
        metadata = draw.choice(found)["metadata"]
        owner = {"apiVersion": "v1", "kind": draw.choice(["ConfigMap", "Namespace"]), "name": "x", "uid": "no-uid"}
        changes: list[Body] = [
            {"metadata": {"annotations": {"meta.helm.sh/release-namespace": draw.choice(self._others)}}},
            {"metadata": {"annotations": {"meta.helm.sh/release-name": draw.choice(["another", ""])}}},
            {"metadata": {"annotations": None, "labels": None}},
            {"metadata": {"labels": {"app.kubernetes.io/managed-by": draw.choice(["moorage", "x"])}}},
            {"metadata": {"annotations": {"helm.sh/resource-policy": "keep", "helm.sh/hook": "pre-delete"}}},
            {"metadata": {"managedFields": [{}]}},
            {"metadata": {"ownerReferences": [owner]}},
            {"metadata": {"finalizers": ["zoo.moorage.dev/hold"]}},
            {"data": {"word": base64.b64encode(draw.randbytes(9)).decode(), "more": "eA=="}},
            {"spec": {"ports": [{"port": draw.randrange(1, 60_000)}], "selector": {"app": "x"}}},
        ]
        change = draw.choice([*changes, None])
        if change is None:
            await self._client.delete(resource, self.namespace, metadata["name"], propagation="Background")
            return f"{resource.kind} {metadata['name']}: deleted"
        await self._patch(resource, metadata["name"], change)
        return f"{resource.kind} {metadata['name']}: {change}"

    async def _event(self) -> str:
        name = f"event-{self._draw.randrange(10**6)}"
        about = {"apiVersion": "v1", "kind": "Pod", "name": "x", "namespace": self.namespace}
        body = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "involvedObject": about}
        body |= {"reason": "FailedCreate", "message": "x" * 900, "type": "Warning"}
        event = meta.Resource("", "v1", "Event", "events")
        await self._client.create(event, self.namespace, body, field_manager="tenant")
        return "an event"

    async def _patch(self, resource: meta.Resource, name: str, body: Body, *, subresource: str = "") -> None:
        where = (resource, self.namespace, name)
        await self._client.patch_merge(*where, body, field_manager="tenant", subresource=subresource)
