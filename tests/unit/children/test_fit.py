"""Three small systems from the same functions: a StatefulSet, Deployments, and one bare pod for each resource.

Each goes from nothing to settled, through a change, as the world follows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from moorage.api import builtin, meta
from moorage.children import apply, objects, parts, pod_replacement, readiness, stateful_set, volumes
from moorage.runtime import decision
from moorage.runtime.decision import DONE, Verdict, Wait
from tests.unit import verdicts
from tests.unit.children import depots
from tests.unit.children.depots import CONFIG, KEY, REASONS, differs, good, guard, live, missing, pod, volume

R = depots.Reason


def others_are_up(there: tuple[parts.PodSeen, ...], it: parts.PodSeen) -> Verdict:
    """The gate of all three: nobody goes while another is not ready."""
    away = [each for each in there if each.name != it.name and not each.ready]
    return Wait(R.HELD, f"{pod_replacement.names(away)} is not ready", on="pod", within=60.0) if away else DONE


def rolls(there: tuple[parts.PodSeen, ...], old: list[parts.PodSeen]) -> Verdict:
    return pod_replacement.next_is_replaced(
        old,
        "ns",
        R.ROLLING,
        gate=lambda it: others_are_up(there, it),
        guard=guard,
        within=60.0,
        again=5.0,
        describe=depots.described,
    )


def story(steps: tuple[Callable[[Any], Verdict], ...], *worlds: Any) -> list[tuple[str, str]]:
    """Where the steps stand in each of these worlds, and under which reason."""
    told = [decision.decide(world, steps=steps).standing for world in worlds]
    return [(it.name, getattr(it.verdict, "reason", "")) if it else ("", "") for it in told]


# --- a StatefulSet: its claims grow, and it is made anew around its pods ------------------------------------------


class Set(msgspec.Struct, frozen=True):
    children: tuple[parts.Pair, ...] = (good(CONFIG),)
    workload: parts.WorkloadSeen | None = live()
    pods: tuple[parts.PodSeen, ...] = (pod(0), pod(1), pod(2))
    volumes: tuple[parts.VolumeSeen, ...] = (volume(0),)
    size: str = "1Gi"


def set_children(it: Set) -> Verdict:
    return objects.are_right(it.children, R.APPLYING)


def set_workload(it: Set) -> Verdict:
    return stateful_set.is_right(
        it.workload,
        KEY,
        3,
        depots.statefulset,
        REASONS,
        owner="the depot",
        may_go=lambda n: decision.Guard("is_unused", {"ordinal": n}),
    )


def set_rolls(it: Set) -> Verdict:
    return rolls(it.pods, sorted(pod_replacement.outdated(it.pods, it.workload), key=lambda each: -each.ordinal))


def set_volumes(it: Set) -> Verdict:
    return volumes.grow(it.volumes, it.size, "ns", R.GROWING, blocked=R.STUCK, field="spec.size")


def test_a_statefulset() -> None:
    old = tuple(pod(n, revision="old") for n in range(3))
    told = story(
        (set_children, set_workload, set_rolls, set_volumes),
        Set(children=(missing(CONFIG),), workload=None, pods=(), volumes=()),
        Set(workload=None, pods=(), volumes=()),
        Set(),
        # another image
        Set(workload=live(child=differs()), pods=old),
        Set(pods=old),
        Set(pods=(*old[:2], pod(2, revision="old", deleting=True))),
        Set(pods=(*old[:2], pod(2, ready=False))),
        Set(pods=(*old[:2], pod(2))),
        # larger volumes
        Set(size="2Gi", workload=live(child=differs(), fixed=("spec.volumeClaimTemplates",))),
        Set(size="2Gi", workload=None),
        Set(size="2Gi"),
    )

    assert [
        ("set_children", "Applying"),
        ("set_workload", "Creating"),
        ("", ""),
        ("set_workload", "Creating"),
        ("set_rolls", "Rolling"),
        ("set_rolls", "Rolling"),
        ("set_rolls", "Held"),
        ("set_rolls", "Rolling"),
        ("set_workload", "Remaking"),
        ("set_workload", "Creating"),
        ("set_volumes", "Growing"),
    ] == told


# --- Deployments, which Kubernetes itself rolls -------------------------------------------------------------------

FRONT = depots.desired(meta.Resource("apps", "v1", "Deployment", "deployments"), "d-front", spec={"replicas": 2})
GONE = parts.SurplusSeen(FRONT.resource, "d-back", "uid-back")


class Judged(msgspec.Struct, frozen=True):
    ref: meta.ObjectRef
    ready: bool
    reason: str = ""
    message: str = ""
    fix: str = ""


class Fronts(msgspec.Struct, frozen=True):
    children: tuple[parts.Pair, ...] = (good(CONFIG), good(FRONT))
    surplus: tuple[parts.SurplusSeen, ...] = ()
    health: tuple[Judged, ...] = (Judged(FRONT.resource.ref("ns", "d-front"), True),)


def fronts_exist(it: Fronts) -> Verdict:
    return objects.are_right(it.children, R.APPLYING)


def fronts_are_few(it: Fronts) -> Verdict:
    return objects.surplus_goes(it.surplus, "ns", R.SURPLUS)


def fronts_are_ready(it: Fronts) -> Verdict:
    return readiness.are_ready(it.health, within=300.0)


def test_deployments() -> None:
    away = (Judged(FRONT.resource.ref("ns", "d-front"), False, "PodsNotReady", "1 of 2 replicas are ready"),)
    told = story(
        (fronts_exist, fronts_are_few, fronts_are_ready),
        Fronts(children=(missing(CONFIG), missing(FRONT)), health=()),
        Fronts(health=away),
        Fronts(),
        Fronts(children=(good(CONFIG), good(FRONT, differs=(apply.STAMP,)))),
        Fronts(surplus=(GONE,)),
    )

    assert [
        ("fronts_exist", "Applying"),
        ("fronts_are_ready", "PodsNotReady"),
        ("", ""),
        ("fronts_exist", "Applying"),
        ("fronts_are_few", "Surplus"),
    ] == told


# --- a bare pod: nobody else makes it anew, and its template is what was applied ----------------------------------

LONE = depots.desired(builtin.POD, "d-0", spec={"containers": [{"name": "depot", "image": "depot:2"}]})
CURRENT = LONE.body["metadata"]["annotations"][apply.STAMP]


class Lone(msgspec.Struct, frozen=True):
    one: parts.PodSeen | None = pod(0, revision=CURRENT)
    neighbours: tuple[parts.PodSeen, ...] = (pod(1),)


def pod_exists(it: Lone) -> Verdict:
    """What can't be changed in place is never written again, only replaced."""
    there = apply.Child(it.one.uid, it.one.deleting) if it.one else apply.Child()
    return objects.are_right([(LONE, there)], R.APPLYING)


def pod_is_alive(it: Lone) -> Verdict:
    there = (it.one,) if it.one else ()
    return pod_replacement.dead_are_replaced(there, CURRENT, "ns", R.REVIVING, spared=lambda _: False)


def pod_is_current(it: Lone) -> Verdict:
    old = [it.one] if it.one and it.one.revision != CURRENT else []
    return rolls(it.neighbours, old)


def test_a_bare_pod() -> None:
    told = story(
        (pod_exists, pod_is_alive, pod_is_current),
        Lone(None),
        Lone(),
        Lone(pod(0, revision="old")),
        Lone(pod(0, revision="old"), neighbours=(pod(1, ready=False),)),
        Lone(pod(0, revision="old", came_up=False)),
        Lone(pod(0, revision="old", deleting=True)),
        Lone(None),
    )

    assert [
        ("pod_exists", "Applying"),
        ("", ""),
        ("pod_is_current", "Rolling"),
        ("pod_is_current", "Held"),
        ("pod_is_alive", "Reviving"),
        ("pod_is_current", "Rolling"),
        ("pod_exists", "Applying"),
    ] == told
    verdicts.same(pod_exists(Lone(None)), verdicts.acts("Applying", "apply Pod/d-0 new if name_is_free Pod d-0"))
