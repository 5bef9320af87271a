"""What moorage and its accounts can and can't do where Runtimes alone are switched on, in listed namespaces only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from conftest import installed

if TYPE_CHECKING:
    from conftest import Cluster, Operator, Row

pytestmark = pytest.mark.api

ROOT = Path(__file__).resolve().parents[3]
GROUP, RBAC = "kre.konstellation.io", "rbac.authorization.k8s.io"
READ = ("get", "list", "watch")
WRITE = ("create", "update", "patch", "delete")
HERE, PLACE, OTHER, EVERYWHERE, ROLE, ACCOUNTS = "own", "place", "default", "", "ROLE", "accounts"

MAY: list[Row] = [
    ((*READ, "patch"), f"runtimes.{GROUP}", EVERYWHERE, ""),
    (("get", "patch"), f"runtimes.{GROUP}/status", EVERYWHERE, ""),
    ((*READ, "patch"), f"runtimeversions.{GROUP}", EVERYWHERE, ""),
    (("get", "patch"), f"runtimeversions.{GROUP}/status", EVERYWHERE, ""),
    (READ, "namespaces", EVERYWHERE, ""),
    (("get",), "storageclasses.storage.k8s.io", EVERYWHERE, "fast"),
    (("create",), f"rolebindings.{RBAC}", OTHER, "moorage-kre"),
    ((*READ, "patch", "delete"), f"rolebindings.{RBAC}", OTHER, "moorage-kre"),
    (("bind",), f"clusterroles.{RBAC}", EVERYWHERE, ROLE),
    (("create", "patch"), "events", OTHER, ""),
    (("impersonate",), "serviceaccounts", ACCOUNTS, "kre.somewhere"),
]
ACCOUNT_MAY: list[Row] = [
    *(
        ((*READ, *WRITE), kind, PLACE, "")
        for kind in (
            "secrets",
            "configmaps",
            "services",
            "deployments.apps",
            "statefulsets.apps",
            "ingresses.networking.k8s.io",
            "poddisruptionbudgets.policy",
            "prometheusrules.monitoring.coreos.com",
        )
    ),
    ((*READ, "patch", "delete"), "persistentvolumeclaims", PLACE, ""),
    (READ, "pods", PLACE, ""),
    (("get",), "pods/log", PLACE, ""),
    (READ, "events", PLACE, ""),
]
NOBODY_MAY: list[Row] = [
    *(((*READ, *WRITE), kind, EVERYWHERE, "") for kind in ("secrets", "configmaps", "nodes", "persistentvolumes")),
    *(((*READ, *WRITE), "secrets", place, "") for place in (OTHER, HERE, "kube-system")),
    *(((*READ, *WRITE), kind, OTHER, "") for kind in ("pods", "statefulsets.apps", "persistentvolumeclaims")),
    (WRITE, "pods", PLACE, ""),
    (("create",), "pods/exec", PLACE, ""),
    (("create", "update"), "persistentvolumeclaims", PLACE, ""),
    ((*READ, *WRITE), "serviceaccounts", PLACE, ""),
    (("create",), "serviceaccounts/token", PLACE, ""),
    (("create",), "serviceaccounts/token", ACCOUNTS, ""),
    (("impersonate",), "serviceaccounts", PLACE, ""),
    (("impersonate",), "users", EVERYWHERE, ""),
    ((*READ, *WRITE), f"roles.{RBAC}", PLACE, ""),
    (("bind", "escalate"), f"clusterroles.{RBAC}", EVERYWHERE, "cluster-admin"),
    (("escalate",), f"clusterroles.{RBAC}", EVERYWHERE, ROLE),
    (("get", "list", "update", "patch", "delete"), f"rolebindings.{RBAC}", OTHER, "another"),
    (("create", "update", "delete"), f"runtimes.{GROUP}", EVERYWHERE, ""),
    (("create", "update", "delete"), f"runtimeversions.{GROUP}", EVERYWHERE, ""),
    ((*READ, *WRITE), "xsldcaches.xsld.ibm.com", EVERYWHERE, ""),
    ((*READ, *WRITE), "collectors.example.com", EVERYWHERE, ""),
    (WRITE, "namespaces", EVERYWHERE, ""),
]


@pytest.fixture(scope="module")
def operator(cluster: Cluster, tag: str, listed: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """The chart with Runtimes alone, in listed namespaces, of which one would be nobody's to list."""
    kre = {"enabled": True, "namespaces": [listed, "kube-system"]}
    values = {"systems": {"collector": {"enabled": False}, "xsld": {"enabled": False}, "kre": kre}}
    with installed(cluster, tmp_path_factory.mktemp("values"), f"moorage-{tag}", values) as made:
        yield made


@pytest.fixture(scope="module")
def bound(operator: Operator, listed: str) -> str:
    """The listed namespace, where the operator has bound its account as it does for a Runtime, and once more."""
    for _ in range(2):
        operator.cluster.must(operator.apply(operator.binding(listed, "kre")))
    operator.until_may("create", "configmaps", listed, operator.account(listed, "kre"))
    return listed


