"""What the log says of errors: a trace is for a defect."""

from __future__ import annotations

import asyncio
import logging

import pytest
import structlog
from structlog import testing

from moorage.api import builtin
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.kube.informers import informer
from moorage.runtime import error_text, gate, kind, source
from tests.unit.runtime.fake_api import FakeApi, until

GONE = errors.from_status("get Secret ns/record", errors.Status(code=404, reason="NotFound", message="not found"))


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (GONE, "info"),
        (errors.from_status("patch", errors.Status(code=409, reason="Conflict")), "info"),
        (errors.from_status("get", errors.Status(code=403, reason="Forbidden")), "warning"),
        (errors.TransportError("broke", sent=True), "warning"),
        (KeyError("x"), "error"),
    ],
)
def test_only_a_defect_has_a_trace(error: Exception, level: str) -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    with testing.capture_logs() as lines:
        error_text.tell("source failed", error, source="record")

    (line,) = lines
    assert (level, "source failed", "record") == (line["log_level"], line["event"], line["source"])
    assert (level == "error") == ("exc_info" in line)


async def test_what_is_gone_when_a_source_looks_is_no_trace() -> None:
    """A record that is deleted between the event that tells of it and the look at it, say."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))

    async def fetch(_: str) -> str:
        raise GONE

    records = source.Source("record", fetch, lambda _: None)
    with testing.capture_logs() as lines:
        records.read("key", "reader")
        await until(lambda: lines)
        await records.stop()

    assert [("info", None)] == [(line["log_level"], line.get("exc_info")) for line in lines]


async def test_a_view_that_is_closed_while_all_ends_is_no_trace() -> None:
    """Who leaves just then has its watches closed beside those that stop all of them."""
    client = kube_client.Client(FakeApi())
    world = kind.World(client, informer.Informers(client), gate.Gate(), lambda *_, **__: None)
    informers = [world.informers.watch(resource, dict, namespace="ns") for resource in (builtin.POD, builtin.SECRET)]
    await world.informers.stop()

    await asyncio.gather(*(world.informers.release(cache) for cache in informers))
