"""What the operator's account can and can't do where caches alone are switched on, in listed namespaces only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from conftest import installed
from moorage.operators.xsld import names
from moorage.operators.xsld.cache import build, types
from moorage.operators.xsld.group import dialect

if TYPE_CHECKING:
    from conftest import Cluster, Operator, Row

pytestmark = pytest.mark.api

READ = ("get", "list", "watch")
LIFECYCLE = (*READ, "create", "update", "patch", "delete")
OWN = (*READ, "create", "patch", "delete")
HERE, CACHES, OTHER, EVERYWHERE, ROLE, ACCOUNTS = "own", "caches", "default", "", "ROLE", "accounts"
GROUP = names.GROUP
RBAC = "rbac.authorization.k8s.io"

MAY: list[Row] = [
    *(((*READ, "patch"), f"{kind}.{GROUP}", EVERYWHERE, "") for kind in ("xsldcaches", "datagrids", "gridtemplates")),
    *(
        (("get", "patch"), f"{kind}.{GROUP}/status", EVERYWHERE, "")
        for kind in ("xsldcaches", "datagrids", "gridtemplates")
    ),
    (READ, "namespaces", EVERYWHERE, ""),
    (("get",), "storageclasses.storage.k8s.io", EVERYWHERE, "fast"),
    (("create",), f"rolebindings.{RBAC}", OTHER, "moorage-xsld"),
    (("get", "list", "watch", "patch", "delete"), f"rolebindings.{RBAC}", OTHER, "moorage-xsld"),
    (("bind",), f"clusterroles.{RBAC}", EVERYWHERE, ROLE),
    (("create", "patch"), "events", OTHER, ""),
    (("get",), "leases.coordination.k8s.io", EVERYWHERE, "another"),
    (("get", "list", "watch", "update", "patch"), "leases.coordination.k8s.io", HERE, "moorage"),
    (("impersonate",), "serviceaccounts", ACCOUNTS, "xsld.somewhere"),
]
ACCOUNT_MAY: list[Row] = [
    (OWN, "statefulsets.apps", CACHES, ""),
    (OWN, "services", CACHES, ""),
    (OWN, "configmaps", CACHES, ""),
    (OWN, "secrets", CACHES, ""),
    (OWN, "poddisruptionbudgets.policy", CACHES, ""),
    ((*READ, "patch", "delete"), "persistentvolumeclaims", CACHES, ""),
    ((*READ, "delete"), "pods", CACHES, ""),
    (("create",), "pods/eviction", CACHES, ""),
    (("get", "list"), "events", CACHES, ""),
    (("patch",), "pods/status", CACHES, ""),
]
NOBODY_MAY: list[Row] = [
    (("impersonate",), "serviceaccounts", EVERYWHERE, ""),
    (("impersonate",), "serviceaccounts", CACHES, ""),
    (LIFECYCLE, "secrets", EVERYWHERE, ""),
    (LIFECYCLE, "secrets", OTHER, ""),
    (LIFECYCLE, "secrets", "kube-system", ""),
    (LIFECYCLE, "secrets", HERE, ""),
    (LIFECYCLE, "statefulsets.apps", OTHER, ""),
    (LIFECYCLE, "statefulsets.apps", HERE, ""),
    (LIFECYCLE, "pods", OTHER, ""),
    (("create", "update", "delete"), f"xsldcaches.{GROUP}", EVERYWHERE, ""),
    (("create", "update", "delete"), f"datagrids.{GROUP}", EVERYWHERE, ""),
    (("update", "patch"), f"xsldcaches.{GROUP}/scale", CACHES, ""),
    (LIFECYCLE, "collectors.example.com", EVERYWHERE, ""),
    (("create", "update", "patch", "delete"), "namespaces", EVERYWHERE, ""),
    (("list", "watch", "create", "update", "patch", "delete"), "storageclasses.storage.k8s.io", EVERYWHERE, ""),
    (("get", "list", "update", "patch", "delete"), f"rolebindings.{RBAC}", OTHER, "another"),
    (("get", "list", "update", "patch", "delete"), f"rolebindings.{RBAC}", OTHER, "moorage-collector"),
    (LIFECYCLE, f"clusterrolebindings.{RBAC}", EVERYWHERE, ""),
    (LIFECYCLE, f"clusterroles.{RBAC}", EVERYWHERE, ""),
    (("bind", "escalate"), f"clusterroles.{RBAC}", EVERYWHERE, "cluster-admin"),
    (("escalate",), f"clusterroles.{RBAC}", EVERYWHERE, ROLE),
    (LIFECYCLE, f"roles.{RBAC}", CACHES, ""),
    (("create", "update", "patch"), "pods", CACHES, ""),
    (("create",), "pods/exec", CACHES, ""),
    (("get",), "pods/log", CACHES, ""),
    (("create",), "persistentvolumeclaims", CACHES, ""),
    (LIFECYCLE, "persistentvolumes", EVERYWHERE, ""),
    (LIFECYCLE, "serviceaccounts", CACHES, ""),
    (("create",), "serviceaccounts/token", CACHES, ""),
    (LIFECYCLE, "deployments.apps", CACHES, ""),
    (LIFECYCLE, "jobs.batch", CACHES, ""),
    (LIFECYCLE, "nodes", EVERYWHERE, ""),
    (LIFECYCLE, "customresourcedefinitions.apiextensions.k8s.io", EVERYWHERE, ""),
    (LIFECYCLE, "validatingadmissionpolicies.admissionregistration.k8s.io", EVERYWHERE, ""),
]


@pytest.fixture(scope="module")
def caches(cluster: Cluster, tag: str) -> Iterator[str]:
    """A namespace that is listed."""
    name = f"caches-{tag}"
    cluster.must(cluster.kubectl("create", body=cluster.namespace(name)))
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="module")
def unlisted(cluster: Cluster, tag: str) -> Iterator[str]:
    """A namespace that is not."""
    name = f"unlisted-{tag}"
    cluster.must(cluster.kubectl("create", body=cluster.namespace(name)))
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="module")
def operator(cluster: Cluster, tag: str, caches: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """The chart with caches alone, in listed namespaces, of which two would be nobody's to list."""
    xsld = {"namespaces": [caches, "kube-system", f"moorage-{tag}"]}
    values = {"systems": {"collector": {"enabled": False}, "xsld": xsld}}
    with installed(cluster, tmp_path_factory.mktemp("values"), f"moorage-{tag}", values) as made:
        yield made


