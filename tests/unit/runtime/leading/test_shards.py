"""Shards: where a key belongs, how leases are shared evenly, and that nobody writes for a shard that is another's."""

from __future__ import annotations

import asyncio
import collections
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.kube import client as kube_client
from moorage.runtime import decision, gate, manager
from moorage.runtime.decision import DONE, Act, Verdict
from moorage.runtime.leading import election, shards
from tests.unit.runtime.fake_api import FakeApi, until
from tests.unit.runtime.gadgets import GadgetKind, Seen

TIMING = election.Timing(duration=30, renew=20, retry=0.03)
"""No lease runs out while a test lasts, however slow the machine."""

NAMES = [f"g{n}" for n in range(30)]


# --- where a key belongs -----------------------------------------------------------------------------------------


@given(st.text(), st.integers(1, 16))
def test_a_placement_has_one_shard_wherever_it_is_asked_for(placement: str, count: int) -> None:
    one, other = (shards.Shards(count, gate.Gate()) for _ in range(2))
    assert 0 <= one.of(placement).number == other.of(placement).number < count


def test_placements_spread() -> None:
    among = shards.Shards(4, gate.Gate())
    sizes = collections.Counter(among.of(f"uid-{n}").number for n in range(4000))
    assert all(800 < size < 1200 for size in sizes.values())


def test_one_alone_is_always_held_and_has_the_gate_of_the_process() -> None:
    whole = gate.Gate()
    among = shards.Shards(1, whole)
    assert (among.all[0].gate, among.are_many, among.of("any").is_mine) == (whole, False, True)
    with pytest.raises(ValueError, match="at least 1"):
        shards.Shards(0, whole)


def test_of_several_none_is_held_and_no_gate_is_open_at_first() -> None:
    among = shards.Shards(3, gate.Gate())
    assert ([], [False] * 3) == (among.held, [shard.gate.is_open for shard in among.all])


async def test_a_pass_and_what_it_starts_go_through_the_gate_of_their_shard() -> None:
    default = gate.Gate()
    one, two = shards.Shards(2, default).all
    with one.passing():
        task = asyncio.create_task(_gate(default))
        with two.passing():
            assert two.gate is gate.current(default)
        assert one.gate is gate.current(default)
    assert one.gate is await task
    assert default is gate.current(default)


async def _gate(default: gate.Gate) -> gate.Gate:
    return gate.current(default)


async def test_idle_waits_for_every_pass_also_for_one_that_fails() -> None:
    it = shards.Shards(2, gate.Gate()).all[0]
    it.begin()
    with pytest.raises(RuntimeError), it.passing():
        waiting = asyncio.create_task(it.idle())
        await asyncio.sleep(0)
        raise RuntimeError("no")
    await asyncio.sleep(0)
    assert not waiting.done()
    it.end()
    await waiting


@pytest.mark.parametrize(
    ("text", "ask"),
    [("me 2 n", election.Ask("me", 2, "n")), ("", None), ("me two n", None), ("me 2", None), ("me -2 n", None)],
)
def test_what_others_write_there_is_no_wish(text: str, ask: election.Ask | None) -> None:
    assert ask == election.Ask.read(text)
    assert ask is None or text == str(ask)


# --- processes on one server -------------------------------------------------------------------------------------


class Process:
    """A manager; its name is in the requests that it makes, as they go through a wire of its own."""

    def __init__(self, api: FakeApi, name: str, count: int, **more: Any) -> None:
        self.name, self.kind = name, more.pop("kind", None) or GadgetKind()
        settings = {"identity": name, "namespace": "ns", "timing": TIMING, "port": 0, "drain": 5.0, "shards": count}
        self.stop = asyncio.Event()
        self.manager = manager.Manager(kube_client.Client(api), [self.kind], manager.Settings(**{**settings, **more}))
        self.task = asyncio.create_task(self.manager.run(self.stop))

    @property
    def shards(self) -> set[int]:
        return {shard.number for shard in self.manager._shards.held if shard.gate.is_open}

    @property
    def seen(self) -> set[str]:
        return {seen.gadget.metadata.name for seen in self.kind.seen}

    async def end(self) -> bool:
        self.stop.set()
        return await self.task


class Fleet:
    def __init__(self, api: FakeApi, count: int) -> None:
        self.api, self.count = api, count
        self.here: list[Process] = []

    def start(self, **more: Any) -> Process:
        self.here.append(Process(self.api, f"p{len(self.here)}", self.count, **more))
        return self.here[-1]

    def is_even(self) -> bool:
        held = [each.shards for each in self.here if not each.task.done()]
        sizes = [len(one) for one in held]
        return sorted(n for one in held for n in one) == list(range(self.count)) and max(sizes) - min(sizes) <= 1


