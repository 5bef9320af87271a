"""Questions to servers that run on this machine: what they tell, refuse, and leave unanswered."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import AsyncIterator

import pytest

from moorage.operators import asking
from moorage.operators.kre.runtime import build, mongo_wire, nats
from moorage.operators.kre.runtime import mongo as mongos
from moorage.operators.kre.runtime.observation import MongoSeen, NatsSeen, PeerSeen

from . import mongo_stub

HOST = "kre-mongo-0.kre-mongo.ns.svc"
READER = (build.READABLE, build.READER)


@pytest.fixture
async def stub() -> AsyncIterator[mongo_stub.MongoStub]:
    async with mongo_stub.MongoStub().running() as running:
        yield running


def mongo(stub: mongo_stub.MongoStub, password: str = "secret") -> mongos.Mongo:
    return mongos.Mongo("127.0.0.1", "admin", password, stub.port)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine: only what never answers is waited for in vain."""
    monkeypatch.setattr(asking, "REQUEST_LIMIT", 30.0)


# --- mongo ------------------------------------------------------------------------------------------------------------


async def test_a_fresh_mongo_is_no_replica_set_and_is_made_one(stub: mongo_stub.MongoStub) -> None:
    assert MongoSeen(initiated=False, primary=False) == await mongo(stub).look(None)

    await mongo(stub).initiate("rs0", HOST)

    assert {"_id": "rs0", "members": [{"_id": 0, "host": f"{HOST}:{stub.port}"}]} == stub.config
    assert MongoSeen() == await mongo(stub).look(None)


async def test_one_that_is_initiated_already_is_done(stub: mongo_stub.MongoStub) -> None:
    """As when the answer was lost, or a former leader was quicker; and it stays as it was."""
    await mongo(stub).initiate("rs0", HOST)
    await mongo(stub).initiate("rs0", "another")

    assert stub.config is not None
    assert f"{HOST}:{stub.port}" == stub.config["members"][0]["host"]


async def test_a_lost_answer_may_mean_that_it_was_done(stub: mongo_stub.MongoStub) -> None:
    stub.lose = {"replSetInitiate"}
    with pytest.raises(asking.AskError) as lost:
        await mongo(stub).initiate("rs0", HOST)

    assert lost.value.maybe
    assert not isinstance(lost.value, asking.RefusedError)
    assert (await mongo(stub).look(None)).initiated


async def test_one_that_refuses_says_why(stub: mongo_stub.MongoStub) -> None:
    stub.refused = {"replSetInitiate": (93, "No host described in new configuration maps to this node")}

    with pytest.raises(asking.RefusedError, match="maps to this node"):
        await mongo(stub).initiate("rs0", HOST)


async def test_a_replica_set_without_a_primary(stub: mongo_stub.MongoStub) -> None:
    """Half initiated: it has its configuration, and elects; nobody is looked for in it yet."""
    await mongo(stub).initiate("rs0", HOST)
    stub.primary = False

    assert MongoSeen(initiated=True, primary=False) == await mongo(stub).look(READER)
    assert "usersInfo" not in stub.asked


async def test_other_credentials_are_refused_in_its_own_words(stub: mongo_stub.MongoStub) -> None:
    found = await mongo(stub, "another").look(None)

    assert "Authentication failed" in found.refused
    assert [] == stub.asked


async def test_a_glance_needs_no_login(stub: mongo_stub.MongoStub) -> None:
    await mongo(stub).initiate("rs0", HOST)
    stub.asked.clear()

    assert MongoSeen() == await mongo(stub, "another").glance()
    assert [] == stub.asked


async def test_the_user_that_reads_is_made_once(stub: mongo_stub.MongoStub) -> None:
    await mongo(stub).initiate("rs0", HOST)
    assert not (await mongo(stub).look(READER)).reader

    for _ in range(2):
        await mongo(stub).make_reader(*READER, "reader's")

    assert {READER} == stub.users.keys()
    assert (await mongo(stub).look(READER)).reader


async def test_nobody_there() -> None:
    async with mongo_stub.MongoStub().running() as gone:
        asked = mongo(gone)

    with pytest.raises(asking.AskError, match="Connect call failed") as told:
        await asked.initiate("rs0", HOST)

    assert not told.value.maybe


async def test_one_that_dies_on_a_question_closed_the_connection(stub: mongo_stub.MongoStub) -> None:
    """And no connection of ours is left, as an unclosed one is an error of the test."""
    stub.lose = {"hello"}

    with pytest.raises(asking.AskError, match="it closed the connection"):
        await mongo(stub).glance()


async def test_one_that_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "REQUEST_LIMIT", 0.2)
    held: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: held.append(writer), "127.0.0.1", 0)
    asked = mongos.Mongo("127.0.0.1", "admin", "secret", server.sockets[0].getsockname()[1])
    async with server:
        with pytest.raises(asking.AskError, match=r"no answer within 0\.2 s"):
            await asked.glance()
    for writer in held:
        writer.close()
        await writer.wait_closed()


