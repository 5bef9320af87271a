"""How the garbage collector treats caches: its thresholds and its permanent generation, which belong to the process.

While many objects are made that will stay, a collection walks all of them and finds nothing: half a second for 20,000
raw objects. So collections are rare while any cache fills, and what a big fill leaves behind is frozen: no later
collection looks at it. It is still freed with its last reference, as what a server sends has no cycles.
"""

from __future__ import annotations

import gc

__all__ = ["FILLING", "Filling"]

_RARE = (50_000, 50, 1000)
_MANY = 5_000  # objects that are worth a freeze; each also keeps what other garbage with cycles there is just then


class Filling:
    """`with FILLING: ...` around all that fills a cache. One object counts all who do so at once."""

    def __init__(self) -> None:
        self._users = 0
        self._made = 0
        self._normal = gc.get_threshold()

    def made(self, objects: int) -> None:
        """So many objects were made that will stay."""
        self._made += objects

    def __enter__(self) -> None:
        if self._users == 0:
            self._normal = gc.get_threshold()
            gc.set_threshold(*_RARE)
        self._users += 1

    def __exit__(self, *_: object) -> None:
        self._users -= 1
        if self._users == 0:
            if self._made >= _MANY:
                gc.freeze()
            self._made = 0
            gc.set_threshold(*self._normal)


FILLING = Filling()
