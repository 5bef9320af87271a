"""Puts the tables of a run into docs/benchmarks.md, between two marks; the words around them are people's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks import table
from benchmarks.results import Rounds

BEGIN, END = "<!-- begin: written by make bench -->", "<!-- end: written by make bench -->"


def tables(figures: Rounds, facts: Sequence[tuple[str, str]]) -> str:
    """Targets, medians and machine."""
    return "\n\n".join(
        (
            "### Targets",
            table.targets(figures),
            "### Medians",
            "In brackets: moorage's figure as a multiple of this one, round by round, with the 95 % interval.",
            table.medians(figures),
            "### Machine",
            table.facts(facts),
        )
    )


def put(text: str, page: str) -> str:
    """The page with `text` between the marks. Raises ValueError when it has none."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the page has no place for the tables: {BEGIN} ... {END}")
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def write(file: Path, text: str) -> None:
    """Put it there."""
    file.write_text(put(text, file.read_text()))
