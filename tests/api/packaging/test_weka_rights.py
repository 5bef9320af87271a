"""What moorage and its accounts can and can't do where Weka alone is on, whose pods are root on their nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from conftest import installed

if TYPE_CHECKING:
    from conftest import Cluster, Operator, Row

pytestmark = pytest.mark.api

GROUP, RBAC = "weka.weka.io", "rbac.authorization.k8s.io"
KINDS = tuple(f"{it}.{GROUP}" for it in ("wekaclusters", "wekacontainers"))
READ = ("get", "list", "watch")
WRITE = ("create", "update", "patch", "delete")
HERE, PLACE, OTHER, EVERYWHERE, ROLE, ACCOUNTS = "own", "place", "default", "", "ROLE", "accounts"
OPENED = {"moorage.dev/weka": "privileged"}
IMAGE = "registry.example/weka:4.4.1"
LET_GO = ("patch", "rolebinding", "moorage-weka", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')

MAY: list[Row] = [
    *(((*READ, "patch"), kind, EVERYWHERE, "") for kind in KINDS),
    *((("get", "patch"), f"{kind}/status", EVERYWHERE, "") for kind in KINDS),
    *((READ, kind, EVERYWHERE, "") for kind in ("namespaces", "nodes")),
    (("create",), f"rolebindings.{RBAC}", OTHER, "moorage-weka"),
    ((*READ, "patch", "delete"), f"rolebindings.{RBAC}", OTHER, "moorage-weka"),
    (("bind",), f"clusterroles.{RBAC}", EVERYWHERE, ROLE),
    (("create", "patch"), "events", OTHER, ""),
    (("impersonate",), "serviceaccounts", ACCOUNTS, "weka.somewhere"),
]
ACCOUNT_MAY: list[Row] = [
    (("create", "delete"), f"wekacontainers.{GROUP}", PLACE, ""),
    ((*READ, "create", "delete"), "pods", PLACE, ""),
    (("get", "create"), "pods/exec", PLACE, ""),
    ((*READ, "create", "patch", "delete"), "configmaps", PLACE, ""),
    ((*READ, "create"), "secrets", PLACE, ""),
]
NOBODY_MAY: list[Row] = [
    *(((*READ, *WRITE), kind, EVERYWHERE, "") for kind in ("secrets", "configmaps", "pods", "persistentvolumes")),
    *(((*READ, *WRITE), "secrets", place, "") for place in (OTHER, HERE, "kube-system")),
    *((("get", "create"), "pods/exec", place, "") for place in (OTHER, HERE, "kube-system")),
    (WRITE, "nodes", EVERYWHERE, ""),
    (("patch", "update"), "nodes/status", EVERYWHERE, ""),
    (("update", "patch", "delete"), "secrets", PLACE, ""),
    (("update", "patch"), "pods", PLACE, ""),
    (("create", "delete"), f"wekaclusters.{GROUP}", PLACE, ""),
    ((*READ, *WRITE), "serviceaccounts", PLACE, ""),
    (("create",), "serviceaccounts/token", PLACE, ""),
    (("create",), "serviceaccounts/token", ACCOUNTS, ""),
    (("impersonate",), "serviceaccounts", PLACE, ""),
    (("impersonate",), "users", EVERYWHERE, ""),
    ((*READ, *WRITE), f"roles.{RBAC}", PLACE, ""),
    (("bind", "escalate"), f"clusterroles.{RBAC}", EVERYWHERE, "cluster-admin"),
    (("escalate",), f"clusterroles.{RBAC}", EVERYWHERE, ROLE),
    (("get", "list", "update", "patch", "delete"), f"rolebindings.{RBAC}", OTHER, "another"),
    ((*READ, *WRITE), "xsldcaches.xsld.ibm.com", EVERYWHERE, ""),
    ((*READ, *WRITE), "collectors.example.com", EVERYWHERE, ""),
    (WRITE, "namespaces", EVERYWHERE, ""),
]


def _namespace(cluster: Cluster, name: str, **labels: str) -> Iterator[str]:
    cluster.must(cluster.kubectl("create", body=cluster.namespace(name, **labels)))
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="module")
def opened(cluster: Cluster, tag: str) -> Iterator[str]:
    """A namespace that may hold clusters: it is listed, and labelled."""
    yield from _namespace(cluster, f"storage-{tag}", **OPENED)


@pytest.fixture(scope="module")
def closed(cluster: Cluster, tag: str) -> Iterator[str]:
    """A namespace that is listed, and that nobody has labelled."""
    yield from _namespace(cluster, f"closed-{tag}")


@pytest.fixture(scope="module")
def left(cluster: Cluster, tag: str) -> Iterator[str]:
    """A namespace that is listed, and whose label somebody takes away."""
    yield from _namespace(cluster, f"left-{tag}", **OPENED)


@pytest.fixture(scope="module")
def unlisted(cluster: Cluster, tag: str) -> Iterator[str]:
    """A namespace that is labelled, and not listed."""
    yield from _namespace(cluster, f"unlisted-{tag}", **OPENED)


@pytest.fixture(scope="module")
def operator(
    cluster: Cluster, tag: str, opened: str, closed: str, left: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Operator]:
    """The chart with Weka alone, in listed namespaces, of which one would be nobody's to list."""
    weka = {
        "enabled": True,
        "namespaces": [opened, closed, left, "kube-system"],
        "images": ["registry.example/", "team.example/weka"],
    }
    values = {"systems": {"collector": {"enabled": False}, "xsld": {"enabled": False}, "weka": weka}}
    with installed(cluster, tmp_path_factory.mktemp("values"), f"moorage-{tag}", values) as made:
        yield made


