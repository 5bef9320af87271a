"""The servers of all Runtimes, as they tell of themselves: polled by sources, and told to do the little that is asked.

Who is asked is read from the watches of the namespace: pods that the StatefulSet of that server manages, and no others,
as mongo is told its administrator's password.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any

from moorage.api import builtin, meta
from moorage.children import owners, reading
from moorage.helm import release_watches
from moorage.operators import asking
from moorage.operators.kre import config, kinds
from moorage.operators.kre.reasons import RuntimeReason as Reason
from moorage.runtime import cancellation, decision, freshness, kind, namespace_watches, source

from . import build, credentials, nats, nats_cluster, types
from .observation import MongoSeen, NatsSeen

if TYPE_CHECKING:
    from . import mongo

Object = dict[str, Any]
Place = credentials.Place
Find = Callable[[str, str], types.Runtime | None]

MONGO_PORT, NATS_PORT, MINIO_PORT, INFLUX_PORT = 27017, 8222, 9000, 8086
OTHER_USER = (
    "mongo has no user as mongoUser now says: a password is changed, and a user is not made under another name; "
    "set mongoUser back, or make that user in mongo"
)
POLL_LIMIT = 20.0
"""Seconds that one look at all pods of a server may take."""


class View(namespace_watches.View):
    """What is watched in a namespace beside the release, which helm's own view watches: pods, workloads and claims.

    The first two are the very watches of that view. Services of versions are watched by those too.
    """

    def __init__(self, world: kind.World, namespace: str, user: str) -> None:
        super().__init__(world, namespace, user)
        self._workloads = self.open(builtin.STATEFUL_SET, dict, labels=release_watches.CHILDREN)
        self._pods = self.open(builtin.POD, dict)
        self._claims = self.open(builtin.VOLUME_CLAIM, dict, labels=kinds.COMPONENT)
        self._services = self.open(builtin.SERVICE, dict, labels=kinds.OF_VERSION)

    def workload(self, server: str) -> Object | None:
        """The StatefulSet of that server."""
        found: Object | None = self._workloads.get(self.namespace, kinds.workload(server))
        return found

    def pods(self, server: str) -> list[Object]:
        """The pods of that server's very StatefulSet, by name."""
        workload = self.workload(server)
        if workload is None:
            return []
        uid = workload["metadata"]["uid"]
        return sorted(
            (pod for pod in self._pods.items() if owners.is_controlled(pod, uid)), key=lambda it: it["metadata"]["name"]
        )

    def pods_of(self, server: str) -> list[str]:
        """Pods that may still hold volumes of that server, whether or not its StatefulSet is there."""
        name = kinds.workload(server)
        return [pod["metadata"]["name"] for pod in self._pods.items() if owners.may_be_of(pod, name)]

    def led_to(self, service: str, uid: str) -> str:
        """The version that this Service of the Runtime with that uid leads to; empty where there is none."""
        found: Object | None = self._services.get(self.namespace, service)
        if found is None or not owners.is_owned(found, uid):
            return ""
        return str((found["spec"].get("selector") or {}).get("version-name", ""))

    def claims(self) -> list[Object]:
        """The claims of all servers."""
        return list(self._claims.items())


def addresses(pods: Iterable[Object]) -> dict[str, str]:
    """Where each pod that has an address is reached."""
    return {pod["metadata"]["name"]: address for pod in pods if (address := reading.address(pod))}


