"""The accounts by which moorage reaches namespaces: what holds them there, whatever was granted, and who can be one."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Cluster, Operator

pytestmark = pytest.mark.api


def config_map(namespace: str) -> dict[str, Any]:
    """Something to write."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": namespace}}


@pytest.fixture(scope="module")
def places(operator: Operator, tag: str) -> Iterator[tuple[str, str]]:
    """Two tenants' namespaces, each with its account."""
    names = (f"one-{tag}", f"two-{tag}")
    for name in names:
        operator.cluster.must(operator.create(operator.cluster.namespace(name, admits="default")))
        operator.cluster.must(operator.apply(operator.binding(name)))
        operator.until_may("create", "configmaps", name, operator.account(name))
    yield names
    for name in names:
        operator.cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def mistaken(operator: Operator, places: tuple[str, str]) -> Iterator[str]:
    """The account of the first one, which somebody has made an administrator of everything."""
    name, account = f"{operator.name}-mistake", operator.account(places[0])
    create = ("create", "clusterrolebinding", name, "--clusterrole=cluster-admin", f"--user={account}")
    operator.cluster.must(operator.cluster.kubectl(*create))
    operator.until_almighty(account)
    yield account
    operator.cluster.must(operator.cluster.kubectl("delete", "clusterrolebinding", name))


def test_each_is_kept_in_its_namespace_by_rights(operator: Operator, places: tuple[str, str]) -> None:
    """Reading as well as writing."""
    one, two = places
    account = operator.account(one)
    operator.cluster.must(operator.create(config_map(one), "--dry-run=server", user=account))

    assert "cannot create resource" in operator.refused(config_map(two), account)
    for what in (
        ("configmaps", "-n", two),
        ("secrets", "-n", two),
        ("configmaps", "-A"),
        ("namespace", two),
        ("nodes",),
    ):
        assert "orbidden" in operator.cluster.kubectl("get", *what, user=account).stderr


@pytest.mark.usefixtures("places")
def test_each_writes_in_its_namespace_alone_whatever_it_was_granted(
    operator: Operator, places: tuple[str, str], mistaken: str
) -> None:
    one, two = places
    operator.cluster.must(operator.create(config_map(one), "--dry-run=server", user=mistaken))

    assert f"is for one namespace and may change nothing in {two}" in operator.refused(config_map(two), mistaken)
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "x"}}
    assert "may change nothing of the whole cluster" in operator.refused(role, mistaken)
    operator.cluster.must(operator.cluster.kubectl("create", body=config_map(two)))
    delete = operator.cluster.kubectl("delete", "configmap", "x", "-n", two, user=mistaken)
    assert "is for one namespace" in delete.stderr


def test_none_says_what_it_may_itself(operator: Operator, places: tuple[str, str], mistaken: str) -> None:
    """Its own RoleBinding is the operator's to write, by that one's rules."""
    admin = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    widened = operator.binding(places[0], "xsld", roleRef=admin)

    assert "moorage-collector and moorage-xsld are moorage's own" in operator.refused(widened, mistaken)
    other = operator.binding(places[0], metadata={"name": "another", "namespace": places[0]})
    operator.cluster.must(operator.create(other, "--dry-run=server", user=mistaken))


@pytest.mark.parametrize("kind", ["ServiceAccount", "Secret", "Pod"])
def test_nothing_is_made_of_their_names(operator: Operator, places: tuple[str, str], kind: str) -> None:
    """So there is no token of any, not even for administrators."""
    name = f"collector.{places[0]}"
    body: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": operator.accounts},
    }
    if kind == "Pod":
        profile = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
        tight = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
        body["spec"] = {
            "securityContext": profile,
            "containers": [{"name": "a", "image": "b", "securityContext": tight}],
        }
    done = operator.cluster.kubectl("create", "--dry-run=server", body=body)

    assert f"namespace {operator.accounts} holds the names of accounts" in done.stderr
    assert "not found" in operator.cluster.kubectl("create", "token", name, "-n", operator.accounts).stderr


def test_the_namespace_s_own_account_can_be_made(operator: Operator) -> None:
    """The cluster makes one in each namespace, and nothing is bound to it."""
    metadata = {"name": "default", "namespace": operator.accounts}
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    operator.cluster.must(
        operator.cluster.kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", body=body)
    )


def test_a_tenant_can_be_none_of_them(operator: Operator, cluster: Cluster, places: tuple[str, str]) -> None:
    """Who administers a namespace, and so makes pods and Secrets there, gets nobody's rights but its own."""
    one, _ = places
    cluster.must(cluster.kubectl("create", "rolebinding", "eve", "-n", one, "--clusterrole=admin", "--user=eve"))
    account = operator.account(one)

    def tries(*args: str) -> subprocess.CompletedProcess[str]:
        return cluster.kubectl(*args, user="eve")

    cluster.must(tries("create", "serviceaccount", "own", "-n", one, "--dry-run=server"))
    assert "orbidden" in tries("create", "token", account.rpartition(":")[2], "-n", operator.accounts).stderr
    answers = operator.reviews(
        [
            (("impersonate",), "serviceaccounts", operator.accounts, f"collector.{one}"),
            (("impersonate",), "users", "", account),
            (("get", "list", "create"), "serviceaccounts", operator.accounts, ""),
            (("create",), "serviceaccounts/token", operator.accounts, f"collector.{one}"),
            (("create",), "pods", operator.accounts, ""),
            (("get", "list"), "secrets", operator.accounts, ""),
        ],
        {},
        "eve",
    )
    assert len(answers) > 8
    assert [] == [question for question, allowed in answers.items() if allowed]
    there = json.loads(
        cluster.must(cluster.kubectl("get", "serviceaccounts,secrets", "-n", operator.accounts, "-o", "json"))
    )
    assert {"default"} >= {item["metadata"]["name"] for item in there["items"]}
