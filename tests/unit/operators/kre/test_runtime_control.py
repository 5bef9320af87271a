"""What is decided for a Runtime beside its release: each step, verdict and reason, by tables."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from moorage.api import meta
from moorage.operators.kre import kinds
from moorage.operators.kre.reasons import RuntimeReason as Reason
from moorage.operators.kre.runtime import control, types
from moorage.operators.kre.runtime.control import CredentialsSeen, MongoSeen, NatsSeen, Seen, VersionSeen
from moorage.runtime import decision, freshness
from moorage.runtime.decision import Act, Blocked, Wait
from moorage.runtime.freshness import Failed, Fresh, Stale
from tests.unit.helm import release_states

DOWN = Failed("Unreachable", "it does not answer")
SERVERS = ("kre-nats-0", "kre-nats-1", "kre-nats-2")
ONE, OTHER = VersionSeen("one", "v1"), VersionSeen("other", "v2")


def spec(**changed: Any) -> types.RuntimeSpec:
    return msgspec.convert({"nats_streaming": {"replicas": 3}, **changed}, types.RuntimeSpec)


def status(**changed: Any) -> types.RuntimeStatus:
    return msgspec.convert({"natsServers": 3, **changed}, types.RuntimeStatus)


def seen(**changed: Any) -> Seen:
    """A Runtime that is whole and publishes v1, but for what is changed."""
    finalizers = changed.pop("finalizers", (kinds.RUNTIME_FINALIZER,))
    base: dict[str, Any] = {
        "meta": meta.ObjectMeta(name="demo", namespace="ns", finalizers=finalizers),
        "spec": spec(publishedVersion="v1"),
        "status": status(published="v1"),
        "credentials": Fresh(CredentialsSeen()),
        "nats": Fresh(NatsSeen("kre-nats-0", SERVERS)),
        "mongo": Fresh(MongoSeen()),
        "store": Fresh(True),
        "versions": Fresh((ONE, OTHER)),
        "active": "v1",
        "release": release_states.settled(),
    }
    return Seen(**base | changed)


def decided(it: Seen, *, deleting: bool = False) -> decision.Decision:
    steps = control.DELETION_STEPS if deleting else control.STEPS
    return decision.decide(it, steps=steps, facts=control.FACTS, report=control.report)


def verdict(it: Seen, *, deleting: bool = False) -> Any:
    """Where the steps stop."""
    standing = decided(it, deleting=deleting).standing
    assert standing is not None, "all steps are done"
    return standing.verdict


def test_what_is_whole_needs_nothing() -> None:
    """All steps are done, and what readiness needs is true."""
    found = decided(seen())

    assert found.standing is None
    facts = {each.type: each.status for each in found.facts}
    assert dict.fromkeys(control.READY_FACTS, True) == {name: facts[name] for name in control.READY_FACTS}
    assert (True, True) == (facts["Published"], facts["SecretsKept"])
    assert {"phase": "STARTED", "versions": 2} == found.report


NAMED = spec(credentialsSecretRef={"name": "mine"})
STEPS: list[tuple[dict[str, Any], type[Any], Reason, str]] = [
    ({"older": "first"}, Blocked, Reason.SECOND_RUNTIME, "Runtime first, which is older, is in this namespace"),
    ({"finalizers": ()}, Act, Reason.TAKING_CARE, "the finalizer is set"),
    ({"credentials": freshness.not_yet("Secret")}, Wait, Reason.CREDENTIALS_UNKNOWN, "Secret not looked at yet"),
    ({"credentials": Fresh(CredentialsSeen(there=False))}, Act, Reason.MAKING_CREDENTIALS, "is made"),
    (
        {"credentials": Fresh(CredentialsSeen(there=False)), "spec": NAMED},
        Blocked,
        Reason.CREDENTIALS_INVALID,
        "Secret mine is not there",
    ),
    (
        {"credentials": Fresh(CredentialsSeen(fault="Secret mine has no key mongoUser")), "spec": NAMED},
        Blocked,
        Reason.CREDENTIALS_INVALID,
        "no key mongoUser",
    ),
    ({"status": status(natsServers=1)}, Blocked, Reason.NATS_CONVERTS, "streams on 1 server, and .*replicas is 3"),
    ({"spec": spec(nats_streaming={"replicas": 1})}, Blocked, Reason.NATS_CONVERTS, "on 3 servers, .* is 1"),
    ({"status": status(natsServers=5), "nats": DOWN}, Wait, Reason.NATS_UNKNOWN, "it does not answer"),
    (
        {"status": status(natsServers=5), "nats": Stale(NatsSeen(), 0.0, "no answer")},
        Wait,
        Reason.NATS_UNKNOWN,
        "asked anew: no answer",
    ),
    (
        {"status": status(natsServers=5), "nats": Fresh(NatsSeen("a", (*SERVERS, "kre-nats-4"), ("s_1",)))},
        Act,
        Reason.NATS_SHRINKS,
        "streams are still on kre-nats-4: s_1",
    ),
    (
        {"status": status(natsServers=5), "nats": Fresh(NatsSeen("a", (*SERVERS, "kre-nats-4")))},
        Act,
        Reason.NATS_SHRINKS,
        "kre-nats-4 is taken out",
    ),
    ({"status": status(natsServers=5)}, Act, Reason.NATS_SHRINKS, "kre-nats-4 has left the cluster"),
    ({"mongo": DOWN}, Wait, Reason.MONGO_UNKNOWN, "it does not answer"),
    ({"mongo": Fresh(MongoSeen(initiated=False))}, Act, Reason.INITIATING_MONGO, "made a replica set"),
    ({"mongo": Fresh(MongoSeen(primary=False))}, Wait, Reason.MONGO_NOT_PRIMARY, "no primary"),
    ({"nats": DOWN}, Wait, Reason.NATS_UNKNOWN, "it does not answer"),
    (
        {"nats": Fresh(NatsSeen("", SERVERS[:1]))},
        Wait,
        Reason.NATS_NOT_WHOLE,
        "no leader; 1 of 3 servers answer: kre-n",
    ),
    ({"nats": Fresh(NatsSeen("kre-nats-0", SERVERS[:2]))}, Wait, Reason.NATS_NOT_WHOLE, "^2 of 3 NATS servers answer"),
    ({"store": DOWN}, Wait, Reason.STORE_UNKNOWN, "it does not answer"),
    ({"store": Fresh(False)}, Wait, Reason.STORE_UNKNOWN, "MinIO is not ready"),
    ({"versions": freshness.not_yet("versions")}, Wait, Reason.VERSIONS_UNKNOWN, "versions not looked at yet"),
    (
        {"spec": spec(publishedVersion="v9")},
        Blocked,
        Reason.NO_SUCH_VERSION,
        "v9, which there is not; there are: v1, v2",
    ),
    ({"spec": spec(publishedVersion="v2")}, Act, Reason.PUBLISHING, "led to version v2: version v2 is to be published"),
    ({"spec": spec()}, Act, Reason.PUBLISHING, "led to the default page: nothing is to be published"),
    (
        {"spec": spec(publishedVersion="v2"), "versions": Fresh((ONE, VersionSeen("other", "v2", ready=False)))},
        Wait,
        Reason.VERSION_NOT_STARTED,
        r"version v2 \(RuntimeVersion other\) can't answer yet; version v1 still answers",
    ),
    (
        {"versions": Fresh((VersionSeen("one", "v1", broken="node a crashes"),))},
        Blocked,
        Reason.PUBLISHED_BROKEN,
        "version v1, which is published, has broken: node a crashes",
    ),
    (
        {"status": status(givenUp="v1", published="v2"), "active": "v2"},
        Blocked,
        Reason.GONE_BACK,
        "version v1 broke, and version v2 answers instead",
    ),
    ({"status": status(givenUp="v0", published="v1")}, Act, Reason.PUBLISHING, "v0 may be published again"),
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


def test_going_back_is_written_down_and_not_tried_in_a_loop() -> None:
    """The way there and what comes of it: until the spec names another version, the one before answers."""
    broken = Fresh((VersionSeen("one", "v1", broken="node a crashes"), OTHER))
    went = spec(publishedVersion="v1", publishOnFailure="Previous")
    before = seen(spec=went, versions=broken, status=status(published="v1", previous="v2"))
    found = verdict(before)

    assert Reason.GOING_BACK == found.reason
    note, call = found.actions
    assert {"published": "v2", "previous": "v1", "givenUp": "v1"} == note.fields
    assert ("publish", {"version": "v2"}) == (call.operation, call.args)
    after = status(**note.fields)
    for versions in (broken, Fresh((ONE, OTHER))):  # it stays so when the version has healed
        stays = verdict(seen(spec=went, versions=versions, status=after, active="v2"))
        assert Reason.GONE_BACK == stays.reason
    assert decided(seen(spec=spec(publishedVersion="v2"), status=status(published="v2"), active="v2")).standing is None


@pytest.mark.parametrize(
    "previous",
    [(), (VersionSeen("other", "v2", ready=False),), (VersionSeen("other", "v2", broken="too"),)],
    ids=["gone", "not ready", "broken too"],
)
def test_there_is_nothing_to_go_back_to(previous: tuple[VersionSeen, ...]) -> None:
    """Then it stays as it is, and a person is told."""
    versions = Fresh((VersionSeen("one", "v1", broken="node a crashes"), *previous))
    went = spec(publishedVersion="v1", publishOnFailure="Previous")

    assert Reason.PUBLISHED_BROKEN == verdict(seen(spec=went, versions=versions, status=status(previous="v2"))).reason


def test_who_answered_before_is_written_down_before_the_switch() -> None:
    """As the way back; the switch itself is one call."""
    note, call = verdict(seen(spec=spec(publishedVersion="v2"))).actions

    assert {"published": "v2", "previous": "v1"} == note.fields
    assert ("publish", {"version": "v2"}) == (call.operation, call.args)


def test_how_many_servers_nats_has_is_written_down_once_it_is_whole() -> None:
    """And not before: streams may lie on them from then on."""
    it = seen(status=status(natsServers=0))
    acts = decided(it).acts

    assert [{"natsServers": 3}] == [
        action.fields for act in acts for action in act.actions if act.reason is Reason.WHOLE
    ]
    assert decided(it).standing is None
    assert () == decided(seen(status=status(natsServers=0), nats=Fresh(NatsSeen("", ())))).acts


def test_a_single_nats_needs_no_leader() -> None:
    """It is one by itself."""
    one = spec(nats_streaming={"replicas": 1}, publishedVersion="v1")

    assert decided(seen(spec=one, status=status(natsServers=1), nats=Fresh(NatsSeen("", SERVERS[:1])))).standing is None


def test_helm_comes_between() -> None:
    """What helm must not break is before it, what is asked of the servers after it."""
    nothing = release_states.nothing()
    made = decided(seen(release=nothing, mongo=DOWN))

    assert made.standing is not None
    assert "Installing" == made.standing.verdict.reason  # type: ignore[union-attr]
    assert Reason.NATS_CONVERTS == verdict(seen(release=nothing, status=status(natsServers=1))).reason


DELETION: list[tuple[dict[str, Any], str]] = [
    ({"versions": freshness.not_yet("versions")}, Reason.VERSIONS_UNKNOWN),
    ({}, Reason.VERSIONS_REMAIN),
    ({"versions": Fresh(())}, "Uninstalling"),
    (
        {
            "release": release_states.settled(
                policy=msgspec.structs.replace(release_states.settled().policy, orphan=True)
            )
        },
        "Orphaning",
    ),
]


@pytest.mark.parametrize(("changed", "reason"), DELETION, ids=[f"{reason}" for _, reason in DELETION])
def test_a_runtime_ends_after_its_versions(changed: dict[str, Any], reason: str) -> None:
    """What they have in NATS is removed while there is one."""
    found = verdict(seen(**changed), deleting=True)

    assert reason == found.reason
    if reason is Reason.VERSIONS_REMAIN:
        assert "kubectl delete runtimeversions one other" == found.fix


FACTS = [
    ({"mongo": DOWN}, "MongoReady", None, Reason.MONGO_UNKNOWN),
    ({"mongo": Fresh(MongoSeen(initiated=False))}, "MongoReady", False, Reason.INITIATING_MONGO),
    ({"mongo": Fresh(MongoSeen(primary=False))}, "MongoReady", False, Reason.MONGO_NOT_PRIMARY),
    ({"nats": DOWN}, "NatsReady", None, Reason.NATS_UNKNOWN),
    ({"nats": Fresh(NatsSeen("", SERVERS))}, "NatsReady", False, Reason.NATS_NOT_WHOLE),
    ({"store": DOWN}, "ObjectStoreReady", None, Reason.STORE_UNKNOWN),
    ({"store": Fresh(False)}, "ObjectStoreReady", False, Reason.STORE_UNKNOWN),
    ({"spec": spec()}, "Published", False, Reason.NOTHING_PUBLISHED),
    ({"active": ""}, "Published", False, Reason.VERSION_NOT_STARTED),
    ({"versions": Fresh((VersionSeen("one", "v1", broken="b"),))}, "Published", False, Reason.PUBLISHED_BROKEN),
    (
        {"spec": spec(minio={"credentials": {"accessKey": "a", "secretKey": "b"}})},
        "SecretsKept",
        False,
        Reason.PLAIN_PASSWORD,
    ),
    ({}, "SecretsKept", True, Reason.SECRETLY),
    ({}, "NatsReady", True, Reason.WHOLE),
]


@pytest.mark.parametrize(("changed", "type_", "status_", "reason"), FACTS, ids=[f"{row[1]}-{row[3]}" for row in FACTS])
def test_facts(changed: dict[str, Any], type_: str, status_: bool | None, reason: Reason) -> None:
    """Each is claimed for what was asked."""
    found = next(each for each in decided(seen(**changed)).facts if each.type == type_)

    assert (status_, reason) == (found.status, found.reason)
    assert found.message or status_


@pytest.mark.parametrize(
    ("changed", "phase"),
    [
        ({}, "STARTED"),
        ({"spec": spec(publishedVersion="v2")}, "STARTED"),
        ({"mongo": DOWN}, "CREATING"),
        ({"older": "first"}, "ERROR"),
    ],
)
def test_phases_are_the_product_s(changed: dict[str, Any], phase: str) -> None:
    """In its words; what a person must do something about is an ERROR."""
    assert phase == decided(seen(**changed)).report["phase"]


def test_every_reason_is_reached_and_told() -> None:
    """None is there for nothing; each says what comes next."""
    reached = {row[2] for row in STEPS} | {reason for _, reason in DELETION} | {row[3] for row in FACTS}

    assert set(Reason) == {each for each in reached if isinstance(each, Reason)} | {Reason.GOING_BACK}
    assert all(reason.help and reason.next for reason in Reason)
