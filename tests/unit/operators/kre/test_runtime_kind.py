"""The observation of a Runtime, made from an API server: its place, its Secret, its volumes, and whom it asks."""

from __future__ import annotations

import base64
import contextlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage.helm.runs import binary
from moorage.kube import client as kube_client
from moorage.kube.informers import informer
from moorage.operators import accounts, system
from moorage.operators.kre import config, kinds
from moorage.operators.kre.runtime import credentials, kind, observation, servers, types
from moorage.operators.kre.runtime.observation import CredentialsSeen
from moorage.runtime import decision, freshness, gate, source
from moorage.runtime import kind as runtime_kind
from tests.unit.runtime import fake_api

from . import mongo_stub

NOW = 1_800_000_000.0
SETTINGS = config.Config("moorage-accounts", "moorage-kre-namespace", values={"chronograf": {"enabled": False}})
RIGHTS = accounts.Rights("kre", "moorage-system", "moorage-accounts", "moorage-kre-namespace")
PLAIN = {
    "mongo": {"credentials": {"username": "boss", "password": "of-mongo"}},
    "minio": {"credentials": {"accessKey": "store", "secretKey": "of-minio"}},
}
IN_CLEAR = {"mongoUser": "boss", "mongoPassword": "of-mongo", "minioAccessKey": "store", "minioSecretKey": "of-minio"}
OWNED = {"mongoUser": "u", "mongoPassword": "p", "minioAccessKey": "abc", "minioSecretKey": "abcdefgh"}


@contextlib.asynccontextmanager
async def started(
    api: fake_api.FakeApi, spec: dict[str, Any] | None = None, *, bound: bool = True
) -> AsyncIterator[kind.RuntimeKind]:
    """The kind on a server that has one Runtime; `bound`: with all rights."""
    if bound:
        await api.put("rolebindings", RIGHTS.binding, accounts.binding("ns", RIGHTS))
    await put(api, "demo", "2026-01-01T00:00:00Z", spec or {})
    client = kube_client.Client(api)
    informers = informer.Informers(client)
    scratch = tempfile.TemporaryDirectory()
    around = system.Environment("moorage-system", Path(scratch.name), Path("helm"), binary.KubeAccess(), 3.0)
    made = kind.RuntimeKind(SETTINGS, around)
    made.informers = [informers.watch(kinds.RUNTIME, types.Runtime)]
    await made.start(runtime_kind.World(client, informers, gate.Gate(), lambda *_, **__: None))
    try:
        for cache in informers.all():
            await cache.wait_synced(5)
        yield made
    finally:
        await made.stop()
        await informers.stop()
        scratch.cleanup()


async def put(api: fake_api.FakeApi, name: str, created: str, spec: dict[str, Any]) -> None:
    metadata = {"finalizers": [kinds.RUNTIME_FINALIZER], "creationTimestamp": created}
    await api.put("runtimes", name, {"metadata": metadata, "spec": spec})


def runtime(made: kind.RuntimeKind, name: str = "demo") -> types.Runtime:
    obj = made.find("ns", name)
    assert obj is not None
    return obj


def seen(made: kind.RuntimeKind, name: str = "demo") -> observation.Seen:
    return made.observe(runtime(made, name), NOW)


async def known(made: kind.RuntimeKind) -> observation.Seen:
    """What is seen once all was looked at that is no server."""
    await fake_api.until(lambda: not isinstance(seen(made).held, freshness.Failed))
    await fake_api.until(lambda: isinstance(seen(made).credentials, freshness.Fresh))
    return seen(made)


def uid(made: kind.RuntimeKind) -> str:
    """Of the Secret, as far as it is known."""
    found = freshness.value_of(seen(made).credentials)
    return found.uid if found else ""


def knows(made: kind.RuntimeKind) -> bool:
    """What a Secret held that is gone."""
    found = freshness.value_of(seen(made).credentials)
    return found is not None and found.known


def texts(secret: dict[str, Any]) -> dict[str, str]:
    return {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}


async def secret(api: fake_api.FakeApi, name: str, given: dict[str, str], **labels: str) -> None:
    data = {key: base64.b64encode(text.encode()).decode() for key, text in given.items()}
    await api.put("secrets", name, {"metadata": {"labels": labels}, "data": data})


