"""What an operator states about a kind. The runtime does the rest.

A kind is one object per process: it holds its caches and sources, and gives pure steps and facts. Adding a step is one
function and one line in `steps`.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar

import msgspec

from moorage.api import meta
from moorage.api import status as api_status
from moorage.kube import cache as kube_cache
from moorage.kube import client as kube_client

from . import decision, election, tasks


class Reconciled(Protocol):
    """An object of the kind as its cache holds it."""

    @property
    def metadata(self) -> meta.ObjectMeta:
        """The object's metadata."""

    @property
    def status(self) -> api_status.Status:
        """The status as last written."""


O = TypeVar("O", bound=Reconciled)  # noqa: E741 - the object
S = TypeVar("S")  # the observation

Operation: TypeAlias = Callable[[O, dict[str, Any]], Awaitable[decision.Outcome]]
Check: TypeAlias = Callable[[O, dict[str, Any]], Awaitable[str]]
"""A guard: reads live and returns why the action must not happen, or an empty string."""

Key: TypeAlias = tuple[str, str, str]
"""(kind, namespace, name)."""


class World:
    """What a kind is given to build its caches, sources and operations from."""

    def __init__(
        self,
        client: kube_client.Client,
        caches: kube_cache.Caches,
        gate: election.Gate,
        enqueue: Callable[[Hashable], None],
        *,
        task_limit: int = 4,
    ) -> None:
        self.client, self.caches, self.gate, self.enqueue = client, caches, gate, enqueue
        self.tasks = tasks.Tasks(enqueue, limit=task_limit)

    @contextlib.asynccontextmanager
    async def own_write(self, resource: meta.Resource, namespace: str, name: str) -> AsyncIterator[OwnWrite]:
        """Announce a write to every cache that may hold the object, so that no read goes back behind it."""
        async with contextlib.AsyncExitStack() as stack:
            caches = self.caches.covering(resource, namespace)
            yield OwnWrite([await stack.enter_async_context(c.writing(namespace, name)) for c in caches])


class OwnWrite:
    """Hands the server's answer to an own write to the caches."""

    def __init__(self, writings: list[kube_cache.Own[Any]]) -> None:
        self._writings = writings

    def took(self, answer: msgspec.Raw) -> None:
        """The object as the server now has it."""
        for writing in self._writings:
            writing.took(answer)

    def gone(self) -> None:
        """The write ended the object."""
        for writing in self._writings:
            writing.gone()


class Kind(Generic[O, S]):
    """One kind under moorage's care. Subclasses fill the class attributes and `observe`."""

    resource: ClassVar[meta.Resource]
    model: type[O]
    finalizer: ClassVar[str]
    ready_facts: ClassVar[frozenset[str]] = frozenset()
    """Facts that must be True for Ready=True, beside all steps being done."""

    steps: Sequence[decision.Step[S]] = ()
    farewell: Sequence[decision.Step[S]] = ()
    """The steps of an object that is being deleted."""

    facts: Sequence[decision.FactOf[S]] = ()
    operations: Mapping[str, Operation[O]] = {}
    """What Call and Run actions may name."""

    guards: Mapping[str, Check[O]] = {}
    resync: float = 600.0
    """Seconds after which a settled object is looked at again, with jitter."""

    namespaces: tuple[str, ...] = ()
    """Where objects of this kind are looked after; empty means everywhere."""

    caches: Sequence[kube_cache.Cache[O]] = ()
    """The watches of the kind itself, one per namespace or one for all; opened before `start`."""

    async def start(self, world: World) -> None:
        """Open watches and sources. Called once, before leadership; nothing may be written here."""

    async def stop(self) -> None:
        """Close what `start` opened, except the shared caches."""

    def observe(self, obj: O, now: float) -> S:
        """The observation of one object at `now` (epoch seconds), from caches and sources alone."""
        raise NotImplementedError

    def report(self, seen: S) -> dict[str, Any]:
        """Status fields that are recomputed on each pass (names as in the status Struct)."""
        return {}

    def lane(self, obj: O) -> str:
        """The shared thing whose users are reconciled one at a time, or an empty string."""
        return ""

    def forget(self, namespace: str, name: str) -> None:
        """The object is gone: drop what is kept for it."""

    def items(self) -> list[O]:
        """All objects of the kind."""
        return [obj for cache in self.caches for obj in cache.items()]

    def key(self, namespace: str, name: str) -> Key:
        """The queue key of one object."""
        return (self.resource.kind, namespace, name)
