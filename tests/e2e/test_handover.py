"""The operator is replaced, drained and killed: releases run on untouched, and no two operators ever write at once."""

from __future__ import annotations

import math
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


def holder(cluster: tools.Cluster) -> str:
    """Who holds the lease: one process of one pod, or nobody."""
    return str(cluster.get("lease", "moorage", "-n", tools.NAMESPACE)["spec"].get("holderIdentity") or "")


def leader(cluster: tools.Cluster) -> str:
    """The pod that holds the lease, or nothing."""
    return holder(cluster).rpartition("-")[0]


def by(entry: dict[str, Any]) -> str:
    """The pod that made a request."""
    return str(entry["user"].get("extra", {}).get(POD, [""])[0])


def lease_writes(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Accepted writes of the Lease, in order. Who does not hold it writes it only to take it."""
    accepted = [e for e in entries if e["verb"] in ("patch", "create") and e["responseStatus"]["code"] < 300]
    return sorted((e for e in accepted if (e.get("objectRef") or {}).get("resource") == "leases"), key=tools.when)


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
    last = max(tools.when(entry) for entry in lease_writes(entries) if by(entry) == old)
    first = min(tools.when(entry) for entry in lease_writes(entries) if by(entry) == new)
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
    held, mark = holder(two), tools.audit_end()
    first = held.rpartition("-")[0]
    made = [collector(chart="plain", cluster="registry") for _ in range(2)]
    tools.wait("work under way", lambda: tools.writes(tools.audit(mark), account))

    if how == "killed":
        gone = _kill(_process(two, first))
    else:
        gone = time.time()
        two.kubectl("delete", "pod", first, "-n", tools.NAMESPACE, "--wait=false")
    made += [collector(chart="plain", cluster="registry") for _ in range(2)]
    tools.wait("another leader", lambda: holder(two) not in ("", held))
    made.append(collector(chart="plain", cluster="registry"))  # the first may have been done with the others in time

    for one in made:
        one.wait_ready()
    # a killed operator may come back in the same pod, and what it had sent may be received after its end
    back = _started(tools.wait("it is back", lambda: _process(two, first))) if how == "killed" else math.inf
    entries = [entry for entry in tools.audit(mark) if entry["user"]["username"] == account]
    taken = next(e for e in lease_writes(entries) if tools.when(e) > gone and (by(e) != first or tools.when(e) >= back))
    second, since = by(taken), tools.when(taken)
    written = sorted(tools.writes(entries, account), key=tools.when)
    early = [entry for entry in written if tools.when(entry) < since]
    late = [entry for entry in written if tools.when(entry) >= since]
    last = max(tools.when(entry, "stageTimestamp") for entry in early)
    print(
        f"\nleader {how}: leaderless {since - gone:.1f} s; {len(early)} writes before, the last "
        f"{since - last:.1f} s before the new leader's lease; first write {tools.when(late[0]) - gone:.1f} s after"
    )
    assert {first} == {by(entry) for entry in early}
    assert {second} == {by(entry) for entry in late}
    assert last <= since
    assert max(tools.when(entry) for entry in early) < back
    if how == "killed":
        assert since - gone <= 2 * conftest.FAST_LEASE["durationSeconds"]
    for one in made:
        assert ["deployed"] == [each["status"] for each in one.history()][-1:]


def _kill(pid: int | None) -> float:
    """kill -9 of this process; returns when."""
    assert pid, "the operator's process is not on this machine"
    os.kill(pid, signal.SIGKILL)
    return time.time()


def _process(cluster: tools.Cluster, pod: str) -> int | None:
    """The operator's process in this pod, if it runs; pods are on this machine."""
    uid = cluster.get("pod", pod, "-n", tools.NAMESPACE)["metadata"]["uid"]
    names = {uid, uid.replace("-", "_")}
    for folder in Path("/proc").iterdir():
        try:
            if not folder.name.isdigit() or b"moorage\0run\0" not in (folder / "cmdline").read_bytes():
                continue
            if any(name in (folder / "cgroup").read_text() for name in names):
                return int(folder.name)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return None


def _started(pid: int) -> float:
    """When a process was started, in epoch seconds."""
    ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])  # since the machine's start
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK")
