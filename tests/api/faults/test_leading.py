"""Whatever befalls a leader, there is never a second one beside it, and soon another one, that does its work.

MOORAGE_TEST_SEED=7 pytest tests/api/faults/test_leading.py -m campaign -s
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from moorage.api import builtin
from moorage.kube import client as kube_client
from tests.api.runtime import conftest, operate

from . import plans, proxy, report, run, scenario, waiting

ROOT = Path(__file__).parents[3]
LEASE = "moorage"
SLICE = 2
ROUNDS = 3


async def _free_lease(client: kube_client.Client, namespace: str) -> None:
    """As an installation brings it, so that the first leader does not wait."""
    metadata = {"name": LEASE, "namespace": namespace}
    body = {"apiVersion": builtin.LEASE.api_version, "kind": builtin.LEASE.kind, "metadata": metadata}
    await client.apply(builtin.LEASE, namespace, LEASE, body, field_manager="test")


class Candidates:
    """Two operators at any time, of which one may lead; and somebody who looks whether it is one."""

    def __init__(self, client: kube_client.Client, namespace: str) -> None:
        self.client, self.namespace = client, namespace
        self.user = operate.User(client, namespace)
        self._all: list[tuple[operate.Operator, plans.Partition]] = []
        self.most = 0
        """How many led at once, at most."""

    async def __aenter__(self) -> Candidates:
        await _free_lease(self.client, self.namespace)
        self._looker = asyncio.create_task(self._look())
        self.fill()
        await waiting.until(self.leader)
        await self.user.create("one", text="begin")
        await self.user.ready("one")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._looker.cancel()
        for each, _ in self._all:
            await each.kill()
        await self.user.leave()

    async def _look(self) -> None:
        while True:
            self.most = max(self.most, sum(each.leads for each, _ in self._all))
            await asyncio.sleep(0.002)

    def fill(self) -> None:
        """A process that has ended is followed by another."""
        while len([1 for each, _ in self._all if not each.task.done()]) < 2:
            plan = plans.Partition()
            self._all.append(
                (operate.Operator(self.client, self.namespace, elect=True, plan=plan, pace=operate.QUICK), plan)
            )

    def leader(self) -> tuple[operate.Operator, plans.Partition] | None:
        """Who leads now."""
        return next((pair for pair in self._all if pair[0].leads), None)

    async def works(self, text: str, besides: operate.Operator | None = None) -> float:
        """Have a change carried out, by another than one who may not any more; how many seconds that took."""
        begun = time.monotonic()
        self.fill()

        def led() -> bool:
            found = self.leader()
            return found is not None and found[0] is not besides

        await waiting.until(led)
        await self.user.change("one", {"spec": {"text": text}})
        assert text == (await self.user.ready("one")).status.text
        return time.monotonic() - begun


Fault = Callable[[Candidates, operate.Operator, plans.Partition, pytest.MonkeyPatch], Awaitable[bool]]
"""Whether the leader has to give up."""


async def killed(_: Candidates, it: operate.Operator, plan: plans.Partition, patch: pytest.MonkeyPatch) -> bool:
    """SIGKILL."""
    await it.kill()
    it.manager._gate.open_until(None)  # a dead process leads nobody
    return True


async def stopped(_: Candidates, it: operate.Operator, plan: plans.Partition, patch: pytest.MonkeyPatch) -> bool:
    """SIGTERM."""
    assert await it.stop()
    return True


async def cut_off(_: Candidates, it: operate.Operator, plan: plans.Partition, patch: pytest.MonkeyPatch) -> bool:
    """Nothing gets through."""
    plan.closed = True
    assert await it.task is False
    return True


async def deaf(_: Candidates, it: operate.Operator, plan: plans.Partition, patch: pytest.MonkeyPatch) -> bool:
    """Its renewals arrive, their answers don't; what it can't know it must not count on."""
    plan.deaf = True
    assert await it.task is False
    return True


async def lease_deleted(
    them: Candidates, it: operate.Operator, plan: plans.Partition, patch: pytest.MonkeyPatch
) -> bool:
    """By somebody."""
    await them.client.delete(builtin.LEASE, them.namespace, LEASE, propagation="Background")
    assert await it.task is False
    return True


async def lease_stolen(
    them: Candidates, it: operate.Operator, plan: plans.Partition, patch: pytest.MonkeyPatch
) -> bool:
    """Somebody writes another holder into it, who does not exist."""
    body = {"spec": {"holderIdentity": "nobody"}}
    await them.client.patch_merge(builtin.LEASE, them.namespace, LEASE, body, field_manager="test")
    assert await it.task is False
    return True


async def lease_edited(
    them: Candidates, it: operate.Operator, plan: plans.Partition, patch: pytest.MonkeyPatch
) -> bool:
    """Somebody annotates it, which is nobody's business."""
    body = {"metadata": {"annotations": {"seen": "yes"}}}
    await them.client.patch_merge(builtin.LEASE, them.namespace, LEASE, body, field_manager="test")
    renewals = len(it.wire.other)
    await waiting.until(lambda: len(it.wire.other) > renewals + 3)
    return False


