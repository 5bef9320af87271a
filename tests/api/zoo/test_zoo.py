"""Odd charts: moorage makes of each what plain helm makes of it, or the difference is written down.

Each chart under tests/e2e/charts is installed, upgraded and removed by plain helm in one namespace and by moorage in
another; after each step all objects of both are compared, with how often each was made, its generation, and the record.
What else is done, and what may differ, is in the chart's `zoo.yaml`; see `charts`.
"""

from __future__ import annotations

import pytest

from . import charts, visit

EVERY = charts.every()


def test_the_zoo_is_large() -> None:
    """There are charts for forty ways of being odd, and no two of one name."""
    names = {odd.name for odd in EVERY}

    assert len(EVERY) == len(names)
    assert len(names) >= 40


@pytest.mark.parametrize("odd", EVERY, ids=lambda odd: odd.name)
def test_as_plain_helm(odd: charts.Odd, seen: dict[str, visit.Seen], request: pytest.FixtureRequest) -> None:
    """The same objects, or a documented difference; a chart that is known to be broken must be so."""
    if odd.told.broken:
        request.applymarker(pytest.mark.xfail(reason=odd.told.broken, strict=True))

    assert [] == seen[odd.name].differences
