"""The cases: each drives one operator process through one situation and returns figures by name.

Seconds, MiB and counts, as the names say; CPU is in seconds of one core. Every case has a fresh namespace.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
import urllib.request
import uuid
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from benchmarks import bare, measure, stats, world
from benchmarks import place as places

Figures = dict[str, float]

QUIET = 0.4
"""Seconds without work after which an operator counts as idle."""

RESTING = 0.05
"""The share of one core up to which it does."""


class Size(msgspec.Struct, frozen=True):
    """How much of everything. Times in seconds."""

    cold: int = 2_000
    burst: int = 500
    changes: int = 500
    deletions: int = 20
    idle: float = 6.0
    resync: float = 1.2
    backlog: int = 10_000
    samples: int = 160
    every: float = 0.025
    strangers: int = 50_000
    pods: int = 100_000
    shared: int = 2_000
    profiled: int = 1_000


SHORT = Size(
    cold=300,
    burst=100,
    changes=50,
    deletions=5,
    idle=3.0,
    resync=1.0,
    backlog=1_500,
    samples=40,
    every=0.02,
    strangers=2_000,
    pods=10_000,
    shared=300,
    profiled=300,
)


ROUNDS = {("restart", "kopf"): 1, ("backlog", "kopf"): 0, ("restart", "limit"): 0}
"""(Case, runtime) -> in how many rounds, the first ones, it takes part; what is not named: in all.

