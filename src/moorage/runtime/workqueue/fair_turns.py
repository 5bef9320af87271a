"""Keys in fair turns: kinds take turns, within a kind its namespaces, within a namespace the oldest key goes first.

So one kind's flood, or one namespace's, delays others by no more than their turn. Plain data: no clock, no asyncio.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

Flow = tuple[Hashable, Hashable]
"""(kind, namespace)."""


class Turns(Generic[K]):
    """A set of keys; `flow` says what each belongs to."""

    def __init__(self, flow: Callable[[K], Flow]) -> None:
        self._flow = flow
        # ordered dicts, as of a plain one the first key is found the more slowly the more were taken before
        self._kinds: collections.OrderedDict[
            Hashable, collections.OrderedDict[Hashable, collections.OrderedDict[K, None]]
        ] = collections.OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._kinds)

    def push(self, key: K, *, first: bool = False) -> None:
        """Add the key behind all others of its flow, or before them; one that is there keeps its place."""
        kind, space = self._flow(key)
        spaces = self._kinds.get(kind)
        if spaces is None:
            spaces = self._kinds[kind] = collections.OrderedDict()
        keys = spaces.get(space)
        if keys is None:
            keys = spaces[space] = collections.OrderedDict()
        keys[key] = None
        if first:
            keys.move_to_end(key, last=False)

    def drop(self, key: K) -> None:
        """Take the key out, which must be there."""
        kind, space = self._flow(key)
        del self._kinds[kind][space][key]
        self._tidy(kind, space)

    def pop(self, is_full: Callable[[Hashable], bool]) -> tuple[K, ...]:
        """Take out the key whose turn it is, of a kind that is not full; nothing when there is none."""
        for kind, spaces in self._kinds.items():
            if is_full(kind):
                continue
            space, keys = next(iter(spaces.items()))
            key, _ = keys.popitem(last=False)
            spaces.move_to_end(space)
            self._kinds.move_to_end(kind)
            self._tidy(kind, space)
            return (key,)
        return ()

    def clear(self) -> None:
        """Drop all keys."""
        self._kinds.clear()

    def _tidy(self, kind: Hashable, space: Hashable) -> None:
        spaces = self._kinds[kind]
        if not spaces[space]:
            del spaces[space]
        if not spaces:
            del self._kinds[kind]
