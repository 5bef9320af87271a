"""A Runtime's definition and the chart of its servers, in a real API server: accepted, refused, admitted."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from conftest import defined, restricted

if TYPE_CHECKING:
    from conftest import Cluster

pytestmark = pytest.mark.api

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples/kre/runtime.yaml"
CHARTS_OWN: dict[str, Any] = {
    "runtime": {"host": "local"},
    "sharedStorageClass": "shared",
    "mongo": {
        "persistentVolume": {"enabled": True, "storageClass": "fast", "size": "5Gi"},
        "auth": {"enabled": True, "adminUser": "admin", "adminPassword": "123456"},
    },
    "chronograf": {"persistence": {"enabled": True, "storageClass": "standard", "size": "2Gi"}},
}


@pytest.fixture(scope="module", autouse=True)
def definition(cluster: Cluster) -> None:
    """The kind is served."""
    defined(cluster, "kre")


@pytest.fixture
def place(cluster: Cluster, tag: str) -> Iterator[str]:
    """A namespace that takes only restricted pods."""
    yield from restricted(cluster, tag, "runtimes")


def runtime(place: str, spec: dict[str, Any], name: str = "demo") -> dict[str, Any]:
    metadata = {"name": name, "namespace": place}
    return {"apiVersion": "kre.konstellation.io/v1alpha1", "kind": "Runtime", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize("how", ["--server-side=false", "--server-side"])
def test_the_original_s_sample_is_accepted_whole(cluster: Cluster, place: str, how: str) -> None:
    """Strictly: a field that the definition lacks is an error, not a warning."""
    cluster.must(
        cluster.kubectl("-n", place, "apply", "--dry-run=server", "--validate=strict", how, "-f", str(EXAMPLE))
    )


def test_the_chart_s_spelling_is_accepted_too_and_nothing_at_all(cluster: Cluster, place: str) -> None:
    for spec in (CHARTS_OWN, {}):
        cluster.must(cluster.kubectl("create", "--dry-run=server", "--validate=strict", body=runtime(place, spec)))


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        (
            CHARTS_OWN | {"entrypoint": {"host": "other"}},
            "runtime.host and entrypoint.host are the same thing and differ",
        ),
        (
            {"mongo": {"credentials": {"username": "a", "password": "b"}, "auth": {"adminUser": "c"}}},
            "mongo.credentials.username and mongo.auth.adminUser are the same thing and differ",
        ),
        ({"nats_streaming": {"replicas": 6}}, "spec.nats_streaming.replicas"),
        ({"minio": {"credentials": {"accessKey": "ab", "secretKey": "12345678"}}}, "spec.minio.credentials.accessKey"),
        ({"mongo": {"storage": {"size": "big"}}}, "spec.mongo.storage.size"),
        ({"entrypoint": {"host": "a..b"}}, "spec.entrypoint.host"),
        ({"domain": "Not a domain"}, "spec.domain"),
        ({"ingress": {"className": "No class"}}, "spec.ingress.className"),
        ({"ingress": {"tlsSecret": "No Secret"}}, "spec.ingress.tlsSecret"),
    ],
)
def test_what_is_refused_says_why(cluster: Cluster, place: str, spec: dict[str, Any], word: str) -> None:
    done = cluster.kubectl("create", "--dry-run=server", body=runtime(place, spec))

    assert done.returncode != 0
    assert word in done.stderr


def test_a_name_that_versions_could_not_bear_is_refused(cluster: Cluster, place: str) -> None:
    done = cluster.kubectl("create", "--dry-run=server", body=runtime(place, {}, "a" * 41))

    assert "at most 40 lower-case letters" in done.stderr


CHANGES: list[tuple[dict[str, Any], str]] = [
    # change, and what is said; nothing for what is accepted
    ({"mongo": {"persistentVolume": {"size": "10Gi"}}}, ""),
    ({"mongo": {"storage": {"size": "6Gi", "className": "fast"}, "persistentVolume": None}}, ""),
    ({"mongo": {"persistentVolume": {"size": "1Gi"}}}, "the volume of mongo can only grow"),
    ({"mongo": {"persistentVolume": {"storageClass": "slow"}}}, "the storage class of mongo can't be changed"),
    ({"mongo": {"persistentVolume": {"enabled": False}}}, "whether mongo has a volume can't be changed"),
    ({"mongo": None}, "the storage class of mongo can't be changed"),
    ({"sharedStorageClass": "another"}, "sharedStorageClass can't be changed"),
    ({"nats_streaming": {"storage": {"size": "512Mi"}}}, "the volume of nats can only grow"),
    ({"nats_streaming": {"storage": {"size": "1Gi"}}}, ""),
]


@pytest.mark.parametrize(("change", "word"), CHANGES, ids=[json.dumps(change) for change, _ in CHANGES])
def test_what_may_change(cluster: Cluster, place: str, change: dict[str, Any], word: str) -> None:
    """In either spelling: a volume grows, and is what it was made as."""
    cluster.must(cluster.kubectl("create", body=runtime(place, CHARTS_OWN)))
    patch = ("-n", place, "patch", "runtime", "demo", "--type=merge", "--dry-run=server")
    done = cluster.kubectl(*patch, "-p", json.dumps({"spec": change}))

    assert bool(word) == (done.returncode != 0), done.stderr
    assert word in done.stderr


def test_a_size_goes_back_to_what_there_is(cluster: Cluster, place: str) -> None:
    """As the message says that tells that a volume can't grow; never below what there is."""
    cluster.must(cluster.kubectl("create", body=runtime(place, {"minio": {"storage": {"size": "9Gi"}}})))
    change = ("-n", place, "patch", "runtime", "demo", "--type=merge", "-p")
    told = json.dumps({"status": {"volumeSizes": {"minio": "2Gi"}}})
    cluster.must(cluster.kubectl(*change, told, "--subresource=status"))

    def resized(size: str) -> str:
        return cluster.kubectl(*change, json.dumps({"spec": {"minio": {"storage": {"size": size}}}})).stderr

    assert "the volume of minio can only grow, or go back" in resized("1Gi")
    assert "" == resized("2Gi")


