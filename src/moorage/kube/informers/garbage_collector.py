"""How the garbage collector treats caches: its thresholds and its permanent generation, which belong to the process.

While many objects are made that will stay, a collection of older generations walks all of them and finds nothing: a
second for 50,000 raw objects. So only young ones are looked at while any cache fills, and what a big fill leaves behind
is frozen: no later collection looks at it. It is still freed with its last reference, as what a server sends has no
cycles. The price is other garbage that has cycles and is there just then: it stays, so small fills freeze nothing.
"""

from __future__ import annotations

import gc

__all__ = ["FILLING", "Filling", "settle"]

_YOUNG = 25_000  # containers that a collection walks while a cache fills: some 5 ms
_WORKING = 10_000  # likewise while no cache fills: some 2 ms
_NEVER = 1_000_000
_BIG = 2  # collections of that size


class Filling:
    """`with FILLING: ...` around all that fills a cache. One object counts all who do so at once."""

    def __init__(self) -> None:
        self._users = 0
        self._normal = gc.get_threshold()
        self._before = 0

    def __enter__(self) -> None:
        if self._users == 0:
            self._normal, self._before = gc.get_threshold(), _collections()
            gc.set_threshold(_YOUNG, _NEVER, _NEVER)
        self._users += 1

    def __exit__(self, *_: object) -> None:
        self._users -= 1
        if self._users == 0:
            if _collections() - self._before >= _BIG:
                gc.freeze()  # before the thresholds: they would have it all walked at once
            gc.set_threshold(*self._normal)


def settle() -> None:
    """At the end of start-up: what was imported is never walked again, which is most of a full collection's time.

    And the young are looked at less often than Python does by itself: with requests under way most of them live on, so
    that each look only costs time (a twentieth of all), and little of what passes leave behind has cycles.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_WORKING, *gc.get_threshold()[1:])


def _collections() -> int:
    return int(gc.get_stats()[0]["collections"])


FILLING = Filling()
