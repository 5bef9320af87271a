"""What is shown of a RuntimeVersion."""

from __future__ import annotations

import pytest

from moorage.kube import client as kube_client
from moorage.operators.kre import kinds
from moorage.operators.kre.version import screen
from moorage.runtime.reporting.screen_rows import Item, Owned, Row
from tests.unit.runtime import fake_api


def test_phase_and_each_workflow_by_its_nodes() -> None:
    """The entrypoint first; who is not well with its own words."""
    nodes = [
        {"workflow": "greet", "name": "first", "state": "STARTED", "ready": 1, "wanted": 1},
        {
            "workflow": "greet",
            "name": "last",
            "state": "ERROR",
            "ready": 0,
            "wanted": 2,
            "restarts": 3,
            "message": "no",
        },
        {"workflow": "", "name": "entrypoint", "state": "STARTING", "wanted": 1},
    ]
    status = {"phase": "ERROR", "runtime": "demo", "nodes": nodes, "missingConfig": ["A", "B"]}

    assert [
        Row("Phase", "ERROR"),
        Row("Runtime", "demo"),
        Row("Entrypoint", "0 of 1 ready", (Item("entrypoint  STARTING  0 of 1", good=False),)),
        Row(
            "Workflow greet",
            "1 of 2 ready",
            (Item("first  STARTED  1 of 1", good=True), Item("last  ERROR  0 of 2  3 restarts  no", good=False)),
        ),
        Row("Without a value", "A, B"),
    ] == list(screen.rows(status))


def test_of_what_was_never_looked_at_nothing_is_shown() -> None:
    """As of a status that is empty."""
    assert [] == list(screen.rows({}))


async def test_its_objects_are_found_by_its_mark() -> None:
    """With the user's own rights; the pods tell why one is not ready."""
    api = fake_api.FakeApi()
    for plural, name in (("deployments", "demo-v1-entrypoint"), ("services", "demo-v1-entrypoint"), ("pods", "p")):
        await api.put(plural, name)
    found = await screen.objects(kube_client.Client(api), {"metadata": {"name": "one", "namespace": "ns"}})

    assert [("Deployment", "demo-v1-entrypoint"), ("Service", "demo-v1-entrypoint")] == [
        (ref.kind, ref.name) for ref in found.refs
    ]
    assert (["p"], set(found.refs)) == ([pod["metadata"]["name"] for pod in found.pods], set(found.live))
    assert {f"{kinds.OF_VERSION}=one"} == {asked.query["labelSelector"] for asked in api.requests}


@pytest.mark.parametrize("code", [403, 404])
async def test_of_what_may_not_be_read_nothing_is_shown(code: int) -> None:
    """It is no error: all else is shown."""
    api = fake_api.FakeApi()

    async def refuse(_: fake_api.Asked) -> None:
        raise fake_api.Refusal(code)

    api.before = refuse

    assert Owned() == await screen.objects(kube_client.Client(api), {"metadata": {"name": "one", "namespace": "ns"}})
