"""What Secrets and ConfigMaps that a spec names hold, whatever somebody has written there."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from moorage.api import builtin
from moorage.kube import client as kube_client
from moorage.operators import named_data
from tests.unit.runtime import fake_api

LATIN = base64.b64encode("ä".encode("latin-1")).decode()
SECRET: dict[str, Any] = {"data": {"word": base64.b64encode(b"x").decode(), "none": "", "latin": LATIN, "torn": "e"}}
CONFIG_MAP: dict[str, Any] = {"data": {"word": "x", "none": ""}, "binaryData": {"bytes": LATIN}}


async def test_one_is_read_as_it_is_now() -> None:
    """One that is not there is None, and no error."""
    api = fake_api.FakeApi()
    await api.put("secrets", "own", SECRET)
    client = kube_client.Client(api)
    found = await named_data.read(client, builtin.SECRET, "ns", "own")

    assert found is not None
    assert SECRET["data"] == found["data"]
    assert await named_data.read(client, builtin.SECRET, "ns", "other") is None


def test_texts_are_what_is_text() -> None:
    """The others are as if they were not there."""
    assert {"word": "x", "none": ""} == named_data.texts(builtin.SECRET, SECRET)
    assert {"word": "x", "none": ""} == named_data.texts(builtin.CONFIG_MAP, CONFIG_MAP)
    assert {} == named_data.texts(builtin.SECRET, {})
    assert {} == named_data.texts(builtin.SECRET, {"data": None})


@pytest.mark.parametrize(
    ("resource", "found", "key", "words"),
    [
        (builtin.SECRET, SECRET, "word", ""),
        (builtin.SECRET, SECRET, "none", ""),
        (builtin.SECRET, SECRET, "latin", "its key latin is no text"),
        (builtin.SECRET, SECRET, "torn", "its key torn is no text"),
        (builtin.SECRET, SECRET, "other", "it has no key other"),
        (builtin.SECRET, {"data": None}, "word", "it has no key word"),
        (builtin.CONFIG_MAP, CONFIG_MAP, "word", ""),
        (builtin.CONFIG_MAP, CONFIG_MAP, "bytes", "it has no key bytes"),
    ],
)
def test_why_there_is_no_text(resource: Any, found: dict[str, Any], key: str, words: str) -> None:
    """Named by its key, never with what it holds."""
    assert words == named_data.fault(resource, found, key)


def test_its_data_was_changed_when_the_api_server_noted_that() -> None:
    """Whoever changes labels or annotations changes no data."""

    def held(*noted: dict[str, Any]) -> dict[str, Any]:
        return {"metadata": {"managedFields": list(noted)}}

    early = {"time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:data": {}}}
    late = {"time": "2026-01-02T00:00:00Z", "fieldsV1": {"f:data": {"f:p": {}}}}
    label = {"time": "2026-01-03T00:00:00Z", "fieldsV1": {"f:metadata": {}}}

    assert late["time"] == named_data.changed(held(late, early, label))
    assert "" == named_data.changed(held(label, {"fieldsV1": {"f:data": {}}}))
    assert "" == named_data.changed({"metadata": {}})
