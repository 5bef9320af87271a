"""Installs the operator's chart into a real API server, under names of its own, and acts there as its account.

The Deployment gets no replicas and the CRD is left out: what is looked at are rights and admission, and another test
may be using the CRD.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
PATIENCE = 30  # seconds until a new admission policy must be in force


def _binary(name: str) -> str:
    own = ROOT / ".testbed/bin" / name
    found = str(own) if own.exists() else shutil.which(name)
    if not found:
        pytest.skip(f"no {name} in .testbed/bin nor on the PATH; `testbed/testbed up` builds it")
    return found


class Cluster:
    """The API server, by kubectl and helm, as the administrator or as somebody else."""

    def __init__(self, kubeconfig: str, home: Path) -> None:
        self._env = {"KUBECONFIG": kubeconfig, "HOME": str(home), "PATH": os.environ["PATH"]}

    def kubectl(
        self, *args: str, user: str = "", body: dict[str, Any] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """One kubectl call; the body, where one is given, is its `-f -`."""
        command = [_binary("kubectl"), *([f"--as={user}"] if user else []), *args, *(["-f", "-"] if body else [])]
        return self._run(command, json.dumps(body) if body else None)

    def helm(self, *args: str) -> subprocess.CompletedProcess[str]:
        """One helm call as the administrator."""
        return self._run([_binary("helm"), *args], None)

    def _run(self, command: list[str], stdin: str | None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, env=self._env, input=stdin, capture_output=True, text=True, timeout=60, check=False
        )

    @staticmethod
    def namespace(name: str, admits: str | None = None, **labels: str) -> dict[str, Any]:
        """A Namespace's body; `admits` is the value of its annotation."""
        annotations = {} if admits is None else {"moorage.dev/collectors-from": admits}
        metadata = {"name": name, "annotations": annotations, "labels": labels}
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}

    def must(self, done: subprocess.CompletedProcess[str]) -> str:
        """Its output; fails the test with its error when it failed."""
        assert done.returncode == 0, done.stderr
        return done.stdout


class Operator:
    """An installed release of the chart, and its service account's hands."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name  # of the release, its namespace, its account
        self.user = f"system:serviceaccount:{name}:{name}"
        self.tenant_role = f"{name}-collector-tenant"

    def binding(self, namespace: str, **changes: Any) -> dict[str, Any]:
        """The RoleBinding that the operator makes in a tenant's namespace, with changes."""
        body: dict[str, Any] = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "moorage-collector", "namespace": namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": self.tenant_role},
            "subjects": [{"kind": "ServiceAccount", "name": self.name, "namespace": self.name}],
        }
        return body | changes

    def create(self, body: dict[str, Any], *args: str) -> subprocess.CompletedProcess[str]:
        """Create an object as the operator."""
        return self.cluster.kubectl("create", *args, user=self.user, body=body)

    def apply(self, body: dict[str, Any]) -> subprocess.CompletedProcess[str]:
        """Server-side apply as the operator: how it writes its children."""
        return self.cluster.kubectl("apply", "--server-side", "--force-conflicts", user=self.user, body=body)

    def refused(self, body: dict[str, Any]) -> str:
        """What the API server says when the operator may not create this."""
        done = self.create(body, "--dry-run=server")
        assert done.returncode != 0, f"allowed: {body}"
        assert "orbidden" in done.stderr, done.stderr
        return done.stderr


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    kubeconfig = os.environ.get("MOORAGE_TEST_KUBECONFIG") or str(ROOT / ".testbed/kubeconfig")
    if not Path(kubeconfig).exists():
        pytest.skip(f"no API server: {kubeconfig} is not there; `testbed/testbed up --level api` starts one")
    made = Cluster(kubeconfig, tmp_path_factory.mktemp("home"))
    if (asked := made.kubectl("version", "--request-timeout=5s")).returncode != 0:
        pytest.skip(f"no API server answers at {kubeconfig}: {asked.stderr.strip()}")
    return made


@pytest.fixture(scope="module")
def tag() -> str:
    """Part of every name that a test module makes, so that two runs can share one cluster."""
    return f"pk{secrets.token_hex(3)}"


@pytest.fixture(scope="module")
def operator(cluster: Cluster, tag: str) -> Iterator[Operator]:
    """The chart, installed as moorage-TAG, with its admission policies in force."""
    made = Operator(cluster, f"moorage-{tag}")
    cluster.must(cluster.kubectl("create", body=cluster.namespace(made.name)))
    values = [
        "--set",
        "replicas=0,crds.enabled=false",
        "--set",
        "systems.collector.charts.default.oci=oci://registry.example/x",
    ]
    secret = ["--set", "systems.collector.charts.default.secretRef=registry"]
    chart = str(ROOT / "charts/moorage")
    cluster.must(cluster.helm("install", made.name, chart, "--namespace", made.name, *values, *secret))
    try:
        _wait_until_in_force(made)
        yield made
    finally:
        cluster.helm("uninstall", made.name, "--namespace", made.name)
        cluster.kubectl("delete", "namespace", made.name, "--wait=false")


def _wait_until_in_force(operator: Operator) -> None:
    """The API server learns of a new policy by its own watch, within seconds."""
    probes = [operator.binding("default"), operator.cluster.namespace(f"{operator.name}-probe")]
    deadline = time.monotonic() + PATIENCE
    for probe in probes:
        while (done := operator.create(probe, "--dry-run=server")).returncode == 0:
            assert time.monotonic() < deadline, f"allowed for {PATIENCE} s: {probe}"
            time.sleep(0.2)
        assert "ValidatingAdmissionPolicy" in done.stderr, done.stderr
