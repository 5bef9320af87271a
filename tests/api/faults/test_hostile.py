"""Tenants who alter at random whatever they may write, and whose members lie, beside one who has nothing to do with it.

The operator has the rights that its chart gives it, and no others. While tenants harm their namespaces, and when they
have stopped: no object outside of these has changed, it has written nothing elsewhere, no pass has broken off, its
lease was kept; what the other tenant has is well, without a write. When what they own is put right, theirs is well.

    MOORAGE_TEST_SEED=7 pytest tests/api/faults/test_hostile.py -m campaign
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import random
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage import operators
from moorage.api import builtin, meta
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.operators.collector import types
from moorage.operators.xsld import names

from . import everything, installed, observer, proxy, report, run, tenant, tenant_caches, tenant_releases, waiting

CHARTS = Path(__file__).parents[2] / "e2e" / "charts" / "zoo"
DAILY = (3, 12)
WHOLE = (6, 60)
"""Hostile tenants, and alterations by each."""

RUNS = 6
HEALS = 120.0
"""Seconds within which a Collector is Ready again once all is put right."""

QUIET = 2.0
"""Seconds without a write of the operator after which it is done."""

FOREIGN = ("kube-root-ca.crt", "default")


class Sort(msgspec.Struct, frozen=True):
    """What each tenant has."""

    system: str
    section: dict[str, Any]
    resource: meta.Resource
    """One object of it, of that name."""

    name: str
    spec: dict[str, Any]
    tenant: type[tenant.Tenant]
    remembered: tuple[str, ...]
    """Fields of its status that are believed for what they say of the past."""

    dependents: tuple[meta.Resource, ...]
    """Kinds of what else the tenant may have made, with finalizers of the operator's."""

    product: meta.Resource
    product_name: str
    whole: dict[str, Any]
    """Part of what is made for it, which is there when all is well."""

    ready: bool
    """Whether it is Ready then; nothing runs pods here."""


RELEASES = Sort(
    system="collector",
    section={"charts": {"default": {"folder": str(CHARTS)}}},
    resource=types.COLLECTOR,
    name=tenant_releases.NAME,
    spec={
        "collector": {
            "name": "anything",
            "version": "",
            "configuration": base64.b64encode(b"word: one\n").decode(),
        },
        "policy": {"drift": "Enforce", "onFailure": "Rollback"},
    },
    tenant=tenant_releases.ReleaseTenant,
    remembered=(),
    dependents=(),
    product=builtin.CONFIG_MAP,
    product_name=tenant_releases.RELEASE,
    whole={"data": {"word": '"one"'}},
    ready=True,
)
CACHES = Sort(
    system="xsld",
    section={"poll": {"taskSeconds": 1, "busySeconds": 1, "idleSeconds": 1}},
    resource=names.CACHE,
    name=tenant_caches.NAME,
    spec={
        "license": "accept",
        "size": 1,
        "adminPwd": "Xs-Admin-2020",
        "secretKey": "Xs-Secret-2020",
        "image": tenant_caches.IMAGE,
        "storage": {"storageClassName": "none"},
        "pod": {"nodeSelector": {"zoo": "nowhere"}},
    },
    tenant=tenant_caches.CacheTenant,
    remembered=("currentTask", "memberStatuses", "left", "troubles", "replication", "goodImage", "targetImage"),
    dependents=(names.GRID, names.TEMPLATE),
    product=builtin.STATEFUL_SET,
    product_name=tenant_caches.NAME,
    whole={"metadata": {"labels": {names.APP: tenant_caches.NAME}}, "spec": {"replicas": 1}},
    ready=False,
)


