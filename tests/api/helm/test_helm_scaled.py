"""What was scaled stays through upgrade and rollback, with the real helm: not one write in between lowers it."""

from __future__ import annotations

import itertools
import types
from collections.abc import AsyncIterator

import pytest

from moorage.api import meta
from moorage.helm import observation, operations, release_sources
from moorage.helm.parsing import aside
from moorage.helm.release import drift, manifest, records
from moorage.helm.runs import scaling_live
from moorage.kube import discovery
from moorage.runtime import decision
from moorage.runtime import gate as runtime_gate

pytestmark = pytest.mark.api

TEMPLATE = """apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: {{ .Values.replicas }} # as few as will do
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: "img:{{ .Values.tag }}"}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  replicas: {{ .Values.replicas }}
  serviceName: web
  selector: {matchLabels: {app: st}}
  template:
    metadata: {labels: {app: st}}
    spec: {containers: [{name: c, image: "img:{{ .Values.tag }}"}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web, annotations: {helm.sh/hook: "pre-upgrade,pre-rollback"}}
data: {text: "{{ .Values.tag }} 😀"}
"""


class Stage:
    """A release of TEMPLATE, and what `Operations` needs."""

    def __init__(self, api, helm, client, namespace, chart) -> None:
        self.api, self.helm, self.client, self.namespace, self.chart = api, helm, client, namespace, chart
        self.values = {"replicas": 2, "tag": "1"}
        world = types.SimpleNamespace(client=client, gate=runtime_gate.Gate())
        self.served = discovery.Discovery(client)
        self.work = aside.Aside()
        self.runs = operations.Operations(world, self.served, helm, lambda _: self.job, lambda _: "", self.work)
        self.revision = 0

    @property
    def path(self) -> str:
        return f"/apis/apps/v1/namespaces/{self.namespace}/deployments/web"

    async def record(self, revision: int) -> records.Record:
        secret = f"/api/v1/namespaces/{self.namespace}/secrets/sh.helm.release.v1.r.v{revision}"
        return records.decode((await self.api.get(secret))["data"]["release"])

    async def objects(self) -> dict:
        text = (await self.record(self.revision)).manifest
        return {manifest.ref(o, self.namespace, lambda *_: True): o for o in manifest.parse(text).objects}

    async def upgrade(self, **values) -> None:
        self.values |= values
        self.job = await self.a_job()
        self.revision += 1
        args = {"attempt": "a", "digest": "d"}
        assert decision.Ok(self.revision) == await self.runs.upgrade(None, args)

    async def rollback(self, to: int) -> None:
        self.job = await self.a_job()
        self.revision += 1
        assert isinstance(await self.runs.rollback(None, {"to": to}), decision.Ok)

    async def a_job(self) -> operations.Job:
        told = observation.RecordSeen("s", "u", "1", self.revision, "deployed", "", "", "", 0, 0)
        loaded = release_sources.Loaded(told, await self.objects()) if self.revision else None
        target, owner = observation.Target("r", self.namespace), meta.ObjectRef("v1", "Thing", "n", "t", "u")
        return operations.Job(target, observation.Policy(), owner, self.values, self.chart, loaded)

    async def scale(self, to: int, who: str) -> dict:
        """Scale the Deployment; returns it as it is then."""
        await self.api.merge(self.path, {"spec": {"replicas": to}}, who, "scale")
        return await self.api.get(self.path)

    async def replicas_since(self, then: dict) -> list[int]:
        """The replicas that the Deployment wanted then, and each change up to now; controllers write it too."""
        seen = await self.api.history(self.path, then, await self.api.get(self.path))
        return [number for number, _ in itertools.groupby(seen, lambda it: it["spec"]["replicas"])]

    async def drift(self) -> tuple[str, ...]:
        live = await self.api.get(self.path)
        (wanted,) = (o for ref, o in (await self.objects()).items() if ref.kind == "Deployment")
        return drift.differing(drift.desired(wanted, "r", self.namespace), live)


@pytest.fixture
async def stage(api, helm, client, namespace, make_chart) -> AsyncIterator[Stage]:
    found = Stage(api, helm, client, namespace, make_chart({"templates/a.yaml": TEMPLATE}))
    await found.upgrade()
    yield found
    await found.work.stop()


@pytest.mark.parametrize("who", ["kube-controller-manager", "kubectl"])
async def test_replicas_never_drop_in_upgrade_or_rollback(stage, who):
    """And the records say what was applied; that of the revision gone back to is as it was."""
    before = await stage.record(1)
    since = await stage.scale(20, who)
    await stage.upgrade(tag="2")
    await stage.upgrade(tag="3", replicas=3)
    since_rollback = await stage.api.get(stage.path)
    await stage.rollback(1)
    live = await stage.api.get(stage.path)
    applied = [(await stage.objects())[_ref(stage, kind)]["spec"]["replicas"] for kind in ("Deployment", "StatefulSet")]

    assert [20] == await stage.replicas_since(since)
    assert [20] == await stage.replicas_since(since_rollback)
    assert "img:1" == live["spec"]["template"]["spec"]["containers"][0]["image"]
    assert [20, 2] == applied
    assert before.manifest == (await stage.record(1)).manifest
    assert "Rollback to 1" == (await stage.record(4)).description
    assert () == await stage.drift()


async def test_what_was_scaled_since_the_last_run_is_no_drift(stage):
    """The record has another number then, of the last run or of the chart."""
    await stage.scale(20, "kubectl")
    await stage.upgrade(tag="2")
    await stage.scale(7, "kube-controller-manager")

    assert () == await stage.drift()


async def test_what_nobody_scaled_is_the_chart_s(stage):
    """Also what was edited; the manifest in the record is then helm's own text."""
    since = await stage.api.get(stage.path)
    await stage.api.merge(stage.path, {"spec": {"replicas": 9}}, "kubectl-edit")
    await stage.upgrade(replicas=3)

    assert [2, 9, 3] == await stage.replicas_since(since)
    assert "replicas: 3 # as few as will do" in (await stage.record(2)).manifest


async def test_a_chart_may_render_nothing_where_something_was_scaled(stage, make_chart):
    await stage.scale(20, "kubectl")
    stage.chart = make_chart({"templates/a.yaml": "{{ if .Values.never }}kind: ConfigMap{{ end }}"}, version="0.2.0")
    await stage.upgrade()

    assert "" == (await stage.record(2)).manifest.strip()


async def test_a_record_that_is_gone_or_none_is_helm_s_to_name(stage):
    """Nothing is carried into it, and nothing is written."""
    await stage.scale(20, "kubectl")
    found = await scaling_live.look(stage.client, stage.served, await stage.objects())
    for number, text in ((7, None), (8, "bm8gcmVjb3Jk")):
        if text:
            body = {"metadata": {"name": f"sh.helm.release.v1.r.v{number}"}, "data": {"release": text}}
            await stage.api.call("POST", f"/api/v1/namespaces/{stage.namespace}/secrets", body)
        revision = records.Revision(stage.namespace, "r", number, "")
        async with scaling_live.recorded(stage.client, runtime_gate.Gate(), stage.work, revision, found):
            pass

    assert 1 == len(found)


def _ref(stage: Stage, kind: str) -> meta.ObjectRef:
    return meta.ObjectRef("apps/v1", kind, stage.namespace, "web")
