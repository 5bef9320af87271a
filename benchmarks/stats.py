"""Medians, quantiles and intervals. Pure."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from typing import NamedTuple


def quantile(values: Sequence[float], q: float) -> float:
    """The smallest value that at least a share `q` of all values does not exceed. Raises ValueError without values."""
    if not values:
        raise ValueError("no values")
    return sorted(values)[max(0, math.ceil(q * len(values)) - 1)]


class Estimate(NamedTuple):
    """A median with its 95 % interval, and the extremes of what it is of."""

    median: float
    low: float
    high: float
    least: float
    most: float


def estimate(values: Sequence[float], *, resamples: int = 10_000, seed: int = 1) -> Estimate:
    """The median and a percentile bootstrap interval of it; the same values always give the same interval."""
    if not values:
        raise ValueError("no values")
    chance = random.Random(seed)  # noqa: S311 - repeatable, not secret
    medians = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(resamples))
    low, high = quantile(medians, 0.025), quantile(medians, 0.975)
    return Estimate(statistics.median(values), low, high, min(values), max(values))


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Round by round, ours to theirs. Nothing to nothing is 1; something to nothing is infinite.

    Raises ValueError when the rounds do not pair.
    """
    return [_ratio(a, b) for a, b in zip(ours, theirs, strict=True)]


def _ratio(a: float, b: float) -> float:
    if b:
        return a / b
    return math.inf if a else 1.0


def reached(it: Estimate, *, at_least: float | None = None, at_most: float | None = None) -> bool:
    """Whether the median is there and the interval's far end is within 5 % of it."""
    if at_least is not None:
        return it.median >= at_least and it.low >= at_least * 0.95
    if at_most is not None:
        return it.median <= at_most and it.high <= at_most * 1.05
    raise ValueError("no bound")
