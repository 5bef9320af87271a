"""Claims grow in place, go by proof with who has left, and are out of the way of who comes."""

from __future__ import annotations

import pytest

from moorage.children import parts, volumes
from moorage.runtime import decision
from tests.unit import verdicts
from tests.unit.children import depots
from tests.unit.children.depots import volume
from tests.unit.verdicts import SETTLED, Blocks, Waits, acts

R = depots.Reason
SMALL = volume(0, size="512Mi", expandable=True)
GROW: dict[str, tuple[tuple[parts.VolumeSeen, ...], str, verdicts.Shape, str]] = {
    # id: (what there is, the size that is wanted, the verdict, its words)
    "there is none": ((), "1Gi", SETTLED, ""),
    "it is as large as it should be": ((volume(0),), "1Gi", SETTLED, ""),
    "the same in other words": ((volume(0),), "1024Mi", SETTLED, ""),
    "it is larger": ((volume(0),), "512Mi", SETTLED, ""),
    "it is smaller": (
        (volume(1), SMALL),
        "1Gi",
        acts("Growing", "patch PersistentVolumeClaim/data-d-0 pvc-0 /spec/resources/requests/storage=1Gi"),
        "data-d-0 grows to 1Gi",
    ),
    "nobody knows whether it can": (
        (volume(0, size="512Mi"),),
        "1Gi",
        acts("Growing", "patch PersistentVolumeClaim/data-d-0 pvc-0 /spec/resources/requests/storage=1Gi"),
        "",
    ),
    "a part of a byte is asked for as a whole one": (
        (volume(0, size="1Mi"),),
        "0.3Gi",
        acts("Growing", "patch PersistentVolumeClaim/data-d-0 pvc-0 /spec/resources/requests/storage=322122548"),
        "grows to 0.3Gi",
    ),
    "its class lets it not, so none grows": (
        (SMALL, volume(1, size="512Mi", expandable=False)),
        "1Gi",
        Blocks("Stuck"),
        "data-d-1 is of a storage class that does not let volumes grow",
    ),
    "it is being deleted": ((volume(0, size="512Mi", deleting=True),), "1Gi", SETTLED, ""),
    "its size is not known": ((volume(0, size=""),), "1Gi", SETTLED, ""),
}


@pytest.mark.parametrize(("there", "size", "shape", "says"), GROW.values(), ids=GROW)
def test_volumes_grow(there: tuple[parts.VolumeSeen, ...], size: str, shape: verdicts.Shape, says: str) -> None:
    verdict = volumes.grow(there, size, "ns", R.GROWING, blocked=R.STUCK, field="spec.size")

    verdicts.same(verdict, shape, says)
    if isinstance(verdict, decision.Blocked):
        assert "set allowVolumeExpansion on the class, or set spec.size back" == verdict.fix


@pytest.mark.parametrize(
    ("left", "shape", "says"),
    [
        pytest.param((), SETTLED, "", id="there is none"),
        pytest.param((volume(2, deleting=True),), SETTLED, "", id="it goes already"),
        pytest.param(
            (volume(2, deleting=True), volume(3), volume(4)),
            acts(
                "Clearing",
                "delete PersistentVolumeClaim/data-d-3 pvc-3 if is_unused 3",
                "delete PersistentVolumeClaim/data-d-4 pvc-4 if is_unused 4",
            ),
            "data-d-3, data-d-4 is deleted: data-d-3, data-d-4 belongs to nobody any more",
            id="two are left",
        ),
    ],
)
def test_what_belongs_to_nobody_goes_by_proof(
    left: tuple[parts.VolumeSeen, ...], shape: verdicts.Shape, says: str
) -> None:
    verdicts.same(volumes.are_reclaimed(left, "ns", R.CLEARING, guard=depots.guard), shape, says)


@pytest.mark.parametrize(
    ("left", "holders", "shape", "says"),
    [
        pytest.param((), "d-3", SETTLED, "", id="nothing is in the way"),
        pytest.param(
            (volume(3, deleting=True), volume(4)),
            "d-3",
            Blocks("Kept"),
            "data-d-3, data-d-4 of earlier members is in the way of new ones",
            id="one is kept",
        ),
        pytest.param(
            (volume(3, deleting=True),), "", Waits("Clearing", "volume", 600.0), "data-d-3 is being deleted", id="going"
        ),
        pytest.param(
            (volume(3, deleting=True),),
            "d-3 (its node is away)",
            Waits("Clearing", "volume", 600.0),
            "is being deleted, and held by pod d-3 (its node is away)",
            id="held",
        ),
    ],
)
def test_what_is_in_the_way_of_new_ones_is_cleared(
    left: tuple[parts.VolumeSeen, ...], holders: str, shape: verdicts.Shape, says: str
) -> None:
    verdicts.same(volumes.are_cleared(left, R.CLEARING, blocked=R.KEPT, holders=holders), shape, says)


def test_what_nobody_holds_is_not_said_to_be_held() -> None:
    verdict = volumes.are_cleared((volume(3, deleting=True),), R.CLEARING, blocked=R.KEPT)

    assert isinstance(verdict, decision.Wait)
    assert "data-d-3 is being deleted" == verdict.message


def test_a_claim_goes_by_its_incarnation_in_its_namespace() -> None:
    delete = volumes.delete(volume(3), "ns", "why", depots.guard(volume(3)))

    assert ("ns", "pvc-3", "Background", "why") == (
        delete.ref.namespace,
        delete.ref.uid,
        delete.propagation,
        delete.why,
    )


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ("100Mi", "100Mi"),
        ("1.5Gi", "1536Mi"),
        ("102400Ki", "100Mi"),
        ("104857600000m", "100Mi"),
        ("0.09765625Gi", "100Mi"),
        ("1000M", "1G"),
        ("1500M", "1500M"),
        ("0", "0"),
        ("0.3Gi", "322122548"),
        ("100m", "1"),
        ("1", "1"),
    ],
)
def test_a_claim_is_for_whole_bytes_and_the_same_amount_is_told_alike(size: str, expected: str) -> None:
    assert expected == volumes.claimed(size)


def test_what_is_no_quantity_has_no_bytes() -> None:
    assert [0, 0, 1, 2048] == [volumes.whole_bytes(text) for text in ("", "many", "0.1", "2Ki")]
