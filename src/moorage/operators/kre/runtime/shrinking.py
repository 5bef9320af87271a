"""How NATS' cluster becomes smaller: one server at a time, the last one, with all that it holds. Pure.

What it holds is moved to those that stay, then helm is told of fewer, then the cluster counts on it no more, then its
volume goes. Whether it is empty, there, or counted on is asked each time; all that is remembered is that helm was told
of fewer, and where that turns out to be too soon, or is no longer wanted, the server comes back with all that it has.
"""

from __future__ import annotations

from collections.abc import Iterable

from moorage.children import removal, volumes
from moorage.children.parts import VolumeSeen
from moorage.operators import steps
from moorage.operators.kre import kinds
from moorage.operators.kre.reasons import RuntimeReason as Reason
from moorage.operators.kre.version.streams import PlacedSeen
from moorage.runtime import decision, freshness
from moorage.runtime.decision import DONE, Act, Blocked, Verdict, Wait

from .observation import NatsSeen, PeerSeen, Seen

WITHIN = 1800.0
"""Seconds within which the streams of a server should be on others: all that they hold is copied."""

SOON = 600.0
"""Seconds within which NATS should tell where its streams are, and a pod end."""

AGAIN = 3.0
"""Seconds between two looks at what is on its way."""

AT_ONCE = 10
"""Streams that are moved at a time, as each is copied whole."""


def streams_fit(seen: Seen) -> Verdict:
    """No stream wants more copies than there are to be servers: moorage's are lowered, others are somebody else's."""
    if not seen.leaving or seen.nats_size.is_leaving or not seen.nats_size.shrinks:
        return DONE
    if (unknown := _unknown(seen)) is not DONE:
        return unknown
    found, wanted = _streams(seen), seen.settings.nats
    large = [each for each in found if each.copies > wanted]
    if foreign := [each.name for each in large if not each.mark]:
        said = f"stream {steps.some(foreign)}, which is not moorage's, has more copies than the {wanted} servers to be"
        fix = (
            f"lower it, as by nats stream edit {foreign[0]} --replicas {wanted}; or set spec.nats_streaming.replicas "
            f"to {seen.nats_before} again"
        )
        return Blocked(Reason.NATS_STREAMS_STAY, said, fix)
    if not large:
        return DONE
    why = f"{seen.leaving} is to leave, and there are not so many servers then"
    calls = tuple(
        decision.Call(
            why=why, operation="nats.lower_stream", args={"name": each.name, "mark": each.mark, "copies": wanted}
        )
        for each in large[:AT_ONCE]
    )
    return Act(Reason.NATS_EMPTIES, f"to {wanted} copies: {_named(large)}", calls)


def server_is_emptied(seen: Seen) -> Verdict:
    """Streams and consumers of the last server go to others, which have all before it lets go of its own."""
    if not seen.leaving or seen.nats_size.is_leaving:
        return DONE
    nats, server = _nats(seen), seen.leaving
    there = [each for each in _streams(seen) if server in each.servers]
    if going := [each for each in there if not each.moving][: AT_ONCE - sum(each.moving for each in there)]:
        calls = tuple(
            decision.Call(
                why=f"{server} is to leave", operation="nats.move_stream", args={"name": each.name, "server": server}
            )
            for each in going
        )
        return Act(Reason.NATS_EMPTIES, f"moved away from {server}: {_named(going)}", calls)
    if there:
        said = f"{len(there)} streams are on their way from {server}: {_named(there)}"
        return Wait(Reason.NATS_EMPTIES, said, on="streams", within=WITHIN, again=AGAIN)
    if left := nats.held.get(server, 1):
        said = f"{server} has {left} streams and consumers still, by its own word"
        return Wait(Reason.NATS_EMPTIES, said, on="nats", within=WITHIN, again=AGAIN)
    if nats.leader == server:
        call = decision.Call(why=f"{server} is to leave", operation="nats.step_down")
        return Act(Reason.NATS_SHRINKS, f"another server than {server} leads", (call,))
    note = decision.Remember(why=f"nothing is on {server}", fields={"natsScaledTo": seen.nats_before - 1})
    return Act(Reason.NATS_SHRINKS, f"{server} has no streams any more, and leaves", (note,))


