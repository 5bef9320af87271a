"""What moorage and its accounts can and can't do where one system alone is switched on, in listed namespaces only.

What is so for each of these systems stands once; a system's own rows are what it differs by.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from conftest import alone, namespace

if TYPE_CHECKING:
    from conftest import Cluster, Operator, Row

pytestmark = pytest.mark.api

RBAC = "rbac.authorization.k8s.io"
READ = ("get", "list", "watch")
WRITE = ("create", "update", "patch", "delete")
HERE, PLACE, OTHER, EVERYWHERE, ROLE, ACCOUNTS = "own", "place", "default", "", "ROLE", "accounts"
ADMIN = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}


@dataclasses.dataclass(frozen=True)
class System:
    """One of them: its kinds, and what is so for it alone."""

    name: str
    kinds: tuple[str, ...]
    holds: str  # what a namespace that is not listed may not hold, in the words of the refusal
    may: tuple[Row, ...]  # moorage itself
    account_may: tuple[Row, ...]
    nobody_may: tuple[Row, ...]
    deletes: tuple[str, ...] = ()  # those of its kinds that moorage itself deletes
    writes_nodes: tuple[str, ...] = ()  # verbs by which it writes nodes, held by admission
    labels: dict[str, str] = dataclasses.field(default_factory=dict)  # of a namespace that may hold it
    values: dict[str, Any] = dataclasses.field(default_factory=dict)  # of its section in the chart

    def __str__(self) -> str:
        return self.name


MADE_BY_KRE = (
    "secrets",
    "configmaps",
    "services",
    "deployments.apps",
    "statefulsets.apps",
    "ingresses.networking.k8s.io",
    "poddisruptionbudgets.policy",
    "prometheusrules.monitoring.coreos.com",
)
KRE = System(
    name="kre",
    kinds=("runtimes.kre.konstellation.io", "runtimeversions.kre.konstellation.io"),
    holds="Runtime. Make it",
    may=((("get",), "storageclasses.storage.k8s.io", EVERYWHERE, "fast"),),
    account_may=(
        *(((*READ, *WRITE), kind, PLACE, "") for kind in MADE_BY_KRE),
        ((*READ, "patch", "delete"), "persistentvolumeclaims", PLACE, ""),
        (READ, "pods", PLACE, ""),
        (("get",), "pods/log", PLACE, ""),
        (READ, "events", PLACE, ""),
    ),
    nobody_may=(
        (READ, "nodes", EVERYWHERE, ""),
        (WRITE, "pods", PLACE, ""),
        (("create",), "pods/exec", PLACE, ""),
        (("create", "update"), "persistentvolumeclaims", PLACE, ""),
    ),
)
MONITORS = "servicemonitors.monitoring.coreos.com"
OPENCGA = System(
    name="opencga",
    kinds=("opencgacommunity.opencga.zetta.com",),
    holds="OpenCGA. Make it",
    may=((("get",), "storageclasses.storage.k8s.io", EVERYWHERE, "fast"),),
    account_may=(
        *(
            ((*READ, "create", "patch", "delete"), kind, PLACE, "")
            for kind in ("services", "statefulsets.apps", "poddisruptionbudgets.policy", MONITORS)
        ),
        ((*READ, "create", "patch"), "secrets", PLACE, ""),
        (("get",), "configmaps", PLACE, ""),
        ((*READ, "patch", "delete"), "persistentvolumeclaims", PLACE, ""),
        ((*READ, "delete"), "pods", PLACE, ""),
        (("create",), "pods/eviction", PLACE, ""),
        (("get", "list"), "events", PLACE, ""),
    ),
    nobody_may=(
        (READ, "nodes", EVERYWHERE, ""),
        (("update", "delete"), "secrets", PLACE, ""),
        (("list", "watch", *WRITE), "configmaps", PLACE, ""),
        (("create", "update", "patch"), "pods", PLACE, ""),
        (("patch", "update"), "pods/status", PLACE, ""),
        (("create",), "pods/exec", PLACE, ""),
        (("get",), "pods/log", PLACE, ""),
        (("create", "update"), "persistentvolumeclaims", PLACE, ""),
        *(((*READ, *WRITE), kind, PLACE, "") for kind in ("deployments.apps", "jobs.batch")),
    ),
)
WEKA = System(
    name="weka",
    kinds=tuple(
        f"{it}.weka.weka.io"
        for it in ("wekaclusters", "wekacontainers", "wekamanualoperations", "wekaclients", "wekapolicies")
    ),
    deletes=("wekamanualoperations.weka.weka.io",),
    holds="WekaClusters. Make them",
    may=(
        ((*READ, "patch"), "nodes", EVERYWHERE, ""),
        (("delete",), "wekamanualoperations.weka.weka.io", EVERYWHERE, ""),
    ),
    writes_nodes=("patch",),
    account_may=(
        (("create", "delete"), "wekacontainers.weka.weka.io", PLACE, ""),
        ((*READ, "create", "delete"), "pods", PLACE, ""),
        (("get", "create"), "pods/exec", PLACE, ""),
        ((*READ, "create", "patch", "delete"), "configmaps", PLACE, ""),
        ((*READ, "create"), "secrets", PLACE, ""),
    ),
    nobody_may=(
        (("patch", "update"), "nodes/status", EVERYWHERE, ""),
        (("update", "patch", "delete"), "secrets", PLACE, ""),
        (("update", "patch"), "pods", PLACE, ""),
        (("create", "delete"), "wekaclusters.weka.weka.io", PLACE, ""),
    ),
    labels={"moorage.dev/weka": "privileged"},
    values={"images": ["registry.example/"]},
)


def moorage_may(system: System) -> list[Row]:
    """What moorage itself may: read its kinds, and take the first step into a namespace with one."""
    binding = f"moorage-{system.name}"
    return [
        *(((*READ, "patch"), kind, EVERYWHERE, "") for kind in system.kinds),
        *((("get", "patch"), f"{kind}/status", EVERYWHERE, "") for kind in system.kinds),
        (READ, "namespaces", EVERYWHERE, ""),
        (("create",), f"rolebindings.{RBAC}", OTHER, binding),
        ((*READ, "patch", "delete"), f"rolebindings.{RBAC}", OTHER, binding),
        (("bind",), f"clusterroles.{RBAC}", EVERYWHERE, ROLE),
        (("create", "patch"), "events", OTHER, ""),
        (("impersonate",), "serviceaccounts", ACCOUNTS, f"{system.name}.somewhere"),
        *system.may,
    ]


def nobody_may(system: System) -> list[Row]:
    """What neither moorage may nor any account of it."""
    every = ("secrets", "configmaps", "pods", "persistentvolumes")
    return [
        *(((*READ, *WRITE), kind, EVERYWHERE, "") for kind in every),
        *(((*READ, *WRITE), "secrets", place, "") for place in (OTHER, HERE, "kube-system")),
        *((("get", "create"), "pods/exec", place, "") for place in (OTHER, HERE, "kube-system")),
        *(((*READ, *WRITE), kind, OTHER, "") for kind in ("pods", "statefulsets.apps", "persistentvolumeclaims")),
        (tuple(it for it in WRITE if it not in system.writes_nodes), "nodes", EVERYWHERE, ""),
        (WRITE, "namespaces", EVERYWHERE, ""),
        ((*READ, *WRITE), "serviceaccounts", PLACE, ""),
        (("create",), "serviceaccounts/token", PLACE, ""),
        (("create",), "serviceaccounts/token", ACCOUNTS, ""),
        (("impersonate",), "serviceaccounts", PLACE, ""),
        (("impersonate",), "users", EVERYWHERE, ""),
        ((*READ, *WRITE), f"roles.{RBAC}", PLACE, ""),
        (("bind", "escalate"), f"clusterroles.{RBAC}", EVERYWHERE, "cluster-admin"),
        (("escalate",), f"clusterroles.{RBAC}", EVERYWHERE, ROLE),
        (("get", "list", "update", "patch", "delete"), f"rolebindings.{RBAC}", OTHER, "another"),
        *((("create", "update"), kind, EVERYWHERE, "") for kind in system.kinds),
        *((("delete",), kind, EVERYWHERE, "") for kind in system.kinds if kind not in system.deletes),
        ((*READ, *WRITE), "xsldcaches.xsld.ibm.com", EVERYWHERE, ""),
        ((*READ, *WRITE), "collectors.example.com", EVERYWHERE, ""),
        *system.nobody_may,
    ]


@pytest.fixture(scope="module", params=[KRE, OPENCGA, WEKA], ids=str)
def system(request: pytest.FixtureRequest) -> System:
    """The one that is on."""
    found: System = request.param
    return found


@pytest.fixture(scope="module")
def listed(cluster: Cluster, tag: str, system: System) -> Iterator[str]:
    """A namespace that may hold it."""
    yield from namespace(cluster, f"listed-{tag}-{system}", **system.labels)


@pytest.fixture(scope="module")
def unlisted(cluster: Cluster, tag: str, system: System) -> Iterator[str]:
    """A namespace that only lacks to be listed."""
    yield from namespace(cluster, f"unlisted-{tag}-{system}", **system.labels)


@pytest.fixture(scope="module")
def operator(
    cluster: Cluster, tag: str, system: System, listed: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Operator]:
    """The chart with that system alone, in listed namespaces, of which one would be nobody's to list."""
    folder, section = tmp_path_factory.mktemp("values"), {**system.values, "namespaces": [listed, "kube-system"]}
    with alone(cluster, folder, f"moorage-{tag}-{system}", system.name, section) as made:
        yield made


