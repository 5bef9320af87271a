"""What is wrong with the workflows of a spec, by its fields. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from moorage.operators.kre.krt import graph, model, problems

MOST_NOTES = 20
"""Of those that are kept: they stand in a status."""


class Told(msgspec.Struct, frozen=True):
    """What is wrong, where, and what to do; and what is odd, and works."""

    errors: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


class _Heard:
    """Keeps it by the field's path."""

    def __init__(self) -> None:
        self.wrong: list[tuple[str, str]] = []
        self.odd: list[str] = []

    @property
    def errors(self) -> int:
        return len(self.wrong)

    def tell(self, severity: problems.Severity, path: problems.Path, message: str, fix: str = "") -> None:
        field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
        if severity == "error":
            self.wrong.append((f"spec{field}: {message}", fix))
        elif len(self.odd) < MOST_NOTES:
            self.odd.append(f"spec{field}: {message}")


def told(workflows: Iterable[model.Workflow]) -> Told:
    """Of these workflows."""
    found = _Heard()
    for at, workflow in enumerate(workflows):
        graph.check(workflow, ("workflows", at), found, sound=True)
    return Told(tuple(found.wrong), tuple(found.odd))
