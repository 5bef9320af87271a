from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.api import builtin
from moorage.api.meta import Resource
from moorage.kube import client as kube_client
from moorage.kube import credentials
from moorage.kube.http import transport
from moorage.kube.informers import informer, reflector
from tests.api.faults import faulty

SERVICE_ACCOUNT = Resource("", "v1", "ServiceAccount", "serviceaccounts")
ROLE = Resource("rbac.authorization.k8s.io", "v1", "Role", "roles")

QUICK = reflector.Pace(idle=6.0, lifetime=3.0, base=0.01, cap=0.2, settled=0.5)
"""A list by watch has as long as the watch lives, or it is asked for in pages."""


@pytest.fixture
async def wire(admin: credentials.Credentials) -> AsyncIterator[faulty.Wire]:
    """A transport whose faults are off until the test wants them."""
    made = faulty.Wire(transport.HttpTransport(admin))
    yield made
    await made.close()


@pytest.fixture(params=["stream", "pages"])
async def informers(wire: faulty.Wire, request: pytest.FixtureRequest) -> AsyncIterator[informer.Informers]:
    """Caches that lose no time, with lists of each form."""
    client = kube_client.Client(wire)
    if request.param == "pages":
        client.only_pages.add(builtin.CONFIG_MAP)
    made = informer.Informers(client, pace=QUICK)
    yield made
    await made.stop()


@pytest.fixture
def configmap(client: kube_client.Client, namespace: str) -> Callable[..., Awaitable[dict[str, Any]]]:
    """Applies a ConfigMap."""

    async def make(name: str, manager: str = "test", **data: str) -> dict[str, Any]:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
        return await client.apply(builtin.CONFIG_MAP, namespace, name, body, field_manager=manager)

    return make


def binding(namespace: str) -> dict[str, Any]:
    """Lets the service account `reader` read ConfigMaps."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": namespace}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
    }


@pytest.fixture
async def account(
    client: kube_client.Client, namespace: str, cluster: str, admin: credentials.Credentials, tmp_path: Path
) -> credentials.InCluster:
    """A service account as a pod has it, that may read the ConfigMaps of the namespace."""
    who = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}}
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "reader"}}
    await client.create(SERVICE_ACCOUNT, namespace, who, field_manager="test")
    await client.create(ROLE, namespace, {**role, "rules": rules}, field_manager="test")
    await client.create(builtin.ROLE_BINDING, namespace, binding(namespace), field_manager="test")
    wish = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    token = await client.create(
        SERVICE_ACCOUNT, namespace, wish, name="reader", subresource="token", field_manager="test"
    )
    (tmp_path / "token").write_text(token["status"]["token"])
    (tmp_path / "namespace").write_text(namespace)
    (tmp_path / "ca.crt").write_bytes(_authority(cluster))
    return credentials.InCluster(admin.server, folder=tmp_path)


def _authority(kubeconfig: str) -> bytes:
    first = yaml.safe_load(Path(kubeconfig).read_text())["clusters"][0]["cluster"]
    if "certificate-authority-data" in first:
        return base64.b64decode(first["certificate-authority-data"])
    return Path(first["certificate-authority"]).read_bytes()
