"""The conditions of a helm-backed kind, and what its status reports."""

from __future__ import annotations

import pytest

from moorage.helm import facts, observation, release_status
from moorage.runtime import freshness

from . import release_states as states

BY_HAND = states.record(revision=2, description="Upgrade complete")
WEAK = (states.child(ready=False, reason="CrashLoop", message="it crashes"), states.child(states.SERVICE))


@pytest.mark.parametrize(
    ("release", "fact", "expected"),
    [
        (states.settled(), facts.released, (True, "Released")),
        (states.settled(record=None), facts.released, (False, "NotReleased")),
        (states.settled(record=freshness.not_yet("record")), facts.released, (None, "NotReleased")),
        (states.settled(render=observation.RenderSeen("d2")), facts.released, (False, "NotReleased")),
        (states.settled(record=states.record(status="failed")), facts.released, (False, "NotReleased")),
        (states.settled(), facts.available, (True, "Ready")),
        (states.settled(children=WEAK), facts.available, (False, "CrashLoop")),
        (states.settled(children=(), record=states.record(status="failed")), facts.available, (False, "NotReleased")),
        (states.settled(children=(), record=None), facts.available, (False, "NotReleased")),
        (states.settled(children=()), facts.available, (True, "Ready")),
        (states.settled(children=freshness.not_yet("x")), facts.available, (None, "Looking")),
        (states.settled(), facts.drifted, (False, "InSync")),
        (states.settled(children=(states.child(drift=("spec.x",)),)), facts.drifted, (True, "Drifted")),
        (states.settled(record=BY_HAND), facts.drifted, (True, "Drifted")),
        (
            states.settled(record=states.record(status="failed"), children=(states.child(drift=("",), ready=False),)),
            facts.drifted,
            (False, "NotReleased"),
        ),
        (states.settled(), facts.chart_available, (True, "ChartChosen")),
        (states.settled(chart=freshness.not_yet("chart")), facts.chart_available, (None, "NotYet")),
        (states.settled(chart=freshness.Failed("Gone", "x")), facts.chart_available, (False, "Gone")),
        (
            states.settled(chart=freshness.Stale(states.CHART, 0.0, "x")),
            facts.chart_available,
            (False, "ChartUnreachable"),
        ),
    ],
)
def test_facts(release: observation.ReleaseSeen, fact: object, expected: tuple[bool | None, str]) -> None:
    found = fact(states.It(release))  # type: ignore[operator]

    assert expected == (found.status, str(found.reason))


def test_drift_whose_repair_is_refused_tells_why() -> None:
    child = states.child(drift=("spec.x",), refusal="422 Invalid: both can't be")

    assert "both can't be" in facts.drifted(states.It(states.settled(children=(child,)))).message


def test_what_was_left_to_another_writer_is_told() -> None:
    """A repair had no effect there: nobody would learn else why the object is not as recorded."""
    child = states.child(yielded=("spec.replicas",))
    said = f"left to another writer, such as a webhook: {child.ref} (spec.replicas)"

    alone = facts.drifted(states.It(states.settled(children=(child,))))
    beside = facts.drifted(states.It(states.settled(children=(child, states.child(states.SERVICE, drift=("x",))))))

    assert (False, said) == (alone.status, alone.message)
    assert (True, f"{states.SERVICE}; {said}") == (beside.status, beside.message)


def test_an_own_rollback_is_no_drift() -> None:
    rolled = states.record(revision=3, description="Rollback to 1")
    given_up = release_status.HelmStatus(failed=release_status.FailedDigest("d2", rolled_back_to=1))

    assert facts.drifted(states.It(states.settled(record=rolled, status=given_up))).status is False


def test_the_report_tells_chart_release_and_objects() -> None:
    told = facts.report(states.settled())

    assert release_status.ChartStatus("collector", "1.0.0", "sha256:c", "", "default") == told["chart"]
    assert release_status.ReleaseStatus("collector-main", "acme", 1, "deployed", "d1") == told["release"]
    assert release_status.InventoryStatus(2, 2, {"Deployment": 1, "Service": 1}) == told["inventory"]
    assert release_status.Good(1, "d1") == told["good"]


def test_only_a_ready_revision_of_moorages_own_is_good() -> None:
    assert "good" not in facts.report(states.settled(children=WEAK))
    assert "good" not in facts.report(states.settled(record=BY_HAND))


def test_what_is_not_known_is_not_reported() -> None:
    unknown = freshness.not_yet("x")

    assert {} == facts.report(states.settled(claim=unknown, record=unknown, children=unknown))


def test_a_release_without_objects_is_good() -> None:
    """A chart may hold nothing but hooks, or render nothing with these values."""
    told = facts.report(states.settled(children=()))

    assert release_status.Good(1, "d1") == told["good"]
    assert release_status.InventoryStatus(0, 0) == told["inventory"]
