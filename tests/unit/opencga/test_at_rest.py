"""Ten installations of which nothing is wanted: what the operator does all the same."""

from __future__ import annotations

import asyncio

import pytest

from moorage.kube import client as kube_client
from moorage.operators.opencga import config, kind
from moorage.runtime import manager
from tests.unit.opencga import test_life
from tests.unit.runtime import fake_api

pytestmark = pytest.mark.campaign

NAMES = [f"demo{n}" for n in range(10)]
RESYNC = 3.0
IDLE = 1.0
"""Seconds between two looks at an installation's agents, once it is ready; 30 where nothing else is set."""


async def test_ten_at_rest_cost_no_write_and_one_question_an_agent_and_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over three resyncs of each. No agent is asked more often than its installation's pace says."""
    api = await test_life.applied(members=1)
    spec = api.community()["spec"]
    for name in NAMES:
        own = {**spec, "database": {**spec["database"], "prefix": name}}  # a catalog is one installation's
        await api.put(
            "opencgacommunity", name, {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": own}
        )
        await api.put("secrets", f"{name}-admin-password", {"data": api.one("secrets", "demo-admin-password")["data"]})
    await api.drop("opencgacommunity", "demo")
    settings = config.Config(
        "moorage-accounts", "moorage-opencga-namespace", poll=config.Poll(0.1, IDLE), resync_seconds=RESYNC
    )
    passes: dict[str, int] = dict.fromkeys(NAMES, 0)

    class Counted(kind.CommunityKind):
        def observe(self, obj: kind.types.Community, now: float) -> kind.observation.Seen:
            passes[obj.metadata.name] += 1
            return super().observe(obj, now)

    monkeypatch.setattr(kind.asking, "Http", lambda: api)
    stop, options = asyncio.Event(), manager.Settings("me", namespace="moorage-system", elect=False, port=0)
    running = asyncio.create_task(
        manager.Manager(kube_client.Client(api), [Counted(settings, "moorage-system")], options).run(stop)
    )
    try:
        await fake_api.until(lambda: all(map(api.settled, NAMES)), within=test_life.WITHIN)
        writes, before, asked = len(api.writes()), dict(passes), dict(api.asked)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await fake_api.until(lambda: all(passes[it] >= before[it] + 3 for it in NAMES), within=test_life.WITHIN)
        took = loop.time() - begun
    finally:
        stop.set()
        await running

    assert [] == api.writes()[writes:]
    assert 2 * len(NAMES) == len(api.asked)
    most = max(api.asked[pod] - asked.get(pod, 0) for pod in api.asked)
    assert most <= took / IDLE + 1
