"""What an agent keeps in the data volume, so that it knows after a kill what it had begun. No secret is in it."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from . import plan

FILE = "automation-opencga.conf"


class Notes(msgspec.Struct, frozen=True):
    """All of it."""

    document: int = -1  # the version that was applied last
    files: str = ""  # what names the files of that
    migrated: str = ""
    intent: plan.Intent | None = None
    backed_up: str = ""  # the version before whose migration a backup was made


def read(folder: Path) -> Notes:
    """What was kept; nothing where there is none, or none that can be read."""
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=Notes)
    except (OSError, msgspec.MsgspecError):
        return Notes()


def write(folder: Path, notes: Notes) -> None:
    """Kept whole or not at all, and on the disk before this returns. Raises OSError."""
    replace(folder / FILE, msgspec.json.encode(notes), lasting=True)


def replace(path: Path, text: bytes, *, lasting: bool = False) -> None:
    """A file in place of the one before, whole or not at all; `lasting`: also if the node fails. Raises OSError."""
    half = path.with_name(f".{path.name}.new")
    with half.open("wb") as file:
        file.write(text)
        if lasting:
            file.flush()
            os.fsync(file.fileno())
    half.replace(path)
