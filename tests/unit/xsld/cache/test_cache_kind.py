"""The observation of a cache, made from an API server: what is wrong with what the user gives is never swallowed."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
import pytest

from moorage.api import conditions
from moorage.kube import client as kube_client
from moorage.kube.informers import informer
from moorage.operators import accounts
from moorage.operators.xsld import config, group_access, names
from moorage.operators.xsld.cache import build, control, kind, types
from moorage.operators.xsld.cache import observation as observation_
from moorage.operators.xsld.group import answers
from moorage.runtime import freshness, gate
from moorage.runtime import kind as runtime_kind
from tests.unit import verdicts
from tests.unit.children.test_reading import LOST
from tests.unit.runtime import fake_api
from tests.unit.xsld import states

SETTINGS = config.Config("moorage-accounts", "moorage-xsld-tenant")
PLAIN = {"adminPwd": "Abcdefg1-x", "secretKey": "Abcdefg1-x"}
NAMED = {"credentialsSecretRef": {"name": "given"}}


@contextlib.asynccontextmanager
async def started(api: fake_api.FakeApi, spec: dict[str, Any]) -> AsyncIterator[kind.CacheKind]:
    """The kind on a server that has one cache, with all rights bound."""
    await api.put("rolebindings", states.RIGHTS.binding, accounts.binding("ns", states.RIGHTS))
    content = {"metadata": {"finalizers": [names.CACHE_FINALIZER]}, "spec": {"license": "accept", "size": 1, **spec}}
    await api.put("xsldcaches", "c", content)
    client = kube_client.Client(api)
    informers = informer.Informers(client)
    made = kind.CacheKind(SETTINGS, "moorage-system")
    made.informers = [informers.watch(names.CACHE, types.XsldCache)]
    await made.start(runtime_kind.World(client, informers, gate.Gate(), lambda *_, **__: None))
    try:
        for cache in informers.all():
            await cache.wait_synced(30)
        yield made
    finally:
        await made.stop()
        await informers.stop()


async def observation(api: fake_api.FakeApi, spec: dict[str, Any]) -> observation_.Seen:
    """What is observed once the credentials were looked at and the watches are filled."""
    async with started(api, spec) as made:
        obj = made.find("ns", "c")
        assert obj is not None
        await fake_api.until(lambda: not isinstance(made.observe(obj, states.NOW).credentials, freshness.Failed))
        await fake_api.until(lambda: not isinstance(made.observe(obj, states.NOW).objects, freshness.Failed))
        return made.observe(obj, states.NOW)


CA = {"tls": {"caSecretRef": "ca"}}
FAULTS: dict[str, tuple[dict[str, Any], dict[str, str], str]] = {
    # id: (spec, the CA's Secret, what is wrong)
    "the CA is missing": ({**PLAIN, **CA}, {}, "Secret ca of spec.tls.caSecretRef has no key ca.crt"),
    "the CA is no certificate": (
        {**PLAIN, **CA},
        {"ca.crt": "eA=="},
        "Secret ca of spec.tls.caSecretRef: ca.crt holds no certificate",
    ),
    "credentials in a Secret, and the CA is missing": (
        {**NAMED, **CA},
        {},
        "Secret ca of spec.tls.caSecretRef has no key ca.crt",
    ),
    "the CA's Secret is missing": (
        {**PLAIN, "tls": {"caSecretRef": "none"}},
        {},
        "there is no Secret none, which spec.tls.caSecretRef names",
    ),
    "the Secret is missing": (
        {"credentialsSecretRef": {"name": "none"}},
        {},
        "there is no Secret none, which spec.credentialsSecretRef names",
    ),
    "a key is missing": (
        {"credentialsSecretRef": {"name": "given", "secretKeyKey": "none"}},
        {},
        "Secret given has no key none, which spec.credentialsSecretRef.secretKeyKey names",
    ),
    "a password is too short": (
        {"credentialsSecretRef": {"name": "given", "adminPwdKey": "short"}},
        {},
        "short of Secret given of spec.credentialsSecretRef: it must have",
    ),
}


@pytest.mark.parametrize(("spec", "ca", "says"), FAULTS.values(), ids=FAULTS)
async def test_what_is_wrong_is_told_with_the_field_that_leads_there(
    spec: dict[str, Any], ca: dict[str, str], says: str
) -> None:
    """A fault of the CA wherever the passwords are."""
    api = fake_api.FakeApi()
    await api.put("secrets", "ca", {"data": ca})
    await api.put("secrets", "given", {"data": {**dict.fromkeys(PLAIN, "QWJjZGVmZzEteA=="), "short": "eA=="}})

    verdicts.check(
        verdicts.Row(
            await observation(api, spec), "credentials_are_given", verdicts.Blocks("CredentialsInvalid"), says
        ),
        control.STEPS,
    )


SCRIPTS = {
    "none": "there is no ConfigMap none, which spec.entrypointConfigMap names",
    "other": "ConfigMap other of spec.entrypointConfigMap has no key entrypoint.sh",
}


@pytest.mark.parametrize(("name", "says"), SCRIPTS.items(), ids=SCRIPTS)
async def test_a_script_that_is_not_there_is_told_with_the_field_that_names_it(name: str, says: str) -> None:
    api = fake_api.FakeApi()
    await api.put("configmaps", "other", {"data": {"start.sh": "exec it"}})
    async with started(api, {**PLAIN, "entrypointConfigMap": name}) as made:
        obj = made.find("ns", "c")
        assert obj is not None
        await fake_api.until(lambda: freshness.value_of(made.observe(obj, states.NOW).entrypoint))

        assert says == freshness.value_of(made.observe(obj, states.NOW).entrypoint)


async def test_that_our_secret_is_not_made_yet_is_no_fault() -> None:
    found = await observation(fake_api.FakeApi(), PLAIN)

    assert "" == freshness.value_of(found.credentials)
    assert "children_exist" == verdicts.decided(found, control.STEPS)[0]


# --- what another spec named ---------------------------------------------------------------------------------------


async def test_a_script_of_another_spec_is_not_this_one_s() -> None:
    api = fake_api.FakeApi()
    for name in ("one", "two"):
        await api.put("configmaps", name, {"data": {"entrypoint.sh": f"exec {name}"}})

    def script(of: observation_.Seen) -> str:
        return of.wanted.entrypoint or ""

    async with started(api, {**PLAIN, "entrypointConfigMap": "one"}) as made:
        first = made.find("ns", "c")
        assert first is not None
        await fake_api.until(lambda: script(made.observe(first, states.NOW)) == "exec one")
        second = msgspec.structs.replace(first, spec=msgspec.structs.replace(first.spec, entrypoint_config_map="two"))

        assert isinstance(made.observe(second, states.NOW).entrypoint, freshness.Failed)
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
        await fake_api.until(lambda: not isinstance(made.observe(first, states.NOW).credentials, freshness.Failed))
        spec = msgspec.convert({"license": "accept", "size": 1, **other}, types.XsldCacheSpec)
        second = msgspec.structs.replace(first, spec=spec)

        assert isinstance(made.observe(second, states.NOW).credentials, freshness.Failed)


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

    objects = freshness.value_of((await observation(api, PLAIN)).objects)
    assert objects is not None
    assert "" == next(live.uid for child, live in objects.children if child.id == "Service/c-client")


async def test_what_is_seen_is_in_one_order_whatever_came_first() -> None:
    """Else a deletion of several, or a message that names them, would change from one list to the next."""
    api = fake_api.FakeApi()
    for number in (10, 2, 0, 1):
        await api.put("persistentvolumeclaims", f"vol-c-{number}", {"metadata": MINE, "spec": {}})
        await api.put("pods", f"c-{number}", {"metadata": MINE})

    objects = freshness.value_of((await observation(api, PLAIN)).objects)
    assert objects is not None
    assert [0, 1, 2, 10] == [volume.ordinal for volume in objects.volumes]
    assert [0, 1, 2, 10] == [pod.ordinal for pod in objects.pods]


# --- the disruption budget ---------------------------------------------------------------------------------------

OTHERS = {"labels": {build.LABEL: "other"}}


async def test_another_caches_budget_does_not_count() -> None:
    api = fake_api.FakeApi()
    await api.put("poddisruptionbudgets", "c", {"metadata": OTHERS, "status": {"observedGeneration": 1}})

    objects = freshness.value_of((await observation(api, PLAIN)).objects)
    assert objects is not None
    assert objects.disruptions is None


async def test_what_the_budget_allows_is_seen() -> None:
    api = fake_api.FakeApi()
    await api.put("poddisruptionbudgets", "c", {"metadata": MINE, "status": {"observedGeneration": 1}})

    objects = freshness.value_of((await observation(api, PLAIN)).objects)
    assert objects is not None
    assert 0 == objects.disruptions


async def test_since_when_a_pod_works_is_seen() -> None:
    api = fake_api.FakeApi()
    condition = {"type": "ContainersReady", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    metadata = {**MINE, "creationTimestamp": "2025-01-01T00:00:00Z"}
    await api.put("pods", "c-0", {"metadata": metadata, "status": {"conditions": [condition]}})

    objects = freshness.value_of((await observation(api, PLAIN)).objects)
    assert objects is not None
    assert 1767225600 == objects.pods[0].since


# --- what a pod is, and what is asked right before it goes --------------------------------------------------------


REFUSED = {
    "metadata": {"creationTimestamp": "2026-01-01T00:00:09Z"},
    "type": "Warning",
    "reason": "FailedCreate",
    "regarding": {"kind": "StatefulSet", "name": "c"},
    "note": "create Pod c-1 in StatefulSet c failed error: exceeded quota: two",
    "eventTime": "2099-01-01T00:00:09.000000Z",  # after the newest pod was made
}


@pytest.mark.parametrize("may", [True, False], ids=["it may read events", "it may not"])
async def test_why_a_pod_cant_be_made_is_told_by_the_events(*, may: bool) -> None:
    """While a pod is missing they are asked for; where they may not be read, nothing is said."""
    api = fake_api.FakeApi()
    await api.put("statefulsets", "c", {"metadata": MINE | {"generation": 1}, "spec": {"replicas": 2}})
    await api.put("pods", "c-0", {"metadata": MINE, "status": LOST["it works"][0]})
    await api.put("events", "c.1", REFUSED)

    async def forbid(asked: fake_api.Asked) -> None:
        if asked.at.plural == "events" and not may:
            raise fake_api.Refusal(403, "Forbidden")

    api.before = forbid
    async with started(api, {**PLAIN, "size": 2}) as made:
        found = made.find("ns", "c")
        assert found is not None
        await fake_api.until(lambda: not isinstance(made.observe(found, states.NOW).objects, freshness.Failed))
        await fake_api.until(lambda: not isinstance(made.groups.around.warnings.peek("ns"), freshness.Failed))
        there = made.observe(found, states.NOW).there
        assert may == ("exceeded quota: two" in there.unmade)


ENDING = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/y"]}


async def test_a_pod_that_does_not_end_says_what_holds_it() -> None:
    api = fake_api.FakeApi()
    await api.put("pods", "c-0", {"metadata": {**MINE, **ENDING}, "spec": {"nodeName": "n"}})

    objects = freshness.value_of((await observation(api, PLAIN)).objects)
    assert objects is not None
    (pod,) = objects.pods
    assert pod.overdue
    assert "is held by x/y" in pod.trouble


async def test_a_pod_that_cant_end_as_its_node_is_lost_says_who_can_do_what() -> None:
    """Kubernetes has told it to go, and the node does not answer."""
    api = fake_api.FakeApi()
    gone = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
    lost = {"metadata": {**MINE, **ENDING}, "spec": {"nodeName": "n"}, "status": {"conditions": [gone]}}
    await api.put("pods", "c-0", lost)

    objects = freshness.value_of((await observation(api, PLAIN)).objects)
    assert objects is not None
    (pod,) = objects.pods
    assert pod.cut_off
    assert "node n does not answer" in pod.trouble
    assert "kubectl taint node n node.kubernetes.io/out-of-service=nodeshutdown:NoExecute" in pod.fix


WELL = states.cache(3)
DOING = states.task()
LIVE: dict[str, tuple[str, dict[str, Any], states.It, str]] = {
    # id: (the guard, the pod c-2 as it is now, what the group says now, why it is not done)
    "it came up": ("pod_is_expendable", LOST["it works"][0], WELL.off(2), "c-2 has come up meanwhile"),
    "it crashes": ("pod_is_expendable", LOST["it worked, and ends again and again"][0], WELL, ""),
    "it starts, and is off": ("pod_is_expendable", LOST["it starts"][0], WELL.off(2), ""),
    "it starts, and nobody answers": ("pod_is_expendable", LOST["it starts"][0], WELL.off(0, 1, 2), ""),
    "nobody could be asked": (
        "pod_is_expendable",
        LOST["it starts"][0],
        WELL.no_pod(0, 1, 2),
        "nobody could be asked",
    ),
    "it is Online by now": ("pod_is_expendable", LOST["it starts"][0], WELL, "the group counts c-2 as Online"),
    "it joins": ("pod_is_expendable", LOST["it starts"][0], WELL.left(2).runs(2, DOING), "c-2 has a task"),
    "it is off": ("pod_is_off", LOST["it worked, and runs"][0], WELL.off(2), ""),
    "it is no member": ("pod_is_off", LOST["it worked, and runs"][0], WELL.left(2), ""),
    "it came Online": ("pod_is_off", LOST["it works"][0], WELL, "the group counts c-2 as Online"),
    "it has a task": ("pod_is_off", LOST["it works"][0], WELL.left(2).runs(2, DOING), "c-2 has a task"),
    "nobody answers": ("pod_is_off", LOST["it works"][0], WELL.off(0, 1, 2), "nobody tells of the group"),
    "only itself": ("pod_is_off", LOST["it works"][0], WELL.mute(0, 1), "nobody but c-2 tells of the group"),
}


@pytest.mark.parametrize(("guard", "status", "it", "says"), LIVE.values(), ids=LIVE)
async def test_a_pod_goes_only_if_nobody_is_served_by_it_right_then(
    guard: str, status: dict[str, Any], it: states.It, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = fake_api.FakeApi()
    await api.put("pods", "c-2", {"metadata": {**MINE, "uid": "uid-2"}, "status": status})
    async with asked(api, it, monkeypatch) as made:
        assert says == await made(guard, {"name": "c-2", "uid": "uid-2"})


GRID = answers.Grid("g", "Online")
STAY: dict[str, tuple[states.It, str]] = {
    # id: (what the group says now, why nobody is asked to leave)
    "all that stay are well": (WELL.off(2).but(grids=(GRID,)), ""),
    "one is off": (WELL.off(1, 2), "c-1 is not online"),
    "one is no member": (WELL.left(1).off(2), "c-1 is not online"),
    "a grid is off": (WELL.off(2).but(grids=(answers.Grid("g", "Stopped"),)), "grid g is not online"),
    "nobody tells of the grids": (WELL.off(2).but(grids=None), "nobody tells of the grids"),
    "nobody answers": (WELL.off(0, 1, 2), "nobody tells of the group"),
    "a task runs": (WELL.off(2).runs(0, DOING), "c-0 has a task"),
}


@pytest.mark.parametrize(("it", "says"), STAY.values(), ids=STAY)
async def test_who_is_off_leaves_only_if_all_that_stay_are_well_right_then(
    it: states.It, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = fake_api.FakeApi()
    for number in range(3):
        await api.put("pods", f"c-{number}", {"metadata": MINE, "status": LOST["it works"][0]})
    async with asked(api, it, monkeypatch) as made:
        assert says == await made("those_who_stay_are_online", {"size": 2})


@contextlib.asynccontextmanager
async def asked(
    api: fake_api.FakeApi, it: states.It, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Callable[[str, dict[str, Any]], Awaitable[str]]]:
    """A guard of a cache whose group answers like this now."""

    async def poll(_: group_access.Place) -> answers.Polled:
        return it.polled

    async with started(api, PLAIN) as made:
        found = made.find("ns", "c")
        assert found is not None
        await fake_api.until(lambda: not isinstance(made.observe(found, states.NOW).objects, freshness.Failed))
        monkeypatch.setattr(made.groups, "poll", poll)
        obj = msgspec.structs.replace(found, status=it.status)
        yield lambda guard, args: made.guards[guard](obj, args)


# --- since when the credentials are what they are ------------------------------------------------------------------


def noted(*times: str, field: str = "f:data") -> list[dict[str, Any]]:
    return [{"manager": time, "time": time, "fieldsV1": {field: {}}} for time in times]


MADE = "2026-01-01T00:00:00Z"
SECRETS: dict[str, tuple[dict[str, Any], float]] = {
    # id: (metadata of the Secret, since when it holds what it holds)
    "as it was made": ({"creationTimestamp": MADE, "managedFields": noted(MADE)}, 1767225600.0),
    "its data was changed: a kubelet may lag": (
        {"creationTimestamp": MADE, "managedFields": noted(MADE, "2026-01-01T00:01:00Z")},
        1767225670.0,
    ),
    "something else was": (
        {"creationTimestamp": MADE, "managedFields": noted("2026-01-01T00:01:00Z", field="f:metadata")},
        1767225600.0,
    ),
    "nothing is noted": ({"creationTimestamp": MADE}, 1767225600.0),
}


@pytest.mark.parametrize(("metadata", "expected"), SECRETS.values(), ids=SECRETS)
async def test_since_when_a_container_gets_these_credentials(metadata: dict[str, Any], expected: float) -> None:
    api = fake_api.FakeApi()
    await api.put("secrets", "given", {"metadata": metadata, "data": dict.fromkeys(PLAIN, "QWJjZGVmZzEteA==")})

    assert expected == (await observation(api, NAMED)).credentials_since


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
        assert seconds == made.groups._pace(("ns", "c"))


async def test_one_that_is_deleted_is_asked_often() -> None:
    async with started(fake_api.FakeApi(), PLAIN) as made:
        found = made.find("ns", "c")
        assert found is not None
        deleted = msgspec.structs.replace(found.metadata, deletion_timestamp=states.ago(1))
        status = types.XsldCacheStatus(conditions=(READY,))
        made.observe(msgspec.structs.replace(found, metadata=deleted, status=status), states.NOW)
        assert 10 == made.groups._pace(("ns", "c"))
