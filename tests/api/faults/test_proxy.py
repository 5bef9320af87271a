"""The proxy does to a real connection what it says, and nothing to what it lets through."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage.api import builtin
from moorage.kube import client as kube_client
from moorage.kube import credentials, errors
from moorage.kube.http import transport

from . import proxy, waiting

Through = tuple[kube_client.Client, proxy.Proxy]


@pytest.fixture
async def through(admin: credentials.Credentials, tmp_path: Path) -> AsyncIterator[Through]:
    """A client whose every byte goes through a proxy."""
    between = proxy.Proxy(admin, proxy.Certificate(tmp_path))
    await between.start()
    reached = await credentials.from_kubeconfig(between.kubeconfig(tmp_path / "kubeconfig"))
    wire = transport.HttpTransport(reached)
    yield kube_client.Client(wire), between
    await wire.close()
    await between.close()


def _configmap(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def test_what_is_let_through_is_recorded_and_unharmed(through: Through, namespace: str) -> None:
    client, between = through
    made = await client.create(builtin.CONFIG_MAP, namespace, _configmap("a", x="1" * 300_000), field_manager="test")
    assert made == await client.get(builtin.CONFIG_MAP, namespace, "a")
    path = builtin.CONFIG_MAP.path(namespace)
    version = made["metadata"]["resourceVersion"]
    query = {"watch": "true", "resourceVersion": str(int(version) - 1), "timeoutSeconds": "1"}
    read = b""
    async with client.transport.stream("GET", path, query=query, timeout=5) as stream:
        async for chunk in stream.chunks():
            read += chunk
    assert b'"ADDED"' in read
    assert [("POST", 201, ""), ("GET", 200, ""), ("GET", 200, "")] == [
        (it.method, it.status, it.fault) for it in between.exchanges
    ]
    assert between.exchanges[2].is_watch


@pytest.mark.parametrize(
    ("word", "applied"), [("refuse", False), ("lose", True), ("half", True), ("stall", False), ("stall after", True)]
)
async def test_a_write_and_its_answer(
    through: Through, client: kube_client.Client, namespace: str, word: str, applied: bool
) -> None:
    broken, between = through
    between.judge = lambda _: word
    with pytest.raises(errors.TransportError) as caught:
        await broken.create(builtin.CONFIG_MAP, namespace, _configmap("a"), field_manager="test", timeout=2)
    assert caught.value.maybe_applied

    async def is_there() -> bool:
        return bool((await client.list(builtin.CONFIG_MAP, namespace, fields="metadata.name=a")).items)

    if applied:
        await waiting.until(is_there)  # the server may be slower than the client was patient
    else:
        assert not await is_there()


async def test_a_trickle_is_read_whole(through: Through, client: kube_client.Client, namespace: str) -> None:
    slow, between = through
    between.judge = lambda _: "drip"
    made = await client.create(builtin.CONFIG_MAP, namespace, _configmap("a", x="1"), field_manager="test")
    assert made == await slow.get(builtin.CONFIG_MAP, namespace, "a")


@pytest.mark.parametrize("word", ["reset", "half", "end"])
async def test_a_watch_that_breaks(through: Through, client: kube_client.Client, namespace: str, word: str) -> None:
    broken, between = through
    await client.create(builtin.CONFIG_MAP, namespace, _configmap("a"), field_manager="test")
    between.judge_chunk = lambda it, _: word if it.is_watch else ""
    query = {"watch": "true", "timeoutSeconds": "5", "fieldSelector": "metadata.name=a"}
    read = b""
    with pytest.raises(errors.TransportError):
        async with broken.transport.stream("GET", builtin.CONFIG_MAP.path(namespace), query=query, timeout=5) as stream:
            async for chunk in stream.chunks():
                read += chunk
    assert b"\n" not in read


async def test_closed_nobody_gets_through(through: Through, namespace: str) -> None:
    client, between = through
    await client.list(builtin.CONFIG_MAP, namespace)
    await between.close()
    with pytest.raises(errors.TransportError):
        await client.list(builtin.CONFIG_MAP, namespace)
