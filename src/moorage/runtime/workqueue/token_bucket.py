"""A token bucket: so many at once, then so many per second. No I/O."""

from __future__ import annotations

import time
from collections.abc import Callable


class Bucket:
    """Holds up to `burst` tokens, and gains `rate` of them per second."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, float(burst), clock
        self._tokens, self._at = float(burst), clock()

    def take(self) -> bool:
        """Take a token, if there is one."""
        self._fill()
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def give_back(self) -> None:
        """A token that was taken was not needed."""
        self._fill()
        self._tokens = min(self._burst, self._tokens + 1)

    def wait(self) -> float:
        """Seconds until there is a token; 0 when there is one."""
        self._fill()
        return max(0.0, 1 - self._tokens) / self._rate

    def _fill(self) -> None:
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._at = now
