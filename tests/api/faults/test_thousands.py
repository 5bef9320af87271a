"""Thousands of faults to lists, watches, events, writes and connections: after each round all is as the server has it.

In a round users make, change and delete Widgets and ConfigMaps, while the weather harms whatever goes between the
server and the operator, and five caches beside it, whose every byte passes a proxy. Then it calms down: each cache must
become equal to a fresh list, each Widget Ready with its one child, and no child left without its Widget. No watch may
have tried more often per second than its pace allows, whatever the server answered.

    MOORAGE_TEST_SEED=7 pytest tests/api/faults/test_thousands.py -m campaign -s
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import msgspec
import pytest

from moorage.api import builtin, meta
from moorage.kube import client as kube_client
from moorage.kube import credentials, errors
from moorage.kube.http import transport
from moorage.kube.informers import informer, reflector
from tests.api.runtime import conftest, operate, widget

from . import faulty, plans, proxy, report, run, waiting

PACE = reflector.Pace(idle=1.5, lifetime=30.0, connect=2.0, base=0.02, cap=0.2, settled=5.0)
TRIES = 2 / PACE.cap + 5
"""How often one watch may try within a second: each half of the longest delay, and the first, shorter ones."""

ROUND = 100
WITHIN = 90.0
CONFIG_MAP = builtin.CONFIG_MAP


class Weather(msgspec.Struct, frozen=True):
    """What a round is like: which words, how often, above HTTP and below it."""

    name: str
    rate: float = 0.35
    words: Mapping[str, Sequence[str]] = {}
    below: float = 0.0


WEATHERS = (
    Weather("everything", words=plans.ANYTHING),
    Weather("writes fail", rate=0.3, words={"write": plans.GENTLE}),
    Weather("connections break", below=0.25),
    Weather("410 by status", rate=0.9, words={"watch": ("410",), "event": ("end",)}),
    Weather("410 by event", rate=0.6, words={"event": ("error 410",)}),
    Weather("pages expire", rate=0.5, words={"read": ("410",), "event": ("error 410",)}),
    Weather(
        "rights and definitions blink",
        rate=0.5,
        words={"read": ("403", "404"), "watch": ("403", "404"), "event": ("end",)},
    ),
    Weather(
        "the server sheds load",
        rate=0.4,
        words=dict.fromkeys(("read", "watch", "write"), ("429", "429 wait", "503")) | {"event": ("end",)},
    ),
    Weather("silence", words={"event": ("stall", "late", "twice")}, below=0.02),
    Weather("events late, twice, unseen", rate=0.5, words={"event": ("late", "twice", "unobserved")}),
    Weather("everything, below too", rate=0.15, words=plans.ANYTHING, below=0.05),
)
BELOW = {
    "request": ("refuse", "cut", "lose", "half", "drip", "503", "stall"),
    "chunk": tuple(proxy.CHUNKS),
}


class ConfigMap(msgspec.Struct, frozen=True, gc=False):
    metadata: meta.ObjectMeta
    data: dict[str, str] = {}


class World:
    """A namespace, its users, and who watches it through the weather."""

    def __init__(
        self, client: kube_client.Client, through: transport.Transport, between: proxy.Proxy, namespace: str, seed: int
    ) -> None:
        self._client, self._namespace, self.proxy = client, namespace, between
        self.acts, self._first = 0, seed
        self.hangs: list[str] = []
        self.by_weather: Counter[str] = Counter()
        self.chaos = plans.Chaos(seed)
        self.below = plans.Below(seed, BELOW)
        between.judge, between.judge_chunk = self.below.judge, self.below.judge_chunk
        self._dice = random.Random(seed)
        self.operator = operate.Operator(kube_client.Client(through), namespace, plan=self.chaos, pace=PACE)
        scopes: list[tuple[reflector.Scope, Any]] = [
            (reflector.Scope(CONFIG_MAP, namespace), ConfigMap),
            (reflector.Scope(CONFIG_MAP, namespace), dict),
            (reflector.Scope(CONFIG_MAP, namespace, metadata_only=True), meta.Partial),
            (reflector.Scope(CONFIG_MAP, namespace, labels=widget.OWNER), ConfigMap),
            (reflector.Scope(CONFIG_MAP, namespace, name="cm-1"), ConfigMap),
        ]
        self.wires = [faulty.Wire(through, self.chaos) for _ in scopes]
        clients = [kube_client.Client(wire) for wire in self.wires]
        for only in clients[1::2]:
            only.only_pages.add(CONFIG_MAP)  # the others list as a stream, until a fault looks as if the server can't
        self.beside = [
            informer.Informer(a_client, scope, model, pace=PACE, cold=model is dict)
            for a_client, (scope, model) in zip(clients, scopes, strict=True)
        ]
        for cache in self.beside:
            cache.start()

    async def stop(self) -> None:
        """Let go."""
        await self.operator.kill()
        for cache in self.beside:
            await cache.stop()

    @property
    def total(self) -> int:
        """Faults so far."""
        return self.chaos.total + self.below.total

    @property
    def requests(self) -> int:
        """All that its operator and caches have asked."""
        return sum(len(wire.sent) for wire in (*self.wires, self.operator.wire))

    async def live(self, rounds: int) -> None:
        """So many rounds, each of another weather."""
        for number in range(rounds):
            weather = WEATHERS[(number + self._first) % len(WEATHERS)]
            before = self.total
            await self.suffer(weather, ROUND, number)
            self.by_weather[weather.name] += self.total - before
            try:
                await waiting.until(self._is_right, within=WITHIN)
            except TimeoutError:
                self.hangs.append(f"round {number}, {weather.name}: {await self.wrong()}")

    async def _is_right(self) -> bool:
        return not await self.wrong()

    async def suffer(self, weather: Weather, count: int, number: int) -> None:
        """A round: so many faults while people work."""
        self.chaos.words, self.chaos.rate = dict(weather.words), weather.rate
        self.below.rate = weather.below
        target = self.total + count
        while self.total < target:
            with contextlib.suppress(errors.AlreadyExists, errors.Conflict, errors.NotFound):
                await self._work(number)
        self.chaos.rate = self.below.rate = 0.0

    async def _work(self, number: int) -> None:
        """One act of a user."""
        self.acts += 1
        draw, where = self._dice.random(), self._namespace
        name, text = f"w{number}-{self._dice.randrange(4)}", f"{self._dice.random()}"
        spec = {"spec": {"text": text}}
        if draw < 0.3:
            body = {"apiVersion": widget.resource().api_version, "kind": "Widget", "metadata": {"name": name}, **spec}
            await self._client.create(widget.resource(), where, body, field_manager="user")
        elif draw < 0.6:
            await self._client.patch_merge(widget.resource(), where, name, spec, field_manager="user")
        elif draw < 0.7:
            await self._delete(name)
        elif draw < 0.9:
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"cm-{self._dice.randrange(6)}"}}
            await self._client.apply(
                CONFIG_MAP, where, body["metadata"]["name"], body | {"data": {"x": text}}, field_manager="user"
            )
        else:
            await self._client.delete(CONFIG_MAP, where, f"cm-{self._dice.randrange(6)}", propagation="Background")

    async def _delete(self, name: str) -> None:
        """As it was seen: a server that deletes whatever there is may overrun a finalizer that is just being set."""
        seen = await self._client.get(widget.resource(), self._namespace, name, as_=meta.Partial)
        where = (widget.resource(), self._namespace, name)
        await self._client.delete(*where, propagation="Background", resource_version=seen.metadata.resource_version)

    async def wrong(self) -> list[str]:
        """What is not yet as the server has it."""
        found = []
        for cache in [*self.beside, *self.operator.manager._informers.all()]:
            scope = cache.scope
            live = await self._client.list(
                scope.resource, scope.namespace, labels=scope.labels, fields=scope.fields, as_=meta.Partial
            )
            if _versions(live.items) != _versions(cache.items()):
                found.append(f"cache of {scope} differs from a fresh list")
        widgets = (await self._client.list(widget.resource(), self._namespace, as_=widget.Widget)).items
        children = (await self._client.list(CONFIG_MAP, self._namespace, labels=widget.OWNER, as_=ConfigMap)).items
        texts = {child.metadata.name: child.data.get("text") for child in children}
        for it in widgets:
            ready = {c.type: c.status for c in it.status.conditions}.get("Ready")
            if ready != "True" or it.status.observed_generation != it.metadata.generation:
                found.append(f"{it.metadata.name} is not Ready: {it.status.conditions}")
            elif texts.pop(f"{it.metadata.name}-widget", None) != it.spec.text:
                found.append(f"{it.metadata.name} has not its child")
        return found or [f"{name} is left over" for name in texts if widgets is not None and not _owned(name, widgets)]


def _owned(child: str, widgets: list[widget.Widget]) -> bool:
    return any(child == f"{it.metadata.name}-widget" for it in widgets)


def _versions(items: Sequence[Any]) -> dict[Any, tuple[str, str]]:
    metadata = [informer.meta_of(item) for item in items]
    return {it.key: (it.uid, it.resource_version) for it in metadata}


@contextlib.asynccontextmanager
async def world(stage: run.Stage, seed: int) -> AsyncIterator[World]:
    """A namespace with people, an operator, and a proxy in between."""
    name, client = f"weather-{uuid.uuid4().hex[:8]}", stage.client
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await client.create(builtin.NAMESPACE, "", body, field_manager="user")
    between = proxy.Proxy(stage.admin, stage.certificate)
    await between.start()
    reached = await credentials.from_kubeconfig(between.kubeconfig(stage.folder / name))
    through = transport.HttpTransport(reached)
    made = World(client, through, between, name, seed)
    try:
        yield made
    finally:
        await made.stop()
        await through.close()
        await between.close()
        await operate.User(client, name).leave()
        await client.delete(builtin.NAMESPACE, "", name, propagation="Background")


async def _campaign(stage: run.Stage, worlds: int, rounds: int, told: report.Report) -> None:
    await conftest.define(stage.client)
    async with contextlib.AsyncExitStack() as stack:
        them = [await stack.enter_async_context(world(stage, report.SEED + number)) for number in range(worlds)]
        await asyncio.gather(*(it.live(rounds) for it in them))
    told.table(("weather", "faults"), sorted(sum((it.by_weather for it in them), Counter[str]()).items()))
    faults = sum((it.chaos.faults + it.below.faults for it in them), Counter[tuple[str, str]]())
    told.table(("fault", "on", "injected"), [(word, on, count) for (on, word), count in sorted(faults.items())])
    hangs = [said for it in them for said in it.hangs]
    total, acts, requests = faults.total(), sum(it.acts for it in them), sum(it.requests for it in them)
    told.say(f"{total} faults in {worlds * rounds} rounds; {len(hangs)} did not end with caches equal to a list")
    told.say(f"{requests} requests for {acts} acts of users and {total} faults")
    tries = max(faulty.busiest(wire.sent) for it in them for wire in it.wires)
    opened = max(faulty.busiest(wire.opened) for it in them for wire in it.wires)
    most = max(it.operator.wire.busiest for it in them)
    told.say(f"most requests in a second: {tries} of one cache, {most} of one operator, which writes besides")
    told.say(f"most watches opened in a second: {opened} of one cache; its pace allows {TRIES:g}")

    assert [] == hangs
    assert opened <= TRIES
    assert requests <= 10 * (acts + total)


async def test_some_hundred_faults(stage: run.Stage, told: report.Report) -> None:
    await _campaign(stage, 2, 1, told)


@pytest.mark.campaign
async def test_ten_thousand_faults(stage: run.Stage, told: report.Report) -> None:
    await _campaign(stage, 4, 25, told)
