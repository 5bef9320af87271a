"""The operator is replaced, drained and killed: releases run on untouched, and no two operators ever write at once."""

from __future__ import annotations

import datetime
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from . import conftest, tools

POD = "authentication.kubernetes.io/pod-name"


def footprint(cluster: tools.Cluster, fleet: list[tools.Collector]) -> dict[str, Any]:
    """What must not change when the operator does: pods with their restarts, ReplicaSets, and helm's revisions."""
    found = {}
    tenants = {one.tenant for one in fleet}
    for item in cluster.items("pods,replicasets", "-A"):
        if item["metadata"]["namespace"] in tenants:
            restarts = [c["restartCount"] for c in item["status"].get("containerStatuses", [])]
            found[item["metadata"]["uid"]] = (item["kind"], item["metadata"]["name"], restarts)
    for item in cluster.items("secrets", "-A", "-l", "owner=helm"):
        if item["metadata"]["namespace"] in tenants:
            found[item["metadata"]["uid"]] = (
                item["kind"],
                item["metadata"]["name"],
                item["metadata"]["labels"]["status"],
            )
    return found


def leader(cluster: tools.Cluster) -> str:
    """The pod that holds the lease, or nothing."""
    holder = cluster.get("lease", "moorage", "-n", tools.NAMESPACE)["spec"].get("holderIdentity") or ""
    return str(holder.rpartition("-")[0])


def when(entry: dict[str, Any], key: str = "requestReceivedTimestamp") -> float:
    """A time of an audit entry, in epoch seconds."""
    return datetime.datetime.fromisoformat(entry[key]).timestamp()


def by(entry: dict[str, Any]) -> str:
    """The pod that made a request."""
    return str(entry["user"].get("extra", {}).get(POD, [""])[0])


def lease_writes(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Accepted writes of the Lease, in order. Who does not hold it writes it only to take it."""
    accepted = [e for e in entries if e["verb"] in ("patch", "create") and e["responseStatus"]["code"] < 300]
    return sorted((e for e in accepted if (e.get("objectRef") or {}).get("resource") == "leases"), key=when)


def test_an_upgrade_of_the_operator_disturbs_nothing(
    fleet: list[tools.Collector], moorage: tools.Cluster, registry: str, account: str
) -> None:
    """A new pod looks at every Collector, and writes nothing."""
    old = tools.operators(moorage)[0]["metadata"]["name"]
    before, mark = footprint(moorage, fleet), tools.quiet(account)

    conftest.install(
        moorage, conftest.values(registry) | {"podAnnotations": {"example.com/upgraded": str(time.time())}}
    )

    new = tools.operators(moorage)[-1]["metadata"]["name"]
    assert new != old
    ready = 'moorage_reconciles_total{kind="Collector",reason="Ready"}'
    tools.wait("a look at each", lambda: tools.metrics(moorage, new).get(ready, 0) >= 2 * len(fleet))
    entries = tools.audit(mark)
    assert [] == tools.told(tools.writes(entries, account))
    assert before == footprint(moorage, fleet)
    for one in fleet:
        assert "True" == one.condition("Ready")["status"]
    last = max(when(entry) for entry in lease_writes(entries) if by(entry) == old)
    first = min(when(entry) for entry in lease_writes(entries) if by(entry) == new)
    print(f"\noperator upgraded with {len(fleet)} Collectors: no write, no restart; leaderless {first - last:.1f} s")


@pytest.fixture
def two(moorage: tools.Cluster) -> Iterator[tools.Cluster]:
    """Two replicas, one of which leads."""
    tools.start_operator(moorage, 2)
    tools.wait("a leader", lambda: leader(moorage) in [pod["metadata"]["name"] for pod in tools.operators(moorage)])
    yield moorage
    tools.start_operator(moorage, 1)


@pytest.mark.parametrize("how", ["drained", "killed"])
def test_only_one_of_two_writes(two: tools.Cluster, collector: conftest.Make, account: str, how: str) -> None:
    """The leader goes while there is work; the other takes over after its last write, and all becomes Ready."""
    first, mark = leader(two), tools.audit_end()
    made = [collector(chart="plain", cluster="registry") for _ in range(2)]
    tools.wait("work under way", lambda: tools.writes(tools.audit(mark), account))

    if how == "killed":
        gone = _kill(two, first)
    else:
        gone = time.time()
        two.kubectl("delete", "pod", first, "-n", tools.NAMESPACE, "--wait=false")
    made += [collector(chart="plain", cluster="registry") for _ in range(2)]

    for one in made:
        one.wait_ready()
    entries = [entry for entry in tools.audit(mark) if entry["user"]["username"] == account]
    # a killed operator writes no more, and may come back in the same pod; one that drains renews until it releases
    taken = next(e for e in lease_writes(entries) if when(e) > gone and (how == "killed" or by(e) != first))
    second, since = by(taken), when(taken)
    written = sorted(tools.writes(entries, account), key=when)
    early = [entry for entry in written if when(entry) < since]
    late = [entry for entry in written if when(entry) >= since]
    last = max(when(entry, "stageTimestamp") for entry in early)
    print(
        f"\nleader {how}: leaderless {since - gone:.1f} s; {len(early)} writes before, the last "
        f"{since - last:.1f} s before the new leader's lease; first write {when(late[0]) - gone:.1f} s after"
    )
    assert {first} == {by(entry) for entry in early}
    assert {second} == {by(entry) for entry in late}
    assert last <= since
    if how == "killed":
        assert max(when(entry) for entry in early) <= gone
        assert since - gone <= 2 * conftest.FAST_LEASE["durationSeconds"]
    for one in made:
        assert ["deployed"] == [each["status"] for each in one.history()][-1:]


def _kill(cluster: tools.Cluster, pod: str) -> float:
    """kill -9 of the operator's process in this pod, which runs on this machine; returns when."""
    uid = cluster.get("pod", pod, "-n", tools.NAMESPACE)["metadata"]["uid"]
    names = {uid, uid.replace("-", "_")}
    for folder in Path("/proc").iterdir():
        try:
            if not folder.name.isdigit() or b"moorage\0run\0" not in (folder / "cmdline").read_bytes():
                continue
            if any(name in (folder / "cgroup").read_text() for name in names):
                os.kill(int(folder.name), signal.SIGKILL)
                return time.time()
        except (FileNotFoundError, ProcessLookupError):
            continue
    raise AssertionError(f"no process of pod {pod} on this machine")
