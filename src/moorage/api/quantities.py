"""Which number a text of Kubernetes stands for: a quantity such as 500m or 1Gi, a Go duration such as 1h30m. Pure."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Any

_SUFFIX = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_QUANTITY = re.compile(r"([-+]?[0-9.]+)(?:([eE][-+]?[0-9]+)|(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]?))")
_DURATION = re.compile(r"0|(?:[0-9]+(?:\.[0-9]+)?(?:ns|us|µs|ms|s|m|h))+")
_DURATION_PART = re.compile(r"([0-9.]+)(ns|us|µs|ms|s|m|h)")
_SECONDS = {"ns": "1e-9", "us": "1e-6", "µs": "1e-6", "ms": "1e-3", "s": "1", "m": "60", "h": "3600"}


def number(value: Any) -> Decimal | None:
    """What a quantity stands for; None for what is none."""
    found = _QUANTITY.fullmatch(str(value).strip())
    if not found:
        return None
    digits, exponent, suffix = found.groups()
    try:
        plain = Decimal(digits)
        if exponent:
            return plain.scaleb(int(exponent[1:]))
        if suffix in _BINARY:
            return plain * Decimal(1024 ** _BINARY[suffix])
        return plain.scaleb(_SUFFIX[suffix or ""])
    except (InvalidOperation, ValueError):
        return None


def duration(text: str) -> Decimal | None:
    """The seconds of a duration; None for what is none."""
    if not _DURATION.fullmatch(text):
        return None
    return sum((Decimal(n) * Decimal(_SECONDS[unit]) for n, unit in _DURATION_PART.findall(text)), Decimal(0))


def seconds(text: str) -> float:
    """The same of a field that admission has checked. Raises ValueError for what is no duration."""
    found = duration(text)
    if found is None:
        raise ValueError(f"{text!r} is no duration such as 90s, 15m or 1h30m")
    return float(found)
