"""The examples of caches and the chart of one, against the definitions in a real API server."""

from __future__ import annotations

import base64
import json
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from conftest import defined
from moorage.operators.xsld.cache import types

if TYPE_CHECKING:
    from conftest import Cluster

pytestmark = pytest.mark.api

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = sorted((ROOT / "examples/xsldcache").glob("*.yaml"))
XML = {"inline": {"objectGridXml": "<objectGridConfig/>", "deploymentXml": "<deploymentPolicy/>"}}
WHOLE: dict[str, Any] = {
    "license": "accept",
    "size": 3,
    "storage": {"size": "2Gi", "storageClassName": "fast", "reclaimOnDelete": "Retain"},
    "spec": {"group": "shop", "pod": {"antiAffinity": "Required"}, "derbyReplication": {"mode": "Enabled"}},
    "grids": {
        "sessions": {"gridType": "Session", "gridCapacity": 512, "numSyncReplicas": 1},
        "orders": {"gridType": "Custom", "templateName": "orders", "numPartition": 13},
    },
    "templates": {"orders": {"source": XML}},
}


@pytest.fixture(scope="module", autouse=True)
def definitions(cluster: Cluster) -> None:
    """The kinds of caches are served."""
    defined(cluster, "xsld")


@pytest.fixture
def place(cluster: Cluster, tag: str) -> Iterator[str]:
    """A namespace of the test's own."""
    name = f"{tag}-{secrets.token_hex(3)}"
    cluster.must(cluster.kubectl("create", body=cluster.namespace(name)))
    yield name
    cluster.kubectl("-n", name, "delete", "xsldcaches,datagrids,gridtemplates", "--all", "--wait=false")
    cluster.kubectl("delete", "namespace", name, "--wait=false")


def install(
    cluster: Cluster, folder: Path, place: str, values: dict[str, Any], release: str = "shop"
) -> dict[str, dict[str, Any]]:
    """Install or upgrade the chart; the objects that are there, by kind and name."""
    file = folder / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    chart = str(ROOT / "charts/xsld-cache")
    cluster.must(cluster.helm("upgrade", "--install", release, chart, "--namespace", place, "--values", str(file)))
    kinds = "xsldcaches,datagrids,gridtemplates,secrets"
    label = f"app.kubernetes.io/instance={release}"
    found = json.loads(cluster.must(cluster.kubectl("-n", place, "get", kinds, "-l", label, "-o", "json")))
    return {f"{each['kind']}/{each['metadata']['name']}": each for each in found["items"]}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.parametrize("how", ["--server-side=false", "--server-side"])
def test_example_is_accepted_whole(cluster: Cluster, path: Path, how: str) -> None:
    """Strictly: a field that the definitions lack is an error, not a warning."""
    said = cluster.must(cluster.kubectl("apply", "--dry-run=server", "--validate=strict", how, "-f", str(path)))

    assert len(list(yaml.safe_load_all(path.read_text()))) == len(said.splitlines())


def test_the_original_s_manifest_gets_the_original_s_defaults(cluster: Cluster, place: str) -> None:
    """Applied unchanged, with as little as its users could write."""
    cluster.must(cluster.kubectl("apply", "-n", place, "-f", str(ROOT / "examples/xsldcache/original.yaml")))
    small = {
        "apiVersion": "xsld.ibm.com/v1alpha1",
        "kind": "XsldCache",
        "metadata": {"name": "small", "namespace": place},
        "spec": {"license": "accept", "size": 1, "adminPwd": "Xs8admin!Pwd", "secretKey": "Xs8secret!Key"},
    }
    made = json.loads(cluster.must(cluster.kubectl("create", "-o", "json", body=small)))
    there = json.loads(cluster.must(cluster.kubectl("-n", place, "get", "xsldcaches,datagrids", "-o", "json")))

    assert {"example-cache", "small", "example-grid"} == {each["metadata"]["name"] for each in there["items"]}
    assert {"image": "ibmcom/xsld:latest", "capacity": 1, "catalogs": 3, "group": "cg1"}.items() <= made["spec"].items()


