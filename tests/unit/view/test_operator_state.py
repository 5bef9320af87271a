"""Whether anybody looks after the objects, by the Leases."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api import conditions
from moorage.view import operator_state

NOW = 1_800_000_000.0


def lease(age: float | None, name: str = "moorage", namespace: str = "moorage-system") -> dict[str, Any]:
    """A Lease of fifteen seconds that was renewed so long ago; None: never."""
    renewed = {"renewTime": conditions.timestamp(NOW - age)} if age is not None else {}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"leaseDurationSeconds": 15, **renewed}}


@pytest.mark.parametrize(
    ("leases", "away", "words"),
    [
        ([lease(2)], False, ""),
        ([lease(70)], False, ""),
        ([lease(76)], True, "its Lease moorage-system/moorage was renewed last at 2027-01-15T07:58:44Z"),
        ([lease(900, "moorage"), lease(2, "moorage-1")], False, ""),
        ([lease(900, "moorage"), lease(800, "moorage-1")], True, "its Lease moorage-system/moorage-1 was renewed last"),
        ([lease(None)], False, ""),
        ([], True, "this cluster has no Lease of it"),
        ([lease(2), lease(3, namespace="other")], False, "moorage runs more than once, in moorage-system, other"),
        ([lease(2), lease(900, namespace="other")], False, ""),
    ],
)
def test_the_leases_tell(leases: list[Any], away: bool, words: str) -> None:
    """By the one that was renewed last, with a minute for clocks that differ."""
    found = operator_state.of(leases, NOW)

    assert away == found.is_away
    assert words in found.words
    assert bool(words) == bool(found.words)


def test_what_the_user_may_not_read_says_nothing() -> None:
    """Most people see no Leases."""
    assert not operator_state.UNKNOWN.is_away
    assert not operator_state.UNKNOWN.words
