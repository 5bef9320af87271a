"""Compiles Python files for an image, so that a container with a read-only root starts as fast as any other."""

import py_compile
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from tb.images.archive import Entry

# The byte code is tied to its source by neither time nor hash: nothing in an image changes.
MODE = py_compile.PycInvalidationMode.UNCHECKED_HASH


def compiled(entries: Iterable[Entry], folders: tuple[str, ...]) -> Iterator[Entry]:
    """The byte code of the entries' Python files that lie in these folders; files that do not compile are left out."""
    with tempfile.TemporaryDirectory() as scratch:
        source, target = Path(scratch) / "source.py", Path(scratch) / "target.pyc"
        for entry in entries:
            path = PurePosixPath("/", entry.path)
            if (
                entry.content is None
                or path.suffix != ".py"
                or not any(path.is_relative_to(folder) for folder in folders)
            ):
                continue
            source.write_bytes(entry.content)
            try:
                py_compile.compile(str(source), str(target), dfile=str(path), doraise=True, invalidation_mode=MODE)
            except py_compile.PyCompileError:
                continue
            name = f"{path.stem}.{sys.implementation.cache_tag}.pyc"
            made = Entry.file(
                str(path.parent / "__pycache__" / name).strip("/"), target.read_bytes(), entry.mode & 0o666
            )
            yield made.owned(entry.owner, entry.group)
