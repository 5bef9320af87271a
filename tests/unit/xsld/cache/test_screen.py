"""What is on the screen of a cache, and which pods are shown below it."""

from __future__ import annotations

from typing import Any

from moorage.kube import client as kube_client
from moorage.operators.xsld.cache import screen
from moorage.runtime.reporting import screen_rows
from tests.unit.runtime.fake_api import Asked, FakeApi, Refusal

MEMBERS = [{"name": f"c-{n}", "state": "Online"} for n in range(3)]


def rows(**status: Any) -> dict[str, screen_rows.Row]:
    """By label."""
    return {row.label: row for row in screen.rows(status)}


def test_members_are_counted_as_the_rows_below_show_them() -> None:
    """Not against a size that is less while members are still to leave."""
    three, shrinking = (rows(size=size, online=3, memberStatuses=MEMBERS)["Members"].text for size in (3, 1))

    assert "3 of 3 online" == three
    assert "3 of 3 online, 1 wanted" == shrinking


def test_a_member_is_shown_with_its_roles_and_where_it_answers() -> None:
    """And with the address by which the group knows it, if that is another."""
    member = {"name": "c-0", "state": "Online", "catalog": True, "podIP": "10.0.0.1", "registeredIP": "10.0.0.9"}
    shown = rows(primary="c-0", replication={"slave": "c-1"}, memberStatuses=[member, {"name": "c-1"}])["Members"]

    assert (
        screen_rows.Item("c-0  Online  primary catalog  10.0.0.1 (the group knows 10.0.0.9)", good=True),
        screen_rows.Item("c-1  copy  no pod", good=False),
    ) == shown.items


def test_what_is_under_way_and_what_has_failed_are_shown() -> None:
    """With how far it is, and how often."""
    task = {"command": "join", "target": "c-1", "endpoint": "c-0", "attempts": 2, "startedAt": "now"}
    trouble = {"command": "leave", "target": "c-2", "attempts": 3, "message": "no"}
    shown = rows(phase="Scaling", currentTask=task, taskProgress={"percent": 40}, troubles=[trouble], grids=["a", "b"])

    assert "Scaling" == shown["Phase"].text
    assert "join c-1 at c-0: 40 %, attempt 2, since now" == shown["Task"].text
    assert "leave c-2: 3 times, last: no" == shown["Failed"].text
    assert "a, b" == shown["Grids"].text
    assert [screen_rows.OBJECTS] == list(rows()), "of a new one there is nothing to show yet"


def cache(**status: Any) -> dict[str, Any]:
    """One as the API server hands it out."""
    return {"metadata": {"namespace": "ns", "name": "c"}, "status": status}


async def test_its_pods_are_those_that_its_selector_names_and_members_without_one() -> None:
    """A member whose pod is gone is shown as such."""
    api = FakeApi()
    await api.put("pods", "c-0")
    await api.put("pods", "c-2")
    client = kube_client.Client(api)

    found = await screen.pods(client, cache(selector="of=c", memberStatuses=MEMBERS))

    assert ["of=c"] == [asked.query["labelSelector"] for asked in api.requests]
    assert ["c-0", "c-1", "c-2"] == [ref.name for ref in found.refs]
    assert [True, False, True] == [found.live[ref] is not None for ref in found.refs]
    assert () == (await screen.pods(client, cache())).refs


async def test_who_may_not_read_pods_is_shown_none() -> None:
    """The screen says less, and does not fail."""

    async def refuse(_: Asked) -> None:
        raise Refusal(403, "Forbidden")

    api = FakeApi()
    api.before = refuse

    assert () == (await screen.pods(kube_client.Client(api), cache(selector="of=c"))).refs
