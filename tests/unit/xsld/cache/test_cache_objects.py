"""An XsldCache's objects in the cluster: rights, credentials, children, the StatefulSet, volumes, pods."""

from __future__ import annotations

import msgspec
import pytest

from moorage.api import builtin, meta
from moorage.children import apply, parts
from moorage.operators import accounts
from moorage.operators.xsld.cache import control, objects
from moorage.runtime import decision, freshness
from tests.unit import verdicts
from tests.unit.verdicts import SETTLED, Acts, Blocks, Row, Waits, acts
from tests.unit.xsld import states
from tests.unit.xsld.states import cache

DOWN = freshness.Failed("Down", "the server is down")
NOT_YET = freshness.not_yet("it")
DEBUG = parts.SurplusSeen(builtin.SERVICE, "c-7-debug", "svc-uid")
DEAD = {"revision": "old", "came_up": False, "running": False}
FIXED = ("spec.volumeClaimTemplates",)


STAYS = Waits("SurplusStays", "surplus", 600.0)


def replaces(*ordinals: int) -> Acts:
    """These pods are deleted, if they serve nobody right then."""
    return acts("ReplacingDeadPod", *(f"delete Pod/c-{n} uid-{n} if pod_is_expendable c-{n} uid-{n}" for n in ordinals))


def row(it: states.It, step: str, shape: verdicts.Shape, says: str = "") -> Row:
    return Row(it.seen, step, shape, says)


def unknown(reason: str, on: str, *, unseen: bool = False) -> Waits:
    """What a step says of a fact that it can't decide on."""
    return Waits(reason, on, 120.0, again=0.0 if unseen else 5.0, unseen=unseen)


