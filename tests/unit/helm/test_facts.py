"""The conditions of a helm-backed kind, and what its status reports."""

from __future__ import annotations

import pytest

from moorage.api import conditions
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


def told(release: observation.ReleaseSeen, type_: str) -> tuple[bool | None, str, str]:
    """What a pass says under that condition."""
    (found,) = [fact for fact in (of(states.It(release)) for of in facts.FACTS) if fact.type == type_]
    return found.status, str(found.reason), found.message


def said(*facts_: tuple[str, str, str, str]) -> release_status.HelmStatus:
    """A status with these conditions."""
    return release_status.HelmStatus(
        conditions=tuple(
            conditions.Condition(type=type_, status=status, reason=reason, message=message)
            for type_, status, reason, message in facts_
        )
    )


UNSEEN = {"record": freshness.not_yet("record"), "children": freshness.not_yet("objects")}


@pytest.mark.parametrize("type_", ["Released", "Drifted", "Available"])
def test_what_is_not_looked_at_yet_stands_as_it_stood(type_: str) -> None:
    """A record that helm has just changed is read at once, and only what is found then is worth a write."""
    before = said((type_, "False", "Before", "as it was"))

    assert (False, "Before", "as it was") == told(states.settled(**UNSEEN, status=before), type_)
    assert told(states.settled(), type_) == told(states.settled(status=before), type_)


@pytest.mark.parametrize("type_", ["Released", "Available"])
def test_what_was_never_known_or_can_not_be_seen_is_unknown(type_: str) -> None:
    """What an earlier pass did not know either is no knowledge, and a look that failed is told."""
    failed = freshness.Failed("Forbidden", "no rights")
    known = said((type_, "True", "Before", "as it was"))

    assert told(states.settled(**UNSEEN, status=said()), type_)[0] is None
    assert told(states.settled(**UNSEEN, status=said((type_, "Unknown", "Before", ""))), type_)[:2] != (None, "Before")
    assert told(states.settled(record=failed, children=failed, status=known), type_)[0] is None


def test_what_was_released_of_an_earlier_spec_says_nothing_of_this_one() -> None:
    """The condition gets the new generation, and would be taken for its release."""
    before = said(("Released", "True", "Released", "revision 1 is deployed"))

    assert told(states.settled(**UNSEEN, status=before, released_before=False), "Released")[0] is None
    assert told(states.settled(**UNSEEN, status=before, released_before=True), "Released")[0] is True


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