@pytest.fixture(scope="module")
def bound(operator: Operator, caches: str) -> str:
    """The listed namespace, where the operator has bound its account as it does for a first cache, and once more."""
    for _ in range(2):
        operator.cluster.must(operator.apply(operator.binding(caches, "xsld")))
    operator.until_may("create", "configmaps", caches, operator.account(caches, "xsld"))
    return caches


def words(operator: Operator, place: str) -> dict[str, str]:
    """What the words in the tables stand for."""
    return {HERE: operator.name, CACHES: place, ROLE: operator.roles["xsld"], ACCOUNTS: operator.accounts}


def test_what_it_may(operator: Operator, bound: str) -> None:
    answers = operator.reviews(MAY, words(operator, bound))

    assert len(answers) > 30
    assert [] == [question for question, allowed in answers.items() if not allowed]


def test_what_the_account_of_a_namespace_may(operator: Operator, bound: str) -> None:
    answers = operator.reviews(ACCOUNT_MAY, words(operator, bound), operator.account(bound, "xsld"))

    assert len(answers) > 35
    assert [] == [question for question, allowed in answers.items() if not allowed]


def test_what_it_may_not(operator: Operator, bound: str) -> None:
    answers = operator.reviews(NOBODY_MAY + ACCOUNT_MAY, words(operator, bound))

    assert len(answers) > 150
    assert [] == [question for question, allowed in answers.items() if allowed]


