"""What a `.krt` archive of a folder would hold. I/O: reads the folder, follows no links."""

from __future__ import annotations

import os
from pathlib import Path

from . import files

__all__ = ["read"]


def read(folder: Path) -> files.Files:
    """The files of the folder. Raises files.KrtError for more than an archive may hold, and OSError."""
    inventory = files.Inventory()
    for here, folders, names in os.walk(folder, onerror=_raise):
        inside = os.path.relpath(here, folder).replace(os.sep, "/")
        prefix = "" if inside == "." else f"{inside}/"
        folders.sort()
        for each in sorted((*folders, *names)):
            if name := inventory.entry(prefix + each):
                _take(Path(here, each), name, inventory)
    return inventory.files()


def _take(path: Path, name: str, inventory: files.Inventory) -> None:
    if path.is_symlink():
        inventory.tell(f"{name} is a link", "put what it leads to in its place: an archive may hold no links")
    elif path.is_dir():
        inventory.folder(name)
    elif path.is_file():
        inventory.file(name, path.stat().st_size, path.read_bytes)
    else:
        inventory.tell(f"{name} is neither a file nor a folder", "leave it out")


def _raise(error: OSError) -> None:
    raise error
