"""What is decided for a Runtime beside its release: each step, verdict and reason, by tables."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from moorage.api import builtin
from moorage.helm import observation
from moorage.operators.kre.reasons import RuntimeReason as Reason
from moorage.operators.kre.runtime import facts, types
from moorage.operators.kre.runtime.observation import (
    CredentialsSeen,
    HeldSeen,
    MongoSeen,
    NatsSeen,
    PublishedSeen,
    Seen,
    VersionSeen,
)
from moorage.runtime import decision, freshness
from moorage.runtime.decision import Act, Blocked, Wait
from moorage.runtime.freshness import Fresh, Stale
from tests.unit.helm import release_states

from .runtimes import DOWN, SECRET, SERVERS, decided, held, seen, settings, status, verdict, volume


def test_what_is_whole_needs_nothing() -> None:
    """All steps are done, and what readiness needs is true."""
    found = decided(seen())

    assert found.standing is None
    assert () == found.acts
    told = {each.type: each.status for each in found.facts}
    assert dict.fromkeys(facts.READY_FACTS, True) == {name: told[name] for name in facts.READY_FACTS}
    assert told["SecretsKept"]
    assert "STARTED" == found.report["phase"]


ONE = held(nats=[volume("nats")])
NAMED = settings(credentialsSecretRef={"name": "mine"})
HAS_MONGO = held(mongo=[volume("mongo")])
KEYS = ("mongoUser", "mongoPassword", "minioAccessKey", "minioSecretKey")


def secret(**changed: Any) -> Fresh[CredentialsSeen]:
    return Fresh(msgspec.structs.replace(SECRET, **changed))


SMALL = held(mongo=[volume("mongo", size="1Gi", expandable=True)])
STUCK = held(mongo=[volume("mongo", size="1Gi", expandable=False)])
STEPS: list[tuple[dict[str, Any], type[Any], Reason, str]] = [
    ({"older": "first"}, Blocked, Reason.SECOND_RUNTIME, "Runtime first, which is older, is in this namespace"),
    ({"allowed": False}, Blocked, Reason.NAMESPACE_NOT_ALLOWED, "namespace ns may hold no Runtime"),
    (
        {"settings": settings(values={"a": "x" * types.MOST_VALUES})},
        Blocked,
        Reason.TOO_MANY_VALUES,
        "spec.values has 65544 bytes, and may have 65536",
    ),
    ({"finalizers": ()}, Act, Reason.TAKING_CARE, "the finalizer is set"),
    ({"binding": Fresh(None)}, Act, Reason.BINDING, "rights in ns are bound"),
    ({"held": freshness.not_yet("volumes")}, Wait, Reason.CLUSTER_UNKNOWN, "volumes not looked at yet"),
    ({"credentials": freshness.not_yet("Secret")}, Wait, Reason.CREDENTIALS_UNKNOWN, "Secret not looked at yet"),
    ({"credentials": Fresh(CredentialsSeen())}, Act, Reason.MAKING_CREDENTIALS, "Secret kre-credentials is made"),
    (
        {"credentials": Stale(CredentialsSeen(), 0.0, "it was made")},
        Wait,
        Reason.CREDENTIALS_UNKNOWN,
        "kre-credentials is looked at anew: it was made",
    ),
    (
        {"credentials": Fresh(CredentialsSeen()), "settings": NAMED},
        Blocked,
        Reason.CREDENTIALS_INVALID,
        "there is no Secret mine, which spec.credentialsSecretRef names",
    ),
    (
        {"credentials": Fresh(CredentialsSeen("s", fault="it has no key mongoUser")), "settings": NAMED},
        Blocked,
        Reason.CREDENTIALS_INVALID,
        "^Secret mine: it has no key mongoUser$",
    ),
    (
        {"credentials": Fresh(CredentialsSeen("s", differs=("mongoPassword", "mongoUser")))},
        Blocked,
        Reason.CREDENTIALS_DIFFER,
        "other credentials than Secret kre-credentials: mongoPassword, mongoUser",
    ),
    (
        {"status": status(natsServers=1), "held": ONE},
        Blocked,
        Reason.NATS_CONVERTS,
        "streams on 1 server, and .*replicas is 3",
    ),
    (
        {"settings": settings(nats_streaming={"replicas": 1}), "held": ONE},
        Blocked,
        Reason.NATS_CONVERTS,
        "streams on 3 servers, and .*replicas is 1",
    ),
    (
        {"settings": settings(nats_streaming={"replicas": 2}), "held": ONE},
        Blocked,
        Reason.NATS_TOO_FEW,
        "streams on 3 servers, and .*replicas is 2: two stand still while one of them is away",
    ),
    (
        {"settings": settings(nats_streaming={"replicas": 2}), "held": held(nats=[volume("nats", 4)])},
        Blocked,
        Reason.NATS_TOO_FEW,
        "streams on 5 servers, and .*replicas is 2",
    ),
    (
        {"credentials": Fresh(CredentialsSeen("s"))},
        Act,
        Reason.MAKING_CREDENTIALS,
        "^Secret kre-nats-login is made$",
    ),
    (
        {"credentials": Stale(CredentialsSeen("s"), 0.0, "it was made")},
        Wait,
        Reason.CREDENTIALS_UNKNOWN,
        "is looked at anew: it was made",
    ),
    (
        {"credentials": Fresh(CredentialsSeen("s", system="n", system_fault="its key login.conf has no password"))},
        Blocked,
        Reason.CREDENTIALS_INVALID,
        "^Secret kre-nats-login: its key login.conf has no password$",
    ),
    (
        {"settings": settings(credentialsSecretRef={"name": "kre-credentials-in-use"})},
        Blocked,
        Reason.CREDENTIALS_INVALID,
        "names kre-credentials-in-use, which moorage itself writes",
    ),
    (
        {"credentials": secret(used="", behind=KEYS, absent=KEYS)},
        Act,
        Reason.TAKING_CREDENTIALS,
        "^the credentials of Secret kre-credentials are put to use$",
    ),
    (
        {"credentials": secret(behind=("mongoPassword", "minioSecretKey")), "held": HAS_MONGO},
        Act,
        Reason.TAKING_CREDENTIALS,
        "Secret kre-credentials are put to use: minioSecretKey$",
    ),
    (
        {"credentials": secret(behind=("mongoPassword",)), "held": HAS_MONGO},
        Act,
        Reason.CHANGING_PASSWORDS,
        "^mongo is told mongoPassword of Secret kre-credentials$",
    ),
    (
        {"credentials": secret(in_doubt=True), "held": HAS_MONGO, "mongo": Fresh(MongoSeen(refused="no"))},
        Act,
        Reason.CHANGING_PASSWORDS,
        "^mongo is told what its administrator logs in with of Secret kre-credentials$",
    ),
    (
        {"credentials": Stale(secret(behind=("mongoPassword",)).value, 0.0, "it was changed"), "held": HAS_MONGO},
        Wait,
        Reason.CREDENTIALS_UNKNOWN,
        "kre-credentials is looked at anew: it was changed",
    ),
    (
        {
            "credentials": secret(behind=("mongoPassword",)),
            "held": HAS_MONGO,
            "mongo": Stale(MongoSeen(), 0.0, "it was told passwords"),
        },
        Wait,
        Reason.MONGO_UNKNOWN,
        "mongo is asked anew: it was told passwords",
    ),
    (
        {
            "credentials": secret(behind=("mongoPassword",)),
            "held": HAS_MONGO,
            "mongo": Fresh(MongoSeen(primary=False)),
        },
        Wait,
        Reason.MONGO_NOT_PRIMARY,
        "mongo has no primary",
    ),
    (
        {"credentials": Fresh(CredentialsSeen()), "held": held(mongo=[volume("mongo")])},
        Blocked,
        Reason.CREDENTIALS_LOST,
        "Secret kre-credentials is gone, and volume data-kre-mongo-0 can't be read",
    ),
    (
        {"credentials": Fresh(CredentialsSeen(known=True)), "held": held(mongo=[volume("mongo")])},
        Act,
        Reason.MAKING_CREDENTIALS,
        "is made",
    ),
    (
        {"credentials": Fresh(CredentialsSeen()), "held": held(mongo=[volume("mongo", deleting=True)])},
        Act,
        Reason.MAKING_CREDENTIALS,
        "is made",
    ),
    (
        {"settings": settings(nats_streaming={"replicas": 2}), "status": status(natsServers=1), "held": ONE},
        Blocked,
        Reason.NATS_CONVERTS,
        "streams on 1 server, .*replicas is 2",
    ),
    (
        {"settings": settings(nats_streaming={"replicas": 1}), "status": status(natsServers=2), "held": ONE},
        Blocked,
        Reason.NATS_CONVERTS,
        "streams on 2 servers, .*replicas is 1",
    ),
    (
        {
            "settings": settings(nats_streaming={"replicas": 2}),
            "status": status(natsServers=2),
            "nats": Fresh(NatsSeen("", SERVERS[:2])),
        },
        Wait,
        Reason.NATS_NOT_WHOLE,
        "no leader that answers; 2 of 2",
    ),
    ({"held": held(nats=[volume("nats", size="512Mi")])}, Act, Reason.GROWING_VOLUME, "data-kre-nats-0 grows to 1Gi"),
    ({"held": SMALL}, Act, Reason.GROWING_VOLUME, "data-kre-mongo-0 grows to 5Gi"),
    ({"held": STUCK}, Blocked, Reason.VOLUME_STUCK, "data-kre-mongo-0 is of a storage class that does not let"),
    ({"mongo": Fresh(MongoSeen(initiated=False, primary=False))}, Act, Reason.INITIATING_MONGO, "made a replica set"),
    (
        {"mongo": Stale(MongoSeen(initiated=False), 0.0, "it was initiated")},
        Wait,
        Reason.MONGO_UNKNOWN,
        "asked anew: it was initiated",
    ),
    ({"mongo": DOWN}, Wait, Reason.MONGO_UNKNOWN, "it does not answer"),
    ({"mongo": Fresh(MongoSeen(primary=False))}, Wait, Reason.MONGO_NOT_PRIMARY, "no primary"),
    (
        {"mongo": Fresh(MongoSeen(refused="Authentication failed."))},
        Blocked,
        Reason.MONGO_REFUSES,
        "credentials of Secret kre-credentials: Authentication failed",
    ),
    (
        {"mongo": Fresh(MongoSeen(reader=False)), "settings": settings(mongoExpress={"enabled": True})},
        Act,
        Reason.MAKING_READER,
        "the user that reads is made",
    ),
    ({"nats": DOWN}, Wait, Reason.NATS_UNKNOWN, "it does not answer"),
    (
        {"nats": Fresh(NatsSeen("", SERVERS[:1]))},
        Wait,
        Reason.NATS_NOT_WHOLE,
        "no leader that answers; 1 of 3 NATS servers answer: kre-nats-0",
    ),
    ({"nats": Fresh(NatsSeen("kre-nats-0", SERVERS[:2]))}, Wait, Reason.NATS_NOT_WHOLE, "^2 of 3 NATS servers answer"),
    ({"store": DOWN}, Wait, Reason.STORE_UNKNOWN, "it does not answer"),
    ({"store": Fresh(False)}, Wait, Reason.STORE_UNKNOWN, "MinIO is not ready"),
    ({"metrics": DOWN}, Wait, Reason.METRICS_UNKNOWN, "it does not answer"),
    ({"metrics": Fresh(False)}, Wait, Reason.METRICS_UNKNOWN, "InfluxDB is not ready"),
]


@pytest.mark.parametrize(
    ("changed", "kind", "reason", "message"), STEPS, ids=[f"{row[2]}-{n}" for n, row in enumerate(STEPS)]
)
def test_where_a_runtime_stands(changed: dict[str, Any], kind: type[Any], reason: Reason, message: str) -> None:
    """One thing is amiss, and just that is told."""
    found = verdict(seen(**changed))

    assert isinstance(found, kind)
    assert reason == found.reason
    assert re.search(message, found.message), found.message


WAITS: list[tuple[dict[str, Any], float, float]] = [
    # what is amiss, seconds within which it should come, and after which it is looked at again
    ({"mongo": Stale(MongoSeen(initiated=False), 0.0, "x")}, 120, 0),
    ({"credentials": Stale(CredentialsSeen(), 0.0, "x")}, 120, 0),
    ({"mongo": DOWN}, 600, 5),
    ({"mongo": Fresh(MongoSeen(primary=False))}, 300, 5),
    ({"nats": Fresh(NatsSeen("", SERVERS))}, 600, 5),
    ({"store": Fresh(False)}, 600, 5),
    ({"metrics": Fresh(False)}, 600, 5),
]


@pytest.mark.parametrize(("changed", "within", "again"), WAITS, ids=[str(n) for n in range(len(WAITS))])
def test_a_wait_has_an_end_and_a_pace(changed: dict[str, Any], within: float, again: float) -> None:
    found = verdict(seen(**changed))

    assert (within, again) == (found.within, found.again)


def test_what_to_do_names_the_field_and_the_volume() -> None:
    """Each in the user's own words."""
    few = verdict(seen(settings=settings(nats_streaming={"replicas": 2}), held=ONE))
    stuck = verdict(seen(held=STUCK))

    assert "set it to 3 at least, or make a new Runtime of 2" == few.fix
    assert "spec.mongo.storage.size or spec.mongo.persistentVolume.size" in stuck.fix


