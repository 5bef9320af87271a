"""The gate through which every write goes: open while this process leads, and only for as long (law 7).

No request begins after the lease's end, and none is given more time than the lease has left. Where there are several
leases, each shard of the objects has its gate, and who works for a shard goes `through` it.
"""

from __future__ import annotations

import contextlib
import contextvars
import math
import time
from collections.abc import Callable, Iterator


class NotLeading(Exception):  # noqa: N818 - a state, not a fault
    """This process may not write: it does not hold the lease, or not for long enough to finish a request."""


class Gate:
    """Says before each write whether it may start, and how long it may take. Always open without election.

    One `within` another is never open longer than that.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, within: Gate | None = None) -> None:
        self._clock, self._within = clock, within
        self._until: float | None = math.inf
        self._inherited = -math.inf

    def open_until(self, until: float | None) -> None:
        """Leadership is held until this monotonic time; None closes the gate."""
        self._until = until

    def inherit(self, until: float) -> None:
        """What a former holder has begun, who did not give the lease back, may be under way until this time."""
        self._inherited = until

    @property
    def settles_in(self) -> float:
        """Seconds until nothing is under way any more that a former holder has begun; 0 when nothing is."""
        own = max(0.0, self._inherited - self._clock())
        return own if self._within is None else max(own, self._within.settles_in)

    @property
    def closes_at(self) -> float:
        """The monotonic time at which the gate closes if it is not opened for longer; -inf when it is closed."""
        own = -math.inf if self._until is None else self._until
        return own if self._within is None else min(own, self._within.closes_at)

    @property
    def left(self) -> float:
        """Seconds until the gate closes by itself; 0 when it is closed."""
        return max(0.0, self.closes_at - self._clock())

    @property
    def is_open(self) -> bool:
        """Whether a write may start now."""
        return self.left > 0

    def timeout(self, wanted: float) -> float:
        """The time in seconds a request may take, so that it ends before the lease does. Raises NotLeading."""
        if not (left := self.left):
            raise NotLeading("the lease is lost; nothing may be written")
        return min(wanted, left)


_THROUGH: contextvars.ContextVar[Gate | None] = contextvars.ContextVar("through", default=None)


@contextlib.contextmanager
def through(it: Gate) -> Iterator[None]:
    """What is written in here, and in tasks started from here, goes through this gate."""
    token = _THROUGH.set(it)
    try:
        yield
    finally:
        _THROUGH.reset(token)


def current(default: Gate) -> Gate:
    """The gate for whatever is done now."""
    return _THROUGH.get() or default
