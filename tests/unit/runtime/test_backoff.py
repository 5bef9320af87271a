from __future__ import annotations

import pytest

from moorage.runtime import backoff


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [(-(10**18), 2.0), (0, 2.0), (1, 2.0), (2, 4.0), (3, 8.0), (5, 30.0), (21, 30.0), (10**18, 30.0)],
)
def test_it_doubles_up_to_the_cap_whatever_count_somebody_wrote_into_a_status(failures: int, seconds: float) -> None:
    assert seconds == backoff.seconds(failures, base=2.0, cap=30.0)
