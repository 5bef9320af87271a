"""Different texts that the API server takes for the same value. Pure.

Where a form is allowed depends on the place: "1h" and "60m" are equal as a duration of a custom resource, and
different as an argument of a container. So each rule names its places, and texts of the user's own (metadata, data,
args, env) have none.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from . import quantities

__all__ = ["same"]

Path = tuple[str, ...]

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
    if _takes_quantity(path) and (left := quantities.number(wanted)) is not None:
        return left == quantities.number(live)
    if isinstance(wanted, str) != isinstance(live, str):
        return str(wanted) == str(live) and str(wanted).lstrip("-").isdigit()  # a port as text or number
    if isinstance(wanted, str) and isinstance(live, str):
        left, right = quantities.duration(wanted), quantities.duration(live)
        return left is not None and left == right
    return False


def _takes_quantity(path: Path) -> bool:
    return (len(path) > 1 and path[-2] in _QUANTITY_PARENTS) or (bool(path) and path[-1] in _QUANTITY_FIELDS)


def _same_bytes(wanted: str, live: str) -> bool:
    try:
        left = base64.b64decode("".join(wanted.split()), validate=True)
        return left == base64.b64decode(live, validate=True) and len(live) > 0
    except (binascii.Error, ValueError):
        return False
