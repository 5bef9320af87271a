"""What an operator states about a kind, and the world it is given. The runtime does the rest.

A kind is one object per process: it holds its caches and sources, and gives pure steps and facts. Adding a step is one
function and one line in `steps`.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar

import msgspec
import prometheus_client as prometheus

from moorage.api import common_status, meta
from moorage.kube import client as kube_client
from moorage.kube.informers import informer

from . import decision, task_pool, verified
from . import gate as gates
from .leading import installations
from .workqueue import pressure as pressures
from .workqueue import queue

if TYPE_CHECKING:
    from .reporting import tracing


class Reconciled(Protocol):
    """An object of the kind as its cache holds it."""

    @property
    def metadata(self) -> meta.ObjectMeta:
        """The object's metadata."""

    @property
    def status(self) -> common_status.Status:
        """The status as last written."""


O = TypeVar("O", bound=Reconciled)  # noqa: E741 - the object
S = TypeVar("S")  # the observation

Operation: TypeAlias = Callable[[O, dict[str, Any]], Awaitable[decision.Outcome]]
Check: TypeAlias = Callable[[O, dict[str, Any]], Awaitable[str]]
"""A guard: reads live and returns why the action must not happen, or an empty string."""

Filler: TypeAlias = Callable[[O, dict[str, Any]], Awaitable[dict[str, Any]]]
"""Completes a body with what is secret, right before it is sent."""

Key: TypeAlias = queue.Key
"""How an object is called in the queue."""

_AUTHOR: contextvars.ContextVar[Hashable] = contextvars.ContextVar("author", default="moorage")


@contextlib.contextmanager
def acting_for(key: Hashable) -> Iterator[None]:
    """Own writes in here, and in tasks started from here, are written down to `key`."""
    token = _AUTHOR.set(key)
    try:
        yield
    finally:
        _AUTHOR.reset(token)


class Enqueue(Protocol):
    """Has a key looked at, with `backlog` after what is news."""

    def __call__(self, key: Any, *, backlog: bool = False) -> None:
        """Never fails."""


class World:
    """What a kind is given to build its caches, sources and operations from."""

    def __init__(
        self,
        client: kube_client.Client,
        informers: informer.Informers,
        gate: gates.Gate,
        enqueue: Enqueue,
        *,
        pressure: pressures.Pressure | None = None,
        traces: tracing.Traces | None = None,
        task_limit: int = 4,
        operator: str = "",
    ) -> None:
        """`operator` is the name of this installation, by which others know what it looks after."""
        self.client, self.informers, self._gate = client, informers, gate
        self.pressure = pressure or pressures.Pressure()
        self.traces = traces
        self.verified = verified.Verified()
        self._enqueue = enqueue
        self._told_of: Hashable = None
        self.tasks = task_pool.Tasks(enqueue, limit=task_limit)
        self.others = installations.Installations(client, operator, enqueue)

    @property
    def gate(self) -> gates.Gate:
        """The gate for whatever is done now: that of the shard whose pass or task this is."""
        return gates.current(self._gate)

    def enqueue(self, key: Hashable, *, backlog: bool = False) -> None:
        """Have `key` looked at; nothing happens while subscribers are told of that key's own write (law 6).

        `backlog`: it gives way to news, as what a first list brings should.
        """
        if not self.echoes(key):
            self._enqueue(key, backlog=backlog)

    def echoes(self, key: Hashable) -> bool:
        """True while subscribers are told of a write that `key` itself has made."""
        return key is not None and key == self._told_of

    def own_write(self, resource: meta.Resource, namespace: str, name: str) -> OwnWrite:
        """Announce a write to every cache that may hold the object, so that no read goes back behind it.

        All subscribers learn of its result, as other kinds may wait for it; its author is not woken by it.
        """
        author = _AUTHOR.get()
        informers = self.informers.covering(resource, namespace)
        return OwnWrite([cache.writing(namespace, name, by=author) for cache in informers], self._telling, author)

    def _telling(self, author: Hashable) -> None:
        self._told_of = author


