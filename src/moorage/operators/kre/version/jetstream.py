"""JetStream by one of its servers; the only place that knows NATS' protocol.

It decides nothing and retries nothing. What a server answers is of the namespace's users' making, so it is bounded, and
believed for that namespace alone. What bears somebody else's mark, or none, is never changed. The library is for the
operator alone: see `nats_access`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Annotated, Any, TypeVar

import msgspec
import nats.errors
from nats.aio import client as nats_client
from nats.aio import transport as nats_transport

from moorage.operators import asking
from moorage.operators.kre import kinds

from .streams import ConsumerSeen, PlacedSeen, StreamSeen

CONNECT_LIMIT = 5
"""Seconds to reach a server."""

REQUEST_LIMIT = 5.0
"""Seconds that one question may take."""

ANSWERS_LIMIT = 16 * 2**20
"""Bytes that one connection may bring."""

MOST_STREAMS = 4000
"""In one look; of a runtime with more nothing is known."""

NO_STREAM, NO_CONSUMER, NO_SERVER, NOT_THERE = 10059, 10014, 10044, 10040
"""NATS' own codes for what is not there; the last one for a stream that is not on that server."""

NO_PLACE = 10075
"""NATS' own code for a stream that no other server can take."""

T = TypeVar("T")


class _Error(msgspec.Struct, frozen=True):
    code: int = 0
    err_code: int = 0
    description: str = ""


class _Answer(msgspec.Struct, frozen=True):
    error: _Error | None = None


_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=255, pattern=r"^[^\s.*>/\\]+$")]
"""It stands in the subjects of questions."""


class _StreamConfig(msgspec.Struct, frozen=True):
    name: _Name
    subjects: tuple[str, ...] | None = None
    retention: str = ""
    storage: str = ""
    num_replicas: int = 1
    discard: str = ""
    allow_rollup_hdrs: bool = False
    allow_direct: bool = False
    deny_delete: bool = False
    max_msgs_per_subject: int = -1
    metadata: dict[str, str] | None = None

    @property
    def seen(self) -> StreamSeen:
        """Of the configuration what may be wanted."""
        kept = {field: getattr(self, field) for field in self.__struct_fields__ if field != "metadata"}
        kept["subjects"] = list(self.subjects or ())
        return StreamSeen(kept, (self.metadata or {}).get(kinds.OF_VERSION, ""))


class _Member(msgspec.Struct, frozen=True):
    name: str = ""


class _Placement(msgspec.Struct, frozen=True):
    leader: str = ""
    replicas: tuple[_Member, ...] | None = None
    desired: Any = None  # there while the stream is on its way to other servers


class _Stream(msgspec.Struct, frozen=True):
    config: _StreamConfig
    cluster: _Placement | None = None

    @property
    def placed(self) -> PlacedSeen:
        """Where it is."""
        config, cluster = self.config, self.cluster or _Placement()
        servers = {cluster.leader, *(each.name for each in cluster.replicas or ())} - {""}
        moving = cluster.desired is not None
        return PlacedSeen(config.name, config.seen.mark, config.num_replicas, tuple(sorted(servers)), moving)


class _Whole(msgspec.Struct, frozen=True):
    config: dict[str, Any]


class _Streams(msgspec.Struct, frozen=True):
    streams: tuple[_Stream, ...] | None = None
    missing: tuple[_Name, ...] | None = None  # of this page those that nobody tells of
    offline: dict[_Name, str] | None = None
    total: int = 0


class _ConsumerConfig(msgspec.Struct, frozen=True):
    metadata: dict[str, str] | None = None
    ack_wait: int = 0

    @property
    def mark(self) -> str:
        """Whose it is."""
        return (self.metadata or {}).get(kinds.OF_VERSION, "")


class _Consumer(msgspec.Struct, frozen=True):
    name: _Name
    config: _ConsumerConfig = _ConsumerConfig()
    num_pending: int = 0
    num_ack_pending: int = 0


class _Consumers(msgspec.Struct, frozen=True):
    consumers: tuple[_Consumer, ...] | None = None
    total: int = 0


class _GoneError(asking.RefusedError):
    """What was asked for is not there."""


