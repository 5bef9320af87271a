"""What is owned goes in order, and the deletion ends; or all of it is let go of."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec
import pytest

from moorage.api import meta
from moorage.children import parts, removal
from moorage.runtime import decision
from moorage.runtime.decision import Verdict
from tests.unit import verdicts
from tests.unit.children import depots
from tests.unit.children.depots import CONFIG, KEY, SERVICE, differs, good, live, missing, pod, volume
from tests.unit.verdicts import SETTLED, Waits, acts

R = depots.Reason
ORPHAN = {"moorage.dev/on-delete": "Orphan"}
DEPOT = meta.ObjectMeta(name="d", namespace="ns", uid="uid-d")


def left(workload: parts.WorkloadSeen | None, **annotations: str) -> Verdict:
    children = (good(CONFIG), missing(SERVICE))
    return removal.orphaning_is_honoured(
        msgspec.structs.replace(DEPOT, annotations=annotations), children, workload, R.LEAVING
    )


def test_what_is_to_stay_is_let_go_of_before_its_owner_goes() -> None:
    """What is not there, and what is no workload's, needs nothing."""
    config = "patch ConfigMap/d-config uid-ConfigMap/d-config /metadata/ownerReferences=[]"

    verdicts.same(
        left(live(), **ORPHAN),
        acts("Leaving", config, "patch StatefulSet/d sts-uid /metadata/ownerReferences=[]", "finalizer off"),
        "everything is left where it is",
    )
    verdicts.same(left(None, **ORPHAN), acts("Leaving", config, "finalizer off"))


@pytest.mark.parametrize("annotations", [{}, {"moorage.dev/on-delete": "Delete"}], ids=["nothing", "Delete"])
def test_nothing_stays_unasked(annotations: dict[str, str]) -> None:
    verdicts.same(left(live(), **annotations), SETTLED)


def gone(workload: parts.WorkloadSeen | None, *pods: parts.PodSeen) -> Verdict:
    return removal.workload_is_gone(workload, KEY, pods, R.LEAVING, owner="the depot")


def test_the_workload_goes_with_its_pods() -> None:
    verdicts.same(gone(None, pod(0)), SETTLED)
    verdict = gone(live(), pod(0))
    verdicts.same(verdict, acts("Leaving", "delete StatefulSet/d sts-uid"), "StatefulSet d is deleted with its pods")
    assert isinstance(verdict, decision.Act)
    assert "the depot is deleted" == verdict.actions[0].why


@pytest.mark.parametrize(
    ("pods", "says"),
    [
        pytest.param((pod(0), pod(1)), "StatefulSet d is ending, with d-0, d-1", id="with pods"),
        pytest.param((), "StatefulSet d is ending", id="without"),
    ],
)
def test_its_end_is_awaited(pods: tuple[parts.PodSeen, ...], says: str) -> None:
    verdict = gone(live(child=differs(deleting=True)), *pods)

    verdicts.same(verdict, Waits("Leaving", "pod", 900.0))
    assert isinstance(verdict, decision.Wait)
    assert says == verdict.message


def test_a_volume_goes_once_nobody_uses_it() -> None:
    there = [volume(0), volume(1), volume(2, deleting=True)]
    verdict = removal.volumes_go(there, "ns", R.CLEARING, in_use=lambda it: it.ordinal == 1, why="the depot is deleted")

    verdicts.same(verdict, acts("Clearing", "delete PersistentVolumeClaim/data-d-0 pvc-0"), "data-d-0 is deleted")
    verdicts.same(removal.volumes_go(there[1:], "ns", R.CLEARING, in_use=lambda it: it.ordinal == 1, why="w"), SETTLED)


def test_the_end_of_pods_and_volumes_is_awaited() -> None:
    verdicts.same(removal.pods_are_gone((), R.LEAVING, depots.described), SETTLED)
    verdicts.same(
        removal.pods_are_gone((pod(0), pod(1)), R.LEAVING, depots.described),
        Waits("Leaving", "pod", 900.0),
        "d-0 (its words), d-1 (its words) is ending",
    )
    verdicts.same(removal.volumes_are_gone((), R.CLEARING), SETTLED)
    verdicts.same(
        removal.volumes_are_gone((volume(0), volume(1, deleting=True), volume(2, deleting=True)), R.CLEARING),
        Waits("Clearing", "volume", 600.0),
        "data-d-1, data-d-2 is being deleted; data-d-0 goes once its pod has ended",
    )


class World(msgspec.Struct, frozen=True):
    """What there is of a depot that is being deleted."""

    workload: parts.WorkloadSeen | None
    pods: tuple[parts.PodSeen, ...]
    volumes: tuple[parts.VolumeSeen, ...]


Step: TypeAlias = Callable[[World], Verdict]


def workload_is_gone(it: World) -> Verdict:
    return gone(it.workload, *it.pods)


def volumes_go(it: World) -> Verdict:
    used = {each.ordinal for each in it.pods}
    return removal.volumes_go(it.volumes, "ns", R.CLEARING, in_use=lambda each: each.ordinal in used, why="w")


def pods_are_gone(it: World) -> Verdict:
    return removal.pods_are_gone(it.pods, R.LEAVING, depots.described)


def volumes_are_gone(it: World) -> Verdict:
    return removal.volumes_are_gone(it.volumes, R.CLEARING)


def test_it_ends_as_the_world_follows() -> None:
    """No volume waits for another's pod, and each step lets the next one begin."""
    steps: tuple[Step, ...] = (workload_is_gone, volumes_go, pods_are_gone, volumes_are_gone)
    both, going = (volume(0), volume(1)), (volume(0, deleting=True), volume(1, deleting=True))
    story = (
        World(live(), (pod(0), pod(1)), both),
        World(live(child=differs(deleting=True)), (pod(0), pod(1)), both),
        World(None, (pod(1),), both),
        World(None, (pod(1),), (going[0], both[1])),
        World(None, (), (both[1],)),
        World(None, (), going),
        World(None, (), ()),
    )
    told = [verdicts.decided(each, steps)[:2] for each in story]

    assert [
        ("workload_is_gone", "Acts"),
        ("workload_is_gone", "Waits"),
        ("volumes_go", "Acts"),
        ("pods_are_gone", "Waits"),
        ("volumes_go", "Acts"),
        ("volumes_are_gone", "Waits"),
        ("", "Settles"),
    ] == [(step, type(shape).__name__) for step, shape in told]
