"""The figures of one run: case -> runtime -> figure -> one value for each round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

RUNTIMES = ("moorage", "controller-runtime", "controller-runtime-ryw", "kube-rs", "kopf", "limit")
"""That a Widget operator is written on."""

COLUMNS = (*RUNTIMES, "helm")
"""Of the table: `helm` installs releases, and looks after no Widget."""

Rounds = dict[str, dict[str, dict[str, list[float]]]]


class Results:
    """Collects them, and writes them down after each round, so that a run that is cut leaves what it found."""

    def __init__(self, file: Path, *, keep: bool = False) -> None:
        """With `keep` what the file has stays, but for the cases that are taken anew."""
        self._file = file
        self._taken: set[str] = set()
        self.figures: Rounds = {}
        if keep and file.exists():
            self.figures = msgspec.json.decode(file.read_bytes(), type=Rounds)

    def _of(self, case: str, runtime: str) -> dict[str, list[float]]:
        if case not in self._taken:
            self._taken.add(case)
            self.figures[case] = {}
        return self.figures[case].setdefault(runtime, {})

    def add(self, case: str, runtime: str, figures: Mapping[str, float]) -> None:
        """One round of a case."""
        of = self._of(case, runtime)
        for name, value in figures.items():
            of.setdefault(name, []).append(round(float(value), 6))

    def set(self, case: str, runtime: str, figure: str, rounds: Sequence[float]) -> None:
        """All rounds of one figure."""
        self._of(case, runtime)[figure] = [round(float(it), 6) for it in rounds]

    def save(self) -> None:
        """Write the file."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_bytes(msgspec.json.format(msgspec.json.encode(self.figures), indent=1) + b"\n")
