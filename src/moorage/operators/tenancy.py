"""What a kind keeps of the namespaces that it reaches: its RoleBindings there, and who is the last to leave one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic

from moorage.api import builtin
from moorage.kube.informers import informer
from moorage.runtime import freshness, kind

from . import accounts


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