ROWS: dict[str, Row] = {
    "all is well": row(cache(), "", SETTLED),
    # the place
    "a namespace that may hold no caches": row(
        cache().fact(allowed=False), "namespace_is_allowed", Blocks("NamespaceNotAllowed"), "namespace ns"
    ),
    "before anything else: nothing at all is known": row(
        cache().object(finalizers=()).fact(allowed=False, binding=DOWN, objects=DOWN, polled=DOWN),
        "namespace_is_allowed",
        Blocks("NamespaceNotAllowed"),
    ),
    "no finalizer": row(
        cache().object(finalizers=()).fact(binding=freshness.Fresh(None), objects=NOT_YET, polled=NOT_YET),
        "finalizer_is_set",
        acts("TakingCare", "finalizer on"),
    ),
    "somebody else's finalizer": row(
        cache().object(finalizers=("x/y",)), "finalizer_is_set", acts("TakingCare", "finalizer on")
    ),
    "rights are not looked at yet": row(
        cache().fact(binding=NOT_YET), "rights_are_bound", unknown("Binding", "binding", unseen=True)
    ),
    "rights can't be looked at": row(
        cache().fact(binding=DOWN), "rights_are_bound", unknown("Binding", "binding"), "the server is down"
    ),
    "no rights": row(
        cache().fact(binding=freshness.Fresh(None), objects=NOT_YET),
        "rights_are_bound",
        acts("Binding", "apply RoleBinding/moorage-xsld new"),
    ),
    "altered rights": row(
        cache().fact(binding=freshness.Fresh(accounts.BindingSeen("u", "1", role=True, subject=False))),
        "rights_are_bound",
        acts("Binding", "apply RoleBinding/moorage-xsld new"),
    ),
    # a fresh try
    "a fresh try is asked for": row(
        cache().object(annotations={"moorage.dev/reconcile-at": "2"}).failed("Join", 2, attempts=9),
        "retry_is_honoured",
        acts("Retrying", "remember reconciledAt no-troubles"),
    ),
    "the annotation is taken away": row(
        cache().says(reconciled_at="2"), "retry_is_honoured", acts("Retrying", "remember no-reconciledAt no-troubles")
    ),
    "a fresh try that was honoured": row(
        cache().object(annotations={"moorage.dev/reconcile-at": "2"}).says(reconciled_at="2"), "", SETTLED
    ),
    # what the user gives
    "the Secret is not looked at yet": row(
        cache().fact(credentials=NOT_YET),
        "credentials_are_given",
        unknown("CredentialsUnknown", "credentials", unseen=True),
    ),
    "the Secret can't be looked at": row(
        cache().fact(credentials=DOWN), "credentials_are_given", unknown("CredentialsUnknown", "credentials")
    ),
    "the Secret is wrong": row(
        cache().fact(credentials=freshness.Fresh("there is no Secret given")),
        "credentials_are_given",
        Blocks("CredentialsInvalid"),
        "there is no Secret given",
    ),
    "the Secret was wrong when last seen": row(
        cache().fact(credentials=freshness.Stale("no key", 0.0, "down")),
        "credentials_are_given",
        Blocks("CredentialsInvalid"),
    ),
    "plain credentials need no Secret": row(
        cache(adminPwd="Abcdefg1-x", secretKey="Abcdefg1-x", credentialsSecretRef=None).fact(credentials=NOT_YET),
        "",
        SETTLED,
    ),
    "plain credentials, and the authority is missing": row(
        cache(adminPwd="Abcdefg1-x", secretKey="Abcdefg1-x", credentialsSecretRef=None).fact(
            credentials=freshness.Fresh("Secret ca has no key ca.crt")
        ),
        "credentials_are_given",
        Blocks("CredentialsInvalid"),
        "Secret ca has no key ca.crt",
    ),
    "the user's script is not looked at yet": row(
        cache(entrypointConfigMap="mine").fact(entrypoint=NOT_YET),
        "entrypoint_is_given",
        unknown("ClusterUnknown", "entrypoint", unseen=True),
    ),
    "the user's script is missing": row(
        cache(entrypointConfigMap="mine").fact(entrypoint=freshness.Fresh("there is no ConfigMap mine")),
        "entrypoint_is_given",
        Blocks("EntrypointMissing"),
        "there is no ConfigMap mine",
    ),
    "the user's script is there": row(cache(entrypointConfigMap="mine"), "", SETTLED),
    "no script of the user's": row(cache().fact(entrypoint=NOT_YET), "", SETTLED),
    # what is watched
    "the watches are not filled": row(
        cache().fact(objects=NOT_YET), "cluster_is_known", unknown("ClusterUnknown", "objects", unseen=True)
    ),
    "a watch fails": row(cache().fact(objects=DOWN), "cluster_is_known", unknown("ClusterUnknown", "objects")),
    # services, scripts and the like
    "a Service is missing": row(
        cache().child("Service/c-client", uid=""),
        "children_exist",
        acts("Applying", "apply Service/c-client new if name_is_free Service c-client"),
        "put right: Service/c-client (missing)",
    ),
    "a ConfigMap is outdated": row(
        cache().child("ConfigMap/c-scripts", differs=(apply.STAMP,)),
        "children_exist",
        acts("Applying", "apply ConfigMap/c-scripts uid-ConfigMap/c-scripts"),
        "ConfigMap/c-scripts (outdated)",
    ),
    "a Service was changed by somebody": row(
        cache().child("Service/c", differs=tuple("abcdefg")),
        "children_exist",
        acts("Applying", "apply Service/c uid-Service/c"),
        "Service/c (changed at a, b, c, d, e)",
    ),
    "several at once, and the Secret is filled in": row(
        cache(adminPwd="Abcdefg1-x", secretKey="Abcdefg1-x", credentialsSecretRef=None)
        .child("Secret/c-credentials", uid="")
        .child("PodDisruptionBudget/c", differs=("spec.maxUnavailable",)),
        "children_exist",
        acts(
            "Applying",
            "apply Secret/c-credentials new with credentials if name_is_free Secret c-credentials",
            "apply PodDisruptionBudget/c uid-PodDisruptionBudget/c",
        ),
    ),
    "an object that is being deleted": row(
        cache().child("Service/c", deleting=True), "children_stay", Waits("ChildEnding", "child", 600.0), "Service/c is"
    ),
    "others are made meanwhile": row(
        cache().child("Service/c", deleting=True).child("Service/c-client", uid=""),
        "children_exist",
        acts("Applying", "apply Service/c-client new if name_is_free Service c-client"),
    ),
    "and the group is seen to": row(
        cache().child("Service/c", deleting=True).off(0).stands("primary_leads", age=60),
        "primary_leads",
        states.submits("FailingOver", "Failover c-1 at c-1"),
    ),
    # leftover volumes
    "a leftover volume is in the way of a new pod": row(
        cache(2).wants(size=3).volume(2),
        "volumes_are_reclaimed",
        acts("ClearingVolume", "delete PersistentVolumeClaim/vol-c-2 pvc-2 if member_has_left 2"),
        "vol-c-2 belongs to nobody any more",
    ),
    "it is being deleted": row(
        cache(2).wants(size=3).volume(2, deleting=True),
        "leftover_volumes_are_cleared",
        Waits("ClearingVolume", "volume", 600.0),
    ),
    "one of two is being deleted": row(
        cache(2).wants(size=4).volume(2, deleting=True).volume(3),
        "volumes_are_reclaimed",
        acts("ClearingVolume", "delete PersistentVolumeClaim/vol-c-3 pvc-3 if member_has_left 3"),
    ),
    "leftover volumes are kept": row(
        cache(2, storage={"reclaimOnScaleDown": "Retain"}).wants(size=3).volume(2),
        "leftover_volumes_are_cleared",
        Blocks("LeftoverVolume"),
        "vol-c-2 of earlier members",
    ),
    "the user deletes a kept one": row(
        cache(2, storage={"reclaimOnScaleDown": "Retain"}).wants(size=3).volume(2, deleting=True),
        "leftover_volumes_are_cleared",
        Waits("ClearingVolume", "volume", 600.0),
    ),
    "the user deletes one of two kept ones": row(
        cache(2, storage={"reclaimOnScaleDown": "Retain"}).wants(size=4).volume(2, deleting=True).volume(3),
        "leftover_volumes_are_cleared",
        Blocks("LeftoverVolume"),
    ),
    "a leftover volume beyond what is wanted is not in the way": row(
        cache(2, storage={"reclaimOnScaleDown": "Retain"}).volume(2), "", SETTLED
    ),
    "kept ones beyond what is wanted are not in the way of going up": row(
        cache(2, storage={"reclaimOnScaleDown": "Retain"}).wants(size=3).volume(3),
        "workload_is_right",
        acts("Resizing", "apply StatefulSet/c sts-uid"),
    ),
    "a volume whose pod is still there is no leftover yet": Row(
        cache(2).wants(size=3).pod(2).volume(2).seen, "", SETTLED, steps=(objects.leftover_volumes_are_cleared,)
    ),
    "a volume whose pod is ending is one": Row(
        cache(2, storage={"reclaimOnScaleDown": "Retain"}).wants(size=3).pod(2, deleting=True).volume(2).seen,
        "leftover_volumes_are_cleared",
        Blocks("LeftoverVolume"),
        steps=(objects.leftover_volumes_are_cleared,),
    ),
    "without a StatefulSet no volume is a leftover": Row(
        cache(2).but(workload=None).seen, "", SETTLED, steps=(objects.leftover_volumes_are_cleared,)
    ),
    # the StatefulSet
    "no StatefulSet": row(
        states.fresh().but(workload=None, pods={}, volumes={}, members={}),
        "workload_is_right",
        acts("Creating", "apply StatefulSet/c new if name_is_free StatefulSet c"),
        "is made with 3 pods",
    ),
    "the StatefulSet was deleted around its pods: as many as are members": row(
        cache(5).wants(size=3).but(workload=None),
        "workload_is_right",
        acts("Creating", "apply StatefulSet/c new if name_is_free StatefulSet c"),
        "is made with 5 pods",
    ),
    "the StatefulSet is being deleted": row(
        cache().set_of(child=apply.Child("sts-uid", deleting=True, differs=("x",))),
        "workload_is_right",
        Waits("ChildEnding", "child", 600.0),
    ),
    "a field that can't be changed in place": row(
        cache().set_of(fixed=FIXED),
        "workload_is_right",
        acts("ReplacingWorkload", "delete StatefulSet/c sts-uid orphan"),
        "made anew around its pods",
    ),
    "up": row(
        cache().wants(size=5),
        "workload_is_right",
        acts("Resizing", "apply StatefulSet/c sts-uid"),
        "goes from 3 to 5 pods",
    ),
    "down after two have left: both must be proven gone": row(
        cache(5).left(3, 4).wants(size=2),
        "workload_is_right",
        acts("Resizing", "apply StatefulSet/c sts-uid if member_has_left 3 if member_has_left 4"),
        "goes from 5 to 3 pods",
    ),
    "the template is another": row(
        cache().set_of(child=apply.Child("sts-uid", differs=(apply.STAMP,))),
        "workload_is_right",
        acts("Creating", "apply StatefulSet/c sts-uid"),
        "is put right",
    ),
    "while nobody tells of the group the number stays": row(
        cache(5).wants(size=2).fact(polled=DOWN),
        "group_answers",
        Waits("GroupUnreachable", "group", 120.0, again=5.0),
    ),
    "somebody put something into its template": row(
        cache().set_of(version="7", added=(("spec", "template", "metadata", "labels", "a/b"),)),
        "workload_is_right",
        acts(
            "Creating",
            "patch StatefulSet/c sts-uid /metadata/resourceVersion=7 /spec/template/metadata/labels/a~1b=-",
        ),
        "spec.template.metadata.labels.a/b, which is not of the spec, is taken out",
    ),
    # volumes grow
    "volumes are too small": row(
        cache(2, storage={"size": "1Gi"}).volume(1, expandable=True),
        "volumes_grow",
        acts(
            "GrowingVolumes",
            "patch PersistentVolumeClaim/vol-c-0 pvc-0 /spec/resources/requests/storage=1Gi",
            "patch PersistentVolumeClaim/vol-c-1 pvc-1 /spec/resources/requests/storage=1Gi",
        ),
        "grows to 1Gi",
    ),
    "one of them can't grow": row(
        cache(2, storage={"size": "1Gi"}).volume(1, expandable=False),
        "volumes_grow",
        Blocks("VolumeCannotGrow"),
        "vol-c-1 is of a storage class",
    ),
    "larger ones than wanted are left alone": row(cache(2).volume(1, size="1Gi"), "", SETTLED),
    "the same size in other words": row(
        cache(2, storage={"size": "1Gi"}).volume(0, size="1024Mi").volume(1, size="1Gi"), "", SETTLED
    ),
    "a volume of unknown size is left alone": row(cache(2).volume(1, size=""), "", SETTLED),
    "one that is being deleted does not grow": row(
        cache(2, storage={"size": "1Gi", "reclaimOnScaleDown": "Retain"})
        .volume(0, size="1Gi")
        .volume(1, size="1Gi")
        .volume(7, deleting=True),
        "surplus_is_gone",
        STAYS,
    ),
    # pods that never started
    "a pod of an old template that never started": row(
        cache().pod(2, **DEAD),
        "failing_pods_are_replaced",
        acts("ReplacingDeadPod", "delete Pod/c-2 uid-2 if pod_is_expendable c-2 uid-2"),
        "c-2 does not come up",
    ),
    "before anything that waits for the group": row(
        cache().pod(2, **DEAD).fact(polled=DOWN),
        "failing_pods_are_replaced",
        acts("ReplacingDeadPod", "delete Pod/c-2 uid-2 if pod_is_expendable c-2 uid-2"),
    ),
    "all of them": row(
        states.fresh(2).pod(0, **DEAD).pod(1, **DEAD),
        "failing_pods_are_replaced",
        acts(
            "ReplacingDeadPod",
            "delete Pod/c-0 uid-0 if pod_is_expendable c-0 uid-0",
            "delete Pod/c-1 uid-1 if pod_is_expendable c-1 uid-1",
        ),
    ),
    "one that crashes again and again": row(
        cache().pod(2, revision="old", running=False, held=True).off(2),
        "failing_pods_are_replaced",
        replaces(2),
    ),
    "though others are off as well": row(
        cache().off(0, 1, 2).old(0, 1, 2).pod(1, running=False, held=True).pod(2, **DEAD),
        "failing_pods_are_replaced",
        replaces(1, 2),
    ),
    "a single member": row(cache(1).pod(0, **DEAD).mute(0), "failing_pods_are_replaced", replaces(0)),
    "while a wanted one has no place": row(
        cache().wants(size=4).set_of(replicas=4).pod(2, **DEAD), "failing_pods_are_replaced", replaces(2)
    ),
    "while a task runs": row(cache().pod(2, **DEAD).runs(0, states.task()), "failing_pods_are_replaced", replaces(2)),
    "one that runs, and was never ready": row(
        cache().pod(2, revision="old", came_up=False, ready=False).off(2), "failing_pods_are_replaced", replaces(2)
    ),
    "and has not joined": row(
        cache().left(2).pod(2, revision="old", came_up=False, ready=False), "failing_pods_are_replaced", replaces(2)
    ),
    "one that joins is let join": row(
        cache().left(2).pod(2, revision="old", came_up=False, ready=False).asked("Join", 2, 2).runs(2, states.task()),
        "own_task_is_followed",
        Waits("Joining", "group", 900.0, again=states.BUSY),
    ),
    "one that the group counts as Online may hold data": row(
        cache().pod(2, revision="old", came_up=False, ready=False),
        "template_rolls",
        acts("Updating", "evict c-2 uid-2 if others_are_online c-2"),
    ),
    "one that is down once may come back": row(
        cache().pod(2, revision="old", running=False).off(2),
        "template_rolls",
        acts("Updating", "evict c-2 uid-2 if others_are_online c-2"),
    ),
    "one of the current template is no such": row(
        cache().pod(2, came_up=False, running=False).off(2),
        "members_are_online",
        Waits("MembersNotOnline", "group", 1800.0, again=states.BUSY),
    ),
    "one that is being deleted is no such": Row(
        cache().pod(2, deleting=True, **DEAD).seen, "", SETTLED, steps=(objects.failing_pods_are_replaced,)
    ),
    "without a StatefulSet there is no template": Row(
        cache().pod(2, **DEAD).but(workload=None).seen, "", SETTLED, steps=(objects.failing_pods_are_replaced,)
    ),
    "while the current template is not known none is": row(
        cache().set_of(revision="").pod(2, **DEAD).off(2),
        "members_are_online",
        Waits("MembersNotOnline", "group", 1800.0, again=states.BUSY),
    ),
    "a pod of unknown template is none": row(
        cache().pod(2, revision="", came_up=False, running=False).off(2),
        "template_rolls",
        acts("Updating", "evict c-2 uid-2 if others_are_online c-2"),
    ),
    # what the spec no longer asks for
    "an object that is asked for no more": row(
        cache().but(surplus=(DEBUG,)),
        "surplus_objects_go",
        acts("SurplusObject", "delete Service/c-7-debug svc-uid"),
        "Service/c-7-debug",
    ),
    "it does not go": row(
        cache().but(surplus=(msgspec.structs.replace(DEBUG, deleting=True),)),
        "surplus_is_gone",
        STAYS,
        "should be gone, and is there still: Service/c-7-debug",
    ),
    "a pod and a volume of one that has left do not go": row(
        cache().pod(3, deleting=True, trouble="its node is away").volume(3, deleting=True),
        "surplus_is_gone",
        STAYS,
        "c-3 (its node is away), PersistentVolumeClaim/vol-c-3",
    ),
    "a volume that is kept may stay": row(cache(storage={"reclaimOnScaleDown": "Retain"}).volume(3), "", SETTLED),
    "a volume that does not go is told with what holds it": row(
        cache(2).wants(size=3).pod(2, deleting=True, trouble="its node is away").volume(2, deleting=True),
        "leftover_volumes_are_cleared",
        Waits("ClearingVolume", "volume", 600.0),
        "vol-c-2 is being deleted, and held by pod c-2 (its node is away)",
    ),
    "a volume that does not go keeps nobody from being replaced": row(
        cache(2).wants(size=3).old(1).pod(2, deleting=True).volume(2, deleting=True),
        "template_rolls",
        acts("Updating", "evict c-1 uid-1 if others_are_online c-1"),
    ),
}


