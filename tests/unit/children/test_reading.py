"""From live objects to what is seen of them."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api import builtin, conditions
from moorage.children import apply, reading
from moorage.runtime import verified
from tests.unit.children import depots
from tests.unit.children.depots import NOW

START = 1767225600.0
"""2026-01-01, at which what is told here began."""


def live(name: str = "d-0", **content: Any) -> dict[str, Any]:
    metadata = {"name": name, "uid": "uid-0", "resourceVersion": "7", **content.pop("metadata", {})}
    return {"metadata": metadata, **content}


def at(second: int) -> str:
    return f"2026-01-01T00:00:{second:02}Z"


# --- pods ---------------------------------------------------------------------------------------------------------


def stated(ready: str, *, since: int) -> list[dict[str, str]]:
    """Conditions as a kubelet has them: made together at second 0, readiness as it is since that second."""
    times = {"Initialized": ("True", 0), "ContainersReady": (ready, since), "Ready": (ready, since)}
    return [
        {"type": type_, "status": status, "lastTransitionTime": at(second)} for type_, (status, second) in times.items()
    ]


def container(*, ready: bool = False, **state: Any) -> list[dict[str, Any]]:
    return [{"name": "depot", "ready": ready, "state": state}]


RUNNING = {"running": {"startedAt": at(5)}}
CRASHING = {"waiting": {"reason": "CrashLoopBackOff"}}
ENDED = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
UNPLACED = [{"type": "PodScheduled", "status": "False", "lastTransitionTime": at(0)}]


def says(conditions_: list[dict[str, str]], containers: list[dict[str, Any]]) -> dict[str, Any]:
    return {"conditions": conditions_, "containerStatuses": containers}


LOST: dict[str, tuple[dict[str, Any], tuple[bool, bool, bool]]] = {
    # id: (its status, (it has been ready, it is held, nothing is lost with it))
    "nobody has looked at it": ({}, (False, False, True)),
    "it can't be placed": ({"conditions": UNPLACED}, (False, False, True)),
    "it starts": (says(stated("False", since=0), container(**RUNNING)), (False, False, True)),
    "it works": (says(stated("True", since=9), container(ready=True, **RUNNING)), (True, False, False)),
    "it worked, and runs": (says(stated("False", since=9), container(**RUNNING)), (True, False, False)),
    "it worked, and has ended once": (says(stated("False", since=9), container(**ENDED)), (True, False, False)),
    "it worked, and ends again and again": (
        says(stated("False", since=9), container(**CRASHING)),
        (True, True, True),
    ),
    "it never worked, and ends again and again": (
        says(stated("False", since=0), container(**CRASHING)),
        (False, True, True),
    ),
    "its image can't be had": (
        says(stated("False", since=0), container(waiting={"reason": "ImagePullBackOff"})),
        (False, True, True),
    ),
    "its container is made": (
        says(stated("False", since=0), container(waiting={"reason": "ContainerCreating"})),
        (False, False, True),
    ),
}


@pytest.mark.parametrize(("status", "expected"), LOST.values(), ids=LOST)
def test_what_would_be_lost_with_a_pod(status: dict[str, Any], expected: tuple[bool, bool, bool]) -> None:
    pod = reading.pod(live(status=status), 0)

    assert expected == (pod.came_up, pod.held, pod.expendable)


def test_a_pod_that_works() -> None:
    """With all that is said of it elsewhere."""
    status = {**says(stated("True", since=9), container(ready=True, **RUNNING)), "podIP": "10.0.0.1"}
    metadata = {"labels": {"controller-revision-hash": "new"}}
    pod = reading.pod(live(spec={"containers": [{"image": "depot:1"}]}, status=status, metadata=metadata), 3)

    assert ("d-0", 3, "uid-0", "10.0.0.1") == (pod.name, pod.ordinal, pod.uid, pod.address)
    assert ("depot:1", "new") == (pod.image, pod.revision)
    assert (True, True, START + 9, START + 5) == (pod.running, pod.ready, pod.since, pod.started_at)
    assert (False, False, "", "") == (pod.deleting, pod.overdue, pod.trouble, pod.cause)


@pytest.mark.parametrize(
    ("content", "address"),
    [
        ({"status": {"podIP": "10.0.0.1", "phase": "Running"}}, "10.0.0.1"),
        ({"status": {"podIP": "10.0.0.1"}}, "10.0.0.1"),
        ({"status": {"podIP": "10.0.0.1", "phase": "Succeeded"}}, ""),
        ({"status": {"podIP": "10.0.0.1", "phase": "Failed"}}, ""),
        ({"status": {"podIP": "10.0.0.1"}, "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, ""),
        ({"status": {"podIP": None}}, ""),
        ({}, ""),
    ],
)
def test_where_a_pod_is_reached(content: dict[str, Any], address: str) -> None:
    """Not one that ends: its address may be another's by now."""
    assert address == reading.address({"metadata": {}, **content})