@pytest.mark.parametrize("values", [{"license": "accept"}, WHOLE], ids=["least", "whole"])
def test_what_the_chart_renders_is_accepted(
    cluster: Cluster, tmp_path: Path, place: str, values: dict[str, Any]
) -> None:
    """`helm template`, strictly."""
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    chart = str(ROOT / "charts/xsld-cache")
    rendered = tmp_path / "rendered.yaml"
    rendered.write_text(cluster.must(cluster.helm("template", "shop", chart, "-n", place, "--values", str(file))))
    for how in ("--server-side=false", "--server-side"):
        cluster.must(cluster.kubectl("apply", "--dry-run=server", "--validate=strict", how, "-f", str(rendered)))


def test_the_chart_installs_one_cache_with_its_grids(cluster: Cluster, tmp_path: Path, place: str) -> None:
    there = install(cluster, tmp_path, place, WHOLE)

    assert {
        "XsldCache/shop",
        "DataGrid/shop-sessions",
        "DataGrid/shop-orders",
        "GridTemplate/shop-orders",
        "Secret/shop-login",
    } == there.keys()
    cache = there["XsldCache/shop"]["spec"]
    assert {"size": 3, "group": "shop", "image": "ibmcom/xsld:8613"}.items() <= cache.items()
    assert {"name": "shop-login", "adminPwdKey": "adminPwd", "secretKeyKey": "secretKey"} == cache[
        "credentialsSecretRef"
    ]
    assert ("2Gi", "fast", "Retain") == tuple(
        cache["storage"][key] for key in ("size", "storageClassName", "reclaimOnDelete")
    )


def test_generated_credentials_outlive_upgrades_and_a_reinstallation(
    cluster: Cluster, tmp_path: Path, place: str
) -> None:
    """Retained volumes know no other password than that of the first installation."""
    values = {"license": "accept", "storage": {"reclaimOnDelete": "Retain"}}
    first = install(cluster, tmp_path, place, values)["Secret/shop-login"]["data"]
    for text in first.values():
        assert "" == types.password_fault(base64.b64decode(text).decode())

    upgraded = install(cluster, tmp_path, place, values | {"size": 3})
    assert first == upgraded["Secret/shop-login"]["data"]
    assert 3 == upgraded["XsldCache/shop"]["spec"]["size"]

    cluster.must(cluster.helm("uninstall", "shop", "--namespace", place))
    left = cluster.must(cluster.kubectl("-n", place, "get", "xsldcaches,secrets", "-o", "name")).split()
    assert ["secret/shop-login"] == left

    assert first == install(cluster, tmp_path, place, values)["Secret/shop-login"]["data"]


def test_two_releases_share_a_namespace(cluster: Cluster, tmp_path: Path, place: str) -> None:
    """Grids of one name are in each, as the cache that they belong to is named."""
    values = {"license": "accept", "grids": {"sessions": {}}}
    for release in ("red", "blue"):
        there = install(cluster, tmp_path, place, values, release)
        grid = there[f"DataGrid/{release}-sessions"]["spec"]

        assert ("sessions", release) == (grid["gridName"], grid["cacheRef"]["name"])


@pytest.mark.parametrize(
    ("kind", "spec", "there"),
    [("DataGrid", {}, {"made": True}), ("GridTemplate", {"source": XML}, {"asked": True})],
)
def test_a_cache_can_be_named_later_and_is_not_changed_once_it_is_made_there(
    cluster: Cluster, place: str, kind: str, spec: dict[str, Any], there: dict[str, Any]
) -> None:
    """As the advice of AmbiguousCache has it; a name that was mistyped can be corrected."""
    metadata = {"name": "late", "namespace": place}
    made = {"apiVersion": "xsld.ibm.com/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}
    cluster.must(cluster.kubectl("create", body=made))

    def patch(change: dict[str, Any], *more: str) -> subprocess.CompletedProcess[str]:
        return cluster.kubectl("-n", place, "patch", kind, "late", "--type=merge", "-p", json.dumps(change), *more)

    for name in ("typo", "c"):
        cluster.must(patch({"spec": {"cacheRef": {"name": name}}}))
    cluster.must(patch({"status": {"cache": "c", **there}}, "--subresource=status"))
    for other in ({"name": "d"}, None):
        assert "cacheRef can't be changed once it is made in that cache" in patch({"spec": {"cacheRef": other}}).stderr