@pytest.mark.parametrize("it", ROWS.values(), ids=ROWS)
def test_table(it: Row) -> None:
    verdicts.check(it, control.STEPS)


def decided(it: states.It) -> list[decision.AnyAction]:
    """The actions of the step where the list stops."""
    made = decision.decide(it.seen, steps=control.STEPS)

    return [action for act in made.acts for action in act.actions]


def test_the_statefulset_is_written_with_the_number_of_pods_that_no_member_loses() -> None:
    (down,) = decided(cache(5).left(3, 4).wants(size=2))

    assert isinstance(down, decision.Apply)
    assert 3 == down.body["spec"]["replicas"], "c-2 has not left yet"


@pytest.mark.parametrize(
    ("it", "expected"),
    [
        pytest.param(cache().wants(size=5), "it is outdated", id="up"),
        pytest.param(cache(5).left(3, 4).wants(size=2), "3 pods, there are 5", id="down"),
        pytest.param(
            cache().set_of(child=apply.Child("sts-uid", differs=("spec.x",))), "it is changed at spec.x", id="altered"
        ),
    ],
)
def test_why_the_statefulset_is_written(it: states.It, expected: str) -> None:
    (write,) = decided(it)

    assert expected == write.why


def test_the_binding_gives_the_operator_its_one_role() -> None:
    (bind,) = decided(cache().fact(binding=freshness.Fresh(None)))

    assert isinstance(bind, decision.Apply)
    assert states.RIGHTS.cluster_role == bind.body["roleRef"]["name"]
    assert "ns" == bind.body["metadata"]["namespace"]