@contextlib.asynccontextmanager
async def fleet(api: FakeApi, count: int) -> AsyncIterator[Fleet]:
    for n in range(count):
        await api.put("leases", f"moorage-{n}", {"spec": {}})
    await api.put("leases", "moorage", {"spec": {}})
    for name in NAMES:
        await api.put("gadgets", name)
    it = Fleet(api, count)
    try:
        yield it
    finally:
        for each in it.here:
            each.task.cancel()
        await asyncio.gather(*(each.task for each in it.here), return_exceptions=True)


def _ready(api: FakeApi) -> bool:
    return all(api.one("gadgets", name).get("status") for name in NAMES)


async def _is_quiet(api: FakeApi, it: Fleet, count: int) -> bool:
    """Even, and for some rounds nobody asks for another's lease."""
    begun = len(api.writes("leases"))
    await until(lambda: len(api.writes("leases")) > begun + 5 * count)
    return it.is_even() and not [w for w in api.writes("leases")[begun:] if election.ASKED_BY in str(w.body)]


@pytest.mark.parametrize(("count", "processes"), [(2, 1), (2, 2), (4, 3), (2, 3), (5, 2)])
async def test_leases_are_shared_evenly_whoever_comes(api: FakeApi, count: int, processes: int) -> None:
    async with asyncio.timeout(30), fleet(api, count) as it:
        for _ in range(processes):
            it.start()
        await until(lambda: _ready(api))
        while not await _is_quiet(api, it, count):  # even for a moment, it may be between two handovers
            await until(it.is_even)


async def test_each_looks_after_its_own_and_takes_over_what_it_gets(api: FakeApi) -> None:
    async with fleet(api, 2) as it:
        first = it.start()
        await until(lambda: _ready(api))
        assert set(NAMES) == first.seen
        second = it.start()
        await until(it.is_even)
        mine = {n for n in NAMES if _number(api, n) in second.shards}
        await until(lambda: second.seen == mine)
        await until(lambda: set(first.kind.forgotten) >= mine)
        kept = {key[2] for key in first.manager._controllers["Gadget"]._memories}
        assert (set(NAMES) - mine, True) == (kept, 0 < len(mine) < len(NAMES))

        first.kind.seen.clear()
        second.kind.seen.clear()
        for name in NAMES:
            await api.put("gadgets", name, {"spec": {"size": 2}})
        await until(lambda: first.seen | second.seen == set(NAMES))  # one may be looked at twice
        assert (set(NAMES) - mine, mine) == (first.seen, second.seen)

        assert await first.end() is True
        await until(lambda: second.shards == {0, 1})
        await until(lambda: second.seen == set(NAMES))


def _number(api: FakeApi, name: str) -> int:
    return shards.Shards(2, gate.Gate()).of(api.one("gadgets", name)["metadata"]["uid"]).number


@pytest.mark.parametrize("both", [True, False])
async def test_what_one_gives_back_is_taken_without_waiting_for_the_next_round(api: FakeApi, both: bool) -> None:
    """By one that has shards of its own, and by one that has none; rounds are too far apart to see the end of one."""
    seldom = election.Timing(duration=400, renew=300, retry=200)
    async with fleet(api, 2) as it:
        if both:  # p1 is what the second is called: it has been there before
            spec = {"holderIdentity": "p1", "leaseDurationSeconds": 400}
            await api.put("leases", "moorage-1", {"spec": spec})
        first = it.start(timing=seldom)
        await until(lambda: first.shards == ({0} if both else {0, 1}))
        second = it.start(timing=seldom)
        await until(lambda: second.manager._synced)
        await until(lambda: second.shards == ({1} if both else set()))
        assert await first.end() is True
        await until(lambda: second.shards == {0, 1})


async def test_one_that_holds_none_stands_by_and_stops_in_peace(api: FakeApi) -> None:
    async with fleet(api, 2) as it:
        for _ in range(3):
            it.start()
        await until(it.is_even)
        (idle,) = (each for each in it.here if not each.shards)
        assert await idle.end() is True
        holders = {api.one("leases", f"moorage-{n}")["spec"]["holderIdentity"] for n in range(2)}
        assert len(holders - {idle.name}) == 2


async def test_a_lost_shard_ends_its_process_and_its_other_shards_run_out(api: FakeApi) -> None:
    async with fleet(api, 2) as it:
        first = it.start()
        await until(lambda: first.shards == {0, 1})
        await api.put("leases", "moorage-1", {"spec": {"holderIdentity": "other", "leaseDurationSeconds": 600}})
        async with asyncio.timeout(30):
            assert await first.task is False
        assert set() == first.shards
        assert "p0" == api.one("leases", "moorage-0")["spec"]["holderIdentity"]


