"""What the runtime measures, as a scrape shows it."""

from __future__ import annotations

from collections.abc import Iterable

import prometheus_client as prometheus
from prometheus_client.core import GaugeMetricFamily

from moorage.runtime import decision
from moorage.runtime.decision import DONE, Act, Verdict
from tests.unit.runtime.fake_api import Asked, FakeApi, Refusal, until
from tests.unit.runtime.gadgets import FINALIZER, GadgetKind, Seen, bench

LABELS = {"kind": "Gadget", "namespace": "ns", "name": "one", "operation": "Join", "outcome": "succeeded"}


def join_has_ended(seen: Seen) -> Verdict:
    """Status says so once."""
    if not seen.gadget.status.intent:
        return DONE
    ended = decision.Ended("Join", "succeeded", 12.5)
    note = decision.Remember(why="it has ended well", fields={"intent": ""}, ended=ended)
    return Act("TaskDone", "it joined", (note,))


async def test_an_operation_that_ended_counts_once_with_its_duration(api: FakeApi) -> None:
    await api.put("gadgets", "one", {"metadata": {"finalizers": [FINALIZER]}, "status": {"intent": "i-1"}})
    async with bench(api, GadgetKind((join_has_ended,))) as it:
        await it.turn()
        assert 1 == it.metrics.registry.get_sample_value("moorage_operation_seconds_count", LABELS)
        assert 12.5 == it.metrics.registry.get_sample_value("moorage_operation_seconds_sum", LABELS)


async def test_it_does_not_count_while_status_can_not_be_written(api: FakeApi) -> None:
    await api.put("gadgets", "one", {"metadata": {"finalizers": [FINALIZER]}, "status": {"intent": "i-1"}})

    async def refuse(asked: Asked) -> None:
        if asked.at.sub == "status":
            raise Refusal(409, "Conflict")

    async with bench(api, GadgetKind((join_has_ended,))) as it:
        api.before = refuse
        taken = it.keys.take()
        assert taken is not None
        await it.controllers[0].reconcile(taken[0])
        assert it.metrics.registry.get_sample_value("moorage_operation_seconds_count", LABELS) is None


async def test_what_is_gone_is_measured_no_more(api: FakeApi) -> None:
    await api.put("gadgets", "one", {"metadata": {"finalizers": [FINALIZER]}, "status": {"intent": "i-1"}})
    async with bench(api, GadgetKind((join_has_ended,))) as it:
        await it.turn()
        await api.drop("gadgets", "one")
        await until(lambda: it.kinds[0].find("ns", "one") is None)
        it.keys.add(it.kinds[0].key("ns", "one"))
        await it.turn()
        assert b"moorage_operation_seconds_count{" not in it.metrics.render()


async def test_a_kind_adds_what_it_has_to_say_at_each_scrape(api: FakeApi) -> None:
    sizes = [3.0]

    class Measured(GadgetKind):
        def metrics(self) -> Iterable[prometheus.Metric]:
            yield GaugeMetricFamily("gadget_size", "How big.", value=sizes[-1])

    async with bench(api, Measured()) as it:
        assert b"gadget_size 3.0" in it.metrics.render()
        sizes.append(5.0)
        assert b"gadget_size 5.0" in it.metrics.render()
