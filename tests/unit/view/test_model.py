"""The read model: from an object to what people ask of it."""

from __future__ import annotations

import msgspec
import pytest

from moorage import operators
from moorage.view import model, operator_state

from . import objects

COLLECTOR = operators.SYSTEMS["collector"].described[0]


@pytest.mark.parametrize(
    ("obj", "code"),
    [
        (objects.READY, 0),
        (objects.WAITING, 1),
        (objects.STALLED, 2),
        (objects.PAUSED, 1),
        (objects.collector(), 1),
        (objects.READY | {"status": objects.READY["status"] | {"observedGeneration": 1}}, 1),
    ],
)
def test_the_exit_code_tells(obj: dict, code: int) -> None:
    """0 ready, 1 on its way (also when the latest change is not looked at), 2 stalled."""
    assert code == model.of(COLLECTOR, obj).exit_code


def test_steps_before_the_standing_one_are_done_and_those_behind_not_reached() -> None:
    """The step in status.progress is where the list stopped."""
    steps = {step.name: step.state for step in model.of(COLLECTOR, objects.STALLED).steps}

    assert "Done" == steps["tenant_admits"]
    assert "Standing" == steps["chart_renders"]
    assert "NotReached" == steps["children_are_ready"]


def test_all_steps_of_a_ready_one_are_done() -> None:
    """Nothing stands open."""
    assert {"Done"} == {step.state for step in model.of(COLLECTOR, objects.READY).steps}


def test_an_object_that_is_being_deleted_shows_the_steps_of_its_farewell() -> None:
    """Other steps, other names."""
    leaving = objects.WAITING | {
        "metadata": objects.WAITING["metadata"] | {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    }

    seen = model.of(COLLECTOR, leaving)

    assert seen.deleting
    assert "owner_may_go" in [step.name for step in seen.steps]


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        (objects.READY, "nothing"),
        (objects.WAITING, "the node is awaited"),
        (objects.STALLED, "correct it; or the chart"),
        (objects.PAUSED, "remove the annotation"),
        (objects.collector(observed=-1), "see whether the operator runs"),
    ],
)
def test_next_says_what_to_do(obj: dict, words: str) -> None:
    """In the words of the decision."""
    assert model.of(COLLECTOR, obj).next.startswith(words)


def test_a_message_leaves_out_what_is_to_be_done() -> None:
    """That has a line of its own, and semicolons of its own."""
    assert "at '/replicas': got string" == model.of(COLLECTOR, objects.STALLED).message


def test_the_last_ten_events_are_kept_in_order() -> None:
    """Whatever order the API server lists them in."""
    events = [objects.event(f"2026-01-01T00:00:{second:02}Z", f"R{second}") for second in reversed(range(12))]

    seen = model.of(COLLECTOR, objects.READY, events)

    assert [f"R{second}" for second in range(2, 12)] == [event.reason for event in seen.events]


def test_the_json_form_is_fixed() -> None:
    """Scripts read it, so a change here is a change for users."""
    plain = msgspec.to_builtins(model.of(COLLECTOR, objects.READY))

    assert [
        *("kind", "namespace", "name", "ready", "reason", "message", "stalled", "deleting", "lookedAt", "facts"),
        *("steps", "next", "status", "events", "children", "changedAt", "operator"),
    ] == list(plain)


AWAY = operator_state.Operator("2026-01-01T00:00:00Z", "moorage-system/moorage")
GONE = model.ChildView("Deployment", "acme", "web", "False", "NotFound", "the object does not exist")


def test_a_change_that_is_not_looked_at_is_told_before_what_was_true_then() -> None:
    """Its status is of an earlier spec, so that it is neither ready nor stalled."""
    seen = model.of(COLLECTOR, objects.changed("2026-01-01T00:00:05Z"))

    assert ("Unknown", "NotLookedAt", "2026-01-01T00:00:05Z") == (seen.ready, seen.reason, seen.changed_at)
    assert "moorage's look is awaited, which takes seconds" == seen.next
    assert 1 == seen.exit_code


def test_what_is_live_is_believed_before_what_status_says() -> None:
    """As when all pods were deleted a moment ago, or while nobody looks."""
    seen = model.of(COLLECTOR, objects.READY, children=(GONE,))

    assert ("False", "NotFound") == (seen.ready, seen.reason)
    assert "status knows nothing of it yet: Deployment web: the object does not exist" == seen.message
    assert 1 == seen.exit_code


@pytest.mark.parametrize("obj", [objects.READY, objects.WAITING, objects.STALLED, objects.changed("2026")])
def test_while_moorage_is_away_it_is_the_first_thing_to_do(obj: dict) -> None:
    """Whatever status says comes next, nobody does it."""
    seen = model.of(COLLECTOR, obj, seen=AWAY)

    assert AWAY.words == seen.operator
    assert AWAY.next == seen.next
    assert seen.exit_code
