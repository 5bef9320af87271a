"""How a new template reaches the members: one after another, each once the group is well."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.operators.xsld.cache import control, rolling
from moorage.operators.xsld.group import answers
from moorage.runtime import decision, freshness
from moorage.runtime.reconcile import status
from tests.unit import verdicts
from tests.unit.verdicts import SETTLED, Blocks, Row, Waits, acts
from tests.unit.xsld import states
from tests.unit.xsld.states import BUSY, NOW, cache, submits

NO_COPY: dict[str, Any] = {"derbyReplication": {"mode": "Disabled"}}
ON_DELETE: dict[str, Any] = {"updateStrategy": {"type": "OnDelete"}}
NO_PAUSE: dict[str, Any] = {"updateStrategy": {"pauseOnFailure": False, "memberTimeout": "5m"}}
ROLLBACK: dict[str, Any] = {"updateStrategy": {"rollback": True}}
WAITS = Waits("UpdateWaits", "group", 1800.0, again=BUSY)
BACK = "new_members_are_back"
ROLLS = "template_rolls"


UNPLACED = (
    cache(2)
    .wants(size=3)
    .grown(3)
    .mute(2)
    .old(1)
    .pod(2, unplaced_since=NOW - 121.0, running=False, ready=False, came_up=False, trouble="no node fits")
)
"""A third member is wanted, and has no place, while the second is to be replaced."""


def row(it: states.It, step: str, shape: verdicts.Shape, says: str = "") -> Row:
    return Row(it.seen, step, shape, says)


def evicts(ordinal: int) -> verdicts.Acts:
    return acts("Updating", f"evict c-{ordinal} uid-{ordinal} if others_are_online c-{ordinal}")


def coming(within: float = 900.0, again: float = BUSY) -> Waits:
    return Waits("Updating", "group", within, again=again)


ROWS: dict[str, Row] = {
    "all are old: the highest first": row(cache().old(0, 1, 2), ROLLS, evicts(2), "c-2 is replaced"),
    "by number, not by name": row(cache(11).old(*range(11)), ROLLS, evicts(10)),
    "then the next": row(cache().old(0, 1), ROLLS, evicts(1)),
    "the primary last, having handed over": row(
        cache().old(0),
        ROLLS,
        submits("FailingOver", "Failover c-1 at c-1"),
        "c-1 becomes the primary, before c-0 is replaced",
    ),
    "the former primary then": row(cache().old(0).primary(1, slave=2), ROLLS, evicts(0)),
    "the primary is last wherever it is": row(cache().primary(2, slave=0).old(0, 1, 2), ROLLS, evicts(1)),
    "a primary goes as it is where no copy is wanted": row(cache(**NO_COPY).primary(0).old(0), ROLLS, evicts(0)),
    "also where one is left that does not answer": row(cache(**NO_COPY).old(0).mute(1), ROLLS, evicts(0)),
    "a primary whose copy is off waits": row(
        cache().old(0).off(1), BACK, coming(), "c-1 is to come back: its admin API"
    ),
    "a single member": row(cache(1).old(0), ROLLS, evicts(0)),
    "one that does not work anyway comes first": row(cache().old(0, 1, 2).off(1), ROLLS, evicts(1)),
    "one whose pod does not run comes first": row(cache().old(0, 1, 2).pod(1, running=False), ROLLS, evicts(1)),
    "even the primary": row(
        cache(derbyReplication={"mode": "Disabled"})
        .primary(0)
        .old(0, 1, 2)
        .pod(0, running=False)
        .fact(polled=freshness.Fresh(cache().primary(0).polled)),
        ROLLS,
        evicts(0),
    ),
    "not while another is off": row(
        cache().old(0, 1, 2).off(0, 1).but(silent={}).primary(2), ROLLS, WAITS, "c-0 not online; c-1 is not replaced"
    ),
    "nobody is evicted before the budget allows it": row(
        cache().old(0, 1).allows(0),
        ROLLS,
        Waits("UpdateWaits", "budget", 1800.0, again=BUSY),
        "the disruption budget lets nobody go at the moment; c-1 is not replaced",
    ),
    "one that does not work is no disruption": row(cache().old(0, 1).off(1).allows(0), ROLLS, evicts(1)),
    "the budget allows it": row(cache().old(0, 1).allows(1), ROLLS, evicts(1)),
    "one that came back a moment ago gets time": row(
        cache().old(0, 1).pod(2, since=NOW - 10.0),
        ROLLS,
        Waits("Updating", "group", 1800.0, again=20.0),
        "c-2 came back less than 30s ago; then c-1 is replaced",
    ),
    "also one that is still of the old template": row(
        cache().old(0, 1, 2).pod(0, since=NOW - 29.0), ROLLS, Waits("Updating", "group", 1800.0, again=1.0)
    ),
    "the last that came back counts": row(
        cache(4).old(0, 1).pod(2, since=NOW - 20.0).pod(3, since=NOW - 5.0),
        ROLLS,
        Waits("Updating", "group", 1800.0, again=25.0),
        "c-2, c-3 came back less than 30s ago",
    ),
    "one whose pod is ready for long, and that came Online a moment ago": row(
        cache().old(0, 1).pod(2, since=NOW - 300.0).online_since(2, 10.0),
        ROLLS,
        Waits("Updating", "group", 1800.0, again=20.0),
        "c-2 came back less than 30s ago",
    ),
    "one that has just come Online": row(
        cache().old(0, 1).pod(2, since=NOW - 300.0).online_since(2, None),
        ROLLS,
        Waits("Updating", "group", 1800.0, again=30.0),
    ),
    "after that time it goes on": row(cache().old(0, 1).pod(2, since=NOW - 30.0), ROLLS, evicts(1)),
    "the time is the user's": row(
        cache(updateStrategy={"settle": "5s"}).old(0, 1).pod(2, since=NOW - 10.0), ROLLS, evicts(1)
    ),
    "the one that is replaced may be young": row(cache().old(0, 1, 2).pod(2, since=NOW - 1.0), ROLLS, evicts(2)),
    "one that does not work is replaced at once": row(
        cache().old(0, 1).off(1).pod(2, since=NOW - 1.0), ROLLS, evicts(1)
    ),
    "a pod that is no member is not waited for": Row(
        cache(3).left(2).old(1).wants(size=2).pod(2, since=NOW - 1.0).seen,
        ROLLS,
        evicts(1),
        "",
        (rolling.template_rolls,),
    ),
    "not while another pod is ending": Row(
        cache().old(0, 1).pod(2, deleting=True).seen,
        ROLLS,
        WAITS,
        "c-2 not online; c-1 is not replaced",
        (rolling.template_rolls,),
    ),
    "not while one has not joined": Row(
        cache().left(1).old(0, 2).seen, ROLLS, WAITS, "c-1 not online; c-2 is not replaced", (rolling.template_rolls,)
    ),
    "one that has no node is nobody to wait for": row(
        UNPLACED.set_of(replicas=2).no_pod(2).says(grows_after="new").no_volume(2), ROLLS, evicts(1)
    ),
    "for a while": row(UNPLACED.pod(2, unplaced_since=NOW - 119.0), ROLLS, WAITS, "c-2 (no node fits) not online; c-1"),
    "before that its place is given up": row(
        UNPLACED,
        "workload_is_right",
        acts("Resizing", "remember growsAfter", "apply StatefulSet/c sts-uid if member_has_left 2"),
        "c-2 (no node fits) waits until the members are replaced",
    ),
    "one whose pod can't be made, too": row(
        UNPLACED.no_pod(2).volume(2, made_at=NOW - 121.0),
        "workload_is_right",
        acts("Resizing", "remember growsAfter", "apply StatefulSet/c sts-uid if member_has_left 2"),
        "c-2 (it is made once all members are of the current template) waits",
    ),
    "one whose pod is to be made any moment is waited for": row(
        UNPLACED.no_pod(2).volume(2, made_at=NOW - 119.0), ROLLS, WAITS, "c-2 (it has no pod)"
    ),
    "one whose old volume is going, too": row(UNPLACED.no_pod(2).volume(2, deleting=True), ROLLS, WAITS, "c-2 (it has"),
    "one below a member can't give up its place: what another leaves free would be taken by it": row(
        cache(4, **NO_COPY)
        .left(1)
        .pod(1, unplaced_since=NOW - 121.0, running=False, ready=False, trouble="no node fits")
        .mute(1)
        .old(2),
        ROLLS,
        WAITS,
        "c-1 (no node fits) not online; c-2 is not replaced",
    ),
    "nor can one whose volume must be kept": row(
        UNPLACED.but(spec={**UNPLACED.spec, "storage": {"reclaimOnScaleDown": "Retain"}}), ROLLS, WAITS, "c-2 (no node"
    ),
    "when all are of the current template it is made": row(
        UNPLACED.set_of(replicas=2).no_pod(2).no_volume(2).says(grows_after="new").pod(1, revision="new"),
        "workload_is_right",
        acts("Resizing", "apply StatefulSet/c sts-uid"),
        "goes from 2 to 3 pods",
    ),
    "for another template it is tried anew": row(
        UNPLACED.set_of(replicas=2).no_pod(2).no_volume(2).says(grows_after="former"),
        "workload_is_right",
        acts("Resizing", "apply StatefulSet/c sts-uid"),
    ),
    "while nobody is to be replaced it keeps its place": row(
        UNPLACED.pod(1, revision="new"), "members_have_joined", Waits("MemberStarting", "group", 1800.0, again=BUSY)
    ),
    "nor where nobody replaces": row(
        UNPLACED.but(spec={**UNPLACED.spec, **ON_DELETE}),
        "members_have_joined",
        Waits("MemberStarting", "group", 1800.0, again=BUSY),
    ),
    "one that fails with the template which others are to get": row(
        cache(2).wants(size=3).grown(3).mute(2).pod(2, held=True, running=False, trouble="it crashes").old(1),
        ROLLS,
        WAITS,
        "c-2 (it crashes) not online; c-1 is not replaced meanwhile",
    ),
    "or fails to join with it": row(
        cache(2).wants(size=3).grown(3).failed("Join", 2, age=1.0).old(1), ROLLS, WAITS, "c-2 not online"
    ),
    "or with a former one": row(
        cache(2).wants(size=3).grown(3).failed("Join", 2, age=1.0).old(1, 2),
        ROLLS,
        acts("Updating", "evict c-2 uid-2 if others_are_online c-2"),
    ),
    "one that starts is waited for": row(
        cache(2).wants(size=3).grown(3).mute(2).old(1), ROLLS, WAITS, "c-2 (its admin API: Unreachable) not online; c-1"
    ),
    "one that is to join, and does not end, gives up its place too": row(
        cache(2).wants(size=3).grown(3).pod(2, deleting=True, overdue=True, running=False).old(1, 2),
        "workload_is_right",
        acts("Resizing", "remember growsAfter", "apply StatefulSet/c sts-uid if member_has_left 2"),
    ),
    "nor does it when nobody else is old": row(
        cache(2).wants(size=3).grown(3).pod(2, deleting=True, overdue=True, running=False).old(2),
        "members_have_joined",
        Waits("MemberStarting", "group", 1800.0, again=BUSY),
    ),
    "a member that does not end is waited for": row(
        cache().off(2).pod(2, deleting=True, overdue=True, running=False, trouble="its node is away").old(1, 2),
        ROLLS,
        Waits("Updating", "pod", 900.0, again=BUSY),
        "c-2 (its node is away) is being replaced",
    ),
    "not while a grid is not online": row(
        cache().old(2).but(grids=(answers.Grid("g", "Online"), answers.Grid("h", "Stopped"))),
        ROLLS,
        WAITS,
        "c-2 is replaced once grid h is online",
    ),
    "nobody is replaced by us": row(cache(**ON_DELETE).old(0, 1, 2), "", SETTLED),
    "while the template is not known nobody is old, and nobody new": row(
        cache().old(0, 1, 2).set_of(revision=""),
        "template_is_known",
        Waits("Updating", "workload", 300.0, unseen=True),
        "the StatefulSet's controller is to look at the new template",
    ),
    "pods that are to go are not replaced": row(
        cache(3).left(2).old(2).wants(size=2).set_of(replicas=2).no_volume(2),
        "surplus_is_gone",
        Waits("SurplusStays", "surplus", 600.0),
    ),
    # they must come back
    "one that was replaced starts": row(cache().old(0, 1).off(2), BACK, coming(), "; then c-1, c-0 is"),
    "one that was replaced can't start": row(
        cache().old(0, 1).off(2).pod(2, running=False, trouble="the image can't be pulled"),
        BACK,
        coming(),
        "c-2 is to come back: the image can't be pulled; then",
    ),
    "it runs, and is not online": row(cache().old(0, 1).member(2, online=False), BACK, coming()),
    "the group has it online, and its pod does not run": row(
        cache().old(0, 1).pod(2, running=False).fact(polled=freshness.Fresh(cache().polled)),
        BACK,
        coming(),
    ),
    "it took too long": row(
        cache().old(0, 1).off(2).pod(2, trouble="it crashes", since=NOW - 901),
        BACK,
        Blocks("UpdateStalled"),
        "c-2 did not come back within 900 s: it crashes; c-1, c-0 is left as it is",
    ),
    "in a time of the user's own": row(
        cache(updateStrategy={"memberTimeout": "5m"}).old(0, 1).off(2).pod(2, since=NOW - 301),
        BACK,
        Blocks("UpdateStalled"),
        "c-2 did not come back within 300 s: its admin API: Unreachable; c-1, c-0",
    ),
    "it took too long, and the last good image is run again": row(
        cache(**ROLLBACK).says(good_image="ibmcom/xsld:8613").old(0, 1).off(2).pod(2, since=NOW - 901),
        BACK,
        acts("UpdateRolledBack", "remember failedImage"),
        "c-2 did not come back within 900 s: its admin API: Unreachable; all run ibmcom/xsld:8613 again",
    ),
    "there is no other image to go back to": row(
        cache(**ROLLBACK).says(good_image="ibmcom/xsld:latest").old(0, 1).off(2).pod(2, since=NOW - 901),
        BACK,
        Blocks("UpdateStalled"),
    ),
    "nor any that was ever good": row(
        cache(**ROLLBACK).old(0, 1).off(2).pod(2, since=NOW - 901), BACK, Blocks("UpdateStalled")
    ),
    "it is not wanted": row(
        cache().says(good_image="ibmcom/xsld:8613").old(0, 1).off(2).pod(2, since=NOW - 901),
        BACK,
        Blocks("UpdateStalled"),
    ),
    "not before its time": row(
        cache(**ROLLBACK).says(good_image="ibmcom/xsld:8613").old(0, 1).off(2).pod(2, since=NOW - 899),
        BACK,
        coming(again=2.0),
    ),
    "rolled back, the member of the failed image goes first": row(
        cache(**ROLLBACK).fact(refused_image="ibmcom/xsld:bad").old(2).off(2), ROLLS, evicts(2)
    ),
    "all is well, and not as asked": row(
        cache(**ROLLBACK).fact(refused_image="ibmcom/xsld:bad"),
        "image_is_as_asked",
        Blocks("UpdateRolledBack"),
        "a member of ibmcom/xsld:bad did not come back within 15m; all run ibmcom/xsld:latest",
    ),
    "it took too long, and that may be": row(
        cache(**NO_PAUSE).old(0, 1).off(2).pod(2, since=NOW - 901), BACK, coming(300.0)
    ),
    "the first that is not back is told": row(
        cache().old(0).off(2).member(1, online=False), BACK, coming(), "c-1 is to come back"
    ),
    "one that is to go need not come back": row(
        cache(3).left(2).old(0, 1).wants(size=2).set_of(replicas=2).no_volume(2).pod(2, running=False),
        ROLLS,
        evicts(1),
    ),
    "when nobody is old all are waited for elsewhere": row(
        cache().off(2),
        "members_are_online",
        Waits("MembersNotOnline", "group", 1800.0, again=BUSY),
    ),
}


@pytest.mark.parametrize("it", ROWS.values(), ids=ROWS)
def test_table(it: Row) -> None:
    verdicts.check(it, control.STEPS)


def test_a_roll_from_first_to_last_is_the_vendors_order() -> None:
    """Container servers first, catalog servers after them, the primary last; each is back before the next one goes."""
    it, told = cache(5).old(*range(5)), []
    for _ in range(20):
        step, found, _, made = verdicts.decided(it.seen, control.STEPS)
        if not step:
            break
        assert isinstance(found, verdicts.Acts), found
        told.append(found.actions[-1])
        action = made.acts[0].actions[-1]
        if isinstance(action, decision.Evict):
            ordinal = int(action.ref.name[-1])
            it = it.pod(ordinal, revision="new", uid=f"new-{ordinal}")
        else:
            it = it.primary(1, slave=0)

    assert [
        "evict c-4 uid-4 if others_are_online c-4",
        "evict c-3 uid-3 if others_are_online c-3",
        "evict c-2 uid-2 if others_are_online c-2",
        "evict c-1 uid-1 if others_are_online c-1",
        "submit Failover c-1 at c-1",
        "evict c-0 uid-0 if others_are_online c-0",
    ] == told


def test_while_the_primary_is_not_known_the_first_counts_as_it() -> None:
    it = cache().old(0, 1, 2).fact(polled=freshness.Failed("Down", "down")).seen

    assert ["c-2", "c-1", "c-0"] == [pod.name for pod in rolling.outdated(it)]


def test_without_a_statefulset_nobody_is_old() -> None:
    assert [] == rolling.outdated(cache().old(0).but(workload=None).seen)
    assert decision.DONE == rolling.new_members_are_back(cache().old(0).but(workload=None).seen)


def test_a_stalled_update_stays_stalled_until_something_changes() -> None:
    """Its new reason must not begin the time anew that it is judged by."""
    it = cache().old(0, 1).off(2).pod(2, since=NOW - 901).stands(BACK, "Updating", age=901)
    found = []
    for _ in range(3):
        made = decision.decide(it.seen, steps=(rolling.new_members_are_back,))
        stands = status.standing(made, ())
        found.append(stands.reason)
        it = it.says(progress=status.progress(stands, it.status.progress, NOW))

    assert ["UpdateStalled"] * 3 == found


def test_a_pod_that_was_made_anew_has_time_of_its_own() -> None:
    """As one of a corrected template, while the steps stand where they stood."""
    it = cache().old(0, 1).off(2).stands(BACK, age=901).pod(2, since=NOW - 30)

    assert isinstance(rolling.new_members_are_back(it.seen), decision.Wait)