@pytest.fixture(scope="module")
def bound(operator: Operator, system: System, listed: str) -> str:
    """The listed namespace, where the operator has bound its account, as it does for a first resource."""
    verbs, resource, *_ = system.account_may[0]
    operator.bind(listed, system.name, verbs[-1], resource)
    return listed


def words(operator: Operator, system: System, place: str) -> dict[str, str]:
    """What the words in the tables stand for."""
    return {HERE: operator.name, PLACE: place, ROLE: operator.roles[system.name], ACCOUNTS: operator.accounts}


def test_what_moorage_may(operator: Operator, system: System, bound: str) -> None:
    answers = operator.reviews(moorage_may(system), words(operator, system, bound))

    assert len(answers) > 15
    assert [] == [question for question, allowed in answers.items() if not allowed]


def test_what_moorage_may_not(operator: Operator, system: System, bound: str) -> None:
    """Nothing that the account of a namespace may there either."""
    answers = operator.reviews([*nobody_may(system), *system.account_may], words(operator, system, bound))

    assert len(answers) > 150
    assert [] == [question for question, allowed in answers.items() if allowed]


def test_what_the_account_of_a_namespace_may(operator: Operator, system: System, bound: str) -> None:
    account = operator.account(bound, system.name)
    answers = operator.reviews(system.account_may, words(operator, system, bound), account)

    assert len(answers) > 15
    assert [] == [question for question, allowed in answers.items() if not allowed]


