"""Logs and metrics: one canonical line and one set of counters per reconcile, both from the decision record."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import prometheus_client as prometheus
import structlog

from moorage.runtime import decision
from moorage.runtime.reconcile import status

log = structlog.get_logger("moorage.reconcile")


def configure_logging(level: str, *, as_json: bool) -> None:
    """JSON lines for machines, aligned text for people; `level` as for `set_level`."""
    render: Any = (
        structlog.processors.JSONRenderer(
            serializer=lambda event, **_: msgspec.json.encode(event, enc_hook=str).decode()
        )
        if as_json
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            render,
        ],
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=False,  # so that the level can be changed
    )
    set_level(level)


def set_level(level: str) -> None:
    """Log from this level on, a name of the standard library's in any case. Raises ValueError."""
    if (number := logging.getLevelNamesMapping().get(level.upper())) is None:
        raise ValueError(f"log level {level!r} is none of debug, info, warning, error, critical")
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(number))


def _is_told(level: int) -> bool:
    """Whether a line of this level would be written: to ask is cheaper than to put it together."""
    return bool(structlog.get_config()["wrapper_class"].is_enabled_for(None, level))


class Metrics:
    """What the operator says about itself, on one registry."""

    def __init__(self) -> None:
        self.registry = prometheus.CollectorRegistry()
        prometheus.ProcessCollector(registry=self.registry)
        self.reconciles = prometheus.Counter(
            "moorage_reconciles", "Reconciles by kind and where they ended.", ["kind", "reason"], registry=self.registry
        )
        self.seconds = prometheus.Histogram(
            "moorage_reconcile_seconds", "Duration of a reconcile.", ["kind"], registry=self.registry
        )
        self.waited = prometheus.Histogram(
            "moorage_queue_seconds",
            "From when a look was asked for or due to its begin.",
            ["kind"],
            registry=self.registry,
        )
        self.actions = prometheus.Counter(
            "moorage_actions", "Actions by kind and outcome.", ["kind", "action", "outcome"], registry=self.registry
        )
        self.operations = prometheus.Summary(
            "moorage_operation_seconds",
            "Duration of long operations outside the cluster, by outcome.",
            ["kind", "namespace", "name", "operation", "outcome"],
            registry=self.registry,
        )
        self._waits: dict[str, prometheus.Histogram] = {}
        self._passes: dict[tuple[str, str], tuple[prometheus.Counter, prometheus.Histogram]] = {}
        self._acts: dict[tuple[str, str, str], prometheus.Counter] = {}
        self.leading = prometheus.Gauge(
            "moorage_leading", "1 while this process holds the lease.", registry=self.registry
        )
        self.shards = prometheus.Gauge(
            "moorage_shards_held", "Shards that this process holds the lease of.", registry=self.registry
        )
        self.queued = prometheus.Gauge("moorage_queue_ready", "Keys ready to be worked on.", registry=self.registry)
        self.delayed = prometheus.Gauge("moorage_queue_delayed", "Keys waiting for their time.", registry=self.registry)
        self.paused = prometheus.Gauge(
            "moorage_paused", "1 while work pauses as the API server sheds load.", registry=self.registry
        )
        self.running = prometheus.Gauge("moorage_tasks_running", "Long tasks under way.", registry=self.registry)
        self.left = prometheus.Gauge(
            "moorage_left_to_others",
            "Objects that another installation of moorage looks after.",
            registry=self.registry,
        )
        self.unhealthy = prometheus.Gauge(
            "moorage_watches_unhealthy", "Watches without contact.", registry=self.registry
        )

    def add(self, collect: Callable[[], Iterable[prometheus.Metric]]) -> None:
        """Ask for more each time that metrics are read."""
        self.registry.register(_Collector(collect))

    def began(self, kind: str, waited: float) -> None:
        """A pass begins, after so many seconds in the queue."""
        series = self._waits.get(kind)
        if series is None:
            series = self._waits[kind] = self.waited.labels(kind)
        series.observe(waited)

    def passed(self, kind: str, reason: str, seconds: float) -> None:
        """A pass has ended there, after so long. The series are looked up once: that costs more than counting."""
        series = self._passes.get((kind, reason))
        if series is None:
            series = self._passes[kind, reason] = (self.reconciles.labels(kind, reason), self.seconds.labels(kind))
        series[0].inc()
        series[1].observe(seconds)

    def acted(self, kind: str, action: str, outcome: str) -> None:
        """An action was tried."""
        series = self._acts.get((kind, action, outcome))
        if series is None:
            series = self._acts[kind, action, outcome] = self.actions.labels(kind, action, outcome)
        series.inc()

    def forget(self, kind: str, namespace: str, name: str) -> None:
        """The object is gone, and what was counted for it."""
        self.operations.remove_by_labels({"kind": kind, "namespace": namespace, "name": name})

    def render(self) -> bytes:
        """The text exposition format."""
        return prometheus.generate_latest(self.registry)


class _Collector(prometheus.registry.Collector):
    def __init__(self, collect: Callable[[], Iterable[prometheus.Metric]]) -> None:
        self._collect = collect

    def describe(self) -> Iterable[prometheus.Metric]:
        """Nothing is known beforehand; without this the registry would collect at once."""
        return ()

    def collect(self) -> Iterable[prometheus.Metric]:
        """See `prometheus_client`."""
        return self._collect()


def reconciled(
    metrics: Metrics,
    kind: str,
    namespace: str,
    name: str,
    made: decision.Decision,
    performed: tuple[status.Performed, ...],
    stands: status.Standing,
    *,
    generation: int,
    wrote: bool,
    seconds: float,
) -> None:
    """Say once what one pass saw, did and where it stopped."""
    reason = str(stands.reason) if not stands.settled else "Ready"
    metrics.passed(kind, reason, seconds)
    for done in performed:
        metrics.acted(kind, type(done.action).__name__, type(done.outcome).__name__)
        ended = done.action.ended if isinstance(done.action, decision.Remember) else None
        if ended is not None and isinstance(done.outcome, decision.Ok):
            metrics.operations.labels(kind, namespace, name, ended.operation, ended.outcome).observe(ended.seconds)
    if not _is_told(logging.INFO):
        return
    log.info(
        "reconciled",
        kind=kind,
        namespace=namespace,
        name=name,
        generation=generation,
        step=stands.step,
        reason=reason,
        message=stands.message,
        actions=[f"{type(p.action).__name__}:{type(p.outcome).__name__}" for p in performed],
        paused=made.paused,
        status_written=wrote,
        ms=round(seconds * 1000, 1),
    )
