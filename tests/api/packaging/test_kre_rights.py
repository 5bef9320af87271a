"""What moorage makes of a Runtime, by its account's rights, and what people may; see test_systems_rights."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from conftest import alone, people

if TYPE_CHECKING:
    from conftest import Cluster, Operator, Row

pytestmark = pytest.mark.api

ROOT = Path(__file__).resolve().parents[3]
KINDS = ("runtimes.kre.konstellation.io",)


@pytest.fixture(scope="module")
def operator(cluster: Cluster, tag: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """The chart with Runtimes alone."""
    with alone(cluster, tmp_path_factory.mktemp("values"), f"moorage-{tag}", "kre", {}) as made:
        yield made


@pytest.fixture(scope="module")
def bound(operator: Operator, listed: str) -> str:
    """A namespace where the operator has bound its account as it does for a Runtime."""
    operator.bind(listed, "kre", "create", "configmaps")
    return listed


def test_it_writes_all_that_a_runtime_is_made_of(operator: Operator, bound: str, tmp_path: Path) -> None:
    """The very objects of the chart, with all that can be switched on."""
    values = {"nats": {"replicas": 3}, "mongoExpress": {"enabled": True}, "ingress": {"enabled": True, "host": "h"}}
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    chart = str(ROOT / "charts/kre-runtime")
    text = operator.cluster.must(operator.cluster.helm("template", "kre", chart, "-n", bound, "--values", str(file)))
    objects = [each for each in yaml.safe_load_all(text) if each]
    body: dict[str, Any] = {"apiVersion": "v1", "kind": "List", "items": objects}
    account = operator.account(bound, "kre")

    assert {"StatefulSet", "Deployment", "Service", "ConfigMap", "Ingress", "PodDisruptionBudget"} == {
        each["kind"] for each in objects
    }
    operator.cluster.must(operator.cluster.kubectl("create", "--dry-run=server", user=account, body=body))
    for each in objects:
        each["metadata"]["namespace"] = "default"
        assert "cannot create resource" in operator.refused(each, account)


def test_people_s_roles(cluster: Cluster, operator: Operator, listed: str) -> None:
    """`view` shows no Runtimes, for there may be passwords in them."""
    rows: list[Row] = [(("get", "create"), kind, listed, "") for kind in KINDS]
    known_by = {"view-runtimes": ("get", KINDS[0]), "edit": ("create", KINDS[0])}
    found = cluster.must(cluster.kubectl("get", "clusterrole", f"{operator.name}-kre-view-runtimes", "-o", "yaml"))

    may = people(operator, "kre", listed, known_by, rows)
    assert {"view-runtimes": [f"get {kind}" for kind in KINDS], "edit": [f"create {kind}" for kind in KINDS]} == may
    assert "aggregate-to-view" not in found
