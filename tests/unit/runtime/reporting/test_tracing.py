"""Traces tell of a pass from its event to its write; off, nothing of them is loaded."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import export as sdk_export
from opentelemetry.sdk.trace.export import in_memory_span_exporter as memory

from moorage.cli import trace_export
from moorage.kube import client as kube_client
from moorage.runtime import manager
from moorage.runtime.reporting import tracing
from tests.unit.runtime.fake_api import Asked, FakeApi, Refusal, until
from tests.unit.runtime.gadgets import GadgetKind
from tests.unit.runtime.reconcile.test_controller import owner


@pytest.fixture
def exported() -> memory.InMemorySpanExporter:
    return memory.InMemorySpanExporter()


@pytest.fixture
def traces(exported: memory.InMemorySpanExporter) -> Iterator[tracing.Traces]:
    made = tracing.Traces(sdk_export.SimpleSpanProcessor(exported))
    yield made
    made.close()


async def _run(api: FakeApi, traces: tracing.Traces, kind_: GadgetKind) -> None:
    """Until the object is Ready."""
    settings = manager.Settings(identity="me", namespace="ns", elect=False, port=0, backoff=0.01)
    stop = asyncio.Event()
    it = manager.Manager(kube_client.Client(api), [kind_], settings, traces=traces)
    running = asyncio.create_task(it.run(stop))

    def is_ready() -> bool:
        said = api.one("gadgets", "one").get("status", {}).get("conditions", ())
        return any(c["type"] == "Ready" and c["status"] == "True" for c in said)

    await until(is_ready)
    stop.set()
    assert await running is True


def _children(spans: Any, of: Any) -> list[str]:
    mine = [s for s in spans if s.parent and s.parent.span_id == of.context.span_id]
    return [s.name for s in sorted(mine, key=lambda s: s.start_time)]


async def test_each_pass_is_a_trace_from_its_event_to_its_writes(
    api: FakeApi, traces: tracing.Traces, exported: memory.InMemorySpanExporter
) -> None:
    begun = time.time_ns()
    await api.put("gadgets", "one")
    await _run(api, traces, owner())

    spans = exported.get_finished_spans()
    passes = [s for s in spans if s.parent is None]
    assert ["reconcile Gadget"] * 3 == [s.name for s in passes]
    assert [["queued", "EditFinalizer"], ["queued", "Apply"], ["queued", "status"]] == [
        _children(spans, s) for s in passes
    ]
    assert ["TakingCare", "Applying", "Ready"] == [s.attributes["moorage.reason"] for s in passes]
    assert {("Gadget", "ns", "one", "uid-1", 1)} == {
        tuple(s.attributes[name] for name in
              ("moorage.kind", "k8s.namespace.name", "moorage.name", "moorage.uid", "moorage.generation"))
        for s in passes
    }  # fmt: skip
    for action in (s for s in spans if s.name in ("EditFinalizer", "Apply", "status")):
        assert ["PATCH"] == _children(spans, action)
    for one, next_ in itertools.pairwise(passes):
        assert [one.context.span_id] == [link.context.span_id for link in next_.links]
    for queued in (s for s in spans if s.name == "queued"):
        (root,) = (s for s in passes if s.context.span_id == queued.parent.span_id)
        assert begun <= root.start_time == queued.start_time <= queued.end_time <= root.end_time
    assert not [s for s in spans if s.name in ("GET", "POST") and s.parent is None], "watches and events have none"


async def test_a_failure_shows_its_outcome_and_no_words_of_the_server(
    api: FakeApi, traces: tracing.Traces, exported: memory.InMemorySpanExporter
) -> None:
    async def refuse(asked: Asked) -> None:
        if asked.at.plural == "configmaps" and asked.method == "PATCH":
            api.before = None
            raise Refusal(403, "Forbidden", "hunter2")

    await api.put("gadgets", "one")
    api.before = refuse
    await _run(api, traces, owner())

    spans = exported.get_finished_spans()
    (failed,) = (s for s in spans if s.attributes.get("moorage.outcome") == "Refused")
    assert ("Apply", "Forbidden", False) == (failed.name, failed.attributes["moorage.reason"], failed.status.is_ok)
    assert "hunter2" not in "".join(s.to_json() for s in spans)
    assert 403 in {s.attributes.get("http.response.status_code") for s in spans}


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, False),
        ({"OTEL_SERVICE_NAME": "x"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "TRUE"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_the_standard_variables_switch_them(environment: dict[str, str], wanted: bool) -> None:
    assert wanted is trace_export.are_wanted(environment)
    if not wanted:
        assert trace_export.begin(environment, "me") is None


def test_off_nothing_of_them_is_imported() -> None:
    code = "import sys, moorage.cli; sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    assert 0 == subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode


def test_without_the_packages_the_operator_goes_on_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http", None)
    assert trace_export.begin({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, "me") is None


async def test_the_last_spans_go_out_at_the_end_and_nobody_waits_for_a_collector_that_hangs(
    monkeypatch: pytest.MonkeyPatch, exported: memory.InMemorySpanExporter
) -> None:
    class Hangs(tracing.Traces):
        def close(self) -> None:
            time.sleep(0.2)

    made = tracing.Traces(sdk_export.BatchSpanProcessor(exported))
    with made.looking(("Gadget", "ns", "one"), 0.0):
        pass
    assert () == exported.get_finished_spans()
    await trace_export.end(made)
    assert 2 == len(exported.get_finished_spans())
    monkeypatch.setattr(trace_export, "FAREWELL", 0.01)
    await trace_export.end(Hangs(sdk_export.SimpleSpanProcessor(exported)))
    await trace_export.end(None)
