"""A tenant who means harm: it alters at random whatever it may write in its namespace.

All is drawn from the seed, and written with the rights of somebody who may do everything in that namespace and nothing
outside. What it writes points elsewhere where it can: at others' objects, namespaces, releases, accounts, the cluster.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import json
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from moorage.api import kinds, meta
from moorage.kube import client as kube_client
from moorage.kube import errors

ACCOUNT = meta.Resource("", "v1", "ServiceAccount", "serviceaccounts")

Body = dict[str, Any]
Alteration = Callable[[], Awaitable[str]]

STRANGE: tuple[Any, ...] = (
    *(None, "", "x", "-1", "1e9", "0x9", " 7 ", "a b", "../..", "{{ .Values }}", "\U0001f600", "\u202e", "é" * 300),
    *(-1, 0, 7, 2**31, 2**63, 10**40, 1e308, -0.0, True, False, [], {}, [[]], [None], {"a": None}, {"": ""}),
)
BOMB = 8 << 20
"""Bytes that a small record swells to."""


class Tenant:
    """One namespace with a release `RELEASE` of a Collector `NAME`, and what is to be harmed."""

    def __init__(
        self,
        client: kube_client.Client,
        namespace: str,
        collector: meta.Resource,
        *,
        name: str,
        release: str,
        others: Sequence[str],
        draw: random.Random,
    ) -> None:
        self._client, self.namespace, self._collector = client, namespace, collector
        self._name, self._release, self._others, self._draw = name, release, others, draw
        self.did: list[str] = []

    async def alter(self) -> None:
        """One alteration; that the server refuses it, or that what it is about is gone, is no matter."""
        alterations: tuple[tuple[int, Alteration], ...] = (
            (8, self._record),
            (2, self._record_secret),
            (5, self._claim),
            (4, self._object),
            (2, self._binding),
            (3, self._collector_spec),
            (2, self._collector_notes),
            (2, self._collector_status),
            (3, self._decoy),
            (1, self._event),
        )
        weights = [weight for weight, _ in alterations]
        ((_, chosen),) = self._draw.choices(alterations, weights)
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
        name = self._draw.choice(["planted", self._release, "moorage-collector", "default", "kube-root-ca.crt"])
        metadata: Body = {"name": name, "namespace": where}
        rbac = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
        subjects = [{"kind": "ServiceAccount", "name": "default", "namespace": self.namespace}]
        everything = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
        bodies: list[Body] = [
            {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}},
            {"apiVersion": "v1", "kind": "Secret", "stringData": {"a": "b"}},
            {"apiVersion": "v1", "kind": "ServiceAccount"},
            {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80}]}},
            {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "roleRef": rbac, "subjects": subjects},
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

    def _row(self) -> list[str]:
        body = self._elsewhere()
        where = self._draw.choice([body["metadata"]["namespace"], self.namespace, ""])
        flags = self._draw.choice(["", "h", "k", "hk", "x"])
        return [body["apiVersion"], body["kind"], where, body["metadata"]["name"], flags]

    def _strange(self) -> Any:
        return self._draw.choice(STRANGE)

    # --- the record ----------------------------------------------------------------------------------------------

    async def _records(self) -> list[Body]:
        found = (await self._client.list(kinds.SECRET, self.namespace, labels="owner=helm")).items
        return [each for each in found if each.get("type") == "helm.sh/release.v1"]

    async def _record(self) -> str:
        """What is in the newest record."""
        found = await self._records()
        if not found:
            return "record: none"
        secret = found[-1]
        try:
            record = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(secret["data"]["release"]))))
            said, data = self._altered(record)
        except (KeyError, ValueError, TypeError, AttributeError, OSError, EOFError):
            said, data = "garbage for what is garbage already", b"x"
        encoded = base64.b64encode(data).decode()
        body = {"data": {"release": base64.b64encode(encoded.encode()).decode()}}
        await self._patch(kinds.SECRET, secret["metadata"]["name"], body)
        return f"record: {said}"

    def _altered(self, record: Body) -> tuple[str, bytes]:
        draw = self._draw
        choice = draw.randrange(12)
        if choice <= 2:
            body = self._elsewhere()
            record["manifest"] = draw.choice([record["manifest"], ""]) + f"\n---\n{json.dumps(body)}\n"
            said = f"{body['kind']} of {body['metadata']['namespace']} in the manifest"
        elif choice == 3:
            body = self._elsewhere()
            events = draw.sample(["pre-delete", "post-delete", "pre-rollback", "pre-upgrade", "post-upgrade"], 3)
            body["metadata"]["annotations"] = {"helm.sh/hook": ",".join(events)}
            hook = {"name": body["metadata"]["name"], "kind": body["kind"], "path": "x", "manifest": json.dumps(body)}
            record["hooks"] = [*(record.get("hooks") or ()), {**hook, "events": events, "weight": draw.choice([0, -9])}]
            said = f"a hook: {body['kind']} of {body['metadata']['namespace']}"
        elif choice == 4:
            record["namespace"] = draw.choice(self._others)
            said = f"namespace {record['namespace']}"
        elif choice == 5:
            record["name"] = draw.choice([self._release, "anything-bob", "", "a/b"])
            said = f"name {record['name']}"
        elif choice == 6:
            states = ["deployed", "failed", "pending-upgrade", "pending-install", "uninstalling", "superseded", "odd", ""]
            record["info"]["status"] = draw.choice([*states, self._strange()])
            said = f"status {record['info']['status']!r}"
        elif choice == 7:
            field = draw.choice(["version", "config", "manifest", "hooks", "info", "chart", "name", "namespace"])
            record[field] = self._strange()
            said = f"{field} {record[field]!r:.20}"
        elif choice == 8:
            field = draw.choice(["description", "first_deployed", "last_deployed", "deleted", "notes"])
            record["info"][field] = self._strange()
            said = f"info.{field} {record['info'][field]!r:.20}"
        elif choice == 9:
            parts = ["a: 1e400", "a: " + "9" * 5000, "{" * 300, "- " * 300, "a: &a [*a]", "a: !!python/x y", "%YAML 9", "\t"]
            record["manifest"] += f"\n---\n{draw.choice(parts)}\n"
            said = "no object in the manifest"
        elif choice == 10:
            return self._garbage(record)
        else:
            merged = "a0: &a0 {k: 1}\n" + "".join(f"a{n}: &a{n} {{<<: *a{n - 1}, k{n}: 1}}\n" for n in range(1, 400))
            record["manifest"] += f"\n---\n{merged}"
            said = "400 merge keys"
        return said, gzip.compress(json.dumps(record).encode())

    def _garbage(self, record: Body) -> tuple[str, bytes]:
        whole = gzip.compress(json.dumps(record).encode())
        kinds_: dict[str, bytes] = {
            "half of it": whole[: len(whole) // 2],
            "nothing": b"",
            "noise": self._draw.randbytes(200),
            "a gzip bomb": gzip.compress(bytes(BOMB)),
            "a list": gzip.compress(b"[1, 2]"),
            "deep": gzip.compress(b"[" * 20_000),
            "a bomb of blanks": gzip.compress(json.dumps(record).encode() + b" " * BOMB),
        }
        said = self._draw.choice(list(kinds_))
        return said, kinds_[said]

    async def _record_secret(self) -> str:
        """Its labels, its number, or that it is there."""
        found = await self._records()
        if not found:
            return "record's Secret: none"
        secret, draw = self._draw.choice(found), self._draw
        name = secret["metadata"]["name"]
        choice = draw.randrange(3)
        if choice == 0:
            await self._client.delete(kinds.SECRET, self.namespace, name, propagation="Background")
            return "record's Secret: deleted"
        if choice == 1:
            label = draw.choice(["version", "name", "owner", "status", "modifiedAt", "moorage.dev/digest"])
            value = draw.choice(["", "x", "-1", "1e9", "99999999999999999999", "anything-bob", "deployed", "failed"])
            await self._patch(kinds.SECRET, name, {"metadata": {"labels": {label: value}}})
            return f"record's Secret: label {label}={value}"
        number = draw.choice([2, 9, 1000, 2**31, 2**63])
        labels = {**secret["metadata"].get("labels", {}), "version": str(number)}
        copy = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": secret["type"],
            "metadata": {"name": f"sh.helm.release.v1.{self._release}.v{number}", "labels": labels},
            "data": secret.get("data", {}),
        }
        await self._client.create(kinds.SECRET, self.namespace, copy, field_manager="tenant")
        return f"record's Secret: the same as number {number}"

    async def _decoy(self) -> str:
        """A Secret or a ConfigMap that looks like moorage's or helm's."""
        draw = self._draw
        labels: Body = draw.choice(
            [
                {"owner": "helm", "name": self._release, "version": draw.choice(["x", "", "-1", "1e9", "77"])},
                {"moorage.dev/claim": "release"},
                {"app.kubernetes.io/managed-by": "Helm"},
            ]
        )
        resource = draw.choice([kinds.SECRET, kinds.CONFIG_MAP])
        name = f"decoy-{draw.randrange(10**6)}"
        body: Body = {"apiVersion": "v1", "kind": resource.kind, "metadata": {"name": name, "labels": labels}}
        body["data"] = {"release": "eA==", "owner": "eA==", "inventory": "eA=="}
        await self._client.create(resource, self.namespace, body, field_manager="tenant")
        return f"a decoy: {resource.kind} {labels}"

    # --- the claim, the binding, the objects ---------------------------------------------------------------------

    async def _claim(self) -> str:
        draw, name = self._draw, f"release.{self._release}"
        choice = draw.randrange(6)
        if choice == 0:
            await self._client.delete(kinds.CONFIG_MAP, self.namespace, name, propagation="Background")
            return "claim: deleted"
        if choice <= 2:
            rows: Any = [self._row() for _ in range(draw.choice([1, 3, 2000]))]
            data = {"inventory": json.dumps(rows)}
        elif choice == 3:
            owner = {"apiVersion": "example.com/v1alpha", "kind": "Collector", "name": draw.choice(["bob", self._name])}
            data = {"owner": json.dumps({**owner, "namespace": draw.choice(self._others), "uid": draw.choice(["", "x"])})}
        elif choice == 4:
            chart = {"name": draw.choice(["plain", "../x", ""]), "version": "9.9.9", "digest": "sha256:0"}
            wanted = {"name": "anything", "constraint": draw.choice(["", "*"]), "source": draw.choice(["default", "x"])}
            data = {"chart": json.dumps({"wanted": wanted, "chart": chart})}
        else:
            data = {draw.choice(["owner", "inventory", "chart"]): json.dumps(self._strange())}
        await self._patch(kinds.CONFIG_MAP, name, {"data": data})
        return f"claim: {', '.join(data)} {list(data.values())[0]:.60}"

    async def _binding(self) -> str:
        draw, name = self._draw, "moorage-collector"
        if draw.random() < 0.5:
            await self._client.delete(kinds.ROLE_BINDING, self.namespace, name, propagation="Background")
        if draw.random() < 0.4:
            return "binding: deleted"
        subjects = [
            {
                "kind": "ServiceAccount",
                "name": draw.choice(["default", f"collector.{self._others[0]}", f"collector.{self.namespace}"]),
                "namespace": draw.choice([self.namespace, self._others[-1]]),
            }
        ]
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": draw.choice(["view", "admin"])}
        body = {
            "apiVersion": kinds.ROLE_BINDING.api_version,
            "kind": "RoleBinding",
            "metadata": {"name": name},
            "roleRef": role,
            "subjects": subjects,
        }
        with contextlib.suppress(errors.Conflict, errors.AlreadyExists):
            await self._client.create(kinds.ROLE_BINDING, self.namespace, body, field_manager="tenant")
            return f"binding: to {role['name']} for {subjects[0]['name']}"
        await self._patch(kinds.ROLE_BINDING, name, {"subjects": subjects})
        return f"binding: for {subjects[0]['name']}"

    async def _object(self) -> str:
        """Anything of the release."""
        draw = self._draw
        resource = draw.choice([kinds.CONFIG_MAP, kinds.SECRET, kinds.SERVICE, ACCOUNT])
        found = (await self._client.list(resource, self.namespace)).items
        if not found:
            return f"{resource.kind}: none"
        metadata = draw.choice(found)["metadata"]
        owner = {"apiVersion": "v1", "kind": draw.choice(["ConfigMap", "Namespace"]), "name": "x", "uid": "no-uid"}
        changes: list[Body] = [
            {"metadata": {"annotations": {"meta.helm.sh/release-namespace": draw.choice(self._others)}}},
            {"metadata": {"annotations": {"meta.helm.sh/release-name": draw.choice(["anything-bob", ""])}}},
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

    # --- the Collector -------------------------------------------------------------------------------------------

    async def _collector_spec(self) -> str:
        draw = self._draw
        body = self._elsewhere()
        hidden = '{{ if lookup "v1" "ConfigMap" .Release.Namespace "%s" }}%s{{ end }}'
        values: list[Any] = [
            {"objects": [body]},
            {"text": hidden % (self._release, json.dumps(body))},
            {"text": "{{ if .Release.IsUpgrade }}" + json.dumps(body) + "{{ end }}"},
            {"text": "{{ (lookup \"v1\" \"Secret\" \"%s\" \"\") | toJson }}" % self._others[0]},
            {"word": self._strange()},
            {"objects": self._strange()},
        ]
        configuration = base64.b64encode(json.dumps(draw.choice(values)).encode()).decode()
        if draw.random() < 0.15:
            configuration = draw.choice(["eA==", "!", base64.b64encode(b"a: &a [*a]").decode(), ""])
        spec: Body = {"collector": {"configuration": configuration}}
        if draw.random() < 0.3:
            spec["collector"]["version"] = draw.choice(["", "9.9.9", ">0", "0.1.0", "x"])
        if draw.random() < 0.4:
            spec["policy"] = {"drift": draw.choice(["Off", "Enforce"]), "onFailure": draw.choice(["Keep", "Rollback"])}
        await self._patch(self._collector, self._name, {"spec": spec})
        return f"spec: {base64.b64decode(configuration + '==', validate=False)[:60]!r}"

    async def _collector_notes(self) -> str:
        draw = self._draw
        notes = {
            "moorage.dev/adopt": draw.choice(["true", "x", None]),
            "moorage.dev/reconcile-at": draw.choice([str(draw.random()), "x" * 2000, None]),
            "moorage.dev/paused": draw.choice(["true", None, None]),
            "moorage.dev/on-delete": draw.choice(["Orphan", "x", None]),
        }
        await self._patch(self._collector, self._name, {"metadata": {"annotations": notes}})
        if draw.random() < 0.3:
            await self._client.delete(self._collector, self.namespace, self._name, propagation="Background")
            return f"notes: {notes}, and deleted"
        return f"notes: {notes}"

    async def _collector_status(self) -> str:
        draw = self._draw
        number = draw.choice([0, 1, 2, 7, 10**6])
        word = draw.choice(["upgrade", "rollback", "uninstall", "x"])
        parts: list[Body] = [
            {"good": {"revision": number, "digest": "x"}, "failed": {"digest": "x", "rolledBackTo": number}},
            {"attempt": {"id": "x", "action": word, "revision": number, "retryAt": draw.choice(["", "x", "9999-01-01T00:00:00Z"])}},
            {"release": {"name": "anything-bob", "namespace": draw.choice(self._others), "revision": number}},
            {"chart": {"name": "../x", "version": "0", "digest": "sha256:0", "source": "x"}},
            {"observedGeneration": number, "conditions": []},
            {"progress": {"step": "x", "reason": "x", "since": draw.choice(["", "x"])}, "reconciledAt": "x"},
        ]
        status = draw.choice(parts)
        await self._patch(self._collector, self._name, {"status": status}, subresource="status")
        return f"status: {status}"

    async def _patch(self, resource: meta.Resource, name: str, body: Body, *, subresource: str = "") -> None:
        where = (resource, self.namespace, name)
        await self._client.patch_merge(*where, body, field_manager="tenant", subresource=subresource)

