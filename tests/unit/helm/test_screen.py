"""What is on the screen of a release, and by which objects."""

from __future__ import annotations

from typing import Any

from moorage.helm import screen
from moorage.helm.release import claim, manifest
from moorage.kube import client as kube_client
from moorage.runtime.reporting import screen_rows
from tests.unit.runtime.fake_api import Asked, FakeApi, Refusal

from . import release_states as states

OWNER: dict[str, Any] = {"status": {"release": {"name": states.TARGET.release, "namespace": states.TARGET.namespace}}}


def rows(**status: Any) -> dict[str, str]:
    """Label to text."""
    return {row.label: row.text for row in screen.rows(status)}


def test_what_is_not_known_yet_is_left_out() -> None:
    """Of a new one there is but the place of its objects; of one that was never made no revision."""
    assert {screen_rows.OBJECTS: ""} == rows()
    assert "acme/web  none yet" == rows(release={"namespace": "acme", "name": "web"})["Release"]
    assert "a 1.0  " == rows(chart={"name": "a", "version": "1.0"})["Chart"]
    assert "it broke" == rows(lastError="it broke")["Last error"]


async def _claimed(api: FakeApi) -> None:
    items = (manifest.InventoryItem(states.DEPLOYMENT), manifest.InventoryItem(states.SERVICE, hook=True))
    body = claim.body(states.TARGET, states.OWNER)
    body["data"]["inventory"] = manifest.dump_inventory(items)
    await api.put("configmaps", body["metadata"]["name"], body, namespace=states.TARGET.namespace)


async def test_its_objects_are_those_of_the_claim_without_hooks() -> None:
    """With all pods of the namespace, as they tell why another is not ready."""
    api = FakeApi()
    await _claimed(api)
    await api.put("pods", "web-1", namespace=states.TARGET.namespace)

    found = await screen.objects(kube_client.Client(api), OWNER)

    assert (states.DEPLOYMENT,) == found.refs
    assert ["web-1"] == [pod["metadata"]["name"] for pod in found.pods]


async def test_without_a_release_or_rights_there_are_none() -> None:
    """The screen says less, and does not fail."""
    api = FakeApi()
    await _claimed(api)

    async def refuse(asked: Asked) -> None:
        if asked.at.plural == "pods":
            raise Refusal(403, "Forbidden")

    api.before = refuse
    client = kube_client.Client(api)

    assert () == (await screen.objects(client, {"status": {}})).refs
    assert () == (await screen.objects(client, OWNER)).refs
