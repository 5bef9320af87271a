"""What the pods of a StatefulSet are called, and their claims: by its name and their ordinal. Pure."""

from __future__ import annotations


def pod(workload: str, ordinal: int) -> str:
    """The pod of one ordinal."""
    return f"{workload}-{ordinal}"


def of(workload: str, name: str) -> int:
    """The ordinal of a pod of that StatefulSet; -1 for a name that is none."""
    stem, _, digits = name.rpartition("-")
    return int(digits) if stem == workload and digits.isascii() and digits.isdigit() else -1


def of_claim(template: str, workload: str, name: str) -> int:
    """The ordinal of the pod that a claim is for, which was made by that claim template; -1 for a name that is none."""
    return of(f"{template}-{workload}", name)
