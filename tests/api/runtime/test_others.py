"""Two installations of moorage that see the same objects: one works, the other is quiet until that is gone."""

from __future__ import annotations

import pytest

from moorage.api import builtin
from moorage.kube import client as kube_client
from moorage.runtime.leading import installations
from tests.api.runtime import operate

WIDGETS = [f"w{n}" for n in range(10)]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks are further apart than a Lease lasts."""
    monkeypatch.setattr(installations, "LOOK_EVERY", operate.TIMING.duration + 1)
    monkeypatch.setattr(installations, "AWAY", 5.0)


async def test_two_installations_do_not_fight(client: kube_client.Client, user: operate.User) -> None:
    """The second writes nothing, names the first on each object, and goes on with all of them when that is gone."""
    for name in WIDGETS[:5]:
        await user.create(name, text="a")
    async with operate.operating(client, user.namespace, elect=True, lease="first") as first:
        for name in WIDGETS[:5]:
            await user.ready(name)
        async with operate.operating(client, user.namespace, elect=True, lease="second") as second:
            await operate.until(lambda: second.leads and len(second.manager._world.others) == 5)
            for name in WIDGETS[:5]:
                await user.change(name, {"spec": {"text": "b"}})
            for name in WIDGETS[:5]:
                assert "b" == (await user.ready(name)).status.text
            assert [] == second.wrote
            told = await _told(client, user.namespace)
            assert {(name, "Warning", True) for name in WIDGETS[:5]} == told

            await user.delete(WIDGETS[0])
            await user.gone(WIDGETS[0])
            assert [] == second.wrote
            await first.kill()
            await user.delete(WIDGETS[1])
            await user.change(WIDGETS[2], {"spec": {"text": "c"}})
            assert "c" == (await user.ready(WIDGETS[2])).status.text
            await user.gone(WIDGETS[1])
            await operate.until(lambda: not len(second.manager._world.others))


async def test_of_two_that_come_at_once_each_object_has_one(client: kube_client.Client, user: operate.User) -> None:
    """Whose it is, is decided by who is first; and all are well."""
    async with (
        operate.operating(client, user.namespace, elect=True, lease="first") as first,
        operate.operating(client, user.namespace, elect=True, lease="second") as second,
    ):
        await operate.until(lambda: first.leads and second.leads)
        for name in WIDGETS:
            await user.create(name, text="a")
        for name in WIDGETS:
            await user.ready(name)
        await operate.until(lambda: first.idle and second.idle)
        marks = [(await user.look(name)).metadata.annotations[installations.OPERATOR] for name in WIDGETS]  # type: ignore[union-attr]
        assert {f"{user.namespace}/first", f"{user.namespace}/second"} >= set(marks)
        for each, lease in ((first, "first"), (second, "second")):
            mine = {name for name, mark in zip(WIDGETS, marks, strict=True) if mark.endswith(lease)}
            wrote = {name for name in WIDGETS for write in each.wire.writes if f"/{name}/status" in write.path}
            assert mine == wrote, "status is written by the one whose it is"


async def _told(client: kube_client.Client, namespace: str) -> set[tuple[str, str, bool]]:
    """Name, type, and whether the first installation is named, of each Event of the second."""

    async def found() -> set[tuple[str, str, bool]] | None:
        events = [e for e in (await client.list(builtin.EVENT, namespace)).items if e["reason"] == "OtherOperator"]
        told = {(e["regarding"]["name"], e["type"], f"{namespace}/first" in e["note"]) for e in events}
        return told if len(events) == len(told) == 5 else None

    told: set[tuple[str, str, bool]] = await operate.until(found)
    return told