class Place:
    """An installed operator, tenants who mean harm and one who does not, each with a Collector in its own namespace."""

    def __init__(
        self,
        client: kube_client.Client,
        it: installed.Installed,
        operator: installed.Operator,
        sort: Sort,
        bob: str,
        hostile: list[str],
    ) -> None:
        self.client, self.operator, self._sort = client, operator, sort
        self.bob, self.hostile = bob, hostile
        self.others = [bob, *it.namespaces, "default", "kube-system"]

    async def begin(self) -> None:
        """All have a Collector that is Ready."""
        for name in (self.bob, *self.hostile):
            metadata = {"name": name, "annotations": {"moorage.dev/collectors-from": name}}
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
            await self.client.create(builtin.NAMESPACE, "", body, field_manager="test")
            await self.admit(name)
            await self.order(name)
        for name in (self.bob, *self.hostile):
            await self.well(name)

    async def admit(self, name: str) -> None:
        """Its tenant may do everything there, and nothing elsewhere."""
        body = {
            "apiVersion": builtin.ROLE_BINDING.api_version,
            "kind": "RoleBinding",
            "metadata": {"name": "tenant"},
            "roleRef": {"apiGroup": builtin.ROLE_BINDING.group, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"apiGroup": builtin.ROLE_BINDING.group, "kind": "User", "name": name}],
        }
        await self.client.create(builtin.ROLE_BINDING, name, body, field_manager="test")

    def _spec(self, name: str) -> dict[str, Any]:
        tenant_of = {"tenant": {"reference": name, "instance": "main"}} if self._sort is RELEASES else {}
        return {**self._sort.spec, **tenant_of}

    async def order(self, name: str) -> None:
        """Its object as it should be."""
        sort, spec = self._sort, self._spec(name)
        body = {"apiVersion": sort.resource.api_version, "kind": sort.resource.kind, "metadata": {"name": sort.name}}
        await self.client.apply(sort.resource, name, sort.name, {**body, "spec": spec}, field_manager="people")

    async def find(self, name: str) -> dict[str, Any] | None:
        """Its object as it is."""
        try:
            return await self.client.get(self._sort.resource, name, self._sort.name)
        except errors.NotFound:
            return None

    async def well(self, name: str) -> None:
        """Return when its object is looked after and makes what it should. Raises Deviation."""
        sort, said = self._sort, ""

        async def is_well() -> bool:
            nonlocal said
            found = await self.find(name)
            status = (found or {}).get("status", {})
            if found is None or status.get("observedGeneration") != found["metadata"]["generation"]:
                return False
            condition = next(it for it in status["conditions"] if it["type"] == "Ready")
            said = f"{condition['reason']}: {condition['message']}"
            try:
                made = await self.client.get(sort.product, name, sort.product_name)
            except errors.NotFound:
                said += f"; {sort.product.kind} {sort.product_name} is not there"
                return False
            if not observer.holds(sort.whole, made):
                said += f"; {sort.product.kind} {sort.product_name} is not as it should be: {made}"
                return False
            return condition["status"] == "True" or not sort.ready

        try:
            await waiting.until(is_well, within=HEALS)
        except TimeoutError:
            raise run.Deviation(f"{name} is not well again: {said}") from None

    async def quiet(self) -> None:
        """Return when the operator has nothing more to do, or goes on for ever."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(15):
                before = -1
                while before != (now := sum(1 for _ in self.operator.carried_out())) or not self.operator.idle:
                    before = now
                    await asyncio.sleep(QUIET)

    async def scene(self) -> everything.Scene:
        """All that is not the hostile tenants'."""
        found = await everything.scene(self.client, lambda _, namespace: namespace not in self.hostile)
        sort, its = self._sort, await self.find(self.bob)
        if its is not None and not sort.ready:  # its status repeats what the cluster says, which takes its time
            there = its["metadata"]
            found[f"{sort.resource.group_kind} {self.bob}/{sort.name}"] = (there["uid"], str(there["generation"]))
        return found

    async def still(self) -> everything.Scene:
        """The scene once nobody changes it any more, as the cluster's controllers have a pace of their own."""
        looks = [await self.scene()]

        async def is_still() -> bool:
            await asyncio.sleep(QUIET)  # that nothing is written can only be seen by looking for a while
            looks.append(await self.scene())
            return looks[-1] == looks[-2]

        await waiting.until(is_still)
        return looks[-1]

    def written_elsewhere(self) -> list[str]:
        """What the operator and its helm have written outside the hostile tenants' places."""
        return sorted(
            {
                f"{'helm: ' if it.by_helm else ''}{it.method} {it.path}"
                for it in self.operator.carried_out()
                if it.namespace not in self.hostile and not any(word in it.path for word in installed.APART)
            }
        )

    async def put_right(self, name: str) -> None:
        """Its object is as it should be, and all else that the tenant has there goes."""
        sort = self._sort
        notes: dict[str, Any] = dict.fromkeys(f"moorage.dev/{word}" for word in ("adopt", "paused", "on-delete"))
        body = {"metadata": {"annotations": {**notes, "moorage.dev/reconcile-at": uuid.uuid4().hex}}}
        with contextlib.suppress(errors.NotFound):
            await self.client.patch_merge(sort.resource, name, sort.name, body, field_manager="people")
            status = {"status": dict.fromkeys(sort.remembered)}
            where = (sort.resource, name, sort.name)
            await self.client.patch_merge(*where, status, field_manager="people", subresource="status")
        found = await self.find(name)
        leaves = found is not None and "deletionTimestamp" in found["metadata"]
        if not leaves:
            try:
                if found is not None:  # what somebody else has set, an apply leaves where it is
                    whole = {"op": "replace", "path": "/spec", "value": self._spec(name)}
                    await self.client.patch_json(sort.resource, name, sort.name, [whole], field_manager="people")
                await self.order(name)
            except errors.Invalid:  # what was changed for good is made anew
                await self.client.delete(sort.resource, name, sort.name, propagation="Background")
                leaves = True
        for resource in (*sort.dependents, *sort.tenant.owned):
            for it in (await self.client.list(resource, name, as_=meta.Partial, metadata_only=True)).items:
                if it.metadata.name not in FOREIGN:
                    await self._remove(resource, name, it.metadata.name)
        await self._remove(builtin.ROLE_BINDING, name, sort.tenant.binding)
        if leaves:
            await self._left(name)
            await self.order(name)
        if spec := sort.whole.get("spec"):
            await self._scale(name, spec)

    async def _scale(self, name: str, spec: dict[str, Any]) -> None:
        """By a person: pods are not taken away without an answer of theirs.

        What is made anew has as many as lying members told last, so this comes once those are forgotten.
        """
        where = (self._sort.product, name, self._sort.product_name)

        async def is_there() -> bool:
            try:
                await self.client.get(*where, as_=meta.Partial)
            except errors.NotFound:
                return False
            return True

        with contextlib.suppress(TimeoutError):  # who waits for it to be well tells why
            await waiting.until(is_there, within=HEALS)
        await self.quiet()
        with contextlib.suppress(errors.NotFound):
            await self.client.patch_merge(*where, {"spec": spec}, field_manager="people")

    async def _left(self, name: str) -> None:
        """Return when its object, which is being deleted, is gone. Raises Deviation."""
        try:
            await waiting.until(lambda: self._gone(name), within=HEALS)
        except TimeoutError:
            still = await self.find(name) or {}
            raise run.Deviation(f"{name} is never deleted: {still.get('status')}") from None

    async def _gone(self, name: str) -> bool:
        return await self.find(name) is None

    async def _remove(self, resource: meta.Resource, namespace: str, name: str) -> None:
        with contextlib.suppress(errors.NotFound):
            free = {"metadata": {"finalizers": None}}
            await self.client.patch_merge(resource, namespace, name, free, field_manager="people")
            await self.client.delete(resource, namespace, name, propagation="Background")

    async def leave(self) -> None:
        """Leave nothing that keeps the namespaces."""
        for name in (self.bob, *self.hostile):
            for resource in (*self._sort.dependents, self._sort.resource):
                for it in (await self.client.list(resource, name, as_=meta.Partial)).items:
                    await self._remove(resource, name, it.metadata.name)
            await self.client.delete(builtin.NAMESPACE, "", name, propagation="Background")


