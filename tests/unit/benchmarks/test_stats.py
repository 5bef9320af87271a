"""What the benchmarks' tables are computed from."""

from __future__ import annotations

import math

import pytest

from benchmarks import stats


@pytest.mark.parametrize(("q", "expected"), [(0.0, 1), (0.2, 1), (0.21, 2), (0.5, 3), (0.8, 4), (0.99, 5), (1.0, 5)])
def test_a_quantile_is_the_smallest_value_that_covers_its_share(q, expected):
    """Of five values; never one that was not measured."""
    assert expected == stats.quantile([5, 3, 1, 4, 2], q)


def test_without_values_there_is_no_quantile_and_no_estimate():
    """Rather than a zero that looks like a figure."""
    with pytest.raises(ValueError, match="no values"):
        stats.quantile([], 0.5)
    with pytest.raises(ValueError, match="no values"):
        stats.estimate([])


def test_an_estimate_holds_the_median_and_lies_within_what_was_measured():
    """The interval is around the median, and no wider than the extremes."""
    it = stats.estimate([1.0, 1.1, 0.9, 1.05, 3.0, 0.95, 1.02])

    assert 1.02 == it.median
    assert it.least <= it.low <= it.median <= it.high <= it.most
    assert (0.9, 3.0) == (it.least, it.most)


def test_the_interval_follows_the_spread():
    """Seven equal values leave no doubt; seven scattered ones leave more than seven close ones."""
    same = stats.estimate([2.0] * 7)
    close = stats.estimate([1.9, 1.95, 2.0, 2.0, 2.0, 2.05, 2.1])
    wide = stats.estimate([1.0, 1.5, 2.0, 2.0, 2.0, 2.5, 3.0])

    assert (2.0, 2.0) == (same.low, same.high)
    assert wide.high - wide.low > close.high - close.low > 0


def test_the_same_values_give_the_same_interval():
    """A table that is made again does not change."""
    values = [1.0, 2.0, 4.0, 3.0, 2.5]

    assert stats.estimate(values) == stats.estimate(values)


def test_ratios_are_of_the_same_round():
    """Pairs, in order; nothing to nothing is even."""
    assert [2.0, 0.5, 1.0, math.inf] == stats.ratios([4, 1, 0, 3], [2, 2, 0, 0])


def test_rounds_that_do_not_pair_are_an_error():
    """A run that was cut must not be compared round by round."""
    with pytest.raises(ValueError, match="zip"):
        stats.ratios([1, 2], [1])


@pytest.mark.parametrize(
    ("low", "median", "high", "expected"),
    [
        (1.15, 1.2, 1.3, True),  # 1.14 is 5 % below
        (1.13, 1.2, 1.3, False),
        (1.19, 1.19, 1.5, False),
    ],
)
def test_a_lower_bound_is_reached_by_the_median_and_nearly_by_the_whole_interval(low, median, high, expected):
    """The far end may miss it by 5 %."""
    it = stats.Estimate(median, low, high, low, high)

    assert expected is stats.reached(it, at_least=1.2)


@pytest.mark.parametrize(
    ("low", "median", "high", "expected"),
    [
        (0.5, 0.8, 0.84, True),
        (0.5, 0.8, 0.85, False),
        (0.5, 0.81, 0.81, False),
    ],
)
def test_an_upper_bound_is_reached_by_the_median_and_nearly_by_the_whole_interval(low, median, high, expected):
    """The other way round."""
    it = stats.Estimate(median, low, high, low, high)

    assert expected is stats.reached(it, at_most=0.8)


def test_a_target_needs_a_bound():
    """Forgetting it is no success."""
    with pytest.raises(ValueError, match="no bound"):
        stats.reached(stats.Estimate(1, 1, 1, 1, 1))
