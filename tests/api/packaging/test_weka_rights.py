"""Where Weka may be, whose pods are root on their nodes, and which pods those are; see test_systems_rights."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from conftest import alone, namespace, people

if TYPE_CHECKING:
    from conftest import Cluster, Operator, Row

pytestmark = pytest.mark.api

GROUP = "weka.weka.io"
KIND = f"wekaclusters.{GROUP}"
OPENED = {"moorage.dev/weka": "privileged"}
IMAGE = "registry.example/weka:4.4.1"
LET_GO = ("patch", "rolebinding", "moorage-weka", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')


@pytest.fixture(scope="module")
def opened(cluster: Cluster, tag: str) -> Iterator[str]:
    """A namespace that may hold clusters: it is labelled."""
    yield from namespace(cluster, f"storage-{tag}", **OPENED)


@pytest.fixture(scope="module")
def closed(cluster: Cluster, tag: str) -> Iterator[str]:
    """A namespace that nobody has labelled."""
    yield from namespace(cluster, f"closed-{tag}")


@pytest.fixture(scope="module")
def left(cluster: Cluster, tag: str) -> Iterator[str]:
    """A namespace whose label somebody takes away."""
    yield from namespace(cluster, f"left-{tag}", **OPENED)


@pytest.fixture(scope="module")
def operator(
    cluster: Cluster, tag: str, opened: str, closed: str, left: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Operator]:
    """The chart with Weka alone, in listed namespaces."""
    section = {"namespaces": [opened, closed, left], "images": ["registry.example/", "team.example/weka"]}
    with alone(cluster, tmp_path_factory.mktemp("values"), f"moorage-{tag}", "weka", section) as made:
        yield made


@pytest.fixture(scope="module")
def bound(operator: Operator, opened: str) -> str:
    """The opened namespace, where the operator has bound its account as it does for a cluster, and once more."""
    for _ in range(2):
        operator.cluster.must(operator.apply(held(operator, opened)))
    operator.until_may("create", "pods", opened, operator.account(opened, "weka"))
    return opened


def held(operator: Operator, place: str) -> dict[str, Any]:
    """The binding as moorage makes it for Weka: with a namespace it does not go before its end."""
    metadata = {"name": "moorage-weka", "namespace": place, "finalizers": [f"{GROUP}/rights"]}
    return operator.binding(place, "weka", metadata=metadata)


@pytest.fixture(scope="module", autouse=True)
def free(operator: Operator, opened: str) -> Iterator[None]:
    """With the namespace its binding goes, which nobody else would let go."""
    yield
    operator.cluster.kubectl("-n", opened, *LET_GO)


def test_a_namespace_that_nobody_opened_is_closed(operator: Operator, closed: str) -> None:
    """Although it is listed: both are needed, the list and the label of who may change namespaces."""
    message = operator.refused(operator.binding(closed, "weka"))

    assert f"kubectl label namespace {closed} moorage.dev/weka=privileged" in message


def test_rights_are_given_back_where_the_label_was_taken_away(operator: Operator, left: str) -> None:
    """Else what is deleted there after that would never end."""
    cluster = operator.cluster
    cluster.must(operator.apply(held(operator, left)))
    cluster.must(cluster.kubectl("label", "namespace", left, "moorage.dev/weka-"))

    cluster.must(cluster.kubectl("-n", left, *LET_GO, user=operator.user))
    cluster.must(cluster.kubectl("-n", left, "delete", "rolebinding", "moorage-weka", user=operator.user))


def pod(place: str, image: str = IMAGE, **changed: Any) -> dict[str, Any]:
    """A pod such as moorage makes for a WekaContainer, with changes of its spec."""
    owner = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "WekaContainer", "name": "demo-drive-0", "uid": "u"}
    metadata = {"name": "demo-drive-0", "namespace": place, "ownerReferences": [{**owner, "controller": True}]}
    container = {"name": "weka-container", "image": image, "securityContext": {"privileged": True}}
    spec = {"hostNetwork": True, "automountServiceAccountToken": False, "containers": [container], **changed}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def test_pods_are_those_of_containers_with_listed_images(operator: Operator, bound: str) -> None:
    """Whatever a WekaContainer leads moorage to."""
    account = operator.account(bound, "weka")
    service_account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "default", "namespace": bound},
    }
    operator.cluster.kubectl("create", body=service_account)  # nobody else makes it where no controller manager runs
    mine = pod(bound)

    operator.cluster.must(operator.create(mine, "--dry-run=server", user=account))
    assert "none of those that may be root on nodes" in operator.refused(pod(bound, "other.example/weka:1"), account)
    assert "none of those that may be root" in operator.refused(pod(bound, "team.example/weka-like:1"), account)
    operator.cluster.must(operator.create(pod(bound, "team.example/weka@sha256:a"), "--dry-run=server", user=account))
    beside = [{"name": "beside", "image": "other.example/x:1"}]
    assert "none of those that may be root" in operator.refused(pod(bound, initContainers=beside), account)
    renamed = {**mine, "metadata": {**mine["metadata"], "name": "other"}}
    assert "no pod here but that of a WekaContainer" in operator.refused(renamed, account)
    orphan = {**mine, "metadata": {"name": "demo-drive-0", "namespace": bound}}
    assert "no pod here but that of a WekaContainer" in operator.refused(orphan, account)


def test_pods_of_operations_are_named_after_them(operator: Operator, bound: str) -> None:
    account = operator.account(bound, "weka")
    owner = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "WekaManualOperation", "name": "sign", "uid": "u"}
    metadata = {"name": "sign-0a1b", "namespace": bound, "ownerReferences": [{**owner, "controller": True}]}
    mine = {**pod(bound), "metadata": metadata}

    operator.cluster.must(operator.create(mine, "--dry-run=server", user=account))
    renamed = {**mine, "metadata": {**metadata, "name": "demo-drive-0"}}
    assert "or of a WekaManualOperation" in operator.refused(renamed, account)


@pytest.fixture
def node(cluster: Cluster, tag: str) -> Iterator[str]:
    """A node that somebody has described."""
    name = f"node-{tag}"
    metadata = {"name": name, "labels": {"a": "b"}, "annotations": {"weka.io/weka-drives": "[]", "other": "1"}}
    cluster.must(cluster.kubectl("create", body={"apiVersion": "v1", "kind": "Node", "metadata": metadata}))
    yield name
    cluster.kubectl("delete", "node", name)


NODE_CHANGES: list[tuple[dict[str, Any], bool]] = [
    ({"metadata": {"annotations": {"weka.io/weka-drives": '["s1"]', "weka.io/sign-drives-hash": "x"}}}, True),
    ({"metadata": {"annotations": {"weka.io/weka-drives": None, "weka.io/blocked-drives": '["s1"]'}}}, True),
    ({"metadata": {"annotations": {"weka.io/blocked-drives-physical-uuids": '["u"]'}}}, True),
    ({"metadata": {"annotations": {"weka.io/drivers-loaded": "x"}}}, False),
    ({"metadata": {"annotations": {"other": "2"}}}, False),
    ({"metadata": {"annotations": {"other": None}}}, False),
    ({"metadata": {"annotations": {"new": "1"}}}, False),
    ({"metadata": {"labels": {"a": "c"}}}, False),
    ({"metadata": {"labels": None}}, False),
    ({"metadata": {"finalizers": ["a/b"]}}, False),
    ({"spec": {"unschedulable": True}}, False),
    ({"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}}, False),
]


@pytest.mark.parametrize(("change", "may"), NODE_CHANGES)
def test_of_a_node_it_writes_what_tells_of_drives_alone(
    operator: Operator, node: str, change: dict[str, Any], may: bool
) -> None:
    words = ("patch", "node", node, "--type=merge", "-p", json.dumps(change))
    done = operator.cluster.kubectl(*words, user=operator.user)

    assert (done.returncode == 0) == may, done.stderr
    assert may or "may change nothing of a node but the annotations" in done.stderr


@pytest.mark.usefixtures("almighty")
def test_nodes_are_held_even_with_all_rights(operator: Operator, node: str) -> None:
    user, admin = operator.user, operator.cluster
    more = ("patch", "node", node, "--subresource=status", "--type=merge", "-p", '{"status":{"capacity":{"a/b":"1"}}}')

    assert "may change nothing of a node" in admin.kubectl(*more, user=user).stderr
    assert "may change nothing of a node" in admin.kubectl("delete", "node", node, user=user).stderr


@pytest.mark.usefixtures("almighty")
def test_it_is_closed_even_with_all_rights(operator: Operator, closed: str) -> None:
    assert "is not opened for pods" in operator.refused(operator.binding(closed, "weka"))


def test_people_s_roles(cluster: Cluster, operator: Operator, opened: str) -> None:
    """Who may edit in a namespace gets to read these kinds alone: who writes them is root on nodes."""
    rows: list[Row] = [(("get", "create"), KIND, opened, "")]
    may = people(operator, "weka", opened, {"view": ("get", KIND), "edit": ("create", KIND)}, rows)
    found = cluster.must(cluster.kubectl("get", "clusterrole", f"{operator.name}-weka-edit", "-o", "yaml"))

    assert {"view": [f"get {KIND}"], "edit": [f"create {KIND}"]} == may
    assert "aggregate-to-" not in found
