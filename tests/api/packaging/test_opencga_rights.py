"""What moorage and its accounts can and can't do where OpenCGA alone is switched on, in listed namespaces only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from conftest import installed
from moorage.operators.opencga import dialect, types
from moorage.operators.opencga.wanted import automation, basis, build

if TYPE_CHECKING:
    from conftest import Cluster, Operator, Row

pytestmark = pytest.mark.api

GROUP, RBAC = "opencga.zetta.com", "rbac.authorization.k8s.io"
READ = ("get", "list", "watch")
WRITE = ("create", "update", "patch", "delete")
HERE, PLACE, OTHER, EVERYWHERE, ROLE, ACCOUNTS = "own", "place", "default", "", "ROLE", "accounts"

MAY: list[Row] = [
    ((*READ, "patch"), f"opencgacommunity.{GROUP}", EVERYWHERE, ""),
    (("get", "patch"), f"opencgacommunity.{GROUP}/status", EVERYWHERE, ""),
    (READ, "namespaces", EVERYWHERE, ""),
    (("get",), "storageclasses.storage.k8s.io", EVERYWHERE, "fast"),
    (("create",), f"rolebindings.{RBAC}", OTHER, "moorage-opencga"),
    ((*READ, "patch", "delete"), f"rolebindings.{RBAC}", OTHER, "moorage-opencga"),
    (("bind",), f"clusterroles.{RBAC}", EVERYWHERE, ROLE),
    (("create", "patch"), "events", OTHER, ""),
    (("impersonate",), "serviceaccounts", ACCOUNTS, "opencga.somewhere"),
]
MADE = ("services", "statefulsets.apps", "poddisruptionbudgets.policy")
ACCOUNT_MAY: list[Row] = [
    *(((*READ, "create", "patch", "delete"), kind, PLACE, "") for kind in MADE),
    ((*READ, "create", "patch"), "secrets", PLACE, ""),
    (("get",), "configmaps", PLACE, ""),
    ((*READ, "patch", "delete"), "persistentvolumeclaims", PLACE, ""),
    ((*READ, "delete"), "pods", PLACE, ""),
    (("create",), "pods/eviction", PLACE, ""),
    (("get", "list"), "events", PLACE, ""),
]
NOBODY_MAY: list[Row] = [
    *(((*READ, *WRITE), kind, EVERYWHERE, "") for kind in ("secrets", "configmaps", "nodes", "persistentvolumes")),
    *(((*READ, *WRITE), "secrets", place, "") for place in (OTHER, HERE, "kube-system")),
    *(((*READ, *WRITE), kind, OTHER, "") for kind in ("pods", "statefulsets.apps", "persistentvolumeclaims")),
    (("update", "delete"), "secrets", PLACE, ""),
    (("list", "watch", *WRITE), "configmaps", PLACE, ""),
    (("create", "update", "patch"), "pods", PLACE, ""),
    (("patch", "update"), "pods/status", PLACE, ""),
    (("create",), "pods/exec", PLACE, ""),
    (("get",), "pods/log", PLACE, ""),
    (("create", "update"), "persistentvolumeclaims", PLACE, ""),
    *(((*READ, *WRITE), kind, PLACE, "") for kind in ("serviceaccounts", "deployments.apps", "jobs.batch")),
    (("create",), "serviceaccounts/token", PLACE, ""),
    (("create",), "serviceaccounts/token", ACCOUNTS, ""),
    (("impersonate",), "serviceaccounts", PLACE, ""),
    (("impersonate",), "users", EVERYWHERE, ""),
    ((*READ, *WRITE), f"roles.{RBAC}", PLACE, ""),
    (("bind", "escalate"), f"clusterroles.{RBAC}", EVERYWHERE, "cluster-admin"),
    (("escalate",), f"clusterroles.{RBAC}", EVERYWHERE, ROLE),
    (("get", "list", "update", "patch", "delete"), f"rolebindings.{RBAC}", OTHER, "another"),
    (("create", "update", "delete"), f"opencgacommunity.{GROUP}", EVERYWHERE, ""),
    ((*READ, *WRITE), "xsldcaches.xsld.ibm.com", EVERYWHERE, ""),
    ((*READ, *WRITE), "collectors.example.com", EVERYWHERE, ""),
    (WRITE, "namespaces", EVERYWHERE, ""),
]


@pytest.fixture(scope="module")
def operator(cluster: Cluster, tag: str, listed: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """The chart with OpenCGA alone, in listed namespaces, of which one would be nobody's to list."""
    opencga = {"enabled": True, "namespaces": [listed, "kube-system"]}
    values = {"systems": {"collector": {"enabled": False}, "xsld": {"enabled": False}, "opencga": opencga}}
    with installed(cluster, tmp_path_factory.mktemp("values"), f"moorage-{tag}", values) as made:
        yield made


@pytest.fixture(scope="module")
def bound(operator: Operator, listed: str) -> str:
    """The listed namespace, where the operator has bound its account as it does for an installation, and once more."""
    for _ in range(2):
        operator.cluster.must(operator.apply(operator.binding(listed, "opencga")))
    operator.until_may("create", "services", listed, operator.account(listed, "opencga"))
    return listed


def words(operator: Operator, place: str) -> dict[str, str]:
    """What the words in the tables stand for."""
    return {HERE: operator.name, PLACE: place, ROLE: operator.roles["opencga"], ACCOUNTS: operator.accounts}


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
    answers = operator.reviews(ACCOUNT_MAY, words(operator, bound), operator.account(bound, "opencga"))

    assert len(answers) > 30
    assert [] == [question for question, allowed in answers.items() if not allowed]