async def test_a_login_of_endless_rounds_is_not_begun(stub: mongo_stub.MongoStub) -> None:
    """Whoever runs the image says how many they are, and they are ours to compute."""
    stub.rounds = 2**31

    with pytest.raises(asking.AskError, match="a login of 2147483648 rounds"):
        await mongo(stub).look(None)


async def test_one_that_lets_everybody_in_is_not_believed(stub: mongo_stub.MongoStub) -> None:
    """It does not know the password: another server answers under that address."""
    stub.lets_in = True

    with pytest.raises(asking.AskError, match="it does not prove that it knows the password"):
        await mongo(stub, "another").look(None)
    assert [] == stub.asked


async def test_an_answer_of_mongo_is_bounded(stub: mongo_stub.MongoStub) -> None:
    stub.padding = mongo_wire.MOST_BYTES

    with pytest.raises(asking.AskError, match="none of mongo's"):
        await mongo(stub).glance()


async def test_a_password_that_no_server_takes_is_refused(stub: mongo_stub.MongoStub) -> None:
    found = await mongo(stub, "bell\u0007").look(None)

    assert "no such name or password can be told" in found.refused


@pytest.mark.parametrize("password", ["p\u00e4ss, w=rd", "\u2168"], ids=["letters", "compatible letters"])
async def test_passwords_of_all_letters(password: str) -> None:
    """As mongo keeps them: normalised, so that it is the same password however it was typed."""
    normal = unicodedata.normalize("NFKC", password)
    async with mongo_stub.MongoStub(password=normal).running() as running:
        assert not (await mongo(running, password).look(None)).refused


# --- NATS -------------------------------------------------------------------------------------------------------------

ALONE = b'{"server_id": "N", "memory": 0, "streams": 3}'
OFF = b'{"server_id": "N", "disabled": true}'


def in_cluster(leader: str, *replicas: tuple[str, bool]) -> bytes:
    members = ", ".join(
        f'{{"name": "{name}", "current": true, "offline": {str(off).lower()}}}' for name, off in replicas
    )
    return f'{{"meta_cluster": {{"name": "kre", "leader": "{leader}", "replicas": [{members}]}}}}'.encode()


def told(**answers: bytes) -> NatsSeen:
    """By the last letter of the pods' names."""
    return nats.seen({f"kre-nats-{name[1:]}": nats.answer(200, text) for name, text in answers.items()})


LEADS = in_cluster("kre-nats-0", ("kre-nats-1", False), ("kre-nats-2", False))
FOLLOWS = in_cluster("kre-nats-0")


@pytest.mark.parametrize(
    ("answers", "seen"),
    [
        ({"n0": ALONE}, NatsSeen("", ("kre-nats-0",))),
        ({"n0": OFF}, NatsSeen("", ())),
        (
            {"n0": LEADS, "n1": FOLLOWS, "n2": FOLLOWS},
            NatsSeen("kre-nats-0", ("kre-nats-0", "kre-nats-1", "kre-nats-2")),
        ),
        (
            {"n0": in_cluster("kre-nats-0", ("kre-nats-1", True)), "n1": FOLLOWS},
            NatsSeen("kre-nats-0", ("kre-nats-0",)),
        ),
        ({"n1": FOLLOWS, "n2": FOLLOWS}, NatsSeen("", ("kre-nats-1", "kre-nats-2"))),
        ({"n0": in_cluster(""), "n1": in_cluster("")}, NatsSeen("", ("kre-nats-0", "kre-nats-1"))),
        ({"n0": LEADS, "n1": OFF}, NatsSeen("kre-nats-0", ("kre-nats-0",))),
    ],
    ids=["alone", "without JetStream", "whole", "one is away", "the leader is silent", "no leader", "one has it off"],
)
def test_a_cluster_by_the_word_of_its_leader(answers: dict[str, bytes], seen: NatsSeen) -> None:
    """Who answers at its port may still be none of the cluster's."""
    found = told(**answers)

    assert (seen.leader, seen.servers) == (found.leader, found.servers)


def test_whom_a_cluster_counts_on_and_what_each_has() -> None:
    """The leader tells of all others, there or away; what is on a server, that server itself."""
    leads = (
        b'{"streams": 2, "consumers": 3, "meta_cluster": {"leader": "kre-nats-0", "peer": "a", "replicas": '
        b'[{"name": "kre-nats-1", "peer": "b"}, {"name": "kre-nats-2", "peer": "c", "offline": true}]}}'
    )
    found = told(n0=leads, n1=FOLLOWS)

    assert (PeerSeen("a", "kre-nats-0"), PeerSeen("b", "kre-nats-1"), PeerSeen("c", "kre-nats-2", True)) == found.peers
    assert {"kre-nats-0": 5, "kre-nats-1": 0} == found.held


@pytest.mark.parametrize(
    ("status", "text", "words"),
    [(404, b"{}", "HTTP 404"), (200, b"<html>", "can't be read"), (200, b'{"meta_cluster": 1}', "can't be read")],
)
def test_an_answer_that_is_none(status: int, text: bytes, words: str) -> None:
    with pytest.raises(asking.AskError, match=words):
        nats.answer(status, text)
