"""A tenant with a release: records, claims, and a Collector in its own namespace."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

from moorage.api import builtin
from moorage.operators.collector import types

from . import tenant
from .tenant import Body

NAME, RELEASE = "main", "anything-main"
BOMB = 8 << 20
"""Bytes that a small record swells to."""


class ReleaseTenant(tenant.Tenant):
    """Its Collector is called NAME, and its release RELEASE."""

    binding = "moorage-collector"
    owned = (builtin.CONFIG_MAP, builtin.SECRET, builtin.SERVICE, tenant.ACCOUNT)

    def alterations(self) -> tuple[tuple[int, tenant.Alteration], ...]:
        """See `tenant.Tenant`."""
        return (
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

    # --- the record ----------------------------------------------------------------------------------------------

    async def _records(self) -> list[Body]:
        found = (await self._client.list(builtin.SECRET, self.namespace, labels="owner=helm")).items
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
        except (KeyError, ValueError, TypeError, AttributeError, OSError, EOFError, RecursionError):
            said, data = "garbage for what is garbage already", b"x"
        encoded = base64.b64encode(data).decode()
        body = {"data": {"release": base64.b64encode(encoded.encode()).decode()}}
        await self._patch(builtin.SECRET, secret["metadata"]["name"], body)
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
            record["name"] = draw.choice([RELEASE, "anything-bob", "", "a/b"])
            said = f"name {record['name']}"
        elif choice == 6:
            states = [
                "deployed",
                "failed",
                "pending-upgrade",
                "pending-install",
                "uninstalling",
                "superseded",
                "odd",
                "",
            ]
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
            parts = [
                "a: 1e400",
                "a: " + "9" * 5000,
                "{" * 300,
                "- " * 300,
                "a: &a [*a]",
                "a: !!python/x y",
                "%YAML 9",
                "\t",
            ]
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
            await self._client.delete(builtin.SECRET, self.namespace, name, propagation="Background")
            return "record's Secret: deleted"
        if choice == 1:
            label = draw.choice(["version", "name", "owner", "status", "modifiedAt", "moorage.dev/digest"])
            value = draw.choice(["", "x", "-1", "1e9", "99999999999999999999", "anything-bob", "deployed", "failed"])
            await self._patch(builtin.SECRET, name, {"metadata": {"labels": {label: value}}})
            return f"record's Secret: label {label}={value}"
        number = draw.choice([2, 9, 1000, 2**31, 2**63])
        labels = {**secret["metadata"].get("labels", {}), "version": str(number)}
        copy = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": secret["type"],
            "metadata": {"name": f"sh.helm.release.v1.{RELEASE}.v{number}", "labels": labels},
            "data": secret.get("data", {}),
        }
        await self._client.create(builtin.SECRET, self.namespace, copy, field_manager="tenant")
        return f"record's Secret: the same as number {number}"

    async def _decoy(self) -> str:
        """A Secret or a ConfigMap that looks like moorage's or helm's."""
        draw = self._draw
        labels: Body = draw.choice(
            [
                {"owner": "helm", "name": RELEASE, "version": draw.choice(["x", "", "-1", "1e9", "77"])},
                {"moorage.dev/claim": "release"},
                {"app.kubernetes.io/managed-by": "Helm"},
            ]
        )
        resource = draw.choice([builtin.SECRET, builtin.CONFIG_MAP])
        name = f"decoy-{draw.randrange(10**6)}"
        body: Body = {"apiVersion": "v1", "kind": resource.kind, "metadata": {"name": name, "labels": labels}}
        body["data"] = {"release": "eA==", "owner": "eA==", "inventory": "eA=="}
        await self._client.create(resource, self.namespace, body, field_manager="tenant")
        return f"a decoy: {resource.kind} {labels}"

    # --- the claim -----------------------------------------------------------------------------------------------

    def _row(self) -> list[str]:
        body = self._elsewhere()
        where = self._draw.choice([body["metadata"]["namespace"], self.namespace, ""])
        flags = self._draw.choice(["", "h", "k", "hk", "x"])
        return [body["apiVersion"], body["kind"], where, body["metadata"]["name"], flags]

    async def _claim(self) -> str:
        draw, name = self._draw, f"release.{RELEASE}"
        choice = draw.randrange(6)
        if choice == 0:
            await self._client.delete(builtin.CONFIG_MAP, self.namespace, name, propagation="Background")
            return "claim: deleted"
        if choice <= 2:
            rows: Any = [self._row() for _ in range(draw.choice([1, 3, 2000]))]
            data = {"inventory": json.dumps(rows)}
        elif choice == 3:
            owner = {"apiVersion": "example.com/v1alpha", "kind": "Collector", "name": draw.choice(["bob", NAME])}
            data = {
                "owner": json.dumps({**owner, "namespace": draw.choice(self._others), "uid": draw.choice(["", "x"])})
            }
        elif choice == 4:
            chart = {"name": draw.choice(["plain", "../x", ""]), "version": "9.9.9", "digest": "sha256:0"}
            wanted = {"name": "anything", "constraint": draw.choice(["", "*"]), "source": draw.choice(["default", "x"])}
            data = {"chart": json.dumps({"wanted": wanted, "chart": chart})}
        else:
            data = {draw.choice(["owner", "inventory", "chart"]): json.dumps(self._strange())}
        await self._patch(builtin.CONFIG_MAP, name, {"data": data})
        return f"claim: {', '.join(data)} {next(iter(data.values())):.60}"

    # --- the Collector -------------------------------------------------------------------------------------------

    async def _collector_spec(self) -> str:
        draw = self._draw
        body = self._elsewhere()
        hidden = '{{ if lookup "v1" "ConfigMap" .Release.Namespace "%s" }}%s{{ end }}'
        values: list[Any] = [
            {"objects": [body]},
            {"text": hidden % (RELEASE, json.dumps(body))},
            {"text": "{{ if .Release.IsUpgrade }}" + json.dumps(body) + "{{ end }}"},
            {"text": '{{ (lookup "v1" "Secret" "OTHER" "") | toJson }}'.replace("OTHER", self._others[0])},
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
        await self._patch(types.COLLECTOR, NAME, {"spec": spec})
        return f"spec: {base64.b64decode(configuration + '==', validate=False)[:60]!r}"

    async def _collector_notes(self) -> str:
        draw = self._draw
        notes = {
            "moorage.dev/adopt": draw.choice(["true", "x", None]),
            "moorage.dev/reconcile-at": draw.choice([str(draw.random()), "x" * 2000, None]),
            "moorage.dev/paused": draw.choice(["true", None, None]),
            "moorage.dev/on-delete": draw.choice(["Orphan", "x", None]),
        }
        await self._patch(types.COLLECTOR, NAME, {"metadata": {"annotations": notes}})
        if draw.random() < 0.3:
            await self._client.delete(types.COLLECTOR, self.namespace, NAME, propagation="Background")
            return f"notes: {notes}, and deleted"
        return f"notes: {notes}"

    async def _collector_status(self) -> str:
        draw = self._draw
        number = draw.choice([0, 1, 2, 7, 10**6])
        word = draw.choice(["upgrade", "rollback", "uninstall", "x"])
        parts: list[Body] = [
            {"good": {"revision": number, "digest": "x"}, "failed": {"digest": "x", "rolledBackTo": number}},
            {
                "attempt": {
                    "id": "x",
                    "action": word,
                    "revision": number,
                    "retryAt": draw.choice(["", "x", "9999-01-01T00:00:00Z"]),
                }
            },
            {"release": {"name": "anything-bob", "namespace": draw.choice(self._others), "revision": number}},
            {"chart": {"name": "../x", "version": "0", "digest": "sha256:0", "source": "x"}},
            {"observedGeneration": number, "conditions": []},
            {"progress": {"step": "x", "reason": "x", "since": draw.choice(["", "x"])}, "reconciledAt": "x"},
        ]
        status = draw.choice(parts)
        await self._patch(types.COLLECTOR, NAME, {"status": status}, subresource="status")
        return f"status: {status}"
