"""Releases of the sample chart: what is asked for, and when it is there."""

from __future__ import annotations

import msgspec
import pytest

from benchmarks import node, releases
from moorage.operators.collector import types


def told(generation: int, **ready: object) -> releases.Collector:
    """A Collector as the API server has it."""
    condition = {"type": "Ready", "status": "True", "observedGeneration": 1, **ready}
    others = {"type": "Reconciling", "status": "False", "observedGeneration": 1}
    metadata = {"name": "a", "generation": generation}
    return msgspec.convert({"metadata": metadata, "status": {"conditions": [others, condition]}}, releases.Collector)


def test_a_collector_counts_once_it_is_ready_at_its_generation() -> None:
    """Neither before, nor by what it said of an earlier one."""
    assert told(1).ready
    assert not told(1, status="False").ready
    assert not told(2).ready
    assert not msgspec.convert({"metadata": {"name": "new"}}, releases.Collector).ready


def test_both_install_the_same_release_in_the_same_place() -> None:
    """What moorage makes of the Collector is what plain helm is told."""
    asked = releases.collector("bench-1")
    spec = msgspec.convert(asked["spec"], types.CollectorSpec)

    assert (releases.RELEASE, "bench-1") == (spec.release, spec.namespace)
    assert releases.of("bench-1") == msgspec.to_builtins(spec.tenant)


@pytest.mark.parametrize("names", [["one"], ["one", "two"]])
def test_a_pod_that_is_played_runs_with_all_its_containers(names: list[str]) -> None:
    """As a kubelet tells it: what judges a pod by its containers finds nothing missing."""
    containers = [{"name": name, "image": "some:1"} for name in names]
    pod = msgspec.convert(
        {"metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": {"containers": containers}}, node.Pod
    )

    status = node.running(pod, "10.0.0.1")

    assert "Running" == status["phase"]
    assert names == [each["name"] for each in status["containerStatuses"] if each["ready"]]
    assert {"True"} == {each["status"] for each in status["conditions"]}
    assert {"PodScheduled", "Ready"} <= {each["type"] for each in status["conditions"]}
