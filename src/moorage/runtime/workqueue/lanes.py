"""Lanes: keys that share one thing in the world are reconciled one at a time, across controllers.

A key whose lane is taken gives its worker back at once and is woken when the lane is free.
"""

from __future__ import annotations

from collections.abc import Callable

Wake = Callable[[], None]


class Lanes:
    """Which lanes are taken, and who waits for each."""

    def __init__(self) -> None:
        self._taken: dict[str, list[Wake]] = {}

    def enter(self, lane: str, wake: Wake) -> bool:
        """Take the lane, or be woken by `wake` once it is free. Whoever was let in owes a `leave`."""
        if not lane:
            return True
        waiting = self._taken.get(lane)
        if waiting is not None:
            waiting.append(wake)
            return False
        self._taken[lane] = []
        return True

    def leave(self, lane: str) -> None:
        """Free the lane and wake everyone who asked for it meanwhile, in their order."""
        for wake in self._taken.pop(lane, ()):
            wake()
