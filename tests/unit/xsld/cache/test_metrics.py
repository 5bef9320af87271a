"""What is measured of each cache when metrics are read."""

from __future__ import annotations

import msgspec
import prometheus_client as prometheus

from moorage.api import conditions, meta
from moorage.operators.xsld.cache import metrics, types
from moorage.operators.xsld.group import answers
from moorage.runtime import freshness
from moorage.runtime.reporting import telemetry

CACHE = {"namespace": "ns", "name": "c"}


def scraped(
    *caches: types.XsldCache, polled: freshness.Observed[answers.Polled] | None = None
) -> prometheus.CollectorRegistry:
    made = telemetry.Metrics()
    told = polled or freshness.not_yet("group")
    made.add(lambda: metrics.collect(caches, lambda _: told))
    return made.registry


def cache(**status: object) -> types.XsldCache:
    spec = msgspec.convert({"license": "accept", "size": 3}, types.XsldCacheSpec)
    return types.XsldCache(meta.ObjectMeta(name="c", namespace="ns"), spec, types.XsldCacheStatus(**status))  # type: ignore[arg-type]


def test_members_are_counted_by_state() -> None:
    members = tuple(
        types.MemberStatus(f"c-{n}", n, state=state) for n, state in enumerate(["Online", "Online", "Joining", ""])
    )
    found = scraped(cache(member_statuses=members, pending_tasks=2))

    counted = {
        state: found.get_sample_value("moorage_xsld_members", {**CACHE, "state": state})
        for state in ("Online", "Joining", "Unknown", "Offline")
    }
    assert {"Online": 2, "Joining": 1, "Unknown": 1, "Offline": None} == counted
    assert 2 == found.get_sample_value("moorage_xsld_tasks_pending", CACHE)


def test_the_copy_is_healthy_or_not_and_nothing_is_said_where_none_is_wanted_or_known() -> None:
    def healthy(status: str, state: str) -> float | None:
        condition = conditions.Condition(type="ReplicationHealthy", status=status)
        made = cache(conditions=(condition,), replication=types.Replication("c-0", "c-1", state))
        return scraped(made).get_sample_value("moorage_xsld_replication_healthy", CACHE)

    assert [1, 0, None, None] == [
        healthy("True", "Running"),
        healthy("False", "Broken"),
        healthy("False", "Off"),
        healthy("Unknown", "Running"),
    ]


def test_the_last_poll_is_told_with_how_many_answered() -> None:
    told = answers.Polled(
        answers=(
            answers.Answer("c-0", "u0", "10.0.0.0"),
            answers.Answer("c-1", "u1", "10.0.0.1", fault=answers.Fault.UNREACHABLE),
        )
    )
    found = scraped(cache(), polled=freshness.Stale(told, 1_800_000_000.0, "asked anew"))

    assert 1_800_000_000 == found.get_sample_value("moorage_xsld_last_poll_timestamp_seconds", CACHE)
    assert 1 == found.get_sample_value("moorage_xsld_answering", CACHE)


def test_before_the_first_poll_nothing_is_told_of_it() -> None:
    found = scraped(cache())

    assert found.get_sample_value("moorage_xsld_last_poll_timestamp_seconds", CACHE) is None
