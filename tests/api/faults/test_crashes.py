"""Killed before or after any write, the next process ends where an undisturbed one does, and makes nothing twice.

The writes are counted in an undisturbed run; then each is run anew with one kill, before the server has the request or
after it has carried it out. The state after each act, and how often each object was made and removed, must be the same.

    pytest tests/api/faults/test_crashes.py -m campaign -k widget     all points of one scenario
    POINT=3-after pytest tests/api/faults/test_crashes.py -k widget   one point again
"""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

import pytest

from . import report, run, scenario

SLICE = 2
TOGETHER = 4
Point = tuple[int, str]


def _chosen(count: int, *, whole: bool) -> list[Point]:
    points = [(number, when) for number in range(1, count + 1) for when in ("before", "after")]
    if only := os.environ.get("POINT"):
        return [point for point in points if f"{point[0]}-{point[1]}" == only]
    return points if whole else random.Random(report.SEED).sample(points, min(SLICE, len(points)))


async def _killed(stage: run.Stage, path: Path, point: Point, wanted: run.Ending) -> tuple[str, list[str]]:
    """What was being written, and what came out differently."""
    points = run.Points(point)
    async with run.Run(stage, path, points=points).running() as it:
        try:
            said = run.deviations(it.scenario, wanted, await it.play(wanted.scenes))
        except run.Deviation as error:
            said = [str(error)]
        return points.killed, said


async def _campaign(stage: run.Stage, path: Path, *, whole: bool) -> None:
    told = report.Report(
        f"crashes {path.stem}{'' if whole else ' slice'}", f"tests/api/faults/test_crashes.py::*[{path.stem}]"
    )
    wanted, writes = await run.undisturbed(stage, path)
    room = asyncio.Semaphore(TOGETHER)

    async def one(point: Point) -> tuple[Point, str, list[str]]:
        async with room:
            return point, *await _killed(stage, path, point, wanted)

    ended = await asyncio.gather(*map(one, _chosen(len(writes), whole=whole)))
    rows = [
        (f"{number}-{when}", killed or "not reached", "; ".join(said) or "as undisturbed")
        for (number, when), killed, said in ended
    ]
    told.table(("point", "write", "outcome"), rows)
    bad = [" ".join(row) for row, (_, _, said) in zip(rows, ended, strict=True) if said]
    missed = sum(not killed for _, killed, _ in ended)
    told.say(f"\n{len(writes)} write points, {len(ended)} runs, {len(bad)} deviations, {missed} points not reached")
    told.close()

    assert [] == bad
    assert missed <= len(ended) // 4


@pytest.mark.parametrize("path", scenario.everyday(), ids=lambda path: path.stem)
async def test_some_kills_are_survived(stage: run.Stage, path: Path) -> None:
    await _campaign(stage, path, whole=False)


@pytest.mark.campaign
@pytest.mark.parametrize("path", scenario.files(), ids=lambda path: path.stem)
async def test_every_kill_is_survived(stage: run.Stage, path: Path) -> None:
    await _campaign(stage, path, whole=True)
