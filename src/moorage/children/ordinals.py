"""What the pods of a StatefulSet are called, and their claims: by its name and their ordinal. Pure."""

from __future__ import annotations

MOST_DIGITS = 10
"""Of an ordinal: a StatefulSet's number of pods is an int32."""


def pod(workload: str, ordinal: int) -> str:
    """The pod of one ordinal."""
    return f"{workload}-{ordinal}"


def of(workload: str, name: str) -> int:
    """The ordinal of a pod of that StatefulSet; -1 for a name that is none."""
    stem, _, digits = name.rpartition("-")
    if stem != workload or not digits.isascii() or not digits.isdigit() or len(digits) > MOST_DIGITS:
        return -1
    return int(digits) if digits == str(int(digits)) else -1


def of_claim(template: str, workload: str, name: str) -> int:
    """The ordinal of the pod that a claim is for, which was made by that claim template; -1 for a name that is none."""
    return of(f"{template}-{workload}", name)
