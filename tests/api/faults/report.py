"""What campaigns tell: tables in build/faults/, and on the terminal where the runner lets them through."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).parents[3] / "build" / "faults"
SEED = int(os.environ.get("MOORAGE_TEST_SEED") or 20261128)


class Report:
    """One table with what was asked for above and what it took below."""

    def __init__(self, name: str, test: str) -> None:
        self._name, self._began = name, time.monotonic()
        self.lines = [f"{name}, seed {SEED}", f"again: MOORAGE_TEST_SEED={SEED} .venv/bin/pytest '{test}' -s", ""]

    def say(self, text: str) -> None:
        """One line."""
        self.lines.append(text)

    def table(self, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Columns as wide as they need be; numbers to the right."""
        texts = [[*header], *([str(cell) for cell in row] for row in rows)]
        widths = [max(len(row[column]) for row in texts) for column in range(len(header))]
        for row in texts:
            cells = (
                cell.rjust(width) if cell.replace(".", "").isdigit() else cell.ljust(width)
                for cell, width in zip(row, widths, strict=True)
            )
            self.lines.append("  ".join(cells).rstrip())

    def close(self) -> str:
        """Write it down."""
        self.say(f"\n{time.monotonic() - self._began:.0f} s")
        text = "\n".join(self.lines) + "\n"
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / f"{self._name.replace(' ', '-')}.txt").write_text(text)
        print(f"\n{text}")
        return text