@pytest.mark.parametrize(
    "changed",
    [
        {
            "settings": settings(),
            "status": status(natsServers=2),
        },
        {"settings": settings(nats_streaming={"replicas": 5}), "nats": Fresh(NatsSeen("a", tuple("abcde")))},
        {"settings": settings(), "status": status(natsServers=3), "held": ONE},
        {"held": held(nats=[volume("nats", 0), volume("nats", 2), volume("nats", 4, deleting=True)])},
        {"held": held(nats=[volume("nats", n, size="1Gi") for n in range(3)], chronograf=[volume("chronograf")])},
        {"mongo": Fresh(MongoSeen(reader=False))},
        {"metrics": None},
        {"credentials": Stale(SECRET, 0.0, "the API server is away")},
        {
            "settings": settings(mongoExpress={"enabled": True}),
            "mongo": Stale(MongoSeen(reader=False), 0.0, "it was given a user"),
        },
        {"settings": settings(values={"a": "x" * (types.MOST_VALUES - 8)})},
    ],
    ids=[
        "two become three",
        "a cluster grows",
        "of three the first has its volume",
        "a volume that goes counts no more",
        "none is too small",
        "nobody reads",
        "no metrics",
        "a Secret that was there",
        "the reader was just made",
        "as many values as may be",
    ],
)
def test_what_keeps_nothing(changed: dict[str, Any]) -> None:
    """It looks like one of the rows above and is none."""
    assert decided(seen(**changed)).standing is None