@pytest.mark.parametrize("holder", ["old", "3 shards"])
async def test_while_one_divides_otherwise_nothing_is_taken(api: FakeApi, holder: str) -> None:
    """Whether into fewer or more parts: the lease of a single process is that of the division too."""
    async with fleet(api, 2) as it:
        await api.put("leases", "moorage", {"spec": {"holderIdentity": holder, "leaseDurationSeconds": 600}})
        first = it.start()
        looks = sum(r.at.name == "moorage" for r in api.requests)
        await until(lambda: sum(r.at.name == "moorage" for r in api.requests) > looks + 3)
        assert set() == first.shards
        await api.put("leases", "moorage", {"spec": {"holderIdentity": None}})
        await until(lambda: first.shards == {0, 1})
        assert await first.end() is True


async def test_a_single_one_waits_for_the_last_of_a_division_and_then_they_for_it(api: FakeApi) -> None:
    """By the leases alone, whoever installs them: a rollout starts the new before it stops the old."""
    async with fleet(api, 2) as it:
        one, two = it.start(), it.start()
        await until(it.is_even)
        single = it.start(shards=1)
        await until(lambda: single.manager._synced)
        assert await one.end() is True
        await until(lambda: two.shards == {0, 1})
        renewed = len(api.writes("leases"))
        await until(lambda: len(api.writes("leases")) > renewed + 10)
        assert not single.manager._gate.is_open
        assert await two.end() is True
        left = api.one("leases", "moorage")["spec"]
        assert "2 shards" == left["holderIdentity"]
        assert not single.manager._gate.is_open
        await api.put("leases", "moorage", {"spec": left | {"leaseDurationSeconds": 1}})  # it need not wait so long
        await until(lambda: single.manager._gate.is_open)

        three = it.start()
        await until(lambda: three.manager._synced)
        renewed = len(api.writes("leases"))
        await until(lambda: len(api.writes("leases")) > renewed + 10)
        assert set() == three.shards
        assert await single.end() is True
        await until(lambda: three.shards == {0, 1})


async def test_whose_division_has_ended_writes_nothing_more(api: FakeApi) -> None:
    """Its shards' own leases are no help: somebody has all of the objects."""
    async with fleet(api, 2) as it:
        first = it.start()
        await until(lambda: first.shards == {0, 1})
        await api.put("leases", "moorage", {"spec": {"holderIdentity": "other", "leaseDurationSeconds": 600}})
        async with asyncio.timeout(30):
            assert await first.task is False
        assert set() == first.shards
        assert "other" == api.one("leases", "moorage")["spec"]["holderIdentity"]


async def test_a_shard_that_does_not_get_quiet_stays_and_loses_nothing(api: FakeApi) -> None:
    begun, end = asyncio.Event(), asyncio.Event()

    async def work(*_: Any) -> decision.Outcome:
        begun.set()
        await end.wait()
        return decision.Ok()

    def act(seen: Seen) -> Verdict:
        if end.is_set():
            return DONE
        run = decision.Run(why="w", task="work", lane=seen.gadget.metadata.name)
        return Act("Running", "runs", (run,)) if not begun.is_set() or not busy(seen) else DONE

    def busy(seen: Seen) -> bool:
        return kind_.world.tasks.state(seen.gadget.metadata.name) is not None

    kind_ = GadgetKind((act,), operations={"work": work})
    async with fleet(api, 2) as it:
        first = it.start(kind=kind_, drain=0.1, task_limit=100)
        await until(lambda: first.manager._world.tasks.running == len(NAMES))
        second = it.start()
        await until(lambda: any(shard.giving for shard in first.manager._shards.all))
        (giving,) = (shard for shard in first.manager._shards.all if shard.giving)
        for name in NAMES:
            await api.put("gadgets", name, {"spec": {"size": 2}})
        await until(lambda: not giving.giving)
        await until(lambda: {s.gadget.metadata.name for s in kind_.seen if s.gadget.spec.size == 2} == set(NAMES))
        assert set() == second.shards
        end.set()
        await until(it.is_even)


async def test_without_election_all_shards_are_held(api: FakeApi) -> None:
    async with fleet(api, 3) as it:
        first = it.start(elect=False)
        await until(lambda: _ready(api))
        assert {0, 1, 2} == first.shards
        assert await first.end() is True
        assert [] == api.writes("leases")


async def test_the_unreadable_is_told_by_one_of_them(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manager, "LOOK_EVERY", 0.01)
    async with fleet(api, 2) as it:
        it.start(), it.start()
        await until(it.is_even)
        await api.put("gadgets", "bad", {"spec": {"size": "many"}})
        await until(lambda: api.one("gadgets", "bad").get("status"))
        assert 1 == sum(w.at.name == "bad" for w in api.writes())
