"""A namespace of its own for each test, the real helm, and a thin client that speaks JSON."""

from __future__ import annotations

import base64
import json
import os
import shutil
import ssl
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from moorage.helm.runs import binary

ROOT = Path(__file__).parents[3]


def _kubeconfig() -> Path:
    path = Path(os.environ.get("MOORAGE_TEST_KUBECONFIG") or ROOT / ".testbed/kubeconfig")
    if not path.is_file():
        pytest.skip("no API server: set MOORAGE_TEST_KUBECONFIG or run testbed/testbed up --level api")
    return path


class Api:
    """Plain requests; errors are raised with the server's words."""

    def __init__(self, session: aiohttp.ClientSession, server: str) -> None:
        self._session, self.server = session, server

    async def call(self, verb: str, path: str, body: Any = None, kind: str = "application/json", **query: str) -> Any:
        headers = {"Content-Type": kind}
        async with self._session.request(verb, self.server + path, json=body, headers=headers, params=query) as answer:
            found = await answer.json()
        if answer.status >= 400:
            raise AssertionError(f"{verb} {path}: {answer.status} {found.get('message')}")
        return found

    async def get(self, path: str, **query: str) -> Any:
        return await self.call("GET", path, **query)

    async def merge(self, path: str, body: Any, manager: str, subresource: str = "") -> Any:
        where = f"{path}/{subresource}" if subresource else path
        return await self.call("PATCH", where, body, "application/merge-patch+json", fieldManager=manager)

    async def strategic(self, path: str, body: Any, manager: str) -> Any:
        return await self.call("PATCH", path, body, "application/strategic-merge-patch+json", fieldManager=manager)

    async def json_patch(self, path: str, body: Any, manager: str) -> Any:
        return await self.call("PATCH", path, body, "application/json-patch+json", fieldManager=manager)

    async def apply(self, path: str, body: Any, manager: str) -> Any:
        kind = "application/apply-patch+yaml"
        return await self.call("PATCH", path, body, kind, fieldManager=manager, force="true")

    async def history(self, path: str, first: Any, last: Any) -> list[Any]:
        """Each version of the object at that path from the one to the other, both of which are at hand."""
        of = [it["metadata"]["resourceVersion"] for it in (first, last)]
        found, (collection, _, name) = [first], path.rpartition("/")
        query = {"watch": "1", "resourceVersion": of[0], "fieldSelector": f"metadata.name={name}"}
        if of[0] == of[1]:
            return found
        async with self._session.get(self.server + collection, params=query) as answer:
            while found[-1]["metadata"]["resourceVersion"] != of[1]:
                found.append(json.loads(await answer.content.readline())["object"])
        return found


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    config = yaml.safe_load(_kubeconfig().read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    context = ssl.create_default_context(cadata=_data(cluster, "certificate-authority").decode())
    headers = {}
    if "client-certificate-data" in user or "client-certificate" in user:
        for name in ("client-certificate", "client-key"):
            (tmp_path / name).write_bytes(_data(user, name))
        context.load_cert_chain(tmp_path / "client-certificate", tmp_path / "client-key")
    elif "token" in user:
        headers["Authorization"] = f"Bearer {user['token']}"
    connector = aiohttp.TCPConnector(ssl=context)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        yield Api(session, cluster["server"])


def _data(holder: dict[str, Any], name: str) -> bytes:
    if f"{name}-data" in holder:
        return base64.b64decode(holder[f"{name}-data"])
    return Path(holder[name]).read_bytes()


@pytest.fixture
async def namespace(api: Api) -> AsyncIterator[str]:
    name = f"helm-{uuid.uuid4().hex[:8]}"
    await api.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    await api.call("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture
def helm_path() -> str:
    places = (os.environ.get("MOORAGE_TEST_HELM"), str(ROOT / ".testbed/bin/helm"), shutil.which("helm"))
    path = next((p for p in places if p and os.access(p, os.X_OK)), None)
    if path is None:
        pytest.skip("no helm binary: set MOORAGE_TEST_HELM or bring the testbed up")
    return path


@pytest.fixture
def helm(helm_path: str, tmp_path: Path) -> binary.Helm:
    """One that is asked to end gets the time for its record, however slow the machine."""
    return binary.Helm(helm_path, binary.KubeAccess(kubeconfig=str(_kubeconfig())), tmp_path / "scratch", grace=60)


@pytest.fixture
def make_chart(tmp_path: Path) -> Any:
    """make_chart({"templates/a.yaml": text}) -> its folder; called again with another version it makes another."""

    def make(files: dict[str, str], *, name: str = "app", version: str = "0.1.0") -> Path:
        folder = tmp_path / "charts" / version / name
        body = {"apiVersion": "v2", "name": name, "version": version}
        for path, text in {"Chart.yaml": yaml.safe_dump(body), "values.yaml": "{}\n", **files}.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        return folder

    return make