@pytest.mark.parametrize("own", [True, False])
def test_what_an_account_may_not(operator: Operator, bound: str, own: bool) -> None:
    """Nothing that moorage itself may, nothing outside its namespace, and another's account nothing at all there."""
    rows = [*NOBODY_MAY, *MAY, *([] if own else ACCOUNT_MAY)]
    account = operator.account(bound if own else f"{bound}-b", "xsld")
    answers = operator.reviews(rows, words(operator, bound), account)

    assert len(answers) > 130
    assert [] == [question for question, allowed in answers.items() if allowed]


def test_it_writes_all_that_a_cache_is_made_of(operator: Operator, bound: str) -> None:
    """The very bodies, as the operator applies them, made and then changed."""
    for size in (2, 3):
        spec = types.XsldCacheSpec("accept", size, "Xs8admin!Pwd", "Xs8secret!Key", debug_node_ports=True)
        wanted = build.Wanted(bound, "shop", "2f8a1c34-0000-4000-8000-000000000000", spec, dialect.Dialect())
        children = [*build.children(wanted, primary="shop-0", pods=size), build.workload(wanted, size)]
        bodies = [child.body for child in children]

        body = {"apiVersion": "v1", "kind": "List", "items": bodies}
        operator.cluster.must(operator.apply(body, operator.account(bound, "xsld")))
    kinds = {child.resource.kind for child in children}
    assert {"StatefulSet", "Service", "ConfigMap", "Secret", "PodDisruptionBudget"} == kinds
    for kind in sorted(kinds):
        delete = ("-n", bound, "delete", kind, "-l", f"{build.LABEL}=shop", "--cascade=orphan", "--wait=false")
        operator.cluster.must(operator.cluster.kubectl(*delete, user=operator.account(bound, "xsld")))


def test_an_unlisted_namespace_is_closed(operator: Operator, unlisted: str, caches: str) -> None:
    message = operator.refused(operator.binding(unlisted, "xsld"))

    assert f"namespace {unlisted} may hold no caches. Make them in one of: {caches}, " in message
    assert f"add {unlisted} to the value systems.xsld.namespaces" in message


@pytest.mark.parametrize("place", ["kube-system", "kube-public", "own"])
def test_nothing_is_bound_where_the_cluster_lives(operator: Operator, place: str) -> None:
    """Although two of them are listed."""
    place = operator.name if place == "own" else place
    message = operator.refused(operator.binding(place, "xsld"))

    assert f"may have no rights in namespace {place}" in message
    assert "in another namespace" in message


def test_it_binds_one_role_to_one_account_under_one_name(operator: Operator, bound: str) -> None:
    admin = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}
    assert "is attempting to grant RBAC permissions" in operator.refused(operator.binding(bound, "xsld", roleRef=admin))
    other = [{"kind": "ServiceAccount", "name": "default", "namespace": bound}]
    for subjects in (other, operator.binding(bound)["subjects"] + other, []):
        assert "may bind nobody" in operator.refused(operator.binding(bound, "xsld", subjects=subjects))
    for name in ("another", "moorage-collector"):
        renamed = operator.binding(bound, "xsld", metadata={"name": name, "namespace": bound})
        assert "no RoleBinding but moorage-xsld." in operator.refused(renamed)


def test_it_cannot_open_its_binding_to_others(operator: Operator, bound: str) -> None:
    patch = '[{"op": "add", "path": "/subjects/-", "value": {"kind": "ServiceAccount", "name": "x", "namespace": "y"}}]'
    done = operator.cluster.kubectl(
        "-n", bound, "patch", "rolebinding", "moorage-xsld", "--type=json", "-p", patch, user=operator.user
    )

    assert "may bind nobody" in done.stderr


def test_it_can_leave_a_namespace_that_is_no_longer_listed(operator: Operator, unlisted: str) -> None:
    operator.cluster.must(operator.cluster.kubectl("create", body=operator.binding(unlisted, "xsld")))
    delete = ("-n", unlisted, "delete", "rolebinding", "moorage-xsld", "--wait=false")

    operator.cluster.must(operator.cluster.kubectl(*delete, user=operator.user))