@pytest.mark.parametrize("own", [True, False], ids=["its own", "another's"])
def test_what_an_account_may_not(operator: Operator, bound: str, own: bool) -> None:
    """Nothing that moorage itself may, nothing outside its namespace, and another's account nothing at all there."""
    rows = [*NOBODY_MAY, *MAY, *([] if own else ACCOUNT_MAY)]
    account = operator.account(bound if own else f"{bound}-b", "opencga")
    answers = operator.reviews(rows, words(operator, bound), account)

    assert len(answers) > 120
    assert [] == [question for question, allowed in answers.items() if allowed]


def test_it_writes_all_that_an_installation_is_made_of(operator: Operator, bound: str) -> None:
    """The very objects, as they are applied; in another namespace none of them."""
    spec = msgspec.convert({"version": "5.0.0", "database": {"hosts": ["m"]}}, types.CommunitySpec)
    wanted = basis.of(bound, "demo", "no-uid", spec, dialect.Dialect())
    placed = automation.Placed(3, "5.0.0", "5.0.0")
    document = automation.document(bound, "demo", spec, wanted.said, placed, {}, wanted.args)
    made = [*build.children(wanted), build.configuration(wanted, document, 1)]
    made += [build.master(wanted, "5.0.0"), build.members(wanted, 3, "5.0.0")]
    objects = [{**it.body, "metadata": {**it.body["metadata"], "ownerReferences": []}} for it in made]
    body: dict[str, Any] = {"apiVersion": "v1", "kind": "List", "items": objects}
    account = operator.account(bound, "opencga")

    assert {"StatefulSet", "Service", "Secret", "PodDisruptionBudget"} == {each["kind"] for each in objects}
    apply = ("apply", "--server-side", "--dry-run=server")
    operator.cluster.must(operator.cluster.kubectl(*apply, user=account, body=body))
    for each in objects:
        each["metadata"]["namespace"] = "default"
        assert "cannot create resource" in operator.refused(each, account)


def test_an_unlisted_namespace_is_closed(operator: Operator, unlisted: str, listed: str) -> None:
    message = operator.refused(operator.binding(unlisted, "opencga"))

    assert f"namespace {unlisted} may hold no OpenCGA. Make it in one of: {listed}, " in message
    assert f"add {unlisted} to the value systems.opencga.namespaces" in message


@pytest.mark.parametrize("place", ["kube-system", "kube-public", "own", "accounts"])
def test_nothing_is_bound_where_the_cluster_lives(operator: Operator, place: str) -> None:
    """Although one of them is listed."""
    place = {"own": operator.name, "accounts": operator.accounts}.get(place, place)

    assert f"may have no rights in namespace {place}" in operator.refused(operator.binding(place, "opencga"))


def test_it_binds_one_role_to_one_account_under_one_name(operator: Operator, bound: str) -> None:
    admin = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}
    refused = operator.refused(operator.binding(bound, "opencga", roleRef=admin))
    assert "is attempting to grant RBAC permissions" in refused
    theirs = [{"kind": "ServiceAccount", "name": "default", "namespace": bound}]
    another = operator.binding(f"{bound}-b", "opencga")["subjects"]
    for subjects in (theirs, another, operator.binding(bound, "opencga")["subjects"] + another, []):
        assert "may bind nobody" in operator.refused(operator.binding(bound, "opencga", subjects=subjects))
    for name in ("another", "moorage-collector", "moorage-kre"):
        renamed = operator.binding(bound, "opencga", metadata={"name": name, "namespace": bound})
        assert "no RoleBinding but moorage-opencga." in operator.refused(renamed)


@pytest.mark.usefixtures("almighty")
def test_admission_holds_even_with_all_rights(operator: Operator, bound: str, unlisted: str) -> None:
    admin = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}
    role = operator.roles["opencga"]

    refused = operator.refused(operator.binding(bound, "opencga", roleRef=admin))
    assert f"no role but the ClusterRole {role} by the RoleBinding moorage-opencga" in refused
    assert "may have no rights in" in operator.refused(operator.binding("kube-system", "opencga"))
    assert "may hold no OpenCGA" in operator.refused(operator.binding(unlisted, "opencga"))


def test_people_s_roles(cluster: Cluster, operator: Operator, bound: str) -> None:
    """`view` shows them, for nothing secret may stand in them; `edit` makes and scales them."""
    rows: list[Row] = [
        (("get", "create"), f"opencgacommunity.{GROUP}", PLACE, ""),
        (("get", "patch"), f"opencgacommunity.{GROUP}/scale", PLACE, ""),
        (("patch",), f"opencgacommunity.{GROUP}/status", PLACE, ""),
    ]
    may = {}
    for who, verb in {"view": "get", "edit": "create"}.items():
        bind = ("create", "rolebinding", f"{who}-trial", f"--clusterrole={operator.name}-opencga-{who}")
        cluster.must(cluster.kubectl("-n", bound, *bind, f"--user={who}"))
        operator.until_may(verb, f"opencgacommunity.{GROUP}", bound, who)
        answers = operator.reviews(rows, words(operator, bound), who)
        may[who] = [question.partition(" in ")[0] for question, allowed in answers.items() if allowed]
    found = cluster.must(cluster.kubectl("get", "clusterrole", f"{operator.name}-opencga-view", "-o", "yaml"))

    kind = f"opencgacommunity.{GROUP}"
    assert {"view": [f"get {kind}", f"get {kind}/scale"], "edit": [f"create {kind}", f"patch {kind}/scale"]} == may
    assert "aggregate-to-view" in found
