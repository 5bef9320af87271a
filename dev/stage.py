"""Stages of a long job as a person watches them: a live line on a terminal, plain lines with times elsewhere.

A command's output goes to a file below `build/logs`, its last line is shown while it runs, and the end of the file is
shown when it fails.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent import futures
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "logs"
LIVE, PLAIN, FIRST = 0.15, 20.0, 2.0
"""Seconds between two lines, on a terminal and elsewhere; elsewhere the first comes sooner."""

TAIL = 40
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")

_screen = threading.RLock()
_shown: list[Stage] = []
"""Stages under way; on a terminal the first of them has the live line."""


class Failed(Exception):  # noqa: N818 - it names what happened
    """A stage did not end well. The message says what, why and what to do."""


class Stage:
    """One stage. `say` tells what it is at; `skip` that there was nothing to do."""

    def __init__(self, title: str) -> None:
        self.title, self._detail, self._skipped = title, "", ""
        self._began = time.monotonic()
        self._over = threading.Event()
        self._live = sys.stdout.isatty()
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def say(self, detail: str) -> None:
        """What the stage is at, in a few words."""
        changed, self._detail = detail != self._detail, detail
        if changed and not self._live:
            self._line("…")

    def hint(self, detail: str) -> None:
        """As `say`, for words that only a live line has room for."""
        self._detail = detail

    def skip(self, why: str = "unchanged") -> None:
        """There was nothing to do."""
        self._skipped = why

    def run(self, *command: str | Path, environment: Mapping[str, str] | None = None, folder: Path = ROOT) -> str:
        """Run a command; returns its output. Raises Failed with the end of it."""
        LOGS.mkdir(parents=True, exist_ok=True)
        path = LOGS / f"{re.sub(r'[^a-z0-9]+', '-', self.title.lower()).strip('-')}.log"
        words = [str(word) for word in command]
        with path.open("w") as log:
            running, lines = spawn(words, environment or {}, folder)
            for line in lines:
                log.write(line)
                log.flush()
                if shown := _ESCAPES.sub("", line).strip():
                    self.hint(shown)
        text = path.read_text()
        if running.wait():
            raise Failed(f"`{' '.join(words)}` ended with {running.returncode}:\n{tail(text)}\nWhole output: {path}")
        self._detail = ""
        return text

    # --- showing -----------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start to show it."""
        with _screen:
            _shown.append(self)
        self._ticker.start()

    def end(self, *, failed: bool) -> None:
        """Show how it ended."""
        self._over.set()
        self._ticker.join()
        self._detail = self._skipped or self._detail
        mark = "✗" if failed else "·" if self._skipped else "✓"
        start = "\r\x1b[K" if self._live else ""
        with _screen:
            _shown.remove(self)
            print(f"{start}{self._text(_painted(mark, self._live))}", flush=True)

    def _tick(self) -> None:
        count = 0
        while not self._over.wait(LIVE if self._live else PLAIN if count else FIRST):
            count += 1
            if not self._live:
                self._line("…")
                continue
            with _screen:
                if _shown[:1] == [self]:
                    width = os.get_terminal_size().columns if sys.stdout.isatty() else 80
                    print(f"\r{self._text(_FRAMES[count % len(_FRAMES)])[: width - 1]}\x1b[K", end="", flush=True)

    def _line(self, mark: str) -> None:
        with _screen:
            print(self._text(mark), flush=True)

    def _text(self, mark: str) -> str:
        return f"{mark} {self.title:<34} {time.monotonic() - self._began:6.1f} s  {self._detail[:160]}".rstrip()


@contextlib.contextmanager
def stage(title: str) -> Iterator[Stage]:
    """Show a stage while the block runs."""
    made = Stage(title)
    made.begin()
    try:
        yield made
    except BaseException:
        made.end(failed=True)
        raise
    made.end(failed=False)


def together(*jobs: Callable[[], Any]) -> list[Any]:
    """Do all at once; returns what they return, in order. Raises the first failure, when all have ended."""
    with futures.ThreadPoolExecutor(len(jobs)) as pool:
        begun = [pool.submit(job) for job in jobs]
        ended, _ = futures.wait(begun, return_when=futures.FIRST_EXCEPTION)
    if error := next(filter(None, (each.exception() for each in ended)), None):
        raise error
    return [each.result() for each in begun]


def spawn(
    words: Sequence[str], environment: Mapping[str, str], folder: Path = ROOT
) -> tuple[subprocess.Popen[str], Iterable[str]]:
    """Start a command; returns it with the lines of both its outputs as they come."""
    running = subprocess.Popen(
        words,
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert running.stdout is not None
    return running, running.stdout


def tail(text: str, lines: int = TAIL) -> str:
    """The end of an output, set in."""
    return "\n".join(f"    {line}" for line in text.rstrip().splitlines()[-lines:])


def main(job: Sequence[str], work: object) -> int:
    """Run `work()` and turn what went wrong into words for a person."""
    assert callable(work)
    try:
        return int(work() or 0)
    except Failed as error:
        print(f"\n{' '.join(job)} did not succeed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _painted(mark: str, live: bool) -> str:
    colour = {"✓": "32", "✗": "31"}.get(mark)
    return f"\x1b[{colour}m{mark}\x1b[0m" if live and colour else mark
