"""A Runtime's NATS grows and shrinks, with NATS itself as processes, while somebody writes and moorage is killed."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import nats
import pytest

from moorage.kube import errors
from moorage.operators import asking
from moorage.operators.kre import kinds
from moorage.operators.kre.runtime import nats as told
from moorage.operators.kre.runtime import servers
from moorage.operators.kre.version import jetstream
from tests.unit.operators.kre import playing
from tests.unit.runtime import fake_api

from . import nats_processes

SPEC: dict[str, Any] = {
    "nats_streaming": {"replicas": 3},
    "influxdb": {"enabled": False},
    "chronograf": {"enabled": False},
    "values": {"nats": {"maxFileStore": "256Mi"}},  # the same for all, so that streams are spread by their number
}
LIVES = (1, 2, 3)
"""Writes after which one moorage after another ends, in turns."""


class WithNats(playing.Played):
    """Its pods of NATS are processes."""

    processes: nats_processes.Processes

    async def runs(self, pod: str) -> str:
        if not pod.startswith("kre-nats-"):
            return await super().runs(pod)
        configuration = self.api.one("configmaps", "kre-nats")["data"]["nats.conf"]
        login = base64.b64decode(self.api.one("secrets", kinds.NATS_LOGIN)["data"]["login.conf"]).decode()
        await self.processes.start(pod, configuration, login)
        return self.processes.address(pod)

    async def ends(self, pod: str) -> None:
        await self.processes.end(pod)


class Killer:
    """Ends a moorage at one of its writes, to the API server or to NATS: right before it, or right after it.

    What comes then does not happen any more.
    """

    def __init__(self, api: playing.Api, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left, self.before = 10**6, False
        self.over = asyncio.Event()
        self.kills = 0
        api.before, api.after = self._on_request, self._on_answer
        changed = jetstream.JetStream._change

        async def change(it: jetstream.JetStream, what: str, body: dict[str, Any] | None) -> None:
            if self.over.is_set() or (self._hits() and self.before):
                raise asking.AskError("broken off")
            await changed(it, what, body)
            if self.over.is_set():
                raise asking.AskError("broken off", maybe=True)

        monkeypatch.setattr(jetstream.JetStream, "_change", change)

    def arm(self, writes: int, *, before: bool) -> None:
        """It ends at so many writes from now on."""
        self.left, self.before = writes, before
        self.over.clear()

    async def _on_request(self, asked: fake_api.Asked) -> None:
        if _writes(asked) and (self.over.is_set() or (self._hits() and self.before)):
            raise fake_api.Refusal(503)

    async def _on_answer(self, asked: fake_api.Asked) -> None:
        if _writes(asked) and self.over.is_set():
            raise errors.TransportError("broken off", sent=True)

    def _hits(self) -> bool:
        self.left -= 1
        if not self.left:
            self.kills += 1
            self.over.set()
        return self.over.is_set()


def _writes(asked: fake_api.Asked) -> bool:
    return asked.method != "GET" and asked.at.plural not in ("events", "leases")


class Writer:
    """Writes to all streams in turns, and notes what is acknowledged."""

    def __init__(self, address: str, streams: list[str]) -> None:
        self._address, self._streams = address, streams
        self.acknowledged: list[tuple[str, str]] = []

    @contextlib.asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Somebody writes meanwhile."""
        client = await nats.connect(f"nats://{self._address}:{nats_processes.PORT}", max_reconnect_attempts=-1)
        writing = asyncio.create_task(self._write(client))
        try:
            yield
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
            await client.close()

    async def _write(self, client: Any) -> None:
        jetstream_ = client.jetstream(timeout=5)
        for number, stream in zip(itertools.count(), itertools.cycle(self._streams), strict=False):
            with contextlib.suppress(nats.errors.Error, nats.js.errors.Error, TimeoutError):  # then it is not noted
                await jetstream_.publish(stream, str(number).encode())
                self.acknowledged.append((stream, str(number)))
            await asyncio.sleep(0.02)


async def messages(processes: nats_processes.Processes, stream: str) -> set[str]:
    """All that the stream has."""
    state = json.loads(await processes.ask("kre-nats-0", f"STREAM.INFO.{stream}"))["state"]
    found = set()
    for number in range(state["first_seq"], state["last_seq"] + 1):
        got = json.loads(await processes.ask("kre-nats-0", f"STREAM.MSG.GET.{stream}", {"seq": number}))
        found.add(base64.b64decode(got["message"]["data"]).decode())
    return found


