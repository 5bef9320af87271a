"""What a member that left leaves behind, and the readiness gates of those who are there."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.operators.xsld.cache import control, facts, left_members, types
from moorage.runtime import decision, freshness
from tests.unit import verdicts
from tests.unit.verdicts import Blocks, Row, Waits, acts
from tests.unit.xsld import states
from tests.unit.xsld.states import cache, submits

STEP, RENEWED, CREDENTIALS = "left_members_are_renewed", "left_members_are_new", "pods_have_the_credentials"
CHANGED = cache(3).fact(credentials_since=states.NOW - 20.0)


def row(it: states.It, step: str, shape: verdicts.Shape, says: str = "") -> Row:
    return Row(it.seen, step, shape, says)


def gates_are_set(seen: Any) -> decision.Verdict:
    """The step, stopping where it acts, so that its verdict is seen."""
    verdict = control.gates_are_set(seen)
    return msgspec.structs.replace(verdict, go_on=False) if isinstance(verdict, decision.Act) else verdict


def gone(volume: str = "pvc-2", pod: str = "uid-2", **spec: object) -> states.It:
    """c-2 has left, and is wanted again."""
    it = cache(3, **spec).left(2)
    return it.says(left=(types.Left("c-2", volume, pod),))


EPHEMERAL = {"storage": {"ephemeral": True}}
NOTICED = "removals_are_noticed"
UID = cache().pods[2].uid
THEN = ("Online", "Online", "Joining")
ROWS: dict[str, Row] = {
    # one that somebody else removed
    "it was removed by somebody else": row(
        cache(3).removed(2), NOTICED, acts("Rejoining", "remember left"), "c-2 was removed from the group by somebody"
    ),
    "it has yet to notice": row(
        cache(3).removed(2).but(stories={}),
        "removals_are_known",
        Waits("Rejoining", "group", 600.0, again=states.BUSY),
        "has c-2 no more, and it is still to notice",
    ),
    "its join had never ended": row(
        cache(3)
        .removed(2)
        .says(member_statuses=tuple(types.MemberStatus(f"c-{n}", n, state=was) for n, was in enumerate(THEN))),
        "members_join",
        submits("Joining", "Join c-2 at c-2"),
    ),
    "nothing of it is there": row(
        cache(3).removed(2).no_pod(2).no_volume(2),
        "members_have_joined",
        Waits("MemberStarting", "group", 1800.0, again=states.BUSY),
    ),
    "that was noticed": row(
        cache(3).removed(2).says(left=(types.Left("c-2", "pvc-2", UID),)),
        STEP,
        acts(
            "ClearingVolume",
            "delete PersistentVolumeClaim/vol-c-2 pvc-2 if member_has_left 2",
            f"delete Pod/c-2 {UID} if member_has_left 2",
        ),
    ),
    "a group that has forgotten two may be the one that is wrong": row(
        cache(4).removed(2, 3), "members_join", submits("Joining", "Join c-2 at c-2")
    ),
    "one that does not answer may be one still": row(
        cache(3).removed(2).mute(2), "members_have_joined", Waits("MemberStarting", "group", 1800.0, again=states.BUSY)
    ),
    "one that has another pod by now": row(
        cache(3).removed(2).pod(2, uid="another").fact(polled=freshness.Fresh(cache(3).removed(2).polled)),
        "members_have_joined",
        Waits("MemberStarting", "group", 1800.0, again=states.BUSY),
    ),
    "before the primary answers nobody counts as removed": Row(
        cache(3).removed(2).mute(0).seen, "", verdicts.SETTLED, "", (left_members.removals_are_noticed,)
    ),
    "the primary does not answer": row(
        cache(4).removed(3).mute(0), "primary_leads", Waits("PrimaryUnavailable", "group", 960.0, again=states.BUSY)
    ),
    "its volume is in the same pod": row(
        cache(3, **EPHEMERAL).removed(2), NOTICED, acts("Rejoining", "remember left"), "c-2 was removed"
    ),
    "without a volume a new pod has nothing old": row(
        cache(3, **EPHEMERAL).removed(2).pod(2, address="10.0.0.99"),
        "members_join",
        submits("Joining", "Join c-2 at c-2"),
    ),
    # what it left behind
    "it gets a new volume and a new pod": row(
        gone(pod=UID),
        STEP,
        acts(
            "ClearingVolume",
            "delete PersistentVolumeClaim/vol-c-2 pvc-2 if member_has_left 2",
            f"delete Pod/c-2 {UID} if member_has_left 2",
        ),
        "c-2 gets a new volume, to join anew",
    ),
    "the volume is going": row(
        gone(pod=UID).volume(2, deleting=True).pod(2, deleting=True, running=False),
        RENEWED,
        Waits("ClearingVolume", "volume", 600.0),
        "the old volume of c-2 is going",
    ),
    "the pod holds it": row(
        gone(pod=UID).volume(2, deleting=True),
        STEP,
        acts("ClearingVolume", f"delete Pod/c-2 {UID} if member_has_left 2"),
    ),
    "both are new": row(gone("old", "old"), STEP, acts("TaskDone", "remember no-left"), "what c-2 left behind is gone"),
    "its volume is new, its pod is not": row(
        gone("old", UID), STEP, acts("ClearingVolume", f"delete Pod/c-2 {UID} if member_has_left 2")
    ),
    "it is a member again": row(
        cache(3).says(left=(types.Left("c-2", "pvc-2", UID),)), STEP, acts("TaskDone", "remember no-left")
    ),
    "volumes are kept": row(
        gone(pod=UID, storage={"reclaimOnScaleDown": "Retain"}),
        RENEWED,
        Blocks("LeftoverVolume"),
        "in the way of its joining",
    ),
    "which keeps nobody else from joining": row(
        cache(4, storage={"reclaimOnScaleDown": "Retain"}).left(2, 3).says(left=(types.Left("c-2", "pvc-2", UID),)),
        "members_join",
        submits("Joining", "Join c-3 at c-3"),
    ),
    "nor from being replaced": row(
        gone(pod=UID, storage={"reclaimOnScaleDown": "Retain"}).old(1),
        "template_rolls",
        acts("Updating", "evict c-1 uid-1 if others_are_online c-1"),
    ),
    "while a volume goes others are replaced once its pod is there": row(
        gone(pod=UID).volume(2, deleting=True).pod(2, deleting=True, running=False).old(1),
        "template_rolls",
        Waits("UpdateWaits", "group", 1800.0, again=states.BUSY),
        "c-2 not online; c-1 is not replaced meanwhile",
    ),
    "if it does not end, it gives up its place": row(
        gone(pod=UID).volume(2, deleting=True).pod(2, deleting=True, running=False, overdue=True).old(1),
        "workload_is_right",
        acts("Resizing", "remember growsAfter", "apply StatefulSet/c sts-uid if member_has_left 2"),
    ),
    "the volume of one that goes keeps no other from being renewed": row(
        cache(4)
        .left(2, 3)
        .says(left=(types.Left("c-2", "pvc-2", UID), types.Left("c-3", "pvc-3", "uid-3")))
        .volume(2, deleting=True)
        .pod(2, deleting=True, running=False),
        STEP,
        acts(
            "ClearingVolume",
            "delete PersistentVolumeClaim/vol-c-3 pvc-3 if member_has_left 3",
            "delete Pod/c-3 uid-3 if member_has_left 3",
        ),
    ),
    "one that is surplus, below another, is not renewed": row(
        cache(5).left(3).wants(size=2).says(left=(types.Left("c-3", "pvc-3", "uid-3"),)),
        "surplus_leaves",
        submits("Disjoining", "Leave c-4 at c-0"),
    ),
    # what a pod began with
    "a pod that is older than the credentials, and off": row(
        CHANGED.off(2),
        CREDENTIALS,
        acts("RenewingCredentials", f"delete Pod/c-2 {UID} if pod_is_off c-2 {UID}"),
        "c-2 began with other credentials than those of now",
    ),
    "one that was Online since its container was started comes back by itself": row(
        CHANGED.off(2).says(member_statuses=(types.MemberStatus("c-2", 2, started_at=states.ago(700)),)),
        "members_are_online",
        Waits("MembersNotOnline", "group", 1800.0, again=states.BUSY),
    ),
    "not one that was Online in a former one": row(
        CHANGED.off(2).says(member_statuses=(types.MemberStatus("c-2", 2, started_at=states.ago(900)),)),
        CREDENTIALS,
        acts("RenewingCredentials", f"delete Pod/c-2 {UID} if pod_is_off c-2 {UID}"),
    ),
    "or no member": row(
        CHANGED.left(2), CREDENTIALS, acts("RenewingCredentials", f"delete Pod/c-2 {UID} if pod_is_off c-2 {UID}")
    ),
    "what failed with others is forgotten": row(
        CHANGED.left(2).failed("Join", 2, attempts=5),
        CREDENTIALS,
        acts("RenewingCredentials", "remember no-troubles", f"delete Pod/c-2 {UID} if pod_is_off c-2 {UID}"),
    ),
    "while it joins it is let join": row(
        CHANGED.left(2).asked("Join", 2, 2).runs(2, states.task()),
        "own_task_is_followed",
        Waits("Joining", "group", 900.0, again=states.BUSY),
    ),
    "one that is Online is left alone": row(CHANGED, "", verdicts.SETTLED),
    "one that is younger too": row(
        CHANGED.off(2).pod(2, started_at=states.NOW - 10.0),
        "members_are_online",
        Waits("MembersNotOnline", "group", 1800.0, again=states.BUSY),
    ),
    "before they are surely those that a container gets": row(
        cache(3).off(2).fact(credentials_since=states.NOW + 1.0),
        "members_are_online",
        Waits("MembersNotOnline", "group", 1800.0, again=states.BUSY),
    ),
    "without the primary nobody": Row(
        CHANGED.off(0, 2).seen, "", verdicts.SETTLED, steps=(left_members.pods_have_the_credentials,)
    ),
    "volumes are kept, and the user deletes this one": row(
        gone(pod=UID, storage={"reclaimOnScaleDown": "Retain"}).volume(2, deleting=True),
        STEP,
        acts("ClearingVolume", f"delete Pod/c-2 {UID} if member_has_left 2"),
    ),
    "it has left for good, and its pod and volume go anyway": Row(
        gone(pod=UID).wants(size=2).set_of(replicas=2).seen,
        "",
        verdicts.SETTLED,
        steps=(left_members.left_members_are_renewed,),
    ),
    "it leaves for good": row(
        cache(3).left(2).wants(size=2).says(left=(types.Left("c-2", "pvc-2", UID),)),
        "workload_is_right",
        acts("Resizing", "apply StatefulSet/c sts-uid if member_has_left 2"),
    ),
    # gates
    "pods are told that they may serve": Row(
        cache(2, readinessGate=True).seen,
        "gates_are_set",
        acts("Gating", "condition Pod/c-0 True", "condition Pod/c-1 True"),
        "serve clients: c-0 may, c-1 may",
        steps=(gates_are_set,),
    ),
    "one that is off may not": Row(
        cache(2, readinessGate=True).pod(0, gate=True).pod(1, gate=True).member(1, online=False).seen,
        "gates_are_set",
        acts("Gating", "condition Pod/c-1 False"),
        "c-1 may not",
        steps=(gates_are_set,),
    ),
    "nobody knows the group": Row(
        cache(2, readinessGate=True).mute(0, 1).seen, "", verdicts.SETTLED, steps=(control.gates_are_set,)
    ),
    "they know it already": Row(
        cache(2, readinessGate=True).pod(0, gate=True).pod(1, gate=True).seen,
        "",
        verdicts.SETTLED,
        steps=(control.gates_are_set,),
    ),
    "nobody joins while most are off": row(
        cache(3).wants(size=4).grown(4).off(1, 2),
        "members_have_joined",
        Waits("GroupDegraded", "group", 3600.0, again=states.BUSY),
    ),
    "another copy is made, before the primary is replaced": row(
        cache().primary(0).old(0), "template_rolls", submits("Replicating", "Replicate c-1 at c-0")
    ),
}


@pytest.mark.parametrize("it", ROWS.values(), ids=ROWS)
def test_table(it: Row) -> None:
    verdicts.check(it, control.STEPS)


OTHER = {"member": "c-1", "volume": "pvc-x", "pod": "uid-x"}


def left(it: states.It) -> Any:
    """Who has left, as the step where the list stops has it remembered."""
    (act,) = decision.decide(it.seen, steps=control.STEPS).acts
    (note,) = act.actions

    assert isinstance(note, decision.Remember)
    return note.fields["left"]


def test_of_what_is_gone_nothing_else_is_forgotten() -> None:
    it = cache(3).left(2).says(left=(types.Left("c-2", "old", "old"), types.Left("c-1", "pvc-x", "uid-x")))

    assert [OTHER] == left(it)


def test_what_a_member_leaves_behind_is_noted() -> None:
    it = cache(3).left(2).wants(size=2).asked("Leave", 2, 0).runs(0, states.task(phase=states.DONE))

    assert [{"member": "c-2", "volume": "pvc-2", "pod": UID}] == left(it)
    assert [{"member": "c-2", "volume": "", "pod": ""}] == left(it.no_pod(2).no_volume(2))


def test_who_leaves_again_is_noted_once_and_others_stay_noted() -> None:
    before = (types.Left("c-2", "old", "old"), types.Left("c-1", "pvc-x", "uid-x"))

    assert [OTHER, {"member": "c-2", "volume": "pvc-2", "pod": UID}] == left_members.noted(
        cache(3).says(left=before).seen, "c-2"
    )


def test_what_somebody_else_removed_is_noted_with_all_that_it_has() -> None:
    (note,) = decision.decide(cache(3).removed(2).seen, steps=control.STEPS).acts[0].actions

    assert isinstance(note, decision.Remember)
    assert {"left": [{"member": "c-2", "volume": "pvc-2", "pod": UID}]} == note.fields


def told(it: states.It) -> dict[str, str]:
    """The state of each member as status has it, whatever the steps wait for."""
    found = facts.report(it.seen, None)["memberStatuses"]
    return {each["name"]: each["state"] for each in found}


BOTH = {"c-0": "Online", "c-1": "Online"}


def test_who_was_removed_is_remembered_until_it_is_noted() -> None:
    busy = cache(3).removed(2).runs(0, states.task(description="by hand"))
    left = (types.Left("c-2", "pvc-2", UID),)

    assert "foreign_tasks_end" == decision.decide(busy.seen, steps=control.STEPS).standing.name  # type: ignore[union-attr]
    assert {**BOTH, "c-2": "Removed"} == told(busy)
    again = busy.says(
        member_statuses=tuple(types.MemberStatus(n, i, state=s) for i, (n, s) in enumerate(told(busy).items()))
    )
    assert {**BOTH, "c-2": "Removed"} == told(again.runs(0))
    assert BOTH == told(busy.says(left=left))
    assert BOTH == told(busy.no_pod(2).no_volume(2))
    assert BOTH == told(busy.wants(size=2).set_of(replicas=2).no_pod(2))
    assert BOTH == told(cache(4).removed(2, 3))


def test_without_volumes_a_new_pod_ends_the_memory() -> None:
    it = cache(3, **EPHEMERAL).removed(2)

    assert {**BOTH, "c-2": "Removed"} == told(it)
    assert {**BOTH, "c-2": "Removed"} == told(it.pod(2, address=""))
    assert BOTH == told(it.pod(2, address="10.0.0.99"))
    assert BOTH == told(it.no_pod(2))
