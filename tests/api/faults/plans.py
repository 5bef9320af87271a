"""Plans: which fault comes when. Each is drawn from a seed alone, so that the same seed means the same draws."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from . import faulty, proxy

GENTLE = tuple(word for word in faulty.WRITES if "kill" not in word)
"""What a process survives."""


class Dice:
    """Draws words with probability `rate`, and counts them in `faults` by what they befell."""

    def __init__(self, seed: int, words: Mapping[str, Sequence[str]], rate: float = 0.0) -> None:
        self.rate, self.words = rate, dict(words)
        self.faults: Counter[tuple[str, str]] = Counter()
        self._random = random.Random(seed)

    @property
    def total(self) -> int:
        """Faults so far."""
        return self.faults.total()

    def draw(self, on: str, may: Callable[[str], bool] = lambda _: True) -> str:
        """What befalls one of these, or ""."""
        words = self.words.get(on, ())
        if not words or self._random.random() >= self.rate:
            return ""
        word = self._random.choice(words)
        if not may(word):
            return ""
        self.faults[on, word] += 1
        return word


ANYTHING = {
    "write": GENTLE,
    "read": tuple(faulty.READS),
    "watch": tuple(faulty.WATCHES),
    "event": tuple(faulty.EVENTS),
}


class Chaos(Dice, faulty.Plan):
    """Anything may happen to anything."""

    touches_events = True
    page = 3

    def __init__(self, seed: int, rate: float = 0.0, *, words: Mapping[str, Sequence[str]] = ANYTHING) -> None:
        super().__init__(seed, words, rate)
        self.pause = 0.05

    def write(self, it: faulty.Write) -> str:
        """See `faulty.Plan`."""
        return self.draw("write")

    def read(self, it: faulty.Read) -> str:
        """See `faulty.Plan`. Only a further page can be too old."""
        return self.draw("read", lambda word: word != "410" or it.is_further_page)

    def watch(self, it: faulty.Read) -> str:
        """See `faulty.Plan`."""
        return self.draw("watch")

    def event(self, it: faulty.Read, line: bytes) -> str:
        """See `faulty.Plan`."""
        return self.draw("event")


class Below(Dice):
    """The same for a proxy: requests and pieces of answers of real connections."""

    def judge(self, it: proxy.Exchange) -> str:
        """See `proxy.Proxy`. Silence is kept for what has a short deadline, the reads."""
        return self.draw("request", lambda word: "stall" not in word or it.method == "GET")

    def judge_chunk(self, it: proxy.Exchange, _: bytes) -> str:
        """See `proxy.Proxy`."""
        return self.draw("chunk") if it.is_watch else ""


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


class Partition(faulty.Plan):
    """While `closed`, nothing gets through either way; `deaf` lets writes through, but none of their answers."""

    touches_events = True

    def __init__(self) -> None:
        self.closed = self.deaf = False

    def write(self, it: faulty.Write) -> str:
        """See `faulty.Plan`."""
        return "drop" if self.closed else "lose" if self.deaf else ""

    def apart(self, it: faulty.Write) -> str:
        """See `faulty.Plan`."""
        return self.write(it)

    def read(self, it: faulty.Read) -> str:
        """See `faulty.Plan`."""
        return "refused" if self.closed else "lose" if self.deaf else ""

    def watch(self, it: faulty.Read) -> str:
        """See `faulty.Plan`."""
        return "refused" if self.closed or self.deaf else ""

    def event(self, it: faulty.Read, line: bytes) -> str:
        """See `faulty.Plan`."""
        return "reset" if self.closed or self.deaf else ""
