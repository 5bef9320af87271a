"""Says what a long step is doing: one live line on a terminal, a line every so often elsewhere."""

import sys
import threading
import time
from types import TracebackType
from typing import Self, TextIO

LIVE_INTERVAL = 0.5
PLAIN_INTERVAL = 20.0


class Step:
    """A step that takes a while, shown with the seconds it has taken so far; use it in a `with` statement.

    A step that ends within a second says nothing when `quiet`.
    """

    def __init__(self, title: str, out: TextIO = sys.stderr, *, quiet: bool = False) -> None:
        self._title = title
        self._out = out
        self._quiet = quiet
        self._live = out.isatty()
        self._over = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True)
        self._began = 0.0

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        self._ticker.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._ticker.join()
        if self._quiet and kind is None and self._elapsed() < 1:
            return
        word = "failed" if kind else "done"
        start, end = ("\r", "\033[K\n") if self._live else ("", "\n")
        self._write(f"{start}{self._title}: {word} in {self._elapsed():.1f} s{end}")

    def _tick(self) -> None:
        while not self._over.wait(LIVE_INTERVAL if self._live else PLAIN_INTERVAL):
            start, end = ("\r", "\033[K") if self._live else ("", "\n")
            self._write(f"{start}{self._title}: {self._elapsed():.0f} s{end}")

    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
