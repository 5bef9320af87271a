"""Many Collectors at once: all become Ready, and then the operator is at rest."""

from __future__ import annotations

import collections
import time

from . import tools

RESYNC = 15  # seconds, as conftest sets it
PERIODS = 3
READS_PER_LOOK = 0.2
"""Requests that read, per Collector and resync, at most: caches answer, and nothing is polled while all is well."""


def test_a_fleet_at_rest_writes_nothing_and_hardly_reads(
    fleet: list[tools.Collector], moorage: tools.Cluster, account: str
) -> None:
    """Every Collector is looked at again in each period, from caches alone."""
    pod = tools.operators(moorage)[0]["metadata"]["name"]
    mark = tools.quiet(account)
    before, begun = tools.metrics(moorage, pod), time.monotonic()

    def looked() -> float | None:
        elapsed = time.monotonic() - begun
        return elapsed if elapsed >= PERIODS * RESYNC * 1.1 else None

    elapsed = tools.wait(f"{PERIODS} resync periods", looked)

    after, entries = tools.metrics(moorage, pod), tools.audit(mark)
    mine = [entry for entry in entries if entry["user"]["username"] == account]
    reads = collections.Counter(
        line.rpartition(" ")[0]
        for line in tools.told([e for e in mine if e["verb"] in ("get", "list")])
        if " leases " not in line
    )
    looks = (
        after['moorage_reconcile_seconds_count{kind="Collector"}']
        - before['moorage_reconcile_seconds_count{kind="Collector"}']
    )
    spent = tools.total(after, "moorage_reconcile_seconds_sum") - tools.total(before, "moorage_reconcile_seconds_sum")
    cpu = tools.total(after, "process_cpu_seconds_total") - tools.total(before, "process_cpu_seconds_total")
    rss = after["process_resident_memory_bytes"]
    print(
        f"\n{len(fleet)} Collectors over {elapsed:.0f} s: {looks:.0f} reconciles of {1000 * spent / looks:.1f} ms, "
        f"CPU {100 * cpu / elapsed:.1f} % of one core ({1000 * cpu / looks:.1f} ms per reconcile), "
        f"RSS {rss / 2**20:.0f} MiB, reads {dict(reads)}"
    )
    assert [] == tools.told(tools.writes(entries, account))
    assert looks >= PERIODS * len(fleet)
    assert reads.total() <= READS_PER_LOOK * looks
