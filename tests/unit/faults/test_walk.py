"""When a step of a trip has come to what it must."""

from __future__ import annotations

import pytest

from tests.api.faults.transitions import declared, walk

READY = declared.Verdict("ready")
STILL = declared.Verdict("still", ("image", "tag"))


@pytest.mark.parametrize(
    ("ready", "message", "seen", "due", "expected"),
    [
        ("True", "", 2, READY, True),
        ("True", "", 1, READY, False),
        ("False", "", 2, READY, False),
        ("False", "no Tag of that name", 2, STILL, True),
        ("False", "it does not come up", 2, STILL, False),
        ("False", "no tag of that name", 1, STILL, False),
        ("Unknown", "image", 2, STILL, False),
        ("True", "image", 2, STILL, False),
    ],
)
def test_an_object_must_speak_of_its_present_spec_and_name_the_field(
    ready: str, message: str, seen: int, due: declared.Verdict, expected: bool
):
    stated = {"type": "Ready", "status": ready, "reason": "It", "message": message}
    found = {"metadata": {"generation": 2}, "status": {"observedGeneration": seen, "conditions": [stated]}}

    assert expected == walk.holds(found, due)
    assert not walk.holds({"metadata": {"generation": 2}}, due)


def test_costs_add_up_but_of_passes_and_requests_the_most_counts():
    cost = walk.Cost(steps=1, ready=1, passes=5, requests=9)
    cost.add(walk.Cost(steps=2, refused=2, passes=3, requests=11))

    assert walk.Cost(steps=3, ready=1, refused=2, passes=5, requests=11) == cost
