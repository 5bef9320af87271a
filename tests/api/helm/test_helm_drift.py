"""What managedFields tell on a real API server: who changed a field, and when it is no drift."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import socket
import ssl
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from moorage.api import comparison
from moorage.helm.release import drift, manifest, records
from moorage.helm.runs import binary, failures

pytestmark = pytest.mark.api

EVERYTHING = """apiVersion: apps/v1
kind: Deployment
metadata: {name: r, labels: {tier: "1"}, annotations: {}}
spec:
  replicas: 2
  paused: false
  strategy: {}
  selector: {matchLabels: {app: r}}
  template:
    metadata: {labels: {app: r}, creationTimestamp: null, annotations: {}}
    spec:
      hostNetwork: false
      automountServiceAccountToken: false
      nodeSelector: {}
      affinity: {}
      securityContext: {}
      imagePullSecrets: []
      terminationGracePeriodSeconds: 0
      initContainers: []
      containers:
      - name: c
        image: img:1
        command: []
        args: ["1h", "60m"]
        env:
        - {name: EMPTY, value: ""}
        - {name: B, value: "x"}
        - {name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
        ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP, name: u}]
        resources: {limits: {cpu: 1000m, memory: 1024Mi}, requests: {cpu: 0.5, memory: 1e6}}
        securityContext: {privileged: false, capabilities: {drop: [ALL]}}
        livenessProbe: {httpGet: {path: /, port: 80}, initialDelaySeconds: 0}
        volumeMounts: [{name: v, mountPath: /v, readOnly: false}]
      tolerations: [{key: x, operator: Exists}, {key: q, operator: Exists, value: ""}]
      volumes: [{name: v, emptyDir: {}}, {name: w, emptyDir: {sizeLimit: 1024Mi}}, {name: s, secret: {secretName: r}}]
---
apiVersion: v1
kind: Secret
metadata: {name: r}
stringData: {k: v, both: new}
data: {d: aGk=, both: b2xk}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: r}
data: {quantity: 1000m, empty: "", date: 2024-01-01x}
binaryData: {b: aGk=}
---
apiVersion: v1
kind: Service
metadata: {name: r}
spec:
  clusterIP: ""
  sessionAffinity: ""
  selector: {app: r}
  ports: [{port: 80, name: w, targetPort: w}, {port: 81, name: m, targetPort: 81, nodePort: 0}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: r}
automountServiceAccountToken: false
imagePullSecrets: [{name: a}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: r}
spec:
  serviceName: r
  selector: {matchLabels: {app: st}}
  template: {metadata: {labels: {app: st}}, spec: {containers: [{name: c, image: "img:1"}]}}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1024Mi}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: r}
spec:
  maxReplicas: 40  # more than tests scale to: its controller takes back what is beyond
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: r}
  metrics: [{type: Pods, pods: {metric: {name: x}, target: {type: AverageValue, averageValue: 1000m}}}]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: r}
spec:
  podSelector: {}
  policyTypes: [Ingress]
  ingress: [{}, {ports: [{port: 80}], from: [{podSelector: {}}]}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: r}
