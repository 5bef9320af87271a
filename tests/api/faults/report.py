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

Row = tuple[Any, ...]


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

    async def rows(self, header: Sequence[str], runs: Iterable[Coroutine[Any, Any, Row]], *, good: str) -> list[Row]:
        """What runs give, a table of it in the end, and each row that doesn't end in `good` as soon as it is there."""

        async def told(run: Coroutine[Any, Any, Row]) -> Row:
            row = await run
            if row[-1] != good:
                self.say("  ".join(map(str, row)))
            return row

        rows = await asyncio.gather(*map(told, runs))
        self.table(header, rows)
        return rows

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