def test_a_volume_grows_by_its_claim() -> None:
    """One patch, which names the size that was found."""
    (patch,) = verdict(seen(held=SMALL)).actions

    assert (builtin.VOLUME_CLAIM, "data-kre-mongo-0") == (patch.resource, patch.ref.name)
    assert "5Gi" == patch.ops[0]["value"]


def remembered(it: Seen) -> list[tuple[decision.Reason, dict[str, Any]]]:
    acts = decided(it).acts
    return [
        (act.reason, action.fields) for act in acts for action in act.actions if isinstance(action, decision.Remember)
    ]


def test_how_many_servers_nats_has_is_written_down_once_it_is_whole() -> None:
    """Where there were others before, and not sooner: streams may lie on the new ones from then on."""
    it = seen(status=status(natsServers=2), held=ONE)

    assert [(Reason.WHOLE, {"natsServers": 3})] == remembered(it)
    assert decided(it).standing is None
    assert [] == remembered(seen(status=status(natsServers=2), held=ONE, nats=Fresh(NatsSeen("", ()))))


@pytest.mark.parametrize("before", [0, 1, 5])
def test_how_many_servers_nats_is_made_of_is_written_down_before(before: int) -> None:
    """Their volumes come one after another: the first one alone is no NATS of one server. Whatever was, is gone."""
    it = seen(release=release_states.nothing(), status=status(natsServers=before))

    first, then = remembered(it)
    assert (Reason.MAKING_NATS, {"natsServers": 3}) == first
    assert "Installing" == verdict(it).reason == then[0]
    assert [then] == remembered(seen(release=release_states.nothing(), status=status(natsServers=3)))


