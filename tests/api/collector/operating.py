"""An operator of Collectors in this process, and what a person and a tenant do beside it."""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.api import builtin, conditions, meta
from moorage.helm.runs import binary
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.kube.http import transport
from moorage.operators import accounts, collector, system
from moorage.operators.collector import config, types
from moorage.runtime import kind
from tests.api.faults import faulty
from tests.api.runtime import operate

ROOT = Path(__file__).parents[3]
RIGHTS = accounts.Rights("collector", "moorage-system", "test-moorage-accounts", "test-moorage-collector-tenant")


def helm_path() -> Path:
    """The helm that is named, that of the testbed, or one on the PATH; skips the test where there is none."""
    if named := os.environ.get("MOORAGE_TEST_HELM"):
        return Path(named)
    folders = [os.environ.get("TESTBED_BIN", ""), str(ROOT / ".testbed" / "bin"), os.environ["PATH"]]
    found = shutil.which("helm", path=os.pathsep.join(filter(None, folders)))
    if found is None:
        pytest.skip("no helm binary: set MOORAGE_TEST_HELM or bring the testbed up")
    return Path(found)


def chart(folder: Path, templates: str, *, name: str = "odd", **values: Any) -> None:
    """A chart of one template file in the folder of all charts."""
    place = folder / name / "templates"
    place.mkdir(parents=True)
    metadata = {"apiVersion": "v2", "name": name, "version": "1.0.0"}
    (place.parent / "Chart.yaml").write_text(yaml.safe_dump(metadata))
    (place.parent / "values.yaml").write_text(yaml.safe_dump(values))
    (place / "all.yaml").write_text(templates)


class Refusals(faulty.Plan):
    """Remembers what the server refused to show."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def listened(self, it: faulty.Read, answer: transport.Response) -> None:
        if answer.status == 403:
            self.paths.append(it.path)


class Operator(operate.Operator):
    """It looks after the Collectors of one namespace, with the real helm and the charts of a folder.

    `folder` is its scratch, `charts` that of the default charts, `clusters` are others by name.
    """

    def __init__(self, client: kube_client.Client, namespace: str, **more: Any) -> None:
        self.refusals = Refusals()
        super().__init__(client, namespace, plan=self.refusals, **more)

    def make(self, namespace: str, **more: Any) -> list[kind.Kind[Any, Any]]:
        access_ = binary.KubeAccess(kubeconfig=more["kubeconfig"])
        around = system.Environment(RIGHTS.namespace, more["folder"], helm_path(), access_, grace=1.0)
        settings = config.Config(
            charts=config.Charts(config.ChartPlace(folder=str(more["charts"])), more.get("clusters", {})),
            accounts=RIGHTS.accounts,
            tenant_cluster_role=RIGHTS.cluster_role,
            namespaces=(namespace,),
        )
        return list(collector.SYSTEM.kinds(settings, around))


async def define(client: kube_client.Client) -> None:
    """Have Collectors served."""
    for body in collector.SYSTEM.definitions():
        name = str(body["metadata"]["name"])  # type: ignore[index]
        await client.apply(builtin.CRD, "", name, body, field_manager="test", force=True)

    async def is_served() -> bool:
        try:
            await client.list(types.COLLECTOR, "default", as_=meta.Partial)
        except errors.ApiError:
            return False
        return True

    await operate.until(is_served)


class People:
    """Who writes Collectors in one namespace, and tenants, who write what they like in their own."""

    def __init__(self, client: kube_client.Client, namespace: str) -> None:
        self.client, self.namespace = client, namespace

    async def collector(self, name: str, tenant: str, chart: str = "odd", *, cluster: str = "", **values: Any) -> None:
        """Apply a Collector."""
        configuration = base64.b64encode(json.dumps(values).encode()).decode()
        spec = {
            "collector": {"name": chart, "configuration": configuration},
            "tenant": {"reference": tenant, "instance": name},
            "cluster": cluster,
        }
        body = {"apiVersion": "example.com/v1alpha", "kind": "Collector", "metadata": {"name": name}, "spec": spec}
        await self.client.apply(types.COLLECTOR, self.namespace, name, body, field_manager="people")

    async def until(self, name: str, holds: Callable[[types.Collector], bool]) -> types.Collector:
        """The Collector as soon as that holds of it."""

        async def found() -> types.Collector | None:
            it = await self.client.get(types.COLLECTOR, self.namespace, name, as_=types.Collector)
            current = it.status.observed_generation == it.metadata.generation
            return it if current and holds(it) else None

        it: types.Collector = await operate.until(found)
        return it

    async def ready(self, name: str) -> types.Collector:
        """The Collector when it is Ready."""
        return await self.until(name, lambda it: said(it, "Ready").status == "True")

    async def namespace_of(self, name: str, *, admits: str) -> None:
        """A namespace that admits the Collectors of another."""
        metadata = {"name": name, "annotations": {"moorage.dev/collectors-from": admits}}
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        await self.client.create(builtin.NAMESPACE, "", body, field_manager="people")

    async def config_map(self, namespace: str, name: str) -> dict[str, Any] | None:
        """It, or None."""
        try:
            return await self.client.get(builtin.CONFIG_MAP, namespace, name)
        except errors.NotFound:
            return None

    async def rewrite_record(self, namespace: str, release: str, change: Callable[[dict[str, Any]], None]) -> None:
        """What somebody does who may write Secrets there."""
        labels = f"owner=helm,name={release}"
        (found,) = (await self.client.list(builtin.SECRET, namespace, labels=labels)).items
        record = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(found["data"]["release"]))))
        change(record)
        data = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(record).encode()))).decode()
        body = {"data": {"release": data}}
        await self.client.patch_merge(
            builtin.SECRET, namespace, found["metadata"]["name"], body, field_manager="tenant"
        )

    async def rewrite_claim(self, namespace: str, release: str, change: Callable[[dict[str, str]], None]) -> None:
        """What somebody does who may write ConfigMaps there."""
        found = await self.client.get(builtin.CONFIG_MAP, namespace, f"release.{release}")
        change(found["data"])
        body = {"data": found["data"]}
        await self.client.patch_merge(builtin.CONFIG_MAP, namespace, f"release.{release}", body, field_manager="tenant")

    async def leave(self) -> None:
        """Let go of all Collectors, as no operator will."""
        for left in (await self.client.list(types.COLLECTOR, self.namespace, as_=meta.Partial)).items:
            body = {"metadata": {"finalizers": None}}
            where = (types.COLLECTOR, self.namespace, left.metadata.name)
            with contextlib.suppress(errors.NotFound):  # one whose end was asked for goes by itself
                await self.client.patch_merge(*where, body, field_manager="people")
                await self.client.delete(*where, propagation="Background")


def said(it: types.Collector, type_: str) -> conditions.Condition:
    """One condition."""
    return conditions.find(it.status.conditions, type_) or conditions.Condition(type=type_, status="Unknown")
