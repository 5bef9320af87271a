"""A bare client of the API server: requests and watches, and nothing in between.

The harness and the kopf operator speak through it, so that neither depends on what is measured. Knows kubeconfigs with
a client certificate or a token. What can go wrong: `RefusedError`, with the server's answer.
"""

from __future__ import annotations

import base64
import contextlib
import ssl
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import msgspec
import yaml

from benchmarks import protocol

T = TypeVar("T")


class RefusedError(Exception):
    """The server said no."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text[:300]}")
        self.status = status


class Client:
    """One session over at most `connections` connections, watches aside."""

    def __init__(self, kubeconfig: str, *, connections: int = 16) -> None:
        self._server, headers, context = access(kubeconfig)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=context, limit=connections), headers=headers
        )
        self._watching = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context, limit=0), headers=headers)

    async def close(self) -> None:
        """End all connections."""
        await self._session.close()
        await self._watching.close()

    async def send(self, method: str, path: str, body: Any = None, content: str = protocol.JSON, **query: str) -> bytes:
        """One request; the answer as bytes. Raises RefusedError."""
        async with self._session.request(
            method,
            self._server + path,
            params=query,
            data=None if body is None else msgspec.json.encode(body),
            headers={"Content-Type": content},
        ) as answer:
            given = await answer.read()
            if answer.status >= 400:
                raise RefusedError(answer.status, given.decode(errors="replace"))
            return given

    async def apply(self, path: str, body: Any, *, manager: str) -> bytes:
        """Server-side apply."""
        return await self.send("PATCH", path, body, protocol.APPLY, fieldManager=manager, force="true")

    async def merge(self, path: str, body: Any) -> bytes:
        """A merge patch."""
        return await self.send("PATCH", path, body, protocol.MERGE)

    async def list(self, path: str, model: type[T], **query: str) -> tuple[list[T], str]:
        """All objects, and the resourceVersion from which to watch."""
        objects: list[T] = []
        token = ""
        while True:
            more = {"continue": token} if token else {}
            found = await self.send("GET", path, limit="500", **more, **query)
            page = msgspec.json.decode(found, type=protocol.Page[msgspec.Raw])
            objects += [msgspec.json.decode(item, type=model) for item in page.items or ()]
            token = page.metadata.continue_
            if not token:
                return objects, page.metadata.resource_version

    async def watch(self, path: str, version: str, **query: str) -> AsyncIterator[protocol.Event]:
        """What happens from `version` on, until the server ends it."""
        given = protocol.watching(version, query)
        timeout = aiohttp.ClientTimeout(total=None)
        async with self._watching.get(self._server + path, params=given, timeout=timeout) as answer:
            if answer.status >= 400:
                raise RefusedError(answer.status, await answer.text())
            async for event in protocol.events(answer.content.iter_any()):
                yield event


@contextlib.asynccontextmanager
async def connected(kubeconfig: str, *, connections: int = 16) -> AsyncIterator[Client]:
    """A client, closed in the end."""
    client = Client(kubeconfig, connections=connections)
    try:
        yield client
    finally:
        await client.close()


def access(kubeconfig: str) -> tuple[str, dict[str, str], ssl.SSLContext]:
    """Address, headers and TLS."""
    config = yaml.safe_load(Path(kubeconfig).read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    if "client-certificate-data" in user:
        with tempfile.TemporaryDirectory() as folder:
            cert, key = Path(folder, "cert"), Path(folder, "key")
            cert.write_bytes(base64.b64decode(user["client-certificate-data"]))
            key.write_bytes(base64.b64decode(user["client-key-data"]))
            context.load_cert_chain(cert, key)
    headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
    return cluster["server"], headers, context
