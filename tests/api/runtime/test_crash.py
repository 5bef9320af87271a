"""Killed at any write, before or after the server carried it out, a fresh process ends where an unharmed one does."""

from __future__ import annotations

import random
from typing import Any

import pytest

from moorage.api import builtin
from moorage.kube import client as kube_client
from tests.api.runtime import operate, widget

SEED = 20261128
SLICE = 6
LIFE = [
    "PATCH widgets",
    "PATCH configmaps",
    "PATCH widgets/status",  # begun
    "PATCH widgets/status",  # the task runs
    "PATCH widgets/status",  # finished
    "PATCH widgets/status",  # ready
    "PATCH configmaps",
    "PATCH widgets/status",
    "DELETE configmaps",
    "PATCH widgets",
]
POINTS = [(number, when) for number in range(1, len(LIFE) + 1) for when in ("before", "after")]


class Survivor:
    """One operator after another: when one dies, the next takes its place."""

    def __init__(self, client: kube_client.Client, namespace: str, kill: tuple[int, str] | None) -> None:
        self._client, self._namespace, self._kill = client, namespace, kill
        self.lives: list[operate.Operator] = []
        self.killed = False
        self.start()

    def start(self) -> None:
        self.lives.append(operate.Operator(self._client, self._namespace, fault=self._fault))

    def _fault(self, write: operate.Write) -> str:
        if self._kill and len(self.lives) == 1 and write.number == self._kill[0]:
            self.killed = True
            return f"kill {self._kill[1]}"
        return ""

    async def raise_again(self) -> None:
        """Bury who was killed, and start the next."""
        if self.lives[-1].wire.dead.is_set():
            await self.lives[-1].kill()
            self.start()

    @property
    def applied(self) -> list[str]:
        """All that was carried out, in order, by all of them."""
        return [write.what for life in self.lives for write in life.wire.writes if write.applied]


async def _live(client: kube_client.Client, user: operate.User, name: str, kill: tuple[int, str] | None) -> Survivor:
    """Create, change, delete; what the world looks like is checked after each."""
    them = Survivor(client, user.namespace, kill)
    try:
        await user.create(name, text="a", task="t1")
        await _settled(user, them, name, {"text": "a", "begun": "t1", "finished": "t1"})
        await user.change(name, {"spec": {"text": "b"}})
        await _settled(user, them, name, {"text": "b", "begun": "t1", "finished": "t1"})
        await user.delete(name)

        async def is_gone() -> bool:
            await them.raise_again()
            return await user.look(name) is None

        await operate.until(is_gone)
        assert await user.child(name) is None
        last = them.lives[-1]
        await operate.until(lambda: last.idle or last.wire.dead.is_set())  # it may not have heard the answer yet
    finally:
        for life in them.lives:
            await life.kill()
    return them


async def _settled(user: operate.User, them: Survivor, name: str, status: dict[str, str]) -> None:
    async def is_settled() -> bool:
        await them.raise_again()
        found = await user.look(name)
        if found is None or found.status.observed_generation != found.metadata.generation:
            return False
        return any(c.type == "Ready" and c.status == "True" for c in found.status.conditions)

    await operate.until(is_settled)
    found = await user.look(name)
    assert found is not None
    assert {key: getattr(found.status, key) for key in status} == status
    assert found.metadata.finalizers == (widget.FINALIZER,)
    assert {c.type: c.status for c in found.status.conditions} == {
        "Available": "True",
        "Ready": "True",
        "Reconciling": "False",
        "Stalled": "False",
    }
    listing: Any = await user.client.list(builtin.CONFIG_MAP, user.namespace, labels=f"{widget.OWNER}={name}")
    assert [(o["metadata"]["name"], o["data"]) for o in listing.items] == [(f"{name}-widget", {"text": status["text"]})]


async def test_the_writes_of_a_life_are_known(client: kube_client.Client, user: operate.User) -> None:
    assert (await _live(client, user, "unharmed", None)).applied == LIFE


async def _survives(client: kube_client.Client, user: operate.User, point: tuple[int, str]) -> None:
    them = await _live(client, user, f"k{point[0]}-{point[1]}", point)
    assert them.killed
    effects = [what for what in them.applied if "status" not in what]
    assert effects == [what for what in LIFE if "status" not in what], f"nothing is done twice: {them.applied}"
    assert len(them.applied) <= len(LIFE) + 2, "and status is written once more at most for a task that runs again"


@pytest.mark.parametrize("point", random.Random(SEED).sample(POINTS, SLICE), ids=str)
async def test_killed_at_a_write(client: kube_client.Client, user: operate.User, point: tuple[int, str]) -> None:
    await _survives(client, user, point)


@pytest.mark.campaign
@pytest.mark.parametrize("point", POINTS, ids=str)
async def test_killed_at_every_write(client: kube_client.Client, user: operate.User, point: tuple[int, str]) -> None:
    await _survives(client, user, point)


# --- faults that a process survives ----------------------------------------------------------------------------------

FAULTS = ["drop", "lose", "409", "429", "500"]


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_at_the_first_of_each_kind_of_write(
    client: kube_client.Client, user: operate.User, fault: str
) -> None:
    met: set[str] = set()

    def at(write: operate.Write) -> str:
        first = write.what not in met
        met.add(write.what)
        return fault if first else ""

    async with operate.operating(client, user.namespace, fault=at) as it:
        await user.create("one", text="a")
        await user.ready("one")
        child = await user.child("one")
        assert child is not None
        assert child["data"] == {"text": "a"}
        await user.delete("one")
        await user.gone("one")
        assert await user.child("one") is None
        await operate.until(lambda: it.idle)
        effects = [write.what for write in it.wire.writes if write.applied and "status" not in write.what]
        assert effects == ["PATCH widgets", "PATCH configmaps", "DELETE configmaps", "PATCH widgets"]
        assert len(it.wrote) <= 2 * len(effects) + 4, "never hot"
