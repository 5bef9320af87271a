"""Objects by namespace and name, with indexes that follow every change. Plain data: no I/O, no clock, no events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from .cached_object import Key

__all__ = ["Entry", "Held", "Spaces", "Store"]

T = TypeVar("T")
T_out = TypeVar("T_out", covariant=True)
Indexer = Callable[[T], Iterable[str]]


class Entry(Protocol[T_out]):
    """One object with what comparisons need, read out once."""

    uid: str
    version: int
    told: bool  # False while subscribers have not heard of it

    @property
    def obj(self) -> T_out:
        """The object."""


class Held(msgspec.Struct, Generic[T], gc=False):
    """An entry that is the object itself. Not tracked by the collector: what a server sends has no cycles."""

    obj: T
    uid: str
    version: int
    told: bool = True


Spaces = dict[str, dict[str, Entry[T]]]  # namespace -> name -> entry


_Filed = Key | dict[Key, None]  # most values file one object only, and a dict of one takes four times the memory


class Store(Generic[T]):
    """The objects of one cache. Indexes hold keys, so that an object is kept once."""

    def __init__(self) -> None:
        self._spaces: Spaces[T] = {}
        self._indexers: dict[str, Indexer[T]] = {}
        self._indexes: dict[str, dict[str, _Filed]] = {}

    def get(self, key: Key) -> Entry[T] | None:
        """The entry, or None."""
        space = self._spaces.get(key[0])
        return space.get(key[1]) if space else None

    def __len__(self) -> int:
        return sum(len(space) for space in self._spaces.values())

    def __iter__(self) -> Iterator[Key]:
        """All keys of this moment; the store may change while they are walked, and each must be looked up."""
        for namespace, space in list(self._spaces.items()):
            for name in list(space):
                yield namespace, name

    def empty_twin(self) -> Store[T]:
        """A store with the same indexes and nothing in it."""
        twin: Store[T] = Store()
        for name, indexer in self._indexers.items():
            twin.index(name, indexer)
        return twin

    def adopt(self, other: Store[T]) -> Spaces[T]:
        """Hold what another store holds, from one moment to the next; what was held before is returned."""
        for name in self._indexers.keys() - other._indexers.keys():
            other.index(name, self._indexers[name])
        before, self._spaces, self._indexes = self._spaces, other._spaces, other._indexes
        return before

    def objects(self, namespace: str = "") -> list[T]:
        """The objects of one namespace, or all of them."""
        spaces = [self._spaces.get(namespace, {})] if namespace else self._spaces.values()
        return [entry.obj for space in spaces for entry in space.values()]

    def put(self, key: Key, entry: Entry[T], obj: T) -> T | None:
        """Add or replace; `obj` is the entry's. Returns the object that was there."""
        namespace, name = key
        space = self._spaces.get(namespace)
        if space is None:
            space = self._spaces[namespace] = {}
        held = space.get(name)
        space[name] = entry
        old = held.obj if held is not None else None
        for index, indexer in self._indexers.items():
            before = indexer(old) if old is not None else ()
            after = indexer(obj)
            if before != after:  # lists can be compared; what can't goes the long way
                self._move(self._indexes[index], key, before, after)
        return old

    def drop(self, key: Key) -> T | None:
        """Remove. Returns the object that was there."""
        space = self._spaces.get(key[0], {})
        if (held := space.pop(key[1], None)) is None:
            return None
        if not space:
            del self._spaces[key[0]]
        old = held.obj
        for name, indexer in self._indexers.items():
            self._move(self._indexes[name], key, indexer(old), ())
        return old

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
        filed = self._indexes[name].get(value, {})
        entries = (self.get(key) for key in (filed if isinstance(filed, dict) else (filed,)))
        return [entry.obj for entry in entries if entry is not None]

    @staticmethod
    def _move(index: dict[str, _Filed], key: Key, old: Iterable[str], new: Iterable[str]) -> None:
        before, after = set(old), set(new)
        for value in before - after:
            filed = index[value]
            if not isinstance(filed, dict):
                del index[value]
            elif len(filed) > 2:
                del filed[key]
            else:
                index[value] = next(other for other in filed if other != key)
        for value in after - before:
            filed = index.setdefault(value, key)
            if isinstance(filed, dict):
                filed[key] = None
            elif filed != key:
                index[value] = {filed: None, key: None}


def owner_uids(obj: Any) -> Iterable[str]:
    """The index behind `owned_by`: uids only, so that an owner is found whatever version its reference names."""
    if isinstance(obj, dict):
        return [owner["uid"] for owner in obj["metadata"].get("ownerReferences") or ()]
    owners = obj.metadata.owner_references
    if len(owners) == 1:  # nearly always, and each event asks twice
        return (owners[0].uid,)
    return [owner.uid for owner in owners]