@contextlib.asynccontextmanager
async def _place(stage: run.Stage, kubeconfig: str, sort: Sort, count: int) -> AsyncIterator[Place]:
    for body in operators.SYSTEMS[sort.system].definitions():
        await stage.client.apply(builtin.CRD, "", str(body["metadata"]["name"]), body, field_manager="test")  # type: ignore[index]
    name = f"hostile-{uuid.uuid4().hex[:6]}"
    bob, hostile = f"{name}-bob", [f"{name}-eve-{number}" for number in range(count)]
    folder = stage.folder / name
    folder.mkdir()
    systems: dict[str, Any] = {system: {"enabled": False} for system in operators.SYSTEMS}
    systems[sort.system] = {"namespaces": [bob, *hostile], **sort.section}
    helm = Path(stage.helm)
    kept = installed.installed(stage.client, kubeconfig, helm, folder, f"moorage-{name}", systems)
    async with contextlib.AsyncExitStack() as stack:
        it = await stack.enter_async_context(kept)
        through = proxy.Proxy(it.credentials, stage.certificate)
        await through.start()
        stack.push_async_callback(through.close)
        operator = installed.Operator(it, helm, folder, through)
        place = Place(stage.client, it, operator, sort, bob, hostile)
        stack.push_async_callback(place.leave)
        stack.push_async_callback(operator.stop)
        await place.begin()
        yield place