def words(operator: Operator, place: str) -> dict[str, str]:
    """What the words in the tables stand for."""
    return {HERE: operator.name, PLACE: place, ROLE: operator.roles["kre"], ACCOUNTS: operator.accounts}


def test_what_moorage_may(operator: Operator, bound: str) -> None:
    answers = operator.reviews(MAY, words(operator, bound))

    assert len(answers) > 15
    assert [] == [question for question, allowed in answers.items() if not allowed]


def test_what_moorage_may_not(operator: Operator, bound: str) -> None:
    """Nothing that the account of a namespace may there either."""
    answers = operator.reviews(NOBODY_MAY + ACCOUNT_MAY, words(operator, bound))

    assert len(answers) > 150
    assert [] == [question for question, allowed in answers.items() if allowed]


def test_what_the_account_of_a_namespace_may(operator: Operator, bound: str) -> None:
    answers = operator.reviews(ACCOUNT_MAY, words(operator, bound), operator.account(bound, "kre"))

    assert len(answers) > 60
    assert [] == [question for question, allowed in answers.items() if not allowed]


@pytest.mark.parametrize("own", [True, False], ids=["its own", "another's"])
def test_what_an_account_may_not(operator: Operator, bound: str, own: bool) -> None:
    """Nothing that moorage itself may, nothing outside its namespace, and another's account nothing at all there."""
    rows = [*NOBODY_MAY, *MAY, *([] if own else ACCOUNT_MAY)]
    account = operator.account(bound if own else f"{bound}-b", "kre")
    answers = operator.reviews(rows, words(operator, bound), account)

    assert len(answers) > 120
    assert [] == [question for question, allowed in answers.items() if allowed]


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


def test_an_unlisted_namespace_is_closed(operator: Operator, unlisted: str, listed: str) -> None:
    message = operator.refused(operator.binding(unlisted, "kre"))

    assert f"namespace {unlisted} may hold no Runtime. Make it in one of: {listed}, " in message
    assert f"add {unlisted} to the value systems.kre.namespaces" in message


@pytest.mark.parametrize("place", ["kube-system", "kube-public", "own", "accounts"])
def test_nothing_is_bound_where_the_cluster_lives(operator: Operator, place: str) -> None:
    """Although one of them is listed."""
    place = {"own": operator.name, "accounts": operator.accounts}.get(place, place)

    assert f"may have no rights in namespace {place}" in operator.refused(operator.binding(place, "kre"))


def test_it_binds_one_role_to_one_account_under_one_name(operator: Operator, bound: str) -> None:
    admin = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}
    assert "is attempting to grant RBAC permissions" in operator.refused(operator.binding(bound, "kre", roleRef=admin))
    theirs = [{"kind": "ServiceAccount", "name": "default", "namespace": bound}]
    another = operator.binding(f"{bound}-b", "kre")["subjects"]
    for subjects in (theirs, another, operator.binding(bound, "kre")["subjects"] + another, []):
        assert "may bind nobody" in operator.refused(operator.binding(bound, "kre", subjects=subjects))
    for name in ("another", "moorage-collector", "moorage-xsld"):
        renamed = operator.binding(bound, "kre", metadata={"name": name, "namespace": bound})
        assert "no RoleBinding but moorage-kre." in operator.refused(renamed)


@pytest.mark.usefixtures("almighty")
def test_admission_holds_even_with_all_rights(operator: Operator, bound: str, unlisted: str) -> None:
    admin = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}
    role = operator.roles["kre"]

    refused = operator.refused(operator.binding(bound, "kre", roleRef=admin))
    assert f"no role but the ClusterRole {role} by the RoleBinding moorage-kre" in refused
    assert "may have no rights in" in operator.refused(operator.binding("kube-system", "kre"))
    assert "may hold no Runtime" in operator.refused(operator.binding(unlisted, "kre"))


def test_people_s_roles(cluster: Cluster, operator: Operator, bound: str) -> None:
    """`view` shows no Runtime, for there may be passwords in it."""
    may = {}
    for who, verb in {"view-runtimes": "get", "edit": "create"}.items():
        bind = ("create", "rolebinding", f"{who}-trial", f"--clusterrole={operator.name}-kre-{who}", f"--user={who}")
        cluster.must(cluster.kubectl("-n", bound, *bind))
        operator.until_may(verb, f"runtimes.{GROUP}", bound, who)
        rows: list[Row] = [(("get", "create"), f"runtimes.{GROUP}", PLACE, "")]
        answers = operator.reviews(rows, words(operator, bound), who)
        may[who] = [question.split()[0] for question, allowed in answers.items() if allowed]
    found = cluster.must(cluster.kubectl("get", "clusterrole", f"{operator.name}-kre-view-runtimes", "-o", "yaml"))

    assert {"view-runtimes": ["get"], "edit": ["create"]} == may
    assert "aggregate-to-view" not in found