async def counted_on(processes: nats_processes.Processes) -> set[str]:
    """Servers of the cluster, by the leader's word."""
    http = asking.Http()
    try:
        asked = {name: await http.get(processes.address(name), 8222, "/jsz") for name in processes.names}
    finally:
        await http.close()
    return {peer.name for peer in told.seen({name: told.answer(*it) for name, it in asked.items()}).peers}


async def edit(api: playing.Api, **spec: Any) -> None:
    await api.put("runtimes", "demo", {"spec": spec})


def is_ready(api: playing.Api, servers_: int) -> bool:
    runtime = api.runtime()
    ready = next((it for it in runtime["status"]["conditions"] if it["type"] == "Ready"), {})
    seen = ready.get("observedGeneration") == runtime["metadata"]["generation"]
    return seen and ready["status"] == "True" and runtime["status"]["natsServers"] == servers_


async def lone_streams(processes: nats_processes.Processes) -> list[str]:
    """Streams of one copy until each server has one; with a consumer each, as nothing may be lost of those either."""
    made, places = [], set[str]()
    while len(places) < 5:
        assert len(made) < 50, f"all of them are on {places}"
        name = f"lone{len(made)}"
        answer = await processes.ask("kre-nats-0", f"STREAM.CREATE.{name}", {"name": name, "subjects": [name]})
        places.add(json.loads(answer)["cluster"]["leader"])
        made.append(name)
        config = {"durable_name": "reader", "ack_policy": "explicit"}
        await processes.ask(
            "kre-nats-0", f"CONSUMER.DURABLE.CREATE.{name}.reader", {"stream_name": name, "config": config}
        )
    return made


async def test_three_to_five_to_three_and_killed_at_its_writes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing that was acknowledged is lost, whatever moorage was about to do.

    The two that left are counted on no more, and their volumes are gone; those of the others stay.
    """
    api, processes = playing.Api(), nats_processes.Processes(tmp_path / "nats")
    made = type("Made", (WithNats,), {"processes": processes})
    killer = Killer(api, monkeypatch)
    await api.put("namespaces", "ns", namespace="")
    metadata = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    login = {"mongo": {"credentials": {"username": "admin", "password": "123456"}}}
    await api.put("runtimes", "demo", {"metadata": metadata, "spec": {**SPEC, **login}})
    try:
        async with playing.servers_run(monkeypatch):
            monkeypatch.setattr(servers, "NATS_PORT", 8222)
            async with playing.operating(api, tmp_path, made):
                await fake_api.until(lambda: api.stands("Ready", "True") and is_ready(api, 3), within=120)
                await edit(api, nats_streaming={"replicas": 5})
                await fake_api.until(lambda: is_ready(api, 5), within=120)
            streams = await lone_streams(processes)
            kept = {"name": "kept", "subjects": ["kept"], "num_replicas": 3}
            await processes.ask("kre-nats-0", "STREAM.CREATE.kept", kept)
            claims = {name for place, name in _named(api, "persistentvolumeclaims") if "nats" in name}
            assert {f"data-kre-nats-{n}" for n in range(5)} == claims
            writer = Writer(processes.address("kre-nats-0"), [*streams, "kept"])
            async with writer.writing():
                await fake_api.until(lambda: len(writer.acknowledged) > 3 * len(streams), within=60)
                await edit(api, nats_streaming={"replicas": 3})
                for life, before in zip(itertools.cycle(LIVES), itertools.cycle((True, False)), strict=False):
                    killer.arm(life, before=before)
                    async with playing.operating(api, tmp_path, made):
                        await fake_api.until(lambda: killer.over.is_set() or is_ready(api, 3), within=180)
                    if not killer.over.is_set():
                        break
                killer.arm(10**6, before=False)
                done = len(writer.acknowledged)
                await fake_api.until(lambda: len(writer.acknowledged) > done + len(streams), within=60)
            found = {name: await messages(processes, name) for name in (*streams, "kept")}

            assert [] == [(name, number) for name, number in writer.acknowledged if number not in found[name]]
            assert killer.kills > 10
            assert ["kre-nats-0", "kre-nats-1", "kre-nats-2"] == processes.names
            left = {name for _, name in _named(api, "persistentvolumeclaims") if "nats" in name}
            assert {f"data-kre-nats-{n}" for n in range(3)} == left
            for name in streams:
                consumer = json.loads(await processes.ask("kre-nats-0", f"CONSUMER.INFO.{name}.reader"))
                assert len(found[name]) == consumer["num_pending"]
            assert set(processes.names) == await counted_on(processes)
    finally:
        await processes.end_all()


def _named(api: playing.Api, plural: str) -> list[tuple[str, str]]:
    return [(place.namespace, place.name) for place in api.objects if place.plural == plural]