spec:
  rules:
  - host: h
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: r, port: {number: 80}}}}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: r}
spec:
  schedule: "@daily"
  suspend: false
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: r}
spec: {minAvailable: 50%, selector: {matchLabels: {app: r}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: r}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: r}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1024Mi}}}
"""
PLURALS = {
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments/r",
    "Secret": "/api/v1/namespaces/{}/secrets/r",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps/r",
    "Service": "/api/v1/namespaces/{}/services/r",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts/r",
    "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets/r",
    "HorizontalPodAutoscaler": "/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers/r",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies/r",
    "Ingress": "/apis/networking.k8s.io/v1/namespaces/{}/ingresses/r",
    "CronJob": "/apis/batch/v1/namespaces/{}/cronjobs/r",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets/r",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles/r",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims/r",
}


class Release:
    """A release of EVERYTHING and its recorded objects by kind."""

    def __init__(self, api, helm, namespace, chart) -> None:
        self.api, self.helm, self.namespace, self.chart = api, helm, namespace, chart
        self.wanted: dict = {}

    async def upgrade(self) -> None:
        done = await self.helm.upgrade_install("r", self.namespace, self.chart, {})
        name = f"sh.helm.release.v1.r.v{done.revision}"
        secret = await self.api.get(f"/api/v1/namespaces/{self.namespace}/secrets/{name}")
        objects = manifest.parse(records.decode(secret["data"]["release"]).manifest).objects
        self.wanted = {o["kind"]: o for o in objects}

    def path(self, kind: str) -> str:
        return PLURALS[kind].format(self.namespace)

    async def drift(self, kind: str, *, tracked: bool = True) -> list[str]:
        live = await self.api.get(self.path(kind))
        if not tracked:
            live["metadata"].pop("managedFields")
        wanted = drift.desired(self.wanted[kind], "r", self.namespace)
        return [str(d) for d in comparison.differences(wanted, live, manager=drift.MANAGER)]

    async def restore(self, kind: str) -> tuple[dict, dict]:
        """The object as it was before, and as it is then."""
        live = await self.api.get(self.path(kind))
        body = drift.restore_body(self.wanted[kind], "r", self.namespace, live=live)
        return live, await self.api.apply(self.path(kind), body, drift.MANAGER)

    async def restore_writes(self, kind: str) -> bool:
        """Whether the server writes anything for it; in between the cluster's controllers may, whose writes show."""
        versions = await self.api.history(self.path(kind), *await self.restore(kind))
        return any(_by_controllers(one) == _by_controllers(two) for one, two in itertools.pairwise(versions))


def _by_controllers(body: dict) -> list:
    """All of an object that controllers write, so that each write of theirs changes it."""
    theirs = [entry for entry in body["metadata"]["managedFields"] if entry["manager"] != drift.MANAGER]
    return [theirs, body.get("status")]


@pytest.fixture
async def release(api, helm, namespace, make_chart) -> Release:
    found = Release(api, helm, namespace, make_chart({"templates/a.yaml": EVERYTHING}))
    await found.upgrade()
    return found


async def test_what_helm_has_just_made_has_no_drift(release):
    assert set(release.wanted) == set(PLURALS)
    for _ in range(2):
        assert {kind: await release.drift(kind) for kind in PLURALS} == {kind: [] for kind in PLURALS}
        for kind in PLURALS:
            if kind == "PersistentVolumeClaim":
                await release.restore(kind)  # the first after its creation is a write to the server, though equal
            assert not await release.restore_writes(kind), kind
        await release.upgrade()


async def test_nor_without_managed_fields(release):
    assert {kind: await release.drift(kind, tracked=False) for kind in PLURALS} == {kind: [] for kind in PLURALS}