@pytest.mark.parametrize(
    "left",
    [
        {"held": ONE},
        {"held": Fresh((HeldSeen("nats", pods=("kre-nats-0",)),))},
        {"components": (types.Component("nats", 0, 1),)},
    ],
    ids=["a volume", "a pod", "a StatefulSet"],
)
def test_nats_is_gone_once_nothing_of_it_is_left(left: dict[str, Any]) -> None:
    """It may be without volumes, and then its streams are with its pods."""
    assert Reason.NATS_CONVERTS == verdict(seen(status=status(natsServers=1), **left)).reason


def test_a_single_nats_needs_no_leader() -> None:
    """It is one by itself."""
    one = settings(nats_streaming={"replicas": 1})

    assert (
        decided(seen(settings=one, status=status(natsServers=1), nats=Fresh(NatsSeen("", SERVERS[:1])))).standing
        is None
    )


def test_helm_comes_between() -> None:
    """What helm must not break is before it, what is asked of the servers after it."""
    nothing = release_states.nothing()

    assert "Installing" == verdict(seen(release=nothing, mongo=DOWN)).reason
    assert Reason.NATS_CONVERTS == verdict(seen(release=nothing, status=status(natsServers=1), held=ONE)).reason


def test_mongo_is_initiated_although_others_are_not_ready() -> None:
    """As who is not ready may wait for it; but of mongo that tells nothing, its pod's own words are told."""
    weak = release_states.settled(
        children=(release_states.child(ready=False, reason="ImagePull", message="no such image"),)
    )

    reads = settings(mongoExpress={"enabled": True})

    assert Reason.INITIATING_MONGO == verdict(seen(release=weak, mongo=Fresh(MongoSeen(initiated=False)))).reason
    without = {"settings": reads, "mongo": Fresh(MongoSeen(reader=False))}
    assert Reason.MAKING_READER == verdict(seen(release=weak, **without)).reason
    elects = {"settings": reads, "mongo": Fresh(MongoSeen(primary=False, reader=False))}
    assert "ImagePull" == verdict(seen(release=weak, **elects)).reason
    assert "ImagePull" == verdict(seen(release=weak, mongo=DOWN)).reason


