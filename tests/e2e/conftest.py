"""The whole product as a user has it: moorage installed by its chart on a real cluster, charts in a real registry.

Takes the testbed of $TESTBED_STATE (default: .testbed of this tree), at level node with all images loaded, as
`make test` leaves those of its workers.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from . import nodes, reading, runtimes, tools

CHARTS = Path(__file__).parent / "charts"
ADOPT = ("--take-ownership", "--force-conflicts")
"""Other tests may have left definitions on this testbed, which are nobody's."""

FAST_LEASE = {"durationSeconds": 15, "renewSeconds": 12, "retrySeconds": 1}
"""Long enough to be renewed on a busy machine, as an operator that loses it ends, which tests take for a restart."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here needs the whole testbed."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session")
def cluster() -> Iterator[tools.Cluster]:
    """The testbed's cluster."""
    kubeconfig = Path(os.environ.get("MOORAGE_TEST_KUBECONFIG") or tools.STATE / "kubeconfig")
    if not kubeconfig.exists():
        pytest.fail(f"no cluster: {kubeconfig} is not there; `make up` brings one up")
    with contextlib.closing(reading.Reader(tools.BIN / "kubectl", kubeconfig)) as reader:
        yield tools.Cluster(kubeconfig, reader)


@pytest.fixture(scope="session")
def registry(cluster: tools.Cluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A real OCI registry with the sample chart and the charts of these tests; returns HOST:PORT."""
    address = tools.testbed("registry", "up").strip().splitlines()[-1].split()[-1]
    packed = tmp_path_factory.mktemp("packed")
    for folder in [tools.ROOT / "charts" / "collector", *sorted(p.parent for p in CHARTS.glob("*/Chart.yaml"))]:
        out = cluster.helm("package", str(folder), "-d", str(packed))
        cluster.helm("push", out.strip().rpartition(" ")[2], f"oci://{address}/charts", "--plain-http")
    return address


def beside(registry: str, port: int) -> str:
    """Another port of the registry's host."""
    return f"{registry.rpartition(':')[0]}:{port}"


def values(registry: str) -> dict[str, Any]:
    """Helm values of the operator under test."""
    return {
        "leaderElection": FAST_LEASE,
        "systems": {
            "collector": {
                "resyncSeconds": 15,
                "charts": {
                    "clusters": {
                        "registry": {"oci": f"oci://{registry}/charts", "plainHTTP": True},
                        "unreachable": {"oci": f"oci://{beside(registry, 1)}/charts", "plainHTTP": True},
                        "private": {"oci": f"oci://{beside(registry, 5001)}/charts", "secretRef": "private-registry"},
                    }
                },
            },
            "xsld": {"poll": {"busySeconds": 2, "idleSeconds": 5}},
        },
    }


@pytest.fixture(scope="session")
def moorage(cluster: tools.Cluster, registry: str) -> Iterator[tools.Cluster]:
    """moorage, installed by its chart and available."""
    nodes.reserve(cluster)
    install(cluster, values(registry), *ADOPT)
    yield cluster
    print(cluster.kubectl("logs", "-n", tools.NAMESPACE, "deploy/moorage", "--tail=40", check=False), file=sys.stderr)


@pytest.fixture(scope="module")
def kre(moorage: tools.Cluster, registry: str) -> Iterator[tools.Cluster]:
    """moorage with KRE switched on, as its administrator does that."""
    section = yaml.safe_load(runtimes.VALUES.read_text())["systems"]["kre"]
    with switched_on(moorage, registry, "kre", section | {"poll": {"busySeconds": 2, "idleSeconds": 5}}):
        yield moorage


def install(cluster: tools.Cluster, given: dict[str, Any], *more: str) -> None:
    """Install or upgrade the operator, and wait until it is rolled out."""
    file = tools.STATE / "e2e-values.yaml"
    file.write_text(yaml.safe_dump(given))
    chart = str(tools.ROOT / "charts" / "moorage")
    where = ["-n", tools.NAMESPACE, "--create-namespace", "-f", str(file)]
    cluster.helm("upgrade", "--install", "moorage", chart, *where, *more)
    tools.rolled_out(cluster)


@contextlib.contextmanager
def switched_on(cluster: tools.Cluster, registry: str, system: str, section: dict[str, Any]) -> Iterator[None]:
    """A system that is off by default, switched on by its administrator meanwhile."""
    given = values(registry)
    given["systems"][system] = section
    install(cluster, given, *ADOPT)
    try:
        yield
    finally:
        install(cluster, values(registry))


_numbers = itertools.count(1)
Make = Callable[..., tools.Collector]


class Workshop:
    """Makes Collectors, each in a tenant of its own unless told otherwise, and clears up after them."""

    def __init__(self, moorage: tools.Cluster) -> None:
        self._moorage = moorage
        self._made: list[tools.Collector] = []
        self.bodies: list[dict[str, Any]] = []
        """What was or is to be applied, in order."""

    def make(
        self,
        values: dict[str, Any] | None = None,
        *,
        chart: str = "collector",
        version: str = "",
        cluster: str = "",
        instance: str = "main",
        tenant: str = "",
        namespace: str = "default",
        policy: dict[str, Any] | None = None,
        annotations: dict[str, str] | None = None,
        raw: str | None = None,
        apply: bool = True,
    ) -> tools.Collector:
        """One Collector, applied unless `apply` is False."""
        number = next(_numbers)
        reference = tenant or f"Tenant{os.getpid()}x{number}"
        body = {
            "apiVersion": "example.com/v1alpha",
            "kind": "Collector",
            "metadata": {
                "name": f"c{os.getpid()}x{number}",
                "namespace": namespace,
                "annotations": annotations or {},
            },
            "spec": {
                "collector": {
                    "name": chart,
                    "version": version,
                    "configuration": raw if raw is not None else tools.configuration(values or {}),
                },
                "tenant": {"id": f"t-{number}", "reference": reference, "instance": instance},
                "cluster": cluster,
                "policy": policy or {},
            },
        }
        one = tools.Collector(
            self._moorage, body["metadata"]["name"], namespace, f"{chart}-{instance}", reference.lower()
        )
        self._made.append(one)
        self.bodies.append(body)
        if apply:
            self._moorage.apply(body)
        return one

    def clear(self) -> None:
        """Delete all that was made, and the tenants' namespaces."""
        by_namespace: dict[str, list[str]] = {}
        for one in self._made:
            by_namespace.setdefault(one.namespace, []).append(one.name)
        for namespace, names in by_namespace.items():
            where = ["-n", namespace, "--ignore-not-found", tools.HANGS]
            self._moorage.kubectl("delete", "collector", *names, *where)
        own = ("kube-", tools.NAMESPACE)  # tests ask for these, too
        tenants = sorted({one.tenant for one in self._made if not one.tenant.startswith(own)})
        if tenants:
            self._moorage.kubectl("delete", "namespace", *tenants, "--ignore-not-found", "--wait=false")


@pytest.fixture
def collector(moorage: tools.Cluster) -> Iterator[Make]:
    """Makes Collectors in a tenant of their own; all are deleted at the end, with the tenant's namespace."""
    workshop = Workshop(moorage)
    yield workshop.make
    workshop.clear()


@pytest.fixture(
    scope="session",
    params=[pytest.param(2, id="6"), pytest.param(10, id="30", marks=pytest.mark.campaign)],
)
def fleet(moorage: tools.Cluster, request: pytest.FixtureRequest) -> Iterator[list[tools.Collector]]:
    """Three Collectors in each of some tenants, applied at once and Ready; tests leave them as they are."""
    workshop = Workshop(moorage)
    references = [f"Fleet{os.getpid()}x{request.param}x{number}" for number in range(request.param)]
    made = [workshop.make(tenant=each, instance=it, apply=False) for each in references for it in "abc"]
    begun = time.monotonic()
    moorage.apply(*workshop.bodies)
    for one in made:
        one.wait_ready(within=tools.PATIENCE + 10 * len(made))
    print(f"\n{len(made)} Collectors in {len(references)} tenants Ready in {time.monotonic() - begun:.0f} s")
    yield made
    workshop.clear()


@pytest.fixture
def account(moorage: tools.Cluster) -> str:
    """The operator's user name in the audit log."""
    deployment = moorage.get("deploy", "moorage", "-n", tools.NAMESPACE)
    name = deployment["spec"]["template"]["spec"]["serviceAccountName"]
    return f"system:serviceaccount:{tools.NAMESPACE}:{name}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """After a failure, print what the next reader needs: the operator's log and the Collectors."""
    report = yield
    if report.failed and "moorage" in getattr(item, "fixturenames", ()):
        cluster = item.funcargs.get("moorage")
        if isinstance(cluster, tools.Cluster):
            log = cluster.kubectl("logs", "-n", tools.NAMESPACE, "deploy/moorage", "--tail=60", check=False)
            found = cluster.kubectl("get", "collectors", "-A", "-o", "wide", check=False)
            report.sections += [("moorage's log", log), ("collectors", found), ("pods", pods(cluster))]
    return report


def pods(cluster: tools.Cluster) -> str:
    """All pods, for reports."""
    return cluster.kubectl("get", "pods", "-A", "-o", "wide", check=False)
