"""From the schema of a kind to the leaves of its spec, and to what each can be set to. Pure.

A leaf is a field that has no fields of its own: a number, a text, a choice, a list, or a map whose keys are the user's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import msgspec

from . import schemas

ABSENT = None
"""As in a merge patch."""

SECONDS: dict[str, Fraction | int] = {"s": 1, "m": 60, "h": 3600}
BYTES: dict[str, Fraction | int] = {
    "m": Fraction(1, 1000),
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
}
_AMOUNT = re.compile(r"(\d+)([a-zA-Z]*)")
_FORMATS = {"int32": 31, "int64": 63}
_WRONG = {
    "string": (7, {"a": "b"}),
    "integer": ("7", True),
    "number": ("7", True),
    "boolean": ("true", 1),
    "object": ("text", ["text"]),
    "array": ("text", {"a": "b"}),
}


class Leaf(msgspec.Struct, frozen=True):
    """One of them."""

    path: tuple[str, ...]
    schema: dict[str, Any]

    @property
    def name(self) -> str:
        """`storage.size`."""
        return ".".join(self.path)

    @property
    def last(self) -> str:
        """`size`."""
        return self.path[-1]


def of(schema: dict[str, Any], path: tuple[str, ...] = ()) -> list[Leaf]:
    """All leaves of a spec's schema, in its order."""
    found = []
    for name, inside in schema["properties"].items():
        place = (*path, name)
        found += of(inside, place) if inside.get("properties") else [Leaf(place, inside)]
    return found


def sorts(leaf: Leaf, now: Any) -> dict[str, Any]:
    """What the leaf can be set to by its schema alone, right or wrong, by the sort of value; `now` is what it is.

    ABSENT is both a value and what `now` is where there is none.
    """
    schema = leaf.schema
    found: dict[str, Any] = {}
    if now is not ABSENT:
        found["absent"] = ABSENT
    elif "default" in schema:
        found["default"] = schema["default"]
    for number, wrong in enumerate(_WRONG.get(schema.get("type", ""), ())):
        found[f"type {number + 1}"] = wrong
    stands = schema.get("default") if now is ABSENT else now
    found |= dict(_sorts(schema, stands))
    return found


def _sorts(schema: dict[str, Any], stands: Any) -> Iterator[tuple[str, Any]]:
    if "enum" in schema:
        yield from ((f"choice {choice}", choice) for choice in schema["enum"] if choice != stands)
        yield "no choice", "no-such-choice"
        return
    match schema.get("type"):
        case "boolean":
            yield "other", not stands
        case "integer":
            yield from _numbers(schema, stands)
        case "string":
            yield from _texts(schema, stands)
        case "array":
            yield "empty", []
            if "maxItems" in schema:
                item: Any = {} if schema["items"].get("type") == "object" else "x"
                yield "above", [item] * (schema["maxItems"] + 1)
        case "object":
            yield "empty", {}
            if "additionalProperties" in schema:
                yield "other", {"example": "x"}
                yield "type inside", {"example": 7}
            if "maxProperties" in schema:
                yield "above", {f"example-{number}": "x" for number in range(schema["maxProperties"] + 1)}


def _numbers(schema: dict[str, Any], stands: Any) -> Iterator[tuple[str, int]]:
    most = 2 ** _FORMATS[schema.get("format", "int64")]
    least, greatest = schema.get("minimum", -most), schema.get("maximum", most - 1)
    yield "least", least
    yield "greatest", greatest
    if least > -(2**63):
        yield "below", least - 1
    if greatest < 2**63 - 1:
        yield "above", greatest + 1
    stands = least if stands is None else stands
    yield "other", stands + 1 if stands < greatest else stands - 1


def _texts(schema: dict[str, Any], stands: Any) -> Iterator[tuple[str, str]]:
    """Texts of each length that has a limit, one that is like no pattern, and amounts in other units."""
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    yield "least", _like(schema, least)
    if least:
        yield "below", _like(schema, least - 1)
    if most is not None:
        yield "greatest", _like(schema, most)
        yield "above", _like(schema, most + 1)
    if "pattern" in schema:
        yield "unlike", "~ " * max(1, least // 2)
    amount = _AMOUNT.fullmatch(stands or "")
    if amount is None or "pattern" not in schema:
        yield "other", _like(schema, max(least, min(5, most or 5)))
        return
    number, unit = int(amount[1]), amount[2]
    factors = units(schema)
    yield "no unit", str(number)
    yield "other", f"{number + 1}{unit}"
    for other, factor in factors.items():
        same = number * Fraction(factors.get(unit, 1)) / Fraction(factor)
        if other != unit:
            yield f"unit {other}", f"{number}{other}"
            if same.denominator == 1:
                yield f"spelling {other}", f"{same}{other}"


def units(schema: dict[str, Any]) -> dict[str, Fraction | int]:
    """The units that the pattern of an amount takes, and what each counts: as of bytes, else as of seconds."""
    known = BYTES if schemas.fits(schema["pattern"], "1Mi") else SECONDS
    return {unit: factor for unit, factor in known.items() if schemas.fits(schema["pattern"], f"1{unit}")}


def _like(schema: dict[str, Any], length: int) -> str:
    """A text of that length that fits the pattern, if one of a few does."""
    tried = ["x" * length, "1" * length]
    tried += ["1" * (length - len(end)) + end for end in ("s", "Mi") if length > len(end)]
    pattern = schema.get("pattern")
    return next((text for text in tried if pattern is None or schemas.fits(pattern, text)), tried[0])
