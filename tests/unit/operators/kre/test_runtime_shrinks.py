"""How NATS becomes smaller: each step, verdict and reason by tables, and how many servers there are meanwhile."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from moorage.api import builtin
from moorage.operators.kre.reasons import RuntimeReason as Reason
from moorage.operators.kre.runtime import sizes
from moorage.operators.kre.runtime.observation import HeldSeen, NatsSeen, PeerSeen, Seen, StreamsSeen
from moorage.operators.kre.version.streams import PlacedSeen
from moorage.runtime import decision, freshness
from moorage.runtime.decision import Act, Blocked, Wait
from moorage.runtime.freshness import Fresh, Stale

from .runtimes import DOWN, decided, held, seen, settings, status, verdict, volume

FIVE = tuple(f"kre-nats-{n}" for n in range(5))
FOUR, LAST = FIVE[:4], FIVE[4]
VOLUMES = held(nats=[volume("nats", n) for n in range(5)])


def nats(*servers: str, leader: str = "kre-nats-0", away: str = "", left: dict[str, int] | None = None) -> NatsSeen:
    """All of these are there, and count on each other and on who is away."""
    peers = [PeerSeen(f"id-{name}", name) for name in servers]
    peers += [PeerSeen(f"id-{away}", away, away=True)] if away else []
    return NatsSeen(leader, servers, tuple(peers), dict.fromkeys(servers, 0) | (left or {}))


def on(*servers: str, **changed: Any) -> StreamsSeen:
    """One stream, on these servers."""
    base: dict[str, Any] = {"name": "orders", "copies": len(servers), "servers": servers}
    return StreamsSeen((PlacedSeen(**base | changed),))


def five(**changed: Any) -> Seen:
    """Five servers, of which nothing is on the last one, and there are to be three."""
    base: dict[str, Any] = {
        "status": status(natsServers=5),
        "held": VOLUMES,
        "nats": Fresh(nats(*FIVE)),
        "streams": Fresh(on("kre-nats-0")),
    }
    return seen(**base | changed)


def four(**changed: Any) -> Seen:
    """The last one has gone, and is counted on still."""
    base: dict[str, Any] = {
        "status": status(natsServers=5, natsScaledTo=4),
        "nats": Fresh(nats(*FOUR, away=LAST)),
    }
    return five(**base | changed)


def without(**changed: Any) -> Seen:
    """It is counted on no more."""
    return four(**{"nats": Fresh(nats(*FOUR)), **changed})


def with_pod() -> Fresh[tuple[HeldSeen, ...]]:
    return Fresh(
        tuple(msgspec.structs.replace(each, pods=FIVE) if each.server == "nats" else each for each in VOLUMES.value)
    )


BACK = {"settings": settings(nats_streaming={"replicas": 5})}
STAYING = [volume("nats", n) for n in range(4)]
GOING = held(nats=[*STAYING, volume("nats", 4, deleting=True)])
STEPS: list[tuple[Seen, type[Any], Reason, str]] = [
    # --- where streams are
    (five(nats=Stale(nats(*FIVE), 0.0, "it was told something")), Wait, Reason.NATS_UNKNOWN, "asked anew: it was told"),
    (five(streams=freshness.not_yet("streams")), Wait, Reason.NATS_STREAMS_UNKNOWN, "streams not looked at yet"),
    (five(streams=DOWN), Wait, Reason.NATS_STREAMS_UNKNOWN, "it does not answer"),
    (
        five(streams=Stale(on("kre-nats-0"), 0.0, "it was told something")),
        Wait,
        Reason.NATS_STREAMS_UNKNOWN,
        "asked anew where its streams are: it was told something",
    ),
    (five(streams=Fresh(on(known=False))), Wait, Reason.NATS_STREAMS_UNKNOWN, "nobody tells where stream orders is"),
    (five(streams=Fresh(StreamsSeen(refused="no"))), Blocked, Reason.NATS_LOGIN, "^no$"),
    # --- how many copies they have
    (
        five(streams=Fresh(on(*FIVE))),
        Blocked,
        Reason.NATS_STREAMS_STAY,
        "stream orders, which is not moorage's, has more copies than the 3 servers to be",
    ),
    (five(streams=Fresh(on(*FOUR, mark="one"))), Act, Reason.NATS_EMPTIES, "^to 3 copies: orders$"),
    # --- what is on the last one
    (five(streams=Fresh(on(LAST))), Act, Reason.NATS_EMPTIES, "^moved away from kre-nats-4: orders$"),
    (five(streams=Fresh(on("kre-nats-0", "kre-nats-1", LAST))), Act, Reason.NATS_EMPTIES, "^moved away"),
    (
        five(streams=Fresh(on(LAST, moving=True))),
        Wait,
        Reason.NATS_EMPTIES,
        "1 streams are on their way from kre-nats-4: orders",
    ),
    (
        five(nats=Fresh(nats(*FIVE, left={LAST: 2}))),
        Wait,
        Reason.NATS_EMPTIES,
        "kre-nats-4 has 2 streams and consumers still, by its own word",
    ),
    (five(nats=Fresh(nats(*FIVE, leader=LAST))), Act, Reason.NATS_SHRINKS, "another server than kre-nats-4 leads"),
    (five(), Act, Reason.NATS_SHRINKS, "kre-nats-4 has no streams any more, and leaves"),
    # --- it goes
    (four(held=with_pod()), Wait, Reason.NATS_SHRINKS, "pod kre-nats-4 ends"),
    (four(nats=Stale(nats(*FOUR, away=LAST), 0.0, "x")), Wait, Reason.NATS_UNKNOWN, "asked anew: x"),
    (four(streams=DOWN), Wait, Reason.NATS_STREAMS_UNKNOWN, "it does not answer"),
    (four(nats=Fresh(nats(*FIVE))), Wait, Reason.NATS_SHRINKS, "not noticed yet that kre-nats-4 is away"),
    (four(), Act, Reason.NATS_SHRINKS, "NATS counts on kre-nats-4 no more"),
    (without(), Act, Reason.CLEARING_VOLUME, "^data-kre-nats-4 is deleted: kre-nats-4 has left NATS, and had nothing"),
    (without(held=GOING), Wait, Reason.CLEARING_VOLUME, "data-kre-nats-4 is being deleted"),
    (without(held=held(nats=STAYING)), Act, Reason.NATS_SHRINKS, "^NATS has 4 servers$"),
    # --- it comes back
    (four(streams=Fresh(on(LAST))), Act, Reason.NATS_RETURNS, "kre-nats-4 comes back: stream orders is there"),
    (four(streams=Fresh(on(known=False))), Act, Reason.NATS_RETURNS, "stream orders is there, or nobody tells where"),
    (four(**BACK), Act, Reason.NATS_RETURNS, "comes back: spec.nats_streaming.replicas has changed"),
    (four(**BACK, held=with_pod()), Act, Reason.NATS_RETURNS, "comes back: spec.nats_streaming.replicas has changed"),
    # --- what is done is ended first, whatever is wanted by now
    (without(**BACK), Act, Reason.CLEARING_VOLUME, "data-kre-nats-4 is deleted"),
]


@pytest.mark.parametrize(
    ("it", "kind", "reason", "message"), STEPS, ids=[f"{row[2]}-{n}" for n, row in enumerate(STEPS)]
)
def test_where_a_cluster_stands_that_is_to_be_smaller(it: Seen, kind: type[Any], reason: Reason, message: str) -> None:
    """One thing is amiss, and just that is told."""
    found = verdict(it)

    assert isinstance(found, kind)
    assert reason == found.reason
    assert re.search(message, found.message), found.message


WAITS: list[tuple[Seen, float, float, bool]] = [
    # seconds within which it should come, seconds after which it is looked at again, whether that is no news
    (five(nats=Stale(nats(*FIVE), 0.0, "x")), 600, 0, True),
    (five(streams=Stale(on("kre-nats-0"), 0.0, "x")), 600, 0, True),
    (five(streams=Fresh(on(known=False))), 600, 3, False),
    (five(streams=Fresh(on(LAST, moving=True))), 1800, 3, False),
    (five(nats=Fresh(nats(*FIVE, left={LAST: 2}))), 1800, 3, False),
    (four(held=with_pod()), 600, 0, False),
    (four(nats=Fresh(nats(*FIVE))), 600, 3, False),
]


@pytest.mark.parametrize(("it", "within", "again", "unseen"), WAITS, ids=[str(n) for n in range(len(WAITS))])
def test_a_wait_has_an_end_and_a_pace(it: Seen, within: float, again: float, unseen: bool) -> None:
    """And that NATS is only asked anew does not go to the status."""
    found = verdict(it)

    assert (within, again, unseen) == (found.within, found.again, found.unseen)


CALLS: list[tuple[Seen, str, dict[str, Any]]] = [
    (five(streams=Fresh(on(LAST))), "nats.move_stream", {"name": "orders", "server": LAST}),
    (five(streams=Fresh(on(*FOUR, mark="one"))), "nats.lower_stream", {"name": "orders", "mark": "one", "copies": 3}),
    (five(nats=Fresh(nats(*FIVE, leader=LAST))), "nats.step_down", {}),
    (four(), "nats.remove_server", {"server": LAST, "peer": f"id-{LAST}"}),
]


@pytest.mark.parametrize(("it", "operation", "args"), CALLS, ids=[row[1] for row in CALLS])
def test_what_nats_is_told(it: Seen, operation: str, args: dict[str, Any]) -> None:
    (call,) = verdict(it).actions

    assert isinstance(call, decision.Call)
    assert (operation, args) == (call.operation, call.args)


@pytest.mark.parametrize(
    ("it", "fields"),
    [
        (five(), {"natsScaledTo": 4}),
        (four(streams=Fresh(on(LAST))), {"natsScaledTo": 0}),
        (without(held=held(nats=STAYING)), {"natsServers": 4, "natsScaledTo": 0}),
    ],
    ids=["it leaves", "it returns", "it has left"],
)
def test_what_is_remembered(it: Seen, fields: dict[str, int]) -> None:
    """How many helm was told of, and once all is done how many there are."""
    (note,) = verdict(it).actions

    assert isinstance(note, decision.Remember)
    assert fields == note.fields


def test_the_volume_goes_by_what_nats_says_right_then() -> None:
    """By the claim's uid, and a guard that asks NATS."""
    (delete,) = verdict(without()).actions

    assert (builtin.VOLUME_CLAIM, "u-data-kre-nats-4") == (delete.resource, delete.ref.uid)
    assert (decision.Guard("server_has_left", {"server": LAST, "ordinal": 4}),) == delete.require


