"""The crash campaign: each write of a scenario, counted in an undisturbed run, is once the last one of its operator."""

from __future__ import annotations

import os
import random
from pathlib import Path

from . import report, run

SLICE = 2
TOGETHER = 4
Point = tuple[int, str]


async def campaign(stage: run.Stage, path: Path, told: report.Report, *, whole: bool) -> None:
    """Kill it before and after all of its writes, or some of them; any deviation fails the test."""
    wanted, writes = await run.undisturbed(stage, path)

    async def one(point: Point) -> tuple[str, str, int, int, str]:
        return f"{point[0]}-{point[1]}", *await _killed(stage, path, point, wanted)

    header = "point", "write", "requests", "most in a second", "outcome"
    rows, bad = await told.collect(header, map(one, _chosen(len(writes), whole=whole)), together=TOGETHER)
    missed = sum(row[1] == "not reached" for row in rows)
    told.say(f"{len(writes)} write points, {len(rows)} runs, {len(bad)} deviations, {missed} points not reached")

    assert [] == bad
    assert missed <= len(rows) // 4


def _chosen(count: int, *, whole: bool) -> list[Point]:
    points = [(number, when) for number in range(1, count + 1) for when in ("before", "after")]
    if only := os.environ.get("POINT"):
        return [point for point in points if f"{point[0]}-{point[1]}" == only]
    return points if whole else random.Random(report.SEED).sample(points, min(SLICE, len(points)))


async def _killed(stage: run.Stage, path: Path, point: Point, wanted: run.Ending) -> tuple[str, int, int, str]:
    """What was being written, requests in all and at most in a second, and what came out."""
    points = run.Points(point)
    async with run.Run(stage, path, points=points).running() as it:
        outcome = await it.outcome(wanted)
        return points.killed or "not reached", it.requests, it.busiest, outcome