@pytest.fixture(scope="module")
def bound(operator: Operator, opened: str) -> str:
    """The opened namespace, where the operator has bound its account as it does for a cluster, and once more."""
    for _ in range(2):
        operator.cluster.must(operator.apply(held(operator, opened)))
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


def words(operator: Operator, place: str) -> dict[str, str]:
    """What the words in the tables stand for."""
    return {HERE: operator.name, PLACE: place, ROLE: operator.roles["weka"], ACCOUNTS: operator.accounts}


def test_what_moorage_may(operator: Operator, bound: str) -> None:
    answers = operator.reviews(MAY, words(operator, bound))

    assert len(answers) > 20
    assert [] == [question for question, allowed in answers.items() if not allowed]


def test_what_moorage_may_not(operator: Operator, bound: str) -> None:
    """Nothing that the account of a namespace may there either; least of all exec."""
    answers = operator.reviews(NOBODY_MAY + ACCOUNT_MAY, words(operator, bound))

    assert len(answers) > 100
    assert [] == [question for question, allowed in answers.items() if allowed]


def test_what_the_account_of_a_namespace_may(operator: Operator, bound: str) -> None:
    answers = operator.reviews(ACCOUNT_MAY, words(operator, bound), operator.account(bound, "weka"))

    assert len(answers) > 15
    assert [] == [question for question, allowed in answers.items() if not allowed]


@pytest.mark.parametrize("own", [True, False], ids=["its own", "another's"])
def test_what_an_account_may_not(operator: Operator, bound: str, own: bool) -> None:
    """Nothing that moorage itself may, nothing outside its namespace, and another's account nothing at all there."""
    rows = [*NOBODY_MAY, *MAY, *([] if own else ACCOUNT_MAY)]
    account = operator.account(bound if own else f"{bound}-b", "weka")
    answers = operator.reviews(rows, words(operator, bound), account)

    assert len(answers) > 100
    assert [] == [question for question, allowed in answers.items() if allowed]


def test_a_namespace_that_nobody_opened_is_closed(operator: Operator, closed: str, unlisted: str) -> None:
    """Both are needed: the label of who may change namespaces, and the list, where there is one."""
    message = operator.refused(operator.binding(closed, "weka"))
    other = operator.refused(operator.binding(unlisted, "weka"))

    assert f"kubectl label namespace {closed} moorage.dev/weka=privileged" in message
    assert f"namespace {unlisted} may hold no WekaClusters" in other
    assert f"add {unlisted} to the value systems.weka.namespaces" in other


def test_rights_are_given_back_where_the_label_was_taken_away(operator: Operator, left: str) -> None:
    """Else what is deleted there after that would never end."""
    cluster = operator.cluster
    cluster.must(operator.apply(held(operator, left)))
    cluster.must(cluster.kubectl("label", "namespace", left, "moorage.dev/weka-"))

    cluster.must(cluster.kubectl("-n", left, *LET_GO, user=operator.user))
    cluster.must(cluster.kubectl("-n", left, "delete", "rolebinding", "moorage-weka", user=operator.user))


@pytest.mark.parametrize("place", ["kube-system", "kube-public", "own", "accounts"])
def test_nothing_is_bound_where_the_cluster_lives(operator: Operator, place: str) -> None:
    """Although one of them is listed."""
    place = {"own": operator.name, "accounts": operator.accounts}.get(place, place)

    assert f"in namespace {place}" in operator.refused(operator.binding(place, "weka"))


@pytest.mark.usefixtures("almighty")
def test_admission_holds_even_with_all_rights(operator: Operator, bound: str, closed: str) -> None:
    admin = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}
    role = operator.roles["weka"]

    refused = operator.refused(operator.binding(bound, "weka", roleRef=admin))
    assert f"no role but the ClusterRole {role} by the RoleBinding moorage-weka" in refused
    assert "is not opened for pods" in operator.refused(operator.binding(closed, "weka"))


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


def test_people_s_roles(cluster: Cluster, operator: Operator, bound: str) -> None:
    """Who may edit in a namespace gets to read these kinds alone: who writes them is root on nodes."""
    may = {}
    for who in ("view", "edit"):
        bind = ("create", "rolebinding", f"{who}-trial", f"--clusterrole={operator.name}-weka-{who}", f"--user={who}")
        cluster.must(cluster.kubectl("-n", bound, *bind))
        rows: list[Row] = [(("get", "create"), KINDS[0], PLACE, "")]
        answers = operator.reviews(rows, words(operator, bound), who)
        may[who] = [question.split()[0] for question, allowed in answers.items() if allowed]
    found = cluster.must(cluster.kubectl("get", "clusterrole", f"{operator.name}-weka-edit", "-o", "yaml"))

    assert {"view": ["get"], "edit": ["create"]} == may
    assert "aggregate-to-" not in found
