"""A release's values: read from what a user wrote, layered as helm layers them, and named by a digest. Pure.

What can go wrong is a text that is no base64, no YAML or no mapping: `ValuesError` says where; or that is too large:
`helm_yaml.TooLarge` has the figure.
"""

from __future__ import annotations

import base64
import binascii
import functools
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from moorage.helm.parsing import helm_yaml

__all__ = ["Given", "ValuesError", "canonical", "decode", "digest", "encode", "merge", "over_defaults", "parse"]

Values = dict[str, Any]
_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/=\s]")
_NOT_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


class ValuesError(ValueError):
    """Values that can't be used. `where` is "byte N" of the base64 text or "line L, column C" of the YAML, or empty."""

    def __init__(self, reason: str, where: str = "") -> None:
        self.reason, self.where = reason, where
        super().__init__(f"{where}: {reason}" if where else reason)


class Given(Mapping[str, Any]):
    """Values as helm is given them: a JSON text, taken apart only where somebody looks inside."""

    def __init__(self, text: bytes) -> None:
        """`text` is canonical, see there."""
        self.text = text

    @functools.cached_property
    def digest(self) -> str:
        """By meaning: equal values have equal digests."""
        return f"sha256:{hashlib.sha256(self.text).hexdigest()}"

    def over(self, known: Mapping[str, Any]) -> Given:
        """These values over others, as `merge` does it; only what the others name is taken apart."""
        return Given(_layered(known, self.text))

    def __eq__(self, other: object) -> bool:
        return self.text == other.text if isinstance(other, Given) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.text)

    @functools.cached_property
    def _values(self) -> Values:
        decoded: Values = msgspec.json.decode(self.text)
        return decoded

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def encode(values: Mapping[str, Any]) -> bytes:
    """What helm reads, as YAML: the values' canonical text."""
    return values.text if isinstance(values, Given) else canonical(values)


def decode(text: str, budget: helm_yaml.Budget | None = None) -> Values:
    """The mapping in a base64 text of a YAML document; an empty text is an empty mapping."""
    if bad := _NOT_BASE64.search(text):
        raise ValuesError(f"{bad.group()!r} is no base64 character; encode the YAML with base64", f"byte {bad.start()}")
    try:
        raw = base64.b64decode("".join(text.split()), validate=True)
    except binascii.Error:
        raise ValuesError("the base64 text is cut off or wrongly padded", f"byte {len(text)}") from None
    try:
        return parse(raw.decode(), budget)
    except UnicodeDecodeError as error:
        raise ValuesError("not UTF-8 text after base64 is decoded", f"decoded byte {error.start}") from None


def parse(text: str, budget: helm_yaml.Budget | None = None) -> Values:
    """The mapping in a YAML document; several documents are layers, as they are for helm."""
    try:
        layers = helm_yaml.load_layers(text, strict=True, budget=budget)
    except helm_yaml.TooLarge:
        raise
    except helm_yaml.DocumentError as error:
        where = f"line {error.line}, column {error.column}" if error.line else ""
        raise ValuesError(f"not valid YAML: {error.reason}", where) from None
    for layer in layers:
        if not isinstance(layer, dict | None):
            raise ValuesError(f"values must be a mapping of names to values, not a {_kind(layer)}", "line 1, column 1")
    return merge(*(layer or {} for layer in layers))


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
    """JSON with sorted keys, no spaces, and one form per number, so that equal values have equal bytes.

    It is read as YAML by helm, and stays what it is there: what YAML takes for no character or for a line break is
    escaped, and all else is not, as YAML knows no pairs of surrogates.
    """
    text = json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return _NOT_IN_YAML.sub(lambda found: f"\\u{ord(found.group()):04x}", text).encode()


def digest(value: Any) -> str:
    """ "sha256:..." of the canonical JSON. Without a key: where it is shown, a short secret in it could be guessed."""
    return f"sha256:{hashlib.sha256(canonical(value)).hexdigest()}"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 1 << 53 and (value or str(value) == "0.0"):
        return int(value)
    return value


def _layered(known: Mapping[str, Any], given: bytes | msgspec.Raw) -> bytes:
    try:
        names = msgspec.json.decode(given, type=dict[str, msgspec.Raw])
    except msgspec.ValidationError:
        return bytes(given)  # no mapping: it replaces one
    for name, value in known.items():
        if isinstance(value, Mapping):
            names[name] = msgspec.Raw(_layered(value, names.get(name, b"{}")))
        elif name not in names:
            names[name] = msgspec.Raw(canonical(value))
    return b"{%b}" % b",".join(b"%b:%b" % (canonical(name), bytes(names[name])) for name in sorted(names))


def _kind(value: Any) -> str:
    return "list" if isinstance(value, list) else "single value"
