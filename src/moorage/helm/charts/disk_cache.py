"""Chart archives kept on disk under their digest. I/O.

`sha256/<hex>.tgz`, written whole or not at all, and checked at every read: a file that doesn't have the digest of its
name is dropped and counts as absent. So a full disk, a crash or a flipped bit costs one more download, nothing else.
The folder lies in memory, so it has a bound: what was not looked for longest makes room, unless somebody needs it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import tempfile
import time
from collections.abc import Collection
from pathlib import Path

from . import chart_archive, chart_folder

__all__ = ["Cache"]

ROOM = 64 << 20  # bytes; the volume has twice as much, for helm's own files
JUST_USED = 120.0  # seconds for which a file stays, as helm may be about to open it
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class Cache:
    """One folder of archives. All methods block; call them in a thread."""

    def __init__(self, root: Path, room: int = ROOM) -> None:
        self._room = room
        self._folder = root / "sha256"
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def path(self, digest: str) -> Path:
        """Where the archive of this digest is or would be. Raises ValueError for a text that is no digest."""
        if not _DIGEST.fullmatch(digest):
            raise ValueError(f"{digest!r} is not a digest of the form sha256:HEX")
        return self._folder / f"{digest.removeprefix('sha256:')}.tgz"

    def find(self, digest: str) -> Path | None:
        """The archive, verified; None if it isn't there or isn't what it should be."""
        path = self.path(digest)
        try:
            if chart_folder.digest(path, digest) == digest:
                os.utime(path)
                return path
        except (OSError, chart_archive.ChartInvalid):
            pass
        with contextlib.suppress(OSError):
            path.unlink()
        return None

    def put(self, digest: str, archive: bytes, needed: Collection[str] = ()) -> Path:
        """Keeps an archive, in place of others than the `needed`. Raises OSError when there is no room for it."""
        path = self.path(digest)
        self._make_room(len(archive), {self.path(each) for each in (*needed, digest)})
        handle, name = tempfile.mkstemp(dir=self._folder, prefix=".new-")
        try:
            with open(handle, "wb") as file:
                file.write(archive)
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
        return path

    def drop(self, digest: str) -> None:
        """Forget an archive that is of no use."""
        with contextlib.suppress(OSError):
            self.path(digest).unlink()

    def _make_room(self, size: int, needed: Collection[Path]) -> None:
        kept = sorted((found.stat().st_mtime, found.stat().st_size, found) for found in self._folder.glob("*.tgz"))
        total = size + sum(length for _, length, path in kept)
        for used, length, path in kept:
            if total <= self._room:
                return
            if path not in needed and time.time() - used > JUST_USED:
                path.unlink(missing_ok=True)
                total -= length
        if total > self._room:
            message = f"{self._room >> 20} MiB are full of charts that are in use"
            raise OSError(errno.ENOSPC, message)