async def _one(stage: run.Stage, kubeconfig: str, sort: Sort, seed: int, count: int, each: int) -> tuple[Any, ...]:
    """One run: seed, alterations, those that were refused, answers of members, writes of the operator, the outcome."""
    async with contextlib.AsyncExitStack() as stack:
        place = await stack.enter_async_context(_place(stage, kubeconfig, sort, count))
        await place.quiet()
        before = await place.still()
        already = place.written_elsewhere()
        tenants = [
            sort.tenant(stage.client.as_(name), name, place.others, random.Random(seed * 1000 + number))
            for number, name in enumerate(place.hostile)
        ]

        async def harm(it: tenant.Tenant) -> None:
            await it.begin(stage.certificate, stack)
            for _ in range(each):
                await it.alter()
                await it.pause()

        await asyncio.gather(*map(harm, tenants))
        await place.quiet()
        said = everything.changes(before, await place.scene())
        said += [f"written: {what}" for what in place.written_elsewhere() if what not in already]
        said += [what for it in tenants for what in it.astray()]
        said += [f"{ends} passes ended with {word}" for word in BROKEN if (ends := place.operator.ends(word))]
        said += await _healed(place)
        said += [] if place.operator.leads else ["it has lost its lease"]
        if said:
            said += [f"{it.namespace} did: {'; '.join(it.did)}" for it in tenants]
        did = [what for it in tenants for what in it.did]
        refused = sum("refused" in what for what in did)
        wrote = sum(1 for _ in place.operator.carried_out())
        answers = sum(it.answers for it in tenants)
        return seed, len(did), refused, answers, wrote, "; ".join(said) or report.GOOD


BROKEN = ("InternalError", "DeadlineExceeded")
"""Reasons of passes that did not come to an end of their own."""


async def _healed(place: Place) -> list[str]:
    """What does not come right when all is put right."""
    said = []
    for name in (place.bob, *place.hostile):
        try:
            if name != place.bob:
                await place.put_right(name)
            await place.well(name)
        except run.Deviation as error:
            said.append(str(error))
    return said


async def _campaign(
    stage: run.Stage, kubeconfig: str, sort: Sort, runs: int, size: tuple[int, int], told: report.Report
) -> None:
    header = "seed", "alterations", "refused", "answers", "writes", "outcome"
    rows, bad = await told.collect(
        header, (_one(stage, kubeconfig, sort, report.SEED + number, *size) for number in range(runs)), together=1
    )
    told.say(f"{sum(row[1] for row in rows)} alterations in {len(rows)} runs, {len(bad)} deviations")

    assert [] == bad


SORTS = pytest.mark.parametrize("sort", [RELEASES, CACHES], ids=lambda sort: sort.system)


@SORTS
async def test_some_hostile_tenants(stage: run.Stage, cluster: str, sort: Sort, told: report.Report) -> None:
    await _campaign(stage, cluster, sort, 1, DAILY, told)


@pytest.mark.campaign
@SORTS
async def test_many_hostile_tenants(stage: run.Stage, cluster: str, sort: Sort, told: report.Report) -> None:
    await _campaign(stage, cluster, sort, RUNS, WHOLE, told)