def test_a_pod_that_is_applied_by_itself_is_of_what_was_applied_last() -> None:
    """Nobody else says of which template it is."""
    assert "digest" == reading.pod(live(metadata={"annotations": {apply.STAMP: "digest"}}), -1).revision
    assert "" == reading.pod(live(), -1).revision


def test_since_when_it_is_not_ready_is_told_by_its_making_where_no_kubelet_has_looked() -> None:
    assert START == reading.pod(live(metadata={"creationTimestamp": at(0)}), 0).since


@pytest.mark.parametrize(("status", "expected"), [("False", START), ("True", 0.0)], ids=["it has none", "it has one"])
def test_since_when_it_has_no_node(status: str, expected: float) -> None:
    said = [UNPLACED[0] | {"status": status}]

    assert expected == reading.pod(live(status={"conditions": said}), 0).unplaced_since


@pytest.mark.parametrize(
    ("said", "expected"),
    [("True", True), ("False", False), (None, None)],
    ids=["it may serve", "it may not", "nothing is said"],
)
def test_its_readiness_gate(said: str | None, expected: bool | None) -> None:
    stated_ = [{"type": "test.moorage.dev/in", "status": said}] if said else []
    pod = live(status={"conditions": stated_})

    assert expected is reading.pod(pod, 0, gate="test.moorage.dev/in").gate
    assert reading.pod(pod, 0).gate is None, "without a gate nothing is read"


ENDS: dict[str, tuple[float, bool]] = {
    # id: (seconds since its grace was over, whether it should have ended a while ago)
    "a while ago": (61.0, True),
    "a moment ago": (60.0, False),
    "it lasts": (-10.0, False),
}


@pytest.mark.parametrize(("ago", "overdue"), ENDS.values(), ids=ENDS)
def test_a_pod_that_does_not_end_says_what_holds_it(ago: float, overdue: bool) -> None:
    metadata = {"deletionTimestamp": conditions.timestamp(NOW - ago), "finalizers": ["x/y"]}
    status = says(stated("True", since=9), container(ready=True, **RUNNING))
    held = reading.pod(live(metadata=metadata), 0, around=reading.Around(NOW))
    runs = reading.pod(live(metadata=metadata, status=status), 0, around=reading.Around(NOW))

    assert (True, overdue) == (held.deleting, held.overdue)
    assert "FinalizerLeft" == held.cause
    assert "is held by x/y" in held.trouble
    assert not runs.running, "one that ends is not counted upon"


def test_what_is_around_a_pod_says_what_is_wrong_with_it() -> None:
    """Its claim and the claim's events, which the pod itself knows nothing of."""
    words = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims"
    unbound = [{"type": "PodScheduled", "status": "False", "message": words}]
    spec = {"volumes": [{"persistentVolumeClaim": {"claimName": "data-d-0"}}]}
    claim = {"kind": "PersistentVolumeClaim", "metadata": {"name": "data-d-0"}, "spec": {}}
    pod = live(spec=spec, status={"conditions": unbound})

    assert "NoStorageClass" == reading.pod(pod, 0, around=reading.Around(NOW, claims=(claim,))).cause
    assert "VolumePending" == reading.pod(pod, 0).cause