async def make(made: kind.RuntimeKind) -> decision.Outcome:
    return await made.operations["credentials.make"](runtime(made), {})


# --- the Secret -------------------------------------------------------------------------------------------------------


async def test_a_secret_is_made_once_and_nobody_owns_it() -> None:
    """It outlives the Runtime: its volumes can't be read without it."""
    api = fake_api.FakeApi()
    async with started(api) as made:
        assert freshness.Fresh(CredentialsSeen()).value == (await known(made)).credentials.value  # type: ignore[union-attr]
        assert decision.Ok() == await make(made)
        first = api.one("secrets", kinds.CREDENTIALS)

        assert isinstance(await make(made), decision.Conflict)
        assert first == api.one("secrets", kinds.CREDENTIALS)
        assert "ownerReferences" not in first["metadata"]
        given = texts(first)
        assert {*credentials.KEYS, credentials.READER_KEY} == given.keys()
        assert ("admin", "admin") == (given["mongoUser"], given["minioAccessKey"])
        assert 3 == len({given[key] for key in ("mongoPassword", "minioSecretKey", "mongoReaderPassword")})

        await fake_api.until(lambda: bool(uid(made)))
        assert CredentialsSeen(
            first["metadata"]["uid"], made=True, behind=credentials.KEYS, absent=credentials.KEYS
        ) == freshness.value_of(seen(made).credentials)
        assert {RIGHTS.user("ns")} == {asked.user for asked in api.writes("secrets")}


async def test_a_secret_that_somebody_deletes_is_made_as_it_was() -> None:
    """As long as it is known: mongo's volume takes no other password."""
    api = fake_api.FakeApi()
    async with started(api) as made:
        await make(made)
        await fake_api.until(lambda: bool(uid(made)))
        first = api.one("secrets", kinds.CREDENTIALS)["data"]
        await api.drop("secrets", kinds.CREDENTIALS)
        made._credentials.source.refresh(credentials.given(runtime(made)))
        await fake_api.until(lambda: not uid(made))
        assert knows(made)
        await make(made)

        assert first == api.one("secrets", kinds.CREDENTIALS)["data"]


async def test_what_stands_in_the_spec_is_taken_for_the_secret() -> None:
    """And nowhere else: what is decided on has none of it."""
    api = fake_api.FakeApi()
    async with started(api, PLAIN) as made:
        await make(made)
        found = await known(made)

        assert IN_CLEAR.items() <= texts(api.one("secrets", kinds.CREDENTIALS)).items()
        assert not [text for text in ("of-mongo", "of-minio") if text in repr(found)]
        assert ("spec.mongo.credentials", "spec.minio.credentials") == found.settings.plain


@pytest.mark.parametrize(("labels", "is_former"), [({kinds.COMPONENT: "credentials"}, True), ({}, False)])
async def test_the_secret_that_was_made_before_another_was_named(labels: dict[str, str], is_former: bool) -> None:
    """It goes with the Runtime's volumes, as it would have before."""
    api = fake_api.FakeApi()
    await secret(api, "mine", OWNED)
    await api.put("secrets", kinds.CREDENTIALS, {"metadata": {"labels": labels}})
    async with started(api, {"credentialsSecretRef": {"name": "mine"}}) as made:
        found = freshness.value_of((await known(made)).credentials)

        assert found is not None
        assert (api.one("secrets", kinds.CREDENTIALS)["metadata"]["uid"] if is_former else "") == found.former


