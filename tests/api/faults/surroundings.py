"""What a scenario needs beside an API server, by the name that its file gives under `surroundings`."""

from __future__ import annotations

import contextlib
import functools
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from moorage.api import meta
from moorage.kube import client as kube_client
from moorage.kube import errors
from tests.api.kre import servers
from tests.api.xsld import bench, kubelet

ROOT = Path(__file__).parents[3]
ACCOUNT = meta.Resource("", "v1", "ServiceAccount", "serviceaccounts")


@contextlib.asynccontextmanager
async def around(name: str, client: kube_client.Client, namespace: str) -> AsyncIterator[None]:
    """Nothing, or a node `members-NAMESPACE`.

    Its pods are stand-ins of XSLD `members`, or of the `servers` of a Runtime.
    """
    if not name:
        yield
        return
    if name not in ("members", "servers"):
        raise ValueError(f"there are no surroundings {name!r}; there are: members, servers")
    try:
        await client.get(ACCOUNT, "default", "default")
    except errors.NotFound:
        pytest.skip("needs controllers: testbed up --level control")
    with tempfile.TemporaryDirectory(prefix="xsld-") as folder:  # members keep sockets there: their paths must be short
        if name == "servers":
            node: kubelet.Node = servers.Node(client, namespace, Path(folder))
        else:
            node = kubelet.Node(client, namespace, _member(), Path(folder), env=dict(bench.ENVIRONMENT))
        await node.start()
        try:
            yield
        finally:
            await node.stop()


@functools.cache
def _member() -> Path:
    """The stand-in for a member, built once per process."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("go is not installed")
    made = Path(tempfile.mkdtemp(prefix="member-")) / "xsld"
    subprocess.run([go, "build", "-o", str(made), "."], cwd=ROOT / "images" / "xsld", check=True)
    return made