Until it has seen all objects that are there kopf does nothing else, and the CPU for that grows faster than their
number: for 2,500 it needs a minute, for 10,000 it wrote nothing within 15 minutes. No target asks for these figures.
`restart` stands for idle and steady too; the limit compares nothing, so that it has no rest to come to.
"""


class Begun(msgspec.Struct, frozen=True):
    """How things stood when something began."""

    at: float
    """Monotonic seconds."""

    api: float
    """CPU seconds of the API server."""

    objects: int
    cpu: float
    """CPU seconds of the operator."""

    passes: tuple[float, float]


class Bench:
    """One API server, and the harness's connection to it."""

    def __init__(self, place: places.Place, admin: bare.Client, size: Size) -> None:
        self.place, self.admin, self.size = place, admin, size
        self.log = place.audit()
        self._api = place.pid()

    def api_cpu(self) -> float:
        """CPU seconds of the API server so far."""
        return measure.cpu(self._api)

    # --- a whole life: cold start, burst, changes; then restart, idle, steady state ----------------------------------

    async def life(self, runtime: str, *, restarted: bool) -> Mapping[str, Figures]:
        """Case -> figures, for one runtime, which afterwards may be started anew over what it has settled."""
        size, found = self.size, dict[str, Figures]()
        async with world.world(self.admin, fresh(runtime)) as it:
            await it.make(size.cold)
            await asyncio.sleep(0.5)
            begun = self._begin()
            async with places.operator(self.place, runtime, it.namespace) as process:
                found["cold"] = await self._settle(it, runtime, process, begun, size.cold)
                passed = await _passes(process, runtime)
                begun = self._begin(size.cold, measure.cpu(process.pid), passed)
                making = asyncio.create_task(it.make(size.burst, first=size.cold))
                found["burst"] = await self._settle(it, runtime, process, begun, size.burst)
                await making
                found["change"] = await self._change(it, process)
                if runtime != "limit":
                    found["repair"] = await self._repair(it)
                    await quiet(process)  # or it is stopped while it still has something to write
                    found["memory"] = {"rss with all objects MiB": measure.memory(process.pid)[0]}
            if restarted:
                found["restart"] = await self._restart(it, runtime)
                found["idle"] = await self._idle(it, runtime)
                found["steady"] = await self._steady(it, runtime)
        return found

    def _begin(self, objects: int = 0, cpu: float = 0.0, passes: tuple[float, float] = (0.0, 0.0)) -> Begun:
        self.log.skip()
        return Begun(time.monotonic(), measure.cpu(self._api), objects, cpu, passes)

    async def _settle(
        self, it: world.World, runtime: str, process: places.Operator, begun: Begun, count: int
    ) -> Figures:
        """What it takes until `count` more objects are settled."""
        seconds = await it.settled(process.check, count=begun.objects + count) - begun.at
        await quiet(process)
        used, api = measure.cpu(process.pid) - begun.cpu, measure.cpu(self._api) - begun.api
        lines = self.log.read()
        asked = measure.count(lines, places.user(runtime))
        figures = {
            "objects/s": count / seconds,
            "seconds": seconds,
            "cpu ms/object": 1000 * used / count,
            "api server cpu ms/object": 1000 * api / count,
            "peak rss MiB": measure.memory(process.pid)[1],
            "writes/object": asked.writes / count,
            "refused writes": asked.refused,
        }
        if span := measure.span(lines, places.user(runtime)):
            figures["objects/s while writing"] = count / span
        if runtime == "moorage":
            idle, all_ = await _passes(process, runtime)
            figures["passes/object"] = (all_ - begun.passes[1]) / count
            figures["passes by echoes"] = idle - begun.passes[0]
        return figures

    async def _change(self, it: world.World, process: places.Operator) -> Figures:
        """One change at a time, on an operator that has nothing else to do."""
        chance = random.Random(self.size.changes)  # noqa: S311 - which objects
        sent, taken = [], []
        for number in range(self.size.changes):
            name = world.name_of(chance.randrange(self.size.cold))
            from_sent, from_taken = await it.change(name, f"changed {number}")
            sent.append(from_sent)
            taken.append(from_taken)
            await asyncio.sleep(chance.uniform(0.005, 0.015))
        await it.settled(process.check, count=self.size.cold + self.size.burst)
        return _latency(sent, taken)

    async def _repair(self, it: world.World) -> Figures:
        """Children are deleted one at a time, and come back."""
        taken = [await it.heal(world.name_of(number)) for number in range(self.size.deletions)]
        return {"p50 ms": 1000 * stats.quantile(taken, 0.5), "worst ms": 1000 * max(taken)}

    async def _restart(self, it: world.World, runtime: str) -> Figures:
        """The same objects, all settled, and a new process."""
        begun = self._begin()
        async with places.operator(self.place, runtime, it.namespace) as process:
            rested, asked = await self._at_rest(process, runtime, watches=2)
            return {
                "seconds to idle": rested - begun.at,
                "cpu s": measure.cpu(process.pid),
                "writes": asked.writes + asked.refused,
                "rss MiB": measure.memory(process.pid)[0],
            }

    async def _idle(self, it: world.World, runtime: str) -> Figures:
        """Ten watches, a lease where the runtime has one, and nothing happens."""
        self._begin()
        async with places.operator(self.place, runtime, it.namespace, wide=True) as process:
            await self._at_rest(process, runtime, watches=10)
            self.log.skip()
            before, begun = measure.fine_cpu(process.pid), time.monotonic()
            await asyncio.sleep(self.size.idle)
            used, seconds = measure.fine_cpu(process.pid) - before, time.monotonic() - begun
            asked = measure.count(self.log.read(), places.user(runtime))
            return {"mCPU": 1000 * used / seconds, "requests": asked.requests}

    async def _steady(self, it: world.World, runtime: str) -> Figures:
        """Start, and three resyncs of everything."""
        self._begin()
        async with places.operator(self.place, runtime, it.namespace, resync=self.size.resync) as process:
            lines = await self._watching(process, runtime, watches=2)
            before = measure.cpu(process.pid)
            await asyncio.sleep(1.0 + 3 * 1.1 * self.size.resync)
            process.check()
            asked = measure.count([*lines, *self.log.read()], places.user(runtime))
            figures = {
                "writes": float(asked.writes + asked.refused),
                "requests": float(asked.requests),
                "cpu s": measure.cpu(process.pid) - before,
            }
            if runtime == "moorage":
                _, figures["passes"] = await _passes(process, runtime)
            return figures

    async def _watching(
        self, process: places.Operator, runtime: str, *, watches: int, within: float = 300.0
    ) -> list[measure.Request]:
        """Return what was asked up to then once its watches are open. Raises TimeoutError."""
        ends, lines = time.monotonic() + within, self.log.read()
        while (open_ := measure.count(lines, places.user(runtime)).watches) < watches:
            if time.monotonic() > ends:
                raise TimeoutError(f"{runtime} has opened {open_} watches, not {watches}")
            process.check()
            await asyncio.sleep(0.05)
            lines += self.log.read()
        return lines

    async def _at_rest(self, process: places.Operator, runtime: str, *, watches: int) -> tuple[float, measure.Asked]:
        """When it has come to rest with its watches open, and what it asked for up to then."""
        lines: list[measure.Request] = []
        for _ in range(100):
            rested = await quiet(process)
            lines += self.log.read()
            asked = measure.count(lines, places.user(runtime))
            if asked.watches >= watches:
                return rested, asked
        raise TimeoutError(f"{runtime} has opened {asked.watches} watches, not {watches}")

    # --- changes behind a backlog ------------------------------------------------------------------------------------

    async def backlog(self, runtime: str) -> Figures:
        """An operator that starts with much to do, while some of its objects are changed."""
        size = self.size
        chance = random.Random(size.samples)  # noqa: S311 - which objects
        async with world.world(self.admin, fresh(runtime)) as it:
            await it.make(size.backlog)
            await asyncio.sleep(0.5)
            chosen = chance.sample(range(size.backlog), size.samples)
            async with places.operator(self.place, runtime, it.namespace) as process:
                await it.first_child()
                changes = []
                for number in chosen:
                    process.check()
                    change = it.change(world.name_of(number), f"changed {number}")
                    changes.append(asyncio.create_task(_bounded(change)))
                    await asyncio.sleep(size.every)
                waiting = it.unsettled
                both = await asyncio.gather(*changes)
        return {**_latency([s for s, _ in both], [t for _, t in both]), "waiting at the end": waiting}

    # --- memory ------------------------------------------------------------------------------------------------------

    async def memory(self, runtime: str, empty: str, crowd: str) -> Figures:
        """Without any object, and beside many that are nobody's business."""
        figures = {}
        for name, namespace in (("alone", empty), ("beside strangers", crowd)):
            self._begin()
            async with places.operator(self.place, runtime, namespace) as process:
                await self._at_rest(process, runtime, watches=2)
                figures[f"rss {name} MiB"] = measure.memory(process.pid)[0]
                figures[f"cpu {name} s"] = measure.cpu(process.pid)
        return figures