SECRETS: dict[str, tuple[dict[str, Any], str, dict[str, str], CredentialsSeen]] = {
    # id: (spec, name and data of a Secret that is there, what is seen of it)
    "one that was kept": ({}, kinds.CREDENTIALS, OWNED, CredentialsSeen("U")),
    "the user's own": ({"credentialsSecretRef": {"name": "mine"}}, "mine", OWNED, CredentialsSeen("U")),
    "kept, with other passwords than the spec": (
        PLAIN,
        kinds.CREDENTIALS,
        OWNED,
        CredentialsSeen("U", differs=tuple(sorted(IN_CLEAR))),
    ),
    "the user's own counts, whatever stands in the spec": (
        {**PLAIN, "credentialsSecretRef": {"name": "mine"}},
        "mine",
        OWNED,
        CredentialsSeen("U"),
    ),
    "a key is missing": (
        {},
        kinds.CREDENTIALS,
        {key: OWNED[key] for key in OWNED if key != "mongoUser"},
        CredentialsSeen("U", fault="it has no key mongoUser"),
    ),
    "a key is empty": (
        {},
        kinds.CREDENTIALS,
        OWNED | {"mongoUser": ""},
        CredentialsSeen("U", fault="its key mongoUser is empty"),
    ),
    "a line break at the end": (
        {},
        kinds.CREDENTIALS,
        OWNED | {"mongoPassword": "p\n"},
        CredentialsSeen(
            "U", fault="mongoPassword begins or ends with white space, which a server would take for a part of it"
        ),
    ),
    "too short for MinIO": (
        {},
        kinds.CREDENTIALS,
        OWNED | {"minioSecretKey": "short"},
        CredentialsSeen("U", fault="minioSecretKey has fewer than 8 characters, which MinIO does not take"),
    ),
    "nobody to read with": (
        {"mongoExpress": {"enabled": True}},
        kinds.CREDENTIALS,
        OWNED,
        CredentialsSeen("U", fault="it has no key mongoReaderPassword"),
    ),
}


@pytest.mark.parametrize(("spec", "name", "given", "wanted"), SECRETS.values(), ids=SECRETS)
async def test_a_secret_that_is_there(
    spec: dict[str, Any], name: str, given: dict[str, str], wanted: CredentialsSeen
) -> None:
    api = fake_api.FakeApi()
    await secret(api, name, given)
    mine = api.one("secrets", name)["metadata"]["uid"]
    async with started(api, spec) as made:
        found = freshness.value_of((await known(made)).credentials)

        assert found is not None
        assert wanted == CredentialsSeen("U" if found.uid == mine else "", found.made, found.fault, found.differs)


# --- its place --------------------------------------------------------------------------------------------------------


async def test_the_oldest_of_a_namespace_has_it_and_then_the_next() -> None:
    """Their times are of whole seconds; names decide between those of one."""
    api = fake_api.FakeApi()
    await put(api, "early", "2026-01-01T00:00:00Z", {})
    await put(api, "late", "2026-01-02T00:00:00Z", {})
    async with started(api) as made:
        assert ("", "demo", "demo") == (seen(made).older, seen(made, "early").older, seen(made, "late").older)
        assert 2 == seen(made).neighbours
        await api.drop("runtimes", "demo")
        await fake_api.until(lambda: made.find("ns", "demo") is None)

        assert ("", "early") == (seen(made, "early").older, seen(made, "late").older)


async def test_without_rights_nothing_is_looked_at_or_asked() -> None:
    api = fake_api.FakeApi()
    async with started(api, bound=False) as made:
        found = seen(made)

        for each in (found.held, found.credentials, found.mongo, found.nats, found.store, found.metrics):
            assert freshness.is_unseen(each)  # type: ignore[arg-type]
        assert freshness.Fresh(None) == found.binding
        assert not [asked for asked in api.requests if asked.at.plural in ("pods", "secrets", "statefulsets")]


async def test_all_of_a_namespace_want_one_release() -> None:
    """So that its claim, which one of them gets, says whose the servers are."""
    api = fake_api.FakeApi()
    await put(api, "other", "2026-01-02T00:00:00Z", {})
    async with started(api) as made:
        one, other = runtime(made), runtime(made, "other")

        assert made.lane(one) == made.lane(other)
        assert made.placement(one) == made.placement(other)
        assert seen(made).release.target == seen(made, "other").release.target


async def test_an_upgrade_is_never_taken_back_by_itself() -> None:
    """Fewer NATS servers than there were have fewer streams."""
    api = fake_api.FakeApi()
    async with started(api) as made:
        assert not seen(made).release.policy.rollback


# --- volumes, values -------------------------------------------------------------------------------------------------


async def claim(api: fake_api.FakeApi, name: str, size: str, **metadata: Any) -> None:
    labels = {kinds.COMPONENT: "x"}
    spec = {"storageClassName": "fast", "resources": {"requests": {"storage": size}}}
    await api.put("persistentvolumeclaims", name, {"metadata": {"labels": labels, **metadata}, "spec": spec})


