"""What the operator's account can and can't do on a real API server: RBAC by review, admission by trying."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Cluster, Operator, Row

pytestmark = pytest.mark.api

READ = ("get", "list", "watch")
WRITE = ("create", "update", "patch", "delete")
LIFECYCLE = READ + WRITE
HERE, TENANT, OTHER, EVERYWHERE, ACCOUNTS = "own", "tenant", "default", "", "accounts"

MAY: list[Row] = [
    (("get", "list", "watch", "patch"), "collectors.example.com", EVERYWHERE, ""),
    (("get", "patch"), "collectors.example.com/status", EVERYWHERE, ""),
    (("get", "list", "watch", "create"), "namespaces", EVERYWHERE, ""),
    (("create",), "rolebindings.rbac.authorization.k8s.io", OTHER, "moorage-collector"),
    (("get", "list", "watch", "patch", "delete"), "rolebindings.rbac.authorization.k8s.io", OTHER, "moorage-collector"),
    (("bind",), "clusterroles.rbac.authorization.k8s.io", EVERYWHERE, "TENANTROLE"),
    (("create", "patch"), "events", OTHER, ""),
    (("create", "patch"), "events.events.k8s.io", OTHER, ""),
    (("create",), "leases.coordination.k8s.io", HERE, ""),
    (("get",), "leases.coordination.k8s.io", EVERYWHERE, "another"),
    (("get", "list", "watch", "update", "patch"), "leases.coordination.k8s.io", HERE, "moorage"),
    (("get",), "secrets", HERE, "registry"),
    (("impersonate",), "serviceaccounts", ACCOUNTS, "collector.somewhere"),
]
ACCOUNT_MAY: list[Row] = [
    (LIFECYCLE, "secrets", TENANT, ""),
    (LIFECYCLE, "configmaps", TENANT, ""),
    (LIFECYCLE, "services", TENANT, ""),
    (LIFECYCLE, "serviceaccounts", TENANT, ""),
    (LIFECYCLE, "persistentvolumeclaims", TENANT, ""),
    (LIFECYCLE, "deployments.apps", TENANT, ""),
    (LIFECYCLE, "statefulsets.apps", TENANT, ""),
    (LIFECYCLE, "daemonsets.apps", TENANT, ""),
    (LIFECYCLE, "jobs.batch", TENANT, ""),
    (LIFECYCLE, "cronjobs.batch", TENANT, ""),
    (LIFECYCLE, "ingresses.networking.k8s.io", TENANT, ""),
    (LIFECYCLE, "networkpolicies.networking.k8s.io", TENANT, ""),
    (LIFECYCLE, "poddisruptionbudgets.policy", TENANT, ""),
    (LIFECYCLE, "horizontalpodautoscalers.autoscaling", TENANT, ""),
    (READ, "pods", TENANT, ""),
    (("get",), "pods/log", TENANT, ""),
    (READ, "replicasets.apps", TENANT, ""),
    (READ, "events", TENANT, ""),
]
NOBODY_MAY: list[Row] = [
    (LIFECYCLE, "secrets", EVERYWHERE, ""),
    (LIFECYCLE, "secrets", OTHER, ""),
    (LIFECYCLE, "secrets", "kube-system", ""),
    (("list", "watch", *WRITE), "secrets", HERE, "registry"),
    (("get",), "secrets", HERE, "another"),
    (("impersonate",), "users", EVERYWHERE, ""),
    (("impersonate",), "groups", EVERYWHERE, "system:masters"),
    (("impersonate",), "serviceaccounts", EVERYWHERE, ""),
    (("impersonate",), "serviceaccounts", "kube-system", "generic-garbage-collector"),
    (("create",), "serviceaccounts/token", ACCOUNTS, ""),
    (LIFECYCLE, "serviceaccounts", ACCOUNTS, ""),
    (LIFECYCLE, "roles.rbac.authorization.k8s.io", ACCOUNTS, ""),
    (("update", "patch", "delete"), "rolebindings.rbac.authorization.k8s.io", ACCOUNTS, "another"),
    (LIFECYCLE, "configmaps", OTHER, ""),
    (LIFECYCLE, "deployments.apps", OTHER, ""),
    (LIFECYCLE, "deployments.apps", HERE, ""),
    (LIFECYCLE, "pods", OTHER, ""),
    (WRITE, "pods", TENANT, ""),
    (("create",), "pods/exec", TENANT, ""),
    (("create",), "serviceaccounts/token", TENANT, ""),
    (("impersonate",), "serviceaccounts", TENANT, ""),
    (("create", "update", "delete"), "collectors.example.com", EVERYWHERE, ""),
    (("update", "patch", "delete"), "namespaces", EVERYWHERE, ""),
    (("update", "patch"), "namespaces/finalize", EVERYWHERE, ""),
    (("get", "list", "update", "patch", "delete"), "rolebindings.rbac.authorization.k8s.io", OTHER, "another"),
    (("update", "patch"), "rolebindings.rbac.authorization.k8s.io", ACCOUNTS, ""),
    (LIFECYCLE, "clusterrolebindings.rbac.authorization.k8s.io", EVERYWHERE, ""),
    (LIFECYCLE, "clusterroles.rbac.authorization.k8s.io", EVERYWHERE, ""),
    (("bind", "escalate"), "clusterroles.rbac.authorization.k8s.io", EVERYWHERE, "cluster-admin"),
    (("escalate",), "clusterroles.rbac.authorization.k8s.io", EVERYWHERE, "TENANTROLE"),
    (LIFECYCLE, "roles.rbac.authorization.k8s.io", TENANT, ""),
    (LIFECYCLE, "customresourcedefinitions.apiextensions.k8s.io", EVERYWHERE, ""),
    (LIFECYCLE, "validatingadmissionpolicies.admissionregistration.k8s.io", EVERYWHERE, ""),
    (LIFECYCLE, "nodes", EVERYWHERE, ""),
    (("list", "watch", *WRITE), "leases.coordination.k8s.io", "kube-system", ""),
    (("list", "watch", "update", "patch", "delete"), "leases.coordination.k8s.io", HERE, "another"),
    (("delete",), "leases.coordination.k8s.io", HERE, "moorage"),
]


@pytest.fixture(scope="module")
def tenant(operator: Operator, tag: str) -> Iterator[str]:
    """A tenant's namespace, made by the operator itself and bound to its account, as for a first Collector."""
    name = f"acme-{tag}"
    must = operator.cluster.must
    must(
        operator.create(
            operator.cluster.namespace(name, admits="default", **{"pod-security.kubernetes.io/enforce": "restricted"})
        )
    )
    must(operator.apply(operator.binding(name)))
    must(operator.apply(operator.binding(name)))
    operator.until_may("create", "configmaps", name, operator.account(name))
    yield name
    operator.cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="module")
