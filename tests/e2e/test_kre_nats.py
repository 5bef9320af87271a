"""NATS of a Runtime loses servers and volumes, grows, and shrinks: what it has acknowledged is there.

Somebody writes all the while, and notes what was acknowledged. Each test goes on from the end of the one before.

    pytest tests/e2e/test_kre_nats.py -m campaign
"""

from __future__ import annotations

import base64
import contextlib
import functools
import itertools
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from . import runtimes, tools

pytestmark = pytest.mark.campaign

ORDERS = "orders"
MORE = 20
"""Messages that are acknowledged after something was done, before it counts as survived."""

PACE = 0.05
"""Seconds between two messages."""

LEAVING = ("kre-nats-3", "kre-nats-4")


class Writer:
    """Writes to a stream by whichever server answers, one message after another, and notes the acknowledged ones."""

    def __init__(self, runtime: runtimes.Runtime, stream: str) -> None:
        self._runtime, self._stream = runtime, stream
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.acknowledged: list[str] = []

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        numbers = itertools.count()
        while not self._stop.is_set():
            with contextlib.suppress(tools.Failed), self._runtime.nats() as ask:  # another server next time
                while not self._stop.wait(PACE):
                    text = f"message {next(numbers)}"
                    if ask(self._stream, text.encode()).get("stream") == self._stream:
                        self.acknowledged.append(text)

    def goes_on(self) -> None:
        """Wait until so many more are acknowledged."""
        before = len(self.acknowledged)
        tools.wait(
            f"{MORE} more messages are acknowledged",
            lambda: len(self.acknowledged) >= before + MORE,
            within=runtimes.WITHIN,
        )


@pytest.fixture(scope="module")
def runtime(kre: tools.Cluster) -> Iterator[runtimes.Runtime]:
    """A small Runtime with three servers, and a stream that each of them keeps."""
    one = runtimes.Runtime(kre, "kre-nats")
    small: dict[str, Any] = runtimes.SMALL | {"nats_streaming": {"replicas": 3, "storage": {"size": "100Mi"}}}
    one.apply(**small, reclaim="Delete")
    try:
        one.ready()
        one.jetstream(f"STREAM.CREATE.{ORDERS}", name=ORDERS, subjects=[ORDERS], num_replicas=3)
        yield one
    finally:
        print(kre.kubectl("get", "runtimes,pods,pvc", "-n", one.namespace, "-o", "wide", check=False))
        one.delete()
        kre.kubectl("delete", "namespace", one.namespace, tools.HANGS)


@pytest.fixture
def writer(runtime: runtimes.Runtime) -> Iterator[Writer]:
    """Somebody who writes meanwhile."""
    with Writer(runtime, ORDERS) as one:
        one.goes_on()
        yield one


def messages(runtime: runtimes.Runtime, stream: str) -> set[str]:
    """All that the stream has now. Who breaks off is asked again from there on."""
    state = runtime.jetstream(f"STREAM.INFO.{stream}")["state"]
    found: dict[int, str] = {}

    def read() -> bool:
        with runtime.nats() as ask:
            for number in range(state["first_seq"] + len(found), state["last_seq"] + 1):
                got = ask(f"$JS.API.STREAM.MSG.GET.{stream}", json.dumps({"seq": number}).encode())
                found[number] = base64.b64decode(got["message"]["data"]).decode()
        return True

    tools.wait(f"all of stream {stream} is read", read, within=runtimes.WITHIN)
    return set(found.values())


def killed(runtime: runtimes.Runtime, *servers: str) -> None:
    """Take their pods away without a word, all at once, and wait until others are in their place."""
    before = runtime.pods()
    runtime.kubectl("delete", "pod", *servers, "--force", "--grace-period=0", "--wait=false")

    def replaced() -> bool:
        now = runtime.pods()
        return all(now.get(name, before[name]) != before[name] for name in servers)

    tools.wait(f"others are in the place of {', '.join(servers)}", replaced, within=runtimes.WITHIN)


def copies(runtime: runtimes.Runtime, stream: str) -> list[str]:
    """Servers that have all of the stream."""
    cluster = runtime.jetstream(f"STREAM.INFO.{stream}")["cluster"]
    whole = [each["name"] for each in cluster.get("replicas") or () if each["current"] and not each.get("offline")]
    return sorted([cluster["leader"], *whole])


