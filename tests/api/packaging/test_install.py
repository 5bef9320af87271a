"""The charts against a real API server: strict validation, Pod Security `restricted`, and what an uninstall leaves."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from conftest import Cluster

pytestmark = pytest.mark.api

COLLECTOR = {
    "replicas": 0,
    "serviceAccount": {"create": True},
    "pdb": {"enabled": True},
    "networkPolicy": {"enabled": True},
    "tenant": {"id": "t-1", "reference": "Acme", "instance": "main"},
    "cluster": "development",
}


@pytest.fixture
def place(cluster: Cluster, tag: str) -> Iterator[str]:
    """A namespace that takes only restricted pods."""
    name = f"{tag}-{secrets.token_hex(3)}"
    levels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
    cluster.must(cluster.kubectl("create", body=cluster.namespace(name, **levels)))
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


def install(cluster: Cluster, tmp_path: Path, chart: Path, name: str, place: str, values: dict[str, Any]) -> str:
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    done = cluster.helm("upgrade", "--install", name, str(chart), "--namespace", place, "--values", str(file))
    cluster.must(done)
    assert "would violate PodSecurity" not in done.stderr
    return done.stdout


def pod_of(cluster: Cluster, place: str, deployment: str) -> dict[str, Any]:
    """The Pod that the Deployment's template stands for."""
    found = json.loads(cluster.must(cluster.kubectl("-n", place, "get", "deployment", deployment, "-o", "json")))
    template = found["spec"]["template"]
    metadata = {"name": "trial", "namespace": place, "labels": template["metadata"]["labels"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def test_collector_chart_installs_and_its_pod_is_admitted(
    cluster: Cluster, root: Path, tmp_path: Path, place: str
) -> None:
    install(cluster, tmp_path, root / "charts/collector", "collector-main", place, COLLECTOR)
    cluster.must(cluster.kubectl("create", "--dry-run=server", body=pod_of(cluster, place, "collector-main")))
    kinds = "deployment,secret,service,serviceaccount,poddisruptionbudget,networkpolicy"
    left = ("-n", place, "get", kinds, "-l", "app.kubernetes.io/instance=collector-main", "-o", "name")
    assert len(cluster.must(cluster.kubectl(*left)).split()) == 6
    cluster.must(cluster.helm("uninstall", "collector-main", "--namespace", place))
    assert cluster.must(cluster.kubectl(*left)) == ""


def test_operator_pod_is_admitted(cluster: Cluster, root: Path, tmp_path: Path, place: str) -> None:
    off = {"collector": {"enabled": False}, "xsld": {"enabled": False}}
    values = {"replicas": 0, "crds": {"enabled": False}, "systems": off}
    install(cluster, tmp_path, root / "charts/moorage", f"moorage-{place}", place, values)
    try:
        cluster.must(cluster.kubectl("create", "--dry-run=server", body=pod_of(cluster, place, f"moorage-{place}")))
    finally:
        cluster.must(cluster.helm("uninstall", f"moorage-{place}", "--namespace", place))


def test_crds_outlive_the_release_and_are_taken_up_again(
    cluster: Cluster, root: Path, tmp_path: Path, place: str, tag: str
) -> None:
    chart = tmp_path / "moorage"
    shutil.copytree(root / "charts/moorage", chart)
    crd = _crd_of_ones_own(f"{tag}probes")
    name = crd["metadata"]["name"]
    (chart / "files/crds/collector.yaml").write_text(yaml.safe_dump_all([crd, None]))
    release = f"moorage-{place}"
    values: dict[str, Any] = {"replicas": 0, "systems": {"xsld": {"enabled": False}}}
    lookup = ("get", "crd", "-o", "name", "--ignore-not-found", name)
    try:
        install(cluster, tmp_path, chart, release, place, values)
        cluster.must(cluster.helm("uninstall", release, "--namespace", place))
        assert name in cluster.must(cluster.kubectl(*lookup)), "uninstall took the CRD"
        assert "status=deployed" not in str(cluster.helm("list", "-n", place).stdout)
        install(cluster, tmp_path, chart, release, place, values)
        values["systems"]["collector"] = {"enabled": False}
        install(cluster, tmp_path, chart, release, place, values)
        assert name in cluster.must(cluster.kubectl(*lookup)), "switching the system off took the CRD"
        cluster.must(cluster.helm("uninstall", release, "--namespace", place))
    finally:
        cluster.helm("uninstall", release, "--namespace", place)
        cluster.kubectl("delete", "crd", name, "--wait=false")
        cluster.kubectl("delete", "namespace", f"{release}-accounts", "--wait=false")


def _crd_of_ones_own(plural: str) -> dict[str, Any]:
    """A CRD that no other test uses."""
    kind = plural.capitalize()
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1alpha", "served": True, "storage": True, "schema": schema}
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": plural}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
