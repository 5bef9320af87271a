"""What is the name of a pod of a StatefulSet, and what is none."""

from __future__ import annotations

import pytest

from moorage.children import ordinals


@pytest.mark.parametrize("ordinal", [0, 7, 10, 99, 2**31 - 1])
def test_a_pod_is_known_by_its_name(ordinal: int) -> None:
    assert ordinal == ordinals.of("c", ordinals.pod("c", ordinal))
    assert ordinal == ordinals.of_claim("vol", "c", f"vol-c-{ordinal}")


@pytest.mark.parametrize(
    "name", ["c", "c-", "c--1", "c-x", "c-07", "c-00", "c-1.0", "c-\u0663", "c-" + "9" * 5000, "d-1", "c-1-1", "-1", ""]
)
def test_a_name_that_no_pod_can_have(name: str) -> None:
    assert -1 == ordinals.of("c", name)