def is_whole(runtime: runtimes.Runtime, writer: Writer) -> None:
    """The Runtime is Ready, all goes on, each server has all, and nothing that was acknowledged is missing."""
    runtime.ready()
    writer.goes_on()
    tools.wait("three servers have all", lambda: len(copies(runtime, ORDERS)) == 3, within=runtimes.WITHIN)
    acknowledged = set(writer.acknowledged)

    assert set() == acknowledged - messages(runtime, ORDERS)


def test_one_of_three_servers_is_killed(runtime: runtimes.Runtime, writer: Writer) -> None:
    """The one that leads the stream, which others go on with."""
    killed(runtime, runtime.jetstream(f"STREAM.INFO.{ORDERS}")["cluster"]["leader"])

    is_whole(runtime, writer)


def test_all_three_servers_are_killed(runtime: runtimes.Runtime, writer: Writer) -> None:
    """What was acknowledged is on their volumes."""
    killed(runtime, "kre-nats-0", "kre-nats-1", "kre-nats-2")

    is_whole(runtime, writer)


def test_a_server_loses_its_volume(runtime: runtimes.Runtime, writer: Writer) -> None:
    """It gets a new one, and all from the others; and is worth as much as they are, as one of them goes then."""
    lost = runtime.jetstream(f"STREAM.INFO.{ORDERS}")["cluster"]["leader"]
    claim = runtime.cluster.get("pvc", f"data-{lost}", "-n", runtime.namespace)["metadata"]["uid"]
    runtime.kubectl("delete", "pvc", f"data-{lost}", "--wait=false")
    killed(runtime, lost)
    anew = runtime.cluster.get("pvc", f"data-{lost}", "-n", runtime.namespace)["metadata"]["uid"]

    assert claim != anew
    is_whole(runtime, writer)
    other = next(name for name in copies(runtime, ORDERS) if name != lost)
    killed(runtime, other)
    is_whole(runtime, writer)


def test_three_to_five_and_back(runtime: runtimes.Runtime, writer: Writer) -> None:
    """Streams of one copy are on the two that leave, with a message each: both are on others then, and nothing is lost.

    Volumes of those that have left are gone. A stream of somebody's that wants five copies keeps all where they are.
    """
    runtime.edit(nats_streaming={"replicas": 5})
    assert 5 == runtime.ready()["natsServers"]
    is_whole(runtime, writer)
    lone = on_their_own(runtime)
    runtime.jetstream("STREAM.CREATE.wide", name="wide", subjects=["wide"], num_replicas=5)
    before = runtime.pods()
    runtime.edit(nats_streaming={"replicas": 3})

    assert "stream wide, which is not moorage's, has more copies than the 3" in runtime.stopped("NatsStreamsStay")
    assert before.items() <= runtime.pods().items()
    runtime.jetstream("STREAM.UPDATE.wide", name="wide", subjects=["wide"], num_replicas=3)
    runtime.kubectl("annotate", "runtime/demo", "moorage.dev/reconcile-at=again")
    assert 3 == runtime.ready()["natsServers"]
    is_whole(runtime, writer)
    assert [{"kept"}] * 2 == [messages(runtime, name) for name in lone.values()]
    assert not runtime.pods().keys() & set(LEAVING)
    for server in LEAVING:
        assert runtime.cluster.get("pvc", f"data-{server}", "-n", runtime.namespace) is None


def on_their_own(runtime: runtimes.Runtime) -> dict[str, str]:
    """A stream of one copy on each server that is to leave, with a message, by the server.

    Made of five copies, of which the leader's stays.
    """
    found = {}
    for server in LEAVING:
        name = f"lone-{server[-1]}"
        config = {"name": name, "subjects": [name]}
        runtime.jetstream(f"STREAM.CREATE.{name}", **config, num_replicas=5)
        wanted = {"placement": {"preferred": server}}

        def leads(name: str = name, server: str = server, wanted: dict[str, Any] = wanted) -> bool:
            if runtime.jetstream(f"STREAM.INFO.{name}")["cluster"].get("leader") == server:
                return True
            runtime.jetstream(f"STREAM.LEADER.STEPDOWN.{name}", **wanted)
            return False

        tools.wait(f"{server} leads stream {name}", leads, within=runtimes.WITHIN, every=2.0)
        runtime.jetstream(f"STREAM.UPDATE.{name}", **config, num_replicas=1)
        tools.wait(f"stream {name} is on {server} alone", functools.partial(_is_on, runtime, name, [server]))
        with runtime.nats() as ask:
            assert name == ask(name, b"kept")["stream"]
        found[server] = name
    return found


def _is_on(runtime: runtimes.Runtime, stream: str, servers: list[str]) -> bool:
    return copies(runtime, stream) == servers
