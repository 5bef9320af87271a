"""What is true of an XsldCache, whatever its steps do; and the fields of its status."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from moorage.api import conditions
from moorage.children import apply
from moorage.operators.xsld.cache import control, facts, member_trouble, observation, types
from moorage.operators.xsld.group import answers
from moorage.runtime import decision, freshness
from tests.unit.xsld import states
from tests.unit.xsld.states import DONE, NOW, ago, cache, fresh, task

DOWN = freshness.Failed("Down", "the server is down")
NOT_YET = freshness.not_yet("it")
ONE_SYNC = answers.Grid("s", "Online", {"numSyncReplicas": "1", "numAsyncReplicas": "0"})
ONE_ASYNC = answers.Grid("a", "Online", {"numSyncReplicas": "0", "numAsyncReplicas": "1"})
NO_REPLICA = answers.Grid("b", "Online", {"numSyncReplicas": "0", "numAsyncReplicas": 0})


class True_(msgspec.Struct, frozen=True):  # noqa: N801 - reads as the table does
    """An observation, and what a fact says of it."""

    seen: observation.Seen
    status: bool | None
    reason: str
    says: str = ""


def was(status: conditions.Verdict, *, generation: int = 1) -> tuple[conditions.Condition, ...]:
    """How Available stood."""
    return (conditions.Condition("Available", status, "", "", generation, ago(100)),)


def row(it: states.It, status: bool | None, reason: str, says: str = "") -> True_:
    return True_(it.seen, status, reason, says)


unavailable = cache().says(conditions=was("False"))
begun = cache(4).says(conditions=was("True"))

TABLE: dict[str, dict[str, True_]] = {
    "Valid": {
        "sound": row(cache(), True, "Stands"),
        "a namespace that may hold none": row(
            cache().fact(allowed=False), False, "NamespaceNotAllowed", "namespace ns"
        ),
        "wrong credentials": row(
            cache().fact(credentials=freshness.Fresh("no key")), False, "CredentialsInvalid", "no key"
        ),
        "wrong when last seen": row(
            cache().fact(credentials=freshness.Stale("no key", 0.0, "")), False, "CredentialsInvalid"
        ),
        "not known": row(cache().fact(credentials=NOT_YET, entrypoint=NOT_YET), True, "Stands"),
    },
    "Available": {
        "all are online": row(unavailable, True, "Available", "3 of 3"),
        "not looked at yet": row(fresh().fact(polled=NOT_YET), None, "Looking"),
        "can't be looked at": row(cache().fact(polled=DOWN), None, "Looking", "the server is down"),
        "asked anew: as it was last seen": row(
            unavailable.fact(polled=freshness.Stale(cache().polled, 0.0, "x")), True, "Available"
        ),
        "the primary is away": row(cache().mute(0), False, "Unavailable", "the primary does not answer"),
        "the primary has lost its state": row(cache().off(0).but(silent={}).blank(0), False, "Unavailable"),
        "nobody answers": row(cache().mute(0, 1, 2), False, "Unavailable", "0 of 3"),
        "the pods are not known": row(cache().fact(objects=DOWN), False, "Unavailable"),
        "it was, and most are online": row(cache().off(2), True, "MajorityOnline", "2 of 3"),
        "it was, and half are online": row(begun.off(2, 3), False, "MembersNotOnline", "2 of 4"),
        "it was, and more than half are online": row(begun.off(3), True, "MajorityOnline"),
        "it was, and few are online": row(cache().off(1, 2), False, "MembersNotOnline", "1 of 3"),
        "it was not, and most are online": row(unavailable.off(2), False, "MembersNotOnline"),
        "it was not, as its primary restarted, and most are online": row(
            unavailable.says(good_image="x").off(2), True, "MajorityOnline", "2 of 3 that have joined"
        ),
        "the copy has taken over": row(
            unavailable.says(good_image="x").primary(1).off(0), True, "MajorityOnline", "2 of 3"
        ),
        "the first step of an update": row(cache().wants(image="new").off(2), True, "MajorityOnline"),
        "more are wanted than have joined": row(
            cache().wants(size=9), True, "MajorityOnline", "3 of 3 that have joined"
        ),
        "who joins does not count": row(
            cache(2).wants(size=4).member(2, online=False, status="Joining"), True, "MajorityOnline", "2 of 2"
        ),
        "nor one that we have join, before its pod is ready": row(
            cache(1).wants(size=2).pod(1, ready=False).member(1).asked("Join", 1, 1), True, "MajorityOnline", "1 of 1"
        ),
        "few of those who have joined": row(cache().wants(size=4).off(1, 2), False, "MembersNotOnline", "1 of 3"),
        "nothing is known of before": row(cache().says(conditions=()).off(2), False, "MembersNotOnline"),
        "a pod that is down is told before the group notices": row(
            unavailable.pod(2, running=False).fact(polled=freshness.Fresh(cache().polled)), False, "MembersNotOnline"
        ),
        "members beyond the size do not count": row(
            cache(4).wants(size=3).off(2).says(conditions=()), False, "MembersNotOnline", "2 of 3"
        ),
        "more than wanted": row(cache(4).wants(size=3), True, "Available", "3 of 3"),
        "members that have not joined": row(fresh(), False, "MembersNotOnline", "1 of 3"),
    },
    "MembersReady": {
        "all": row(cache(), True, "AllOnline", "3 members are Online"),
        "one is off": row(cache().off(2), False, "MembersNotOnline", "not online: c-2"),
        "one has not joined": row(cache().left(1), False, "MembersNotOnline", "not online: c-1"),
        "nobody tells": row(cache().mute(0, 1, 2), None, "GroupUnreachable"),
        "not asked": row(cache().fact(polled=DOWN), None, "GroupUnreachable"),
        "a pod is down": row(
            cache().pod(1, running=False).fact(polled=freshness.Fresh(cache().polled)), False, "MembersNotOnline"
        ),
    },
    "Degraded": {
        "well": row(cache(), False, "Stands"),
        "a member is off": row(cache().off(2), True, "GroupDegraded", "not online: c-2"),
        "two are": row(cache().off(2, 1), True, "GroupDegraded", "not online: c-1, c-2"),
        "one joins": row(cache().member(2, online=False, status="Joining"), False, "Stands"),
        "one leaves": row(cache().member(2, online=False, status="Leaving"), False, "Stands"),
        "one that is wanted and no member yet": row(fresh(), False, "Stands"),
        "one joins, and its pod is still to notice": row(
            cache().pod(2, ready=False).asked("Join", 2, 2), False, "Stands"
        ),
        "one has joined half-way": row(cache().off(2).failed("Join", 2), False, "Stands"),
        "one leaves, and is off": row(cache().off(2).asked("Leave", 2, 0), False, "Stands"),
        "one is off while another joins": row(cache().off(1).asked("Join", 2, 2), True, "GroupDegraded", "c-1"),
        "the primary is away": row(cache().mute(0), True, "PrimaryUnavailable"),
        "nobody answers": row(cache().mute(0, 1, 2), True, "GroupUnreachable", "nobody answers"),
        "nobody answers yet": row(fresh().mute(0, 1, 2), False, "Idle"),
        "a pod is down": row(
            cache().pod(1, running=False).fact(polled=freshness.Fresh(cache().polled)), True, "GroupDegraded", "c-1"
        ),
        "one that has just joined, before its pod is ready": row(
            cache(2).pod(1, ready=False).asked("Join", 1, 1), False, "Stands"
        ),
        "another one meanwhile": row(cache().off(2).pod(1, ready=False).asked("Join", 1, 1), True, "GroupDegraded"),
        "not asked": row(cache().fact(polled=DOWN), None, "Looking", "the server is down"),
    },
    "Watching": {
        "the group is read": row(cache(), True, "Watching"),
        "nobody answers": row(cache().mute(0, 1, 2), False, "GroupUnreachable"),
        "not asked": row(cache().fact(polled=NOT_YET), None, "Looking"),
        "the password is refused": row(
            cache().mute(0, 1, 2, fault=answers.Fault.UNAUTHORIZED), False, "CredentialsRejected"
        ),
        "by some": row(cache().mute(1, fault=answers.Fault.UNAUTHORIZED), True, "MemberSilent", "c-1: Unauthorized"),
        "one that is Online does not answer": row(cache().mute(1), True, "MemberSilent", "c-1: Unreachable"),
        "of one that is off nothing else is to be expected": row(cache().off(1), True, "Watching"),
        "asked anew": row(cache().fact(polled=freshness.Stale(cache().polled, 0.0, "x")), True, "Watching"),
    },
    "Joining": {
        "nobody": row(cache(), False, "Idle"),
        "one": row(fresh().asked("Join", 1, 1, attempts=2), True, "Joining", "c-1, attempt 2"),
        "another task": row(cache().asked("Leave", 2, 0), False, "Idle"),
        "it failed": row(fresh().failed("Join", 1, attempts=2), False, "JoinFailed", "c-1, 2 attempts: no room"),
        "something else failed": row(cache().failed("Leave", 1), False, "Idle"),
        "one joins, another failed": row(
            fresh().failed("Join", 1).asked("Join", 2, 2), True, "Joining", "c-2, attempt 1"
        ),
        "one failed among others": row(fresh().failed("Leave", 2).failed("Join", 1), False, "JoinFailed", "c-1"),
    },
    "Disjoining": {
        "nobody": row(cache(), False, "Idle"),
        "one": row(cache().asked("Leave", 2, 0), True, "Disjoining", "c-2, attempt 1"),
        "another task": row(fresh().asked("Join", 1, 1), False, "Idle"),
        "it failed": row(cache().failed("Leave", 2), False, "DisjoinFailed", "c-2, 1 attempts"),
    },
    "Scaling": {
        "as wanted": row(cache(), False, "Stands"),
        "up": row(cache().wants(size=5), True, "Resizing", "3 members, 5 are wanted"),
        "down": row(cache().wants(size=2), True, "Resizing", "3 members, 2 are wanted"),
        "as many, and others": row(cache(4).wants(size=3).left(1), True, "Resizing"),
        "nobody tells": row(cache().wants(size=5).mute(0, 1, 2), False, "Idle"),
    },
    "Updating": {
        "all are of the current template": row(cache(), False, "Stands"),
        "not known": row(cache().fact(objects=NOT_YET), None, "ClusterUnknown"),
        "some are old": row(cache().old(1, 2), True, "Updating", "to be replaced: c-2, c-1"),
        "some are old, and left alone": row(
            cache(updateStrategy={"type": "OnDelete"}).old(2), False, "UpdateOnDelete", "until deleted: c-2"
        ),
        "a single member": row(cache(1).old(0), True, "DowntimeExpected", "c-0 is the only member"),
        "grids without replicas": row(
            cache().old(2).but(grids=(ONE_SYNC, ONE_ASYNC, NO_REPLICA)),
            True,
            "DowntimeExpected",
            "to be replaced: c-2; without replicas: b",
        ),
        "grids with replicas": row(cache().old(2).but(grids=(ONE_SYNC, ONE_ASYNC)), True, "Updating"),
        "a grid of which nothing is told": row(
            cache().old(2).but(grids=(answers.Grid("x", "Online", {"numSyncReplicas": "?"}),)), True, "DowntimeExpected"
        ),
        "grids are not known": row(cache().old(2).but(grids=None), True, "Updating"),
    },
    "Recovering": {
        "nothing to heal": row(cache(), False, "Idle"),
        "the copy takes over": row(
            cache().off(0).asked("Failover", 1, 1), True, "FailingOver", "c-1 becomes the primary"
        ),
        "another task is none": row(cache().asked("Replicate", 1, 0), False, "Idle"),
        "a member is off": row(cache().off(2), True, "GroupDegraded", "c-2"),
        "the primary is away": row(cache().mute(0), True, "PrimaryUnavailable"),
        "nobody answers": row(cache().mute(0, 1, 2), True, "GroupUnreachable"),
        "not asked": row(cache().fact(polled=DOWN), None, "Looking"),
    },
    "ReplicationHealthy": {
        "there is a copy": row(cache(), True, "Stands", "c-1 holds the copy"),
        "none is wanted": row(cache(derbyReplication={"mode": "Disabled"}), False, "ReplicationOff"),
        "a single member": row(cache(1), False, "ReplicationOff"),
        "there is none": row(cache().primary(0), False, "ReplicationMissing"),
        "its holder is off": row(cache().off(1), False, "ReplicationMissing"),
        "its holder's pod is down": row(
            cache().pod(1, running=False).fact(polled=freshness.Fresh(cache().polled)), False, "ReplicationMissing"
        ),
        "nobody tells": row(cache().mute(0, 1, 2), None, "GroupUnreachable"),
    },
    "TransportVerified": {
        "by nobody": row(cache(), False, "CertificatesNotVerified", "any certificate is taken"),
        "by the authorities that the operator knows": row(
            cache(tls={"insecureSkipVerify": False}), True, "CertificatesVerified", "the operator's image"
        ),
        "by one that is named": row(cache(tls={"caSecretRef": "ca"}), True, "CertificatesVerified", "Secret ca"),
    },
}
ROWS = {f"{type_}: {name}": (type_, it) for type_, rows in TABLE.items() for name, it in rows.items()}
BY_TYPE: dict[str, Callable[[observation.Seen], decision.Fact]] = {
    fact(cache().seen).type: fact for fact in facts.FACTS
}


@pytest.mark.parametrize(("type_", "it"), ROWS.values(), ids=ROWS)
def test_facts(type_: str, it: True_) -> None:
    found = BY_TYPE[type_](it.seen)

    assert (type_, it.status, it.reason) == (found.type, found.status, str(found.reason)), found.message
    assert it.says in found.message


UNSEEN = ("Available", "MembersReady", "Degraded", "Watching", "Recovering", "ReplicationHealthy")


@pytest.mark.parametrize("status", ["True", "False"])
@pytest.mark.parametrize("type_", UNSEEN)
def test_a_group_that_was_not_asked_yet_stands_as_it_stood(type_: str, status: conditions.Verdict) -> None:
    """After a restart of the operator nothing has happened to it."""
    stood = (conditions.Condition(type_, status, "Somehow", "it stood", 1, ago(100)),)
    it = cache().says(conditions=stood)

    assert decision.Fact(type_, status == "True", "Somehow", "it stood") == BY_TYPE[type_](it.fact(polled=NOT_YET).seen)
    assert "Somehow" != BY_TYPE[type_](it.fact(polled=DOWN).seen).reason
    assert "Somehow" != BY_TYPE[type_](it.seen).reason


def test_each_condition_has_one_fact_and_a_table() -> None:
    assert list(TABLE) == [fact(cache().seen).type for fact in facts.FACTS]
    assert facts.READY_FACTS <= TABLE.keys()


LIFE: tuple[tuple[str, states.It, set[str]], ...] = (
    ("created", fresh().but(workload=None, pods={}).fact(polled=NOT_YET), set()),
    ("the first member runs", fresh(), {"Watching", "Scaling"}),
    ("the second joins", fresh().asked("Join", 1, 1), {"Watching", "Scaling", "Joining"}),
    ("all have joined", cache().primary(0), {"Watching", "Available", "MembersReady"}),
    ("there is a copy", cache(), {"Watching", "Available", "MembersReady", "ReplicationHealthy"}),
    (
        "a member is off",
        cache().off(2),
        {"Watching", "Available", "Degraded", "Recovering", "ReplicationHealthy"},
    ),
    ("the primary is off", cache().off(0), {"Watching", "Degraded", "Recovering", "ReplicationHealthy"}),
    (
        "its copy takes over",
        cache().off(0).asked("Failover", 1, 1),
        {"Watching", "Degraded", "Recovering", "ReplicationHealthy"},
    ),
    ("it has", cache().off(0).primary(1), {"Watching", "Available", "Degraded", "Recovering"}),
    (
        "a larger size",
        cache().wants(size=4),
        {"Watching", "Available", "Scaling", "ReplicationHealthy"},
    ),
    (
        "a smaller size",
        cache().wants(size=2).asked("Leave", 2, 0),
        {"Watching", "Available", "MembersReady", "Scaling", "Disjoining", "ReplicationHealthy"},
    ),
    (
        "a new template",
        cache().old(0, 1, 2),
        {"Watching", "Available", "MembersReady", "Updating", "ReplicationHealthy"},
    ),
    ("all pods are gone", cache().no_pod(0, 1, 2), {"Degraded", "Recovering"}),
)


@pytest.mark.parametrize(("it", "true"), [(it, true) for _, it, true in LIFE], ids=[name for name, _, _ in LIFE])
def test_through_its_life_these_are_true(it: states.It, true: set[str]) -> None:
    assert {"Valid", *true} == {fact.type for fact in (each(it.seen) for each in facts.FACTS) if fact.status}


# --- the word for people


JOINED_ONCE = (types.MemberStatus("c-0", 0, state="Online"),)
LOST: dict[str, Any] = {
    "deleting": True,
    "running": False,
    "cause": "NodeDown",
    "trouble": "its node is silent",
    "fix": "taint it",
}
PHASES: dict[str, tuple[states.It, str]] = {
    "being deleted": (cache().object(deletion_timestamp=ago(1)), "Deleting"),
    "being deleted, whatever is wrong": (cache().fact(allowed=False).object(deletion_timestamp=ago(1)), "Deleting"),
    "nothing may be done": (cache().fact(allowed=False), "Failed"),
    "the Secret is wrong": (cache().fact(credentials=freshness.Fresh("no key")), "Failed"),
    "a join is given up": (cache().left(2).failed("Join", 2, attempts=5), "Failed"),
    "the password is refused": (
        cache().but(silent=dict.fromkeys(range(3), answers.Fault.UNAUTHORIZED)),
        "Failed",
    ),
    "a join that is tried again": (cache().left(2).failed("Join", 2, attempts=1), "Scaling"),
    "nothing is known": (cache().fact(objects=NOT_YET), "Pending"),
    "nothing is made": (cache().but(workload=None), "Pending"),
    "nobody has joined": (fresh(), "Creating"),
    "all are there, of which status knows nothing yet": (
        cache().says(member_statuses=(types.MemberStatus("c-0", 0),)),
        "Running",
    ),
    "not all are there, of which status knows nothing yet": (
        cache().left(2).says(member_statuses=(types.MemberStatus("c-0", 0),)),
        "Creating",
    ),
    "all have come while nobody was looking": (cache().says(member_statuses=()), "Running"),
    "a single member answers for the first time": (fresh(1), "Running"),
    "the second joins": (fresh().says(member_statuses=JOINED_ONCE), "Creating"),
    "not available yet": (fresh().says(member_statuses=JOINED_ONCE, conditions=was("False")), "Creating"),
    "all are there": (cache(), "Running"),
    "larger": (cache().wants(size=4), "Scaling"),
    "larger, available before": (cache().but(spec={**cache().spec, "size": 4}), "Scaling"),
    "larger before it was ever available": (fresh(3).says(member_statuses=JOINED_ONCE).wants(size=4), "Scaling"),
    "larger, and not available for the second time": (
        cache().but(spec={**cache().spec, "size": 4}).says(conditions=was("False", generation=2)),
        "Scaling",
    ),
    "smaller": (cache().wants(size=2), "Scaling"),
    "a member is off": (cache().off(2), "Degraded"),
    "a member is off while others are replaced": (cache().off(2).old(0, 1), "Updating"),
    "members are replaced": (cache().old(2), "Updating"),
    "members are replaced, and it grows": (cache().old(2).wants(size=4), "Updating"),
    "all pods are gone": (cache().no_pod(0, 1, 2), "Degraded"),
    "a member is on a lost node": (cache().off(2).pod(2, **LOST), "Degraded"),
    "the primary is on a lost node": (cache().off(0).pod(0, **LOST), "Degraded"),
}


def standing(it: states.It) -> decision.StepTaken | None:
    """Where the steps stop."""
    return decision.decide(it.seen, steps=member_trouble.told(control.STEPS)).standing


@pytest.mark.parametrize(("it", "expected"), PHASES.values(), ids=PHASES)
def test_the_phase(it: states.It, expected: str) -> None:
    assert expected == facts.phase(it.seen, standing(it))


# --- the other fields


def told(it: states.It) -> dict[str, Any]:
    return facts.report(it.seen, standing(it))


def test_the_report_of_a_healthy_cache() -> None:
    grids = (answers.Grid("g", "Online"), answers.Grid("h", "Online"))

    assert {
        "size": 3,
        "phase": "Running",
        "targetImage": "ibmcom/xsld:latest",
        "goodImage": "ibmcom/xsld:latest",
        "failedImage": "",
        "growsAfter": "",
        "volumeSize": "100Mi",
        "currentImage": "ibmcom/xsld:latest",
        "selector": "app=c,xsld.ibm.com/cache=c",
        "online": 3,
        "pendingTasks": 0,
        "grids": ["g", "h"],
        "gridCount": 2,
        "members": 3,
        "catalogMembers": ["c-0", "c-1", "c-2"],
        "primary": "c-0",
        "replication": {"master": "c-0", "slave": "c-1", "state": "Running", "progress": 100},
        "taskProgress": None,
        "memberStatuses": [
            {
                "name": f"c-{n}",
                "ordinal": n,
                "podIP": f"10.0.0.{n}",
                "registeredIP": f"10.0.0.{n}",
                "state": "Online",
                "catalog": True,
                "image": "ibmcom/xsld:latest",
                "onlineSince": ago(1000),
                "startedAt": ago(700),
            }
            for n in range(3)
        ],
    } == told(cache().but(grids=grids))


def test_the_size_that_the_spec_may_go_back_to_is_that_of_the_smallest_volume() -> None:
    """One that is on its way out, or of which nothing is known, does not count; nor does none change what was said."""
    it = cache(3).volume(0, size="2Gi").volume(1, size="1500Mi").volume(2, size="10Mi", deleting=True)

    assert "1500Mi" == told(it)["volumeSize"]
    assert "1500Mi" == told(it.volume(7, size=""))["volumeSize"]
    assert "volumeSize" not in told(it.no_volume(0, 1, 2))


def test_since_when_a_member_is_online_is_kept_until_it_is_not() -> None:
    def since(it: states.It) -> str:
        return str(told(it)["memberStatuses"][2]["onlineSince"])

    assert ago(50) == since(cache().online_since(2, 50))
    assert ago(0) == since(cache().online_since(2, None))
    assert "" == since(cache().online_since(2, 50).off(2))
    assert "" == since(cache().online_since(2, 50).pod(2, ready=False)), "its pod is another, or starts anew"


def test_a_report_is_of_the_status_type() -> None:
    it = cache().runs(0, task(7)).asked("Replicate", 1, 0)

    assert isinstance(msgspec.convert(told(it), types.XsldCacheStatus), types.XsldCacheStatus)


UNKNOWN: dict[str, tuple[states.It, set[str]]] = {
    "the objects are not known": (
        cache().fact(objects=NOT_YET),
        {"size", "phase", "targetImage", "selector"},
    ),
    "the group was not asked": (
        cache().fact(polled=NOT_YET),
        {"size", "phase", "targetImage", "selector", "volumeSize", "currentImage", "online", "taskProgress"},
    ),
    "nobody answers": (
        cache().mute(0, 1, 2).but(grids=None),
        {
            *("size", "phase", "targetImage", "selector", "volumeSize", "currentImage", "online", "pendingTasks"),
            "taskProgress",
        },
    ),
}


@pytest.mark.parametrize(("it", "expected"), UNKNOWN.values(), ids=UNKNOWN)
def test_what_is_not_known_stays_as_it_was(it: states.It, expected: set[str]) -> None:
    assert expected == told(it).keys()


def test_zeros_are_written() -> None:
    found = told(cache().mute(0, 1, 2).fact(polled=freshness.Fresh(answers.Polled())))

    assert (0, 0) == (found["online"], found["pendingTasks"])


def test_while_images_differ_none_is_the_current_one() -> None:
    assert "currentImage" not in told(cache().pod(2, image="other"))
    assert "goodImage" not in told(cache().pod(2, image="other"))
    assert "goodImage" not in told(cache().off(2)), "not while it stands somewhere"
    assert "other" == told(cache(1).pod(0, image="other"))["currentImage"]
    assert "ibmcom/xsld:latest" == told(cache().pod(2, image=""))["currentImage"]


def test_tasks_that_run_are_counted_whoever_started_them() -> None:
    it = cache().runs(0, task(1), task(2, DONE)).runs(2, task(3))

    assert 2 == told(it)["pendingTasks"]


def test_members_are_told_by_number_with_what_their_pods_are() -> None:
    it = cache(11).off(2).no_pod(2).member(3, address="10.9.9.9", catalog=True)
    found = told(it)["memberStatuses"]

    assert list(range(11)) == [m["ordinal"] for m in found]
    assert ("", "10.0.0.2", "Offline", "") == tuple(
        found[2][key] for key in ("podIP", "registeredIP", "state", "image")
    )
    assert ("10.0.0.3", "10.9.9.9") == (found[3]["podIP"], found[3]["registeredIP"])
    assert ["c-0", "c-1", "c-2", "c-3"] == told(it)["catalogMembers"]


def test_in_which_run_a_member_was_online_last_is_remembered_while_it_is_off() -> None:
    before = tuple(types.MemberStatus(f"c-{n}", n, started_at=ago(800)) for n in range(3))
    found = told(cache().off(2).says(member_statuses=before))["memberStatuses"]

    assert [ago(700), ago(700), ago(800)] == [member["startedAt"] for member in found]


def test_a_new_pod_that_the_group_takes_for_the_one_before_was_not_online_in_its_run() -> None:
    """Else one that began with outdated credentials would be left alone for ever."""
    before = tuple(types.MemberStatus(f"c-{n}", n, started_at=ago(800)) for n in range(3))
    found = told(cache().pod(2, ready=False).says(member_statuses=before))["memberStatuses"]

    assert [ago(700), ago(700), ago(800)] == [member["startedAt"] for member in found]


def test_while_the_primary_is_away_the_former_one_stands() -> None:
    assert "primary" not in told(cache().off(0))
    assert "c-1" == told(cache().primary(1))["primary"]


COPIES: dict[str, tuple[states.It, tuple[str, str, str, int]]] = {
    "none": (cache().primary(0), ("", "", "Off", 0)),
    "it is being set up": (
        cache().primary(0).asked("Replicate", 1, 0).moved(45),
        ("", "", "Starting", 45),
    ),
    "another task is none": (cache().primary(0).asked("Join", 2, 2).moved(45), ("", "", "Off", 0)),
    "it stands": (cache(), ("c-0", "c-1", "Running", 100)),
    "it moves": (cache().asked("Replicate", 2, 0).moved(10), ("c-0", "c-1", "Running", 10)),
    "its holder is off": (cache().off(1), ("c-0", "c-1", "Broken", 0)),
    "the primary is off": (cache().off(0), ("", "c-1", "Running", 100)),
}


@pytest.mark.parametrize(("it", "expected"), COPIES.values(), ids=COPIES)
def test_the_copy_is_told(it: states.It, expected: tuple[str, str, str, int]) -> None:
    assert expected == tuple(told(it)["replication"].values())


NOW_AT = conditions.timestamp(NOW)
PROGRESS: dict[str, tuple[states.It, dict[str, Any] | None]] = {
    "no task of ours": (cache().runs(0, task(7)), None),
    "the task is nowhere, and nothing was known": (cache().asked("Replicate", 2, 0), None),
    "what was known stays": (
        cache().asked("Replicate", 2, 0).moved(10, age=50),
        {"intent": "i-1", "percent": 10, "at": ago(50)},
    ),
    "of another task nothing stays": (cache().asked("Replicate", 2, 0, intent="i-2").moved(10, age=50), None),
    "it is seen first": (
        cache().asked("Replicate", 2, 0).runs(0, task(7, progress=45)),
        {"intent": "i-1", "percent": 45, "at": NOW_AT},
    ),
    "it moves": (
        cache().asked("Replicate", 2, 0).moved(10, age=50).runs(0, task(7, progress=45)),
        {"intent": "i-1", "percent": 45, "at": NOW_AT},
    ),
    "it stands still": (
        cache().asked("Replicate", 2, 0).moved(45, age=50).runs(0, task(7, progress=45)),
        {"intent": "i-1", "percent": 45, "at": ago(50)},
    ),
}


@pytest.mark.parametrize(("it", "expected"), PROGRESS.values(), ids=PROGRESS)
def test_progress(it: states.It, expected: dict[str, Any] | None) -> None:
    assert expected == told(it)["taskProgress"]
    assert "currentTask" not in told(it)


def test_a_cache_that_begins_has_nothing_to_say_of_its_health() -> None:
    assert "" == facts.degraded(fresh().mute(0, 1, 2).seen).message


@pytest.mark.parametrize("fact", facts.FACTS, ids=lambda fact: fact.__name__)
@pytest.mark.parametrize(
    "it",
    [
        pytest.param(
            cache().fact(binding=DOWN, credentials=DOWN, entrypoint=DOWN, objects=DOWN, polled=DOWN), id="all"
        ),
        pytest.param(cache().fact(objects=DOWN), id="objects"),
        pytest.param(cache().fact(polled=DOWN), id="the group"),
        pytest.param(cache().but(workload=None, pods={}, volumes={}), id="nothing there"),
        pytest.param(cache().set_of(child=apply.Child("u", deleting=True)), id="ending"),
    ],
)
def test_facts_and_report_take_whatever_is_unknown(
    it: states.It, fact: Callable[[observation.Seen], decision.Fact]
) -> None:
    assert fact(it.seen).type
    assert told(it)["phase"]
