"""The rules by which a cache stays true, and never falls behind one's own writes. Pure: no I/O, no clock, no asyncio.

- An event is news only if its resourceVersion is higher than what is stored, so the echo of an own write is none.
- While a write is in flight, events of that object are held back, as its echo may overtake its answer.
- A list is believed whole, even where versions went down (an etcd restored), save for objects written since it was
  asked for: there it may be the older one.
- DELETED is the last word on a uid. What an own delete removed comes back only as another incarnation, or marked as
  deleting (finalizers keep it).

Three things go on at the same time, each in states of its own.

The collection, between lists and subscribers:

                 listing                   listed                      tell, to its end
    settled ──────────────▶ collecting ──────────────▶ untold ───────────────────────────▶ settled
                              │    ▲                     │
                              └────┘ listing: void       └── listing: collecting, while the last list is told of

    collecting   `_fresh` holds what the list has said; nobody sees it, and the watch says nothing else
    untold       `objects` is the new list, and `_untold` what subscribers still take for true of the old one: an entry
                 that was `told`, or a name that is no longer in `_untold`, is one that they know. Whatever happens to
                 an object first catches up, so that each subscriber hears of its states in their order

A key, between own writes and the watch:

             hold                       release, by the last writer
    free ─────────────▶ in flight ──────────────────────────────────▶ free: what was held back is weighed by the rules
                            │
                            ├── took: stored if it is newer; a list under way may be older, so it is `written` there
                            └── buried: it leaves `objects` for `_tombs`, and is `written`

    in flight    `_held` keeps back what watch and lists say of the key
    in a tomb    what is in `objects` under the key, if anything, is another incarnation or a later state; the tomb ends
                 with the DELETED of its uid, with a list that was asked for later, or when an own write brings it back

A key, between its states and the model: in `unreadable` while its latest state does not fit; `objects` keeps the last
that did.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, TypeVar

import msgspec

from moorage.kube import codec

from . import cached_object, selectors, store
from .cached_object import Key

__all__ = ["Change", "Replica"]

T = TypeVar("T")


class Change(msgspec.Struct, Generic[T], frozen=True, gc=False):
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


class _Listing(Generic[T]):
    """A list under way."""

    def __init__(self, objects: store.Store[T]) -> None:
        self.objects = objects
        self.unreadable: dict[Key, codec.Unreadable] = {}
        self.written: set[Key] = set()  # by ourselves meanwhile


class Replica(Generic[T]):
    """The objects of one collection. `notify` is called for each change, after it has been made.

    A list comes as `listing`, an `event` for each object, and `listed`: until then nobody sees any of it, and then all
    of it. Subscribers are told by walking `tell`, which may take its time: whatever happens to an object meanwhile
    tells of its change in the list first.
    """

    def __init__(
        self,
        notify: Callable[[Change[T]], None],
        *,
        namespace: str = "",
        labels: str = "",
        name: str = "",
        entry: Callable[[T, str, int], store.Entry[T]] = store.Held,
    ) -> None:
        """`entry` makes what is stored of an object, its uid and its version."""
        self.objects: store.Store[T] = store.Store()
        self.unreadable: dict[Key, str] = {}  # objects that do not fit the model, and why
        self._notify = notify
        self._namespace = namespace
        self._labels = labels
        self._name = name
        self._entry = entry
        self._held: dict[Key, _Hold] = {}
        self._tombs: dict[Key, store.Entry[T]] = {}  # what own deletes removed, until the watch has told of it
        self._fresh: _Listing[T] | None = None  # the list that is under way
        self._untold: store.Spaces[T] | None = None  # of what was stored before the last list, while that is told of
        self._initial = True  # the list that is told of is the first

    # what the server tells

    def listing(self) -> None:
        """A list is about to be asked for: it will know of every write answered before. An unfinished one is void."""
        self._fresh = _Listing(self.objects.empty_twin())

    def event(self, kind: str, obj: T | codec.Unreadable) -> None:
        """ADDED, MODIFIED or DELETED."""
        key, uid, version = cached_object.identity(obj)
        if self._fresh is not None:
            self._collect(self._fresh, kind, key, obj, uid, version)
        elif self._held and (hold := self._held.get(key)) is not None:
            hold.acts.append(functools.partial(self._event, kind, key, obj, uid, version))
        else:
            self._event(kind, key, obj, uid, version)

    def listed(self, version: str) -> None:
        """The events since `listing` were the whole state at that resourceVersion."""
        if (fresh := self._fresh) is None:
            return
        for _ in self.tell():  # of an earlier list, if that was not finished
            pass
        number = int(version) if version.isdigit() else 0
        doubtful = fresh.written | self._held.keys()
        self.unreadable = {key: bad.why for key, bad in fresh.unreadable.items() if self._still_unfit(fresh, key, bad)}
        acts = [self._doubt(fresh, key, number) for key in doubtful if key not in fresh.unreadable]
        self._tombs = {key: tomb for key, tomb in self._tombs.items() if key in doubtful}
        self._untold, self._fresh = self.objects.adopt(fresh.objects), None
        for key, act in acts:
            self._when_free(key, act)

    def tell(self) -> Iterator[None]:
        """Tell subscribers of the last list, an object with each step. Nothing happens when all has been told."""
        if self._untold is None:
            return
        for namespace, space in list(self._untold.items()):
            for name in list(space):
                if self.objects.get((namespace, name)) is None:
                    self._catch_up((namespace, name))
                yield
        for key in self.objects:
            self._catch_up(key)
            yield
        self._untold, self._initial = None, False

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
        key, uid, version = cached_object.identity(obj)
        if not self._covers(key, obj):
            return  # if it was in scope before, the watch tells of it as deleted
        held = self.objects.get(key)
        if held is not None and 0 < version <= held.version:
            return  # the write changed nothing
        self._note(key)
        self._catch_up(key)
        self._tombs.pop(key, None)
        self.unreadable.pop(key, None)
        old = self.objects.put(key, self._entry(obj, uid, version), obj)
        if by is not None:
            self._notify(Change(old, obj, by=by))

    def buried(self, key: Key, by: Hashable = None) -> None:
        """An own write has removed the object."""
        self._note(key)
        self._catch_up(key)
        held = self.objects.get(key)
        if held is None:
            return
        self._tombs[key] = held
        old = self.objects.drop(key)
        if by is not None:
            self._notify(Change(old, None, by=by))

    def _note(self, key: Key) -> None:
        if self._fresh is not None:
            self._fresh.written.add(key)

    def _covers(self, key: Key, obj: T) -> bool:
        return (
            self._namespace in ("", key[0])
            and self._name in ("", key[1])
            and (not self._labels or selectors.matches(self._labels, cached_object.labels_of(obj)))
        )

    # lists

    def _collect(
        self, fresh: _Listing[T], kind: str, key: Key, obj: T | codec.Unreadable, uid: str, version: int
    ) -> None:
        """Note one event of a list that is under way; a streaming one may also change or end what it has sent."""
        fresh.unreadable.pop(key, None)
        if kind == "DELETED":
            fresh.objects.drop(key)
        elif type(obj) is codec.Unreadable:
            fresh.unreadable[key] = obj
        else:
            old = self.objects.get(key)
            if old is None or not _same(old, uid, version):
                old = self._entry(obj, uid, version)
                old.told = False
            fresh.objects.put(key, old, obj)

    def _still_unfit(self, fresh: _Listing[T], key: Key, bad: codec.Unreadable) -> bool:
        """Leave what is stored where a list has an unreadable state; False when that state is older."""
        if (old := self.objects.get(key)) is None:
            return True
        fresh.objects.put(key, old, old.obj)
        return not 0 < cached_object.identity(bad)[2] <= old.version

    def _doubt(self, fresh: _Listing[T], key: Key, version: int) -> tuple[Key, Callable[[], None]]:
        """Leave a key as it is that was written meanwhile, and let the list's word on it be weighed."""
        listed, old = fresh.objects.get(key), self.objects.get(key)
        if old is not None:
            fresh.objects.put(key, old, old.obj)
        else:
            fresh.objects.drop(key)
        if listed is None:
            return key, functools.partial(self._absent, key, version)
        return key, functools.partial(self._listed, key, listed)

    def _catch_up(self, key: Key) -> None:
        """Tell of what the last list has changed of this object, if that has not been told."""
        if self._untold is None:
            return
        entry = self.objects.get(key)
        if entry is not None and entry.told:
            return
        space = self._untold.get(key[0])
        old = space.pop(key[1], None) if space else None
        if entry is not None:
            entry.told = True
            if old is None or not _same(old, entry.uid, entry.version):
                self._notify(Change(old.obj if old else None, entry.obj, initial=self._initial))
        elif old is not None:
            self._notify(Change(old.obj, None))

    # the rules

    def _when_free(self, key: Key, act: Callable[[], None]) -> None:
        if self._held and (hold := self._held.get(key)) is not None:
            hold.acts.append(act)
        else:
            act()

    def _event(self, kind: str, key: Key, obj: T | codec.Unreadable, uid: str, version: int) -> None:
        if kind == "DELETED":
            self._deleted(key, uid)
            return
        if type(obj) is codec.Unreadable:
            self.unreadable[key] = obj.why
            return
        held = self.objects.get(key)
        if held is None:
            if self._tombs and (tomb := self._tombs.get(key)) is not None and _precedes(obj, uid, version, tomb):
                return
        elif 0 < version <= held.version:
            return
        if self._untold is not None:
            self._catch_up(key)
        if self.unreadable:
            self.unreadable.pop(key, None)
        old = self.objects.put(key, self._entry(obj, uid, version), obj)
        self._notify(Change(old, obj))

    def _listed(self, key: Key, entry: store.Entry[T]) -> None:
        self._event("ADDED", key, entry.obj, entry.uid, entry.version)

    def _absent(self, key: Key, version: int) -> None:
        held = self.objects.get(key)
        if held is not None and held.version <= version:
            self._remove(key)

    def _deleted(self, key: Key, uid: str) -> None:
        self.unreadable.pop(key, None)
        if (tomb := self._tombs.get(key)) is not None and tomb.uid == uid:
            del self._tombs[key]
        held = self.objects.get(key)
        if held is not None and held.uid == uid:
            self._remove(key)

    def _remove(self, key: Key) -> None:
        self._catch_up(key)
        self._notify(Change(self.objects.drop(key), None))


def _same(entry: store.Entry[Any], uid: str, version: int) -> bool:
    """True for the very same state. Versions that can't be compared are always another."""
    return entry.uid == uid and 0 < entry.version == version


def _precedes(obj: Any, uid: str, version: int, tomb: store.Entry[Any]) -> bool:
    """True for what was on its way before the delete: not newer, or the same incarnation not yet marked as deleting."""
    if 0 < version <= tomb.version:
        return True
    return bool(uid == tomb.uid and not cached_object.meta_of(obj).deleting)
