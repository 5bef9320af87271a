"""A Widget's life on a real API server: exactly the writes that are needed, and none in steady state."""

from __future__ import annotations

import pytest

from moorage.api import builtin
from moorage.kube import client as kube_client
from tests.api.runtime import conftest, operate, widget

BIRTH = ["PATCH widgets", "PATCH configmaps", "PATCH widgets/status"]
CHANGE = ["PATCH configmaps", "PATCH widgets/status"]
DEATH = ["DELETE configmaps", "PATCH widgets"]


async def test_each_change_costs_its_writes_and_no_more(client: kube_client.Client, user: operate.User) -> None:
    async with operate.operating(client, user.namespace) as it:
        await user.create("one", text="a")
        assert (await user.ready("one")).status.text == "a"
        assert it.wrote == BIRTH

        await user.change("one", {"spec": {"text": "b"}})
        assert (await user.ready("one")).status.text == "b"
        assert it.wrote == BIRTH + CHANGE
        child = await user.child("one")
        assert child is not None
        assert child["data"] == {"text": "b"}

        await user.delete("one")
        await user.gone("one")
        await operate.until(lambda: it.idle)
        assert it.wrote == BIRTH + CHANGE + DEATH
        assert await user.child("one") is None
        assert await it.stop() is True


async def test_steady_state_writes_nothing_however_often_it_is_looked_at(
    client: kube_client.Client, user: operate.User
) -> None:
    async with operate.operating(client, user.namespace, resync=0.05) as it:
        for n in range(3):
            await user.create(f"w{n}", text="a")
        for n in range(3):
            await user.ready(f"w{n}")
        written, passes = len(it.wrote), it.passes
        await operate.until(lambda: it.passes > passes + 3 * 5)
        assert len(it.wrote) == written == 3 * len(BIRTH)
    async with operate.operating(client, user.namespace, resync=0.05) as again:
        await operate.until(lambda: again.passes > 3 * 3)
        assert again.wrote == [], "nor after a restart"


async def test_echoes_cause_no_pass(client: kube_client.Client, user: operate.User) -> None:
    async with operate.operating(client, user.namespace) as it:
        await user.create("one", text="a")
        await user.ready("one")
        await user.create("two", text="b")  # its events come after all echoes of the first
        await user.ready("two")
        await operate.until(lambda: it.passes >= 6)
        assert it.passes == 6, "finalizer, child, status: three each"


@pytest.mark.parametrize("edit", ["change", "remove a key", "delete", "strip the stamp"])
async def test_drift_costs_one_write_and_foreign_fields_survive(
    client: kube_client.Client, user: operate.User, edit: str
) -> None:
    async with operate.operating(client, user.namespace) as it:
        await user.create("one", text="a")
        await user.ready("one")
        await user.change("one-widget", {"data": {"other": "mine"}}, builtin.CONFIG_MAP)
        match edit:
            case "change":
                await user.change("one-widget", {"data": {"text": "spoilt"}}, builtin.CONFIG_MAP)
            case "remove a key":
                await user.change("one-widget", {"data": {"text": None}}, builtin.CONFIG_MAP)
            case "strip the stamp":
                await user.change("one-widget", {"metadata": {"annotations": None}}, builtin.CONFIG_MAP)
            case "delete":
                await user.delete("one-widget", builtin.CONFIG_MAP)

        async def is_repaired() -> bool:
            child = await user.child("one")
            stamped = child is not None and child["metadata"].get("annotations")
            return bool(child and stamped and child["data"].get("text") == "a")

        await operate.until(is_repaired)
        await user.change("one", {"metadata": {"labels": {"seen": "last"}}})
        await operate.until(lambda: it.knows_label("one", "seen") and it.idle)
        assert [what for what in it.wrote[3:] if "status" not in what] == ["PATCH configmaps"]
        child = await user.child("one")
        assert child is not None
        assert child["data"] == ({"text": "a"} if edit == "delete" else {"text": "a", "other": "mine"})


async def test_paused_nothing_is_done_and_nothing_is_claimed(client: kube_client.Client, user: operate.User) -> None:
    async with operate.operating(client, user.namespace) as it:
        await user.create("one", text="a")
        await user.ready("one")
        await user.change("one", {"metadata": {"annotations": {"moorage.dev/paused": "true"}}, "spec": {"text": "b"}})

        async def said() -> dict[str, str]:
            found = await user.look("one")
            assert found is not None
            if found.status.observed_generation != found.metadata.generation:
                return {}
            return {c.type: f"{c.status} {c.reason}" for c in found.status.conditions}

        conditions = await operate.until(said)
        assert conditions["Ready"] == "False Paused"
        assert (conditions["Available"], conditions["Stalled"]) == ("True Present", "False Paused")
        assert [what for what in it.wrote[3:] if "status" not in what] == []
        await user.change("one", {"metadata": {"annotations": None}})
        assert (await user.ready("one")).status.text == "b"


async def test_a_definition_that_goes_and_comes_back(client: kube_client.Client, namespace: str) -> None:
    group = f"{namespace}.{widget.GROUP}"
    await conftest.define(client, group)
    user = operate.User(client, namespace, group=group)
    name = f"widgets.{group}"
    try:
        async with operate.operating(client, namespace, group=group) as it:
            await user.create("one", text="a")
            await user.ready("one")
            await client.delete(builtin.CRD, "", name, propagation="Background")  # takes the Widget with it, properly

            await operate.until(lambda: _absent(client, name))
            assert it.wrote == BIRTH + DEATH
            assert await user.child("one") is None
            await conftest.define(client, group)
            await user.create("two", text="b")
            await user.ready("two")
            assert not it.task.done()
            passes = it.passes
            assert passes < 20, "not hot while it was away"
    finally:
        await user.leave()
        await client.delete(builtin.CRD, "", name, propagation="Background")


async def _absent(client: kube_client.Client, name: str) -> bool:
    found = await client.list(builtin.CRD, "", fields=f"metadata.name={name}")
    return not found.items
