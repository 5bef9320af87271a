"""What campaigns tell: tables of each test, on the terminal and in build/faults/, with the command that repeats it."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[3] / "build" / "faults"
SEED = int(os.environ.get("MOORAGE_TEST_SEED") or 20261128)

GOOD = "as undisturbed"
"""The outcome of a run in which nothing deviates."""

Row = tuple[Any, ...]
"""What is told of a run; its outcome comes last."""


class Report:
    """Lines and tables of one test, by its node id."""

    def __init__(self, test: str) -> None:
        self._began = time.monotonic()
        name = re.sub(r"\W+", "-", test.rpartition("/test_")[2].replace(".py::test_", "-")).strip("-")
        self._path = FOLDER / f"{name}.txt"
        FOLDER.mkdir(parents=True, exist_ok=True)
        self._path.write_text(f"MOORAGE_TEST_SEED={SEED} .venv/bin/pytest '{test}' -s\n\n")

    def say(self, text: str) -> None:
        """One line, written at once: a campaign may be cut."""
        with self._path.open("a") as file:
            file.write(f"{text}\n")

    async def collect(
        self, header: Sequence[str], runs: Iterable[Coroutine[Any, Any, Row]], *, together: int
    ) -> tuple[list[Row], list[Row]]:
        """Rows of all runs, so many `together`, and those that deviate. Each is told at once."""
        room = asyncio.Semaphore(together)
        self.say("  ".join(header))

        async def told(run: Coroutine[Any, Any, Row]) -> Row:
            async with room:
                row = await run
            self.say("  ".join(map(str, row)))
            return row

        rows = await asyncio.gather(*map(told, runs))
        self.say("")
        return rows, [row for row in rows if row[-1] != GOOD]

    def table(self, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Columns as wide as they need be; numbers to the right."""
        texts = [[*header], *([str(cell) for cell in row] for row in rows)]
        widths = [max(len(row[column]) for row in texts) for column in range(len(header))]
        for row in texts:
            cells = (
                cell.rjust(width) if cell.replace(".", "").isdigit() else cell.ljust(width)
                for cell, width in zip(row, widths, strict=True)
            )
            self.say("  ".join(cells).rstrip())
        self.say("")

    def close(self) -> str:
        """All that was said."""
        self.say(f"{time.monotonic() - self._began:.0f} s")
        return self._path.read_text()