def test_a_class_that_is_named_the_second_way_is_kept_too(cluster: Cluster, place: str) -> None:
    """An empty name says nothing."""
    spec = {"mongo": {"storage": {"className": "", "storageClass": "fast"}}}
    cluster.must(cluster.kubectl("create", body=runtime(place, spec)))
    other = json.dumps({"spec": {"mongo": {"storage": {"storageClass": "slow"}}}})
    done = cluster.kubectl("-n", place, "patch", "runtime", "demo", "--type=merge", "-p", other)

    assert "the storage class of mongo can't be changed" in done.stderr


def rendered(cluster: Cluster, tmp_path: Path, place: str, values: dict[str, Any]) -> list[dict[str, Any]]:
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    chart = str(ROOT / "charts/kre-runtime")
    text = cluster.must(cluster.helm("template", "kre", chart, "-n", place, "--values", str(file)))
    return [each for each in yaml.safe_load_all(text) if each]


WHOLE = {
    "nats": {"replicas": 3},
    "mongoExpress": {"enabled": True},
    "ingress": {"enabled": True, "host": "demo.example.com", "tls": {"enabled": True}},
}


@pytest.mark.parametrize("values", [{}, WHOLE], ids=["least", "whole"])
def test_what_the_chart_makes_is_accepted_and_its_pods_are_admitted(
    cluster: Cluster, tmp_path: Path, place: str, values: dict[str, Any]
) -> None:
    """Strictly, and by restricted Pod Security."""
    for each in rendered(cluster, tmp_path, place, values):
        said = cluster.kubectl("create", "--dry-run=server", "--validate=strict", body=each)
        cluster.must(said)
        assert "would violate PodSecurity" not in said.stderr
        if each["kind"] in ("StatefulSet", "Deployment"):
            template = each["spec"]["template"]
            metadata = {"name": "trial", "namespace": place, "labels": template["metadata"]["labels"]}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": dict(template["spec"])}
            claims = [it["metadata"]["name"] for it in each["spec"].get("volumeClaimTemplates", ())]
            volumes = [{"name": it, "persistentVolumeClaim": {"claimName": it}} for it in claims]
            pod["spec"]["volumes"] = [*template["spec"]["volumes"], *volumes]
            _admitted(cluster.kubectl("create", "--dry-run=server", body=pod))


def _admitted(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
