"""How long what fails waits before it is tried again. Pure."""

from __future__ import annotations


def seconds(failures: int, *, base: float, cap: float) -> float:
    """Until the next try after so many failures in a row: `base`, and twice as long after each further, up to `cap`."""
    return min(cap, base * 2.0 ** min(max(failures - 1, 0), 20))  # beyond that the cap is long reached