def server_has_left(seen: Seen) -> Verdict:
    """Its pod has ended, and then the cluster counts on it no more; unless something is on it after all."""
    if not seen.nats_size.is_leaving:
        return DONE
    server, size = seen.leaving, seen.nats_size
    stays = size.wanted >= size.had
    if server in seen.held_by("nats").pods:
        if stays:
            return _returns(server, "spec.nats_streaming.replicas has changed")
        return Wait(Reason.NATS_SHRINKS, f"pod {server} ends", on="pod", within=SOON)
    if (unknown := _stale(seen)) is not DONE:
        return unknown
    peer = leaver(_nats(seen), size.had - 1)
    if peer is None:
        return DONE
    if stays:
        return _returns(server, "spec.nats_streaming.replicas has changed")
    if (unknown := _unknown(seen)) is not DONE:
        return unknown
    if unsafe := [each.name for each in _streams(seen) if not each.known or server in each.servers]:
        return _returns(server, f"stream {steps.some(unsafe)} is there, or nobody tells where it is")
    if not peer.away:
        said = f"NATS has not noticed yet that {server} is away"
        return Wait(Reason.NATS_SHRINKS, said, on="nats", within=SOON, again=AGAIN)
    call = decision.Call(
        why=f"{server} is away and has nothing",
        operation="nats.remove_server",
        args={"server": server, "peer": peer.id},
    )
    return Act(Reason.NATS_SHRINKS, f"NATS counts on {server} no more", (call,))


def volume_is_cleared(seen: Seen) -> Verdict:
    """A server that is made under that name later starts from nothing; with its volume it would be one that left."""
    size = seen.nats_size
    if not size.is_leaving:
        return DONE
    left = [each for each in seen.held_by("nats").volumes if each.ordinal == size.had - 1]
    if going := [volume for volume in left if not volume.deleting]:
        why = f"{seen.leaving} has left NATS, and had nothing any more"
        return Act(Reason.CLEARING_VOLUME, f"{volumes.names(going)} is deleted: {why}", _deletes(seen, going, why))
    if left:
        return removal.volumes_are_gone(left, Reason.CLEARING_VOLUME)
    note = decision.Remember(
        why=f"nothing is left of {seen.leaving}", fields={"natsServers": size.had - 1, "natsScaledTo": 0}
    )
    return Act(Reason.NATS_SHRINKS, f"NATS has {size.had - 1} servers", (note,))


def leaver(nats: NatsSeen, ordinal: int) -> PeerSeen | None:
    """The server of that ordinal, as NATS counts on it still; its name may be forgotten while it is away."""
    stay = {f"{kinds.workload('nats')}-{each}" for each in range(ordinal)}
    return next((each for each in nats.peers if each.name not in stay), None)


def _returns(server: str, why: str) -> Verdict:
    note = decision.Remember(why=why, fields={"natsScaledTo": 0})
    return Act(Reason.NATS_RETURNS, f"{server} comes back: {why}", (note,))


def _deletes(seen: Seen, going: Iterable[VolumeSeen], why: str) -> tuple[decision.Delete, ...]:
    guard = decision.Guard("server_has_left", {"server": seen.leaving, "ordinal": seen.nats_size.had - 1})
    return tuple(volumes.delete(each, seen.meta.namespace, why, guard) for each in going)


def _unknown(seen: Seen) -> Verdict:
    """Why nothing can be said of where streams are; DONE where all is known."""
    if (stale := _stale(seen)) is not DONE:
        return stale
    if isinstance(seen.streams, freshness.Failed):
        return decision.unknown(Reason.NATS_STREAMS_UNKNOWN, seen.streams, "streams", within=SOON)
    if isinstance(seen.streams, freshness.Stale):
        said = f"NATS is asked anew where its streams are: {seen.streams.why}"
        return Wait(Reason.NATS_STREAMS_UNKNOWN, said, on="streams", within=SOON, unseen=True)
    found = seen.streams.value
    if found.refused:
        return Blocked(Reason.NATS_LOGIN, found.refused, decision.next_of(Reason.NATS_LOGIN))
    if found.untold and not seen.nats_size.is_leaving:
        said = f"nobody tells where stream {steps.some(found.untold)} is"
        return Wait(Reason.NATS_STREAMS_UNKNOWN, said, on="streams", within=SOON, again=AGAIN)
    return DONE


def _stale(seen: Seen) -> Verdict:
    """What is decided on here was just asked: `nats_is_whole` comes before, and takes what it was told last."""
    if isinstance(seen.nats, freshness.Fresh):
        return DONE
    why = seen.nats.why if isinstance(seen.nats, freshness.Stale) else seen.nats.message
    return Wait(Reason.NATS_UNKNOWN, f"NATS is asked anew: {why}", on="nats", within=SOON, unseen=True)


def _nats(seen: Seen) -> NatsSeen:
    return freshness.value_of(seen.nats) or NatsSeen()


def _streams(seen: Seen) -> tuple[PlacedSeen, ...]:
    found = freshness.value_of(seen.streams)
    return found.streams if found else ()


def _named(found: Iterable[PlacedSeen]) -> str:
    return steps.some(each.name for each in found)
