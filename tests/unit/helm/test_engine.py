"""What the engine remembers of objects ends with their release."""

from __future__ import annotations

from typing import Any

from moorage.helm import engine, observation, operations, release_request, release_status
from moorage.kube import client as kube_client
from moorage.kube.informers import informer
from moorage.runtime import gate, kind
from tests.unit.runtime.fake_api import FakeApi, until

from . import release_states as states

NOTHING: Any = None


def made(world: kind.World) -> engine.Engine:
    """One that never gets to ask for a chart."""
    given = dict.fromkeys(("helm", "store", "chart_source", "request", "work", "place"), NOTHING)
    return engine.Engine(world, user=lambda namespace: namespace, **given)


async def test_without_rights_nothing_is_watched_in_a_namespace() -> None:
    """Neither before they come nor after they have gone: the server would only refuse, again and again."""
    client = kube_client.Client(FakeApi())
    world = kind.World(client, informer.Informers(client), gate.Gate(), lambda *_, **__: None)
    it = made(world)
    request = release_request.Request(
        key="one",
        owner=states.OWNER,
        target=states.TARGET,
        policy=observation.Policy(),
        wanted=states.WANTED,
        status=release_status.HelmStatus(),
        reconcile_at="",
        generation=1,
        leaving=False,
        values=None,
    )
    assert observation.NO_RIGHTS == it.observe(request, states.NOW, entitled=False).claim.reason  # type: ignore[union-attr]
    assert [] == world.informers.all()
    it.observe(request, states.NOW, entitled=True)
    assert {states.TARGET.namespace} == {cache.scope.namespace for cache in world.informers.all()}
    it.observe(request, states.NOW, entitled=False)
    await until(lambda: not world.informers.all())
    await it.stop()


async def test_what_is_remembered_of_an_object_ends_with_its_place_in_a_release() -> None:
    """When it leaves the chart, and when the whole release goes; that of others stays."""
    client = kube_client.Client(FakeApi())
    world = kind.World(client, informer.Informers(client), gate.Gate(), lambda *_, **__: None)
    it = made(world)
    other = states.config_map("other")
    for ref in (states.DEPLOYMENT, states.SERVICE, other):
        it._objects._compared[ref] = ("1", "2", ())
        it._runs.settled[ref] = frozenset({"spec"})
        it._runs.given_up[ref] = operations.GivenUp("1", "2", "no", 0.0)
    it._objects.remember("one", (states.DEPLOYMENT, states.SERVICE))
    it._objects.remember("two", (other,))

    def kept() -> list[set[Any]]:
        return [set(each) for each in (it._objects._compared, it._runs.settled, it._runs.given_up)]

    it._objects.remember("one", (states.SERVICE,))
    assert [{states.SERVICE, other}] * 3 == kept()
    it.forget("one")
    assert [{other}] * 3 == kept()
    it.forget("two")
    assert [set()] * 3 == kept()
    assert {} == it._objects._named
    await it.stop()