# --- deletion ---------------------------------------------------------------------------------------------------------

ORPHAN = release_states.settled(policy=observation.Policy(orphan=True))
GONE = release_states.settled(record=None)
DELETE = settings(reclaim="Delete")
HELD = Fresh((VersionSeen("one"),))
DELETION: list[tuple[dict[str, Any], type[Any], str, str]] = [
    ({"namespace_ending": True}, Act, Reason.LEAVING, "namespace is being deleted with everything in it"),
    ({"allowed": False, "binding": Fresh(None)}, Act, Reason.LEAVING, "nothing was made"),
    ({"binding": freshness.not_yet("rights")}, Wait, Reason.BINDING, "rights not looked at yet"),
    ({"binding": Fresh(None)}, Act, Reason.BINDING, "rights in ns are bound"),
    ({"release": ORPHAN}, Act, "Orphaning", "the release stays"),
    ({"versions": freshness.not_yet("versions")}, Wait, Reason.CLUSTER_UNKNOWN, "versions not looked at yet"),
    (
        {"versions": Fresh((VersionSeen("going", deleting=True), VersionSeen("one"), VersionSeen("two")))},
        Blocked,
        Reason.VERSIONS_STAY,
        "^RuntimeVersion one, two runs in this Runtime",
    ),
    (
        {"versions": Fresh((VersionSeen("going", deleting=True),))},
        Wait,
        Reason.VERSIONS_LEAVE,
        "^RuntimeVersion going is being deleted, and goes first$",
    ),
    ({"versions": HELD, "release": ORPHAN}, Act, "Orphaning", "the release stays"),
    ({"versions": HELD, "namespace_ending": True}, Act, Reason.LEAVING, "namespace is being deleted"),
    ({"versions": HELD, "older": "first"}, Act, "Uninstalling", "is uninstalled"),
    ({"release": release_states.settled(claim=None)}, Act, "Leaving", "no release is claimed"),
    ({}, Act, "Uninstalling", "is uninstalled"),
    ({"release": GONE}, Act, "Leaving", "nothing is left of the release"),
    ({"release": GONE, "held": held(mongo=[volume("mongo")])}, Act, "Leaving", "nothing is left of the release"),
    (
        {"release": GONE, "settings": DELETE, "held": held(mongo=[volume("mongo")])},
        Act,
        Reason.CLEARING_VOLUME,
        "data-kre-mongo-0 is deleted",
    ),
    (
        {"release": GONE, "settings": DELETE, "held": held(chronograf=[volume("chronograf")])},
        Act,
        Reason.CLEARING_VOLUME,
        "data-kre-chronograf-0 is deleted",
    ),
    (
        {"release": GONE, "settings": DELETE, "held": held(mongo=[volume("mongo", deleting=True)])},
        Wait,
        Reason.CLEARING_VOLUME,
        "data-kre-mongo-0 is being deleted",
    ),
    (
        {"release": GONE, "settings": DELETE, "held": freshness.not_yet("volumes")},
        Wait,
        Reason.CLUSTER_UNKNOWN,
        "not looked at",
    ),
    (
        {"release": GONE, "settings": DELETE, "credentials": freshness.not_yet("credentials")},
        Wait,
        Reason.CREDENTIALS_UNKNOWN,
        "not looked at",
    ),
]


