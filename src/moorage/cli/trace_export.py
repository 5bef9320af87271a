"""Whether traces are wanted, by OpenTelemetry's own environment variables; nothing of it is imported if not.

On when OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set, unless OTEL_SDK_DISABLED is true or
OTEL_TRACES_EXPORTER names none. Such variables may be set for a whole cluster, so an image without the packages logs
that it can't send traces, and goes on.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
from collections.abc import Mapping
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from moorage.runtime.reporting import tracing

log = structlog.get_logger(__name__)

FAREWELL = 3.0
"""Seconds that the last traces get to be sent."""


def are_wanted(environment: Mapping[str, str]) -> bool:
    """Whether these variables ask for traces."""
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    if environment.get("OTEL_TRACES_EXPORTER", "otlp") != "otlp":
        return False
    return any(environment.get(f"OTEL_EXPORTER_OTLP_{what}ENDPOINT") for what in ("", "TRACES_"))


def begin(environment: Mapping[str, str], instance: str) -> tracing.Traces | None:
    """The traces of this process, or None when they are off or can't be had."""
    if not are_wanted(environment):
        return None
    try:
        from moorage.runtime.reporting import tracing

        attributes = {"service.version": importlib.metadata.version("moorage"), "service.instance.id": instance}
        if "OTEL_SERVICE_NAME" not in environment:
            attributes["service.name"] = "moorage"
        return tracing.exporting(attributes)
    except ImportError as error:
        log.warning("no traces: this image is built without `moorage[tracing]`", missing=error.name)
        return None


async def end(traces: tracing.Traces | None) -> None:
    """Send what is left, or give it up after a while."""
    if traces is None:
        return
    try:
        async with asyncio.timeout(FAREWELL):
            await asyncio.to_thread(traces.close)
    except TimeoutError:
        log.warning("last traces not sent", seconds=FAREWELL)
