"""Chart archives kept on disk under their digest. I/O.

`sha256/<hex>.tgz`, written whole or not at all, and checked at every read: a file that doesn't have the digest of its
name is dropped and counts as absent. So a full disk, a crash or a flipped bit costs one more download, nothing else.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from pathlib import Path

from moorage.helm import chart, folder

__all__ = ["Cache"]

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class Cache:
    """One folder of archives. All methods block; call them in a thread."""

    def __init__(self, root: Path) -> None:
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
            if folder.digest(path.read_bytes(), digest) == digest:
                return path
        except (OSError, chart.ChartInvalid):
            pass
        with contextlib.suppress(OSError):
            path.unlink()
        return None

    def put(self, digest: str, archive: bytes) -> Path:
        """Keeps an archive. Raises OSError when the disk refuses."""
        path = self.path(digest)
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
