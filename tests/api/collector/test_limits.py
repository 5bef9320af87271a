"""What is silent, broken or leads elsewhere is told by its name, and holds up nobody else."""

from __future__ import annotations

import asyncio
import base64
import json
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage.api import builtin
from moorage.kube import client as kube_client
from moorage.operators.collector import config

from . import operating
from .test_confined import PLAIN


class Place:
    """A namespace of Collectors, two tenants, charts, and an operator that also knows a registry that never answers."""

    def __init__(self, client: kube_client.Client, namespace: str, folder: Path, kubeconfig: str, port: int) -> None:
        self.people, self.client = operating.People(client, namespace), client
        self.first, self.second, self.charts = f"{namespace}-a", f"{namespace}-b", folder / "charts"
        self.registry = f"oci://127.0.0.1:{port}/charts"
        own = folder / uuid.uuid4().hex
        own.mkdir()
        operating.chart(self.charts, PLAIN, name="plain", word="one")
        silent = config.ChartPlace(oci=self.registry, plain_http=True)
        more: dict[str, Any] = {"kubeconfig": kubeconfig, "folder": own, "charts": self.charts}
        self.operator = operating.Operator(client, namespace, clusters={"silent": silent}, **more)


@pytest.fixture
async def place(client: kube_client.Client, namespace: str, tmp_path: Path, cluster: str) -> AsyncIterator[Place]:
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()  # until the other side gives up
        writer.close()

    await operating.define(client)
    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    it = Place(client, namespace, tmp_path, cluster, server.sockets[0].getsockname()[1])
    yield it
    await it.people.leave()
    await it.operator.kill()
    server.close()
    for name in (it.first, it.second):
        await client.delete(builtin.NAMESPACE, "", name, propagation="Background")


async def test_a_registry_that_never_answers_is_named_and_holds_up_no_other(place: Place) -> None:
    for number in range(6):  # more than a source has slots
        await place.people.collector(f"waits{number}", place.first, f"c{number}", cluster="silent")
    await place.people.collector("well", place.second, "plain")
    await place.people.ready("well")

    told = [
        await place.people.until(f"waits{n}", lambda it: operating.said(it, "Ready").reason == "ChartUnreachable")
        for n in range(6)
    ]
    messages = [operating.said(it, "Ready").message for it in told]
    assert 6 == sum(f"chart registry {place.registry} " in message for message in messages)
    assert 4 == sum("has given no answer since 2" in message for message in messages)
    assert 2 == sum("requests before this one are not answered" in message for message in messages)


async def test_a_secret_that_only_looks_like_a_record_is_left_out_and_one_that_is_broken_is_told(place: Place) -> None:
    await place.people.namespace_of(place.first, admits=place.people.namespace)
    await _secret(place, "strange", "x", "hello")
    await place.people.collector("one", place.first, "plain")
    told = await place.people.until("one", lambda it: operating.said(it, "Stalled").status == "True")
    assert "RecordBroken" == operating.said(told, "Ready").reason

    await place.client.delete(builtin.SECRET, place.first, "strange", propagation="Background")
    await place.people.ready("one")
    await _secret(place, "strange", "x", "hello")
    await place.people.collector("one", place.first, "plain", word="two")
    await place.people.ready("one")

    await _secret(place, "broken", "999", "hello")
    told = await place.people.until("one", lambda it: operating.said(it, "Stalled").status == "True")
    ready = operating.said(told, "Ready")
    assert "RecordBroken" == ready.reason
    assert f"release record broken in namespace {place.first} can't be read: not a release record" in ready.message

    await place.client.delete(builtin.SECRET, place.first, "broken", propagation="Background")
    await place.people.ready("one")


async def test_a_chart_whose_schema_leads_out_is_refused_and_nothing_is_fetched(place: Place) -> None:
    operating.chart(place.charts, PLAIN, name="netref", word="one")
    schema = {"properties": {"word": {"$ref": "https://schemas.example.org/defs.json#/x"}}}
    (place.charts / "netref" / "values.schema.json").write_text(json.dumps(schema))
    await place.people.collector("one", place.first, "netref")

    told = await place.people.until("one", lambda it: operating.said(it, "Stalled").status == "True")

    assert "ChartInvalid" == operating.said(told, "Ready").reason
    assert "refers to https://schemas.example.org/defs.json#/x" in operating.said(told, "Ready").message


async def _secret(place: Place, name: str, version: str, content: str) -> None:
    labels = {"owner": "helm", "name": "plain-one", "version": version, "status": "deployed"}
    data = {"release": base64.b64encode(content.encode()).decode()}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": labels}, "data": data}
    await place.client.create(builtin.SECRET, place.first, body, field_manager="eve")