class _Bounded(nats_transport.TcpTransport):
    """Reads so much, and then no more: the library itself has no limit."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._left = ANSWERS_LIMIT

    async def read(self, buffer_size: int) -> bytes:
        part: bytes = await super().read(buffer_size)
        self._left -= len(part)
        if self._left < 0:
            raise OSError(f"answers of more than {ANSWERS_LIMIT >> 20} MiB")
        return part

    def __bool__(self) -> bool:
        return True  # so that the client takes this one


@contextlib.asynccontextmanager
async def connected(address: str, port: int, *, login: tuple[str, str] | None = None) -> AsyncIterator[JetStream]:
    """JetStream by the server at that address, for as long as it is used; as everybody, or by (user, password).

    Raises AskError; RefusedError where the login is not taken.
    """
    client, transport = nats_client.Client(), _Bounded()
    client._transport = transport
    try:
        await _connect(client, f"[{address}]" if ":" in address else address, port, login)
        yield JetStream(client)
    finally:
        try:
            with contextlib.suppress(nats.errors.Error, OSError, TimeoutError):
                await client.close()
        finally:  # where the greeting was none, or this is cancelled, the library leaves it open
            transport.close()  # type: ignore[no-untyped-call]


async def by_any(
    servers: Mapping[str, str],
    port: int,
    ask: Callable[[JetStream], Awaitable[T]],
    *,
    login: tuple[str, str] | None = None,
) -> T:
    """By the first of these servers, name to address, that answers; the next is asked where nothing was done yet.

    Raises AskError, with what was wrong with each; RefusedError where one refuses.
    """
    words = []
    for name, address in servers.items():
        try:
            async with connected(address, port, login=login) as it:
                return await ask(it)
        except asking.RefusedError:
            raise
        except asking.AskError as error:
            if error.maybe:
                raise
            words.append(f"{name}: {error}")
    raise asking.AskError("; ".join(words))


async def _connect(client: nats_client.Client, where: str, port: int, login: tuple[str, str] | None) -> None:
    user, password = login or (None, None)
    told: list[Exception] = []

    async def note(error: Exception) -> None:
        told.append(error)

    try:
        async with asyncio.timeout(CONNECT_LIMIT):
            await client.connect(
                servers=[f"nats://{where}:{port}"],
                error_cb=note,  # later on what goes wrong is told by the question that it goes wrong with
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                connect_timeout=CONNECT_LIMIT,
                name="moorage",
                user=user,
                password=password,
            )
    except TimeoutError as error:
        raise asking.AskError(f"no answer within {CONNECT_LIMIT} s") from error
    except nats.errors.NoServersError as error:
        raise asking.AskError(asking.why(told[-1] if told else error)) from error
    except (nats.errors.Error, OSError, ValueError, RecursionError, AttributeError, KeyError, TypeError) as error:
        if login and "authorization violation" in str(error).lower():  # as NATS says it; the library has no type for it
            raise asking.RefusedError(f"NATS does not take the login of {user}") from error
        raise asking.AskError(asking.why(error)) from error  # the library takes a stranger's words as they come


class JetStream:
    """What there is, and what is changed of it."""

    def __init__(self, client: nats_client.Client) -> None:
        self._client = client

    # --- what there is -----------------------------------------------------------------------------------------------

    async def streams(self) -> dict[str, StreamSeen]:
        """All of them, by name. Raises AskError."""
        found: dict[str, StreamSeen] = {}
        while True:
            page = await self._ask("STREAM.LIST", {"offset": len(found)}, _Streams)
            before = len(found)
            found |= {each.config.name: each.config.seen for each in page.streams or ()}
            if len(found) >= page.total or len(found) == before:
                return found
            if len(found) > MOST_STREAMS:
                raise asking.AskError(f"NATS has {page.total} streams; at most {MOST_STREAMS} are looked at")

    async def placed(self) -> tuple[PlacedSeen, ...]:
        """Where each of them is, by name; of one that nobody tells of only that. Raises AskError."""
        found: dict[str, PlacedSeen] = {}
        while True:
            page = await self._ask("STREAM.LIST", {"offset": len(found)}, _Streams)
            before = len(found)
            found |= {name: PlacedSeen(name, known=False) for name in (*(page.missing or ()), *(page.offline or ()))}
            found |= {each.config.name: each.placed for each in page.streams or ()}
            if len(found) >= page.total or len(found) == before:
                return tuple(each for _, each in sorted(found.items()))
            if len(found) > MOST_STREAMS:
                raise asking.AskError(f"NATS has {page.total} streams; at most {MOST_STREAMS} are looked at")

    async def consumers(self, stream: str) -> dict[str, ConsumerSeen]:
        """Those of that stream, by name; none where it is not there. Raises AskError."""
        found: dict[str, ConsumerSeen] = {}
        while True:
            try:
                page = await self._ask(f"CONSUMER.LIST.{stream}", {"offset": len(found)}, _Consumers)
            except _GoneError:
                return {}
            before = len(found)
            for each in page.consumers or ():
                mark, pending = each.config.mark, each.num_pending + each.num_ack_pending
                found[each.name] = ConsumerSeen(mark, each.config.ack_wait, pending)
            if len(found) >= page.total or len(found) == before:
                return found
            if len(found) > MOST_STREAMS:
                raise asking.AskError(f"stream {stream} has {page.total} consumers; so many are not looked at")

    # --- what is changed ---------------------------------------------------------------------------------------------

    async def put_stream(self, config: dict[str, Any]) -> None:
        """Make it, or change what differs; the rest stays as it is. Raises AskError."""
        name = config["name"]
        live = await self._mine(name, config["metadata"][kinds.OF_VERSION])
        if live is None:
            await self._change(f"STREAM.CREATE.{name}", config)
            return
        kept = {**live, **config, "metadata": {**(live.get("metadata") or {}), **config["metadata"]}}
        kept["num_replicas"] = max(live.get("num_replicas", 1), config.get("num_replicas", 1))
        await self._change(f"STREAM.UPDATE.{name}", kept)

    async def put_consumer(self, stream: str, config: dict[str, Any]) -> None:
        """Make it; one that is there as it should be stays. Raises AskError."""
        asked = {"stream_name": stream, "config": config}
        await self._change(f"CONSUMER.DURABLE.CREATE.{stream}.{config['durable_name']}", asked)

    async def lower_stream(self, name: str, mark: str, copies: int) -> None:
        """So many copies of it and no more, if it bears that mark; gone already is gone. Raises AskError."""
        live = await self._mine(name, mark)
        if live is not None and live.get("num_replicas", 1) > copies:
            await self._change(f"STREAM.UPDATE.{name}", {**live, "num_replicas": copies})

    async def move_stream(self, name: str, server: str) -> None:
        """Away from that server, with its consumers, to one that has room; moved or gone already is done.

        Nothing of it is lost: the server keeps its copy until another one has all. Raises AskError.
        """
        with contextlib.suppress(_GoneError):
            await self._change(f"STREAM.PEER.EVACUATE.{name}", {"peer": server})

    async def drop_stream(self, name: str, mark: str) -> None:
        """Remove it with all that is in it, if it bears that mark; gone already is gone. Raises AskError."""
        if await self._mine(name, mark) is None:
            return
        with contextlib.suppress(_GoneError):
            await self._change(f"STREAM.DELETE.{name}", None)

    async def drop_consumer(self, stream: str, name: str, mark: str) -> None:
        """Remove it, if it bears that mark; gone already is gone. Raises AskError."""
        try:
            found = await self._ask(f"CONSUMER.INFO.{stream}.{name}", None, _Consumer)
            if found.config.mark != mark:
                raise asking.RefusedError(f"consumer {name} bears no mark of this version")
            await self._change(f"CONSUMER.DELETE.{stream}.{name}", None)
        except _GoneError:
            return

    # --- what only the system's account may ------------------------------------------------------------------------

    async def step_down(self) -> None:
        """Another server becomes the leader of all. Raises AskError."""
        await self._change("META.LEADER.STEPDOWN", {})

    async def remove_server(self, peer: str) -> None:
        """The cluster counts on the server of that id no more; removed already is done. Raises AskError."""
        with contextlib.suppress(_GoneError):
            await self._change("SERVER.REMOVE", {"peer_id": peer})

    async def _mine(self, name: str, mark: str) -> dict[str, Any] | None:
        """The configuration as it is; None where there is none."""
        try:
            answer = await self._tell(f"STREAM.INFO.{name}", None)
        except _GoneError:
            return None
        if _decoded(answer, _Stream).config.seen.mark != mark:
            raise asking.RefusedError(f"stream {name} bears no mark of this version")
        return _decoded(answer, _Whole).config

    async def _ask(self, what: str, body: dict[str, Any] | None, type_: type[T]) -> T:
        return _decoded(await self._tell(what, body), type_)

    async def _change(self, what: str, body: dict[str, Any] | None) -> None:
        await self._tell(what, body, changes=True)

    async def _tell(self, what: str, body: dict[str, Any] | None, *, changes: bool = False) -> bytes:
        asked = msgspec.json.encode(body) if body is not None else b""
        try:
            answer = await self._client.request(f"$JS.API.{what}", asked, timeout=REQUEST_LIMIT)
        except nats.errors.NoRespondersError as error:
            raise asking.AskError("JetStream is switched off there, or has no leader") from error
        except (nats.errors.TimeoutError, TimeoutError) as error:
            raise asking.AskError(f"JetStream gives no answer within {REQUEST_LIMIT:g} s", maybe=changes) from error
        except (nats.errors.Error, OSError) as error:
            raise asking.AskError(asking.why(error), maybe=changes) from error
        data: bytes = answer.data
        if (refused := _decoded(data, _Answer).error) is not None:
            raise _refusal(refused)
        return data


def _decoded(text: bytes, type_: type[T]) -> T:
    try:
        answer = msgspec.json.decode(text, type=type_)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise asking.AskError(f"an answer that can't be read: {asking.why(error)}") from error
    return answer


def _refusal(refused: _Error) -> asking.AskError:
    words = f"{refused.description[:300]} ({refused.err_code or refused.code})"
    if refused.err_code in (NO_STREAM, NO_CONSUMER, NO_SERVER, NOT_THERE):
        return _GoneError(words)
    if refused.err_code == NO_PLACE:  # by its code it might pass
        return asking.RefusedError(f"{words}: no other server has room for it")
    return asking.RefusedError(words) if refused.code < 500 else asking.AskError(words)