@pytest.mark.parametrize("own", [True, False], ids=["its own", "another's"])
def test_what_an_account_may_not(operator: Operator, system: System, bound: str, own: bool) -> None:
    """Nothing that moorage itself may, nothing outside its namespace, and another's account nothing at all there."""
    rows = [*nobody_may(system), *moorage_may(system), *(() if own else system.account_may)]
    account = operator.account(bound if own else f"{bound}-b", system.name)
    answers = operator.reviews(rows, words(operator, system, bound), account)

    assert len(answers) > 150
    assert [] == [question for question, allowed in answers.items() if allowed]


def test_an_unlisted_namespace_is_closed(operator: Operator, system: System, unlisted: str, listed: str) -> None:
    message = operator.refused(operator.binding(unlisted, system.name))

    assert f"namespace {unlisted} may hold no {system.holds} in one of: {listed}, " in message
    assert f"add {unlisted} to the value systems.{system}.namespaces" in message


@pytest.mark.parametrize("place", ["kube-system", "kube-public", "own", "accounts"])
def test_nothing_is_bound_where_the_cluster_lives(operator: Operator, system: System, place: str) -> None:
    """Although one of them is listed."""
    place = {"own": operator.name, "accounts": operator.accounts}.get(place, place)

    assert f"may have no rights in namespace {place}" in operator.refused(operator.binding(place, system.name))


def test_it_binds_one_role_to_one_account_under_one_name(operator: Operator, system: System, bound: str) -> None:
    refused = operator.refused(operator.binding(bound, system.name, roleRef=ADMIN))
    assert "is attempting to grant RBAC permissions" in refused
    theirs = [{"kind": "ServiceAccount", "name": "default", "namespace": bound}]
    mine = operator.binding(bound, system.name)["subjects"]
    another = operator.binding(f"{bound}-b", system.name)["subjects"]
    for subjects in (theirs, another, mine + another, []):
        assert "may bind nobody" in operator.refused(operator.binding(bound, system.name, subjects=subjects))
    for name in ("another", "moorage-collector", "moorage-xsld"):
        renamed = operator.binding(bound, system.name, metadata={"name": name, "namespace": bound})
        assert f"no RoleBinding but moorage-{system}." in operator.refused(renamed)


@pytest.mark.usefixtures("almighty")
def test_admission_holds_even_with_all_rights(operator: Operator, system: System, bound: str, unlisted: str) -> None:
    refused = operator.refused(operator.binding(bound, system.name, roleRef=ADMIN))

    assert f"no role but the ClusterRole {operator.roles[system.name]} by the RoleBinding moorage-{system}" in refused
    assert "may have no rights in" in operator.refused(operator.binding("kube-system", system.name))
    assert "may hold no" in operator.refused(operator.binding(unlisted, system.name))