class OwnWrite:
    """`async with`: a write is in flight. Hands the server's answer to it to the caches."""

    def __init__(
        self, writings: list[informer.Own[Any]], telling: Callable[[Hashable], None], author: Hashable
    ) -> None:
        self._writings, self._telling, self._author = writings, telling, author

    async def __aenter__(self) -> OwnWrite:
        for writing in self._writings:
            await writing.__aenter__()
        return self

    async def __aexit__(self, *how: object) -> None:
        for writing in self._writings:
            await writing.__aexit__(*how)

    def took(self, answer: msgspec.Raw) -> None:
        """The object as the server now has it."""
        self._tell(lambda writing: writing.took(answer))

    def deleted(self, deletion: kube_client.Deletion) -> None:
        """The answer to a delete: gone, or still there and marked."""
        self._tell(lambda writing: writing.deleted(deletion))

    def gone(self) -> None:
        """The write ended the object."""
        self._tell(lambda writing: writing.gone())

    def _tell(self, say: Callable[[informer.Own[Any]], None]) -> None:
        self._telling(self._author)
        try:
            for writing in self._writings:
                say(writing)
        finally:
            self._telling(None)


class Kind(Generic[O, S]):
    """One kind under moorage's care. Subclasses fill the class attributes and `observe`."""

    resource: ClassVar[meta.Resource]
    model: type[O]
    finalizer: ClassVar[str]
    ready_facts: ClassVar[frozenset[str]] = frozenset()
    """Facts that must be True for Ready=True, beside all steps being done."""

    told_facts: ClassVar[frozenset[str]] = frozenset()
    """Facts at which no step stops, and whose Warning is an Event of its own, as nobody would look for it otherwise."""

    steps: Sequence[decision.Step[S]] = ()
    deletion_steps: Sequence[decision.Step[S]] = ()
    """The steps of an object that is being deleted."""

    facts: Sequence[decision.FactOf[S]] = ()
    operations: Mapping[str, Operation[O]] = {}
    """What Call and Run actions may name."""

    guards: Mapping[str, Check[O]] = {}
    fillers: Mapping[str, Filler[O]] = {}
    resync: float = 600.0
    """Seconds after which a settled object is looked at again, with jitter."""

    deadline: float = 120.0
    """Seconds after which a pass that has not ended is cut; `executor.PASS_LIMIT` and its last requests fit in."""

    concurrency: int = 0
    """How many objects of this kind are looked at at once; 0: as many as there are workers."""

    namespaces: tuple[str, ...] = ()
    """Where objects of this kind are looked after; empty means everywhere."""

    informers: Sequence[informer.Informer[O]] = ()
    """The watches of the kind itself, one per namespace or one for all; opened before `start`."""

    async def start(self, world: World) -> None:
        """Open watches and sources. Called once, before leadership; nothing may be written here."""

    async def stop(self) -> None:
        """Close what `start` opened, except the shared caches."""

    def observe(self, obj: O, now: float) -> S:
        """The observation of one object at `now` (epoch seconds), from caches and sources alone."""
        raise NotImplementedError

    def report(self, seen: S, standing: decision.StepTaken | None) -> dict[str, Any]:
        """Status fields that are recomputed on each pass (names as on the wire); `standing` is where steps stopped."""
        return {}

    def user(self, obj: O) -> str:
        """With whose rights objects beside this one are written, by impersonation; empty: with the operator's own."""
        return ""

    def claimed_by(self, obj: O) -> str | None:
        """The installation of moorage that is there for the object's place alone; None while that is not known."""
        return ""

    def lane(self, obj: O) -> str:
        """The shared thing whose users are reconciled one at a time, or an empty string."""
        return ""

    def placement(self, obj: O) -> str:
        """What decides which shard the object belongs to; it never changes in the object's life.

        Keys of one lane must be placed alike, of whatever kind they are: a lane serialises within one process.
        """
        return obj.metadata.uid

    def forget(self, namespace: str, name: str) -> None:
        """The object is gone, or made anew, or no longer ours to look after: drop what is kept for it."""

    def metrics(self) -> Iterable[prometheus.Metric]:
        """What is to be said of this kind whenever metrics are read; from caches and sources alone."""
        return ()

    def find(self, namespace: str, name: str) -> O | None:
        """The object as its cache has it now. Raises MalformedAnswer when it does not fit the model."""
        for cache in self.informers:
            if (obj := cache.get(namespace, name)) is not None:
                return obj
        return None

    def items(self) -> list[O]:
        """All objects of the kind."""
        return [obj for cache in self.informers for obj in cache.items()]

    def key(self, namespace: str, name: str) -> Key:
        """The queue key of one object."""
        return (self.resource.kind, namespace, name)
