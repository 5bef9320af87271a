"""A release's values: read from what a user wrote, layered as helm layers them, and named by a digest. Pure.

What can go wrong is a text that is no base64, no YAML or no mapping: `ValuesError` says where.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from moorage.helm import documents

__all__ = ["ValuesError", "canonical", "decode", "digest", "merge", "over_defaults", "parse"]

Values = dict[str, Any]
_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/=\s]")


class ValuesError(ValueError):
    """Values that can't be used. `where` is "byte N" of the base64 text or "line L, column C" of the YAML, or empty."""

    def __init__(self, reason: str, where: str = "") -> None:
        self.reason, self.where = reason, where
        super().__init__(f"{where}: {reason}" if where else reason)


def decode(text: str) -> Values:
    """The mapping in a base64 text of a YAML document; an empty text is an empty mapping."""
    if bad := _NOT_BASE64.search(text):
        raise ValuesError(f"{bad.group()!r} is no base64 character; encode the YAML with base64", f"byte {bad.start()}")
    try:
        raw = base64.b64decode("".join(text.split()), validate=True)
    except binascii.Error:
        raise ValuesError("the base64 text is cut off or wrongly padded", f"byte {len(text)}") from None
    try:
        return parse(raw.decode())
    except UnicodeDecodeError as error:
        raise ValuesError("not UTF-8 text after base64 is decoded", f"decoded byte {error.start}") from None


def parse(text: str) -> Values:
    """The mapping in a YAML document."""
    try:
        loaded = documents.load(text, strict=True)
    except documents.DocumentError as error:
        where = f"line {error.line}, column {error.column}" if error.line else ""
        raise ValuesError(f"not valid YAML: {error.reason}", where) from None
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise ValuesError(f"values must be a mapping of names to values, not a {_kind(loaded)}", "line 1, column 1")
    return loaded


def merge(*layers: Mapping[str, Any]) -> Values:
    """Layers of user values, later ones win: maps merge, lists and scalars replace.

    A null stays, as with several `-f` files: it is helm that then deletes the chart's default of that name.
    """
    out: Values = {}
    for layer in layers:
        for key, value in layer.items():
            below = out.get(key)
            if isinstance(value, Mapping):
                out[key] = merge(below if isinstance(below, Mapping) else {}, value)
            else:
                out[key] = value
    return out


def over_defaults(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> Values:
    """What the templates see: `given` over the chart's own values, where a null takes a default away.

    A null that takes nothing away stays, and below the top level so does one over a default that is null itself: no one
    would choose that, but it is what helm does. Where only one side is a map, what is given wins.
    """
    return _over(defaults, given, top=True)


def _over(defaults: Mapping[str, Any], given: Mapping[str, Any], *, top: bool) -> Values:
    out: Values = {}
    for key in [*defaults, *(k for k in given if k not in defaults)]:
        if key not in given:
            out[key] = defaults[key]
        elif key not in defaults:
            out[key] = given[key]
        elif isinstance(given[key], Mapping) and isinstance(defaults[key], Mapping):
            out[key] = _over(defaults[key], given[key], top=False)
        elif given[key] is not None or (defaults[key] is None and not top):
            out[key] = given[key]
    return out


def canonical(value: Any) -> bytes:
    """JSON with sorted keys, no spaces, and one form per number, so that equal values have equal bytes."""
    return json.dumps(
        _plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def digest(value: Any) -> str:
    """ "sha256:..." of the canonical JSON. Without a key: where it is shown, a short secret in it could be guessed."""
    return f"sha256:{hashlib.sha256(canonical(value)).hexdigest()}"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _kind(value: Any) -> str:
    return "list" if isinstance(value, list) else "single value"
