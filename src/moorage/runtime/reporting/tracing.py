"""Traces, from the event that asked for a look to the write: one trace for each pass.

    reconcile Widget          from when the look was asked for to the end of the pass; linked to the one it goes on from
      queued                  until a worker took it
      Apply                   one for each action, with why and what became of it
        PATCH                 one for each request to the API server
      status                  the write of the status, if there was one to think of

Off unless the standard OTEL_* variables name a place to send traces to; then nothing here is imported, and a pass asks
once whether there is a tracer. Attributes hold names, reasons and outcomes, never bodies or messages (law 8). What can
go wrong: the collector is away, then spans are dropped and the operator goes on.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk import resources as sdk_resources
from opentelemetry.sdk import trace as sdk_trace
from opentelemetry.sdk.trace import export as sdk_export
from opentelemetry.trace import StatusCode

from moorage.kube.http import transport
from moorage.runtime import decision
from moorage.runtime.reconcile import status
from moorage.runtime.workqueue import queue

LINKED = 10_000
"""Passes that are remembered, to link to those that go on from them."""


class Traces:
    """Makes the spans of one process and hands them to an exporter."""

    def __init__(self, processor: sdk_trace.SpanProcessor, attributes: dict[str, str] | None = None) -> None:
        self._provider = sdk_trace.TracerProvider(resource=sdk_resources.Resource.create(dict(attributes or {})))
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("moorage")
        self._unsettled: dict[queue.Key, trace.SpanContext] = {}

    @contextlib.contextmanager
    def looking(self, key: queue.Key, waited: float) -> Iterator[None]:
        """A pass over `key`, which has waited so many seconds for a worker."""
        now = time.time_ns()
        asked = now - int(waited * 1e9)
        before = self._unsettled.pop(key, None)
        span = self._tracer.start_span(
            f"reconcile {key[0]}",
            start_time=asked,
            links=[trace.Link(before)] if before else None,
            attributes={"moorage.kind": key[0], "k8s.namespace.name": key[1], "moorage.name": key[2]},
        )
        with trace.use_span(span, end_on_exit=True, record_exception=False):
            self._tracer.start_span("queued", start_time=asked).end(now)
            yield

    def tell(self, key: queue.Key, uid: str, generation: int, stands: status.Standing, actions: int) -> None:
        """What came of the pass that is under way."""
        span = trace.get_current_span()
        span.set_attributes(
            {
                "moorage.uid": uid,
                "moorage.generation": generation,
                "moorage.step": stands.step,
                "moorage.reason": str(stands.reason) or "Ready",
                "moorage.actions": actions,
            }
        )
        if not stands.settled:
            if len(self._unsettled) >= LINKED:
                self._unsettled.pop(next(iter(self._unsettled)))
            self._unsettled[key] = span.get_span_context()

    async def acting(self, step: str, action: decision.Action, doing: Awaitable[decision.Outcome]) -> decision.Outcome:
        """One action."""
        with self._tracer.start_as_current_span(
            type(action).__name__, attributes={"moorage.step": step}, record_exception=False
        ) as span:
            outcome = await doing
            span.set_attribute("moorage.outcome", type(outcome).__name__)
            if isinstance(outcome, decision.Refused):
                span.set_attribute("moorage.reason", outcome.reason)
            if isinstance(outcome, decision.Refused | decision.Unknown):
                span.set_status(StatusCode.ERROR)
            return outcome

    @contextlib.contextmanager
    def saying(self) -> Iterator[None]:
        """The status is written, if it has changed."""
        with self._tracer.start_as_current_span("status", record_exception=False):
            yield

    def wire(self, inner: transport.Transport) -> transport.Transport:
        """The same transport, with a span for each request that belongs to a trace."""
        return _Wire(inner, self._tracer)

    def close(self) -> None:
        """Send what is left. Blocks, for as long as the exporter's timeout."""
        self._provider.shutdown()


class _Wire:
    def __init__(self, inner: transport.Transport, tracer: trace.Tracer) -> None:
        self._inner, self._tracer = inner, tracer
        self.stream: Callable[..., Any] = inner.stream
        self.socket: Callable[..., Any] = inner.socket
        self.close = inner.close

    async def request(self, method: str, path: str, **given: Any) -> transport.Response:
        if not trace.get_current_span().is_recording():  # leases, sources, watches: a trace of their own would be noise
            return await self._inner.request(method, path, **given)
        attributes = {"http.request.method": method, "url.path": path}
        with self._tracer.start_as_current_span(
            method, kind=trace.SpanKind.CLIENT, attributes=attributes, record_exception=False
        ) as span:
            answer = await self._inner.request(method, path, **given)
            span.set_attribute("http.response.status_code", answer.status)
            if answer.status >= 400:
                span.set_status(StatusCode.ERROR)
            return answer


def exporting(attributes: dict[str, str]) -> Traces:
    """To where the environment says, by OTLP over HTTP. Raises ImportError without the exporter's package."""
    from opentelemetry.exporter.otlp.proto.http import trace_exporter

    return Traces(sdk_export.BatchSpanProcessor(trace_exporter.OTLPSpanExporter()), attributes)
