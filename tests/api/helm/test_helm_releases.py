"""Releases by the real helm on a real API server, and what becomes of one whose helm was killed."""

from __future__ import annotations

import asyncio
import os
import signal

import msgspec
import pytest

from moorage.api import meta
from moorage.helm.release import drift, manifest, records
from moorage.helm.runs import binary, failures

pytestmark = pytest.mark.api

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {v: {{ .Values.v | quote }}}\n"
SLOW_HOOK = """apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-slow
  annotations: {helm.sh/hook: "pre-install,pre-upgrade"}
spec:
  suspend: true
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: none}]}}
"""
K = failures.FailureKind


async def revisions(api, namespace, release="r"):
    """[(Revision, Record)] in order."""
    path = f"/api/v1/namespaces/{namespace}/secrets"
    found = await api.get(path, labelSelector=f"{records.SELECTOR},name={release}")
    pairs = [
        (
            records.Revision.from_metadata(msgspec.convert(s["metadata"], meta.ObjectMeta)),
            records.decode(s["data"]["release"]),
        )
        for s in found["items"]
    ]
    return sorted(pairs, key=lambda p: p[0])


async def test_install_upgrade_rollback_uninstall(api, helm, namespace, make_chart):
    chart = make_chart({"templates/c.yaml": CONFIG})
    assert (
        await helm.upgrade_install("r", namespace, chart, {"v": 1}, digest_labels={"d": "one", "only": "first"})
    ).revision == 1
    assert (
        await helm.upgrade_install("r", namespace, chart, {"v": 2}, digest_labels={"d": "two"}, description="why")
    ).revision == 2
    await helm.rollback("r", namespace, 1)
    (first, one), (second, two), (third, three) = await revisions(api, namespace)
    assert [r.status for r in (first, second, third)] == ["superseded", "superseded", "deployed"]
    assert (one.apply_method, two.description, three.description) == ("ssa", "why", "Rollback to 1")
    # labels: merged by an upgrade, taken from its target by a rollback
    assert [r.labels for r in (first, second, third)] == [
        {"d": "one", "only": "first"},
        {"d": "two", "only": "first"},
        {"d": "one", "only": "first"},
    ]
    assert one.manifest == three.manifest != two.manifest
    await helm.uninstall("r", namespace)
    await helm.uninstall("r", namespace)
    assert await revisions(api, namespace) == []
    with pytest.raises(AssertionError, match="404"):
        await api.get(f"/api/v1/namespaces/{namespace}/configmaps/r")


async def test_an_upgrade_by_hand_is_seen_although_labels_are_inherited(api, helm, helm_path, namespace, make_chart):
    chart = make_chart({"templates/c.yaml": CONFIG})
    await helm.upgrade_install("r", namespace, chart, {"v": 1}, digest_labels={"d": "one"})
    args = ["upgrade", "r", str(chart), "--namespace", namespace, "--set", "v=7"]
    hand = await asyncio.create_subprocess_exec(
        *(helm_path, *args), env={**os.environ, "KUBECONFIG": str(helm._kubeconfig)}, stdout=asyncio.subprocess.DEVNULL
    )
    assert await hand.wait() == 0
    (first, one), (second, two) = await revisions(api, namespace)
    assert first.labels == second.labels == {"d": "one"}
    assert one.manifest != two.manifest
    assert one.description != two.description


async def test_history_is_bounded(api, helm, namespace, make_chart):
    chart = make_chart({"templates/c.yaml": CONFIG})
    for value in range(4):
        await helm.upgrade_install("r", namespace, chart, {"v": value}, history_max=2)
    assert [r.number for r, _ in await revisions(api, namespace)] == [3, 4]