@pytest.mark.usefixtures("almighty")
def test_admission_holds_even_with_all_rights(operator: Operator, bound: str, unlisted: str) -> None:
    admin = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}
    role = {"apiGroup": RBAC, "kind": "Role", "name": operator.roles["xsld"]}

    for ref in (admin, role):
        refused = operator.refused(operator.binding(bound, "xsld", roleRef=ref))
        assert f"no role but the ClusterRole {operator.roles['xsld']} by the RoleBinding moorage-xsld" in refused
    assert "may have no rights in" in operator.refused(operator.binding("kube-system", "xsld"))
    assert "may hold no caches" in operator.refused(operator.binding(unlisted, "xsld"))
    assert "no RoleBinding but moorage-xsld." in operator.refused(operator.binding(bound))


def test_others_are_not_touched_by_the_policies(cluster: Cluster, operator: Operator, unlisted: str) -> None:
    cluster.must(cluster.kubectl("create", "--dry-run=server", body=operator.binding(unlisted, "xsld")))


def test_people_s_roles(cluster: Cluster, operator: Operator, bound: str) -> None:
    """`view` shows grids and templates, and of caches nothing, for there may be passwords in them."""

    def role(name: str) -> dict[str, Any]:
        found = cluster.must(cluster.kubectl("get", "clusterrole", f"{operator.name}-xsld-{name}", "-o", "json"))
        return dict(json.loads(found))

    labels = {name: str(role(name)["metadata"]["labels"]) for name in ("view", "view-caches", "edit")}
    assert "aggregate-to-view" in labels["view"]
    assert "aggregate-to-view" not in labels["view-caches"] + labels["edit"]
    assert all("aggregate-to-edit" in each and "aggregate-to-admin" in each for each in labels.values())
    expected = {"view": "get datagrids", "view-caches": "get xsldcaches", "edit": "create xsldcaches"}
    may = {}
    for who, what in expected.items():
        bind = ("create", "rolebinding", f"{who}-trial", f"--clusterrole={operator.name}-xsld-{who}", f"--user={who}")
        cluster.must(cluster.kubectl("-n", bound, *bind))
        verb, plural = what.split()
        operator.until_may(verb, f"{plural}.{GROUP}", bound, who)
        may[who] = {
            f"{verb} {kind}"
            for verb, kind in (("get", "xsldcaches"), ("get", "datagrids"), ("create", "xsldcaches"))
            if _can(cluster, who, verb, kind, bound)
        }

    assert {who: {what} for who, what in expected.items()} == may


def _can(cluster: Cluster, user: str, verb: str, plural: str, namespace: str) -> bool:
    attributes = {"verb": verb, "group": GROUP, "resource": plural, "namespace": namespace}
    spec = {"user": user, "resourceAttributes": attributes}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    return cluster.must(cluster.kubectl("create", "-o", "jsonpath={.status.allowed}", body=body)) == "true"


def test_switched_off_it_leaves_nothing(
    cluster: Cluster, tag: str, bound: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """No role, no policy, and no right to write the binding."""
    values = {"systems": {"xsld": {"enabled": False}}}
    with installed(cluster, tmp_path_factory.mktemp("values"), f"moorage-off-{tag}", values) as operator:
        kinds = "clusterrole,clusterrolebinding,validatingadmissionpolicy,validatingadmissionpolicybinding"
        label = f"app.kubernetes.io/instance={operator.name}"
        there = cluster.must(cluster.kubectl("get", kinds, "-l", label, "-o", "name")).split()

        assert there
        assert not [name for name in there if "xsld" in name]
        role = operator.binding(bound)["roleRef"]
        assert "no RoleBinding but moorage-collector." in operator.refused(
            operator.binding(bound, "xsld", roleRef=role)
        )
        answers = operator.reviews([row for row in MAY if GROUP in row[1]], words(operator, bound))
        assert answers
        assert not any(answers.values())
