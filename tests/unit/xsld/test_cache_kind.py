"""The observation of a cache, made from an API server: what is wrong with what the user gives is never swallowed."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from moorage.api import conditions
from moorage.kube import cache as kube_cache
from moorage.kube import client as kube_client
from moorage.operators import access
from moorage.operators.xsld import config, names
from moorage.operators.xsld.cache import build, control, kind, seen, types
from moorage.runtime import gate, observed
from moorage.runtime import kind as runtime_kind
from tests.unit.runtime import fake_api
from tests.unit.xsld import states

SETTINGS = config.Config("moorage-accounts", "moorage-xsld-tenant")
PLAIN = {"adminPwd": "Abcdefg1-x", "secretKey": "Abcdefg1-x"}
NAMED = {"credentialsSecretRef": {"name": "given"}}


@contextlib.asynccontextmanager
async def started(api: fake_api.FakeApi, spec: dict[str, Any]) -> AsyncIterator[kind.CacheKind]:
    """The kind on a server that has one cache, with all rights bound."""
    await api.put("rolebindings", states.RIGHTS.binding, access.binding("ns", states.RIGHTS))
    content = {"metadata": {"finalizers": [names.CACHE_FINALIZER]}, "spec": {"license": "accept", "size": 1, **spec}}
    await api.put("xsldcaches", "c", content)
    client = kube_client.Client(api)
    caches = kube_cache.Caches(client)
    made = kind.CacheKind(SETTINGS, "moorage-system")
    made.caches = [caches.watch(names.CACHE, types.XsldCache)]
    await made.start(runtime_kind.World(client, caches, gate.Gate(), lambda *_, **__: None))
    try:
        for cache in caches.all():
            await cache.wait_synced(5)
        yield made
    finally:
        await made.stop()
        await caches.stop()


async def observation(api: fake_api.FakeApi, spec: dict[str, Any]) -> seen.Seen:
    """What is observed once the credentials were looked at and the watches are filled."""
    async with started(api, spec) as made:
        obj = made.find("ns", "c")
        assert obj is not None
        await fake_api.until(lambda: not isinstance(made.observe(obj, states.NOW).credentials, observed.Failed))
        await fake_api.until(lambda: not isinstance(made.observe(obj, states.NOW).objects, observed.Failed))
        return made.observe(obj, states.NOW)


CA = {"tls": {"caSecretRef": "ca"}}
FAULTS: dict[str, tuple[dict[str, Any], dict[str, str], str]] = {
    # id: (spec, the CA's Secret, what is wrong)
    "the CA is missing": ({**PLAIN, **CA}, {}, "Secret ca has no key ca.crt"),
    "the CA is no certificate": ({**PLAIN, **CA}, {"ca.crt": "eA=="}, "Secret ca: ca.crt holds no certificate"),
    "credentials in a Secret, and the CA is missing": ({**NAMED, **CA}, {}, "Secret ca has no key ca.crt"),
}


@pytest.mark.parametrize(("spec", "ca", "says"), FAULTS.values(), ids=FAULTS)
async def test_a_fault_of_the_ca_is_told_wherever_the_passwords_are(
    spec: dict[str, Any], ca: dict[str, str], says: str
) -> None:
    api = fake_api.FakeApi()
    await api.put("secrets", "ca", {"data": ca})
    await api.put("secrets", "given", {"data": dict.fromkeys(PLAIN, "QWJjZGVmZzEteA==")})

    states.check(
        states.Row(await observation(api, spec), "credentials_are_given", states.Blocks("CredentialsInvalid"), says),
        control.STEPS,
    )


async def test_that_our_secret_is_not_made_yet_is_no_fault() -> None:
    found = await observation(fake_api.FakeApi(), PLAIN)

    assert "" == observed.value_of(found.credentials)
    assert "children_exist" == states.decided(found, control.STEPS)[0]


# --- what another spec named ---------------------------------------------------------------------------------------


async def test_a_script_of_another_spec_is_not_this_one_s() -> None:
    api = fake_api.FakeApi()
    for name in ("one", "two"):
        await api.put("configmaps", name, {"data": {"entrypoint.sh": f"exec {name}"}})

    def script(of: seen.Seen) -> str:
        return of.wanted.entrypoint or ""

    async with started(api, {**PLAIN, "entrypointConfigMap": "one"}) as made:
        first = made.find("ns", "c")
        assert first is not None
        await fake_api.until(lambda: script(made.observe(first, states.NOW)) == "exec one")
        second = msgspec.structs.replace(first, spec=msgspec.structs.replace(first.spec, entrypoint_config_map="two"))

        assert isinstance(made.observe(second, states.NOW).entrypoint, observed.Failed)
        await fake_api.until(lambda: script(made.observe(second, states.NOW)) == "exec two")


OTHERS: dict[str, dict[str, Any]] = {
    "another password": {**PLAIN, "adminPwd": "Abcdefg1-y"},
    "a Secret": NAMED,
    "another authority": {**PLAIN, **CA},
    "certificates are checked": {**PLAIN, "tls": {"insecureSkipVerify": False}},
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
async def test_credentials_of_another_spec_are_not_this_one_s(other: dict[str, Any]) -> None:
    async with started(fake_api.FakeApi(), PLAIN) as made:
        first = made.find("ns", "c")
        assert first is not None
        await fake_api.until(lambda: not isinstance(made.observe(first, states.NOW).credentials, observed.Failed))
        spec = msgspec.convert({"license": "accept", "size": 1, **other}, types.XsldCacheSpec)
        second = msgspec.structs.replace(first, spec=spec)

        assert isinstance(made.observe(second, states.NOW).credentials, observed.Failed)


# --- the image that is run ---------------------------------------------------------------------------------------

BACK = {"image": "ibmcom/xsld:bad", "updateStrategy": {"rollback": True}}
FAILED = {"failedImage": "ibmcom/xsld:bad", "goodImage": "ibmcom/xsld:8613"}
IMAGES: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    # id: (spec, status, what is run, what is asked for and not run)
    "nothing has failed": ({"image": "ibmcom/xsld:bad"}, {}, "ibmcom/xsld:bad", ""),
    "what has failed is named still": (BACK, FAILED, "ibmcom/xsld:8613", "ibmcom/xsld:bad"),
    "another is named": ({**BACK, "image": "ibmcom/xsld:8614"}, FAILED, "ibmcom/xsld:8614", ""),
    "the user insists": ({"image": "ibmcom/xsld:bad"}, FAILED, "ibmcom/xsld:bad", ""),
    "none was ever good": (BACK, {"failedImage": "ibmcom/xsld:bad"}, "ibmcom/xsld:bad", ""),
}


@pytest.mark.parametrize(("spec", "status", "run", "refused"), IMAGES.values(), ids=IMAGES)
async def test_what_failed_is_not_run_again(
    spec: dict[str, Any], status: dict[str, Any], run: str, refused: str
) -> None:
    async with started(fake_api.FakeApi(), {**PLAIN, **spec}) as made:
        found = made.find("ns", "c")
        assert found is not None
        told = msgspec.convert(status, types.XsldCacheStatus)
        seen_ = made.observe(msgspec.structs.replace(found, status=told), states.NOW)
        assert (run, run, refused) == (seen_.spec.image, seen_.wanted.spec.image, seen_.refused_image)


# --- names that somebody else has --------------------------------------------------------------------------------


def owned(uid: str) -> dict[str, Any]:
    return {"ownerReferences": [{"apiVersion": "v1", "kind": "XsldCache", "name": "c", "uid": uid}]}


MINE = {"labels": {build.LABEL: "c"}}
NAMES: dict[str, tuple[dict[str, Any] | None, str]] = {
    # id: (the metadata of the Service c, why it is not ours to make)
    "nobody has it": (None, ""),
    "it is of this cache": (MINE | owned("uid-c"), ""),
    "it is of this cache, restored without its owner": (MINE, ""),
    "a user's own": ({}, "Service c is there already and is not this cache's; delete it, or name the cache otherwise"),
    "another cache's": ({"labels": {build.LABEL: "other"}}, "Service c is there already and is not this cache's"),
    "what is left of a cache of that name": (MINE | owned("uid-of-old"), "already and belongs to XsldCache c; delete"),
}


@pytest.mark.parametrize(("there", "says"), NAMES.values(), ids=NAMES)
async def test_what_is_somebody_elses_is_not_taken_over(there: dict[str, Any] | None, says: str) -> None:
    api = fake_api.FakeApi()
    if there is not None:
        await api.put("services", "c", {"metadata": there})
    async with started(api, PLAIN) as made:
        found = made.find("ns", "c")
        assert found is not None
        obj = msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, uid="uid-c"))
        why = await made.guards["name_is_free"](obj, {"kind": "Service", "name": "c"})
    assert says in why
    assert bool(says) == bool(why)


async def test_another_caches_object_counts_as_missing() -> None:
    api = fake_api.FakeApi()
    await api.put("services", "c-client", {"metadata": {"labels": {build.LABEL: "other"}}})

    objects = observed.value_of((await observation(api, PLAIN)).objects)
    assert objects is not None
    assert "" == next(live.uid for child, live in objects.children if child.id == "Service/c-client")


async def test_what_is_seen_is_in_one_order_whatever_came_first() -> None:
    """Else a deletion of several, or a message that names them, would change from one list to the next."""
    api = fake_api.FakeApi()
    for number in (10, 2, 0, 1):
        await api.put("persistentvolumeclaims", f"vol-c-{number}", {"metadata": MINE, "spec": {}})
        await api.put("pods", f"c-{number}", {"metadata": MINE})

    objects = observed.value_of((await observation(api, PLAIN)).objects)
    assert objects is not None
    assert [0, 1, 2, 10] == [volume.ordinal for volume in objects.volumes]
    assert [0, 1, 2, 10] == [pod.ordinal for pod in objects.pods]


# --- the disruption budget ---------------------------------------------------------------------------------------

BUDGETS: dict[str, tuple[dict[str, Any] | None, int | None]] = {
    # id: (the budget, how many it lets go)
    "there is none": (None, None),
    "its controller has not looked yet": ({}, None),
    "nor at the latest change": ({"status": {"observedGeneration": 0, "disruptionsAllowed": 1}}, None),
    "it lets one go": ({"status": {"observedGeneration": 1, "disruptionsAllowed": 1}}, 1),
    "it lets nobody go": ({"status": {"observedGeneration": 1}}, 0),
}


OTHERS = {"labels": {build.LABEL: "other"}}


async def test_another_caches_budget_does_not_count() -> None:
    api = fake_api.FakeApi()
    await api.put("poddisruptionbudgets", "c", {"metadata": OTHERS, "status": {"observedGeneration": 1}})

    objects = observed.value_of((await observation(api, PLAIN)).objects)
    assert objects is not None
    assert objects.disruptions is None


@pytest.mark.parametrize(("budget", "lets"), BUDGETS.values(), ids=BUDGETS)
async def test_what_the_budget_allows_is_seen(budget: dict[str, Any] | None, lets: int | None) -> None:
    api = fake_api.FakeApi()
    if budget is not None:
        await api.put("poddisruptionbudgets", "c", {"metadata": MINE, **budget})

    objects = observed.value_of((await observation(api, PLAIN)).objects)
    assert objects is not None
    assert lets == objects.disruptions


async def test_since_when_a_pod_works_is_seen() -> None:
    api = fake_api.FakeApi()
    condition = {"type": "ContainersReady", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    metadata = {**MINE, "creationTimestamp": "2025-01-01T00:00:00Z"}
    await api.put("pods", "c-0", {"metadata": metadata, "status": {"conditions": [condition]}})

    objects = observed.value_of((await observation(api, PLAIN)).objects)
    assert objects is not None
    assert 1767225600 == objects.pods[0].ready_since


# --- how often a group is asked ----------------------------------------------------------------------------------

READY = conditions.Condition(type="Ready", status="True")
TASK = types.CurrentTask(intent="i-1", command="Leave", target="c-2", endpoint="c-0")
PACES: dict[str, tuple[dict[str, Any], float]] = {
    # id: (fields of the status, seconds between two polls)
    "nothing is known of it": ({}, 10.0),
    "it is settled": ({"conditions": (READY,)}, 30.0),
    "it is not": ({"conditions": (conditions.Condition(type="Ready", status="False"),)}, 10.0),
    "a task of ours runs": ({"conditions": (READY,), "current_task": TASK}, 2.0),
}


@pytest.mark.parametrize(("status", "seconds"), PACES.values(), ids=PACES)
async def test_a_group_is_asked_as_often_as_something_may_change(status: dict[str, Any], seconds: float) -> None:
    """Above all while a member leaves: it serves clients wrongly from its departure until that is noticed."""
    async with started(fake_api.FakeApi(), PLAIN) as made:
        found = made.find("ns", "c")
        assert found is not None
        made.observe(msgspec.structs.replace(found, status=types.XsldCacheStatus(**status)), states.NOW)
        assert seconds == made.hub._pace(("ns", "c"))


async def test_one_that_is_deleted_is_asked_often() -> None:
    async with started(fake_api.FakeApi(), PLAIN) as made:
        found = made.find("ns", "c")
        assert found is not None
        deleted = msgspec.structs.replace(found.metadata, deletion_timestamp=states.ago(1))
        status = types.XsldCacheStatus(conditions=(READY,))
        made.observe(msgspec.structs.replace(found, metadata=deleted, status=status), states.NOW)
        assert 10 == made.hub._pace(("ns", "c"))