def test_only_so_many_streams_are_moved_at_a_time() -> None:
    """Each is copied whole; those on their way count."""
    many = [PlacedSeen(f"s{n:02}", servers=(LAST,), moving=n < 4) for n in range(30)]
    found = verdict(five(streams=Fresh(StreamsSeen(tuple(many)))))
    full = [PlacedSeen(f"s{n:02}", servers=(LAST,), moving=n < 10) for n in range(30)]

    assert [f"s{n:02}" for n in range(4, 10)] == [call.args["name"] for call in found.actions]
    assert isinstance(verdict(five(streams=Fresh(StreamsSeen(tuple(full))))), Wait)


def test_a_server_that_nobody_remembers_by_name_is_known_by_who_stays() -> None:
    """As where a leader started after it had gone."""
    forgotten = NatsSeen("kre-nats-0", FOUR, (*nats(*FOUR).peers, PeerSeen("x1", "who knows", away=True)))
    (call,) = verdict(four(nats=Fresh(forgotten))).actions

    assert {"server": LAST, "peer": "x1"} == call.args


def test_what_is_to_be_done_about_foreign_streams_names_one_and_a_command() -> None:
    found = verdict(five(streams=Fresh(on(*FIVE))))

    assert "nats stream edit orders --replicas 3" in found.fix
    two = StreamsSeen((*on(*FIVE).streams, PlacedSeen("other", copies=5, servers=FIVE)))
    assert "nats stream edit orders --replicas 3" in verdict(five(streams=Fresh(two))).fix
    assert "spec.nats_streaming.replicas to 5 again" in found.fix


