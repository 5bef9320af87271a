"""What an operator stands on goes away and comes back: its token, the API server, etcd.

The last two need a testbed of their own, as root; they run with the campaigns.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage.api import builtin, meta
from moorage.kube import client as kube_client
from moorage.kube import credentials, errors
from moorage.kube.http import transport
from moorage.kube.informers import informer
from tests.api.runtime import conftest, operate

from . import proxy, report, run, waiting

ROOT = Path(__file__).parents[3]
INDEXES = ("11", "10", "9", "8", "6", "5", "4")
"""Of testbeds; the first that nobody uses is taken."""

ACCOUNT = meta.Resource("", "v1", "ServiceAccount", "serviceaccounts")
CLUSTER_BINDING = meta.Resource(
    "rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False
)


# --- a token that expires --------------------------------------------------------------------------------------------


async def _tokens(client: kube_client.Client, namespace: str) -> tuple[str, str]:
    """Two tokens of an account that may do everything."""
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "it"}}
    await client.create(ACCOUNT, namespace, body, field_manager="test")
    binding = {
        "apiVersion": CLUSTER_BINDING.api_version,
        "kind": CLUSTER_BINDING.kind,
        "metadata": {"name": namespace},
        "subjects": [{"kind": "ServiceAccount", "name": "it", "namespace": namespace}],
        "roleRef": {"apiGroup": CLUSTER_BINDING.group, "kind": "ClusterRole", "name": "cluster-admin"},
    }
    await client.create(CLUSTER_BINDING, "", binding, field_manager="test")
    wish = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    found = []
    for seconds in (600, 900):
        wish["spec"] = {"expirationSeconds": seconds}
        made = await client.create(ACCOUNT, namespace, wish, name="it", subresource="token", field_manager="test")
        found.append(made["status"]["token"])
    return found[0], found[1]


async def test_a_token_that_expires_before_the_next_is_there(
    stage: run.Stage, client: kube_client.Client, namespace: str, tmp_path: Path
) -> None:
    """401 to everything, watches cut, for a while; once the file holds another token nothing has been missed."""
    await conftest.define(client)
    first, second = await _tokens(client, namespace)
    between = proxy.Proxy(stage.admin, stage.certificate, anonymous=True)
    await between.start()
    (tmp_path / "token").write_text(first)
    (tmp_path / "ca.crt").write_bytes(stage.certificate.chain.read_bytes())
    through = transport.HttpTransport(credentials.InCluster(between.url, folder=tmp_path))
    user = operate.User(client, namespace)
    expired = asyncio.Event()

    def is_old(it: proxy.Exchange) -> bool:
        return expired.is_set() and it.authorization == f"Bearer {first}"

    between.judge = lambda it: "401" if is_old(it) else ""
    between.judge_chunk = lambda it, _: "reset" if is_old(it) else ""
    try:
        async with operate.operating(kube_client.Client(through), namespace, pace=operate.QUICK) as it:
            await user.create("one", text="a")
            await user.ready("one")
            expired.set()
            await user.change("one", {"spec": {"text": "b"}})  # its event breaks the watch
            await waiting.until(lambda: sum(it.status == 401 for it in between.exchanges) > 5)
            (tmp_path / "token").write_text(second)
            assert "b" == (await user.ready("one")).status.text
            assert ["PATCH widgets", "PATCH configmaps", "PATCH widgets/status"] == it.wrote[:3]
    finally:
        await through.close()
        await between.close()
        await user.leave()
        await client.delete(CLUSTER_BINDING, "", namespace, propagation="Background")


# --- servers that restart --------------------------------------------------------------------------------------------


class Bed:
    """A testbed of this module's own, whose parts can be taken away."""

    def __init__(self, folder: str) -> None:
        self._folder, self._index = folder, ""

    @property
    def kubeconfig(self) -> str:
        """The admin's."""
        return f"{self._folder}/kubeconfig"

    def up(self) -> None:
        """Bring up etcd and an API server."""
        for index in INDEXES:
            self._index = index
            done = self._run("up", "--level", "api")
            if done.returncode == 0:
                return
            if "is in use" not in done.stdout + done.stderr:
                break
        pytest.fail(done.stdout + done.stderr)

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [ROOT / "testbed" / "testbed", "--state", self._folder, "--index", self._index, *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    async def do(self, *words: str) -> None:
        """One command of the testbed's tool."""
        done = await asyncio.to_thread(self._run, *words)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
async def bed() -> AsyncIterator[Bed]:
    if os.geteuid():
        pytest.skip("a testbed needs root")
    with tempfile.TemporaryDirectory(prefix="bed-") as folder:
        made = Bed(folder)
        try:
            await asyncio.to_thread(made.up)
            yield made
        finally:
            await made.do("down")


OUTAGES: dict[str, tuple[tuple[str, ...], ...]] = {
    "API server restarts": (("restart", "apiserver"),),
    "API server is killed": (("kill", "apiserver"), ("up", "--level", "api")),
    "etcd restarts": (("restart", "etcd"),),
    "etcd is killed": (("kill", "etcd"), ("up", "--level", "api")),
    "both are killed": (("kill", "etcd"), ("kill", "apiserver"), ("up", "--level", "api")),
}


@pytest.mark.campaign
async def test_servers_that_restart(bed: Bed, told: report.Report) -> None:
    """A change from right before each outage is carried out after it, once; caches are what a list says."""
    wire = transport.HttpTransport(await credentials.from_kubeconfig(bed.kubeconfig))
    client = kube_client.Client(wire)
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "outages"}}
    await client.create(builtin.NAMESPACE, "", body, field_manager="test")
    await conftest.define(client)
    user = operate.User(client, "outages")
    rows = []
    async with operate.operating(client, "outages") as it:  # with the pace of real life
        await user.create("one", text="begin")
        child = (await _ready(user, "begin"))["metadata"]["uid"]
        for number, (what, commands) in enumerate(OUTAGES.items()):
            sent = len(it.wire.sent)
            await user.change("one", {"spec": {"text": f"t{number}"}})
            for words in commands:
                await bed.do(*words)
            found = await _ready(user, f"t{number}")
            await waiting.until(lambda: _caches_are_right(client, it), within=60)
            same = found["metadata"]["uid"] == child
            rows.append((what, len(it.wire.sent) - sent, it.wire.busiest, "as before" if same else "made anew"))
        assert await it.stop() is True
    await wire.close()
    told.table(("outage", "requests meanwhile", "most in a second", "child"), rows)

    assert {"as before"} == {row[3] for row in rows}


async def _ready(user: operate.User, text: str) -> dict[str, Any]:
    """The child, once the Widget is Ready with that text."""

    async def done() -> dict[str, Any] | None:
        try:
            it, child = await user.look("one"), await user.child("one")
        except errors.KubeError:
            return None
        settled = it is not None and it.status.observed_generation == it.metadata.generation
        return child if settled and child is not None and child["data"] == {"text": text} else None

    found: dict[str, Any] = await waiting.until(done, within=60)
    return found


async def _caches_are_right(client: kube_client.Client, it: operate.Operator) -> bool:
    for cache in it.manager._informers.all():
        scope = cache.scope
        live = await client.list(scope.resource, scope.namespace, labels=scope.labels, as_=meta.Partial)
        versions = {one.metadata.name: one.metadata.resource_version for one in live.items}
        known = {m.name: m.resource_version for m in map(informer.meta_of, cache.items())}
        if versions != known or not cache.healthy:
            return False
    return True
