"""What can be measured of each cache: its members, what is under way, its copy, and when it was last asked."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable

import prometheus_client as prometheus
from prometheus_client.core import GaugeMetricFamily

from moorage.api import conditions
from moorage.operators.xsld.group import answers
from moorage.runtime import freshness

from . import types

CACHE = ("namespace", "name")


def collect(
    caches: Iterable[types.XsldCache], polled: Callable[[tuple[str, str]], freshness.Observed[answers.Polled]]
) -> Iterable[prometheus.Metric]:
    """One family of samples each, from what the caches' status says and when their groups were last asked."""
    members = GaugeMetricFamily("moorage_xsld_members", "Members by state.", labels=(*CACHE, "state"))
    pending = GaugeMetricFamily("moorage_xsld_tasks_pending", "Tasks of the group that run or wait.", labels=CACHE)
    replicated = GaugeMetricFamily(
        "moorage_xsld_replication_healthy", "1 while the administrative database has its copy.", labels=CACHE
    )
    answering = GaugeMetricFamily("moorage_xsld_answering", "Members that answered the last poll.", labels=CACHE)
    asked = GaugeMetricFamily(
        "moorage_xsld_last_poll_timestamp_seconds", "When the group was last asked, since the epoch.", labels=CACHE
    )
    for cache in caches:
        key = cache.metadata.key
        states = collections.Counter(member.state or "Unknown" for member in cache.status.member_statuses)
        for state, count in states.items():
            members.add_metric((*key, state), count)
        pending.add_metric(key, cache.status.pending_tasks)
        copy = conditions.find(cache.status.conditions, "ReplicationHealthy")
        if copy is not None and copy.status != "Unknown" and cache.status.replication.state != "Off":
            replicated.add_metric(key, copy.status == "True")
        told = polled(key)
        if not isinstance(told, freshness.Failed):
            answering.add_metric(key, sum(answer.fault is None for answer in told.value.answers))
            asked.add_metric(key, told.at)
    return members, pending, replicated, answering, asked
