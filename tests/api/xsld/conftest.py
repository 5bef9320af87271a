"""A cluster whose StatefulSets are real and whose members are stand-in servers, run as processes by `kubelet.Node`."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from moorage.api import builtin
from moorage.kube import client as kube_client
from moorage.operators import xsld

from . import bench, kubelet

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def cluster() -> str:
    """As everywhere, but with controllers."""
    if given := os.environ.get("MOORAGE_TEST_KUBECONFIG"):
        return given
    subprocess.run([str(ROOT / "testbed" / "testbed"), "up", "--level", "control"], check=True)
    return str(ROOT / ".testbed" / "kubeconfig")


@pytest.fixture(scope="session")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stand-in for a member."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("go is not installed")
    made = tmp_path_factory.mktemp("xsld") / "xsld"
    subprocess.run([go, "build", "-o", str(made), "."], cwd=ROOT / "images" / "xsld", check=True)
    return made


@pytest.fixture
async def definitions(client: kube_client.Client) -> None:
    """The kinds are served."""
    for definition in xsld.SYSTEM.definitions():
        name = str(definition["metadata"]["name"])  # type: ignore[index]
        await client.apply(builtin.CRD, "", name, definition, field_manager="test", force=True)


@pytest.fixture
async def site(
    client: kube_client.Client, namespace: str, definitions: None, binary: Path
) -> AsyncIterator[bench.Site]:
    """One namespace with a node of its own, and an operator."""
    with tempfile.TemporaryDirectory(prefix="xsld-") as folder:  # members keep sockets there: their paths must be short
        node = kubelet.Node(client, namespace, binary, Path(folder), env=dict(bench.ENVIRONMENT))
        made = bench.Site(client, namespace, node)
        await node.start()
        try:
            yield made
        finally:
            await made.close()
            await node.stop()