REFUSED = {
    "type": "Warning",
    "reason": "FailedCreate",
    "regarding": {"kind": "StatefulSet", "name": "d"},
    "note": "create Pod d-1 in StatefulSet d failed error: exceeded quota: two",
    "eventTime": "2099-01-01T00:00:09.000000Z",
}


@pytest.mark.parametrize(
    ("events", "says_"), [((REFUSED,), "exceeded quota: two"), ((), "")], ids=["it is told", "nothing is"]
)
def test_why_a_pod_cant_be_made(events: tuple[dict[str, Any], ...], says_: str) -> None:
    found = reading.unmade(live("d", kind="StatefulSet", metadata={"uid": "sts"}), [], events)

    assert says_ in found
    assert bool(says_) == bool(found)


def test_what_is_wrong_with_a_pod_is_not_why_another_cant_be_made() -> None:
    broken = live(status={"containerStatuses": container(waiting={"reason": "ImagePullBackOff"})})

    assert "" == reading.unmade(live("d", kind="StatefulSet"), [broken], ())


# --- the StatefulSet and its claims -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seen", "revision"), [(3, "new"), (2, ""), (None, "")], ids=["looked at", "not at the last change", "never"]
)
def test_its_template_is_known_once_its_controller_has_looked(seen: int | None, revision: str) -> None:
    status = {"updateRevision": "new", "observedGeneration": seen} if seen else {}
    found = reading.workload(live("d", metadata={"generation": 3}, spec={"replicas": 2}, status=status))

    assert ("uid-0", 2, "7", revision) == (found.uid, found.replicas, found.version, found.revision)


def test_without_a_number_there_is_one_pod() -> None:
    assert 1 == reading.workload(live("d", spec={})).replicas


def claims(*sizes: str) -> dict[str, Any]:
    made = [{"spec": {"resources": {"requests": {"storage": size}}}} for size in sizes]
    return {"spec": {"volumeClaimTemplates": made} if made else {}}


SIZES: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    # id: (wanted, live, whether it can't be changed in place)
    "the same": (claims("1Gi"), claims("1Gi"), False),
    "in other words": (claims("1Gi"), claims("1024Mi"), False),
    "larger": (claims("2Gi"), claims("1Gi"), True),
    "one more": (claims("1Gi", "1Gi"), claims("1Gi"), True),
    "none": (claims(), claims(), False),
}


@pytest.mark.parametrize(("wanted", "there", "fixed"), SIZES.values(), ids=SIZES)
def test_the_size_of_claims_is_fixed(wanted: dict[str, Any], there: dict[str, Any], fixed: bool) -> None:
    assert (("spec.volumeClaimTemplates",) if fixed else ()) == reading.fixed_claims(wanted, there)


def owned_by(manager: str, labels: dict[str, str], annotations: dict[str, str]) -> list[dict[str, Any]]:
    """That `manager` was the last to write these of the template."""
    fields = {
        "f:labels": {f"f:{key}": {} for key in labels},
        "f:annotations": {f"f:{key}": {} for key in annotations},
    }
    where = {"f:spec": {"f:template": {"f:metadata": fields}}}
    return [{"manager": manager, "operation": "Update", "fieldsV1": where}]


OURS = {"labels": {"app": "d"}, "annotations": {"note": "x"}}


