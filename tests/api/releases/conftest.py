"""moorage in this process with the real helm, charts that tests write, and a user who has Collectors of them."""

from __future__ import annotations

import base64
import contextlib
import shutil
import uuid
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.api import builtin, conditions, meta
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.operators.collector import types
from tests.api.collector import operating
from tests.api.faults import waiting
from tests.api.runtime import operate

SERVICE_ACCOUNT = meta.Resource("", "v1", "ServiceAccount", "serviceaccounts")
JOB = meta.Resource("batch", "v1", "Job", "jobs")
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: main}\ndata: {v: {{ .Values.v | quote }}}\n"
PATIENCE = 90.0


class Bench:
    """What a user, a tenant and the cluster's controllers do."""

    def __init__(self, client: kube_client.Client, home: str, tenant: str, folder: Path) -> None:
        self.client, self.home, self.tenant, self._charts = client, home, tenant, folder / "charts"
        self._charts.mkdir()

    def chart(self, *templates: str, name: str = "odd", version: str = "1.0.0") -> None:
        """A chart of these templates."""
        folder = self._charts / f"{name}-{version}"
        (folder / "templates").mkdir(parents=True)
        (folder / "Chart.yaml").write_text(yaml.safe_dump({"apiVersion": "v2", "name": name, "version": version}))
        for number, text in enumerate(templates):
            (folder / "templates" / f"{number}.yaml").write_text(text)
        shutil.make_archive(str(self._charts / f"{name}-{version}"), "gztar", self._charts, folder.name)
        (self._charts / f"{name}-{version}.tar.gz").rename(self._charts / f"{name}-{version}.tgz")
        shutil.rmtree(folder)

    async def apply(
        self,
        values: Mapping[str, Any],
        *,
        version: str = "1.0.0",
        notes: Mapping[str, str] | None = None,
        **policy: Any,
    ) -> None:
        """The Collector as its user has it."""
        spec = {
            "collector": {
                "name": "odd",
                "version": version,
                "configuration": base64.b64encode(yaml.safe_dump(dict(values)).encode()).decode(),
            },
            "tenant": {"reference": self.tenant, "instance": "it"},
            "policy": policy,
        }
        metadata = {"name": "one", "annotations": dict(notes or {})}
        body = {"apiVersion": types.COLLECTOR.api_version, "kind": "Collector", "metadata": metadata, "spec": spec}
        await self.client.apply(types.COLLECTOR, self.home, "one", body, field_manager="user")

    async def annotate(self, **notes: str) -> None:
        """Annotations of moorage.dev; underscores are dashes."""
        named = {f"moorage.dev/{key.replace('_', '-')}": value for key, value in notes.items()}
        await self.client.patch_merge(
            types.COLLECTOR, self.home, "one", {"metadata": {"annotations": named}}, field_manager="user"
        )

    async def collector(self) -> types.Collector:
        """It as it is."""
        return await self.client.get(types.COLLECTOR, self.home, "one", as_=types.Collector)

    async def until(self, reason: str, type_: str = "Ready") -> str:
        """The message with which the condition has that reason, for the spec as it is."""
        told = "nobody has looked at it"

        async def so() -> str | None:
            nonlocal told
            found = await self.collector()
            condition = conditions.find(found.status.conditions, type_)
            if condition is None or found.status.observed_generation != found.metadata.generation:
                return None
            told = f"{condition.reason}: {condition.message}"
            return condition.message or " " if condition.reason == reason else None

        try:
            return str(await waiting.until(so, within=PATIENCE))
        except TimeoutError:
            raise AssertionError(f"not {reason}, but {told}") from None

    async def delete(self) -> None:
        """Ask for its end."""
        await self.client.delete(types.COLLECTOR, self.home, "one", propagation="Background")

    async def gone(self) -> None:
        """Return when it has left."""
        told = ""

        async def so() -> bool:
            nonlocal told
            try:
                found = await self.collector()
            except errors.NotFound:
                return True
            told = "; ".join(f"{c.reason}: {c.message}" for c in found.status.conditions if c.type == "Ready")
            return False

        try:
            await waiting.until(so, within=PATIENCE)
        except TimeoutError:
            raise AssertionError(f"not gone: {told}") from None

    async def job(self, name: str, how: str = "Complete") -> None:
        """A Job of the tenant ends, as soon as it is there: Complete or Failed."""

        async def there() -> meta.Partial | None:
            try:
                return await self.client.get(JOB, self.tenant, name, as_=meta.Partial)
            except errors.NotFound:
                return None

        found = await waiting.until(there, within=PATIENCE)
        assert found is not None
        now = found.metadata.creation_timestamp
        before = "SuccessCriteriaMet" if how == "Complete" else "FailureTarget"
        said = {"status": "True", "reason": "AsTold", "message": "as the test has it", "lastTransitionTime": now}
        status: dict[str, Any] = {
            "startTime": now,
            "conditions": [{"type": before, **said}, {"type": how, **said}],
            **({"completionTime": now, "succeeded": 1} if how == "Complete" else {"failed": 1}),
        }
        await self.client.patch_merge(
            JOB,
            self.tenant,
            name,
            {"metadata": {"uid": found.metadata.uid}, "status": status},
            field_manager="controller",
            subresource="status",
        )

    async def pod_that_can_not_pull(self, job: str) -> None:
        """What the Job's controller and the kubelet make of an image that is nowhere, once the Job is there."""
        await waiting.until(lambda: self.find(JOB, job), within=PATIENCE)
        container = {"name": "c", "image": "i1"}
        labels = {"batch.kubernetes.io/job-name": job}
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{job}-x", "labels": labels},
            "spec": {
                "restartPolicy": "Never",
                "containers": [container],
                "automountServiceAccountToken": False,
                "schedulerName": "nobody",  # so that its status is the test's alone
            },
        }
        await self.service_account()
        await self.client.create(builtin.POD, self.tenant, body, field_manager="test")
        waits = {"reason": "ImagePullBackOff", "message": "it is nowhere"}
        state = {**container, "imageID": "", "ready": False, "restartCount": 0, "state": {"waiting": waits}}
        status = {"phase": "Pending", "containerStatuses": [state]}
        await self.client.patch_merge(
            builtin.POD, self.tenant, f"{job}-x", {"status": status}, field_manager="test", subresource="status"
        )

    async def service_account(self) -> None:
        """What the controller manager makes in each namespace, where one runs."""
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        with contextlib.suppress(errors.AlreadyExists):
            await self.client.create(SERVICE_ACCOUNT, self.tenant, account, field_manager="test")

    async def allow(self, *rules: Mapping[str, Any]) -> None:
        """What extraTenantRules would give the tenant's account."""
        group = "rbac.authorization.k8s.io"
        role = {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": {"name": "more"}, "rules": list(rules)}
        await self.client.create(meta.Resource(group, "v1", "Role", "roles"), self.tenant, role, field_manager="test")
        user = {"kind": "User", "apiGroup": group, "name": operating.RIGHTS.user(self.tenant)}
        binding = {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "more"},
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "more"},
            "subjects": [user],
        }
        await self.client.create(builtin.ROLE_BINDING, self.tenant, binding, field_manager="test")

    async def withdraw(self) -> None:
        """What `allow` gave is taken away, and known to be."""
        await self.client.delete(builtin.ROLE_BINDING, self.tenant, "more", propagation="Background")
        account = self.client.as_(operating.RIGHTS.user(self.tenant))

        async def so() -> bool:
            try:
                await account.delete(builtin.POD, self.tenant, "none", propagation="Background")
            except errors.Forbidden:
                return True
            return False

        await waiting.until(so, within=PATIENCE)

    async def find(self, resource: meta.Resource, name: str) -> meta.ObjectMeta | None:
        """An object of the tenant, if it is there."""
        try:
            return (await self.client.get(resource, self.tenant, name, as_=meta.Partial)).metadata
        except errors.NotFound:
            return None

    async def made_anew(self, resource: meta.Resource, name: str, uid: str) -> None:
        """Return when another incarnation of the object is there."""

        async def so() -> bool:
            found = await self.find(resource, name)
            return found is not None and found.uid != uid

        await waiting.until(so, within=PATIENCE)

    async def records(self) -> dict[str, str]:
        """Revision -> status, as helm's records say."""
        found = await self.client.list(builtin.SECRET, self.tenant, labels="owner=helm", as_=meta.Partial)
        return {each.metadata.labels["version"]: each.metadata.labels["status"] for each in found.items}


@pytest.fixture
async def bench(client: kube_client.Client, cluster: str, tmp_path: Path) -> AsyncIterator[Bench]:
    """An operator over a namespace of Collectors, and a tenant's namespace that admits them."""
    await operating.define(client)
    tag = uuid.uuid4().hex[:8]
    home, tenant = f"home-{tag}", f"tenant-{tag}"
    for name, admits in ((home, ""), (tenant, home)):
        notes = {"moorage.dev/collectors-from": admits}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": notes}}
        await client.create(builtin.NAMESPACE, "", namespace, field_manager="test")
    it = Bench(client, home, tenant, tmp_path)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    given: dict[str, Any] = {"folder": scratch, "charts": tmp_path / "charts", "kubeconfig": cluster}
    operator = operating.Operator(client, home, pace=operate.QUICK, **given)
    try:
        yield it
    finally:
        await operator.stop()
    await operating.People(client, home).leave()
    for name in (home, tenant):
        await client.delete(builtin.NAMESPACE, "", name, propagation="Background")