async def until(
    condition: Callable[[], Awaitable[bool]], check: Callable[[], None] = lambda: None, *, within: float = 120.0
) -> None:
    """Return once it holds. Raises TimeoutError, and what `check` raises."""
    async with asyncio.timeout(within):
        while not await condition():
            check()
            await asyncio.sleep(0.02)


async def quiet(process: places.Operator, *, within: float = 120.0) -> float:
    """When it last worked (monotonic seconds), once it has been idle for a while. Raises TimeoutError."""
    worked = began = time.monotonic()
    before, every = measure.fine_cpu(process.pid), 0.02
    while (now := time.monotonic()) - worked < QUIET:
        if now - began > within:
            raise TimeoutError("the operator never came to rest")
        process.check()
        await asyncio.sleep(every)
        used = measure.fine_cpu(process.pid)
        if abs(used - before) > RESTING * every:
            worked = time.monotonic()
        before = used
    return worked


async def _bounded(change: Awaitable[tuple[float, float]], within: float = 10.0) -> tuple[float, float]:
    """A change that takes longer counts as having taken that long."""
    try:
        async with asyncio.timeout(within):
            return await change
    except TimeoutError:
        return within, within


def _latency(sent: list[float], taken: list[float]) -> Figures:
    return {
        "p50 ms": 1000 * stats.quantile(sent, 0.5),
        "p99 ms": 1000 * stats.quantile(sent, 0.99),
        "p50 after the answer ms": 1000 * stats.quantile(taken, 0.5),
        "p99 after the answer ms": 1000 * stats.quantile(taken, 0.99),
    }


async def _passes(process: places.Operator, runtime: str) -> tuple[float, float]:
    """Passes over settled objects, and all passes, so far; of moorage alone."""
    if runtime != "moorage":
        return 0.0, 0.0

    def read() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{process.port}/metrics", timeout=10) as answer:
            return str(answer.read().decode())

    text = await asyncio.to_thread(read)
    all_ = sum(float(n) for n in re.findall(r"^moorage_reconciles_total\{.*\} (\S+)$", text, re.MULTILINE))
    idle = re.search(r"^bench_idle_passes_total (\S+)$", text, re.MULTILINE)
    return float(idle[1]) if idle else 0.0, all_


def takes(case: str, runtime: str, number: int) -> bool:
    """Whether this runtime takes part in round `number` of a case, the first being 0."""
    return number < ROUNDS.get((case, runtime), number + 1)


def fresh(runtime: str) -> str:
    """A namespace that nobody has used."""
    return f"bench-{runtime}-{uuid.uuid4().hex[:8]}"