CONTAINER = "/spec/template/spec/containers/0"
USERS = [
    (
        "Deployment",
        [("replace", f"{CONTAINER}/image", "img:2")],
        ["spec.template.spec.containers[name=c].image changed"],
    ),
    (
        "Deployment",
        [("remove", f"{CONTAINER}/env/1", None)],
        ["spec.template.spec.containers[name=c].env[name=B] missing"],
    ),
    (
        "Deployment",
        [("replace", f"{CONTAINER}/env/0/value", "x")],
        ["spec.template.spec.containers[name=c].env[name=EMPTY].value changed"],
    ),
    ("Deployment", [("replace", f"{CONTAINER}/args", ["1h"])], ["spec.template.spec.containers[name=c].args changed"]),
    (
        "Deployment",
        [("replace", f"{CONTAINER}/args/1", "1h")],
        ["spec.template.spec.containers[name=c].args[1] changed"],
    ),
    (
        "Deployment",
        [("replace", f"{CONTAINER}/resources/limits/cpu", "2")],
        ["spec.template.spec.containers[name=c].resources.limits.cpu changed"],
    ),
    (
        "Deployment",
        [("remove", "/spec/template/spec/automountServiceAccountToken", None)],
        ["spec.template.spec.automountServiceAccountToken missing"],
    ),
    ("Deployment", [("add", "/spec/template/spec/hostNetwork", True)], ["spec.template.spec.hostNetwork changed"]),
    (
        "Deployment",
        [("replace", "/spec/template/spec/tolerations/0/key", "z")],
        ["spec.template.spec.tolerations[0].key changed"],
    ),
    ("Deployment", [("remove", "/spec/template/spec/tolerations", None)], ["spec.template.spec.tolerations missing"]),
    ("Deployment", [("replace", "/spec/replicas", 7)], ["spec.replicas changed"]),
    ("Deployment", [("replace", "/metadata/labels/tier", "2")], ["metadata.labels.tier changed"]),
    (
        "Deployment",
        [("remove", "/metadata/labels/app.kubernetes.io~1managed-by", None)],
        ['metadata.labels["app.kubernetes.io/managed-by"] missing'],
    ),
    ("Deployment", [("add", "/metadata/labels/own", "x"), ("add", "/spec/minReadySeconds", 3)], []),
    ("Service", [("replace", "/spec/ports/1/targetPort", 82)], ["spec.ports[port=81].targetPort changed"]),
    ("Service", [("remove", "/spec/ports/1", None)], ["spec.ports[port=81] missing"]),
    ("ConfigMap", [("replace", "/data/quantity", "1")], ["data.quantity changed"]),
    ("ConfigMap", [("remove", "/data/empty", None)], ["data.empty missing"]),
    ("Secret", [("replace", "/data/k", base64.b64encode(b"pw").decode())], ["stringData.k changed"]),
    ("Secret", [("remove", "/data/k", None)], ["stringData.k missing"]),
    ("Secret", [("replace", "/data/d", "eA==")], ["data.d changed"]),
    ("Role", [("replace", "/rules/0/verbs/0", "*")], ["rules[0].verbs[0] changed"]),
    ("NetworkPolicy", [("remove", "/spec/ingress", None)], ["spec.ingress missing"]),
    ("HorizontalPodAutoscaler", [("replace", "/spec/maxReplicas", 9)], ["spec.maxReplicas changed"]),
    # values that are one to the server: nobody can add to them
    ("Service", [("add", "/spec/selector/color", "red")], ["spec.selector.color added"]),
    (
        "Deployment",
        [("add", "/spec/template/spec/nodeSelector", {"disk": "ssd"})],
        ["spec.template.spec.nodeSelector.disk added"],
    ),
    (
        "Deployment",
        [("add", "/spec/template/spec/tolerations/0/effect", "NoSchedule")],
        ["spec.template.spec.tolerations[0].effect added"],
    ),
    (
        "Deployment",
        [("replace", f"{CONTAINER}/env/2/valueFrom/resourceFieldRef/divisor", "1m")],
        ["spec.template.spec.containers[name=c].env[name=CPU].valueFrom.resourceFieldRef.divisor added"],
    ),
    (
        "NetworkPolicy",
        [("add", "/spec/ingress/1/from/0/namespaceSelector", {})],
        ["spec.ingress[1].from[0].namespaceSelector added"],
    ),
    (
        "NetworkPolicy",
        [("add", "/spec/podSelector/matchLabels", {"app": "x"})],
        ["spec.podSelector.matchLabels added"],
    ),
    ("NetworkPolicy", [("add", "/spec/egress", [])], []),
    ("PodDisruptionBudget", [("add", "/spec/selector/matchLabels/b", "c")], ["spec.selector.matchLabels.b added"]),
    ("Role", [("add", "/rules/0/resourceNames", ["x"])], ["rules[0].resourceNames added"]),
    (
        "Ingress",
        [("add", "/spec/rules/0/http/paths/0/backend/service/port", {"name": "w"})],
        [
            "spec.rules[0].http.paths[0].backend.service.port.name added",
            "spec.rules[0].http.paths[0].backend.service.port.number missing",
        ],
    ),
]


