"""The StatefulSet is there and right; fewer pods only by proof, a fixed field around its pods."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.children import parts, stateful_set
from moorage.runtime import decision
from tests.unit import verdicts
from tests.unit.children import depots
from tests.unit.children.depots import KEY, REASONS, differs, live
from tests.unit.verdicts import SETTLED, Waits, acts

R = depots.Reason
ADDED = (("spec", "template", "metadata", "labels", "x/y"), ("spec", "template", "spec", "containers", 1))


def decided(there: parts.WorkloadSeen | None, replicas: int = 3) -> decision.Verdict:
    return stateful_set.is_right(
        there,
        KEY,
        replicas,
        depots.statefulset,
        REASONS,
        owner="the depot",
        may_go=lambda ordinal: decision.Guard("is_unused", {"ordinal": ordinal}),
    )


TABLE: dict[str, tuple[parts.WorkloadSeen | None, int, verdicts.Shape, str]] = {
    # id: (what there is, how many pods there should be, the verdict, its words)
    "it is as it should be": (live(), 3, SETTLED, ""),
    "there is none": (
        None,
        3,
        acts("Creating", "apply StatefulSet/d new if name_is_free StatefulSet d"),
        "StatefulSet d is made with 3 pods",
    ),
    "somebody deletes it": (
        live(child=differs(deleting=True), fixed=("x",)),
        3,
        Waits("Ending", "child", 600.0),
        "StatefulSet d is being deleted",
    ),
    "a field that can't be changed in place": (
        live(child=differs(), fixed=("spec.volumeClaimTemplates",)),
        3,
        acts("Remaking", "delete StatefulSet/d sts-uid orphan"),
        "StatefulSet d is made anew around its pods",
    ),
    "another template": (
        live(child=differs()),
        3,
        acts("Creating", "apply StatefulSet/d sts-uid"),
        "StatefulSet d is put right",
    ),
    "up": (live(child=differs()), 5, acts("Resizing", "apply StatefulSet/d sts-uid"), "goes from 3 to 5 pods"),
    "down: each pod's end is proven": (
        live(child=differs()),
        1,
        acts("Resizing", "apply StatefulSet/d sts-uid if is_unused 1 if is_unused 2"),
        "goes from 3 to 1 pods",
    ),
    "others have put something into its template": (
        live(added=ADDED, version="7"),
        3,
        acts(
            "Creating",
            "patch StatefulSet/d sts-uid /metadata/resourceVersion=7 /spec/template/metadata/labels/x~1y=- "
            "/spec/template/spec/containers/1=-",
        ),
        "StatefulSet d is put right: spec.template.spec.containers.1, spec.template.metadata.labels.x/y, which",
    ),
}


@pytest.mark.parametrize(("there", "replicas", "shape", "says"), TABLE.values(), ids=TABLE)
def test_table(there: parts.WorkloadSeen | None, replicas: int, shape: verdicts.Shape, says: str) -> None:
    verdicts.same(decided(there, replicas), shape, says)


@pytest.mark.parametrize(
    ("there", "replicas", "expected"),
    [
        pytest.param(None, 3, "the depot has no StatefulSet", id="there is none"),
        pytest.param(live(child=differs()), 3, "it is outdated", id="outdated"),
        pytest.param(live(child=differs("spec.x")), 5, "it is changed at spec.x", id="changed, and up"),
        pytest.param(live(child=differs()), 1, "1 pods, there are 3", id="down"),
        pytest.param(
            live(child=differs(), fixed=("spec.x",)), 3, "spec.x can't be changed in place; the pods stay", id="fixed"
        ),
    ],
)
def test_why_it_is_written(there: parts.WorkloadSeen | None, replicas: int, expected: str) -> None:
    verdict = decided(there, replicas)

    assert isinstance(verdict, decision.Act)
    assert [expected] == [action.why for action in verdict.actions]


def test_it_is_written_with_the_number_of_pods_that_is_wanted() -> None:
    verdict = decided(live(child=differs()), 5)

    assert isinstance(verdict, decision.Act)
    (write,) = verdict.actions
    assert isinstance(write, decision.Apply)
    assert 5 == write.body["spec"]["replicas"]


def test_its_body_is_made_only_where_it_is_written() -> None:
    """That costs more than all else of a step that has nothing to do."""

    def never(_: int) -> Any:
        raise AssertionError("nobody needs it")

    guard = depots.guard(depots.pod(0))
    verdict = stateful_set.is_right(live(), KEY, 3, never, REASONS, owner="the depot", may_go=lambda _: guard)

    assert decision.DONE == verdict


@pytest.mark.parametrize(
    ("there", "shape"),
    [
        pytest.param(None, SETTLED, id="there is none"),
        pytest.param(live(), SETTLED, id="its controller has looked at it"),
        pytest.param(live(revision=""), Waits("Rolling", "workload", 300.0, unseen=True), id="it has not"),
    ],
)
def test_whether_its_template_is_known(there: parts.WorkloadSeen | None, shape: verdicts.Shape) -> None:
    verdicts.same(stateful_set.template_is_known(there, R.ROLLING), shape)
