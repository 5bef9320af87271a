"""What is wrong with a krt file, as data: where, what, and what to do. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Literal, Protocol, TypeAlias

import msgspec

__all__ = ["Ear", "Path", "Problem", "Severity", "meant", "nearest"]

Path: TypeAlias = tuple[str | int, ...]
"""Where in a text: keys of mappings and numbers of lists, from the top."""

Severity: TypeAlias = Literal["error", "warning", "note"]
"""An error keeps the file from being a version; a warning works and is probably not meant; a note is only told."""


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """One of them. Lines and columns count from 1; 0 means that it is about the file as a whole."""

    severity: Severity
    message: str
    fix: str = ""
    file: str = ""  # inside the archive or the folder; empty: that itself
    line: int = 0
    column: int = 0


class Ear(Protocol):
    """Whom problems are told."""

    @property
    def errors(self) -> int:
        """How many errors it was told so far."""

    def tell(self, severity: Severity, path: Path, message: str, fix: str = "") -> None:
        """Note a problem with what stands at `path`."""


def meant(given: str, known: Iterable[str]) -> str:
    """What was probably meant, as a sentence, or which there are."""
    names = sorted(known)
    if near := nearest(given, names):
        return f"did you mean {near}?"
    return f"there are: {', '.join(names)}" if names else "there are none"


def nearest(given: str, known: Iterable[str]) -> str:
    """The name that was probably meant; empty where none is near."""
    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(given[:100].lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[near[0]] if near else ""
