from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api import conditions
from moorage.api.conditions import Condition

STATUS = st.sampled_from(["True", "False", "Unknown"])
SOME = st.dictionaries(st.sampled_from(["Ready", "Stalled", "Available"]), STATUS)


def made(statuses: dict[str, conditions.Verdict]) -> list[Condition]:
    return [Condition(type_, status, reason="R", observed_generation=2) for type_, status in statuses.items()]


def test_the_time_moves_only_with_the_status() -> None:
    first = conditions.merge((), made({"Ready": "False", "Available": "True"}), 1000)
    second = conditions.merge(first, made({"Ready": "True", "Available": "True"}), 2000)

    assert [condition.type for condition in second] == ["Available", "Ready"]
    assert [condition.last_transition_time for condition in second] == ["1970-01-01T00:16:40Z", "1970-01-01T00:33:20Z"]
    assert conditions.find(second, "Ready") == second[1]
    assert conditions.find(second, "Stalled") is None


def test_one_is_true_where_it_is_there_and_says_so() -> None:
    said = made({"Ready": "True", "Stalled": "Unknown"})

    assert conditions.is_true(said, "Ready")
    assert not conditions.is_true(said, "Stalled")
    assert not conditions.is_true(said, "Available")


def test_what_is_no_longer_said_is_dropped() -> None:
    assert conditions.merge(made({"Ready": "True"}), (), 0) == ()


def test_a_condition_without_a_time_gets_one() -> None:
    (merged,) = conditions.merge(made({"Ready": "True"}), made({"Ready": "True"}), 60)
    assert merged.last_transition_time == "1970-01-01T00:01:00Z"


@given(SOME, SOME, st.integers(1, 10**6))
def test_merging_again_changes_nothing(
    before: dict[str, conditions.Verdict], after: dict[str, conditions.Verdict], later: int
) -> None:
    """No status write comes of merging what is already there."""
    merged = conditions.merge(conditions.merge((), made(before), 0), made(after), later)
    assert conditions.merge(merged, made(after), 2 * later) == merged


@given(st.integers(0, 4_000_000_000))
def test_times_go_there_and_back(seconds: int) -> None:
    assert conditions.epoch(conditions.timestamp(seconds)) == seconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1970-01-01T00:00:01.500000Z", 1.5), ("1970-01-01T02:00:00+01:00", 3600.0), ("1970-01-01T00:00:00Z", 0.0)],
)
def test_times_of_others(text: str, expected: float) -> None:
    assert conditions.epoch(text) == expected


@pytest.mark.parametrize("text", ["", "yesterday", "2026-01-01T00:00:00", "99999-01-01T00:00:00Z", "2026-13-40"])
def test_what_is_no_time_was_long_ago(text: str) -> None:
    """A status may be written by others too."""
    assert conditions.epoch(text) == 0.0


@pytest.mark.parametrize(
    ("written", "age"),
    [(-3600.0, 3600.0), (0.0, 0.0), (conditions.SKEW, 0.0), (conditions.SKEW + 1, math.inf), (86400.0, math.inf)],
)
def test_what_lies_far_ahead_is_long_ago(written: float, age: float) -> None:
    """Clocks differ a little; one that was set back by a day must not make anybody wait for a day."""
    now = 1_800_000_000.0

    assert age == conditions.age(conditions.timestamp(now + written), now)


def test_fractions_are_cut_not_rounded() -> None:
    """A time that lies ahead would look like a clock that is wrong."""
    assert conditions.timestamp(1.999) == "1970-01-01T00:00:01Z"
