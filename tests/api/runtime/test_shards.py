"""Several operators share the objects: each key has one writer at any time, while they come and go under load."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import random
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from moorage.api import builtin
from moorage.kube import client as kube_client
from moorage.kube.http import transport
from moorage.runtime.leading import election, shards
from tests.api.runtime import operate

SHARDS = 4
WIDGETS = 24
TIMING = election.Timing(duration=8, renew=6, retry=0.2)
"""Long enough that no lease is lost for want of CPU: only by those who are killed."""

SEED = int(os.environ.get("MOORAGE_TEST_SEED", "20261128"))


async def free_leases(client: kube_client.Client, namespace: str, count: int = SHARDS) -> None:
    for name in ("moorage", *(f"moorage-{n}" for n in range(count))):
        body = {
            "apiVersion": builtin.LEASE.api_version,
            "kind": builtin.LEASE.kind,
            "metadata": {"name": name, "namespace": namespace},
        }
        await client.create(builtin.LEASE, namespace, body, field_manager="test")


class Timed:
    """A transport that notes from when to when each write of an object was under way, and whose."""

    def __init__(
        self, inner: transport.Transport, whose: int, spans: dict[str, list[tuple[float, float, int]]]
    ) -> None:
        self._inner, self._whose, self._spans = inner, whose, spans
        self.stream, self.socket, self.close = inner.stream, inner.socket, inner.close

    async def request(self, method: str, path: str, **given: Any) -> transport.Response:
        begun = time.monotonic()
        try:
            return await self._inner.request(method, path, **given)
        finally:
            if method != "GET" and "/leases" not in path and "/events" not in path:
                self._spans.setdefault(_name(path), []).append((begun, time.monotonic(), self._whose))


def held(it: operate.Operator) -> set[int]:
    """The shards that it looks after."""
    return {shard.number for shard in it.manager._shards.all if shard.held and shard.gate.is_open}


class Fleet:
    """Operators that come and go. Each write is judged when it begins, by the gates of all."""

    def __init__(self, client: kube_client.Client, namespace: str, count: int = SHARDS) -> None:
        self._client, self._namespace, self._count = client, namespace, count
        self.here: list[operate.Operator] = []
        self.all: list[operate.Operator] = []
        self.wrong: list[str] = []
        self.spans: dict[str, list[tuple[float, float, int]]] = {}

    def start(self, count: int | None = None) -> operate.Operator:
        """One more, which divides the objects into so many parts; as all do, unless it is told otherwise."""
        client = kube_client.Client(Timed(self._client.transport, len(self.all), self.spans))
        it = operate.Operator(
            client,
            self._namespace,
            elect=True,
            timing=TIMING,
            shards=count or self._count,
            fault=lambda write: self._judge(it, write),
        )
        self.here.append(it)
        self.all.append(it)
        return it

    async def leave(self, it: operate.Operator, *, kill: bool = False) -> None:
        self.here.remove(it)
        if kill:
            await it.kill()
        else:
            assert await it.stop() is True

    def _judge(self, it: operate.Operator, write: operate.Write) -> str:
        found = it.kind.find(self._namespace, _name(write.path))
        if found is None:
            return ""
        placed = it.kind.placement(found)
        open_at = [each for each in self.all if each.manager._shards.of(placed).gate.is_open]
        if open_at != [it]:
            self.wrong.append(f"{write.what} {_name(write.path)}: open at {len(open_at)}")
        return ""

    def is_even(self) -> bool:
        """Every shard is with somebody, and nobody has two more than another."""
        parts = [held(each) for each in self.here]
        flat = [number for one in parts for number in one]
        sizes = [len(one) for one in parts]
        return sorted(flat) == list(range(self._count)) and max(sizes) - min(sizes) <= 1

    def overlaps(self) -> list[str]:
        """Writes of one key by two operators that were under way at the same time."""
        found = []
        for name, spans in self.spans.items():
            spans.sort()
            for (_, ended, one), (begun, _, other) in itertools.pairwise(spans):
                if one != other and begun < ended:
                    found.append(name)
        return found


def _name(path: str) -> str:
    return path.partition("/namespaces/")[2].split("/")[2].removesuffix("-widget")


@contextlib.asynccontextmanager
async def fleet(client: kube_client.Client, namespace: str, count: int = SHARDS) -> AsyncIterator[Fleet]:
    await free_leases(client, namespace, count)
    it = Fleet(client, namespace, count)
    try:
        yield it
    finally:
        for each in tuple(it.here):
            await it.leave(each, kill=True)


@contextlib.asynccontextmanager
async def load(user: operate.User, names: list[str]) -> AsyncIterator[dict[str, str]]:
    """Somebody changes one after another; yields what each was last told."""
    told: dict[str, str] = {}

    async def change() -> None:
        for n in itertools.count():
            if ending.is_set():
                return
            name = names[n % len(names)]
            await user.change(name, {"spec": {"text": str(n)}})
            told[name] = str(n)

    ending = asyncio.Event()
    changing = asyncio.create_task(change())
    try:
        yield told
    finally:
        ending.set()
        await changing


async def test_each_key_has_one_writer_while_operators_come_and_go(
    client: kube_client.Client, user: operate.User
) -> None:
    rng = random.Random(SEED)
    names = [f"w{n}" for n in range(WIDGETS)]
    for name in names:
        await user.create(name, text="")
    async with fleet(client, user.namespace) as it:
        it.start()
        async with load(user, names) as told:
            for turn in range(6):
                await operate.until(it.is_even)
                passes = sum(each.passes for each in it.here)
                await operate.until(_grown(it, passes + WIDGETS))
                if len(it.here) < 2 or (len(it.here) < 3 and turn % 2):
                    it.start()
                else:
                    await it.leave(rng.choice(it.here), kill=rng.random() < 0.4)
                    if not it.here:
                        it.start()
        await operate.until(it.is_even)
        for name in names:
            found = await user.ready(name)
            assert found.status.text == found.spec.text == told.get(name, "")

        writes = sum(len(each.wire.writes) for each in it.all)
        writers = [len({_name(w.path) for w in each.wire.writes}) for each in it.all]
        print(f"\nseed {SEED}: {writes} writes by {len(it.all)} operators, to {writers} keys each")
        assert [] == it.wrong
        assert [] == it.overlaps()
        assert sum(count > 0 for count in writers) > 1


def _grown(it: Fleet, passes: int) -> Callable[[], bool]:
    return lambda: sum(each.passes for each in it.here) >= passes


async def test_two_share_evenly_and_each_looks_after_its_own_alone(
    client: kube_client.Client, user: operate.User
) -> None:
    names = [f"w{n}" for n in range(WIDGETS)]
    for name in names:
        await user.create(name, text="a")
    async with fleet(client, user.namespace, 2) as it:
        first, second = it.start(), it.start()
        await operate.until(it.is_even)
        for name in names:
            await user.ready(name)
        await operate.until(lambda: first.idle and second.idle)  # a pass is counted after its last write
        before = [each.passes for each in (first, second)]
        for name in names:
            await user.change(name, {"spec": {"text": "b"}})
        for name in names:
            assert "b" == (await user.ready(name)).status.text
        await operate.until(lambda: first.idle and second.idle)
        grown = [each.passes - was for each, was in zip((first, second), before, strict=True)]
        print(f"\npasses for {WIDGETS} changes: {grown}")
        assert 2 * WIDGETS <= sum(grown) <= 2 * WIDGETS + 4
        expected = {n: [] for n in range(2)}
        for name in names:
            found = await user.look(name)
            assert found is not None
            expected[shards.Shards(2, first.manager._gate).of(found.metadata.uid).number].append(name)
        for each in (first, second):
            (number,) = held(each)
            assert set(expected[number]) == {key[2] for key in each.manager._controllers["Widget"]._memories}


async def test_a_stop_hands_all_over_at_once_and_a_newcomer_gets_its_share(
    client: kube_client.Client, user: operate.User
) -> None:
    await user.create("one", text="a")
    async with fleet(client, user.namespace) as it:
        first = it.start()
        await operate.until(it.is_even)
        begun = time.monotonic()
        second = it.start()
        await operate.until(it.is_even)
        print(f"\nfair share after {time.monotonic() - begun:.2f} s", held(first), held(second))
        assert [] == [at for at in (first, second) if len(held(at)) != 2]
        await it.leave(first)
        begun = time.monotonic()
        await operate.until(it.is_even)
        print(f"all taken over {time.monotonic() - begun:.2f} s after a stop")
        await user.change("one", {"spec": {"text": "b"}})
        assert "b" == (await user.ready("one")).status.text
        assert [] == it.wrong


async def test_a_shard_whose_task_runs_is_given_when_it_has_ended(
    client: kube_client.Client, user: operate.User
) -> None:
    begun, end = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        await end.wait()

    async with fleet(client, user.namespace, 2) as it:
        first = it.start()
        first.kind.work = work
        names: list[str] = []
        busy: set[int] = set()
        while busy != {0, 1}:  # a uid is chance, and a shard without a task is given at once
            names.append(f"w{len(names)}")
            await user.create(names[-1], text="a", task="t1")
            made = await user.look(names[-1])
            assert made is not None
            busy.add(first.manager._shards.of(made.metadata.uid).number)
        await begun.wait()
        await operate.until(lambda: held(first) == {0, 1})
        await operate.until(lambda: first.manager._world.tasks.running == len(names))
        second = it.start()
        await operate.until(lambda: any(shard.giving for shard in first.manager._shards.all))
        renewals = len(first.wire.other)
        await operate.until(lambda: len(first.wire.other) > renewals + 4)
        assert (set(), []) == (held(second), second.wrote)
        end.set()
        await operate.until(it.is_even)
        for name in names:
            found = await user.ready(name)
            assert ("t1", "t1") == (found.status.begun, found.status.finished)
        assert [] == it.wrong
        assert [] == it.overlaps()


async def test_who_divide_the_objects_otherwise_never_work_at_once(
    client: kube_client.Client, user: operate.User
) -> None:
    """As when somebody rolls out another number of shards: the new are there before the old are gone, however many."""
    names = [f"w{n}" for n in range(WIDGETS)]
    for name in names:
        await user.create(name, text="")
    async with fleet(client, user.namespace) as it:
        old = [it.start(), it.start()]
        await operate.until(it.is_even)
        async with load(user, names):
            for count, kill in ((1, False), (2, True), (4, False)):
                new = it.start(count)
                await operate.until(_synced(new))
                for each in old:
                    passes = sum(one.passes for one in old)
                    await operate.until(_grown(it, passes + WIDGETS))
                    assert [] == new.wrote
                    await it.leave(each, kill=kill)
                begun = time.monotonic()
                await operate.until(_works(new))
                print(f"\n{count} shards, {time.monotonic() - begun:.1f} s after the last of the others")
                old = [new]
        for name in names:
            await user.ready(name)

        assert [] == it.wrong
        assert [] == it.overlaps()


def _synced(it: operate.Operator) -> Callable[[], bool]:
    return lambda: it.manager._synced


def _works(it: operate.Operator) -> Callable[[], bool]:
    return lambda: bool(held(it)) and bool(it.wrote)
