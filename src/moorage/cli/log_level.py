"""The log level follows the configuration file while the operator runs.

A mounted ConfigMap changes under the running process, in every replica and with the rights that its namespace's owner
has anyway; so there is no port and no signal for it. Only `logLevel` is taken over: all else needs a new start. It
reads the file, and sets the level; of a file that can't be used it says so once, and the level stays.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import structlog

from moorage import config as config_file
from moorage.runtime.reporting import telemetry

log = structlog.get_logger(__name__)

EVERY = 5.0
"""Seconds between two looks at the file, which cost nothing while it is the same."""


class Follower:
    """One file's. `level` is the one that is in force."""

    def __init__(self, path: Path, level: str) -> None:
        self._path, self.level = path, level
        self._stamp = self._look()

    async def run(self, every: float = EVERY) -> None:
        """Follow the file until cancelled."""
        while True:
            await asyncio.sleep(every)
            self.turn()

    def turn(self) -> None:
        """Look once."""
        stamp = self._look()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            level = config_file.log_level(self._path)
            if level.lower() != self.level.lower():
                telemetry.set_level(level)
                log.warning("log level changed", level=level, before=self.level)  # to be seen whatever the level
                self.level = level
        except (config_file.ConfigError, ValueError) as error:
            log.warning("log level stays, as the configuration can't be used", level=self.level, error=str(error))

    def _look(self) -> tuple[int, int, int]:
        """Changes when the file does; a mounted ConfigMap becomes another file."""
        try:
            found = self._path.stat()
        except OSError:
            return (0, 0, 0)
        return (found.st_ino, found.st_mtime_ns, found.st_size)