async def test_what_was_edited_and_put_back_by_hand_is_no_drift(release):
    """The user owns the value from then on; the server's own defaults in it are known."""
    for kind, path, other, value in (
        ("NetworkPolicy", "/spec/ingress/1/ports/0/port", 81, 80),
        ("Service", "/spec/selector/app", "x", "r"),
        ("Deployment", "/spec/template/spec/tolerations/0/key", "z", "x"),
        ("Deployment", f"{CONTAINER}/env/2/valueFrom/resourceFieldRef/resource", "requests.cpu", "limits.cpu"),
        ("PodDisruptionBudget", "/spec/selector/matchLabels/app", "x", "r"),
    ):
        for each in (other, value):
            step = {"op": "replace", "path": path, "value": each}
            await release.api.json_patch(release.path(kind), [step], "kubectl-edit")

        assert (kind, []) == (kind, await release.drift(kind))


async def test_a_user_s_edit_is_drift_and_one_apply_repairs_it(release):
    """Each of USERS, one after the other on the same release."""
    for kind, steps, expected in USERS:
        patch = [{"op": op, "path": path, **({} if op == "remove" else {"value": value})} for op, path, value in steps]
        await release.api.json_patch(release.path(kind), patch, "kubectl-edit")
        assert (steps, await release.drift(kind)) == (steps, expected)
        await release.restore(kind)
        assert (steps, await release.drift(kind)) == (steps, [])
    await release.upgrade()
    assert {kind: await release.drift(kind) for kind in PLURALS} == {kind: [] for kind in PLURALS}


async def test_one_member_of_a_union_beside_another_is_refused(release):
    """No apply takes away what a user owns; helm's is refused in the same way."""
    volume = {
        "op": "replace",
        "path": "/spec/template/spec/volumes/1",
        "value": {"name": "w", "hostPath": {"path": "/"}},
    }
    await release.api.json_patch(release.path("Deployment"), [volume], "kubectl-edit")
    assert await release.drift("Deployment") == ["spec.template.spec.volumes[name=w].emptyDir missing"]
    with pytest.raises(AssertionError, match="more than 1 volume type"):
        await release.restore("Deployment")
    with pytest.raises(binary.HelmFailed, match="more than 1 volume type") as caught:
        await release.upgrade()
    assert caught.value.kind is failures.FailureKind.INVALID


async def test_what_was_set_and_taken_back_costs_one_repair(release):
    """A false that the server doesn't store: its owner is gone, so it counts as missing until it is applied once."""
    path = release.path("Deployment")
    await release.api.json_patch(
        path, [{"op": "add", "path": "/spec/template/spec/hostNetwork", "value": True}], "kubectl-edit"
    )
    await release.api.json_patch(path, [{"op": "remove", "path": "/spec/template/spec/hostNetwork"}], "kubectl-edit")
    assert await release.drift("Deployment") == ["spec.template.spec.hostNetwork missing"]
    await release.restore("Deployment")
    assert await release.drift("Deployment") == []


async def test_who_scales_is_left_alone(release):
    """An autoscaler, and a person with `kubectl scale`; not one who edits the field."""
    path, scale = release.path("Deployment"), {"spec": {"replicas": 5}}
    await release.api.merge(path, scale, "kube-controller-manager", "scale")
    assert await release.drift("Deployment") == []
    await release.api.merge(path, {"metadata": {"labels": {"tier": "9"}}}, "kubectl-label")
    assert await release.drift("Deployment") == ["metadata.labels.tier changed"]
    await release.restore("Deployment")
    live = await release.api.get(path)
    assert (live["spec"]["replicas"], await release.drift("Deployment")) == (5, [])
    await release.api.merge(path, {"spec": {"replicas": 6}}, "kubectl", "scale")
    assert await release.drift("Deployment") == []
    await release.api.merge(path, {"spec": {"replicas": 7}}, "kubectl-edit")
    assert await release.drift("Deployment") == ["spec.replicas changed"]
    await release.restore("Deployment")
    assert (await release.api.get(path))["spec"]["replicas"] == 2


async def test_helm_itself_takes_replicas_back_from_an_autoscaler(release):
    path = release.path("Deployment")
    await release.api.merge(path, {"spec": {"replicas": 5}}, "kube-controller-manager", "scale")
    await release.upgrade()
    assert (await release.api.get(path))["spec"]["replicas"] == 2


