"""An object is the same under each version of its kind, also when one is no longer served, or none is."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from moorage.api import builtin, meta
from moorage.kube import errors
from tests.api.faults import waiting

from .conftest import CONFIG, Bench

SCALER = meta.Resource("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")


class Trinkets:
    """A kind of the test's own, served in the versions that it says."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.group = f"t{uuid.uuid4().hex[:8]}.example.org"
        self.resource = meta.Resource(self.group, "v1", "Trinket", "trinkets")

    async def serve(self, *versions: str) -> None:
        """The first one is the one that is stored; return when the server has it so."""
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        names = {"plural": "trinkets", "singular": "trinket", "kind": "Trinket", "listKind": "TrinketList"}
        body = {
            "apiVersion": builtin.CRD.api_version,
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"trinkets.{self.group}"},
            "spec": {
                "group": self.group,
                "names": names,
                "scope": "Namespaced",
                "versions": [
                    {"name": v, "served": v in versions, "storage": v == "v1", "schema": schema}
                    for v in ("v1", "v1beta1")
                ],
            },
        }
        client = self._bench.client
        await client.apply(builtin.CRD, "", f"trinkets.{self.group}", body, field_manager="test", force=True)

        async def so() -> bool:
            return {v for v in ("v1", "v1beta1") if await self._is_served(v)} == set(versions)

        await waiting.until(so)

    async def vanish(self) -> None:
        """The definition goes, and all objects with it."""
        await self._bench.client.delete(builtin.CRD, "", f"trinkets.{self.group}", propagation="Background")

        async def so() -> bool:
            return not await self._is_served("v1")

        await waiting.until(so)

    async def _is_served(self, version: str) -> bool:
        try:
            answer = await self._bench.client.raw("GET", f"/apis/{self.group}/{version}")
        except errors.ApiError:
            return False
        return b"trinkets" in answer.body

    def template(self, version: str, **spec: Any) -> str:
        """One object, in that version."""
        return f"apiVersion: {self.group}/{version}\nkind: Trinket\nmetadata: {{name: w}}\nspec: {spec or {'a': 1}}\n"


@pytest.fixture
async def trinkets(bench: Bench) -> AsyncIterator[Trinkets]:
    """Served in both versions, and within the rights of the tenant's account."""
    it = Trinkets(bench)
    await it.serve("v1", "v1beta1")
    await bench.allow({"apiGroups": [it.group], "resources": ["*"], "verbs": ["*"]})
    yield it
    await bench.client.delete(builtin.CRD, "", f"trinkets.{it.group}", propagation="Background")


async def test_an_object_under_a_new_version_is_the_same_object(bench: Bench) -> None:
    """Its uid stays, and what somebody has set beside the chart."""
    head = "kind: HorizontalPodAutoscaler\nmetadata: {name: h}\n"
    target = "scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: none}, minReplicas: 1, maxReplicas: 2"
    cpu = "{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}"
    v1 = f"apiVersion: autoscaling/v1\n{head}spec: {{{target}, targetCPUUtilizationPercentage: 80}}\n"
    v2 = f"apiVersion: autoscaling/v2\n{head}spec: {{{target}, metrics: [{cpu}]}}\n"
    bench.chart(v1)
    bench.chart(v2, version="1.1.0")
    await bench.apply({})
    await bench.until("Released", "Released")
    before = await bench.find(SCALER, "h")
    assert before is not None
    note = {"metadata": {"labels": {"by": "hand"}}}
    await bench.client.patch_merge(SCALER, bench.tenant, "h", note, field_manager="user")

    await bench.apply({}, version="1.1.0")
    await waiting.until(lambda: _deployed(bench, "2"))
    await bench.until("Released", "Released")
    await bench.until("InSync", "Drifted")

    after = await bench.find(SCALER, "h")
    assert after is not None
    assert before.uid == after.uid
    assert "hand" == after.labels["by"]


async def test_a_version_that_is_no_longer_served_is_left_behind_by_the_next_upgrade(
    bench: Bench, trinkets: Trinkets
) -> None:
    """Plain helm can't upgrade such a release; the record is brought to a version that is served."""
    bench.chart(CONFIG, trinkets.template("v1beta1"))
    bench.chart(CONFIG, trinkets.template("v1"), version="1.1.0")
    await bench.apply({"v": 1})
    await bench.until("Ready")
    before = await bench.find(trinkets.resource, "w")
    await trinkets.serve("v1")

    await bench.apply({"v": 2}, version="1.1.0")
    await waiting.until(lambda: _deployed(bench, "2"))
    await bench.until("Ready")

    after = await bench.find(trinkets.resource, "w")
    assert before is not None
    assert after is not None
    assert before.uid == after.uid


async def test_a_release_of_a_version_that_is_no_longer_served_can_go(bench: Bench, trinkets: Trinkets) -> None:
    """Its objects are found under the version that is served, so that none is left."""
    bench.chart(CONFIG, trinkets.template("v1beta1"))
    await bench.apply({"v": 1})
    await bench.until("Ready")
    await trinkets.serve("v1")

    await bench.delete()
    await bench.gone()

    assert await bench.find(trinkets.resource, "w") is None
    assert {} == await bench.records()


async def test_a_release_whose_definition_is_gone_can_go(bench: Bench, trinkets: Trinkets) -> None:
    """What went with the definition is asked of helm no more."""
    bench.chart(CONFIG, trinkets.template("v1"))
    await bench.apply({"v": 1})
    await bench.until("Ready")
    await trinkets.vanish()

    await bench.delete()
    await bench.gone()

    assert await bench.find(builtin.CONFIG_MAP, "main") is None
    assert {} == await bench.records()


async def test_a_kind_that_is_not_served_is_told_with_the_versions_that_are(bench: Bench, trinkets: Trinkets) -> None:
    """It is an unknown kind, and reaches nowhere; when the definition comes, it goes on by itself."""
    await trinkets.serve("v1")
    bench.chart(CONFIG, trinkets.template("v1beta1"))
    await bench.apply({"v": 1})

    message = await bench.until("UnknownKind", "Stalled")

    assert f"doesn't serve Trinket in {trinkets.group}/v1beta1, but in {trinkets.group}/v1" in message


async def _deployed(bench: Bench, revision: str) -> bool:
    return (await bench.records()).get(revision) == "deployed"
