"""Up and down in order: what a process does at its start, at SIGTERM, and when the lease is lost."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.runtime import decision, manager
from moorage.runtime.decision import DONE, Act, Verdict
from moorage.runtime.leading import election
from moorage.runtime.reconcile import controller
from tests.unit.runtime.fake_api import Asked, FakeApi, until
from tests.unit.runtime.gadgets import GadgetKind, Seen

TIMING = election.Timing(duration=30, renew=20, retry=0.05)


class Process:
    """One running manager."""

    def __init__(self, api: FakeApi, *kinds: GadgetKind, **more: Any) -> None:
        given = {"identity": "me", "namespace": "ns", "timing": TIMING, "port": 0, "drain": 5.0, **more}
        self.stop = asyncio.Event()
        self.manager = manager.Manager(kube_client.Client(api), kinds, manager.Settings(**given))
        self.task = asyncio.create_task(self.manager.run(self.stop))


@contextlib.asynccontextmanager
async def process(api: FakeApi, *kinds: GadgetKind, **more: Any) -> AsyncIterator[Process]:
    it = Process(api, *kinds, **more)
    try:
        yield it
    finally:
        it.task.cancel()
        await asyncio.gather(it.task, return_exceptions=True)


async def free_lease(api: FakeApi) -> None:
    await api.put("leases", "moorage", {"spec": {}})


def holder(api: FakeApi) -> str:
    return str(api.one("leases", "moorage")["spec"].get("holderIdentity"))


class Helm:
    """A kind whose step runs one long task."""

    def __init__(self) -> None:
        self.begun, self.end, self.done, self.cleaned = asyncio.Event(), asyncio.Event(), False, False
        self.kind = GadgetKind((self.helm_runs,), operations={"helm": self.helm})

    def helm_runs(self, _: Seen) -> Verdict:
        if self.begun.is_set():
            return DONE
        return Act("Running", "helm runs", (decision.Run(why="w", task="helm", lane="l"),))

    async def helm(self, *_: Any) -> decision.Outcome:
        self.begun.set()
        try:
            await self.end.wait()
            self.done = True
        finally:
            self.cleaned = True
        return decision.Ok()


async def test_nothing_is_written_before_the_lease_and_a_stop_gives_it_back(api: FakeApi) -> None:
    await free_lease(api)
    await api.put("gadgets", "one")
    async with process(api, GadgetKind()) as it:
        await until(lambda: api.one("gadgets", "one").get("status"))
        verbs = [asked.at.plural for asked in api.requests if asked.method != "GET"]
        assert verbs[0] == "leases"
        it.stop.set()
        assert await it.task is True
        assert holder(api) == ""
        assert api.requests[-1].at.plural == "leases", "the release comes last"
        assert [a.at.plural for a in api.requests if a.at.plural == "events"], "events got out before"


async def test_a_stop_lets_a_task_end_and_holds_the_lease_until_then(api: FakeApi) -> None:
    await free_lease(api)
    await api.put("gadgets", "one")
    helm = Helm()
    async with process(api, helm.kind) as it:
        await helm.begun.wait()
        it.stop.set()
        renewals = len(api.writes("leases"))
        await until(lambda: len(api.writes("leases")) > renewals + 2)
        assert holder(api) == "me", "renewed while draining"
        helm.end.set()
        assert await it.task is True
        assert (helm.done, holder(api)) == (True, "")


async def test_a_task_that_outlasts_the_drain_is_cut_and_has_cleaned_up_before_the_release(api: FakeApi) -> None:
    await free_lease(api)
    await api.put("gadgets", "one")
    helm = Helm()
    async with process(api, helm.kind, drain=0.05) as it:
        await helm.begun.wait()
        it.stop.set()
        assert await it.task is True
        assert (helm.done, helm.cleaned, holder(api)) == (False, True, "")


async def test_a_worker_cut_short_may_have_a_request_under_way_so_the_lease_runs_out(api: FakeApi) -> None:
    async def hang(asked: Asked) -> None:
        if asked.at.sub == "status":
            reached.set()
            await asyncio.Event().wait()

    reached = asyncio.Event()
    await free_lease(api)
    await api.put("gadgets", "one")
    async with process(api, GadgetKind(), drain=0.05) as it:
        api.before = hang
        await reached.wait()
        it.stop.set()
        assert await it.task is True
        assert holder(api) == "me"


async def test_a_lost_lease_ends_everything_and_writes_nothing_more(api: FakeApi) -> None:
    await free_lease(api)
    await api.put("gadgets", "one")
    helm = Helm()
    async with process(api, helm.kind) as it:
        await helm.begun.wait()
        await api.put("leases", "moorage", {"spec": {"holderIdentity": "other"}})
        await until(lambda: not it.manager._gate.is_open)
        written = len(api.writes()) + len(api.writes("events"))
        assert await it.task is False
        assert (helm.done, helm.cleaned) == (False, True)
        assert len(api.writes()) + len(api.writes("events")) == written
        assert holder(api) == "other"


async def test_the_lease_lost_while_draining_cuts_the_drain(api: FakeApi) -> None:
    await free_lease(api)
    await api.put("gadgets", "one")
    helm = Helm()
    async with process(api, helm.kind, drain=60.0) as it:
        await helm.begun.wait()
        it.stop.set()
        await api.drop("leases", "moorage")
        async with asyncio.timeout(30):
            assert await it.task is False
        assert (helm.done, helm.cleaned) == (False, True)


async def test_cut_off_from_the_server_it_gives_up_in_time(api: FakeApi) -> None:
    async def cut(_: Asked) -> None:
        raise errors.TransportError("no route", sent=False)

    timing = election.Timing(duration=30, renew=2, retry=0.05)
    await free_lease(api)
    await api.put("gadgets", "one")
    async with process(api, GadgetKind(), timing=timing) as it:
        await until(lambda: api.one("gadgets", "one").get("status"))
        api.before = cut
        begun = asyncio.get_running_loop().time()
        assert await it.task is False
        assert asyncio.get_running_loop().time() - begun < timing.duration


async def test_a_standby_stops_without_touching_the_lease(api: FakeApi) -> None:
    await api.put("leases", "moorage", {"spec": {"holderIdentity": "other", "leaseDurationSeconds": 600}})
    await api.put("gadgets", "one")
    async with process(api, GadgetKind()) as it:
        await until(lambda: it.manager._synced)
        await until(lambda: any(a.at.plural == "leases" for a in api.requests))
        it.stop.set()
        assert await it.task is True
        assert (holder(api), api.writes()) == ("other", [])


async def test_a_stop_while_caches_are_being_filled(api: FakeApi) -> None:
    async def hang(_: Asked) -> None:
        await asyncio.Event().wait()

    api.before = hang
    async with process(api, GadgetKind()) as it:
        await until(lambda: api.requests)
        assert not it.manager._gate.is_open
        it.stop.set()
        assert await it.task is True


async def test_a_key_of_no_kind_and_a_kind_that_will_not_close_end_nothing(api: FakeApi) -> None:
    class Sticky(GadgetKind):
        async def stop(self) -> None:
            raise RuntimeError("no")

    await api.put("gadgets", "one")
    async with process(api, Sticky(), elect=False, workers=1) as it:
        it.manager._keys.add(("Nothing", "ns", "x"))
        await until(lambda: api.one("gadgets", "one").get("status"))
        it.stop.set()
        assert await it.task is True


@pytest.mark.parametrize("part", ["events", "care", "worker-0"])
async def test_a_part_that_dies_ends_the_process_in_order(api: FakeApi, part: str) -> None:
    await free_lease(api)
    await api.put("gadgets", "one")
    helm = Helm()
    async with process(api, helm.kind) as it:
        await helm.begun.wait()
        await until(lambda: not it.manager._keys.working)
        (task,) = (task for task in asyncio.all_tasks() if task.get_name() == part)
        task.cancel()  # stands for a defect that ends it
        await until(task.done)
        await asyncio.sleep(0)
        assert not it.task.done(), "what is under way is drained"
        helm.end.set()
        async with asyncio.timeout(30):
            assert await it.task is False
        assert (helm.done, holder(api)) == (True, "")


async def test_a_look_for_the_unreadable_that_fails_is_one_of_many(api: FakeApi, monkeypatch: Any) -> None:
    looks: list[str] = []

    def broken(_: Any) -> None:
        looks.append("looked")
        raise RuntimeError("no")

    monkeypatch.setattr(controller.Controller, "look_for_unreadable", broken)
    monkeypatch.setattr(manager, "LOOK_EVERY", 0.001)
    await api.put("gadgets", "one")
    async with process(api, GadgetKind(), elect=False) as it:
        await until(lambda: len(looks) > 2)
        await until(lambda: api.one("gadgets", "one").get("status"))
        it.stop.set()
        assert await it.task is True


async def test_a_kinds_own_limit_is_kept(api: FakeApi) -> None:
    inside: list[str] = []
    most = 0

    async def work(obj: Any, _: Any) -> decision.Outcome:
        nonlocal most
        inside.append(obj.metadata.name)
        most = max(most, len(inside))
        await asyncio.sleep(0.001)
        inside.remove(obj.metadata.name)
        done.add(obj.metadata.name)
        return decision.Ok()

    def act(seen: Seen) -> Verdict:
        if seen.gadget.metadata.name in done:
            return DONE
        return Act("Acting", "acts", (decision.Call(why="w", operation="work"),))

    done: set[str] = set()
    names = [f"g{n}" for n in range(10)]
    for name in names:
        await api.put("gadgets", name)
    async with process(api, GadgetKind((act,), operations={"work": work}, concurrency=2), elect=False) as it:
        await until(lambda: all(api.one("gadgets", name).get("status") for name in names))
        assert (2, set(names)) == (most, done)
        it.stop.set()
        assert await it.task is True


def test_two_kinds_of_one_name_are_refused(api: FakeApi) -> None:
    settings = manager.Settings(identity="me", namespace="ns")
    with pytest.raises(ValueError, match="two kinds"):
        manager.Manager(kube_client.Client(api), [GadgetKind(), GadgetKind()], settings)
