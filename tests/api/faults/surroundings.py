"""What a scenario needs beside an API server, by the name that its file gives under `surroundings`."""

from __future__ import annotations

import contextlib
import functools
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage.api import meta
from moorage.kube import client as kube_client
from moorage.kube import errors
from tests.api.kre import servers
from tests.api.opencga import pods
from tests.api.weka import played
from tests.api.xsld import bench, kubelet

from . import faulty

ROOT = Path(__file__).parents[3]
ACCOUNT = meta.Resource("", "v1", "ServiceAccount", "serviceaccounts")


class Around:
    """What there is beside the API server."""

    execs: faulty.Execs | None = None
    """Who answers what is run in pods; None: their kubelets."""

    def state(self) -> dict[str, Any]:
        """What it has come to, as is compared with an undisturbed run."""
        return {}


class _Containers(Around):
    def __init__(self, node: played.Node) -> None:
        self.execs, self.state = node, node.state  # type: ignore[method-assign]


@contextlib.asynccontextmanager
async def around(name: str, client: kube_client.Client, namespace: str, *, many: int = 4) -> AsyncIterator[Around]:
    """Nothing, or a node `members-NAMESPACE`.

    Its pods are stand-ins of XSLD `members`, of the `servers` of a Runtime, or of OpenCGA's `agents`. Or several nodes
    `nNUMBER-NAMESPACE`, so `many`, whose pods are Weka's `containers`, for which no controllers are needed.
    """
    if not name:
        yield Around()
        return
    if name not in ("members", "servers", "agents", "containers"):
        raise ValueError(f"there are no surroundings {name!r}; there are: members, servers, agents, containers")
    if name == "containers":
        await _account(client, namespace)
        with tempfile.TemporaryDirectory(prefix="weka-") as folder:
            nodes = played.Node(client, namespace, Path(folder), many)
            await nodes.start()
            try:
                yield _Containers(nodes)
            finally:
                await nodes.stop()
        return
    try:
        await client.get(ACCOUNT, "default", "default")
    except errors.NotFound:
        pytest.skip("needs controllers: testbed up --level control")
    with tempfile.TemporaryDirectory(prefix="xsld-") as folder:  # members keep sockets there: their paths must be short
        if name == "servers":
            node: kubelet.Node = servers.Node(client, namespace, Path(folder))
        elif name == "agents":
            node = pods.Node(client, namespace, Path(folder))
        else:
            node = kubelet.Node(client, namespace, _member(), Path(folder), env=dict(bench.ENVIRONMENT))
        await node.start()
        try:
            yield Around()
        finally:
            await node.stop()


async def _account(client: kube_client.Client, namespace: str) -> None:
    """That of a namespace's pods, which a controller makes where one runs."""
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    with contextlib.suppress(errors.AlreadyExists):
        await client.create(ACCOUNT, namespace, body, field_manager="test")


@functools.cache
def _member() -> Path:
    """The stand-in for a member, built once per process."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("go is not installed")
    made = Path(tempfile.mkdtemp(prefix="member-")) / "xsld"
    subprocess.run([go, "build", "-o", str(made), "."], cwd=ROOT / "images" / "xsld", check=True)
    return made
