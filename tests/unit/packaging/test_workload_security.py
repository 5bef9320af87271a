"""Rules that the charts with a workload keep, in every variant: what Pod Security `restricted` asks, and more."""

from __future__ import annotations

import re
from typing import Any

import pytest

EVERYTHING = {
    "collector": {
        "tenant": {"id": "t-1", "reference": "Acme", "instance": "main"},
        "cluster": "development",
        "replicas": 2,
        "serviceAccount": {"create": True},
        "pdb": {"enabled": True},
        "networkPolicy": {"enabled": True},
        "serviceMonitor": {"enabled": True},
        "priorityClassName": "high",
    },
    "moorage": {
        "replicas": 2,
        "systems": {
            "collector": {
                "charts": {"clusters": {"prod": {"oci": "oci://registry.example/charts", "secretRef": "pull"}}}
            }
        },
        "priorityClassName": "high",
    },
}
VARIANTS = [
    ("collector", {}),
    ("collector", EVERYTHING["collector"]),
    ("moorage", {}),
    ("moorage", EVERYTHING["moorage"]),
]


@pytest.fixture(params=VARIANTS, ids=["collector", "collector-everything", "moorage", "moorage-everything"])
def objects(request: pytest.FixtureRequest, render: Any) -> list[dict[str, Any]]:
    chart, values = request.param
    return render(chart, values)


@pytest.fixture
def deployment(objects: list[dict[str, Any]]) -> dict[str, Any]:
    (found,) = [each for each in objects if each["kind"] == "Deployment"]
    return found


@pytest.fixture
def pod(deployment: dict[str, Any]) -> dict[str, Any]:
    return deployment["spec"]["template"]["spec"]


@pytest.fixture
def container(pod: dict[str, Any]) -> dict[str, Any]:
    (found,) = pod["containers"]
    assert "initContainers" not in pod
    return found


def test_pod_runs_as_nobody_in_particular(pod: dict[str, Any]) -> None:
    context = pod["securityContext"]
    assert context["runAsNonRoot"] is True
    assert context["runAsUser"] >= 10000
    assert context["runAsGroup"] >= 10000
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC", "hostUsers"} & pod.keys()


def test_container_can_gain_nothing(container: dict[str, Any]) -> None:
    context = container["securityContext"]
    assert context["allowPrivilegeEscalation"] is False
    assert context["readOnlyRootFilesystem"] is True
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert not {"privileged", "procMount", "runAsUser"} & context.keys()


def test_image_is_pinned(container: dict[str, Any]) -> None:
    name, _, tag = container["image"].rpartition(":")
    assert name
    assert re.fullmatch(r"\d+\.\d+\.\d+", tag), tag
    assert container["imagePullPolicy"] == "IfNotPresent"


def test_resources_are_asked_for_and_memory_is_bounded(container: dict[str, Any]) -> None:
    resources = container["resources"]
    assert {"cpu", "memory"} <= resources["requests"].keys()
    assert "memory" in resources["limits"]


def test_probes_name_a_port_of_the_container(container: dict[str, Any]) -> None:
    ports = {port["name"] for port in container["ports"]}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["port"] in ports
    assert all(len(port) <= 15 for port in ports)


def test_volumes_are_read_only_or_scratch(pod: dict[str, Any], container: dict[str, Any]) -> None:
    writable = {mount["name"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
    kinds = {volume["name"]: (volume.keys() - {"name"}).pop() for volume in pod["volumes"]}
    assert set(kinds.values()) <= {"secret", "configMap", "emptyDir"}
    assert {kinds[name] for name in writable} <= {"emptyDir"}
    assert all(volume["emptyDir"].get("sizeLimit") for volume in pod["volumes"] if "emptyDir" in volume)


def test_token_is_mounted_only_where_it_is_used(objects: list[dict[str, Any]], pod: dict[str, Any]) -> None:
    operator = "serviceAccountName" in pod and pod["containers"][0]["name"] == "moorage"
    assert pod["automountServiceAccountToken"] is operator
    assert pod["enableServiceLinks"] is False
    for account in (each for each in objects if each["kind"] == "ServiceAccount"):
        assert account["automountServiceAccountToken"] is False


def test_no_secret_travels_by_environment(container: dict[str, Any]) -> None:
    assert "envFrom" not in container
    assert all("secretKeyRef" not in entry.get("valueFrom", {}) for entry in container["env"])


def test_selectors_select_the_pods(objects: list[dict[str, Any]], deployment: dict[str, Any]) -> None:
    template = deployment["spec"]["template"]
    labels = template["metadata"]["labels"].items()
    ports = {port["name"] for port in template["spec"]["containers"][0]["ports"]}
    assert deployment["spec"]["selector"]["matchLabels"].items() <= labels
    (spread,) = template["spec"]["topologySpreadConstraints"]
    assert spread["labelSelector"]["matchLabels"].items() <= labels
    for each in objects:
        spec = each.get("spec", {})
        if each["kind"] == "Service":
            assert spec["selector"].items() <= labels
            assert {port["targetPort"] for port in spec["ports"]} <= ports
        if each["kind"] == "PodDisruptionBudget":
            assert spec["selector"]["matchLabels"].items() <= labels
        if each["kind"] == "NetworkPolicy":
            assert spec["podSelector"]["matchLabels"].items() <= labels


def test_a_roll_never_takes_the_last_pod(deployment: dict[str, Any]) -> None:
    assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert deployment["spec"]["revisionHistoryLimit"] <= 3


def test_labels_are_the_recommended_ones(objects: list[dict[str, Any]]) -> None:
    for each in objects:
        labels = each["metadata"]["labels"]
        assert {"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/version"} <= labels.keys()
        assert labels["app.kubernetes.io/managed-by"] == "Helm"
        assert all(re.fullmatch(r"([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]", value) for value in labels.values())


def test_namespaced_objects_stay_in_the_release_namespace(objects: list[dict[str, Any]]) -> None:
    """But for those that say whom moorage may act as, where its accounts' names are."""
    cluster_scoped = ("ClusterRole", "CustomResourceDefinition", "Namespace", "ValidatingAdmissionPolicy")
    outside = set()
    for each in objects:
        if not each["kind"].startswith(cluster_scoped) and (where := each["metadata"]["namespace"]) != "place":
            outside.add((each["kind"], where))
    assert outside <= {("Role", "rel-moorage-accounts"), ("RoleBinding", "rel-moorage-accounts")}


@pytest.mark.parametrize("chart", ["collector", "moorage"])
def test_the_same_values_render_the_same(helm: Any, root: Any, chart: str) -> None:
    first, second = (helm("template", "rel", str(root / "charts" / chart)).stdout for _ in range(2))
    assert first == second != ""


@pytest.mark.parametrize("chart", ["collector", "moorage", "xsld-cache"])
def test_lint_is_clean(helm: Any, root: Any, chart: str) -> None:
    done = helm("lint", "--strict", str(root / "charts" / chart))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("chart", ["collector", "moorage"])
def test_a_digest_wins_over_the_tag(render: Any, chart: str) -> None:
    digest = "sha256:" + "0" * 64
    (deployment,) = [o for o in render(chart, {"image": {"digest": digest, "tag": "x"}}) if o["kind"] == "Deployment"]
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == f"moorage.dev/{chart}@{digest}"
