"""Whatever an operator's view of the world lags, skips or repeats, it ends where an undisturbed one does.

Each scenario is played with every event delivered twice, late, or not at all where a later one overwrites it; and again
and again with an operator that is killed and starts with the lists of an earlier moment. That one acts on what it
sees, and only when it has nothing left to do time goes on for it. State and counts must be those of an undisturbed run,
but that what a scenario calls stale may have been made once more by one that started in the past.

    MOORAGE_TEST_SEED=7 pytest tests/api/faults/test_views.py -m campaign -k 'stale and widget'
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from . import faulty, past, plans, report, run, scenario, waiting

SLICE = 2
WHOLE = 40
TOGETHER = 4
WORDS = ("twice", "late", "unobserved")
EVERYDAY = scenario.everyday()


async def _events(stage: run.Stage, path: Path, words: Sequence[str], told: report.Report) -> None:
    wanted, _ = await run.undisturbed(stage, path)

    async def one(word: str) -> tuple[str, int, int, str]:
        plan = plans.Every(word)
        async with run.Run(stage, path, plan=lambda _: plan).running() as it:
            outcome = await it.outcome(wanted)
        return word, plan.events, plan.dropped, outcome

    rows, _ = await told.collect(("every event", "events", "never seen", "outcome"), map(one, words), together=1)

    assert {report.GOOD} == {row[3] for row in rows}
    assert all(row[1] for row in rows)


@pytest.mark.parametrize("path", EVERYDAY, ids=lambda path: path.stem)
async def test_some_events(stage: run.Stage, path: Path, told: report.Report) -> None:
    await _events(stage, path, random.Random(report.SEED).sample(WORDS, 1), told)


@pytest.mark.campaign
@pytest.mark.parametrize("path", scenario.files(), ids=lambda path: path.stem)
async def test_all_events(stage: run.Stage, path: Path, told: report.Report) -> None:
    await _events(stage, path, WORDS, told)


class Album(past.Listener):
    """The moments of one run: one after each write of the operator."""

    def __init__(self, stage: run.Stage) -> None:
        super().__init__()
        self._stage = stage
        self.moments: list[past.Moment] = []

    async def wrote(self, it: faulty.Write) -> None:
        """See `faulty.Plan`."""
        if "/events" not in it.path and "/leases" not in it.path:
            self.moments.append(await past.moment(self._stage.client, tuple(self.asked.values())))


async def _stale(
    stage: run.Stage, path: Path, wanted: run.Ending, act: int, draw: random.Random
) -> tuple[int, int, int, str]:
    """Killed after that act, it starts in a moment of the past.

    Lists served, writes tried on them, objects made more than without, and what came out.
    """
    album, lives = Album(stage), []

    def plan(life: int) -> faulty.Plan:
        return lives[life - 1] if life else album

    async with run.Run(stage, path, plan=plan, stale=True).running() as it:

        async def after(number: int) -> None:
            if number != act:
                return
            then = past.Past(draw.choice(album.moments))
            lives.append(then)
            await it.replace(it.actor)
            await waiting.until(lambda: it.actor.manager._synced and it.actor.idle)
            then.go_on()

        outcome = await it.outcome(wanted, after=after)
        more = (it.seen.made - wanted.made).total()
        return lives[0].stale if lives else 0, len(it.actor.wire.writes), more, outcome


async def _campaign(stage: run.Stage, path: Path, count: int, told: report.Report) -> None:
    wanted, _ = await run.undisturbed(stage, path)
    draw = random.Random(report.SEED)
    acts = [number for number, act in enumerate(scenario.load(path, "none").story) if act.settle]

    async def one(number: int, seed: float) -> tuple[int, int, int, int, str]:
        act = acts[number % len(acts)]
        return act, *await _stale(stage, path, wanted, act, random.Random(seed))

    header = "killed after act", "stale lists", "writes since", "made once more", "outcome"
    runs = (one(number, draw.random()) for number in range(count))
    rows, bad = await told.collect(header, runs, together=TOGETHER)
    more = sum(row[3] for row in rows)
    told.say(f"{len(rows)} restarts into the past, {more} objects made once more, {len(bad)} deviations")

    assert [] == bad
    assert all(row[1] for row in rows)


@pytest.mark.parametrize("path", EVERYDAY, ids=lambda path: path.stem)
async def test_some_stale_starts(stage: run.Stage, path: Path, told: report.Report) -> None:
    await _campaign(stage, path, SLICE, told)


@pytest.mark.campaign
@pytest.mark.parametrize("path", scenario.files(), ids=lambda path: path.stem)
async def test_many_stale_starts(stage: run.Stage, path: Path, told: report.Report) -> None:
    await _campaign(stage, path, WHOLE, told)