class Servers:
    """Everything that is known of the servers, and done to them."""

    def __init__(
        self,
        world: kind.World,
        poll: config.Poll,
        watches: namespace_watches.Watches[View],
        known: credentials.Credentials,
        find: Find,
    ) -> None:
        self._world, self._poll, self._watches, self._known, self._find = world, poll, watches, known, find
        from . import mongo  # in the operator alone: people's tools know this module, and have nothing to wait for

        self._library = mongo
        self._http = asking.Http()
        self._paces = source.Paces[Place](poll.idle_seconds)
        self._proven: dict[Place, Hashable] = {}  # for which login all was well with mongo
        self.nats: source.Source[Place, NatsSeen] = self._source("nats", self._ask_nats)
        self.mongo: source.Source[Place, MongoSeen] = self._source("mongo", self._ask_mongo)
        self.store: source.Source[Place, bool] = self._source("store", self._ask_store)
        self.metrics: source.Source[Place, bool] = self._source("metrics", self._ask_metrics)
        self.cluster = nats_cluster.NatsCluster(
            world, known, lambda place: self._pods(place, "nats"), self._ask_nats, self.nats.outdate, self._paces.of
        )
        self.operations: dict[str, kind.Operation[types.Runtime]] = {
            "mongo.initiate": self._initiate,
            "mongo.make_reader": self._make_reader,
            "mongo.change_passwords": self._change_passwords,
            **self.cluster.operations,
        }

    def _source(self, name: str, ask: Callable[[Place], Awaitable[Any]]) -> source.Source[Place, Any]:
        return source.Source(
            name,
            ask,
            self._world.enqueue,
            every=self._paces.of,
            deadline=POLL_LIMIT,
            concurrency=64,
            backoff=(1.0, 15.0),
        )

    @property
    def all(self) -> tuple[source.Source[Place, Any], ...]:
        """One for each server."""
        return self.nats, self.mongo, self.store, self.metrics

    async def stop(self) -> None:
        """Close everything."""
        await cancellation.ended(self._http.close(), cancellation.stopped(*self.all, self.cluster.streams))

    def forget(self, place: Place, reader: kind.Key) -> None:
        """The Runtime is gone."""
        for each in (*self.all, self.cluster.streams):
            each.forget(reader)
        self._paces.forget(place)
        self._proven.pop(place, None)

    def set_pace(self, place: Place, *, busy: bool) -> None:
        """How often they are asked; at once where it is to be more often than before."""
        seconds = self._poll.busy_seconds if busy else self._poll.idle_seconds
        self._paces.set(place, seconds, *self.all)

    def may_ask(self, place: Place) -> None:
        """What was missing to ask is there now, for those that were not asked so far."""
        for each in self.all:
            if freshness.is_unseen(each.peek(place)):
                each.refresh(place)

    # --- what they tell ----------------------------------------------------------------------------------------------

    def _pods(self, place: Place, server: str) -> dict[str, str]:
        """Raises SourceError where nobody has an address, or that is not known yet."""
        view = self._watches.peek(place[0])
        if view is None or view.unsynced:
            raise _not_yet(server)
        found = addresses(view.pods(server))
        if not found:
            raise source.SourceError("NobodyToAsk", f"no pod of {kinds.workload(server)} has an address")
        return found

    async def _ask_nats(self, place: Place) -> NatsSeen:
        """All of them at once: the word of the leader counts of who is there, as it alone knows."""
        pods = self._pods(place, "nats")
        asked = await asyncio.gather(*(self._ask_one(address) for address in pods.values()))
        told = dict(zip(pods, asked, strict=True))
        answers = {name: it for name, it in told.items() if isinstance(it, nats.Answer)}
        if not answers:
            words = "; ".join(f"{name}: {it}" for name, it in told.items())
            raise source.SourceError("Unreachable", f"no NATS server answers: {words}")
        return nats.seen(answers)

    async def _ask_one(self, address: str) -> nats.Answer | str:
        try:
            return nats.answer(*await self._http.get(address, NATS_PORT, "/jsz"))
        except asking.AskError as error:
            return str(error)

    async def _ask_mongo(self, place: Place) -> MongoSeen:
        """With a login until all was well once, for these credentials and address; then by what it tells anybody."""
        obj = self._find(*place)
        reader = (build.READABLE, build.READER) if obj is not None and obj.spec.mongo_express.enabled else None
        asked, about = self._mongo(place)
        try:
            if self._proven.get(place) == (about, reader):
                return await asked.glance()
            seen = await asked.look(reader)
        except asking.AskError as error:
            self._proven.pop(place, None)
            raise source.SourceError("Unreachable", f"mongo does not answer: {error}") from error
        if seen.primary and seen.reader and not seen.refused:
            self._proven[place] = (about, reader)
        return seen

    def _mongo(self, place: Place) -> tuple[mongo.Mongo, Hashable]:
        """To be asked, and what a login is proven for. Raises SourceError."""
        login = self._known.mongo(place)
        if login is None:
            raise _not_yet("mongo")
        address = self._mongo_address(place)
        return self._as(address, login), (address, login)

    def _mongo_address(self, place: Place) -> str:
        return next(iter(self._pods(place, "mongo").values()))

    def _as(self, address: str, login: credentials.Login) -> mongo.Mongo:
        return self._library.Mongo(address, *login, port=MONGO_PORT)

    async def _ask_store(self, place: Place) -> bool:
        return await self._is_well(place, "minio", MINIO_PORT, "/minio/health/ready")

    async def _ask_metrics(self, place: Place) -> bool:
        return await self._is_well(place, "influxdb", INFLUX_PORT, "/ping")

    async def _is_well(self, place: Place, server: str, port: int, path: str) -> bool:
        address = next(iter(self._pods(place, server).values()))
        try:
            status, _ = await self._http.get(address, port, path)
        except asking.AskError as error:
            raise source.SourceError("Unreachable", f"{kinds.workload(server)} does not answer: {error}") from error
        return status < 300

    # --- what is done to them ----------------------------------------------------------------------------------------

    async def _initiate(self, obj: types.Runtime, _: dict[str, Any]) -> decision.Outcome:
        name = build.host("mongo", obj.metadata.namespace)
        return await self._told(obj.metadata, lambda it: it.initiate(build.REPLICA_SET, name), "initiated")

    async def _make_reader(self, obj: types.Runtime, _: dict[str, Any]) -> decision.Outcome:
        password = self._known.reader(obj.metadata.key)
        return await self._told(
            obj.metadata, lambda it: it.make_reader(build.READABLE, build.READER, password), "given a user"
        )

    async def _change_passwords(self, obj: types.Runtime, _: dict[str, Any]) -> decision.Outcome:
        """Of mongo's users, so that they are as wanted. What may have been done already is found out by logging in."""
        place = obj.metadata.key
        try:
            return await self._change_at(self._mongo_address(place), obj)
        except (source.SourceError, asking.AskError) as error:
            return asking.outcome(error, Reason.MONGO_REFUSES)
        finally:
            self.mongo.outdate(place, "it was told passwords")

    async def _change_at(self, address: str, obj: types.Runtime) -> decision.Outcome:
        place = obj.metadata.key
        logins, reader = self._known.mongo_logins(place), self._known.wanted_reader(obj)
        works, wanted = await self._that_works(address, logins), logins[0]
        if works != wanted:
            if works[0] != wanted[0]:
                return decision.Refused(Reason.MONGO_REFUSES, OTHER_USER)
            noted = await self._known.expect(obj, works, wanted[1])
            if not isinstance(noted, decision.Ok):
                return noted
            await self._as(address, works).change_password("admin", *wanted)
        if reader:
            await self._as(address, wanted).make_reader(build.READABLE, build.READER, reader)
            await self._as(address, wanted).change_password(build.READABLE, build.READER, reader)
        return await self._known.prove(obj, wanted, reader)

    async def _that_works(self, address: str, logins: tuple[credentials.Login, ...]) -> credentials.Login:
        """Raises RefusedError, in mongo's words, where none does."""
        refusal = asking.RefusedError("there is no login that it might take")
        for login in logins:
            try:
                await self._as(address, login).proves()
            except asking.RefusedError as error:
                refusal = error
            else:
                return login
        raise refusal

    async def _told(
        self, metadata: meta.ObjectMeta, tell: Callable[[mongo.Mongo], Awaitable[None]], what: str
    ) -> decision.Outcome:
        try:
            asked, _ = self._mongo(metadata.key)
        except source.SourceError as error:
            return asking.outcome(error, Reason.MONGO_REFUSES)
        try:
            await tell(asked)
        except asking.AskError as error:
            return asking.outcome(error, Reason.MONGO_REFUSES)
        finally:
            self.mongo.outdate(metadata.key, f"it was {what}")
        return decision.Ok()


def _not_yet(server: str) -> source.SourceError:
    """Nobody was asked so far: nothing is known by that, least of all that nobody answers."""
    return source.SourceError(freshness.NOT_YET, freshness.not_yet(server).message)