def unadmitted(cluster: Cluster, tag: str) -> Iterator[str]:
    """Somebody's namespace, which admits no Collectors."""
    name = f"theirs-{tag}"
    cluster.must(cluster.kubectl("create", body=cluster.namespace(name)))
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


def words(operator: Operator, tenant: str) -> dict[str, str]:
    """What the words in the tables stand for."""
    roles = {"TENANTROLE": operator.roles["collector"]}
    return {HERE: operator.name, TENANT: tenant, ACCOUNTS: operator.accounts, **roles}


def test_what_it_may(operator: Operator, tenant: str) -> None:
    answers = operator.reviews(MAY, words(operator, tenant))
    assert len(answers) > 25
    assert [question for question, allowed in answers.items() if not allowed] == []


def test_what_it_may_not(operator: Operator, tenant: str) -> None:
    """Nothing in a tenant's namespace either: there its account works, which is kept there."""
    answers = operator.reviews(NOBODY_MAY + ACCOUNT_MAY, words(operator, tenant))
    assert len(answers) > 200
    assert [question for question, allowed in answers.items() if allowed] == []


def test_what_the_account_of_a_namespace_may(operator: Operator, tenant: str) -> None:
    answers = operator.reviews(ACCOUNT_MAY, words(operator, tenant), operator.account(tenant))
    assert len(answers) > 80
    assert [question for question, allowed in answers.items() if not allowed] == []


