"""What NATS is asked and told while one of its servers leaves: by its protocol, and only by what it says right then."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from moorage.api import meta
from moorage.operators import asking
from moorage.operators.kre import kinds
from moorage.operators.kre.reasons import RuntimeReason as Reason
from moorage.operators.kre.runtime import credentials, nats_cluster, types
from moorage.operators.kre.runtime.observation import NatsSeen, PeerSeen
from moorage.operators.kre.version import jetstream
from moorage.operators.kre.version.streams import PlacedSeen
from moorage.runtime import decision, reasons, source
from tests.unit.operators.kre import nats_stub

from . import nats_processes

PLACE = ("ns", "demo")
RUNTIME = types.Runtime(meta.ObjectMeta(name="demo", namespace="ns"), types.RuntimeSpec())
LEAVER = PeerSeen("p", "kre-nats-3", away=True)
AWAY = NatsSeen("kre-nats-0", ("kre-nats-0", "kre-nats-1", "kre-nats-2"), (PeerSeen("l", "kre-nats-0"), LEAVER))


class Known:
    """The login, if it is known."""

    login: tuple[str, str] | None = ("moorage", "a-password-of-its-own")

    def nats(self, _: Any) -> tuple[str, str] | None:
        return self.login


class World:
    @staticmethod
    def enqueue(*_: Any, **__: Any) -> None:
        pass


class Bench:
    """What asks and tells one stub; `says` is what its servers tell at their other port."""

    def __init__(self, stub: nats_stub.NatsStub) -> None:
        self.stub, self.known, self.says = stub, Known(), AWAY
        self.outdated: list[Any] = []
        self.cluster = nats_cluster.NatsCluster(
            World(),  # type: ignore[arg-type]
            self.known,  # type: ignore[arg-type]
            lambda _: {"kre-nats-0": "127.0.0.1"},
            self._ask,
            lambda place, _: self.outdated.append(place),
            lambda _: 60.0,
        )

    async def _ask(self, _: Any) -> NatsSeen:
        return self.says

    async def told(self, operation: str, **args: Any) -> decision.Outcome:
        return await self.cluster.operations[operation](RUNTIME, args)

    def answers(self, **by: dict[str, Any]) -> None:
        """To these questions, by their last word."""
        self.stub.answer = lambda what: next(
            (json.dumps(said).encode() for word, said in by.items() if what.replace(".", "_").startswith(word)), None
        )


@pytest.fixture
async def bench(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    async with nats_stub.NatsStub().running() as stub:
        monkeypatch.setattr(nats_cluster, "PORT", stub.port)
        made = Bench(stub)
        yield made
        await made.cluster.streams.stop()


def stream(name: str, leader: str, *replicas: str, **changed: Any) -> dict[str, Any]:
    members = [{"name": each} for each in replicas]
    config = {"name": name, "num_replicas": 1 + len(replicas)}
    return {"config": config, "cluster": {"leader": leader, "replicas": members, **changed}}


async def test_where_streams_are(bench: Bench) -> None:
    """Each with who has it, and those of which nobody tells."""
    mine = stream("a", "kre-nats-0", "kre-nats-1", desired={"created": "now"})
    mine["config"]["metadata"] = {kinds.OF_VERSION: "one"}
    bench.answers(
        STREAM_LIST={"streams": [mine, stream("b", "kre-nats-3")], "missing": ["c"], "offline": {"d": "x"}, "total": 4}
    )

    found = await bench.cluster._look(PLACE)

    expected = (
        PlacedSeen("a", "one", 2, ("kre-nats-0", "kre-nats-1"), moving=True),
        PlacedSeen("b", "", 1, ("kre-nats-3",)),
        PlacedSeen("c", known=False),
        PlacedSeen("d", known=False),
    )
    assert expected == found.streams
    assert (expected[1:2], ("c", "d"), "") == (found.on("kre-nats-3"), found.untold, found.refused)


async def test_a_login_that_is_not_known_yet_is_awaited(bench: Bench) -> None:
    bench.known.login = None

    with pytest.raises(source.SourceError, match="Secret kre-nats-login is not looked at yet"):
        await bench.cluster._look(PLACE)
    assert isinstance(await bench.told("nats.step_down"), decision.Refused)


@pytest.mark.parametrize(
    ("operation", "args", "question"),
    [
        ("nats.move_stream", {"name": "a", "server": "kre-nats-3"}, "STREAM.PEER.EVACUATE.a"),
        ("nats.step_down", {}, "META.LEADER.STEPDOWN"),
        ("nats.remove_server", {"server": "kre-nats-3", "peer": "p"}, "SERVER.REMOVE"),
    ],
)
async def test_what_is_told(bench: Bench, operation: str, args: dict[str, Any], question: str) -> None:
    """And what was known of NATS is not decided on again."""
    bench.answers(STREAM_PEER={"success": True}, META={"success": True}, SERVER={"success": True})

    assert decision.Ok() == await bench.told(operation, **args)
    assert question == bench.stub.asked[-1]
    assert [PLACE] == bench.outdated


@pytest.mark.parametrize(
    ("operation", "code"), [("nats.move_stream", 10059), ("nats.move_stream", 10040), ("nats.remove_server", 10044)]
)
async def test_done_already_is_done(bench: Bench, operation: str, code: int) -> None:
    """As where the answer was lost: the stream is gone, is not there, or the server is no member."""
    error = {"error": {"code": 404, "err_code": code, "description": "not there"}}
    bench.answers(STREAM_PEER=error, SERVER=error)

    assert decision.Ok() == await bench.told(operation, name="a", server="kre-nats-3", peer="p")


async def test_its_words_where_it_refuses(bench: Bench) -> None:
    """A stream for which no other server has room."""
    bench.answers(STREAM_PEER={"error": {"code": 503, "err_code": 10075, "description": "peer remap failed"}})

    found = await bench.told("nats.move_stream", name="a", server="kre-nats-3")

    assert decision.Refused(Reason.NATS_REFUSES, "peer remap failed (10075): no other server has room for it") == found


LISTED: list[tuple[NatsSeen, dict[str, Any], str]] = [
    (NatsSeen("kre-nats-0", (), (PeerSeen("p", "kre-nats-3"),)), {"total": 0}, "does not say that kre-nats-3 is away"),
    (NatsSeen("kre-nats-0", (), ()), {"total": 0}, "does not say that kre-nats-3 is away"),
    (AWAY, {"streams": [stream("a", "kre-nats-0", "kre-nats-3")], "total": 1}, "stream a may be on kre-nats-3"),
    (AWAY, {"streams": [], "missing": ["b"], "total": 1}, "stream b may be on kre-nats-3"),
]


@pytest.mark.parametrize(("says", "listed", "words"), LISTED, ids=["there", "unknown", "in use", "untold"])
async def test_no_server_is_removed_that_may_have_something(
    bench: Bench, says: NatsSeen, listed: dict[str, Any], words: str
) -> None:
    """By what NATS says right then, whatever was decided on."""
    bench.says = says
    bench.answers(STREAM_LIST=listed)

    found = await bench.told("nats.remove_server", server="kre-nats-3", peer="p")

    assert isinstance(found, decision.Conflict)
    assert words in found.message
    assert "SERVER.REMOVE" not in bench.stub.asked


async def test_no_server_is_removed_where_nats_does_not_tell(bench: Bench) -> None:
    bench.stub.jetstream = False

    found = await bench.told("nats.remove_server", server="kre-nats-3", peer="p")

    assert isinstance(found, decision.Refused)
    assert reasons.Reason.NOT_SENT == found.reason


@pytest.mark.parametrize(
    ("says", "words"),
    [
        (AWAY, "NATS counts on kre-nats-3"),
        (NatsSeen("", AWAY.servers, ()), "NATS has no leader"),
        (NatsSeen("kre-nats-0", AWAY.servers[:2], AWAY.peers[:1]), "not all of its 3 servers"),
        (NatsSeen("kre-nats-0", AWAY.servers, AWAY.peers[:1]), ""),
    ],
    ids=["counted on", "no leader", "not whole", "it has left"],
)
async def test_when_its_volume_may_go(bench: Bench, says: NatsSeen, words: str) -> None:
    """Only by the word of a cluster that is whole without it."""
    bench.says = says

    found = await bench.cluster.has_left(RUNTIME, {"server": "kre-nats-3", "ordinal": 3})

    assert words in found
    assert bool(words) == bool(found)


async def test_copies_are_lowered_of_streams_that_bear_the_mark(bench: Bench) -> None:
    """Nothing else of them changes, and what has no more stays."""
    config = {"name": "a", "num_replicas": 5, "max_msgs": 7, "metadata": {kinds.OF_VERSION: "one"}}
    bench.stub.streams = {"a": dict(config), "b": {**config, "name": "b", "metadata": {}}}

    assert decision.Ok() == await bench.told("nats.lower_stream", name="a", mark="one", copies=3)
    assert {**config, "num_replicas": 3} == bench.stub.streams["a"]
    assert decision.Ok() == await bench.told("nats.lower_stream", name="a", mark="one", copies=3)
    assert ["STREAM.UPDATE.a"] == bench.stub.changes
    refused = await bench.told("nats.lower_stream", name="b", mark="one", copies=3)
    assert isinstance(refused, decision.Refused)


# --- NATS itself ------------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def server(folder: Path, configuration: str, login: str) -> AsyncIterator[Callable[..., Any]]:
    processes = nats_processes.Processes(folder)
    await processes.start("kre-nats-0", configuration, login)
    try:
        await processes.ask("kre-nats-0", "STREAM.LIST", {})
        yield lambda login=None: jetstream.connected(processes.address("kre-nats-0"), nats_processes.PORT, login=login)
    finally:
        await processes.end_all()


async def test_who_does_not_know_the_password_is_everybody(tmp_path: Path) -> None:
    """NATS' own account takes the login of the Secret alone; all others need none, as before."""
    text = "server_name: $POD_NAME\ninclude ./login.conf\nport: 4222\nhttp_port: 8222\npid_file: /tmp/nats.pid\n"
    text += "jetstream {\n  store_dir: /data\n}\n"
    login = credentials._login("of-sixteen-letters")
    async with server(tmp_path, text, login) as connected:
        async with connected(("moorage", "of-sixteen-letters")):
            pass
        with pytest.raises(asking.RefusedError, match="NATS does not take the login of moorage"):
            async with connected(("moorage", "another")):
                pass
