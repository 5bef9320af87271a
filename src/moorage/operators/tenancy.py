"""What a kind keeps of the namespaces that it reaches: its RoleBindings there, their end, and who leaves one last."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic

from moorage.api import builtin, meta
from moorage.kube.informers import informer
from moorage.runtime import freshness, kind

from . import accounts


def wake(world: kind.World, of: kind.Kind[Any, Any], namespace: str = "") -> None:
    """Have all objects of that kind in a namespace looked at; those of every namespace where none is named."""
    for obj in of.items():
        if namespace in ("", obj.metadata.namespace):
            world.enqueue(of.key(*obj.metadata.key))


class Bindings:
    """A system's RoleBindings, everywhere. `wake` is told of the namespace whose binding changed."""

    def __init__(self, world: kind.World, rights: accounts.Rights, wake: Callable[[str], None]) -> None:
        self._rights, self._wake = rights, wake
        self._cache = world.informers.watch(builtin.ROLE_BINDING, accounts.RoleBinding, name=rights.binding)
        self._cache.subscribe(self._on_change)

    def of(self, namespace: str) -> freshness.Observed[accounts.BindingSeen | None]:
        """The binding in that namespace."""
        if not self._cache.synced:
            return freshness.unsynced(self._cache.error, "rights")
        return freshness.Fresh(accounts.look(self._cache.get(namespace, self._rights.binding), self._rights))

    async def wait_synced(self) -> None:
        """Return once all are known."""
        await self._cache.wait_synced(timeout=None)

    def _on_change(self, change: informer.Change[accounts.RoleBinding]) -> None:
        if (found := change.new or change.old) is not None:
            self._wake(found.metadata.namespace)


class Places:
    """The namespaces in which objects of a system live: whether they may, the rights there, and whether one ends.

    `listed` names those that an administrator lets hold any, or none for all; `wake` is told of the one that changed.
    Of a system for which each namespace is to be opened as well, `opened_by` is the label and the value that do so.
    """

    def __init__(
        self,
        world: kind.World,
        rights: accounts.Rights,
        listed: tuple[str, ...],
        wake: Callable[[str], None],
        opened_by: tuple[str, str] | None = None,
    ) -> None:
        self._rights, self._listed, self._wake, self._opened_by = rights, listed, wake, opened_by
        self._here = rights.here
        if self._here:  # nothing may be asked about other namespaces, nor of this one from outside
            return
        self._bindings = Bindings(world, rights, wake)
        self._namespaces = world.informers.watch(builtin.NAMESPACE, meta.Partial, metadata_only=True)
        self._namespaces.subscribe(self._on_change)

    def allow(self, namespace: str) -> bool:
        """Whether that namespace may hold any."""
        if self._here:
            return namespace == self._rights.namespace
        listed = not self._listed or namespace in self._listed
        return (
            listed
            and not self._rights.is_moorages_own(namespace)
            and self._is_open(self._namespaces.get("", namespace))
        )

    def binding(self, namespace: str) -> freshness.Observed[accounts.BindingSeen | None]:
        """The binding in that namespace."""
        return freshness.Fresh(accounts.HERE) if self._here else self._bindings.of(namespace)

    def claimed_by(self, namespace: str) -> str | None:
        """The installation that is there for that namespace alone; None while that is not known."""
        found = self.binding(namespace)
        if isinstance(found, freshness.Failed):
            return None
        return found.value.other if found.value is not None else ""

    def is_ending(self, namespace: str) -> bool:
        """Whether that namespace is being deleted, as far as that may be known."""
        if self._here:
            return False
        found = self._namespaces.get("", namespace)
        return found is not None and found.metadata.deleting

    async def wait_synced(self) -> None:
        """Return once all are known."""
        if self._here:
            return
        await self._bindings.wait_synced()
        await self._namespaces.wait_synced(timeout=None)

    async def announce(self) -> None:
        """Once all are known, `wake` is told so by an empty name."""
        await self.wait_synced()
        self._wake("")

    def _is_open(self, found: meta.Partial | None) -> bool:
        if self._opened_by is None:
            return True
        label, value = self._opened_by
        return found is not None and found.metadata.labels.get(label) == value

    def _on_change(self, change: informer.Change[meta.Partial]) -> None:
        new = change.new
        if new is not None and (new.metadata.deleting or self._is_open(new) != self._is_open(change.old)):
            self._wake(new.metadata.name)


class Neighbours(Generic[kind.O]):
    """Who else of a kind is in the same place. Of two that leave at once, one must know that it is the last."""

    def __init__(self, items: Callable[[], Iterable[kind.O]], place: Callable[[kind.O], str], called: str) -> None:
        self._items, self._place, self._called = items, place, called
        self._leaving: set[str] = set()  # uids of those that are about to lose their finalizer

    def count(self, obj: kind.O) -> int:
        """Others that stay."""
        gone = {obj.metadata.uid, *self._leaving}
        here = self._place(obj)
        return sum(self._place(it) == here and it.metadata.uid not in gone for it in self._items())

    async def stay(self, obj: kind.O, _: dict[str, Any]) -> str:
        """The guard of one that leaves because others stay."""
        if not self.count(obj):
            return f"it has become the last one of its {self._called}"
        self._leaving.add(obj.metadata.uid)
        return ""

    def forget(self) -> None:
        """Somebody is gone."""
        self._leaving &= {it.metadata.uid for it in self._items()}
