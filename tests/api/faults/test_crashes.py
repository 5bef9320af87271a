"""Killed before or after any write, the next process ends where an undisturbed one does, and makes nothing twice.

The writes are counted in an undisturbed run; then each is run anew with one kill, before the server has the request or
after it has carried it out. The state after each act, and how often each object was made and removed, must be the same.

    pytest tests/api/faults/test_crashes.py -m campaign -k widget     all points of one scenario
    POINT=3-after pytest tests/api/faults/test_crashes.py -k widget   one point again
"""

from __future__ import annotations

from pathlib import Path

import pytest

from . import kills, report, run, scenario


@pytest.mark.parametrize("path", scenario.everyday("kills"), ids=lambda path: path.stem)
async def test_some_kills_are_survived(stage: run.Stage, path: Path, told: report.Report) -> None:
    await kills.campaign(stage, path, told, whole=False)


@pytest.mark.campaign
@pytest.mark.parametrize("path", scenario.files(), ids=lambda path: path.stem)
async def test_every_kill_is_survived(stage: run.Stage, path: Path, told: report.Report) -> None:
    await kills.campaign(stage, path, told, whole=True)
