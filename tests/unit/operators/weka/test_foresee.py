"""What another spec would lead to: who leaves, comes and restarts, and what stands against it."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.operators.weka import names
from moorage.operators.weka.cluster import foresee, observation, rolling
from moorage.runtime.reporting import screen_rows

from . import states

METADATA = {"name": "demo", "namespace": "ns", "uid": "u"}


def container(role: str, number: int, word: str = "Running", **metadata: Any) -> dict[str, Any]:
    status = {"status": word, "allocations": {"drives": [f"{role}{number}a", f"{role}{number}b"]}}
    return {
        "metadata": {"name": f"demo-{role}-{number}", "namespace": "ns", "uid": f"{role}{number}", **metadata},
        "spec": {"image": states.IMAGE, "name": f"{role}x{number}", "mode": role, "numCores": 1},
        "status": status if role == "drive" else {"status": word},
    }


def cluster(drive: int = 7, compute: int = 2, *, false: str = "", **spec: Any) -> dict[str, Any]:
    sizes = {"driveContainers": drive, "computeContainers": compute, "numDrives": 2}
    fact = {
        "type": false,
        "status": "False",
        "reason": "x",
        "message": "a drive is lost",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    return {
        "metadata": METADATA,
        "spec": {"image": states.IMAGE, "dynamicTemplate": {**sizes, **spec.pop("sizes", {})}, **spec},
        "status": {"conditions": [fact] if false else []},
    }


def told(then: dict[str, Any], *others: dict[str, Any], now: dict[str, Any] | None = None) -> list[tuple[bool, str]]:
    """What is said of a cluster of seven drive containers and two that compute, or of these."""
    there = others or (*(container("drive", it) for it in range(7)), *(container("compute", it) for it in range(2)))
    live = {names.CONTAINER.ref("ns", it["metadata"]["name"]): it for it in there}
    owned = screen_rows.Owned(tuple(live), live=live)
    return [(it.good, it.text) for it in foresee.foresee(now or cluster(), then, owned)]


def test_a_spec_that_changes_nothing_leads_to_nothing() -> None:
    assert [] == told(cluster())


@pytest.mark.parametrize(
    ("then", "good", "says"),
    [
        (
            cluster(drive=5),
            True,
            "2 drive containers (demo-drive-6, demo-drive-5) leave, one after another, "
            "and what is on their 4 drives moves to others first",
        ),
        (
            cluster(drive=5),
            True,
            "5 drive containers then: a stripe is on 5 or more, 2 of which may be lost; none is beyond them",
        ),
        (
            cluster(drive=6),
            True,
            "6 drive containers then: a stripe is on 5 or more, 2 of which may be lost; 1 beyond them",
        ),
        (cluster(drive=3), True, "2 drive containers (demo-drive-6, demo-drive-5) leave"),
        (cluster(drive=3), False, "2 drive containers (demo-drive-4, demo-drive-3) can't leave: a stripe needs 5"),
        (cluster(drive=3), True, "5 drive containers then"),
        (cluster(drive=5, stripeWidth=4), False, "1 drive container (demo-drive-5) can't leave: a stripe needs 6"),
        (cluster(drive=5, redundancyLevel=4), False, "2 drive containers (demo-drive-6, demo-drive-5) can't leave"),
        (cluster(drive=9), True, "2 drive containers are made, where there are nodes for them"),
        (cluster(drive=9), True, "9 drive containers then"),
        (cluster(compute=3), True, "1 compute container is made, where there are nodes for it"),
        (cluster(compute=1), True, "1 compute container (demo-compute-1) leaves, one after another"),
        (
            cluster(image=states.NEWER),
            True,
            "2 compute containers (demo-compute-0, demo-compute-1) restart for another image: one after another",
        ),
        (cluster(image=states.NEWER), True, "7 drive containers (demo-drive-0, "),
        (cluster(image=states.NEWER), True, "demo-drive-5 and 1 more) restart"),
        (
            cluster(image=states.NEWER, overrides={"upgradePaused": True}),
            False,
            "none restarts before spec.overrides.upgradePaused is taken out",
        ),
        (
            cluster(image=states.NEWER, overrides={"upgradePausePreCompute": True}),
            False,
            "2 compute containers (demo-compute-0, demo-compute-1) do so once spec.overrides.upgradePausePreCompute",
        ),
        (
            cluster(image=states.NEWER, overrides={"upgradeAllAtOnce": True}),
            True,
            "(demo-compute-0, demo-compute-1) restart for another image: all at once",
        ),
        (cluster(sizes={"driveCores": 2}), True, "restart for another numCores"),
        (cluster(sizes={"numDrives": 3}), True, "get 3 drives each in place of 2, where their nodes"),
        (cluster(sizes={"numDrives": 1}), False, "keep the drives that are there"),
        (cluster(sizes={"s3Containers": 2}), False, "nothing follows from spec.dynamicTemplate.s3Containers yet"),
    ],
)
def test_what_would_follow(then: dict[str, Any], good: bool, says: str) -> None:
    assert [(good, says)] == [(is_good, says) for is_good, text in told(then) if says in text]


def test_whoever_does_not_run_leaves_first_and_who_leaves_already_is_not_counted() -> None:
    there = [
        *(container("drive", it, "Unhealthy" if it == 2 else "Running") for it in range(7)),
        container("drive", 7, deletionTimestamp="2026-01-01T00:00:00Z"),
    ]

    assert "1 drive container (demo-drive-2) leaves" in told(cluster(drive=6, compute=0), *there)[0][1]


def test_where_nobody_can_leave_nobody_is_said_to() -> None:
    said = told(cluster(drive=6, stripeWidth=5))

    assert [
        (False, "1 drive container (demo-drive-6) can't leave: a stripe needs 7 drive containers (StripeNeedsThem)"),
        (
            True,
            "7 drive containers then: a stripe is on 7 or more, 2 of which may be lost; none is beyond them, so that a "
            "lost one's data stays without full protection until it is back",
        ),
    ] == said


@pytest.mark.parametrize(("drive", "good"), [(4, False), (5, True)])
def test_too_few_for_a_stripe_is_no_good_although_they_are_more(drive: int, good: bool) -> None:
    said = told(cluster(drive=drive, compute=0), *(container("drive", it) for it in range(3)))

    assert [good] == [it for it, text in said if f"{drive} drive containers then" in text]


@pytest.mark.parametrize("condition", ["Available", "Protected"])
def test_a_cluster_that_is_not_well_lets_nobody_go(condition: str) -> None:
    said = told(cluster(drive=6), now=cluster(false=condition))

    assert (False, f"none that is up leaves or restarts while {condition} is False: a drive is lost") == said[-1]


@pytest.mark.parametrize("drive", [3, 5, 6])
def test_it_is_as_it_is_decided(drive: int) -> None:
    """Who is foretold to leave first is who leaves first; who is foretold to stay, stays."""
    seen = states.cluster_seen(
        spec=states.cluster_spec(dynamicTemplate={"driveContainers": drive, "computeContainers": 5})
    )
    verdict = rolling.surplus_leaves(seen)
    foretold = told(
        {
            "metadata": METADATA,
            "spec": {"image": states.IMAGE, "dynamicTemplate": {"driveContainers": drive, "computeContainers": 5}},
        },
        *(container(it.role, it.number) for it in seen.there.containers),
        now={
            "metadata": METADATA,
            "spec": {"image": states.IMAGE, "dynamicTemplate": {"driveContainers": 6, "computeContainers": 5}},
        },
    )
    leaves = [text for _, text in foretold if " leave" in text and "can't" not in text]

    assert isinstance(seen, observation.Seen)
    if drive == 6:
        assert [] == leaves
    else:
        assert f"({verdict.message.split(' ')[0]}" in leaves[0]  # type: ignore[union-attr]
