"""Who joins an XsldCache's group, who leaves it, in which role; and what is waited for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from moorage.operators.xsld.cache import control, left_members, observation, replication, rolling, tasks
from moorage.operators.xsld.group import answers
from moorage.runtime import decision, freshness
from tests.unit import verdicts
from tests.unit.verdicts import SETTLED, Blocks, Row, Waits, acts
from tests.unit.xsld import states
from tests.unit.xsld.states import BUSY, cache, fresh, submits

DOWN = freshness.Failed("Down", "the server is down")
UNAUTHORIZED = answers.Fault.UNAUTHORIZED
SILENT = Waits("GroupUnreachable", "group", 1800.0, again=BUSY)
STARTING = Waits("MemberStarting", "group", 1800.0, again=BUSY)
JOINED, LEFT = "members_have_joined", "surplus_has_left"
NO_COPY = {"derbyReplication": {"mode": "Disabled"}}
DEGRADED = Waits("GroupDegraded", "group", 3600.0, again=BUSY)
OFFLINE = Waits("MembersNotOnline", "group", 1800.0, again=BUSY)
STALE_ADDRESS = Waits("AddressStale", "group", 600.0, again=BUSY)


def leaves_dead(ordinal: int, size: int = 2) -> verdicts.Acts:
    """A member that is off is asked to leave, if the first `size` are well right then."""
    note = f"remember currentTask if those_who_stay_are_online {size}"
    return acts("Disjoining", note, f"submit Leave c-{ordinal} at c-0")


def row(it: states.It, step: str, shape: verdicts.Shape, says: str = "") -> Row:
    return Row(it.seen, step, shape, says)


ROWS: dict[str, Row] = {
    # somebody answers
    "the group was not asked yet": row(
        cache().fact(polled=freshness.not_yet("group")),
        "group_answers",
        Waits("GroupUnreachable", "group", 120.0, unseen=True),
    ),
    "the group can't be asked": row(
        cache().fact(polled=DOWN), "group_answers", Waits("GroupUnreachable", "group", 120.0, again=5.0)
    ),
    "something was done to the group since": row(
        cache().fact(polled=freshness.Stale(cache().polled, 0.0, "POST /task")),
        "group_answers",
        Waits("Looking", "group", 120.0, unseen=True),
        "asked anew: POST /task",
    ),
    "no member takes the password": row(
        cache().mute(0, 1, 2, fault=UNAUTHORIZED), "group_answers", Blocks("CredentialsRejected")
    ),
    "one refuses the password, the others are away": row(
        cache().mute(0, fault=UNAUTHORIZED).mute(1, 2), "group_answers", Blocks("CredentialsRejected")
    ),
    "nobody answers: each fault is told": row(
        cache(2).mute(0).mute(1, fault=answers.Fault.TIMEOUT),
        "group_answers",
        SILENT,
        "nobody answers: c-0: Unreachable; c-1: TimedOut",
    ),
    "no pod has an address": row(
        cache(2).pod(0, address="").pod(1, address=""), "group_answers", SILENT, "no pod has an address yet"
    ),
    "nobody answers: the pods' troubles are told": row(
        cache(2).mute(0, 1).pod(1, trouble="the image can't be pulled"),
        "group_answers",
        SILENT,
        "(c-1: the image can't be pulled)",
    ),
    "all pods are gone": row(cache().no_pod(0, 1, 2), "group_answers", SILENT, "no pod has an address yet"),
    # joining
    "the first one joins": row(fresh(), "members_join", submits("Joining", "Join c-1 at c-1"), "c-1 joins the group"),
    "then the next": row(fresh().joined(1), "members_join", submits("Joining", "Join c-2 at c-2")),
    "the lowest that answers joins": row(fresh().mute(1), "members_join", submits("Joining", "Join c-2 at c-2")),
    "one that is still a member of the list does not join again": row(cache(), "", SETTLED),
    "a gap is filled": row(cache(4).left(2), "members_join", submits("Joining", "Join c-2 at c-2")),
    "pods start": row(
        fresh().mute(1, 2),
        JOINED,
        STARTING,
        "c-1 (its admin API: Unreachable), c-2 (its admin API: Unreachable) is to join, and does not answer yet",
    ),
    "a pod has trouble to start, another is missing": row(
        fresh().mute(1).pod(1, trouble="no node fits").no_pod(2),
        JOINED,
        STARTING,
        "c-1 (no node fits), c-2 (it has no pod) is to join",
    ),
    "a pod that was replaced since it answered does not join by that": row(
        fresh(2).pod(1, uid="another").fact(polled=freshness.Fresh(fresh(2).polled)), JOINED, STARTING
    ),
    "nobody joins while half of the group is away": row(
        cache(2, **NO_COPY).grown(3).wants(size=3).off(1),
        JOINED,
        DEGRADED,
        "only 1 of 2 members are Online by the group's word (not c-1 (its admin API: Unreachable)); nobody joins until",
    ),
    "most of it is enough": row(
        cache(3).grown(4).wants(size=4).off(2), "members_join", submits("Joining", "Join c-3 at c-3")
    ),
    "the group may need company to be ready: by its own word it is well": row(
        fresh(2).pod(0, ready=False), "members_join", submits("Joining", "Join c-1 at c-1")
    ),
    "a single member joins nobody": row(fresh(1), "", SETTLED),
    "up by two": row(cache(2).grown(4).wants(size=4), "members_join", submits("Joining", "Join c-2 at c-2")),
    "up by two, one there": row(
        cache(2).grown(4).wants(size=4).joined(2), "members_join", submits("Joining", "Join c-3 at c-3")
    ),
    "one that is not wanted does not join": row(
        cache(2).grown(4).wants(size=3),
        "workload_is_right",
        acts("Resizing", "apply StatefulSet/c sts-uid if member_has_left 3"),
    ),
    "a pod beside an old volume must not join": Row(
        cache(2).wants(size=3).pod(2).volume(2).blank(2).seen, "", SETTLED, steps=(control.members_join,)
    ),
    "a join that failed lately waits": row(
        fresh(2).failed("Join", 1, age=4.0),
        JOINED,
        Waits("JoinFailed", "back-off", states.CAP, again=6.0),
        "c-1 joins the group: failed 1 times, last with: no room",
    ),
    "another joins meanwhile": row(
        fresh().failed("Join", 1, age=4.0), "members_join", submits("Joining", "Join c-2 at c-2")
    ),
    "of one that was given up and one that waits the latter is looked at again": row(
        fresh().failed("Join", 1, attempts=5).failed("Join", 2, age=4.0),
        JOINED,
        Waits("JoinFailed", "back-off", states.CAP, again=6.0),
    ),
    "a join that failed too often": row(
        fresh(2).failed("Join", 1, attempts=5), JOINED, Blocks("JoinGivenUp"), "failed 5 times"
    ),
    "a failed join of another is no reason to wait": row(
        fresh().failed("Join", 2, attempts=5), "members_join", submits("Joining", "Join c-1 at c-1")
    ),
    "after a change of the spec it is tried at once": row(
        fresh().failed("Join", 1, attempts=5).object(generation=2),
        "members_join",
        submits("Joining", "Join c-1 at c-1"),
    ),
    # those who lost their state
    "a member that came back blank leaves the list": row(
        cache().off(2).but(silent={}).blank(2),
        "strangers_leave",
        submits("Rejoining", "Leave c-2 at c-0"),
        "c-2 came back without its state",
    ),
    "and then joins anew": row(cache().left(2), "members_join", submits("Joining", "Join c-2 at c-2")),
    "one that does not answer is no stranger": row(cache().off(2), "members_are_online", OFFLINE, "c-2 (its admin"),
    "nor one that tells of the group": row(
        cache().member(2, online=False, status="Starting"), "members_are_online", OFFLINE
    ),
    "nor one that the group still counts as online": row(cache().blank(2), "", SETTLED),
    "one that joined half-way leaves": row(
        cache().off(2).failed("Join", 2),
        "strangers_leave",
        submits("Rejoining", "Leave c-2 at c-0"),
        "c-2 has not joined whole",
    ),
    "unless it came online after all": row(
        cache().failed("Join", 2), "troubles_are_forgotten", acts("TaskDone", "remember no-troubles")
    ),
    "or the spec has changed": row(
        cache().off(2).failed("Join", 2).object(generation=2), "members_are_online", OFFLINE
    ),
    "another that failed is another": row(cache().off(2).failed("Join", 1), "members_are_online", OFFLINE),
    "strangers leave before anybody joins": row(
        cache(4).left(3).off(2).but(silent={}, stories={2: states.alone(2), 3: states.alone(3)}),
        "strangers_leave",
        submits("Rejoining", "Leave c-2 at c-0"),
    ),
    # leaving
    "down by one": row(
        cache(3).wants(size=2), "surplus_leaves", submits("Disjoining", "Leave c-2 at c-0"), "c-2 leaves the group"
    ),
    "down by three: the highest first": row(
        cache(5).wants(size=2), "surplus_leaves", submits("Disjoining", "Leave c-4 at c-0")
    ),
    "by number, not by name": row(
        cache(11).wants(size=9), "surplus_leaves", submits("Disjoining", "Leave c-10 at c-0")
    ),
    "one has left: its pod goes before the next one leaves": row(
        cache(5).left(4).wants(size=2),
        "workload_is_right",
        acts("Resizing", "apply StatefulSet/c sts-uid if member_has_left 4"),
    ),
    "then its volume": row(
        cache(4).wants(size=2).volume(4),
        "volumes_are_reclaimed",
        acts("ClearingVolume", "delete PersistentVolumeClaim/vol-c-4 pvc-4 if member_has_left 4"),
        "vol-c-4 belongs to nobody any more",
    ),
    "which is kept if so asked": row(
        cache(4, storage={"reclaimOnScaleDown": "Retain"}).wants(size=2).volume(4),
        "surplus_leaves",
        submits("Disjoining", "Leave c-3 at c-0"),
    ),
    "and need not be gone for the next one to leave": row(
        cache(4).wants(size=2).volume(4, deleting=True), "surplus_leaves", submits("Disjoining", "Leave c-3 at c-0")
    ),
    "nobody leaves a degraded group": row(
        cache(5, **NO_COPY).wants(size=2).off(1),
        LEFT,
        DEGRADED,
        "c-1 (its admin API: Unreachable) not online; nobody leaves before all that stay are",
    ),
    "the group is slow to notice one that is gone": row(
        cache(5, **NO_COPY).wants(size=2).pod(1, ready=False), LEFT, DEGRADED, "c-1 not online; nobody leaves"
    ),
    "or whose process has ended": row(cache(5, **NO_COPY).wants(size=2).pod(1, running=False), LEFT, DEGRADED, "c-1"),
    "or is about to": row(cache(5, **NO_COPY).wants(size=2).pod(1, deleting=True), LEFT, DEGRADED, "c-1"),
    "or that has no pod": row(cache(5, **NO_COPY).wants(size=2).no_pod(1), LEFT, DEGRADED, "c-1 (it has no pod)"),
    "a copy that is off is replaced meanwhile": row(
        cache(5).wants(size=3).off(1),
        "replication_runs",
        Waits("ReplicationMissing", "group", 960.0, again=BUSY),
    ),
    "one that is off leaves before one that works": row(
        cache(5).wants(size=2).off(3), "surplus_leaves", leaves_dead(3), "c-3, which is off, leaves the group"
    ),
    "the one that leaves may be off": row(cache(5).wants(size=2).off(4), "surplus_leaves", leaves_dead(4)),
    "two that are off do not block each other": row(
        cache(5).wants(size=3).off(3, 4), "surplus_leaves", leaves_dead(4, 3)
    ),
    "nor does one that never comes back, in a group of two": row(
        cache(2).wants(size=1).off(1), "surplus_leaves", leaves_dead(1, 1)
    ),
    "not while one that stays is off": row(
        cache(5, **NO_COPY).wants(size=3).off(2, 3, 4),
        LEFT,
        DEGRADED,
        "c-2 (its admin API: Unreachable) not online; nobody",
    ),
    "not while a grid is off: they may hold what is missing": row(
        cache(4).wants(size=3).off(3).but(grids=(answers.Grid("g", "Stopped"),)),
        LEFT,
        DEGRADED,
        "c-3, which is off, leaves the group, once grid g is online",
    ),
    "nor while nobody tells of the grids": row(
        cache(4).wants(size=3).off(3).but(grids=None), LEFT, DEGRADED, "once somebody tells whether the grids"
    ),
    "a copy that is off is made anew elsewhere, before its holder leaves": row(
        cache(4).primary(0, slave=3).wants(size=3).off(3),
        "surplus_leaves",
        submits("Replicating", "Replicate c-1 at c-0"),
    ),
    "a failed disjoin waits, longer each time": row(
        cache(3).wants(size=2).failed("Leave", 2, attempts=3, age=15.0),
        LEFT,
        Waits("DisjoinFailed", "back-off", states.CAP, again=25.0),
    ),
    "and is given up": row(
        cache(3).wants(size=2).failed("Leave", 2, attempts=5, age=10_000.0), LEFT, Blocks("DisjoinGivenUp")
    ),
    "one short of that it is tried": row(
        cache(3).wants(size=2).failed("Leave", 2, attempts=4, age=10_000.0),
        "surplus_leaves",
        submits("Disjoining", "Leave c-2 at c-0"),
    ),
    "the copy moves before its holder leaves": row(
        cache(3).primary(0, slave=2).wants(size=2),
        "surplus_leaves",
        submits("Replicating", "Replicate c-1 at c-0"),
        "c-1 becomes the copy, before c-2 leaves",
    ),
    "to a catalog server, if there is one": row(
        cache(4).primary(0, slave=3).member(1, catalog=False).wants(size=3),
        "surplus_leaves",
        submits("Replicating", "Replicate c-2 at c-0"),
    ),
    "not to one that must leave as well": row(
        cache(4).primary(0, slave=3).left(1).wants(size=2).mute(1),
        "surplus_leaves",
        submits("Disjoining", "Leave c-3 at c-0"),
    ),
    "a copy that is not wanted need not move": row(
        cache(3, derbyReplication={"mode": "Disabled"}).primary(0, slave=2).wants(size=2),
        "surplus_leaves",
        submits("Disjoining", "Leave c-2 at c-0"),
    ),
    "a single member needs no copy": row(
        cache(2).wants(size=1), "surplus_leaves", submits("Disjoining", "Leave c-1 at c-0")
    ),
    "a primary that must leave hands over": row(
        cache(3).primary(2, slave=0).wants(size=2),
        "surplus_leaves",
        submits("FailingOver", "Failover c-0 at c-0"),
        "c-0 becomes the primary, before c-2 leaves",
    ),
    "first it needs somebody to hand over to": row(
        cache(3).primary(2).wants(size=2),
        "surplus_leaves",
        submits("Replicating", "Replicate c-0 at c-2"),
        "c-0 becomes the copy, before c-2 leaves",
    ),
    "a primary that must leave, and no copy is wanted": row(
        cache(3, derbyReplication={"mode": "Disabled"}).primary(2).wants(size=2),
        LEFT,
        Blocks("PrimaryIsSurplus"),
        "c-2 is the primary and should leave",
    ),
    "a primary that must leave, and its copy is the only one left": row(
        cache(2).primary(1, slave=0).wants(size=1), "surplus_leaves", submits("FailingOver", "Failover c-0 at c-0")
    ),
    # catalog servers
    "one after the other: not while somebody is to join": row(
        cache(4, catalogs=4, **NO_COPY).left(1).member(2, catalog=False).mute(1), "members_have_joined", STARTING
    ),
    "one more catalog server": row(
        cache(3).member(2, catalog=False),
        "catalogs_match",
        submits("CatalogsChanging", "Leave c-2 at c-0"),
        "c-2 leaves the group and joins anew, to be a catalog server",
    ),
    "one less": row(
        cache(3).wants(catalogs=2),
        "catalogs_match",
        submits("CatalogsChanging", "Leave c-2 at c-0"),
        "to be none",
    ),
    "one that is missing comes before one that is too many": row(
        cache(5).member(2, catalog=False).member(3, catalog=True),
        "catalogs_match",
        submits("CatalogsChanging", "Leave c-2 at c-0"),
    ),
    "the lowest that is missing": row(
        cache(5).primary(0).member(1, catalog=False).member(2, catalog=False),
        "catalogs_match",
        submits("CatalogsChanging", "Leave c-1 at c-0"),
    ),
    "never the first member": row(cache(3).member(0, catalog=False), "", SETTLED),
    "more than members": row(cache(2, catalogs=3), "", SETTLED),
    "nor in one that is slow to notice": row(
        cache(3).wants(catalogs=2).pod(2, ready=False),
        "catalogs_are_right",
        DEGRADED,
        "c-2 not online; no member changes",
    ),
    "not in a degraded group": row(
        cache(3, **NO_COPY).wants(catalogs=2).off(1),
        "catalogs_are_right",
        DEGRADED,
        "not online; no member changes its",
    ),
    "the holder of the copy hands it over": row(
        cache(3).wants(catalogs=1).off(), "catalogs_match", submits("Replicating", "Replicate c-2 at c-0")
    ),
    "a primary in the wrong role hands over": row(
        cache(3).primary(2, slave=1).wants(catalogs=2), "catalogs_match", submits("FailingOver", "Failover c-1 at c-1")
    ),
    # addresses
    "a member under an old address": row(
        cache().member(1, address="10.9.9.9"),
        "addresses_are_right",
        STALE_ADDRESS,
        "c-1 (10.9.9.9, its pod has 10.0.0.1)",
    ),
    "a member without an address": row(cache().member(1, address=""), "", SETTLED),
    "a member whose pod is gone is told of as such": row(
        cache().off(2).no_pod(2).member(2, address="10.9.9.9"), "members_are_online", OFFLINE
    ),
    "a pod that does not run yet": row(
        cache().off(2).pod(2, running=False, address="10.9.9.9"), "members_are_online", OFFLINE
    ),
    "a pod without an address": row(cache().off(2).pod(2, address=""), "members_are_online", OFFLINE),
    # online
    "members are off": row(
        cache(derbyReplication={"mode": "Disabled"}).off(1, 2).pod(2, trouble="it crashes").pod(1, trouble="no node"),
        "members_are_online",
        OFFLINE,
        "c-1 (no node), c-2 (it crashes) not online",
    ),
    "a member starts": row(
        cache().member(2, online=False, status="Starting"), "members_are_online", OFFLINE, "c-2 not online"
    ),
    # who is Online answers
    "one that is Online does not answer": row(
        cache().mute(2, fault=answers.Fault.UNAVAILABLE),
        "members_answer",
        Waits("MemberSilent", "group", 900.0, again=BUSY),
        "Online, and not to be asked: c-2: Unavailable",
    ),
    "one refuses the password that others take": row(
        cache().mute(2, fault=UNAUTHORIZED), "members_answer", Blocks("CredentialsRejected"), "c-2 refuses"
    ),
    # the end
    "what failed on the way is forgotten": row(
        cache().failed("Leave", 2).failed("Join", 2),
        "troubles_are_forgotten",
        acts("TaskDone", "remember no-troubles"),
    ),
}


GROUP_STEPS: tuple[Callable[[observation.Seen], decision.Verdict], ...] = (
    control.strangers_leave,
    control.surplus_leaves,
    control.members_join,
    control.catalogs_match,
    control.addresses_are_right,
    control.members_are_online,
    control.members_answer,
    left_members.pods_have_the_credentials,
    replication.primary_leads,
    replication.replication_runs,
    rolling.template_rolls,
    tasks.foreign_tasks_end,
)
BUSY_CACHE = (
    cache(5).wants(size=4, catalogs=1).off(2).left(3).old(1).member(1, address="10.9.9.9").fact(polled=DOWN).seen
)


NO_PRIMARY = cache(5).wants(size=4, catalogs=1).off(0, 2).but(silent={0: answers.Fault.TIMEOUT}).blank(2).left(3).seen
ROWS |= {
    f"{step.__name__}: nothing is done to a group that is not known": Row(BUSY_CACHE, "", SETTLED, steps=(step,))
    for step in GROUP_STEPS
}
ROWS |= {
    f"{step.__name__}: nobody comes or goes without the primary": Row(NO_PRIMARY, "", SETTLED, steps=(step,))
    for step in GROUP_STEPS[:4]
}


@pytest.mark.parametrize("it", ROWS.values(), ids=ROWS)
def test_table(it: Row) -> None:
    verdicts.check(it, control.STEPS)


MESSAGES = {
    "who has a fault, and who has none": (
        cache(2).wants(size=3).grown(3).mute(0, 1),
        "nobody answers: c-0: Unreachable; c-1: Unreachable",
    ),
    "pods without trouble": (cache(1).mute(0), "nobody answers: c-0: Unreachable"),
    "a pod with trouble": (cache(1).pod(0, trouble="x").mute(0), "nobody answers: c-0: Unreachable (c-0: x)"),
    "members without trouble": (cache().member(2, online=False), "c-2 not online"),
    "a member that does not answer": (cache().off(2), "c-2 (its admin API: Unreachable) not online"),
    "a member with trouble": (cache().off(2).pod(2, trouble="x"), "c-2 (x) not online"),
    "a member without a pod": (cache().off(2).no_pod(2), "c-2 (it has no pod) not online"),
    "another with trouble": (cache().member(2, online=False).pod(1, trouble="x"), "c-2 not online"),
}


@pytest.mark.parametrize(("it", "expected"), MESSAGES.values(), ids=MESSAGES)
def test_messages_to_the_letter(it: states.It, expected: str) -> None:
    assert expected == verdicts.decided(it.seen, control.STEPS)[2]


def test_the_primary_is_really_away() -> None:
    assert NO_PRIMARY.group is not None
    assert NO_PRIMARY.primary is None


def test_nobody_leaves_twice_at_once_up_and_down_is_one_by_one() -> None:
    """Down from 5 to 2, as the world follows: each member leaves, its pod goes, its volume goes, then the next."""
    it, told = cache(5).wants(size=2), []
    for ordinal in (4, 3, 2):
        told.append(verdicts.decided(it.seen, control.STEPS)[0])
        it = it.left(ordinal)
        told.append(verdicts.decided(it.seen, control.STEPS)[0])
        it = it.set_of(replicas=ordinal).no_pod(ordinal)
        told.append(verdicts.decided(it.seen, control.STEPS)[0])
        it = it.no_volume(ordinal)

    assert ["surplus_leaves", "workload_is_right", "volumes_are_reclaimed"] * 3 == told
    assert "" == verdicts.decided(it.seen, control.STEPS)[0]


def test_up_by_two_is_one_by_one() -> None:
    it = cache(2).wants(size=4)
    told = [verdicts.decided(it.seen, control.STEPS)[0]]
    it = it.grown(4)
    for ordinal in (2, 3):
        _, found, _, _ = verdicts.decided(it.seen, control.STEPS)
        told.append(str(found.actions[1]) if isinstance(found, verdicts.Acts) else "")
        it = it.joined(ordinal)

    assert ["workload_is_right", "submit Join c-2 at c-2", "submit Join c-3 at c-3"] == told
    assert "" == verdicts.decided(it.member(3, catalog=False).seen, control.STEPS)[0]


# --- who may serve although it knows of nobody else -----------------------------------------------------------------

NOTHING = fresh().mute(0, 1, 2)
ALONE: dict[str, tuple[states.It, str | None, str]] = {
    # id: (the cache, who was named before, who is)
    "nothing was ever made: the first is to form the group": (NOTHING.but(workload=None, volumes={}), "", "c-0"),
    "its pods are made, and it does not answer yet": (NOTHING, "c-0", "c-0"),
    "it has answered": (fresh(), "c-0", "c-0"),
    "others have joined": (cache(), "c-0", ""),
    "the first came back without its state": (cache().off(0).but(silent={}).blank(0), "", ""),
    "nobody answers: it stays as it was": (cache().mute(0, 1, 2), "", ""),
    "nobody answers, and one was the group": (cache(1).mute(0), "c-0", "c-0"),
    "nor is it known who was named: one was a member": (cache(1).mute(0), None, "c-0"),
    "nor is it known who was named: several were": (cache().mute(0, 1, 2), None, ""),
    "the volumes of a group are there already": (NOTHING.but(workload=None), "", ""),
    "those of a group of one": (NOTHING.but(workload=None).no_volume(1, 2), "", "c-0"),
    "the StatefulSet was deleted by somebody": (cache().mute(0, 1, 2).but(workload=None, volumes={}), "", ""),
    "one is left": (cache(1), "", "c-0"),
    "another one than the first is left": (cache(2).primary(1).left(0), "", "c-1"),
    "the last other one is leaving": (cache(2).wants(size=1).asked("Leave", 1, 0), "", "c-0"),
    "two are left": (cache(3).wants(size=1).asked("Leave", 2, 0), "", ""),
    "one is joining": (fresh(2).asked("Join", 1, 1), "c-0", "c-0"),
}


@pytest.mark.parametrize(("it", "before", "alone"), ALONE.values(), ids=ALONE)
def test_who_may_serve_although_it_knows_of_nobody_else(it: states.It, before: str | None, alone: str) -> None:
    """A member that lost its state knows of nobody else either: only positive evidence tells the two apart."""
    assert alone == it.seen.alone(before)
