"""The system that docs/write-a-system.md builds works as it is printed there."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import kills, report, run

ROOT = Path(__file__).parents[3]
FILE = re.compile(r"^```(?:python|yaml)\n# (\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """All files of the page, in a folder that can be imported from."""
    folder = tmp_path / "page"
    for name, text in FILE.findall((ROOT / "docs" / "write-a-system.md").read_text()):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(folder)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "widget"]:
        del sys.modules[name]


async def test_its_own_test_passes(written: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_widget.py"]
    said = asyncio.subprocess.PIPE
    environment = {**os.environ, "PYTHONPATH": str(written)}
    running = await asyncio.create_subprocess_exec(*command, cwd=written, env=environment, stdout=said)
    out, _ = await running.communicate()

    assert 0 == running.returncode, out.decode()
    assert "3 passed" in out.decode()


async def test_it_survives_every_kill(stage: run.Stage, written: Path, told: report.Report) -> None:
    await kills.campaign(stage, written / "scenario.yaml", told, whole=True)
