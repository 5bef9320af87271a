"""What each run of helm uses, whoever starts it: a helm in front of the real one, which writes that down.

It is a shell script, as a shell can tell what its children used, and costs a millisecond.
"""

from __future__ import annotations

import shutil
import stat
from pathlib import Path


class Meter:
    """A helm that writes down what it used, in a folder of its own; for one installation of them all."""

    def __init__(self, folder: Path, helm: Path) -> None:
        """The folder is made anew."""
        shutil.rmtree(folder, ignore_errors=True)
        self._runs = folder / "runs"
        self._runs.mkdir(parents=True)
        self.path = folder / "helm"
        self.path.write_text(
            f'#!/bin/sh\n"{helm}" "$@"\ncode=$?\n{{ echo "$1"; times; }} >>"{self._runs}/$$"\nexit $code\n'
        )
        self.path.chmod(stat.S_IRWXU)

    def read(self) -> list[tuple[str, float]]:
        """Verb and CPU seconds of each run that has ended, in steps of 10 ms."""
        return [run for file in self._runs.iterdir() for run in metered(file.read_text())]


def metered(text: str) -> list[tuple[str, float]]:
    """What a shell has told: the verb, its own CPU and that of what it ran, each as user and system time."""
    lines = text.splitlines()
    return [(verb, sum(map(_seconds, used.split()))) for verb, used in zip(lines[::3], lines[2::3], strict=True)]


def _seconds(text: str) -> float:
    minutes, _, seconds = text.rstrip("s").partition("m")
    return 60 * float(minutes) + float(seconds)