def test_a_statefulset_beside_what_is_wanted_of_it() -> None:
    """What others put into its template is told, but for the way in which people ask for a restart."""
    labels, annotations = {"x": "1"}, {reading.RESTARTED: "2026-01-01T00:00:00Z"}
    theirs = {"labels": OURS["labels"] | labels, "annotations": OURS["annotations"] | annotations}
    wanted = depots.desired(builtin.STATEFUL_SET, "d", spec={"replicas": 3, "template": {"metadata": OURS}}).body
    there = {
        **wanted,
        "metadata": {**wanted["metadata"], "uid": "sts-uid", "resourceVersion": "7"}
        | {"managedFields": owned_by("kubectl", labels, annotations)},
        "spec": {"replicas": 3, "template": {"metadata": theirs}},
    }
    children = apply.Children(verified.Verified())
    found = reading.beside(reading.workload(there), there, wanted, children)

    assert ("sts-uid", True, ()) == (found.uid, found.child.good, found.fixed)
    assert (("spec", "template", "metadata", "labels", "x"),) == found.added
    larger = {**wanted, "spec": {**wanted["spec"], **claims("2Gi")["spec"]}}
    assert ("spec.volumeClaimTemplates",) == reading.beside(found, there, larger, children).fixed


VOLUMES: dict[str, tuple[str, list[str], bool | None]] = {
    # id: (its size, of which classes it is asked whether they let it grow, what is known of that)
    "smaller than it should be": ("512Mi", ["fast"], True),
    "as large": ("1Gi", [], None),
    "larger": ("2Gi", [], None),
    "not known": ("", [], None),
}


@pytest.mark.parametrize(("size", "expected", "expandable"), VOLUMES.values(), ids=VOLUMES)
def test_its_class_is_asked_only_where_it_must_grow(size: str, expected: list[str], expandable: bool | None) -> None:
    asked: list[str] = []

    def ask(name: str) -> bool:
        asked.append(name)
        return True

    spec = {"storageClassName": "fast", "resources": {"requests": {"storage": size} if size else {}}}
    it = live("data-d-1", spec=spec, metadata={"creationTimestamp": at(0)})
    found = reading.volume(it, 1, smaller_than=1024**3, expandable=ask)

    assert (expected, expandable) == (asked, found.expandable)
    assert ("data-d-1", 1, "uid-0", size, START) == (found.name, found.ordinal, found.uid, found.size, found.made_at)
    assert not found.deleting


def test_a_claim_without_a_class_is_asked_about_by_an_empty_name() -> None:
    it = live("data-d-1", spec={"resources": {"requests": {"storage": "1"}}}, metadata={"deletionTimestamp": at(0)})
    found = reading.volume(it, 1, smaller_than=2, expandable=lambda name: bool(name))

    assert (False, True) == (found.expandable, found.deleting)


# --- the budget, and what nobody asks for -------------------------------------------------------------------------

BUDGETS: dict[str, tuple[dict[str, Any] | None, int | None]] = {
    # id: (the budget, how many it lets go)
    "there is none": (None, None),
    "its controller has not looked yet": (live("d", metadata={"generation": 1}), None),
    "nor at the latest change": (
        live("d", metadata={"generation": 2}, status={"observedGeneration": 1, "disruptionsAllowed": 1}),
        None,
    ),
    "it lets one go": (
        live("d", metadata={"generation": 1}, status={"observedGeneration": 1, "disruptionsAllowed": 1}),
        1,
    ),
    "it lets nobody go": (live("d", metadata={"generation": 1}, status={"observedGeneration": 1}), 0),
}


@pytest.mark.parametrize(("budget", "lets"), BUDGETS.values(), ids=BUDGETS)
def test_what_the_budget_allows(budget: dict[str, Any] | None, lets: int | None) -> None:
    assert lets == reading.disruptions(budget)


def test_surplus_is_owned_and_not_wanted() -> None:
    mine = {"ownerReferences": [{"uid": "uid-d"}]}
    services = [
        live("d", metadata=mine),
        live("d-old", metadata=mine | {"deletionTimestamp": at(0)}),
        live("a-users"),
        live("another's", metadata={"ownerReferences": [{"uid": "uid-e"}]}),
    ]
    there = {builtin.SERVICE: services, builtin.CONFIG_MAP: [live("d", metadata=mine)]}
    found = reading.surplus(there, "uid-d", {depots.SERVICE.id})

    assert [("Service/d-old", True), ("ConfigMap/d", False)] == [(it.id, it.deleting) for it in found]