async def test_volumes_are_told_by_the_names_of_their_claims() -> None:
    """Those that were kept from an earlier Runtime too; and none that only bears the label."""
    api = fake_api.FakeApi()
    for name in ("data-kre-nats-1", "data-kre-nats-0", "data-kre-mongo-0", "data-other-0", "data-kre-nats-01"):
        await claim(api, name, "1Gi")
    async with started(api) as made:
        found = await known(made)

        assert ["data-kre-nats-0", "data-kre-nats-1"] == [it.name for it in found.held_by("nats").volumes]
        assert ["data-kre-mongo-0"] == [it.name for it in found.held_by("mongo").volumes]
        assert 2 == found.nats_before


async def workload(api: fake_api.FakeApi, name: str, size: str = "1Gi") -> str:
    template = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": size}}}}
    made = await api.put(
        "statefulsets",
        name,
        {
            "metadata": {"labels": {"app.kubernetes.io/managed-by": "Helm"}},
            "spec": {"replicas": 1, "volumeClaimTemplates": [template]},
            "status": {"readyReplicas": 1},
        },
    )
    return str(made["metadata"]["uid"])


async def test_values_are_made_once_it_is_known_what_templates_were_made_with() -> None:
    """And are the same object as long as nothing is another."""
    api = fake_api.FakeApi()
    await workload(api, "kre-mongo", "2Gi")
    await secret(api, kinds.IN_USE, OWNED)
    async with started(api) as made:
        assert None is made._given(runtime(made))
        found = await known(made)
        given = made._given(runtime(made))

        assert given is not None
        assert given is made._given(runtime(made))
        assert ("2Gi", "1Gi") == (given["mongo"]["volume"]["size"], given["nats"]["volume"]["size"])
        assert False is given["chronograf"]["enabled"]
        assert (types.Component("mongo", 1, 1),) == found.components


async def test_influxdb_that_is_switched_off_is_not_asked() -> None:
    api = fake_api.FakeApi()
    await secret(api, kinds.IN_USE, OWNED)
    async with started(api, {"influxdb": {"enabled": False}, "chronograf": {"enabled": False}}) as made:
        assert None is (await known(made)).metrics


# --- who is asked -----------------------------------------------------------------------------------------------------

RUNNING = {"status": {"podIP": "10.0.0.1", "phase": "Running"}}


def owner(uid: str, kind_: str = "StatefulSet") -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": kind_, "name": "kre-mongo", "uid": uid, "controller": True}


