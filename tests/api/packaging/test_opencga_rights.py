"""What moorage makes of OpenCGA, by its account's rights, and what people may of it; see test_systems_rights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from conftest import alone, people
from moorage.operators.opencga import dialect, types
from moorage.operators.opencga.wanted import automation, basis, build

if TYPE_CHECKING:
    from conftest import Cluster, Operator, Row

pytestmark = pytest.mark.api

KIND = "opencgacommunity.opencga.zetta.com"


@pytest.fixture(scope="module")
def operator(cluster: Cluster, tag: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """The chart with OpenCGA alone."""
    with alone(cluster, tmp_path_factory.mktemp("values"), f"moorage-{tag}", "opencga", {}) as made:
        yield made


@pytest.fixture(scope="module")
def bound(operator: Operator, listed: str) -> str:
    """A namespace where the operator has bound its account as it does for an installation."""
    operator.bind(listed, "opencga", "create", "services")
    return listed


def test_it_writes_all_that_an_installation_is_made_of(operator: Operator, bound: str) -> None:
    """The very objects, as they are applied; in another namespace none of them."""
    given = {"version": "5.0.0", "database": {"hosts": ["m"]}, "ingress": {"host": "opencga.example"}}
    spec = msgspec.convert(given, types.CommunitySpec)
    wanted = basis.of(bound, "demo", "no-uid", spec, dialect.Dialect())
    placed = automation.Placed(3, "5.0.0", "5.0.0")
    document = automation.document(bound, "demo", spec, wanted.said, placed, {}, wanted.args)
    made = [*build.children(wanted), build.configuration(wanted, document, 1)]
    made += [build.master(wanted, "5.0.0"), build.members(wanted, 3, "5.0.0")]
    objects = [{**it.body, "metadata": {**it.body["metadata"], "ownerReferences": []}} for it in made]
    body: dict[str, Any] = {"apiVersion": "v1", "kind": "List", "items": objects}
    account = operator.account(bound, "opencga")

    assert {"StatefulSet", "Service", "Secret", "PodDisruptionBudget", "Ingress"} == {each["kind"] for each in objects}
    apply = ("apply", "--server-side", "--dry-run=server")
    operator.cluster.must(operator.cluster.kubectl(*apply, user=account, body=body))
    for each in objects:
        each["metadata"]["namespace"] = "default"
        assert "cannot create resource" in operator.refused(each, account)


def test_people_s_roles(cluster: Cluster, operator: Operator, listed: str) -> None:
    """`view` shows them, for nothing secret may stand in them; `edit` makes and scales them."""
    rows: list[Row] = [
        (("get", "create"), KIND, listed, ""),
        (("get", "patch"), f"{KIND}/scale", listed, ""),
        (("patch",), f"{KIND}/status", listed, ""),
    ]
    may = people(operator, "opencga", listed, {"view": ("get", KIND), "edit": ("create", KIND)}, rows)
    found = cluster.must(cluster.kubectl("get", "clusterrole", f"{operator.name}-opencga-view", "-o", "yaml"))

    assert {"view": [f"get {KIND}", f"get {KIND}/scale"], "edit": [f"create {KIND}", f"patch {KIND}/scale"]} == may
    assert "aggregate-to-view" in found