@pytest.mark.parametrize("whose", ["its own", "another's"])
def test_what_an_account_may_not(operator: Operator, tenant: str, whose: str) -> None:
    """Nothing that moorage itself may, nothing outside its namespace, and another's account nothing at all there."""
    own = whose == "its own"
    rows = [*NOBODY_MAY, *MAY, *([] if own else ACCOUNT_MAY)]
    answers = operator.reviews(rows, words(operator, tenant), operator.account(tenant if own else f"{tenant}-b"))
    assert len(answers) > 150
    assert [question for question, allowed in answers.items() if allowed] == []


def test_before_it_is_bound_a_namespace_is_closed(operator: Operator, unadmitted: str, tenant: str) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x", "namespace": unadmitted}}
    assert "cannot create resource" in operator.refused(secret)
    assert "cannot create resource" in operator.refused(secret, operator.account(unadmitted))
    secret["metadata"]["namespace"] = tenant  # type: ignore[index]
    assert "cannot create resource" in operator.refused(secret)
    operator.cluster.must(operator.create(secret, "--dry-run=server", user=operator.account(tenant)))


@pytest.mark.parametrize("place", ["kube-system", "kube-public", "own", "accounts"])
def test_nothing_is_bound_where_the_cluster_lives(operator: Operator, place: str) -> None:
    place = {"own": operator.name, "accounts": operator.accounts}.get(place, place)
    assert f"may have no rights in namespace {place}" in operator.refused(operator.binding(place))


def test_it_cannot_bind_itself_uninvited(operator: Operator, unadmitted: str) -> None:
    message = operator.refused(operator.binding(unadmitted))
    assert f"namespace {unadmitted} admits no Collectors" in message
    assert f"kubectl annotate namespace {unadmitted} moorage.dev/collectors-from=NAMESPACE" in message


@pytest.mark.parametrize("admits", ["", "  "])
def test_an_empty_invitation_is_none(operator: Operator, cluster: Cluster, tag: str, admits: str) -> None:
    name = f"empty-{tag}-{len(admits)}"
    cluster.must(cluster.kubectl("create", body=cluster.namespace(name, admits=admits)))
    try:
        assert "admits no Collectors" in operator.refused(operator.binding(name))
    finally:
        cluster.kubectl("delete", "namespace", name, "--wait=false")


def test_the_owner_can_invite(operator: Operator, cluster: Cluster, tag: str) -> None:
    name = f"invites-{tag}"
    cluster.must(cluster.kubectl("create", body=cluster.namespace(name, admits="team-a,team-b")))
    try:
        cluster.must(operator.create(operator.binding(name), "--dry-run=server"))
    finally:
        cluster.kubectl("delete", "namespace", name, "--wait=false")


def test_it_binds_one_role_to_one_account_under_one_name(operator: Operator, tenant: str) -> None:
    admin = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    assert "is attempting to grant RBAC permissions" in operator.refused(operator.binding(tenant, roleRef=admin))
    other = [{"kind": "ServiceAccount", "name": "default", "namespace": tenant}]
    assert f"but the account of that namespace, collector.{tenant}." in operator.refused(
        operator.binding(tenant, subjects=other)
    )
    for another in (
        operator.binding("default"),
        operator.binding(tenant, "xsld"),
        {"subjects": [{"kind": "ServiceAccount", "name": operator.name, "namespace": operator.name}]},
    ):
        assert "may bind nobody" in operator.refused(operator.binding(tenant, subjects=another["subjects"]))
    both = operator.binding(tenant)["subjects"] + other
    assert "may bind nobody" in operator.refused(operator.binding(tenant, subjects=both))
    assert "may bind nobody" in operator.refused(operator.binding(tenant, subjects=[]))
    renamed = operator.binding(tenant, metadata={"name": "another", "namespace": tenant})
    assert "no RoleBinding but moorage-collector" in operator.refused(renamed)


def test_it_cannot_open_its_binding_to_others(operator: Operator, tenant: str) -> None:
    patch = '[{"op": "add", "path": "/subjects/-", "value": {"kind": "ServiceAccount", "name": "x", "namespace": "y"}}]'
    done = operator.cluster.kubectl(
        "-n", tenant, "patch", "rolebinding", "moorage-collector", "--type=json", "-p", patch, user=operator.user
    )
    assert "may bind nobody" in done.stderr