FOREIGN: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    "nobody's": ([], RUNNING),
    "of a StatefulSet that is gone": ([owner("old")], RUNNING),
    "of another kind": ([owner("old", "ReplicaSet")], RUNNING),
    "ended": ([owner("SET")], {"status": {"podIP": "10.0.0.1", "phase": "Failed"}}),
    "ending": ([owner("SET")], {**RUNNING, "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
    "without an address": ([owner("SET")], {"status": {"phase": "Pending"}}),
}


@pytest.mark.parametrize(("owners", "rest"), FOREIGN.values(), ids=FOREIGN)
async def test_mongos_password_is_told_to_a_pod_of_its_statefulset_alone(
    owners: list[dict[str, Any]], rest: dict[str, Any]
) -> None:
    api = fake_api.FakeApi()
    mine = await workload(api, "kre-mongo")
    theirs = [{**it, "uid": mine} if it["uid"] == "SET" else it for it in owners]
    await api.put("pods", "kre-mongo-0", {**rest, "metadata": {**rest.get("metadata", {}), "ownerReferences": theirs}})
    await secret(api, kinds.IN_USE, OWNED)
    async with started(api) as made:
        await known(made)

        with pytest.raises(source.SourceError, match="no pod of kre-mongo has an address"):
            made._servers._mongo(("ns", "demo"))
        outcome = await made.operations["mongo.initiate"](runtime(made), {})
        assert isinstance(outcome, decision.Refused)
        assert "NotSent" == outcome.reason


async def test_the_pod_of_the_statefulset_is_asked() -> None:
    api = fake_api.FakeApi()
    mine = await workload(api, "kre-mongo")
    await api.put("pods", "kre-mongo-0", {**RUNNING, "metadata": {"ownerReferences": [owner(mine)]}})
    async with started(api) as made:
        await known(made)

        assert {"kre-mongo-0": "10.0.0.1"} == made._servers._pods(("ns", "demo"), "mongo")
        with pytest.raises(source.SourceError, match="not looked at yet") as found:
            made._servers._mongo(("ns", "demo"))
        assert freshness.NOT_YET == found.value.reason
        assert freshness.is_unseen(seen(made).mongo)  # type: ignore[arg-type]


async def test_mongo_is_logged_in_to_until_all_was_well_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it is asked without; until the credentials are others, or it was away."""
    api = fake_api.FakeApi()
    mine = await workload(api, "kre-mongo")
    pod = {"status": {"podIP": "127.0.0.1", "phase": "Running"}, "metadata": {"ownerReferences": [owner(mine)]}}
    await api.put("pods", "kre-mongo-0", pod)
    await secret(api, kinds.IN_USE, OWNED)
    place = ("ns", "demo")
    async with mongo_stub.MongoStub("u", "p").running() as mongo, started(api) as made:
        monkeypatch.setattr(servers, "MONGO_PORT", mongo.port)
        await known(made)
        await made._servers.mongo.stop()  # nobody else asks meanwhile
        ask = made._servers._ask_mongo

        assert not (await ask(place)).initiated
        assert decision.Ok() == await made.operations["mongo.initiate"](runtime(made), {})
        assert observation.MongoSeen() == await ask(place)
        mongo.asked.clear()
        assert observation.MongoSeen() == await ask(place)
        assert [] == mongo.asked

        made._credentials._in_use[place] = OWNED | {"mongoPassword": "another"}
        assert "Authentication failed" in (await ask(place)).refused


ROTATED = OWNED | {"mongoPassword": "of-today"}
READABLE = {"mongoExpress": {"enabled": True}}


@contextlib.asynccontextmanager
async def with_mongo(
    monkeypatch: pytest.MonkeyPatch, wanted: dict[str, str], in_use: dict[str, str], spec: dict[str, Any] | None = None
) -> AsyncIterator[tuple[fake_api.FakeApi, mongo_stub.MongoStub, kind.RuntimeKind]]:
    """A mongo that takes what OWNED says, whatever the Secrets say."""
    api = fake_api.FakeApi()
    mine = await workload(api, "kre-mongo")
    pod = {"status": {"podIP": "127.0.0.1", "phase": "Running"}, "metadata": {"ownerReferences": [owner(mine)]}}
    await api.put("pods", "kre-mongo-0", pod)
    await secret(api, kinds.CREDENTIALS, wanted)
    await secret(api, kinds.IN_USE, in_use)
    async with mongo_stub.MongoStub("u", "p").running() as mongo, started(api, spec) as made:
        monkeypatch.setattr(servers, "MONGO_PORT", mongo.port)
        await known(made)
        yield api, mongo, made


async def rotate(made: kind.RuntimeKind) -> decision.Outcome:
    outcome = await made.operations["mongo.change_passwords"](runtime(made), {})
    await known(made)
    return outcome


def in_use(api: fake_api.FakeApi) -> dict[str, str]:
    return {key: text for key, text in texts(api.one("secrets", kinds.IN_USE)).items() if key != credentials.SALT_KEY}


async def test_mongo_is_told_a_password_before_anybody_is_given_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with with_mongo(monkeypatch, ROTATED, OWNED | {credentials.SALT_KEY: "x"}) as (api, mongo, made):
        before = made._credentials.digests(("ns", "demo"))
        assert decision.Ok() == await rotate(made)

        assert ("of-today", ROTATED) == (mongo.password, in_use(api))
        expected, told = ([asked.body["data"] for asked in api.writes("secrets")][at].keys() for at in (0, 1))
        assert {credentials.OTHER_KEY} <= expected  # what mongo may have is kept before it is told
        assert credentials.PASSWORD_KEY in told
        assert 1 == mongo.asked.count("updateUser")
        assert before == made._credentials.digests(("ns", "demo"))  # nobody else is restarted for it
        found = freshness.value_of(seen(made).credentials)
        assert found is not None
        assert ((), False) == (found.behind, found.in_doubt)


async def test_a_password_whose_change_was_cut_off_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mongo has taken it and nobody wrote so down; and meanwhile another one is wanted."""
    cut_off = OWNED | {"mongoPassword": "of-before", credentials.OTHER_KEY: "p"}
    async with with_mongo(monkeypatch, ROTATED, cut_off) as (api, mongo, made):
        assert "Authentication failed" in (await made._servers._ask_mongo(("ns", "demo"))).refused
        mongo.lose = {"updateUser"}
        assert isinstance(await rotate(made), decision.Unknown)
        assert "of-today" == mongo.password
        assert OWNED | {credentials.OTHER_KEY: "of-today"} == in_use(api)  # what worked, and what may work now
        assert seen(made).credentials.value.in_doubt  # type: ignore[union-attr]
        mongo.lose = set()

        await secret(api, kinds.CREDENTIALS, OWNED | {"mongoPassword": "of-tomorrow"})
        made._credentials.source.outdate(credentials.given(runtime(made)), "it was changed")
        await known(made)
        assert decision.Ok() == await rotate(made)
        assert ("of-tomorrow", OWNED | {"mongoPassword": "of-tomorrow"}) == (mongo.password, in_use(api))


async def test_a_password_that_mongo_has_already_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand, or as the volume is of another time."""
    async with with_mongo(monkeypatch, OWNED, ROTATED) as (api, mongo, made):
        assert decision.Ok() == await rotate(made)
        assert OWNED == in_use(api)
        assert "updateUser" not in mongo.asked


REFUSALS: dict[str, tuple[dict[str, str], dict[str, str], str]] = {
    "neither": (ROTATED, OWNED | {"mongoPassword": "of-before"}, "Authentication failed"),
    "another user": (ROTATED | {"mongoUser": "v"}, OWNED, "set mongoUser back, or make that user in mongo"),
}


@pytest.mark.parametrize(("wanted", "used", "said"), REFUSALS.values(), ids=REFUSALS)
async def test_what_mongo_does_not_take_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, wanted: dict[str, str], used: dict[str, str], said: str
) -> None:
    async with with_mongo(monkeypatch, wanted, used) as (api, mongo, made):
        outcome = await rotate(made)

        assert isinstance(outcome, decision.Refused)
        assert "MongoRefuses" == outcome.reason
        assert said in outcome.message
        assert ("p", used, []) == (mongo.password, in_use(api), api.writes("secrets"))


async def test_who_reads_gets_another_password_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two that are changed both are told at once; mongo-express is restarted by its digest, and MinIO is not."""
    reads, other = {credentials.READER_KEY: "r"}, {credentials.READER_KEY: "s"}
    async with with_mongo(monkeypatch, ROTATED | other, OWNED | reads, READABLE) as (api, mongo, made):
        mongo.users = {("data", "kre-runtime-data"): "r"}
        before = made._credentials.digests(("ns", "demo")) or {}
        assert decision.Ok() == await rotate(made)

        after = made._credentials.digests(("ns", "demo")) or {}
        assert {("data", "kre-runtime-data"): "s"} == mongo.users
        assert ROTATED | other == in_use(api)
        assert before["mongoExpress"] != after["mongoExpress"]


async def test_what_is_only_read_at_a_start_is_put_to_use_at_once() -> None:
    """Of what mongo may have been made with a moment ago both are kept."""
    api = fake_api.FakeApi()
    await secret(api, kinds.CREDENTIALS, ROTATED | {"minioSecretKey": "of-today"})
    async with started(api) as made:
        await known(made)
        take = made.operations["credentials.take"]
        assert decision.Ok() == await take(runtime(made), {"keys": credentials.KEYS})
        await fake_api.until(lambda: isinstance(seen(made).credentials, freshness.Fresh))
        assert ROTATED | {"minioSecretKey": "of-today"} == in_use(api)
        first = made._credentials.digests(("ns", "demo")) or {}

        await secret(api, kinds.CREDENTIALS, OWNED)
        made._credentials.source.outdate(credentials.given(runtime(made)), "it was changed")
        assert ("mongoPassword", "minioSecretKey") == (await known(made)).credentials.value.behind  # type: ignore[union-attr]
        await take(runtime(made), {"keys": ("mongoPassword", "minioSecretKey")})
        await known(made)
        assert OWNED | {credentials.OTHER_KEY: "of-today"} == in_use(api)
        second = made._credentials.digests(("ns", "demo")) or {}
        assert (True, False) == (first["minio"] != second["minio"], first["mongoExpress"] != second["mongoExpress"])


async def test_credentials_in_use_that_somebody_deletes_are_put_back_as_they_were() -> None:
    """Not as they are wanted: mongo was not told."""
    api = fake_api.FakeApi()
    await secret(api, kinds.CREDENTIALS, ROTATED)
    await secret(api, kinds.IN_USE, OWNED)
    async with started(api) as made:
        await known(made)
        await api.drop("secrets", kinds.IN_USE)
        made._credentials.source.outdate(credentials.given(runtime(made)), "it was deleted")
        assert "" == (await known(made)).credentials.value.used  # type: ignore[union-attr]
        await made.operations["credentials.take"](runtime(made), {"keys": ()})

        assert OWNED == in_use(api)


def credentials_of(found: observation.Seen) -> CredentialsSeen:
    told = freshness.value_of(found.credentials)
    assert told is not None
    return told


BEHIND: dict[str, tuple[dict[str, str] | None, dict[str, str] | None, tuple[str, ...], tuple[str, ...], bool]] = {
    # id: (wanted, in use, behind, absent, in doubt)
    "nothing is there": (None, None, (), (), False),
    "none is in use yet": (OWNED, None, credentials.KEYS, credentials.KEYS, False),
    "what is wanted is gone": (None, OWNED, (), (), False),
    "all is in use": (OWNED, OWNED, (), (), False),
    "another is wanted": (ROTATED, OWNED, ("mongoPassword",), (), False),
    "one was taken out": (
        OWNED,
        {key: OWNED[key] for key in OWNED if key != "mongoUser"},
        ("mongoUser",),
        ("mongoUser",),
        False,
    ),
    "mongo may have either": (OWNED, OWNED | {credentials.OTHER_KEY: "x"}, (), (), True),
    "either is the same": (OWNED, OWNED | {credentials.OTHER_KEY: "p"}, (), (), False),
    "what is wanted is no good": (OWNED | {"minioSecretKey": "short"}, OWNED, (), (), False),
}


@pytest.mark.parametrize(("wanted", "used", "behind", "absent", "in_doubt"), BEHIND.values(), ids=BEHIND)
async def test_what_is_in_use_beside_what_is_wanted(
    wanted: dict[str, str] | None,
    used: dict[str, str] | None,
    behind: tuple[str, ...],
    absent: tuple[str, ...],
    in_doubt: bool,
) -> None:
    api = fake_api.FakeApi()
    for name, given in ((kinds.CREDENTIALS, wanted), (kinds.IN_USE, used)):
        if given is not None:
            await secret(api, name, given)
    async with started(api) as made:
        found = credentials_of(await known(made))

        assert (behind, absent, in_doubt) == (found.behind, found.absent, found.in_doubt)
        assert bool(used) == bool(found.used)
        assert (wanted is None and used is not None) == found.known


async def test_what_is_in_use_is_salted_once() -> None:
    """Whoever had a look at digests before knows them still, as servers are restarted by them."""
    api = fake_api.FakeApi()
    await secret(api, kinds.CREDENTIALS, OWNED)
    async with started(api) as made:
        await known(made)
        salts = []
        for _ in range(2):
            await made.operations["credentials.take"](runtime(made), {"keys": credentials.KEYS})
            await known(made)
            salts.append(texts(api.one("secrets", kinds.IN_USE))[credentials.SALT_KEY])

        assert salts[0] == salts[1]
        assert len(salts[0]) >= 32


async def test_who_is_to_read_nothing_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Although the Secret has a password for that: mongo-express is off."""
    async with with_mongo(monkeypatch, ROTATED | {credentials.READER_KEY: "s"}, OWNED) as (api, mongo, made):
        assert decision.Ok() == await rotate(made)

        assert {} == mongo.users
        assert ROTATED == in_use(api)


def test_a_digest_says_nothing_of_what_it_is_of() -> None:
    """Whoever reads a pod template can't try passwords by it: each Runtime salts its own."""
    told = []
    for salt in ("one", "two"):
        known_ = credentials.Credentials.__new__(credentials.Credentials)
        known_._in_use = {("ns", "demo"): OWNED | {credentials.SALT_KEY: salt}}
        told.append(known_.digests(("ns", "demo")))

    assert told[0] != told[1]


def test_an_address_is_of_who_runs() -> None:
    pods = [{"metadata": {"name": "a"}, "status": {"podIP": "1"}}, {"metadata": {"name": "b"}}]

    assert {"a": "1"} == servers.addresses(pods)