async def clock_stepped(_: Candidates, it: operate.Operator, plan: plans.Partition, patch: pytest.MonkeyPatch) -> bool:
    """The wall clock jumps, an hour ahead and then a day back."""
    now, written = time.time, len(it.wire.writes)
    for step in (3600.0, -86400.0):
        patch.setattr(time, "time", lambda step=step: now() + step)
        renewals = len(it.wire.other)
        await waiting.until(lambda renewals=renewals: len(it.wire.other) > renewals + 3)
    assert written == len(it.wire.writes), "a clock is no news"
    return False


FAULTS: tuple[Fault, ...] = (killed, stopped, cut_off, deaf, lease_deleted, lease_stolen, lease_edited, clock_stepped)


async def _campaign(
    client: kube_client.Client, namespace: str, patch: pytest.MonkeyPatch, faults: list[Fault], told: report.Report
) -> None:
    await conftest.define(client)
    rows = []
    async with Candidates(client, namespace) as them:
        for number, fault in enumerate(faults):
            it, plan = await waiting.until(them.leader)
            with patch.context() as within:
                gives_up = await fault(them, it, plan, within)
                took = await them.works(f"text {number}", it if gives_up else None)
            rows.append((fault.__name__, "gives up" if gives_up else "stays", f"{took:.2f}"))
    told.table(("fault", "the leader", "s until a change after it was carried out"), rows)
    told.say(f"{len(rows)} faults, at most {them.most} led at once")

    assert 1 == them.most


async def test_some_faults_of_leaders(
    client: kube_client.Client, namespace: str, monkeypatch: pytest.MonkeyPatch, told: report.Report
) -> None:
    faults = random.Random(report.SEED).sample(FAULTS, SLICE)
    await _campaign(client, namespace, monkeypatch, faults, told)


@pytest.mark.campaign
async def test_all_faults_of_leaders(
    client: kube_client.Client, namespace: str, monkeypatch: pytest.MonkeyPatch, told: report.Report
) -> None:
    faults = [*FAULTS] * ROUNDS
    random.Random(report.SEED).shuffle(faults)
    await _campaign(client, namespace, monkeypatch, faults, told)


# --- two that both believe they lead ---------------------------------------------------------------------------------


async def _two(stage: run.Stage, path: Path, *, but: int = 0) -> None:
    """A lease is no fence; what two write at once must still be made once, and come out as one alone would have it.

    The last acts `but` so many are left out.
    """
    wanted, _ = await run.undisturbed(stage, path, but=but)
    async with run.Run(stage, path, but=but).running() as it:
        await it.start()  # beside the first, which goes on
        assert [] == run.deviations(it.scenario, wanted, await it.play(wanted.scenes))
        assert all(life.wire.writes for life in it.lives)


async def test_two_that_both_believe_they_lead(stage: run.Stage) -> None:
    await _two(stage, scenario.FOLDER / "widget.yaml")


@pytest.mark.campaign
@pytest.mark.parametrize("name", ["wekaday", "weka"])
async def test_two_that_both_believe_they_lead_give_no_order_twice(stage: run.Stage, name: str) -> None:
    """What they give by exec counts too. Without its end, where one may bind the rights that the other gives back."""
    await _two(stage, scenario.FOLDER / f"{name}.yaml", but=1)


# --- a real process that sleeps --------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def _process(stage: run.Stage, namespace: str) -> AsyncIterator[tuple[Any, proxy.Proxy]]:
    between = proxy.Proxy(stage.admin, stage.certificate)
    await between.start()
    between.kubeconfig(stage.folder / "process")
    arguments = [scenario.FOLDER / "widget.yaml", namespace, stage.folder / "process", stage.folder]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.api.faults.process",
        *map(str, arguments),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield process, between
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await between.close()


def _effects(between: proxy.Proxy) -> int:
    apart = ("/leases", "/events")
    return sum(it.method != "GET" and not any(word in it.path for word in apart) for it in between.exchanges)


async def test_a_process_that_slept_past_its_lease_writes_nothing(
    stage: run.Stage, client: kube_client.Client, namespace: str
) -> None:
    """SIGSTOP in the midst of a change, SIGCONT when another leads: it ends, and has written nothing since."""
    await conftest.define(client)
    await _free_lease(client, namespace)
    user = operate.User(client, namespace)
    async with _process(stage, namespace) as (process, between):
        await user.create("one", text="a")
        await user.ready("one")
        reached = asyncio.Event()

        def judge(it: proxy.Exchange) -> str:
            """It has sent a write that nobody will carry out, and goes to sleep on it."""
            if it.method == "GET" or "/configmaps" not in it.path:
                return ""
            reached.set()
            return "refuse"

        between.judge = judge
        await user.change("one", {"spec": {"text": "b"}})
        await reached.wait()
        process.send_signal(signal.SIGSTOP)
        between.judge = lambda _: ""
        async with operate.operating(client, namespace, elect=True) as second:
            await waiting.until(lambda: second.leads)
            assert (await user.ready("one")).status.text == "b"
            before = _effects(between)
            process.send_signal(signal.SIGCONT)
            async with asyncio.timeout(waiting.PATIENCE):
                assert await process.wait() == 1
            assert _effects(between) == before
            assert (await user.ready("one")).status.text == "b"
    await user.leave()
