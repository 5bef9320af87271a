"""An XsldCache that is being deleted ends, though its pods never started or nobody answers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from moorage.api import builtin
from moorage.children import apply
from moorage.operators.xsld.cache import control
from moorage.runtime import decision, freshness
from tests.unit import verdicts
from tests.unit.verdicts import Row, Waits, acts
from tests.unit.xsld import states
from tests.unit.xsld.states import cache, fresh

DOWN = freshness.Failed("Down", "the server is down")
LEAVES = acts("Leaving", "finalizer off")
GIVES_BACK = acts("Leaving", "delete RoleBinding/moorage-xsld rb-uid", "finalizer off")
ORPHAN = {"moorage.dev/on-delete": "Orphan"}
KEPT = {"reclaimOnDelete": "Retain"}
OWNED = (
    "ConfigMap/c-scripts",
    "Service/c",
    "Service/c-client",
    "Service/c-admin",
    "PodDisruptionBudget/c",
)


def leaving(it: states.It) -> states.It:
    """The same, being deleted."""
    return it.object(deletion_timestamp=states.ago(10))


def empty() -> states.It:
    """Its StatefulSet, pods and volumes are gone."""
    return leaving(cache().but(workload=None, pods={}, volumes={}))


def row(it: states.It, step: str, shape: verdicts.Shape, says: str = "") -> Row:
    return Row(it.seen, step, shape, says)


def lets_go(*ids: str) -> verdicts.Acts:
    uids = {id_: "sts-uid" if id_ == "StatefulSet/c" else f"uid-{id_}" for id_ in ids}
    return acts(
        "Leaving",
        *(f"patch {id_} {uids[id_]} /metadata/ownerReferences=[]" for id_ in ids),
        "finalizer off",
    )


ROWS: dict[str, Row] = {
    "with the namespace everything goes": row(
        leaving(cache()).fact(namespace_ending=True, binding=DOWN, objects=DOWN), "namespace_ends", LEAVES
    ),
    "nothing was ever made": row(
        leaving(cache()).fact(allowed=False, binding=freshness.Fresh(None), objects=DOWN), "nothing_was_made", LEAVES
    ),
    "the rights are not known": row(
        leaving(cache()).fact(allowed=False, binding=DOWN),
        "nothing_was_made",
        Waits("Binding", "binding", 120.0, again=5.0),
    ),
    "the namespace is allowed no more, and holds a cache": row(
        leaving(cache()).fact(allowed=False), "workload_is_gone", acts("Removing", "delete StatefulSet/c sts-uid")
    ),
    "rights that were taken away are bound again": row(
        leaving(cache()).fact(binding=freshness.Fresh(None)),
        "rights_are_bound",
        acts("Binding", "apply RoleBinding/moorage-xsld new"),
    ),
    "the objects are not known": row(
        leaving(cache()).fact(objects=DOWN), "cluster_is_known", Waits("ClusterUnknown", "objects", 120.0, again=5.0)
    ),
    # left where it is
    "everything is left where it is": row(
        leaving(cache()).object(annotations=ORPHAN), "orphaning_is_honoured", lets_go(*OWNED, "StatefulSet/c")
    ),
    "what is not there is not let go of": row(
        empty().object(annotations=ORPHAN).child("Service/c", uid=""),
        "orphaning_is_honoured",
        lets_go(*(id_ for id_ in OWNED if id_ != "Service/c")),
    ),
    "another value of the annotation is none": row(
        leaving(cache()).object(annotations={"moorage.dev/on-delete": "Delete"}),
        "workload_is_gone",
        acts("Removing", "delete StatefulSet/c sts-uid"),
    ),
    # the pods
    "the StatefulSet with its pods": row(
        leaving(cache()), "workload_is_gone", acts("Removing", "delete StatefulSet/c sts-uid")
    ),
    "nobody needs to answer": row(
        leaving(cache()).off(0, 1, 2).fact(polled=DOWN),
        "workload_is_gone",
        acts("Removing", "delete StatefulSet/c sts-uid"),
    ),
    "nor to have started": row(
        leaving(fresh()).pod(0, running=False, came_up=False, trouble="the image can't be pulled"),
        "workload_is_gone",
        acts("Removing", "delete StatefulSet/c sts-uid"),
    ),
    "nor need a task have ended, or the credentials be right": row(
        leaving(cache()).asked("Join", 2, 2).fact(credentials=freshness.Fresh("there is no Secret")),
        "workload_is_gone",
        acts("Removing", "delete StatefulSet/c sts-uid"),
    ),
    "the StatefulSet is ending": row(
        leaving(cache()).set_of(child=apply.Child("sts-uid", deleting=True)),
        "workload_is_gone",
        Waits("Removing", "pod", 900.0),
        "StatefulSet c is ending, with c-0, c-1, c-2",
    ),
    "pods outlive it": row(
        leaving(cache()).but(workload=None).no_pod(0).no_volume(0),
        "pods_are_gone",
        Waits("Removing", "pod", 900.0),
        "c-1, c-2 is ending",
    ),
    "a volume goes once its own pod is gone, whatever another does": row(
        leaving(cache()).but(workload=None).no_pod(0, 2).pod(1, deleting=True, trouble="its node is away"),
        "volumes_go",
        acts(
            "ClearingVolume", "delete PersistentVolumeClaim/vol-c-0 pvc-0", "delete PersistentVolumeClaim/vol-c-2 pvc-2"
        ),
    ),
    "a pod that does not end is told with its cause": row(
        leaving(cache(2)).but(workload=None).no_pod(0).no_volume(0).pod(1, deleting=True, trouble="its node is away"),
        "pods_are_gone",
        Waits("Removing", "pod", 900.0),
        "c-1 (its node is away) is ending",
    ),
    "it outlives its pods": row(
        leaving(cache()).set_of(child=apply.Child("sts-uid", deleting=True)).no_pod(0, 1, 2),
        "workload_is_gone",
        Waits("Removing", "pod", 900.0),
        "StatefulSet c is ending",
    ),
    # the volumes
    "then the volumes": row(
        leaving(cache(2)).but(workload=None, pods={}),
        "volumes_go",
        acts(
            "ClearingVolume", "delete PersistentVolumeClaim/vol-c-0 pvc-0", "delete PersistentVolumeClaim/vol-c-1 pvc-1"
        ),
        "vol-c-0, vol-c-1 is deleted",
    ),
    "those that are left": row(
        leaving(cache(2)).but(workload=None, pods={}).volume(0, deleting=True),
        "volumes_go",
        acts("ClearingVolume", "delete PersistentVolumeClaim/vol-c-1 pvc-1"),
    ),
    "they are being deleted": row(
        leaving(cache(1)).but(workload=None, pods={}).volume(0, deleting=True),
        "volumes_are_gone",
        Waits("ClearingVolume", "volume", 600.0),
        "vol-c-0 is being deleted",
    ),
    "which are kept if so asked": row(
        leaving(cache(storage=KEPT)).but(workload=None, pods={}), "cache_may_go", GIVES_BACK
    ),
    "nothing is left": row(empty(), "cache_may_go", GIVES_BACK),
    "others stay in the namespace": row(
        empty().fact(neighbours=1), "cache_may_go", acts("Leaving", "finalizer off if others_stay")
    ),
    "the rights are given back already": row(
        empty().fact(binding=freshness.Fresh(None)),
        "rights_are_bound",
        acts("Binding", "apply RoleBinding/moorage-xsld new"),
    ),
}


@pytest.mark.parametrize("it", ROWS.values(), ids=ROWS)
def test_table(it: Row) -> None:
    verdicts.check(it, control.DELETION_STEPS)


def test_the_pods_go_with_the_statefulset_that_was_seen() -> None:
    made = decision.decide(leaving(cache()).seen, steps=control.DELETION_STEPS)
    (delete,) = made.acts[0].actions

    assert isinstance(delete, decision.Delete)
    assert (builtin.STATEFUL_SET, "ns", "Background") == (delete.resource, delete.ref.namespace, delete.propagation)


def test_volumes_go_by_their_incarnation() -> None:
    made = decision.decide(leaving(cache(1)).but(workload=None, pods={}).seen, steps=control.DELETION_STEPS)
    (delete,) = made.acts[0].actions

    assert isinstance(delete, decision.Delete)
    assert (builtin.VOLUME_CLAIM, "ns", "pvc-0") == (delete.resource, delete.ref.namespace, delete.ref.uid)


def test_a_deletion_ends_as_the_world_follows() -> None:
    it, told = leaving(cache(2)), []
    world: tuple[Callable[[states.It], states.It], ...] = (
        lambda it: it.set_of(child=apply.Child("sts-uid", deleting=True)),
        lambda it: it.but(workload=None, pods={}),
        lambda it: it.volume(0, deleting=True).volume(1, deleting=True),
        lambda it: it.no_volume(0, 1),
        lambda it: it,
    )
    for follow in world:
        step, found, _, _ = verdicts.decided(it.seen, control.DELETION_STEPS)
        told.append((step, type(found).__name__))
        it = follow(it)

    assert [
        ("workload_is_gone", "Acts"),
        ("workload_is_gone", "Waits"),
        ("volumes_go", "Acts"),
        ("volumes_are_gone", "Waits"),
        ("cache_may_go", "Acts"),
    ] == told
