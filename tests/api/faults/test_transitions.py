"""Each leaf of each kind's spec, changed to each sort of value and back, alone and in pairs.

What is tried follows from the kind's schema and the file of its system in `transitions`; docs/reliability.md says what
must come of it. A trip is named by its form and its number, and is the same by the same seed:

    MOORAGE_TEST_SEED=7 pytest tests/api/faults/test_transitions.py -m campaign -k collector -s
    MOORAGE_TEST_SEED=7 TRIP=cache-37 pytest tests/api/faults/test_transitions.py -m campaign -k xsld -s
    MOORAGE_TEST_SEED=7 TRIP=cache pytest tests/api/faults/test_transitions.py -m campaign -k xsld -s  # all of a form
    MOORAGE_TEST_SEED=7 TRIP="grid-3 cache-37" pytest tests/api/faults/test_transitions.py -m campaign -k xsld -s
"""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

from . import report, run, scenario
from .transitions import declared, leaves, schemas, trips, walk

WHOLE = 1000
"""Steps of each system, at least; as many of each of its forms as of the others."""

CHUNK = 25
"""Trips that are made by one operator; those of one form are shared out to several, which work side by side."""

TOGETHER = 4
ENOUGH = 0.95
"""Of the leaves of each kind; which are left out the files say."""

HEADER = (
    *("kind", "leaves", "exercised", "steps", "ready", "refused", "stood still", "no write"),
    *("most passes", "most requests", "deviations"),
)


class Lane:
    """Trips of one form, one after another."""

    def __init__(
        self,
        stage: run.Stage,
        path: Path,
        form: declared.Form,
        numbers: Sequence[int],
        steps: int,
        told: report.Report,
    ) -> None:
        self._stage, self._path, self._form, self._steps, self._told = stage, path, form.name, steps, told
        self._left = list(numbers)
        self.kind, self.cost, self.bad = form.kind, walk.Cost(), list[str]()

    async def travel(self, room: asyncio.Semaphore) -> None:
        """All of them; after one that deviates, or can't be taken back, goes on with a new object."""
        while self._left:
            async with room:
                await self._travel()

    def _deviates(self, text: str) -> None:
        self.bad.append(text)
        self._told.say(text)

    async def _travel(self) -> None:
        where = scenario.FOLDER / f"{declared.load(self._path, 'none').scenario}.yaml"
        it = run.Run(self._stage, where)
        system = declared.load(self._path, it.namespace)
        form = next(each for each in system.forms if each.name == self._form)
        schema = _schemas(it.scenario)[form.kind]
        known = {each.number: each for each in trips.all_of(form, schema, seed=report.SEED, steps=self._steps)}
        async with it.running():
            walker = walk.Walk(it, self._stage.client, system, form, schema)
            try:
                await walker.begin()
            except run.Deviation as error:
                self._deviates(f"{self._form}: can't begin: {error}")
                self._left.clear()
            while self._left:
                trip = known[self._left.pop(0)]
                try:
                    await walker.make(trip)
                except run.Deviation as error:
                    self._deviates(f"{trip.told}: {error}")
                    break
                if trip.verdict.stays:
                    break
            self.cost.add(walker.cost)


def _schemas(of: scenario.Scenario) -> dict[str, schemas.Schema]:
    """Of the spec of each kind."""
    return {body["spec"]["names"]["kind"]: schemas.spec_of(body) for body in scenario.definitions(of)}


async def _campaign(stage: run.Stage, path: Path, told: report.Report, *, whole: bool) -> None:
    system = declared.load(path, "none")
    played = scenario.load(scenario.FOLDER / f"{system.scenario}.yaml", "none")
    await stage.define(played)
    known, share = _schemas(played), -(-WHOLE // len(system.forms))
    lanes: list[Lane] = []
    used: dict[str, set[str]] = defaultdict(set)
    only = os.environ.get("TRIP", "").split()
    for form in system.forms:
        drawn = trips.all_of(form, known[form.kind], seed=report.SEED, steps=share)
        if only:
            drawn = [it for it in drawn if it.id in only or it.form in only]
        elif not whole:
            drawn = trips.some_of(drawn, system.daily, seed=report.SEED)
        used[form.kind] |= trips.exercised(drawn, known[form.kind])
        chunk = min(CHUNK, max(1, -(-len(drawn) // TOGETHER)))
        for first in range(0, len(drawn), chunk):
            numbers = [it.number for it in drawn[first : first + chunk]]
            lanes.append(Lane(stage, path, form, numbers, share, told))
    room = asyncio.Semaphore(TOGETHER)
    await asyncio.gather(*(lane.travel(room) for lane in lanes))
    rows = [_row(kind, known[kind], names, [it for it in lanes if it.kind == kind]) for kind, names in used.items()]
    told.table(HEADER, rows)

    assert [] == [line for lane in lanes for line in lane.bad]
    assert lanes
    assert not whole or only or all(len(names) >= ENOUGH * len(leaves.of(known[kind])) for kind, names in used.items())


def _row(kind: str, schema: schemas.Schema, used: set[str], lanes: Sequence[Lane]) -> report.Row:
    cost = walk.Cost()
    for lane in lanes:
        cost.add(lane.cost)
    steps = (cost.steps, cost.ready, cost.refused, cost.still, cost.same, cost.passes, cost.requests)
    return kind, len(leaves.of(schema)), len(used), *steps, sum(len(lane.bad) for lane in lanes)


@pytest.mark.parametrize("path", declared.everyday(), ids=lambda path: path.stem)
async def test_some_changes(stage: run.Stage, path: Path, told: report.Report) -> None:
    await _campaign(stage, path, told, whole=False)


@pytest.mark.campaign
@pytest.mark.parametrize("path", declared.files(), ids=lambda path: path.stem)
async def test_every_change(stage: run.Stage, path: Path, told: report.Report) -> None:
    await _campaign(stage, path, told, whole=True)
