"""How many servers NATS is to have, had, and may have right now. Pure: helm's values and the steps come to the same.

A cluster grows at once. It shrinks by one server at a time, the last one: helm is told of fewer once nothing is on that
one, and the next is not looked at before nothing of it is left.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

LEAST = 3
"""Servers below which no cluster shrinks: two are less than one, as none of them may be away."""


def before(noted: int, claims: Iterable[int], *, there: bool) -> int:
    """How many may hold streams: as many as were written down, or have a volume, by its ordinal.

    None where nothing of NATS is `there` and it has no volume.
    """
    counts = [ordinal + 1 for ordinal in claims]
    return max([noted, *counts]) if counts or there else 0


class Size(msgspec.Struct, frozen=True):
    """Of one cluster. `scaled` is what helm was told while the last server leaves, or 0."""

    wanted: int
    had: int
    scaled: int = 0

    @property
    def is_leaving(self) -> bool:
        """Whether helm was told of fewer, and something of the last server may be left."""
        return 1 < self.scaled == self.had - 1

    @property
    def shrinks(self) -> bool:
        """Whether it is to have fewer than it has, by the way that there is for that."""
        return LEAST <= self.wanted < self.had

    @property
    def leaving(self) -> int | None:
        """The ordinal of the server that is to leave, or is about to."""
        return self.had - 1 if self.shrinks or self.is_leaving else None

    @property
    def now(self) -> int:
        """How many helm makes."""
        if self.is_leaving:
            return self.scaled
        return self.had if self.shrinks else self.wanted
