"""Whatever a tenant writes, and whatever a chart makes of it: nothing outside its namespace is read or written.

The operator acts as the accounts that the chart's roles give rights to. Each case is played twice: as it is, and with
the checks in the code taken out, where the API server alone says no.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage.api import builtin, meta
from moorage.helm import observation, release_sources
from moorage.helm.release import claim, manifest
from moorage.kube import client as kube_client
from tests.api.runtime import operate

from . import operating

PLAIN = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}'}\ndata: {word: '{{ .Values.word }}'}\n"
ELSEWHERE = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: planted, namespace: '{{ .Values.other }}'}\ndata: {a: b}\n"
)


class Place:
    """A namespace of Collectors and two tenants that admit them, of which the first one is hostile."""

    def __init__(self, client: kube_client.Client, namespace: str, folder: Path, kubeconfig: str) -> None:
        self.people = operating.People(client, namespace)
        self.client, self.namespace, self.charts = client, namespace, folder / "charts"
        self.hostile, self.other = f"{namespace}-eve", f"{namespace}-bob"
        self._folder, self._kubeconfig = folder, kubeconfig

    @contextlib.asynccontextmanager
    async def operating(self) -> AsyncIterator[operating.Operator]:
        folder = self._folder / uuid.uuid4().hex
        folder.mkdir()
        more: dict[str, Any] = {"kubeconfig": self._kubeconfig, "folder": folder, "charts": self.charts}
        it = operating.Operator(self.client, self.namespace, **more)
        try:
            yield it
        finally:
            await it.kill()

    async def begin(self, templates: str = PLAIN, **values: Any) -> None:
        """One Collector for each tenant, both to be ready."""
        operating.chart(self.charts, PLAIN, name="plain", word="one")
        operating.chart(self.charts, templates, word="one", other=self.other)
        for tenant in (self.hostile, self.other):
            await self.people.namespace_of(tenant, admits=self.namespace)
        await self.people.collector("bob", self.other, "plain")
        await self.people.collector("eve", self.hostile, **values)
        await self.people.ready("bob")

    async def planted(self) -> bool:
        return await self.people.config_map(self.other, "planted") is not None


@pytest.fixture
async def place(client: kube_client.Client, namespace: str, tmp_path: Path, cluster: str) -> AsyncIterator[Place]:
    await operating.define(client)
    it = Place(client, namespace, tmp_path, cluster)
    yield it
    await it.people.leave()
    for name in (it.hostile, it.other):
        await client.delete(builtin.NAMESPACE, "", name, propagation="Background")


@pytest.fixture(params=["as it is", "without checks"])
def unchecked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether what is read is believed."""
    if request.param == "without checks":
        monkeypatch.setattr(release_sources, "_is_inside", lambda *_: True)
        monkeypatch.setattr(claim, "read", _believe)
        monkeypatch.setattr(manifest, "problems", lambda *_: ())
    return request.param == "without checks"


def _believe(obj: claim.ClaimObject) -> observation.ClaimSeen:
    return observation.ClaimSeen(
        uid=obj.metadata.uid,
        resource_version=obj.metadata.resource_version,
        owner=claim.msgspec.json.decode(obj.data["owner"], type=meta.ObjectRef),
        inventory=manifest.load_inventory(obj.data["inventory"]),
        pin=claim.msgspec.json.decode(obj.data["chart"], type=observation.Pin) if "chart" in obj.data else None,
    )


async def test_a_record_with_an_object_of_another_namespace(place: Place, unchecked: bool) -> None:
    """As somebody who may write Secrets in one tenant's namespace makes it."""

    def plant(record: dict[str, Any]) -> None:
        record["manifest"] += ELSEWHERE.replace("{{ .Values.other }}", place.other).join(("\n---\n", "\n"))

    async with place.operating() as operator:
        await place.begin()
        await place.people.ready("eve")
        await place.people.rewrite_record(place.hostile, "odd-eve", plant)
        if unchecked:
            await operate.until(lambda: any(f"/{place.other}/" in path for path in operator.refusals.paths))
        else:
            it = await place.people.until("eve", lambda it: operating.said(it, "Stalled").status == "True")
            told = operating.said(it, "Stalled")
            assert "ReachesOutside" == told.reason
            assert f"ConfigMap {place.other}/planted" in told.message
            assert "sh.helm.release.v1.odd-eve.v1" in told.message

        assert not await place.planted()
        await place.people.ready("bob")


