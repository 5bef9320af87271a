"""Different texts that the API server takes for the same value. Pure.

Where a form is allowed depends on the place: "1h" and "60m" are equal as a duration of a custom resource, and
different as an argument of a container. So each rule names its places, and texts of the user's own (metadata, data,
args, env) have none.
"""

from __future__ import annotations

import base64
import binascii
import re
from decimal import Decimal, InvalidOperation
from typing import Any

__all__ = ["same"]

Path = tuple[str, ...]

_SUFFIX = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_QUANTITY = re.compile(r"([-+]?[0-9.]+)(?:([eE][-+]?[0-9]+)|(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]?))")
_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:ns|us|µs|ms|s|m|h))+")
_DURATION_PART = re.compile(r"([0-9.]+)(ns|us|µs|ms|s|m|h)")
_SECONDS = {"ns": "1e-9", "us": "1e-6", "µs": "1e-6", "ms": "1e-3", "s": "1", "m": "60", "h": "3600"}

_QUANTITY_PARENTS = frozenset(
    {"limits", "requests", "capacity", "hard", "overhead", "allocatable", "used", "min", "max", "default"}
    | {"defaultRequest", "maxLimitRequestRatio", "minAllowed", "maxAllowed"}
)
_QUANTITY_FIELDS = frozenset(["sizeLimit", "divisor", "averageValue", "value", "storage", "size"])
_VERBATIM = frozenset(
    ["metadata", "data", "stringData", "args", "command", "env", "annotations", "labels", "matchLabels"]
)


def same(path: Path, wanted: Any, live: Any) -> bool:
    """Whether two values that are no maps and no lists mean the same at this place.

    `path` is the place by field names, list elements left out: ("spec", "containers", "resources", "limits", "cpu").
    """
    if isinstance(wanted, bool) or isinstance(live, bool):
        return wanted is live
    if wanted == live:
        return True
    if path[:1] in (("data",), ("binaryData",)) and isinstance(wanted, str) and isinstance(live, str):
        return _same_bytes(wanted, live)
    if any(part in _VERBATIM for part in path):
        return False
    if _takes_quantity(path) and (left := quantity(wanted)) is not None:
        return left == quantity(live)
    if isinstance(wanted, str) != isinstance(live, str):
        return str(wanted) == str(live) and str(wanted).lstrip("-").isdigit()  # a port as text or number
    if isinstance(wanted, str) and isinstance(live, str):
        left, right = duration(wanted), duration(live)
        return left is not None and left == right
    return False


def quantity(value: Any) -> Decimal | None:
    """The number that a quantity such as 500m, 1Gi or 2e3 stands for."""
    found = _QUANTITY.fullmatch(str(value).strip())
    if not found:
        return None
    digits, exponent, suffix = found.groups()
    try:
        number = Decimal(digits)
        if exponent:
            return number.scaleb(int(exponent[1:]))
        if suffix in _BINARY:
            return number * Decimal(1024 ** _BINARY[suffix])
        return number.scaleb(_SUFFIX[suffix or ""])
    except (InvalidOperation, ValueError):
        return None


def duration(text: str) -> Decimal | None:
    """The seconds of a Go duration such as 1h30m."""
    if not _DURATION.fullmatch(text):
        return None
    return sum((Decimal(n) * Decimal(_SECONDS[unit]) for n, unit in _DURATION_PART.findall(text)), Decimal(0))


def _takes_quantity(path: Path) -> bool:
    return (len(path) > 1 and path[-2] in _QUANTITY_PARENTS) or (bool(path) and path[-1] in _QUANTITY_FIELDS)


def _same_bytes(wanted: str, live: str) -> bool:
    try:
        left = base64.b64decode("".join(wanted.split()), validate=True)
        return left == base64.b64decode(live, validate=True) and len(live) > 0
    except (binascii.Error, ValueError):
        return False