def test_the_answer_to_a_fresh_try_is_remembered() -> None:
    (note,) = decided(cache().object(annotations={"moorage.dev/reconcile-at": "2"}))

    assert isinstance(note, decision.Remember)
    assert {"reconciledAt": "2", "troubles": []} == note.fields


@pytest.mark.parametrize(
    "resource", [builtin.VOLUME_CLAIM, builtin.POD, builtin.STATEFUL_SET], ids=lambda resource: resource.kind
)
def test_what_is_deleted_is_named_by_its_incarnation_in_its_namespace(resource: meta.Resource) -> None:
    situations = {
        "PersistentVolumeClaim": cache(2).wants(size=3).volume(2),
        "Pod": cache().pod(2, **DEAD),
        "StatefulSet": cache().set_of(fixed=FIXED),
    }
    (delete,) = decided(situations[resource.kind])

    assert isinstance(delete, decision.Delete)
    assert resource == delete.resource
    assert (resource.kind, "ns") == (delete.ref.kind, delete.ref.namespace)
    assert delete.ref.uid


def test_an_object_that_is_written_again_is_the_one_that_was_seen() -> None:
    made = decided(cache().child("Service/c", differs=("x",)))
    (write,) = made

    assert isinstance(write, decision.Apply)
    assert builtin.SERVICE == write.resource
    assert "uid-Service/c" == write.body["metadata"]["uid"]


def test_what_is_watched_too_late_is_not_decided_on() -> None:
    it = cache().fact(objects=NOT_YET).seen

    with pytest.raises(ValueError, match="not known yet"):
        _ = it.there


def test_an_act_is_looked_at_again_before_anything_else_is_done() -> None:
    for name, it in ROWS.items():
        if isinstance(it.shape, Acts):
            assert not any(act.go_on for act in decision.decide(it.seen, steps=control.STEPS).acts), name
