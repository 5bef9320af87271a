"""How much the API server can take: when it sheds load, all work pauses together instead of each key on its own.

A refusal for want of capacity (429, 503, or any that names a time to wait) begins a pause: as long as the server asks
for, and longer with each further one. After it a single key is tried. Once the server has taken a write, or nothing was
refused for a while, everything goes on. No I/O; knows no keys.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import structlog

from moorage.kube import errors

SHEDDING = frozenset({429, 503})
"""Codes by which a server says that it has too much to do."""

log = structlog.get_logger(__name__)

FIRST = 1.0
"""Seconds of the first pause, if the server names no longer time; doubled with each that follows."""

LONGEST = 60.0
"""Seconds that a pause lasts at most, whatever the server asks for: the next try then asks anew."""

TRIAL = 10.0
"""Seconds after a pause for which one key at a time is tried, unless a write shows before that all is well."""


class Pressure:
    """One API server's. Times are monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, rng: random.Random | None = None) -> None:
        self._clock = clock
        self._rng = rng or random.Random()  # noqa: S311 - jitter, not a secret
        self._strength = 0
        self._until = 0.0  # when the pause ends, or has ended

    def told(self, error: Exception) -> float:
        """An error of a request: take note if it is for want of capacity. Seconds that the server asks to wait."""
        match error:
            case errors.TooManyRequests() | errors.ServerError() if error.retry_after or error.status.code in SHEDDING:
                self.refused(error.retry_after)
                return error.retry_after
        return 0.0

    def refused(self, after: float) -> None:
        """The server has refused, and asks to wait for so many seconds (0: it names no time)."""
        now = self._clock()
        if now >= self._until:  # those that were under way when the pause began count once
            self._strength += 1
            after = max(after, FIRST * 2.0 ** min(self._strength - 1, 10))
            log.warning("the API server sheds load; work pauses", seconds=round(min(after, LONGEST), 1))
        self._until = max(self._until, now + min(after, LONGEST) * self._rng.uniform(1.0, 1.2))

    def eased(self) -> None:
        """The server has taken a write."""
        if self._strength and self._clock() >= self._until:
            self._strength = 0
            log.info("the API server takes writes again")

    def room(self, working: int) -> bool:
        """Whether one more key may be begun beside so many."""
        if not self._strength:
            return True
        now = self._clock()
        if now < self._until:
            return False
        return working == 0 or now >= self._until + TRIAL

    def changes_at(self) -> float:
        """When there may be more room than now, if no write shows it before; in the past when all goes on."""
        return self._until if self._clock() < self._until else self._until + TRIAL
