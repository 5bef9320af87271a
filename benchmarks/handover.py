"""Several processes of moorage's operator: how long nobody leads, whether two write at once, what shards are worth.

Every process has an account of its own, so that the audit log tells whose a write was, and when. Seconds are those of
the API server's clock; the harness runs beside it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import time
from collections.abc import AsyncIterator, Sequence

import msgspec

from benchmarks import cases, measure, world
from benchmarks import place as places
from benchmarks.operators import names

LEASE = "moorage"
DURATION = 15.0
"""Seconds that a lease lasts, as moorage is shipped."""

RENEWED = 3.0
"""Seconds in which a leader has renewed its lease at least once."""

RATE = 20.0
"""Changes per second while processes come and go."""

PATIENCE = 120.0


class Member:
    """One process that has begun, and its account."""

    def __init__(self, account: str, process: places.Operator) -> None:
        self.account, self.process = account, process
        self.user = places.user(account)

    async def ready(self) -> None:
        """Return once its caches are filled."""
        await cases.until(self.process.is_ready, self.process.check)

    def send(self, number: signal.Signals) -> None:
        """A signal."""
        os.kill(self.process.pid, number)


class LeaseSpec(msgspec.Struct, rename="camel"):
    """Of a Lease."""

    holder_identity: str = ""


class Lease(msgspec.Struct):
    """As the harness reads it."""

    metadata: world.Meta
    spec: LeaseSpec = msgspec.field(default_factory=LeaseSpec)


class Fleet:
    """Processes over one namespace; each new one takes an account that none of the others has."""

    def __init__(self, bench: cases.Bench, it: world.World, stack: contextlib.AsyncExitStack, shards: int) -> None:
        self._bench, self.world, self._stack, self._shards = bench, it, stack, shards
        self._free = list(reversed(places.MEMBERS))

    async def free_leases(self) -> None:
        """As an installation brings them, so that the first process does not wait."""
        for name in [LEASE, *(f"{LEASE}-{n}" for n in range(self._shards) if self._shards > 1)]:
            body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}}
            await self._bench.admin.send("POST", names.leases(self.world.namespace), body)

    async def start(self, *, crowd: str = "") -> Member:
        """One more; ready on return."""
        account = self._free.pop()
        words = ["--elect", "--identity", account, "--shards", str(self._shards)]
        words += ["--crowd", crowd] if crowd else []
        running = places.operator(self._bench.place, "moorage", self.world.namespace, account=account, more=words)
        it = Member(account, await self._stack.enter_async_context(running))
        await it.ready()
        return it

    def left(self, it: Member) -> None:
        """It has ended: another may have its account."""
        self._free.insert(0, it.account)

    async def holders(self) -> dict[str, str]:
        """Lease -> account, of those that are held."""
        found, _ = await self._bench.admin.list(names.leases(self.world.namespace), Lease)
        return {it.metadata.name: it.spec.holder_identity for it in found if it.spec.holder_identity}

    async def led_by(self, it: Member) -> None:
        """Return once it holds the one lease."""

        async def leads() -> bool:
            return (await self.holders()).get(LEASE) == it.account

        await cases.until(leads, it.process.check)

    async def is_even(self, *them: Member) -> None:
        """Return once each of them holds as many shards as the others, or one more."""

        async def even() -> bool:
            held = list((await self.holders()).values())
            counts = [held.count(each.account) for each in them]
            return sum(counts) == self._shards and max(counts) - min(counts) <= 1

        await cases.until(even, lambda: None)

    def read(self) -> list[measure.Request]:
        """What has been asked since the last time, by anybody."""
        return self._bench.log.read()

    @contextlib.asynccontextmanager
    async def load(self, count: int) -> AsyncIterator[None]:
        """Somebody changes one of `count` Widgets after another."""
        ending, chance = asyncio.Event(), random.Random(count)  # noqa: S311 - which objects

        async def change() -> None:
            number = 0
            while not ending.is_set():
                path = names.widgets(self.world.namespace, world.name_of(chance.randrange(count)))
                await self.world.client.merge(path, {"spec": {"text": f"change {number}"}})
                number += 1
                await asyncio.sleep(1 / RATE)

        changing = asyncio.create_task(change())
        try:
            yield
        finally:
            ending.set()
            await changing


@contextlib.asynccontextmanager
async def fleet(bench: cases.Bench, *, shards: int = 1) -> AsyncIterator[Fleet]:
    """In a fresh namespace."""
    async with world.world(bench.admin, cases.fresh("fleet")) as it, contextlib.AsyncExitStack() as stack:
        made = Fleet(bench, it, stack, shards)
        await made.free_leases()
        yield made


# --- one lease -------------------------------------------------------------------------------------------------------


async def one_lease(bench: cases.Bench, crowd: str) -> cases.Figures:
    """A leader is stopped, another killed, a third put to sleep; each time one with filled caches stands by."""
    async with fleet(bench) as it:
        first = await it.start(crowd=crowd)
        await it.led_by(first)
        await it.world.make(bench.size.changes)
        await it.world.settled(first.process.check, count=bench.size.changes)
        second = await it.start(crowd=crowd)
        figures = {"rss of the standby MiB": measure.memory(second.process.pid)[0]}
        it.read()
        figures |= await _stopped(it, first, second, bench.size.changes)
        third = await it.start(crowd=crowd)
        it.read()
        figures |= await _killed(it, second, third, bench.size.changes)
        fourth = await it.start(crowd=crowd)
        it.read()
        figures |= await _asleep(it, third, fourth, bench.size.changes)
        await it.world.settled(fourth.process.check, count=bench.size.changes)
        return figures


async def _stopped(it: Fleet, old: Member, new: Member, count: int) -> cases.Figures:
    lines, _ = await _followed(it, old, new, count, signal.SIGTERM)
    released = max(measure.ended(line) for line in measure.writes(lines, old.user, leases=True))
    taken = measure.writes(lines, new.user, leases=True)[0]
    return {
        "leaderless after a stop s": measure.ended(taken) - released,
        "without a write after a stop s": _gap(lines, old, new),
        "writes in another's time, stop": _beyond(lines, old, new),
    }


async def _killed(it: Fleet, old: Member, new: Member, count: int) -> cases.Figures:
    lines, at = await _followed(it, old, new, count, signal.SIGKILL)
    taken = measure.writes(lines, new.user, leases=True)[0]
    renewed = measure.writes(lines, old.user, leases=True)[-1]
    return {
        "leaderless after a crash s": measure.ended(taken) - at,
        "beyond the lease after a crash s": measure.ended(taken) - at - DURATION,
        "taken beyond the lease after its last renewal s": measure.begun(taken) - measure.ended(renewed) - DURATION,
        "writes in another's time, crash": _beyond(lines, old, new),
    }


async def _asleep(it: Fleet, old: Member, new: Member, count: int) -> cases.Figures:
    """It wakes when another leads, in the midst of changes."""
    async with it.load(count):
        old.send(signal.SIGSTOP)
        await it.led_by(new)
        lines = it.read()
        await asyncio.sleep(1.0)
        old.send(signal.SIGCONT)
        async with asyncio.timeout(PATIENCE):
            await asyncio.to_thread(old.process.wait)
        lines += it.read()
    it.left(old)
    return {"writes in another's time, sleep": _beyond(lines, old, new)}


async def _followed(
    it: Fleet, old: Member, new: Member, count: int, how: signal.Signals
) -> tuple[list[measure.Request], float]:
    """What was asked while one leader went and the next came, amid changes; when the first was told to go."""
    async with it.load(count):
        await asyncio.sleep(RENEWED)
        at = time.time()
        old.send(how)
        await it.led_by(new)
        await asyncio.sleep(1.0)
    await it.world.settled(new.process.check, count=count)
    await asyncio.to_thread(old.process.wait)
    it.left(old)
    return it.read(), at


def _gap(lines: Sequence[measure.Request], old: Member, new: Member) -> float:
    """Seconds from the answer to the last write of the one to the first of the other."""
    last = max(measure.ended(line) for line in measure.writes(lines, old.user))
    return min(measure.begun(line) for line in measure.writes(lines, new.user)) - last


def _beyond(lines: Sequence[measure.Request], old: Member, new: Member) -> float:
    """Writes of the old one that were not over when the new one asked for the lease, and of the new one before."""
    taken = measure.writes(lines, new.user, leases=True)[0]
    since = measure.begun(taken)
    late = [line for line in measure.writes(lines, old.user) if measure.ended(line) > since]
    early = [line for line in measure.writes(lines, new.user) if measure.begun(line) < since]
    return float(len(late) + len(early))


# --- shards ----------------------------------------------------------------------------------------------------------


async def shards(bench: cases.Bench) -> cases.Figures:
    """The same work for one alone and for two with a shard each; then they come and go while there is work."""
    alone = await _work(bench, 1)
    both = await _work(bench, 2)
    return {
        "cpu s, one alone": alone[0],
        "cpu s, busier of two": max(both),
        "cpu s, other of two": min(both),
        "busier of two to one alone": max(both) / alone[0],
        "mean of two to one alone": sum(both) / 2 / alone[0],
        **await _come_and_go(bench),
    }


async def _work(bench: cases.Bench, count: int) -> list[float]:
    """CPU seconds of each process while new Widgets are made and settled."""
    wanted = bench.size.shared
    async with fleet(bench, shards=count) as it:
        them = [await it.start() for _ in range(count)]
        await (it.is_even(*them) if count > 1 else it.led_by(them[0]))
        for each in them:
            await cases.quiet(each.process)
        before = [measure.cpu(each.process.pid) for each in them]
        await it.world.make(wanted)
        await it.world.settled(them[0].process.check, count=wanted)
        for each in them:
            await cases.quiet(each.process)
        return [measure.cpu(each.process.pid) - was for each, was in zip(them, before, strict=True)]


async def _come_and_go(bench: cases.Bench) -> cases.Figures:
    """Four shards: a second and a third process come, one is stopped, one killed, all while Widgets are changed."""
    count = bench.size.changes
    async with fleet(bench, shards=4) as it:
        first = await it.start()
        await it.is_even(first)
        await it.world.make(count)
        await it.world.settled(first.process.check, count=count)
        it.read()
        async with it.load(count):
            second = await it.start()
            await it.is_even(first, second)
            third = await it.start()
            await it.is_even(first, second, third)
            first.send(signal.SIGTERM)
            await it.is_even(second, third)
            second.send(signal.SIGKILL)
            await it.is_even(third)
        await it.world.settled(third.process.check, count=count)
        lines = it.read()
    mine = [each.user for each in (first, second, third)]
    return {
        "writes while processes come and go": float(sum(len(measure.writes(lines, user)) for user in mine)),
        "keys with two writers at once": float(len(measure.overlaps(lines, mine))),
    }