@pytest.mark.parametrize(
    ("changed", "kind", "reason", "message"), DELETION, ids=[f"{row[2]}-{n}" for n, row in enumerate(DELETION)]
)
def test_how_a_runtime_ends(changed: dict[str, Any], kind: type[Any], reason: str, message: str) -> None:
    """The release, then by spec.reclaim what it kept."""
    found = verdict(seen(**changed), deleting=True)

    assert isinstance(found, kind)
    assert reason == found.reason
    assert re.search(message, found.message), found.message


def test_who_holds_up_a_deletion_is_named_with_a_command_for_one_of_them() -> None:
    """The first of those that stay, and of those that go the first that is there still."""
    both = (VersionSeen("going", deleting=True), VersionSeen("leaves", deleting=True))
    ends = verdict(seen(versions=Fresh(both)), deleting=True)
    stays = verdict(seen(versions=Fresh((*both, VersionSeen("one"), VersionSeen("two")))), deleting=True)

    assert (900, "see why with kubectl describe runtimeversion going -n ns") == (ends.within, ends.fix)
    assert "delete each once it is not needed: kubectl delete runtimeversion one -n ns" == stays.fix


def test_a_volume_whose_pod_is_there_stays_until_that_is_gone() -> None:
    """Nobody's data goes under a server that runs."""
    used = Fresh((HeldSeen("mongo", (volume("mongo"),), ("kre-mongo-0",)),))
    found = verdict(seen(release=GONE, settings=DELETE, held=used), deleting=True)

    assert isinstance(found, Wait)
    assert Reason.CLEARING_VOLUME == found.reason


@pytest.mark.parametrize(
    ("changed", "removed"),
    [
        ({"settings": DELETE}, ["kre-credentials", "kre-credentials-in-use", "kre-nats-login"]),
        ({}, []),
        ({"settings": DELETE, "credentials": Fresh(CredentialsSeen("s", used="i", system="n"))}, []),
        (
            {"settings": settings(reclaim="Delete", credentialsSecretRef={"name": "mine"})},
            ["kre-credentials-in-use", "kre-nats-login"],
        ),
        (
            {
                "settings": settings(reclaim="Delete", credentialsSecretRef={"name": "mine"}),
                "credentials": secret(former="f"),
            },
            ["kre-credentials", "kre-credentials-in-use", "kre-nats-login"],
        ),
        ({"settings": DELETE, "credentials": Fresh(CredentialsSeen())}, []),
    ],
    ids=["made", "kept with the volumes", "not made by moorage", "the user's own", "made before that", "gone already"],
)
def test_the_secret_goes_with_the_volumes_that_need_it(changed: dict[str, Any], removed: list[str]) -> None:
    """And none that moorage did not make."""
    acts = decided(seen(release=GONE, **changed), deleting=True).acts
    found = [it for act in acts for it in act.actions if isinstance(it, decision.Delete)]

    assert removed == [it.ref.name for it in found if it.resource == builtin.SECRET]
    assert bool(removed) == (Reason.REMOVING_CREDENTIALS in [act.reason for act in acts])
    assert [False] == [it.present for act in acts for it in act.actions if isinstance(it, decision.EditFinalizer)]
    assert all(it.ref.uid for it in found)