@pytest.mark.parametrize("before", [False, True], ids=["install", "upgrade"])
async def test_a_killed_helm_leaves_a_pending_record_that_can_be_freed(api, helm, namespace, make_chart, before):
    good, slow = (
        make_chart({"templates/c.yaml": CONFIG}),
        make_chart({"templates/c.yaml": CONFIG, "templates/h.yaml": SLOW_HOOK}, version="0.2.0"),
    )
    if before:
        await helm.upgrade_install("r", namespace, good, {"v": 1}, digest_labels={"d": "one"})
    task = asyncio.create_task(helm.upgrade_install("r", namespace, slow, {"v": 2}, timeout=60))
    await _hook_exists(api, namespace)
    os.killpg(_child_of_this_process(), signal.SIGKILL)
    with pytest.raises(binary.HelmFailed) as caught:
        await task
    assert caught.value.kind is K.KILLED
    stuck, _ = (await revisions(api, namespace))[-1]
    assert stuck.status == ("pending-upgrade" if before else "pending-install")
    with pytest.raises(binary.HelmFailed) as caught:
        await helm.upgrade_install("r", namespace, good, {"v": 3})
    assert caught.value.kind is K.PENDING

    path = f"/api/v1/namespaces/{namespace}/secrets/{stuck.secret_name}"
    secret = await api.get(path)
    data, labels = records.with_status(secret["data"]["release"], "failed", "its helm was killed")
    owned = {"uid": stuck.uid, "resourceVersion": stuck.resource_version, "labels": labels}
    await api.merge(path, {"metadata": owned, "data": {"release": data}}, "moorage")
    assert (await helm.upgrade_install("r", namespace, good, {"v": 3})).revision == stuck.number + 1
    config = await api.get(f"/api/v1/namespaces/{namespace}/configmaps/r")
    assert config["data"] == {"v": "3"}


async def test_a_helm_that_is_asked_to_end_writes_its_record(api, helm, namespace, make_chart):
    slow = make_chart({"templates/h.yaml": SLOW_HOOK})
    task = asyncio.create_task(helm.upgrade_install("r", namespace, slow, {}, timeout=60))
    await _hook_exists(api, namespace)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    ((revision, record),) = await revisions(api, namespace)
    assert (revision.status, record.status) == ("failed", "failed")


async def test_a_hook_that_does_not_end_in_time(api, helm, namespace, make_chart):
    with pytest.raises(binary.HelmFailed) as caught:
        await helm.upgrade_install("r", namespace, make_chart({"templates/h.yaml": SLOW_HOOK}), {}, timeout=3)
    assert caught.value.kind in (K.HOOK_FAILED, K.TIMED_OUT)
    ((revision, _),) = await revisions(api, namespace)
    assert revision.status == "failed"


DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata: {name: r}
spec:
  selector: {matchLabels: {app: {{ .Values.app | quote }}}}
  template:
    metadata: {labels: {app: {{ .Values.app | quote }}}}
    spec: {containers: [{name: c, image: i{{ .Values.more }}}]}