async def test_a_deleted_object_is_missing_and_comes_back_with_no_drift(release):
    await release.api.call("DELETE", release.path("Service"))
    wanted = drift.desired(release.wanted["Service"], "r", release.namespace)
    assert drift.differing(wanted, None) == (comparison.THE_OBJECT,)
    body = drift.restore_body(release.wanted["Service"], "r", release.namespace)
    await release.api.apply(release.path("Service"), body, drift.MANAGER)
    assert await release.drift("Service") == []
    await release.upgrade()


async def test_an_apply_with_the_uid_of_a_deleted_object_brings_nothing_back(release):
    live = await release.api.get(release.path("Service"))
    await release.api.call("DELETE", release.path("Service"))
    body = drift.restore_body(release.wanted["Service"], "r", release.namespace, live=live)
    with pytest.raises(AssertionError, match="409"):
        await release.api.apply(release.path("Service"), body, drift.MANAGER)


# --- a webhook -------------------------------------------------------------------------------------------------------


def _certificate(address: str, folder: Path) -> None:
    request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=webhook"]
    request += ["-addext", f"subjectAltName=IP:{address}", "-keyout", str(folder / "key"), "-out", str(folder / "crt")]
    subprocess.run(request, check=True, capture_output=True)


@pytest.fixture
async def webhook(api, namespace, tmp_path):
    """A mutating webhook that rewrites images and drops args, where the API server can reach this machine."""
    host, port = urlsplit(api.server).hostname, urlsplit(api.server).port or 443
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, port))
        here = probe.getsockname()[0]
    await asyncio.to_thread(_certificate, here, tmp_path)

    async def answer(request: web.Request) -> web.Response:
        asked = (await request.json())["request"]
        patch = []
        if asked["object"]["kind"] == "Deployment":
            patch = [{"op": "replace", "path": f"{CONTAINER}/image", "value": "mirror/img:1"}]
            if "args" in asked["object"]["spec"]["template"]["spec"]["containers"][0]:
                patch.append({"op": "remove", "path": f"{CONTAINER}/args"})
        if asked["object"]["kind"] == "Secret" and "k" in asked["object"].get("data", {}):
            patch = [{"op": "replace", "path": "/data/k", "value": "eA=="}]
        body = {"uid": asked["uid"], "allowed": True}
        if patch:
            body |= {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(patch).encode()).decode()}
        return web.json_response({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": body})

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    app = web.Application()
    app.router.add_post("/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, here, 0, ssl_context=context)
    await site.start()
    bound = runner.addresses[0][1]
    path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    hook = {
        "name": "mutate.example.invalid",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "reinvocationPolicy": "Never",
        "timeoutSeconds": 5,
        "clientConfig": {
            "url": f"https://{here}:{bound}/",
            "caBundle": base64.b64encode((tmp_path / "crt").read_bytes()).decode(),
        },
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "rules": [{"operations": ["CREATE", "UPDATE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}],
    }
    await api.call("POST", path, {"metadata": {"name": namespace}, "webhooks": [hook]})
    probe = {"metadata": {"name": "probe"}, "data": {"k": ""}}
    while (await api.call("POST", f"/api/v1/namespaces/{namespace}/secrets", probe, dryRun="All"))["data"]["k"] == "":
        await asyncio.sleep(0.05)  # the API server has not read it yet
    yield
    await api.call("DELETE", f"{path}/{namespace}")
    await runner.cleanup()


async def test_what_a_webhook_changes_while_helm_writes_is_no_drift(webhook, release):
    live = await release.api.get(release.path("Deployment"))
    (container,) = live["spec"]["template"]["spec"]["containers"]
    assert (container["image"], "args" in container) == ("mirror/img:1", False)
    for _ in range(2):
        assert await release.drift("Deployment") == []
        assert await release.drift("Secret") == []
        await release.restore("Deployment")
        await release.upgrade()


async def test_a_user_s_edit_beside_a_webhook_is_repaired_once(webhook, release):
    path = release.path("Deployment")
    await release.api.merge(path, {"metadata": {"labels": {"tier": "2"}}}, "kubectl-edit")
    before = await release.drift("Deployment")
    assert "metadata.labels.tier changed" in before
    await release.restore("Deployment")
    assert await release.drift("Deployment") == []
