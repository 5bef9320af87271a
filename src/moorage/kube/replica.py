"""The rules by which a cache stays true, and never falls behind one's own writes. Pure: no I/O, no clock, no asyncio.

- An event is news only if its resourceVersion is higher than what is stored, so the echo of an own write is none.
- While a write is in flight, events of that object are held back, as its echo may overtake its answer.
- A list is believed whole, even where versions went down (an etcd restored), save for objects written since it was
  asked for: there it may be the older one.
- DELETED is the last word on a uid. What an own delete removed comes back only as another incarnation, or marked as
  deleting (finalizers keep it).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, TypeVar

import msgspec

from . import codec, selectors, store, views
from .views import Key

__all__ = ["Change", "Replica"]

T = TypeVar("T")


class Change(msgspec.Struct, Generic[T], frozen=True):
    """What a subscriber is told: old and new state, with other uids when the object was deleted and made anew."""

    old: T | None
    new: T | None
    initial: bool = False  # part of the first list, or there already when the subscriber came
    by: Hashable = None  # who wrote it, for an own write announced with `by`; None = someone else


class _Hold:
    """Events of an object whose write is in flight."""

    __slots__ = ("acts", "writers")

    def __init__(self) -> None:
        self.acts: list[Callable[[], None]] = []
        self.writers = 0


class Replica(Generic[T]):
    """The objects of one collection. `notify` is called for each change, after it has been made."""

    def __init__(
        self, notify: Callable[[Change[T]], None], *, namespace: str = "", labels: str = "", name: str = ""
    ) -> None:
        self.objects: store.Store[T] = store.Store()
        self.unreadable: dict[Key, str] = {}  # objects that do not fit the model, and why
        self._notify = notify
        self._namespace = namespace
        self._labels = labels
        self._name = name
        self._filled = False
        self._held: dict[Key, _Hold] = {}
        self._tombs: dict[Key, store.Entry[T]] = {}  # what own deletes removed, until the watch has told of it
        self._listing = False  # a list is under way
        self._written: set[Key] = set()  # meanwhile

    # what the server tells

    def listing(self) -> None:
        """A list is about to be asked for: it will know of every write answered before."""
        self._listing = True
        self._written.clear()

    def replace(self, items: Iterable[T], version: str, unreadable: Iterable[codec.Unreadable] = ()) -> None:
        """The whole state at a resourceVersion."""
        number = int(version) if version.isdigit() else 0
        seen: dict[Key, store.Entry[T]] = {}
        for obj in items:
            key, uid, own_version = views.identity(obj)
            seen[key] = store.Entry(obj, uid, own_version)
        self.unreadable = {bad.metadata.key: bad.why for bad in unreadable}
        vanished = [key for key in self.objects if key not in seen and key not in self.unreadable]
        doubtful = self._written | self._held.keys()
        for key in vanished:
            self._when_free(key, functools.partial(self._absent, key, number, doubtful=key in doubtful))
        self._tombs = {key: tomb for key, tomb in self._tombs.items() if key in doubtful}
        initial, self._filled = not self._filled, True
        for key, entry in seen.items():
            act = self._seen if key in doubtful else self._listed
            self._when_free(key, functools.partial(act, key, entry, initial=initial))
        self._listing, self._written = False, set()

    def event(self, kind: str, obj: T | codec.Unreadable) -> None:
        """ADDED, MODIFIED or DELETED."""
        key, uid, version = views.identity(obj)
        if kind == "DELETED":
            act = functools.partial(self._deleted, key, uid)
        elif isinstance(obj, codec.Unreadable):
            act = functools.partial(self._unfit, key, obj.why)
        else:
            act = functools.partial(self._seen, key, store.Entry(obj, uid, version))
        self._when_free(key, act)

    # own writes

    def hold(self, key: Key) -> None:
        """A write to the object begins: keep back what the watch tells of it, until the matching `release`."""
        self._held.setdefault(key, _Hold()).writers += 1

    def release(self, key: Key) -> None:
        """The write has ended, whatever its outcome: deliver what was held back, when no other is in flight."""
        hold = self._held[key]
        hold.writers -= 1
        if not hold.writers:
            del self._held[key]
            for act in hold.acts:
                act()

    def took(self, obj: T, by: Hashable = None) -> None:
        """The answer to an own write: the newest state known."""
        if not self._covers(obj):
            return  # if it was in scope before, the watch tells of it as deleted
        key, uid, version = views.identity(obj)
        old = self.objects.get(key)
        if old is not None and 0 < version <= old.version:
            return  # the write changed nothing
        self._note(key)
        self._tombs.pop(key, None)
        self.unreadable.pop(key, None)
        self.objects.put(key, store.Entry(obj, uid, version))
        if by is not None:
            self._notify(Change(old.obj if old else None, obj, by=by))

    def buried(self, key: Key, by: Hashable = None) -> None:
        """An own write has removed the object."""
        self._note(key)
        old = self.objects.get(key)
        if old is None:
            return
        self._tombs[key] = old
        self.objects.drop(key)
        if by is not None:
            self._notify(Change(old.obj, None, by=by))

    def _note(self, key: Key) -> None:
        if self._listing:
            self._written.add(key)

    def _covers(self, obj: T) -> bool:
        if not (self._labels or self._namespace or self._name):
            return True
        meta = views.meta_of(obj)
        return (
            self._namespace in ("", meta.namespace)
            and self._name in ("", meta.name)
            and selectors.matches(self._labels, meta.labels)
        )

    # the rules

    def _when_free(self, key: Key, act: Callable[[], None]) -> None:
        if self._held and (hold := self._held.get(key)) is not None:
            hold.acts.append(act)
        else:
            act()

    def _seen(self, key: Key, entry: store.Entry[T], *, initial: bool = False) -> None:
        old = self.objects.get(key)
        if old is not None and 0 < entry.version <= old.version:
            return
        if old is None and (tomb := self._tombs.get(key)) is not None and _precedes(entry, tomb):
            return
        self._accept(key, old, entry, initial=initial)

    def _listed(self, key: Key, entry: store.Entry[T], *, initial: bool) -> None:
        old = self.objects.get(key)
        if old is None or old.uid != entry.uid or not old.version or old.version != entry.version:
            self._accept(key, old, entry, initial=initial)

    def _accept(self, key: Key, old: store.Entry[T] | None, entry: store.Entry[T], *, initial: bool) -> None:
        self.unreadable.pop(key, None)
        self.objects.put(key, entry)
        self._notify(Change(old.obj if old else None, entry.obj, initial=initial))

    def _absent(self, key: Key, version: int, *, doubtful: bool) -> None:
        old = self.objects.get(key)
        if old is not None and not (doubtful and old.version > version):
            self._remove(key, old)

    def _deleted(self, key: Key, uid: str) -> None:
        self.unreadable.pop(key, None)
        if (tomb := self._tombs.get(key)) is not None and tomb.uid == uid:
            del self._tombs[key]
        old = self.objects.get(key)
        if old is not None and old.uid == uid:
            self._remove(key, old)

    def _unfit(self, key: Key, why: str) -> None:
        self.unreadable[key] = why

    def _remove(self, key: Key, old: store.Entry[T]) -> None:
        self.objects.drop(key)
        self._notify(Change(old.obj, None))


def _precedes(entry: store.Entry[Any], tomb: store.Entry[Any]) -> bool:
    """True for what was on its way before the delete: not newer, or the same incarnation not yet marked as deleting."""
    if 0 < entry.version <= tomb.version:
        return True
    return bool(entry.uid == tomb.uid and not views.meta_of(entry.obj).deleting)
