"""What is asked of NATS while one of its servers leaves, and done for that: by the clients' port, as NATS' own account.

Who is asked is read as for everything else (`servers`): pods of the StatefulSet alone, as they are told the login.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from moorage.operators import asking
from moorage.operators.kre import kinds
from moorage.operators.kre.reasons import RuntimeReason as Reason
from moorage.runtime import decision, kind, reasons, source

from . import credentials, shrinking, types
from .observation import NatsSeen, StreamsSeen

if TYPE_CHECKING:
    from moorage.operators.kre.version import jetstream

T = TypeVar("T")
Place = credentials.Place

PORT = 4222
LOOK_LIMIT = 30.0
"""Seconds that one look may take: NATS itself waits for those that do not tell."""


class NatsCluster:
    """`pods` gives where the servers are reached, `ask` what they tell at their other port; both raise SourceError.

    `outdate` says of the latter that it is to be asked anew.
    """

    def __init__(
        self,
        world: kind.World,
        known: credentials.Credentials,
        pods: Callable[[Place], dict[str, str]],
        ask: Callable[[Place], Awaitable[NatsSeen]],
        outdate: Callable[[Place, str], None],
        every: Callable[[Place], float],
    ) -> None:
        self._known, self._pods, self._ask, self._outdate = known, pods, ask, outdate
        from moorage.operators.kre.version import jetstream  # in the operator alone, as in `servers`

        self._library = jetstream
        self.streams: source.Source[Place, StreamsSeen] = source.Source(
            "streams",
            self._look,
            world.enqueue,
            every=every,
            deadline=LOOK_LIMIT,
            concurrency=16,
            backoff=(1.0, 15.0),
        )
        self.operations: dict[str, kind.Operation[types.Runtime]] = {
            "nats.lower_stream": self._lower_stream,
            "nats.move_stream": self._move_stream,
            "nats.step_down": self._step_down,
            "nats.remove_server": self._remove_server,
        }

    async def _look(self, place: Place) -> StreamsSeen:
        """Where streams are; and before anything is moved, that the login is taken."""
        try:
            found = await self._by_any(place, lambda it: it.placed())
            await self._by_any(place, _nothing, own=True)
        except asking.RefusedError as refusal:
            return StreamsSeen(refused=f"{refusal}, which is in Secret {kinds.NATS_LOGIN}")
        except asking.AskError as error:
            raise source.SourceError("Unreachable", f"NATS does not answer: {error}") from error
        return StreamsSeen(found)

    async def _by_any(
        self, place: Place, ask: Callable[[jetstream.JetStream], Awaitable[T]], *, own: bool = False
    ) -> T:
        """By the first server that answers; `own`: as NATS' own account. Raises SourceError and AskError."""
        login = self._known.nats(place) if own else None
        if own and login is None:
            raise source.SourceError("LoginUnknown", f"Secret {kinds.NATS_LOGIN} is not looked at yet")
        return await self._library.by_any(self._pods(place), PORT, ask, login=login)

    # --- what is done ------------------------------------------------------------------------------------------------

    async def _lower_stream(self, obj: types.Runtime, args: dict[str, Any]) -> decision.Outcome:
        return await self._told(obj, lambda it: it.lower_stream(args["name"], args["mark"], int(args["copies"])))

    async def _move_stream(self, obj: types.Runtime, args: dict[str, Any]) -> decision.Outcome:
        return await self._told(obj, lambda it: it.move_stream(args["name"], args["server"]))

    async def _step_down(self, obj: types.Runtime, _: dict[str, Any]) -> decision.Outcome:
        return await self._told(obj, lambda it: it.step_down(), own=True)

    async def _remove_server(self, obj: types.Runtime, args: dict[str, Any]) -> decision.Outcome:
        """Only a server that is away, on which no stream is, by what NATS says right now: nothing comes to it then."""
        place, server = obj.metadata.key, args["server"]
        try:
            seen = await self._ask(place)
            if not any(peer.id == args["peer"] and peer.away for peer in seen.peers):
                return decision.Conflict(f"NATS does not say that {server} is away")
            found = StreamsSeen(await self._by_any(place, lambda it: it.placed()))
        except (source.SourceError, asking.AskError) as error:
            return decision.Refused(reasons.Reason.NOT_SENT, str(error))
        if left := [each.name for each in found.on(server)] + list(found.untold):
            return decision.Conflict(f"stream {left[0]} may be on {server}")
        return await self._told(obj, lambda it: it.remove_server(args["peer"]), own=True)

    async def _told(
        self, obj: types.Runtime, tell: Callable[[jetstream.JetStream], Awaitable[None]], *, own: bool = False
    ) -> decision.Outcome:
        place = obj.metadata.key
        try:
            await self._by_any(place, tell, own=own)
        except (source.SourceError, asking.AskError) as error:
            return asking.outcome(error, Reason.NATS_REFUSES)
        finally:
            self.streams.outdate(place, "it was told something")
            self._outdate(place, "it was told something")
        return decision.Ok()

    async def has_left(self, obj: types.Runtime, args: dict[str, Any]) -> str:
        """The guard of its volume: by what NATS says right now it is whole, and does not count on that server."""
        ordinal = int(args["ordinal"])
        try:
            seen = await self._ask(obj.metadata.key)
        except source.SourceError as error:
            return error.message
        if not seen.leader or len(seen.servers) < ordinal:
            return f"NATS has no leader, or not all of its {ordinal} servers"
        return f"NATS counts on {args['server']}" if shrinking.leaver(seen, ordinal) else ""


async def _nothing(_: jetstream.JetStream) -> None:
    """To be let in is all that was asked."""
