"""Plans: which fault comes when. Each is drawn from a seed alone, so that the same seed means the same draws."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence

from . import faulty

GENTLE = tuple(word for word in faulty.WRITES if "kill" not in word)
"""What a process survives."""


class Chaos(faulty.Plan):
    """Anything may happen to anything, with probability `rate`. `faults` counts what did."""

    touches_events = True

    def __init__(
        self,
        seed: int = 0,
        rate: float = 0.0,
        *,
        writes: Sequence[str] = GENTLE,
        reads: Sequence[str] = tuple(faulty.READS),
        watches: Sequence[str] = tuple(faulty.WATCHES),
        events: Sequence[str] = tuple(faulty.EVENTS),
        pause: float = 0.05,
    ) -> None:
        self.rate, self.pause = rate, pause
        self.faults: Counter[str] = Counter()
        self.by_kind: Counter[tuple[str, str]] = Counter()
        self._words = {"write": writes, "read": reads, "watch": watches, "event": events}
        self._random = random.Random(seed)

    @property
    def total(self) -> int:
        """Faults so far."""
        return self.faults.total()

    def _draw(self, on: str, may: Callable[[str], bool] = lambda _: True) -> str:
        words = self._words[on]
        if not words or self._random.random() >= self.rate:
            return ""
        word = self._random.choice(words)
        if not may(word):
            return ""
        self.faults[word] += 1
        self.by_kind[on, word] += 1
        return word

    def write(self, it: faulty.Write) -> str:
        """See `faulty.Plan`."""
        return self._draw("write")

    def read(self, it: faulty.Read) -> str:
        """See `faulty.Plan`. Only a further page, or a list at a version, can be too old."""
        return self._draw("read", lambda word: word != "410" or it.is_further_page)

    def watch(self, it: faulty.Read) -> str:
        """See `faulty.Plan`."""
        return self._draw("watch")

    def event(self, it: faulty.Read, line: bytes) -> str:
        """See `faulty.Plan`."""
        return self._draw("event")


class Every(faulty.Plan):
    """The same fault for each event of each watch."""

    touches_events = True

    def __init__(self, word: str, *, pause: float = 0.1) -> None:
        self.word, self.pause = word, pause
        self.events = self.dropped = 0

    def event(self, it: faulty.Read, line: bytes) -> str:
        """See `faulty.Plan`."""
        self.events += 1
        return self.word

    def coalesced(self, dropped: int) -> None:
        """See `faulty.Plan`."""
        self.dropped += dropped
