"""What became of the tests of one tier, as pytest's report in JUnit's form tells it."""

from __future__ import annotations

import collections
import dataclasses
import heapq
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

COUNTED = ("passed", "failed", "error", "skipped")
_TAGS = {"failure": "failed", "error": "error", "skipped": "skipped"}
EXPECTED = "pytest.xfail"
"""Type of a test that is known to fail, and did."""

SLOWEST = 25


@dataclasses.dataclass(frozen=True)
class Tally:
    """The tests of one tier. `times` has seconds and name of each, with what it set up and cleared."""

    tier: str
    seconds: float
    ok: bool
    counts: collections.Counter[str]
    times: Sequence[tuple[float, str]]

    @classmethod
    def of(cls, tier: str, seconds: float, report: Path, *, ok: bool) -> Tally:
        """From the report, which is not there if pytest did not come to its end."""
        counts: collections.Counter[str] = collections.Counter()
        times = []
        for case in ElementTree.parse(report).iter("testcase") if report.exists() else ():
            counts[_became(case)] += 1
            times.append((float(case.get("time", 0)), f"{case.get('file')}::{case.get('name')}"))
        return cls(tier, seconds, ok, counts, times)


def _became(case: ElementTree.Element) -> str:
    for each in case:
        if each.tag in _TAGS:
            return "expected" if each.get("type") == EXPECTED else _TAGS[each.tag]
    return "passed"


def slowest(tallies: Sequence[Tally]) -> str:
    """The tests of all tiers that took longest, and the files that did."""
    every = [(seconds, name, tally.tier) for tally in tallies for seconds, name in tally.times]
    files: collections.Counter[tuple[str, str]] = collections.Counter()
    for seconds, name, tier in every:
        files[name.partition("::")[0], tier] += seconds  # type: ignore[assignment]  # seconds count, too
    lines = [f"  {seconds:7.1f} s  {tier:<8} {name}" for seconds, name, tier in heapq.nlargest(SLOWEST, every)]
    whole = [f"  {seconds:7.1f} s  {tier:<8} {name}" for (name, tier), seconds in files.most_common(SLOWEST // 2)]
    return "\n".join(["slowest tests:", *lines, "slowest files:", *whole])


def summary(tallies: Sequence[Tally]) -> str:
    """A line for each tier, and one for all."""
    lines = []
    for it in tallies:
        words = ", ".join(f"{it.counts[word]} {word}" for word in COUNTED if it.counts[word]) or "no tests"
        spent = sum(seconds for seconds, _ in it.times)
        lines.append(f"  {it.tier:<8} {it.seconds:7.1f} s  {words}; one after another {spent:.0f} s")
    if bad := [it.tier for it in tallies if not it.ok]:
        lines.append(f"  failed: {', '.join(bad)}")
    total = sum((it.counts for it in tallies), collections.Counter[str]())
    failed = total["failed"] + total["error"]
    return "\n".join([*lines, f"total: {total['passed']} passed, {failed} failed, {total['skipped']} skipped"])
