"""The copy of the administrative database: who takes over, who gets it, and when."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.operators.xsld.cache import control, replication
from moorage.operators.xsld.group import answers
from moorage.runtime import freshness
from tests.unit import verdicts
from tests.unit.verdicts import SETTLED, Blocks, Row, Waits
from tests.unit.xsld import states
from tests.unit.xsld.states import BUSY, cache, fresh, submits

OFF: dict[str, Any] = {"derbyReplication": {"mode": "Disabled"}}
PRIMARY = "primary_leads"


def row(it: states.It, step: str, shape: verdicts.Shape, says: str = "") -> Row:
    return Row(it.seen, step, shape, says)


def away(within: float = 960.0, again: float = BUSY) -> Waits:
    return Waits("PrimaryUnavailable", "group", within, again=again)


ROWS: dict[str, Row] = {
    # the primary is away
    "the primary is away": row(
        cache().off(0),
        PRIMARY,
        away(),
        "c-0, the primary, does not answer (its admin API: Unreachable); after 60 s c-1",
    ),
    "it does not answer, though the group has it online": row(cache().mute(0), PRIMARY, away()),
    "its pod was replaced since it answered": row(
        cache().pod(0, uid="another").fact(polled=freshness.Fresh(cache().polled)), PRIMARY, away()
    ),
    "for a while": row(cache().off(0).stands(PRIMARY, age=53.0), PRIMARY, away(again=7.0)),
    "it is the group's own word who is primary": row(
        cache().off(0).says(primary="c-2"), PRIMARY, away(), "c-0, the primary, does not answer"
    ),
    "a short time": row(
        cache(derbyReplication={"failoverSeconds": 5}).off(0).stands("members_join", age=3.0),
        PRIMARY,
        away(905.0, 5.0),
    ),
    "it was waited for somewhere else": row(cache().off(0).stands("members_join", age=1000.0), PRIMARY, away()),
    "a moment more": row(
        cache(derbyReplication={"failoverSeconds": 90}).off(0).stands(PRIMARY, age=89.0), PRIMARY, away(990.0, 1.0)
    ),
    "long enough": row(
        cache().off(0).stands(PRIMARY, age=60.0),
        PRIMARY,
        submits("FailingOver", "Failover c-1 at c-1"),
        "c-1 becomes the primary, as c-0 has not answered for 60 s",
    ),
    "a takeover that failed waits": row(
        cache().off(0).stands(PRIMARY, age=60.0).failed("Failover", 1, attempts=9, age=100.0),
        PRIMARY,
        Waits("PrimaryUnavailable", "back-off", states.CAP, again=200.0),
    ),
    "there is no copy": row(
        cache(**OFF).primary(0).off(0).stands(PRIMARY, age=10_000.0),
        PRIMARY,
        away(900.0),
        "c-0, the primary, does not answer",
    ),
    "the copy is away as well": row(cache().off(0, 1).stands(PRIMARY, age=10_000.0), PRIMARY, away(900.0)),
    "the copy is listed online, and does not answer": row(
        cache().off(0).mute(1).stands(PRIMARY, age=10_000.0), PRIMARY, away(900.0)
    ),
    "the copy is off, and answers": row(
        cache().off(0).member(1, online=False).stands(PRIMARY, age=10_000.0), PRIMARY, away(900.0)
    ),
    # the primary answers with an error
    "it answers with an error, and is Online: nobody takes over": row(
        cache().mute(0, fault=answers.Fault.UNAVAILABLE).stands(PRIMARY, age=10_000.0),
        PRIMARY,
        away(900.0),
        "c-0, the primary, is Online, and answers with an error: Unavailable",
    ),
    "it refuses the password that others take": row(
        cache().mute(0, fault=answers.Fault.UNAUTHORIZED), PRIMARY, Blocks("CredentialsRejected"), "c-0, the primary"
    ),
    "it answers with an error, and is off": row(
        cache().off(0).mute(0, fault=answers.Fault.UNAVAILABLE).stands(PRIMARY, age=60.0),
        PRIMARY,
        submits("FailingOver", "Failover c-1 at c-1"),
    ),
    "it has no place": row(
        cache().off(0).pod(0, trouble="no node fits"),
        PRIMARY,
        away(),
        "c-0, the primary, does not answer (no node fits)",
    ),
    "its node does not answer, so it may run there: nobody takes over, however long": row(
        cache().off(0).pod(0, cause="NodeDown", trouble="node n1 is silent").stands(PRIMARY, age=10_000.0),
        PRIMARY,
        away(900.0),
        "c-0, the primary, does not answer (node n1 is silent); as it may still run there, c-1 does not take over",
    ),
    "it was on a lost node, and is made elsewhere": row(
        cache().off(0).pod(0, uid="another", ready=False).stands(PRIMARY, age=10_000.0),
        PRIMARY,
        submits("FailingOver", "Failover c-1 at c-1"),
    ),
    # the primary lost its state
    "the primary lost its state, and there is a copy, which need not wait": row(
        cache().off(0).but(silent={}).blank(0),
        PRIMARY,
        submits("FailingOver", "Failover c-1 at c-1"),
        "c-1 becomes the primary, as c-0, the primary, has lost its state and tells of a group of its own",
    ),
    "it is in another group: that may pass": row(
        cache()
        .off(0)
        .but(silent={}, stories={0: (*states.alone(0), answers.Member("d-1", "", "Online", online=True))}),
        PRIMARY,
        away(),
        "tells of a group of its own; after 60 s",
    ),
    "it was blank when it answered last, and was replaced since": row(
        cache()
        .off(0)
        .but(silent={})
        .blank(0)
        .pod(0, uid="another")
        .fact(polled=freshness.Fresh(cache().off(0).but(silent={}).blank(0).polled)),
        PRIMARY,
        away(),
    ),
    "the primary lost its state, and there is no copy": row(
        cache(**OFF).primary(0).off(0).but(silent={}).blank(0), PRIMARY, Blocks("PrimaryLost"), "has lost its state"
    ),
    # nobody is listed as primary
    "no primary is listed: the remembered one is waited for": row(
        cache().member(0, primary=False).member(2, role="").says(primary="c-2"), PRIMARY, away(), "c-2, the primary"
    ),
    "no primary is listed, and none remembered": row(
        cache().member(0, primary=False).says(primary=""), PRIMARY, away(), "c-0, the primary, does not answer"
    ),
    "no primary is listed, and no copy": row(
        cache(**OFF).primary(0).member(0, primary=False), PRIMARY, away(900.0), "c-0, the primary, does not answer"
    ),
    # a copy is set up
    "two members keep a copy": row(
        cache(2).primary(0),
        "replication_runs",
        submits("Replicating", "Replicate c-1 at c-0"),
        "c-1 becomes the copy of c-0",
    ),
    "also if it is enabled by name": row(
        cache(2, derbyReplication={"mode": "Enabled"}).primary(0),
        "replication_runs",
        submits("Replicating", "Replicate c-1 at c-0"),
    ),
    "a single member keeps none": row(cache(1).primary(0), "", SETTLED),
    "nor does one to whom it is forbidden": row(cache(**OFF).primary(0), "", SETTLED),
    "the lowest other catalog server": row(
        cache(5, catalogs=5).primary(2).member(0, catalog=True).member(3, catalog=True).member(4, catalog=True),
        "replication_runs",
        submits("Replicating", "Replicate c-0 at c-2"),
    ),
    "a catalog server before another": Row(
        cache(4).primary(0).member(1, catalog=False).seen,
        "replication_runs",
        submits("Replicating", "Replicate c-2 at c-0"),
        steps=(replication.replication_runs,),
    ),
    "one that is no catalog server, if there is no other": row(
        cache(3, catalogs=1).primary(0).member(1, catalog=False).member(2, catalog=False),
        "replication_runs",
        submits("Replicating", "Replicate c-1 at c-0"),
    ),
    "only one that is online": Row(
        cache(3).primary(0).off(1).seen,
        "replication_runs",
        submits("Replicating", "Replicate c-2 at c-0"),
        steps=(replication.replication_runs,),
    ),
    "a copy that stays away is replaced": Row(
        cache(3).off(1).stands("replication_runs", "ReplicationMissing", age=60).seen,
        "replication_runs",
        submits("Replicating", "Replicate c-2 at c-0"),
        steps=(replication.replication_runs,),
    ),
    "a copy whose holder is away may come back": row(
        cache().off(1),
        "replication_runs",
        Waits("ReplicationMissing", "group", 960.0, again=BUSY),
        "c-1, which holds the copy, is not online; after 60 s c-2 gets it",
    ),
    "for a moment more": row(
        cache().off(1).stands("replication_runs", "ReplicationMissing", age=59),
        "replication_runs",
        Waits("ReplicationMissing", "group", 960.0, again=1.0),
    ),
    "and then no more": row(
        cache().off(1).stands("replication_runs", "ReplicationMissing", age=60),
        "replication_runs",
        submits("Replicating", "Replicate c-2 at c-0"),
        "c-2 becomes the copy of c-0",
    ),
    "only one that stays": Row(
        cache(3).primary(0).off(1).wants(size=2).seen,
        "",
        SETTLED,
        steps=(replication.replication_runs,),
    ),
    "nobody else is online": Row(
        cache(2).primary(0).off(1).seen,
        "",
        SETTLED,
        steps=(replication.replication_runs,),
    ),
    "not without the primary": Row(cache(2).primary(0).off(0).seen, "", SETTLED, steps=(replication.replication_runs,)),
}


@pytest.mark.parametrize("it", ROWS.values(), ids=ROWS)
def test_table(it: Row) -> None:
    verdicts.check(it, control.STEPS)


def test_there_is_no_copy_without_a_primary_to_copy_from() -> None:
    it = cache().off(0).seen

    assert "" == replication.candidate(it)
    with pytest.raises(ValueError, match="no primary"):
        replication.replicate(it, "c-1", "x")


def test_who_is_passed_over_gets_no_copy() -> None:
    assert ("c-1", "c-2") == (
        replication.candidate(cache().seen),
        replication.candidate(cache().seen, without="c-1"),
    )


def test_a_group_that_begins_has_no_copy() -> None:
    it = fresh(1).seen

    assert replication.slave_of(it) is None
    assert not replication.wanted(it)