async def test_a_claim_that_lists_an_object_of_another_namespace(place: Place, unchecked: bool) -> None:
    """It would be removed as left over."""
    row = f'["v1","ConfigMap","{place.other}","plain-bob","h"]'

    def plant(data: dict[str, str]) -> None:
        data["inventory"] = data["inventory"].replace("[[", f"[{row},[", 1)

    async with place.operating() as operator:
        await place.begin()
        await place.people.ready("eve")
        before = await place.people.config_map(place.other, "plain-bob")
        await place.people.rewrite_claim(place.hostile, "odd-eve", plant)
        if unchecked:
            await operate.until(lambda: any(f"/{place.other}/" in path for path in operator.refusals.paths))
        else:
            it = await place.people.until("eve", lambda it: operating.said(it, "Stalled").status == "True")
            told = operating.said(it, "Stalled")
            assert "ClaimBroken" == told.reason
            assert f"it lists ConfigMap {place.other}/plain-bob, which is not in namespace" in told.message
            assert "release.odd-eve" in told.message

        assert before == await place.people.config_map(place.other, "plain-bob")


@pytest.mark.parametrize("when", ["IsUpgrade", "lookup", "tpl"])
async def test_a_chart_that_makes_objects_elsewhere_when_nobody_looks(place: Place, when: str, unchecked: bool) -> None:
    """A check renders what a chart makes of nothing; helm renders again when it applies."""
    made_when = {
        "IsUpgrade": f"{{{{ if .Release.IsUpgrade }}}}\n---\n{ELSEWHERE}{{{{ end }}}}\n",
        "lookup": '{{ if lookup "v1" "ConfigMap" .Release.Namespace "there" }}\n---\n' + ELSEWHERE + "{{ end }}\n",
        "tpl": "---\n{{ tpl .Values.more $ }}\n",
    }
    values = {}
    if when == "tpl":
        values["more"] = '{{ if lookup "v1" "ConfigMap" .Release.Namespace "there" }}' + ELSEWHERE + "{{ end }}"
    async with place.operating():
        await place.begin(PLAIN + made_when[when], **values)
        if unchecked or when != "IsUpgrade":  # else it is seen as soon as the next one would be an upgrade
            await place.people.ready("eve")
        there = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "there"}}
        await place.client.create(builtin.CONFIG_MAP, place.hostile, there, field_manager="tenant")
        await place.people.collector("eve", place.hostile, word="two", **values)
        await place.people.until("eve", lambda it: place.other in operating.said(it, "Ready").message)

        assert not await place.planted()


async def test_lookup_sees_nothing_of_other_namespaces(place: Place) -> None:
    """What it would read there would otherwise stand in the tenant's own objects."""
    spying = PLAIN + '  seen: \'{{ (lookup "v1" "ConfigMap" .Values.other "plain-bob").data }}\'\n'
    async with place.operating():
        await place.begin(spying.replace("data: {word: '{{ .Values.word }}'}", "data:\n  word: '{{ .Values.word }}'"))
        await place.people.until("eve", lambda it: place.other in operating.said(it, "Ready").message)

        assert await place.people.config_map(place.hostile, "odd-eve") is None


async def test_a_label_that_is_no_number_hinders_nobody(place: Place) -> None:
    """A Secret may call itself a record of helm's without being one."""
    async with place.operating():
        await place.begin()
        await place.people.ready("eve")
        for number, version in enumerate(("x", "", "1e9", "0x9")):
            labels = {"owner": "helm", "name": "odd-eve", "version": version}
            body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"odd-{number}", "labels": labels}}
            with contextlib.suppress(kube_client.errors.Invalid):
                await place.client.create(builtin.SECRET, place.hostile, body, field_manager="tenant")
        await place.people.collector("eve", place.hostile, word="two")

        await place.people.ready("eve")
        found = await place.people.config_map(place.hostile, "odd-eve")
        assert found is not None
        assert "two" == found["data"]["word"]