@pytest.mark.parametrize(
    "it",
    [
        five(settings=settings(nats_streaming={"replicas": 5})),
        five(settings=settings(nats_streaming={"replicas": 5}), status=status(natsServers=5, natsScaledTo=2)),
        seen(status=status(natsServers=3, natsScaledTo=4)),
    ],
    ids=["nobody leaves", "what was remembered is of another time", "so many more than there are"],
)
def test_what_keeps_nothing(it: Seen) -> None:
    assert decided(it).standing is None
    assert not it.leaving


def test_helm_goes_on_while_nats_is_emptied() -> None:
    """What may repair it is not behind it."""
    broken = five(nats=Fresh(NatsSeen("", FIVE[:2])), streams=DOWN)

    assert Reason.NATS_NOT_WHOLE == verdict(broken).reason
    assert "2 of 5 NATS servers answer" in verdict(broken).message


@pytest.mark.parametrize(
    ("wanted", "had", "scaled", "now", "leaving"),
    [
        (3, 0, 0, 3, None),
        (3, 3, 0, 3, None),
        (5, 3, 0, 5, None),
        (3, 5, 0, 5, 4),
        (3, 5, 4, 4, 4),
        (3, 4, 0, 4, 3),
        (3, 4, 4, 4, 3),
        (3, 4, 3, 3, 3),
        (5, 5, 4, 4, 4),
        (5, 5, 2, 5, None),
        (5, 4, 3, 3, 3),
        (2, 5, 0, 2, None),
        (1, 5, 0, 1, None),
        (1, 1, 0, 1, None),
        (3, 2, 1, 3, None),
    ],
)
def test_how_many_there_are_meanwhile(wanted: int, had: int, scaled: int, now: int, leaving: int | None) -> None:
    """What helm makes, and who is about to leave."""
    size = sizes.Size(wanted, had, scaled)

    assert (now, leaving) == (size.now, size.leaving)


def test_every_reason_of_it_is_reached() -> None:
    """But for the one that is an outcome: NATS refused."""
    reached = {row[2] for row in STEPS}

    assert {
        Reason.NATS_STREAMS_UNKNOWN,
        Reason.NATS_LOGIN,
        Reason.NATS_STREAMS_STAY,
        Reason.NATS_EMPTIES,
        Reason.NATS_SHRINKS,
        Reason.NATS_RETURNS,
    } <= reached
