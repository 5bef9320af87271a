"""The client's verbs against a real API server."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from moorage.api import builtin
from moorage.api.meta import Partial, Resource
from moorage.kube import client as kube_client
from moorage.kube import credentials, discovery, errors
from moorage.kube.http import transport
from tests.api.faults import faulty, waiting

Client = kube_client.Client
Make = Callable[..., Awaitable[dict[str, Any]]]
CONFIG_MAP = builtin.CONFIG_MAP


async def test_create_get_and_already_exists(client: Client, namespace: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}}
    made = await client.create(CONFIG_MAP, namespace, body, field_manager="test")
    assert await client.get(CONFIG_MAP, namespace, "a") == made
    partial = await client.get(CONFIG_MAP, namespace, "a", as_=Partial, metadata_only=True)
    assert (partial.kind, partial.metadata.uid) == ("PartialObjectMetadata", made["metadata"]["uid"])
    with pytest.raises(errors.AlreadyExists, match=f"create ConfigMap {namespace}/a: 409 AlreadyExists"):
        await client.create(CONFIG_MAP, namespace, body, field_manager="test")
    with pytest.raises(errors.NotFound):
        await client.get(CONFIG_MAP, namespace, "b")


async def test_apply_owns_fields(client: Client, namespace: str, configmap: Make) -> None:
    await configmap("a", "one", x="1", y="1")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "2"}}
    with pytest.raises(errors.Conflict, match="one"):
        await client.apply(CONFIG_MAP, namespace, "a", body, field_manager="two", force=False)
    forced = await client.apply(CONFIG_MAP, namespace, "a", body, field_manager="two")
    assert forced["data"] == {"x": "2", "y": "1"}
    assert (await configmap("a", "one"))["data"] == {"x": "2"}


async def test_apply_that_changes_nothing_keeps_the_version(configmap: Make) -> None:
    first = await configmap("a", x="1")
    assert (await configmap("a", x="1"))["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_apply_with_a_uid_resurrects_nothing(client: Client, namespace: str, configmap: Make) -> None:
    uid = (await configmap("a"))["metadata"]["uid"]
    await client.delete(CONFIG_MAP, namespace, "a", propagation="Background")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "uid": uid}}
    with pytest.raises(errors.Conflict):
        await client.apply(CONFIG_MAP, namespace, "a", body, field_manager="test")
    with pytest.raises(errors.NotFound):
        await client.get(CONFIG_MAP, namespace, "a")


async def test_apply_of_a_wrong_type_is_invalid(client: Client, namespace: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": 1}}
    with pytest.raises(errors.Invalid, match=r"\.data\.x"):
        await client.apply(CONFIG_MAP, namespace, "a", body, field_manager="test")


async def test_json_patch_tests(client: Client, namespace: str, configmap: Make) -> None:
    made = await configmap("a", x="1")
    ops = [
        {"op": "test", "path": "/metadata/uid", "value": made["metadata"]["uid"]},
        {"op": "test", "path": "/data/x", "value": "1"},
        {"op": "add", "path": "/metadata/finalizers", "value": ["moorage.dev/test"]},
    ]
    patched = await client.patch_json(CONFIG_MAP, namespace, "a", ops, field_manager="test")
    assert patched["metadata"]["finalizers"] == ["moorage.dev/test"]
    ops[1]["value"] = "2"
    with pytest.raises(errors.Conflict):
        await client.patch_json(CONFIG_MAP, namespace, "a", ops, field_manager="test")
    missing = [{"op": "remove", "path": "/metadata/annotations/none"}]
    with pytest.raises(errors.Conflict):
        await client.patch_json(CONFIG_MAP, namespace, "a", missing, field_manager="test")
    wrong = [{"op": "add", "path": "/metadata/labels", "value": {"a": "##"}}]
    with pytest.raises(errors.Invalid):
        await client.patch_json(CONFIG_MAP, namespace, "a", wrong, field_manager="test")

    waiting = await client.delete(CONFIG_MAP, namespace, "a", propagation="Background")
    assert waiting
    assert not waiting.gone
    release = [{"op": "remove", "path": "/metadata/finalizers"}]
    await client.patch_json(CONFIG_MAP, namespace, "a", release, field_manager="test")
    assert not await client.delete(CONFIG_MAP, namespace, "a", propagation="Background")


async def test_merge_patch(client: Client, namespace: str, configmap: Make) -> None:
    await configmap("a", x="1", y="1")
    patched = await client.patch_merge(CONFIG_MAP, namespace, "a", {"data": {"x": None}}, field_manager="test")
    assert patched["data"] == {"y": "1"}
    stale = {"metadata": {"resourceVersion": "1"}, "data": {"z": "1"}}
    with pytest.raises(errors.Conflict):
        await client.patch_merge(CONFIG_MAP, namespace, "a", stale, field_manager="test")


async def test_delete_preconditions(client: Client, namespace: str, configmap: Make) -> None:
    meta = (await configmap("a"))["metadata"]
    with pytest.raises(errors.Conflict, match="UID"):
        await client.delete(CONFIG_MAP, namespace, "a", uid="other", propagation="Background")
    with pytest.raises(errors.Conflict, match="ResourceVersion"):
        await client.delete(CONFIG_MAP, namespace, "a", uid=meta["uid"], resource_version="1", propagation="Background")
    done = await client.delete(
        CONFIG_MAP,
        namespace,
        "a",
        uid=meta["uid"],
        resource_version=meta["resourceVersion"],
        propagation="Background",
    )
    assert done
    assert done.gone
    assert not await client.delete(CONFIG_MAP, namespace, "a", uid=meta["uid"], propagation="Background")


async def test_dry_runs_leave_no_trace(client: Client, namespace: str, configmap: Make) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}
    await client.create(CONFIG_MAP, namespace, body, field_manager="test", dry_run=True)
    await client.apply(CONFIG_MAP, namespace, "b", body, field_manager="test", dry_run=True)
    with pytest.raises(errors.NotFound):
        await client.get(CONFIG_MAP, namespace, "b")
    before = await configmap("a", x="1")
    await client.patch_merge(CONFIG_MAP, namespace, "a", {"data": {"x": "2"}}, field_manager="test", dry_run=True)
    assert await client.delete(CONFIG_MAP, namespace, "a", propagation="Background", dry_run=True)
    assert await client.get(CONFIG_MAP, namespace, "a") == before


async def test_list_in_pages(wire: faulty.Wire, namespace: str, configmap: Make) -> None:
    await asyncio.gather(*(configmap(f"cm-{number:02}", x="1") for number in range(23)))
    listing = await Client(wire).list(CONFIG_MAP, namespace, fields="metadata.name!=kube-root-ca.crt", limit=5)
    assert [item["metadata"]["name"] for item in listing.items] == [f"cm-{number:02}" for number in range(23)]
    assert {item["kind"] for item in listing.items} == {"ConfigMap"}
    assert wire.calls["GET"] == 5
    thin = await Client(wire).list(CONFIG_MAP, namespace, as_=Partial, metadata_only=True)
    assert len(thin.items) >= 23
    assert int(thin.resource_version) >= int(listing.resource_version)


async def test_reviews_and_version(client: Client, account: credentials.InCluster, namespace: str) -> None:
    assert (await client.version())["gitVersion"].startswith("v1.")
    wire = transport.HttpTransport(account)
    reader = Client(wire)

    async def may(verb: str) -> bool:
        attributes = {"namespace": namespace, "verb": verb, "resource": "configmaps"}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        return bool((await reader.review(body))["status"]["allowed"])

    await waiting.until(lambda: may("list"))
    assert not await may("delete")
    with pytest.raises(errors.Forbidden, match="delete ConfigMap"):
        await reader.delete(CONFIG_MAP, namespace, "a", propagation="Background")
    await wire.close()


async def test_a_refused_token_is_read_again(account: credentials.InCluster, tmp_path: Path, namespace: str) -> None:
    """The kubelet has put a new token into the file, and the one in memory has run out."""
    good = (tmp_path / "token").read_text()
    (tmp_path / "token").write_text("outdated")
    outdated = credentials.InCluster(account.server, folder=tmp_path)
    wire = transport.HttpTransport(outdated)
    with pytest.raises(errors.Unauthorized):
        await Client(wire).list(CONFIG_MAP, namespace)
    (tmp_path / "token").write_text(good)

    async def answered() -> bool:
        try:
            return bool((await Client(wire).list(CONFIG_MAP, namespace)).resource_version)
        except errors.Forbidden:  # the authorizer may not have seen the binding yet
            return False

    await waiting.until(answered)
    await wire.close()


async def test_discovery(client: Client) -> None:
    found = discovery.Discovery(client)
    assert await found.resource("apps/v1", "StatefulSet") == Resource("apps", "v1", "StatefulSet", "statefulsets")
    assert await found.resource("v1", "Namespace") == builtin.NAMESPACE
    with pytest.raises(errors.NotFound, match="CustomResourceDefinition"):
        await found.resource("no.such.group/v1", "Thing")
    capabilities = await found.capabilities()
    assert {"v1", "v1/Pod", "apps/v1", "apps/v1/Deployment", "apps/v1/Scale"} <= set(capabilities.api_versions)
    assert capabilities.version == (await client.version())["gitVersion"]


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
async def test_kubectl_sees_the_same(client: Client, namespace: str, configmap: Make, cluster: str) -> None:
    made = await configmap("a", x="1")
    command = ["kubectl", "--kubeconfig", cluster, "-n", namespace, "get", "configmap", "a", "-o", "json"]
    shown = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=True, timeout=60)
    seen = json.loads(shown.stdout)
    made["metadata"].pop("managedFields")
    assert seen == made
