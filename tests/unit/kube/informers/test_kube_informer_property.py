"""Whatever happens, in whatever order: the cache ends equal to the list, and never is behind an own write."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from kube_fakes import BOX, Box, Clock, FakeServer, Fault, line, refusal, until

from moorage.kube import client as kube_client
from moorage.kube.informers import informer, reflector

NAMES = st.sampled_from(["a", "b", "c"])
FAULTS = st.sampled_from(
    [
        Fault(),
        Fault(status=403, status_body=refusal(403)),
        Fault(status=410, status_body=refusal(410)),
        Fault(chunks=(line("ERROR", refusal(410)),)),
        Fault(chunks=(line("ERROR", refusal(500)),)),
        Fault(chunks=(b'{"type":"ADDED","object":{"metadata":{"na',)),
        Fault(chunks=(b"nonsense\n",)),
    ]
)
TURNS = st.integers(0, 30)
STEPS = st.one_of(
    st.tuples(st.just("foreign_put"), NAMES, st.booleans()),
    st.tuples(st.just("foreign_remove"), NAMES, st.booleans()),
    st.tuples(st.just("own_write"), NAMES, TURNS, TURNS, st.booleans()),
    st.tuples(st.just("own_delete"), NAMES, TURNS, TURNS),
    st.tuples(st.just("fault"), FAULTS),
    st.tuples(st.just("cut")),
    st.tuples(st.just("forget")),
    st.tuples(st.just("gate"), st.booleans()),
    st.tuples(st.just("turn"), TURNS),
)


class Run:
    """One sequence against one cache, with what must hold after each step."""

    def __init__(self, streaming: Literal["refused", "served"], piece: float) -> None:
        self.server, clock = FakeServer(streaming=streaming), Clock()
        self.cache = informer.Informer(
            kube_client.Client(self.server), reflector.Scope(BOX), Box, pace=clock.pace(slice=piece)
        )
        self.cache.subscribe(self.told)
        self.incarnation = 0
        self.floor: dict[str, int] = {}  # name -> version of the last own write
        self.removed: dict[str, int] = {}  # name -> version of the last removal by anyone
        self.dead: set[str] = set()  # uids that an own delete removed
        self.own: set[int] = set()  # versions made by own writes with a known outcome
        self.told_of: list[int] = []
        self.undone = False

    def told(self, change: informer.Change[Box]) -> None:
        if change.new is not None:  # nothing is asserted here: the cache contains what subscribers raise
            self.told_of.append(int(change.new.metadata.resource_version))
            self.undone |= change.new.metadata.uid in self.dead

    async def put(self, name: str, quiet: bool) -> Box:
        uid = ""
        if name not in self.server.objects:
            self.incarnation += 1
            uid = f"{name}-{self.incarnation}"
        else:
            uid = self.server.objects[name]["metadata"]["uid"]
        return msgspec.convert(await self.server.put(name, uid=uid, quiet=quiet), Box)

    async def remove(self, name: str, quiet: bool) -> None:
        if name in self.server.objects:
            await self.server.remove(name, quiet=quiet)
            self.removed[name] = self.server.version

    async def turn(self, times: int) -> None:
        for _ in range(times):
            await asyncio.sleep(0)
            self.check()

    def check(self) -> None:
        assert not self.own.intersection(self.told_of), "an echo was told"
        assert len(set(self.told_of)) == len(self.told_of), "told twice"
        assert not self.undone, "an own delete was told undone"
        for name in "abc":
            found = self.cache.get("ns", name)
            floor = self.floor.get(name, 0)
            if found is not None:
                assert int(found.metadata.resource_version) >= floor, "behind an own write"
                assert found.metadata.uid not in self.dead, "an own delete came undone"
            elif floor:
                assert self.removed.get(name, 0) > floor, "an own write was lost"

    async def step(self, kind: str, *args: Any) -> None:
        match kind, args:
            case "foreign_put", (name, quiet):
                await self.put(name, quiet)
            case "foreign_remove", (name, quiet):
                await self.remove(name, quiet)
            case "own_write", (name, before, after, known):
                await self.write(name, before, after, known)
            case "own_delete", (name, before, after):
                await self.delete(name, before, after)
            case "fault", (fault,):
                self.server.faults.append(fault)
            case "cut", _:
                await self.server.cut()
            case "forget", _:
                self.server.forget()
            case "gate", (shut,):
                self.gate(shut)
            case "turn", (times,):
                await self.turn(times)
        self.check()

    def gate(self, shut: bool) -> None:
        if self.server.list_gate is not None:
            self.server.list_gate.set()
        self.server.list_gate = asyncio.Event() if shut else None

    async def write(self, name: str, before: int, after: int, known: bool) -> None:
        async with self.cache.writing("ns", name) as own:
            await self.turn(before)
            written = await self.put(name, quiet=False)
            await self.turn(after)
            if known:
                version = int(written.metadata.resource_version)
                self.own.add(version)
                own.took(written)
                self.floor[name] = version

    async def delete(self, name: str, before: int, after: int) -> None:
        async with self.cache.writing("ns", name) as own:
            await self.turn(before)
            if name not in self.server.objects:
                return
            known = self.cache.get("ns", name)
            uid = self.server.objects[name]["metadata"]["uid"]
            await self.remove(name, quiet=False)
            await self.turn(after)
            own.gone()
            self.floor.pop(name, None)
            if known is not None and known.metadata.uid == uid:
                self.dead.add(uid)

    async def finish(self) -> None:
        self.server.faults.clear()
        self.gate(shut=False)
        await self.server.flush()
        await until(self.equal)

    def equal(self) -> bool:
        self.check()
        have = {item.metadata.name: item.metadata.resource_version for item in self.cache.items()}
        want = {name: item["metadata"]["resourceVersion"] for name, item in self.server.objects.items()}
        return have == want and self.server.watching == 1


@settings(max_examples=300, deadline=None)
@given(st.lists(STEPS, max_size=40), st.sampled_from(["refused", "served"]), st.booleans())
def test_ends_equal_to_the_list(
    steps: list[tuple[Any, ...]], streaming: Literal["refused", "served"], in_pieces: bool
) -> None:
    """By pages or as a stream; told at once, or with everybody else's turn after each object."""

    async def play() -> None:
        run = Run(streaming, 0.0 if in_pieces else 10.0)
        run.cache.start()
        try:
            for step in steps:
                await run.step(*step)
            await run.finish()
        finally:
            run.gate(shut=False)
            await run.cache.stop()

    asyncio.run(play())
