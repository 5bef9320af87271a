"""A chart folder as a deterministic archive. I/O: reads files, writes none.

The same files give the same bytes, whatever their times, owners and order on the disk, so that a chart under
development changes its digest when it changes and only then. The digest is of the tar, as gzip depends on the zlib.
"""

from __future__ import annotations

import fnmatch
import gzip
import hashlib
import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

from . import chart_archive

__all__ = ["digest", "pack"]

IGNORE_FILE = ".helmignore"
_ALWAYS_IGNORED = ("templates/.?*",)  # as helm does


def pack(folder: Path) -> tuple[bytes, str]:
    """(the .tgz, its digest) of a chart folder, without what its .helmignore names. Raises ChartInvalid."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.PAX_FORMAT) as out:
        for name, path in sorted(_files(folder)):
            data = path.read_bytes()
            member = tarfile.TarInfo(f"{folder.resolve().name}/{name}")
            member.size, member.mode = len(data), 0o644
            out.addfile(member, io.BytesIO(data))
    plain = tar.getvalue()
    return gzip.compress(plain, mtime=0), f"sha256:{hashlib.sha256(plain).hexdigest()}"


def digest(archive: Path, expected: str) -> str:
    """The digest of an archive in the form that `expected` has: that of the bytes, or of the tar of a packed folder."""
    with archive.open("rb") as file:
        found = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
        if found != expected:
            file.seek(0)
            inner = chart_archive.tar_digest(file)
            return inner if inner == expected else found
    return found


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    rules = _rules(folder)
    real, total = folder.resolve(), 0
    for here, folders, names in os.walk(folder):
        inside = os.path.relpath(here, folder).replace(os.sep, "/")
        prefix = "" if inside == "." else f"{inside}/"
        folders[:] = [f for f in folders if not _ignored(prefix + f, rules, is_folder=True)]
        for name in names:
            path = Path(here, name)
            if _ignored(prefix + name, rules, is_folder=False):
                continue
            if not path.resolve().is_relative_to(real) or not path.is_file():
                raise chart_archive.ChartInvalid(f"{prefix}{name} leads out of the chart's folder or is no file")
            total += path.stat().st_size
            if total > chart_archive.MAX_UNPACKED:
                raise chart_archive.ChartInvalid(f"the folder holds more than {chart_archive.MAX_UNPACKED} bytes")
            yield prefix + name, path


def _rules(folder: Path) -> list[str]:
    ignore = folder / IGNORE_FILE
    lines = ignore.read_text().splitlines() if ignore.is_file() else []
    return [*_ALWAYS_IGNORED, *(t for line in lines if (t := line.strip()) and not t.startswith("#"))]


def _ignored(name: str, rules: list[str], *, is_folder: bool) -> bool:
    """Helm's rules: a rule with a slash is about the path, one without about the last part; `!` turns a rule round."""
    for rule in rules:
        wanted, pattern = not rule.startswith("!"), rule.removeprefix("!")
        if pattern.endswith("/") and not is_folder:
            continue
        pattern = pattern.rstrip("/")
        about = name if "/" in pattern else name.rpartition("/")[2]
        if fnmatch.fnmatchcase(about, pattern.lstrip("/")) == wanted:
            return True
    return False
