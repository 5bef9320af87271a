"""Every operator, through its story, while whatever it asks of the API server may fail in any way.

The weather stays bad all the time; after each act the state must become that of an undisturbed run, and in the end each
object must have been made and removed as often. Its helm is spared: what a failed helm means is judged elsewhere.

    MOORAGE_TEST_SEED=7 pytest tests/api/faults/test_refusals.py -m campaign -k collector
"""

from __future__ import annotations

from pathlib import Path

import pytest

from . import plans, report, run, scenario

RATE = 0.15
WHOLE = 12
TOGETHER = 3
PATIENCE = 3.0
"""So many times an undisturbed run's: what was refused often rests for a while."""

WORDS = {**plans.ANYTHING, "event": tuple(word for word in plans.ANYTHING["event"] if word != "stall")}
"""Silence lasts too long at the pace of real life; it has its place in `test_thousands`."""


async def _campaign(stage: run.Stage, path: Path, count: int, told: report.Report) -> None:
    wanted, _ = await run.undisturbed(stage, path)

    async def one(seed: int) -> tuple[int, int, int, int, str]:
        chaos = plans.Chaos(seed, RATE, words=WORDS)
        async with run.Run(stage, path, plan=lambda _: chaos, patience=PATIENCE).running() as it:
            outcome = await it.outcome(wanted, again=lambda: chaos.total)
            return seed, chaos.total, it.requests, it.busiest, outcome

    header = "seed", "faults", "requests", "most in a second", "outcome"
    runs = (one(report.SEED + number) for number in range(count))
    rows, bad = await told.collect(header, runs, together=TOGETHER)
    told.say(f"{sum(row[1] for row in rows)} faults in {len(rows)} runs, {len(bad)} deviations")

    assert [] == bad


async def test_a_story_in_bad_weather(stage: run.Stage, told: report.Report) -> None:
    await _campaign(stage, scenario.FOLDER / "widget.yaml", 1, told)


@pytest.mark.campaign
@pytest.mark.parametrize("path", scenario.files(), ids=lambda path: path.stem)
async def test_many_stories_in_bad_weather(stage: run.Stage, path: Path, told: report.Report) -> None:
    await _campaign(stage, path, WHOLE, told)
