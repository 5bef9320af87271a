"""moorage for one namespace alone: what it may there and that it may nothing else, with RBAC alone between them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from conftest import Operator

if TYPE_CHECKING:
    from conftest import Cluster, Row

pytestmark = pytest.mark.api

ROOT = Path(__file__).resolve().parents[3]
LIFECYCLE = ("get", "list", "watch", "create", "update", "patch", "delete")
HERE, OTHER, EVERYWHERE = "here", "default", ""
MAY: list[Row] = [
    (("get", "list", "watch", "patch"), "runtimes.kre.konstellation.io", HERE, ""),
    (("get", "list", "watch", "patch"), "runtimeversions.kre.konstellation.io", HERE, ""),
    (("get", "patch"), "runtimes.kre.konstellation.io/status", HERE, ""),
    (LIFECYCLE, "secrets", HERE, ""),
    (LIFECYCLE, "statefulsets.apps", HERE, ""),
    (("get", "list", "watch", "patch", "delete"), "persistentvolumeclaims", HERE, ""),
    (("get", "list", "watch", "update", "patch"), "leases.coordination.k8s.io", HERE, "moorage"),
    (("create", "patch"), "events", HERE, ""),
]
NEVER: list[Row] = [
    (LIFECYCLE, "runtimes.kre.konstellation.io", OTHER, ""),
    (LIFECYCLE, "runtimes.kre.konstellation.io", EVERYWHERE, ""),
    (LIFECYCLE, "secrets", OTHER, ""),
    (LIFECYCLE, "secrets", EVERYWHERE, ""),
    (LIFECYCLE, "namespaces", EVERYWHERE, ""),
    (LIFECYCLE, "rolebindings.rbac.authorization.k8s.io", HERE, ""),
    (LIFECYCLE, "roles.rbac.authorization.k8s.io", HERE, ""),
    (LIFECYCLE, "customresourcedefinitions.apiextensions.k8s.io", EVERYWHERE, ""),
    (("impersonate",), "serviceaccounts", EVERYWHERE, ""),
    (("impersonate",), "serviceaccounts", HERE, ""),
    (("create",), "serviceaccounts/token", HERE, ""),
    (("create",), "pods/exec", HERE, ""),
]


@contextlib.contextmanager
def installed(cluster: Cluster, folder: Path, name: str) -> Iterator[Operator]:
    """The chart, installed for the namespace of that name."""
    made = Operator(cluster, name)
    cluster.must(cluster.kubectl("create", body=cluster.namespace(name)))
    off = {each: {"enabled": False} for each in ("collector", "xsld")}
    values = {"namespaceOnly": True, "replicas": 0, "systems": {**off, "kre": {"enabled": True}}}
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(values))
    chart = str(ROOT / "charts/moorage")
    try:
        cluster.must(cluster.helm("install", name, chart, "--namespace", name, "--values", str(file)))
        made.until_may("patch", "runtimes.kre.konstellation.io", name)
        yield made
    finally:
        cluster.helm("uninstall", name, "--namespace", name)
        cluster.kubectl("delete", "namespace", name, "--wait=false")


def test_what_it_may_and_what_not(cluster: Cluster, tag: str, tmp_path: Path) -> None:
    """Two of them side by side: neither reaches the other's namespace."""
    with (
        installed(cluster, tmp_path, f"moorage-one-{tag}") as one,
        installed(cluster, tmp_path, f"moorage-two-{tag}") as two,
    ):
        for mine, others in ((one, two), (two, one)):
            words = {HERE: mine.name}
            assert [] == [asked for asked, allowed in mine.reviews(MAY, words).items() if not allowed]
            assert [] == [asked for asked, allowed in mine.reviews(NEVER, words).items() if allowed]
            assert not any(mine.reviews(MAY, {HERE: others.name}).values())


def test_it_writes_all_that_a_runtime_is_made_of(cluster: Cluster, tag: str, tmp_path: Path) -> None:
    """The very objects of the Runtime's chart, as itself."""
    chart = str(ROOT / "charts/kre-runtime")
    with installed(cluster, tmp_path, f"moorage-three-{tag}") as operator:
        switched = ("--set", "nats.replicas=3,ingress.enabled=true,ingress.host=h")
        text = cluster.must(cluster.helm("template", "kre", chart, "-n", operator.name, *switched))
        items = [each for each in yaml.safe_load_all(text) if each]
        body = {"apiVersion": "v1", "kind": "List", "items": items}

        cluster.must(operator.create(body, "--dry-run=server"))
        for each in items:
            each["metadata"]["namespace"] = "default"
        assert len(items) == operator.refused(body).count("cannot create resource")