def test_it_can_leave_again(operator: Operator, cluster: Cluster, tag: str) -> None:
    name = f"left-{tag}"
    cluster.must(operator.create(cluster.namespace(name, admits="default")))
    try:
        cluster.must(operator.create(operator.binding(name)))
        cluster.must(cluster.kubectl("annotate", "namespace", name, "moorage.dev/collectors-from-"))
        delete = ("-n", name, "delete", "rolebinding", "moorage-collector", "--wait=false")
        cluster.must(cluster.kubectl(*delete, user=operator.user))
    finally:
        cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.mark.parametrize("admits", [None, "", "a,b", "*", "a b"])
def test_a_namespace_it_makes_names_one_namespace(operator: Operator, tag: str, admits: str | None) -> None:
    assert "names in moorage.dev/collectors-from the one" in operator.refused(
        operator.cluster.namespace(f"new-{tag}", admits=admits)
    )


def test_names_of_the_cluster_s_own_namespaces_are_not_its_to_take(operator: Operator, tag: str) -> None:
    for name in (f"kube-{tag}", operator.name, operator.accounts):
        assert f"may not create namespace {name}" in operator.refused(
            operator.cluster.namespace(name, admits="default")
        )


def test_it_cannot_admit_itself_to_an_existing_namespace(operator: Operator, unadmitted: str) -> None:
    annotate = ("annotate", "namespace", unadmitted, "moorage.dev/collectors-from=default")
    assert "cannot patch resource" in operator.cluster.kubectl(*annotate, user=operator.user).stderr
    done = operator.apply(operator.cluster.namespace(unadmitted, admits="default"))
    assert "orbidden" in done.stderr


@pytest.mark.usefixtures("almighty")
def test_admission_holds_even_with_all_rights(operator: Operator, unadmitted: str, tenant: str) -> None:
    annotate = ("annotate", "namespace", unadmitted, "moorage.dev/collectors-from=default", "--dry-run=server")
    assert "may not change a namespace" in operator.cluster.kubectl(*annotate, user=operator.user).stderr
    assert "may have no rights in" in operator.refused(operator.binding("kube-system"))
    admin = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    assert "may bind no role but" in operator.refused(operator.binding(tenant, roleRef=admin))


@pytest.mark.usefixtures("almighty")
def test_each_system_s_binding_has_that_system_s_role(operator: Operator, tenant: str) -> None:
    """With both switched on, neither's binding gives the other's rights, even with all rights."""
    assert "no RoleBinding but moorage-collector and moorage-xsld" in operator.refused(
        operator.binding(tenant, metadata={"name": "another", "namespace": tenant})
    )
    for system, other in (("collector", "xsld"), ("xsld", "collector")):
        crossed = operator.binding(tenant, system, roleRef=operator.binding(tenant, other)["roleRef"])
        assert f"but the ClusterRole {operator.roles[system]}" in operator.refused(crossed)
        assert "may have no rights in" in operator.refused(operator.binding("kube-system", system))


def test_a_cache_needs_no_invitation(operator: Operator, unadmitted: str) -> None:
    """It is made where its owner wants it; a Collector reaches into somebody else's namespace."""
    operator.cluster.must(operator.create(operator.binding(unadmitted, "xsld"), "--dry-run=server"))
    assert "admits no Collectors" in operator.refused(operator.binding(unadmitted))


def test_others_are_not_touched_by_the_policies(cluster: Cluster, operator: Operator, unadmitted: str) -> None:
    cluster.must(cluster.kubectl("create", "--dry-run=server", body=operator.binding(unadmitted)))
    annotate = ("annotate", "namespace", unadmitted, "moorage.dev/collectors-from=default", "--dry-run=server")
    cluster.must(cluster.kubectl(*annotate))


def test_people_s_roles(cluster: Cluster, operator: Operator) -> None:
    """A controller, which may not run here, adds the rules to view and edit by label: so the labels are looked at."""
    view, edit = (
        json.loads(
            cluster.must(cluster.kubectl("get", "clusterrole", f"{operator.name}-collector-{role}", "-o", "json"))
        )
        for role in ("view", "edit")
    )
    assert view["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-view"] == "true"
    assert edit["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-edit"] == "true"
    assert "aggregate-to-view" not in str(edit["metadata"]["labels"])