@pytest.mark.parametrize(("neighbours", "unbound"), [(0, True), (1, False)])
def test_the_last_of_a_namespace_gives_the_rights_back(neighbours: int, unbound: bool) -> None:
    """Who is not the last is held to that by a guard."""
    actions = verdict(seen(release=GONE, neighbours=neighbours), deleting=True).actions

    assert unbound == any(it.resource == builtin.ROLE_BINDING for it in actions if isinstance(it, decision.Delete))
    assert unbound != any(guard.check == "others_stay" for it in actions for guard in it.require)
    assert isinstance(actions[-1], decision.EditFinalizer)


# --- facts ------------------------------------------------------------------------------------------------------------

FACTS: list[tuple[dict[str, Any], str, bool | None, Reason]] = [
    ({"mongo": DOWN}, "MongoReady", None, Reason.MONGO_UNKNOWN),
    ({"mongo": Fresh(MongoSeen(initiated=False))}, "MongoReady", False, Reason.INITIATING_MONGO),
    ({"mongo": Fresh(MongoSeen(primary=False))}, "MongoReady", False, Reason.MONGO_NOT_PRIMARY),
    ({"mongo": Fresh(MongoSeen(refused="no"))}, "MongoReady", False, Reason.MONGO_REFUSES),
    ({"nats": DOWN}, "NatsReady", None, Reason.NATS_UNKNOWN),
    ({"nats": Fresh(NatsSeen("", SERVERS))}, "NatsReady", False, Reason.NATS_NOT_WHOLE),
    ({"store": DOWN}, "ObjectStoreReady", None, Reason.STORE_UNKNOWN),
    ({"store": Fresh(False)}, "ObjectStoreReady", False, Reason.STORE_UNKNOWN),
    ({"metrics": Fresh(False)}, "MetricsReady", False, Reason.METRICS_UNKNOWN),
    ({"metrics": None}, "MetricsReady", True, Reason.METRICS_OFF),
    (
        {"settings": settings(minio={"credentials": {"accessKey": "abc", "secretKey": "abcdefgh"}})},
        "SecretsKept",
        False,
        Reason.PLAIN_PASSWORD,
    ),
    ({}, "SecretsKept", True, Reason.SECRETLY),
    ({"published": PublishedSeen("", "")}, "Published", False, Reason.NOTHING_PUBLISHED),
    ({"published": PublishedSeen("v1", "v1")}, "Published", True, Reason.VERSION_PUBLISHED),
    ({"published": PublishedSeen("v1", "v1", "node a")}, "Published", True, Reason.PUBLISHED_FAILS),
    ({"published": PublishedSeen("v1", "", "node a")}, "Published", False, Reason.PUBLISHED_LATER),
    ({"published": PublishedSeen("v1", None)}, "Published", None, Reason.CLUSTER_UNKNOWN),
    ({}, "NatsReady", True, Reason.WHOLE),
    ({}, "MongoReady", True, Reason.WHOLE),
    ({}, "ObjectStoreReady", True, Reason.WHOLE),
    ({}, "MetricsReady", True, Reason.WHOLE),
]


@pytest.mark.parametrize(("changed", "type_", "status_", "reason"), FACTS, ids=[f"{row[1]}-{row[3]}" for row in FACTS])
def test_facts(changed: dict[str, Any], type_: str, status_: bool | None, reason: Reason) -> None:
    """Each is claimed for what was asked."""
    found = next(each for each in decided(seen(**changed)).facts if each.type == type_)

    assert (status_, reason) == (found.status, found.reason)
    assert found.message or status_ or reason == Reason.NOTHING_PUBLISHED


@pytest.mark.parametrize(
    ("published", "message"),
    [
        (PublishedSeen("v1", "v1", "node a"), "node a"),
        (PublishedSeen("v2", "v1", "node a"), "version v2 is not led to yet: node a; calls go to v1"),
        (PublishedSeen("v2", ""), "version v2 is not led to yet; calls go to the default page"),
    ],
)
def test_what_is_published_is_told_in_its_words(published: PublishedSeen, message: str) -> None:
    """On the Runtime, too."""
    found = next(each for each in decided(seen(published=published)).facts if each.type == "Published")

    assert message == found.message


