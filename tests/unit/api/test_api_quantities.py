"""Texts of Kubernetes as numbers."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from moorage.api import quantities


@pytest.mark.parametrize(
    ("text", "number"),
    [("500m", "0.5"), ("1Gi", 2**30), ("2e3", 2000), ("1k", 1000), (3, 3), (" 7 ", 7), ("", None), ("1.2.3", None)],
)
def test_quantities(text: Any, number: Any) -> None:
    assert (None if number is None else Decimal(number)) == quantities.number(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("0", 0.0), ("0s", 0.0), ("90s", 90.0), ("15m", 900.0), ("2h", 7200.0), ("24h", 86_400.0)),
        *(("1h30m", 5400.0), ("1.5s", 1.5), ("250ms", 0.25)),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert seconds == quantities.seconds(text)


@pytest.mark.parametrize("text", ["", "15", "m", "1d", "-1s", "1h 30m", "00"])
def test_what_is_no_duration(text: str) -> None:
    assert quantities.duration(text) is None
    with pytest.raises(ValueError, match="is no duration such as 90s, 15m or 1h30m"):
        quantities.seconds(text)
