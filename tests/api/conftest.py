"""An API server: that of $MOORAGE_TEST_KUBECONFIG, else of this tree's testbed, which is started if need be."""

from __future__ import annotations

import functools
import os
import subprocess
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from moorage.api import builtin
from moorage.kube import client as kube_client
from moorage.kube import credentials
from moorage.kube.http import transport

ROOT = Path(__file__).parents[2]
SYSTEMS = ("collector", "xsld", "kre", "opencga", "weka")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here needs an API server."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.api)


def _kubeconfig() -> str:
    if given := os.environ.get("MOORAGE_TEST_KUBECONFIG"):
        return given
    path = ROOT / ".testbed" / "kubeconfig"
    if not path.exists():
        subprocess.run([str(ROOT / "testbed" / "testbed"), "up", "--level", "api"], check=True)
    return str(path)


@pytest.fixture(scope="session")
def cluster() -> str:
    """The path of an admin's kubeconfig."""
    return _kubeconfig()


@pytest.fixture(scope="session", autouse=True)
def account_roles() -> None:
    """What the accounts may do by which moorage reaches a namespace: the chart's roles, under the tests' own names."""
    tools = {**os.environ, "PATH": os.pathsep.join([str(ROOT / ".testbed" / "bin"), os.environ["PATH"]])}
    command = ["helm", "template", "test-moorage", "charts/moorage"]
    command += [f"--show-only=templates/{system}/rbac.yaml" for system in SYSTEMS]
    command += ["--set", ",".join(f"systems.{system}.enabled=true" for system in SYSTEMS)]
    run = functools.partial(subprocess.run, check=True, capture_output=True, text=True, env=tools, cwd=ROOT)
    rendered = yaml.safe_load_all(run(command).stdout)
    names = ["test-moorage-collector-tenant"]
    names += [f"test-moorage-{system}-namespace" for system in SYSTEMS[1:]]
    roles = [body for body in rendered if body["kind"] == "ClusterRole" and body["metadata"]["name"] in names]
    assert len(roles) == len(names)
    apply = ["kubectl", "--kubeconfig", _kubeconfig(), "apply", "--server-side", "--force-conflicts", "-f", "-"]
    run(apply, input=yaml.safe_dump_all(roles))


@pytest.fixture
async def admin(cluster: str) -> credentials.Credentials:
    """The admin's credentials."""
    return await credentials.from_kubeconfig(cluster)


@pytest.fixture
async def client(admin: credentials.Credentials) -> AsyncIterator[kube_client.Client]:
    """A client that may do everything."""
    wire = transport.HttpTransport(admin)
    yield kube_client.Client(wire)
    await wire.close()


@pytest.fixture
async def namespace(client: kube_client.Client) -> AsyncIterator[str]:
    """A namespace of the test's own. Nobody empties it where no controller manager runs."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await client.create(builtin.NAMESPACE, "", body, field_manager="test")
    yield name
    await client.delete(builtin.NAMESPACE, "", name, propagation="Background")
