"""/healthz asks for a restart only where one would help."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import aiohttp
import pytest

from moorage.kube import client as kube_client
from moorage.kube.informers import informer, reflector
from moorage.runtime import manager
from moorage.runtime.reporting import http_server, liveness
from tests.unit.runtime.fake_api import Asked, FakeApi, Refusal, until
from tests.unit.runtime.gadgets import GADGET, Gadget, GadgetKind


async def test_trouble_with_the_server_is_no_reason_and_silence_and_a_crash_are(api: FakeApi) -> None:
    async def gone(_: Asked) -> None:
        raise Refusal(404, "NotFound")

    now = [0.0]
    pace = reflector.Pace(clock=lambda: now[0])
    cache = informer.Informer(kube_client.Client(api), reflector.Scope(GADGET), Gadget, pace=pace)
    api.before = gone
    cache.start()
    await until(lambda: cache.error)
    now[0] = 10_000.0
    assert liveness.beyond_cure([cache], clock=pace.clock) == [], "a CRD that is not there"
    await cache.stop()
    api.before = None

    cache = informer.Informer(kube_client.Client(api), reflector.Scope(GADGET), Gadget, pace=pace)
    assert liveness.beyond_cure([cache], clock=pace.clock) == [], "not listed yet"
    cache.start()
    await cache.wait_synced(30)
    assert liveness.beyond_cure([cache], clock=pace.clock) == []
    now[0] += cache.stale_after + 1
    assert liveness.beyond_cure([cache], clock=pace.clock) == [str(cache.scope)], "silent without saying why"
    await cache.stop()

    cache = informer.Informer(kube_client.Client(api), reflector.Scope(GADGET), cast("Any", object()), pace=pace)
    cache.start()
    await until(lambda: cache.error)
    assert liveness.beyond_cure([cache], clock=pace.clock) == [str(cache.scope)], "its task has crashed"
    await cache.stop()


async def test_the_server_answers(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    class Anywhere(http_server.Server):
        """On a port that the kernel gives, so that nobody else has it."""

        def __init__(self, **given: Any) -> None:
            super().__init__(**{**given, "port": 0})
            made.append(self)

    made: list[http_server.Server] = []
    monkeypatch.setattr(http_server, "Server", Anywhere)
    await api.put("gadgets", "one")
    settings = manager.Settings(identity="me", namespace="ns", elect=False, host="127.0.0.1", port=8080)
    stop = asyncio.Event()
    running = asyncio.create_task(manager.Manager(kube_client.Client(api), [GadgetKind()], settings).run(stop))
    await until(lambda: api.one("gadgets", "one").get("status"))
    assert made[0]._server is not None
    port = made[0]._server.sockets[0].getsockname()[1]
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
        for path, text in (("/healthz", "ok"), ("/readyz", "ok"), ("/metrics", "moorage_leading 1.0")):
            async with session.get(path) as answer:
                assert answer.status == 200
                assert text in await answer.text()
    stop.set()
    assert await running is True
