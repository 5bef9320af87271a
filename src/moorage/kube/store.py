"""Objects by namespace and name, with indexes that follow every change. Plain data: no I/O, no clock, no events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from . import views
from .views import Key

__all__ = ["Entry", "Store"]

T = TypeVar("T")
Indexer = Callable[[T], Iterable[str]]


class Entry(Generic[T]):
    """One object with what comparisons need, read out once."""

    __slots__ = ("obj", "uid", "version")

    def __init__(self, obj: T, uid: str, version: int) -> None:
        self.obj = obj
        self.uid = uid
        self.version = version


class Store(Generic[T]):
    """The objects of one cache. Indexes hold keys, so that an object is kept once."""

    def __init__(self) -> None:
        self._spaces: dict[str, dict[str, Entry[T]]] = {}
        self._indexers: dict[str, Indexer[T]] = {}
        self._indexes: dict[str, dict[str, dict[Key, None]]] = {}

    def get(self, key: Key) -> Entry[T] | None:
        """The entry, or None."""
        space = self._spaces.get(key[0])
        return space.get(key[1]) if space else None

    def __len__(self) -> int:
        return sum(len(space) for space in self._spaces.values())

    def __iter__(self) -> Iterator[Key]:
        """All keys; the store must not change while they are walked."""
        return ((namespace, name) for namespace, space in self._spaces.items() for name in space)

    def objects(self, namespace: str = "") -> list[T]:
        """The objects of one namespace, or all of them."""
        spaces = [self._spaces.get(namespace, {})] if namespace else self._spaces.values()
        return [entry.obj for space in spaces for entry in space.values()]

    def put(self, key: Key, entry: Entry[T]) -> None:
        """Add or replace."""
        space = self._spaces.setdefault(key[0], {})
        old = space.get(key[1])
        space[key[1]] = entry
        for name, indexer in self._indexers.items():
            self._move(self._indexes[name], key, indexer(old.obj) if old else (), indexer(entry.obj))

    def drop(self, key: Key) -> None:
        """Remove; nothing happens when it is not there."""
        space = self._spaces.get(key[0], {})
        if (old := space.pop(key[1], None)) is None:
            return
        if not space:
            del self._spaces[key[0]]
        for name, indexer in self._indexers.items():
            self._move(self._indexes[name], key, indexer(old.obj), ())

    def index(self, name: str, indexer: Indexer[T]) -> None:
        """Keep an index of what `indexer` says of each object. Raises ValueError for a name in other use."""
        if (known := self._indexers.get(name)) is not None:
            if known is not indexer:
                raise ValueError(f"index {name!r} exists with another function; choose another name")
            return
        self._indexers[name] = indexer
        index = self._indexes[name] = {}
        for key in self:
            if (entry := self.get(key)) is not None:
                self._move(index, key, (), indexer(entry.obj))

    def by(self, name: str, value: str) -> list[T]:
        """The objects that the index files under `value`. Raises KeyError for an index that was never made."""
        entries = (self.get(key) for key in self._indexes[name].get(value, ()))
        return [entry.obj for entry in entries if entry is not None]

    @staticmethod
    def _move(index: dict[str, dict[Key, None]], key: Key, old: Iterable[str], new: Iterable[str]) -> None:
        before, after = set(old), set(new)
        for value in before - after:
            filed = index.get(value)
            if filed is not None:
                filed.pop(key, None)
                if not filed:
                    del index[value]
        for value in after - before:
            index.setdefault(value, {})[key] = None


def owner_uids(obj: object) -> Iterable[str]:
    """The index behind `owned_by`: uids only, so that an owner is found whatever version its reference names."""
    return [owner.uid for owner in views.meta_of(obj).owner_references]
