"""What NATS has of all versions: polled by sources, and changed for one.

Who is asked is read from the watches of the namespace: pods of the StatefulSet of that name. Nothing secret is told to
them, so that their word, and what becomes of what is written there, is the namespace's own affair.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from moorage.api import builtin
from moorage.children import owners
from moorage.children.live import views
from moorage.operators import asking
from moorage.operators.kre import config, kinds
from moorage.operators.kre.reasons import VersionReason as Reason
from moorage.operators.kre.runtime import servers
from moorage.runtime import cancellation, decision, freshness, kind, namespace_watches, source

from . import streams, types
from .observation import NatsSeen

if TYPE_CHECKING:
    from . import jetstream

T = TypeVar("T")

PORT = 4222
LOOK_LIMIT = 20.0
"""Seconds that one look may take."""

Reading = tuple[str, tuple[str, ...], str]
"""(namespace, streams, what messages are counted for; see `Seen.counting`).

Counts change all the time, and are news to who waits for them alone.
"""

Names = Callable[[types.RuntimeVersion], dict[str, streams.Wanted]]
"""What a version is to have, by the names of the streams."""


class View(views.View):
    """What is made for the versions of a namespace, their pods, and the pods of NATS."""

    def __init__(self, world: kind.World, namespace: str, user: str) -> None:
        super().__init__(world, namespace, user, label=kinds.OF_VERSION, resources=(*OWNED, builtin.POD))
        self._nats = self.open(builtin.POD, dict, labels=f"{kinds.COMPONENT}=nats")

    @property
    def nats(self) -> dict[str, str]:
        """Where each server of NATS is reached."""
        found = servers.addresses(pod for pod in self._nats.items() if _is_of_nats(pod))
        return dict(sorted(found.items()))


OWNED = (builtin.CONFIG_MAP, builtin.SECRET, builtin.SERVICE, kinds.DEPLOYMENT)


def _is_of_nats(pod: dict[str, Any]) -> bool:
    found = owners.controller(pod)
    return found is not None and (found.get("kind"), found.get("name")) == ("StatefulSet", kinds.workload("nats"))


class Streams:
    """Everything that is known of streams, and done to them."""

    def __init__(
        self,
        world: kind.World,
        poll: config.Poll,
        watches: namespace_watches.Watches[View],
        names: Names,
    ) -> None:
        self._world, self._poll, self._watches, self._names = world, poll, watches, names
        from . import jetstream  # in the operator alone: people's tools know this module, and have nothing to wait for

        self._library = jetstream
        self._busy: dict[str, set[kind.Key]] = {}  # by namespace: versions that wait for something
        self._paces = source.Paces[str](poll.idle_seconds)
        self._readings: dict[kind.Key, Reading] = {}
        self.streams: source.Source[str, dict[str, streams.StreamSeen]] = self._source(
            "streams", self._look, self._paces.of, lambda namespace: namespace
        )
        self.consumers: source.Source[Reading, dict[str, dict[str, streams.ConsumerSeen]]] = self._source(
            "consumers", self._count, lambda of: self._paces.of(of[0]), lambda of: of[0]
        )
        self.operations: dict[str, kind.Operation[types.RuntimeVersion]] = {
            "nats.put_stream": self._put_stream,
            "nats.put_consumer": self._put_consumer,
            "nats.drop_stream": self._drop_stream,
            "nats.drop_consumer": self._drop_consumer,
        }

    def _source(
        self,
        name: str,
        look: Callable[[Any], Awaitable[Any]],
        every: Callable[[Any], float],
        group: Callable[[Any], str],
    ) -> source.Source[Any, Any]:
        return source.Source(
            name,
            look,
            self._world.enqueue,
            every=every,
            deadline=LOOK_LIMIT,
            concurrency=4,
            together=64,
            group=group,
            backoff=(1.0, 15.0),
        )

    async def stop(self) -> None:
        """Close everything."""
        await cancellation.stopped(self.streams, self.consumers)

    def forget(self, reader: kind.Key) -> None:
        """The version is gone."""
        self.streams.forget(reader)
        self.consumers.forget(reader)
        self._readings.pop(reader, None)
        _, namespace, _ = reader
        self.set_pace(namespace, reader, busy=False)
        if not any(place == namespace for place, *_ in self._readings.values()):
            self._busy.pop(namespace)
            self._paces.forget(namespace)

    def set_pace(self, namespace: str, reader: kind.Key, *, busy: bool) -> None:
        """How often NATS of that namespace is asked; at once where it is to be more often than before."""
        waiting = self._busy.setdefault(namespace, set())
        if busy:
            waiting.add(reader)
        else:
            waiting.discard(reader)
        seconds = self._poll.busy_seconds if waiting else self._poll.idle_seconds
        self._paces.set(namespace, seconds, self.streams)

    def seen(
        self, namespace: str, wanted: tuple[str, ...], reader: kind.Key, *, counting: str
    ) -> freshness.Observed[NatsSeen]:
        """All streams, and the consumers of these."""
        there = self.streams.follow(namespace, reader)
        reading = self._readings[reader] = (namespace, wanted, counting)
        read = self.consumers.follow(reading, reader)
        if isinstance(there, freshness.Failed):
            return there
        if isinstance(read, freshness.Failed):
            return read
        found = NatsSeen(there.value, read.value)
        for each in (there, read):
            if isinstance(each, freshness.Stale):
                return freshness.Stale(found, each.at, each.why)
        return freshness.Fresh(found, min(there.at, read.at))

    def may_ask(self, namespace: str, reader: kind.Key) -> None:
        """What was missing to ask is there now, for those that were not asked so far."""
        if freshness.is_unseen(self.streams.peek(namespace)):
            self.streams.refresh(namespace)
        reading = self._readings.get(reader)
        if reading is not None and freshness.is_unseen(self.consumers.peek(reading)):
            self.consumers.refresh(reading)

    # --- what there is -----------------------------------------------------------------------------------------------

    def _servers(self, namespace: str) -> dict[str, str]:
        view = self._watches.peek(namespace)
        if view is None or view.unsynced:
            raise source.SourceError(freshness.NOT_YET, freshness.not_yet("nats").message)
        if not view.nats:
            raise source.SourceError("NobodyToAsk", f"no pod of {kinds.workload('nats')} has an address")
        return view.nats

    async def _look(self, namespace: str) -> dict[str, streams.StreamSeen]:
        return await self._asked(namespace, lambda it: it.streams())

    async def _count(self, of: Reading) -> dict[str, dict[str, streams.ConsumerSeen]]:
        namespace, wanted, counting = of

        async def read(it: jetstream.JetStream) -> dict[str, dict[str, streams.ConsumerSeen]]:
            return {name: await it.consumers(name) for name in wanted}

        found = await self._asked(namespace, read)
        if counting:
            return found
        return {
            name: {each: streams.ConsumerSeen(seen.mark, seen.ack_wait) for each, seen in consumers.items()}
            for name, consumers in found.items()
        }

    async def _asked(self, namespace: str, ask: Callable[[jetstream.JetStream], Awaitable[T]]) -> T:
        """Raises SourceError."""
        try:
            return await self._by_any(namespace, ask)
        except asking.AskError as error:
            raise source.SourceError("Unreachable", f"NATS does not answer: {error}") from error

    async def _by_any(self, namespace: str, ask: Callable[[jetstream.JetStream], Awaitable[T]]) -> T:
        """By the first server that answers. Raises SourceError where there is none to ask, and AskError."""
        return await self._library.by_any(self._servers(namespace), PORT, ask)

    # --- what is changed ---------------------------------------------------------------------------------------------

    async def _put_stream(self, obj: types.RuntimeVersion, args: dict[str, Any]) -> decision.Outcome:
        found = self._names(obj).get(args["name"])
        if found is None:
            return decision.Conflict(f"stream {args['name']} is no longer wanted")
        config = {**found.config, "subjects": list(args["subjects"])}
        return await self._told(obj, lambda it: it.put_stream(config))

    async def _put_consumer(self, obj: types.RuntimeVersion, args: dict[str, Any]) -> decision.Outcome:
        found = self._names(obj).get(args["stream"])
        if found is None or args["name"] not in found.consumers:
            return decision.Conflict(f"consumer {args['name']} is no longer wanted")
        config = found.consumers[args["name"]]
        return await self._told(obj, lambda it: it.put_consumer(found.name, config))

    async def _drop_stream(self, obj: types.RuntimeVersion, args: dict[str, Any]) -> decision.Outcome:
        return await self._told(obj, lambda it: it.drop_stream(args["name"], obj.metadata.name))

    async def _drop_consumer(self, obj: types.RuntimeVersion, args: dict[str, Any]) -> decision.Outcome:
        return await self._told(obj, lambda it: it.drop_consumer(args["stream"], args["name"], obj.metadata.name))

    async def _told(
        self, obj: types.RuntimeVersion, tell: Callable[[jetstream.JetStream], Awaitable[None]]
    ) -> decision.Outcome:
        namespace, key = obj.metadata.namespace, (kinds.RUNTIME_VERSION.kind, *obj.metadata.key)
        try:
            await self._by_any(namespace, tell)
        except (source.SourceError, asking.AskError) as error:
            return asking.outcome(error, Reason.NATS_REFUSES)
        finally:
            self._outdate(namespace, key)
        return decision.Ok()

    def _outdate(self, namespace: str, reader: kind.Key) -> None:
        """What was read before this is not decided on again (law 6)."""
        self.streams.outdate(namespace, "it was changed")
        if (reading := self._readings.get(reader)) is not None:
            self.consumers.outdate(reading, "it was changed")