@pytest.mark.parametrize(
    ("before", "published", "told"),
    [
        ({}, PublishedSeen("v1", "v1"), ("v1", None)),
        ({"publishedVersion": "v1"}, PublishedSeen("v1", "v1"), (None, None)),
        ({"publishedVersion": "v1", "previousVersion": "v0"}, PublishedSeen("v2", "v1"), (None, None)),
        ({"publishedVersion": "v1", "previousVersion": "v0"}, PublishedSeen("v2", "v2"), ("v2", "v1")),
        ({"publishedVersion": "v2", "previousVersion": "v1"}, PublishedSeen("v2", "v1"), (None, None)),
        ({"publishedVersion": "v1"}, PublishedSeen("", ""), ("", "v1")),
        ({"previousVersion": "v1"}, PublishedSeen("v2", "v2"), ("v2", None)),
        ({"publishedVersion": "v1"}, PublishedSeen("", None), (None, None)),
    ],
    ids=["first", "at rest", "on its way", "next", "another stands in", "none", "after none", "unknown"],
)
def test_what_was_published_before_is_known(
    before: dict[str, str], published: PublishedSeen, told: tuple[str | None, str | None]
) -> None:
    """By what was led to as it should be; what only stood in does not count. None: it stays as it was told."""
    found = decided(seen(status=status(**before), published=published)).report

    assert told == (found.get("publishedVersion"), found.get("previousVersion"))


def test_who_was_not_asked_yet_stands_as_it_stood() -> None:
    """As after a restart: neither conditions nor phase go back and forth."""
    stood = {"type": "NatsReady", "status": "True", "reason": "Whole", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    found = decided(seen(nats=freshness.not_yet("nats"), status=status(conditions=[stood])))

    assert True is next(each.status for each in found.facts if each.type == "NatsReady")
    assert "phase" not in found.report
    asked = decided(seen(nats=Fresh(NatsSeen("", ())), status=status(conditions=[stood])))
    assert False is next(each.status for each in asked.facts if each.type == "NatsReady")
    assert "CREATING" == decided(seen(metrics=None, mongo=DOWN)).report["phase"]


@pytest.mark.parametrize(
    ("changed", "phase"),
    [
        ({}, "STARTED"),
        ({"held": SMALL}, "STARTED"),
        ({"mongo": DOWN}, "CREATING"),
        ({"older": "first"}, "ERROR"),
    ],
)
def test_phases_are_the_product_s(changed: dict[str, Any], phase: str) -> None:
    """In its words; what a person must do something about is an ERROR."""
    assert phase == decided(seen(**changed)).report["phase"]


def test_a_size_that_could_not_be_may_go_back_to_what_there_is() -> None:
    """The smallest volume of each server is told, by which admission lets the spec go back; one that goes is none."""
    going = volume("nats", 2, size="1Gi", deleting=True)
    there = held(
        mongo=[volume("mongo", size="5Gi")],
        nats=[volume("nats", 0, size="3Gi"), volume("nats", 1, size="2048Mi"), going],
    )

    assert types.VolumeSizes(mongo="5Gi", nats="2048Mi") == decided(seen(held=there)).report["volumeSizes"]
    assert "volumeSizes" not in decided(seen(held=freshness.not_yet("volumes"))).report


def test_components_are_told_when_they_are_known() -> None:
    """And stay as they were told else."""
    mongo = types.Component("mongo", 1, 1)

    assert (mongo,) == decided(seen(components=(mongo,))).report["components"]
    assert "components" not in decided(seen(held=freshness.not_yet("volumes"))).report


def test_every_reason_is_reached_and_told() -> None:
    """None is there for nothing; each says what comes next."""
    reached = {row[2] for row in STEPS} | {row[2] for row in DELETION} | {row[3] for row in FACTS}

    shrinking = {
        Reason.NATS_STREAMS_UNKNOWN,
        Reason.NATS_LOGIN,
        Reason.NATS_STREAMS_STAY,
        Reason.NATS_EMPTIES,
        Reason.NATS_SHRINKS,
        Reason.NATS_RETURNS,
    }  # see test_runtime_shrinks
    told = {Reason.NATS_REFUSES}  # an outcome: see test_nats_cluster
    assert {Reason.REMOVING_CREDENTIALS, Reason.MAKING_NATS} | shrinking | told == set(Reason) - reached
    acts = decided(seen(release=GONE, settings=DELETE), deleting=True).acts
    assert Reason.REMOVING_CREDENTIALS in {act.reason for act in acts}
    assert all(reason.help and reason.next for reason in Reason)