"""


@pytest.mark.parametrize(
    ("template", "kind"),
    [
        ("apiVersion: example.invalid/v1\nkind: Thing\nmetadata: {name: x}\n", K.UNKNOWN_KIND),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: [1]}\n", K.INVALID),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\nnope: 1\n", K.INVALID),
        ("apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {ports: [{port: 0}]}\n", K.INVALID),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: nowhere-at-all}\n", K.NO_NAMESPACE),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine}\n", K.ALREADY_OWNED),
    ],
)
async def test_refusals_are_typed(api, helm, namespace, make_chart, template, kind):
    await api.call("POST", f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "mine"}})
    with pytest.raises(binary.HelmFailed) as caught:
        await helm.upgrade_install("r", namespace, make_chart({"templates/a.yaml": template}), {})
    assert caught.value.kind is kind, caught.value


async def test_what_is_another_s_can_be_taken_over(api, helm, namespace, make_chart):
    await api.call(
        "POST", f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "r"}, "data": {"v": "0"}}
    )
    chart = make_chart({"templates/c.yaml": CONFIG})
    await helm.upgrade_install("r", namespace, chart, {"v": 1}, take_ownership=True)
    assert (await api.get(f"/api/v1/namespaces/{namespace}/configmaps/r"))["data"] == {"v": "1"}


async def test_immutable_fields(helm, namespace, make_chart):
    chart = make_chart({"templates/d.yaml": DEPLOYMENT.replace(".app", ".token")})
    await helm.upgrade_install("r", namespace, chart, {"token": "a"})
    with pytest.raises(binary.HelmFailed) as caught:
        await helm.upgrade_install("r", namespace, chart, {"token": "b-secret-name"})
    assert caught.value.kind is K.IMMUTABLE
    assert "b-secret-name" not in str(caught.value)


async def test_quota(api, helm, namespace, make_chart):
    path = f"/api/v1/namespaces/{namespace}/resourcequotas"
    await api.call("POST", path, {"metadata": {"name": "q"}, "spec": {"hard": {"count/configmaps": "0"}}})
    await api.merge(
        f"{path}/q", {"status": {"hard": {"count/configmaps": "0"}, "used": {"count/configmaps": "0"}}}, "t", "status"
    )
    await _is_refused(api, namespace, "exceeded quota: q")
    with pytest.raises(binary.HelmFailed) as caught:
        await helm.upgrade_install("r", namespace, make_chart({"templates/c.yaml": CONFIG}), {"v": 1})
    assert caught.value.kind is K.QUOTA, caught.value
    assert caught.value.transient


async def test_a_record_that_is_too_large(api, helm, namespace, make_chart):
    noise = os.urandom(900_000).hex()
    parts = {
        f"templates/{i}.yaml": f"# {noise[i * 400_000 : (i + 1) * 400_000]}\n" + CONFIG.replace("}}}", f"}}}}-{i}}}", 1)
        for i in range(4)
    }
    with pytest.raises(binary.HelmFailed) as caught:
        await helm.upgrade_install("r", namespace, make_chart(parts), {"v": 1})
    assert caught.value.kind is K.RECORD_TOO_LARGE, caught.value


async def test_crds_of_the_chart_are_left_out(api, helm, namespace, make_chart):
    crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: nonsense}\n"
    await helm.upgrade_install("r", namespace, make_chart({"crds/c.yaml": crd, "templates/c.yaml": CONFIG}), {"v": 1})


async def test_an_object_that_was_deleted_is_restored_in_the_form_that_helm_accepts(api, helm, namespace, make_chart):
    chart = make_chart({"templates/c.yaml": CONFIG})
    await helm.upgrade_install("r", namespace, chart, {"v": 1})
    path = f"/api/v1/namespaces/{namespace}/configmaps/r"
    await api.call("DELETE", path)
    (_, record) = (await revisions(api, namespace))[-1]
    (body,) = manifest.parse(record.manifest).objects
    await api.apply(path, drift.restore_body(body, "r", namespace), drift.MANAGER)
    live = await api.get(path)
    assert drift.differing(drift.desired(body, "r", namespace), live) == ()
    await helm.upgrade_install("r", namespace, chart, {"v": 2})
    assert (await api.get(path))["data"] == {"v": "2"}


async def _is_refused(api, namespace, words):
    """Return when the server refuses a ConfigMap in these words; it reads quotas from a cache of its own."""
    path, said = f"/api/v1/namespaces/{namespace}/configmaps", ""
    async with asyncio.timeout(90):
        while words not in said:
            try:
                await api.call("POST", path, {"metadata": {"name": "probe"}}, dryRun="All")
            except AssertionError as error:
                said = str(error)
            await asyncio.sleep(0.05)


async def _hook_exists(api, namespace):
    for _ in range(1800):
        if (await api.get(f"/apis/batch/v1/namespaces/{namespace}/jobs"))["items"]:
            return
        await asyncio.sleep(0.05)
    pytest.fail("the hook was not created")


def _child_of_this_process() -> int:
    """The one child of ours that leads its own group."""
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        found = [int(pid) for pid in file.read().split() if os.getpgid(int(pid)) == int(pid)]
    assert len(found) == 1
    return found[0]
