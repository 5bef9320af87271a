"""From a schema to what its leaves can be set to."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest

from moorage.api import schema
from tests.api.faults.transitions import leaves, schemas

Amount = Annotated[str, msgspec.Meta(max_length=16, pattern=r"^[0-9]+(s|m|h)$")]
Bytes = Annotated[str, msgspec.Meta(max_length=32, pattern=r"^[0-9]+(\.[0-9]+)?(m|k|M|G|Ki|Mi|Gi)?$")]


class Inner(msgspec.Struct, frozen=True):
    name: str = ""


class Spec(msgspec.Struct):
    inner: Inner = Inner()
    count: Annotated[int, msgspec.Meta(ge=1, le=9)] = 3
    wide: Annotated[int, msgspec.Meta(extra_json_schema={"format": "int32"})] = 0
    on: bool = False
    choice: Literal["A", "B"] = "A"
    text: Annotated[str, msgspec.Meta(min_length=2, max_length=4)] = "abc"
    late: Amount = "15m"
    size: Bytes = "100Mi"
    tags: Annotated[tuple[str, ...], msgspec.Meta(max_length=2)] = ()
    labels: Annotated[dict[str, str], msgspec.Meta(max_length=1)] = {}
    free: dict[str, Any] = {}


SCHEMA = schema.of(Spec)
LEAVES = {leaf.name: leaf for leaf in leaves.of(SCHEMA)}


def sorts(name: str, now: Any = leaves.ABSENT) -> dict[str, Any]:
    """All but wrong types, which are everywhere."""
    found = leaves.sorts(LEAVES[name], now)
    return {sort: to for sort, to in found.items() if not sort.startswith("type ")}


def test_a_leaf_has_no_fields_of_its_own():
    expected = ["inner.name", "count", "wide", "on", "choice", "text", "late", "size", "tags", "labels", "free"]

    assert expected == list(LEAVES)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("count", {"default": 3, "least": 1, "greatest": 9, "below": 0, "above": 10, "other": 4}),
        (
            "wide",
            {
                "default": 0,
                "least": -(2**31),
                "greatest": 2**31 - 1,
                "below": -(2**31) - 1,
                "above": 2**31,
                "other": 1,
            },
        ),
        ("on", {"default": False, "other": True}),
        ("choice", {"default": "A", "choice B": "B", "no choice": "no-such-choice"}),
        (
            "text",
            {"default": "abc", "least": "xx", "below": "x", "greatest": "xxxx", "above": "xxxxx", "other": "xxxx"},
        ),
        ("tags", {"empty": [], "above": ["x", "x", "x"]}),
        ("free", {"empty": {}}),
    ],
)
def test_by_its_schema(name: str, expected: dict[str, Any]):
    assert expected == sorts(name)


def test_an_amount_in_other_units():
    """The same number, and the same amount where it is a whole one."""
    found = sorts("late")

    assert ("15s", "15h", "15") == (found["unit s"], found["unit h"], found["no unit"])
    assert ("900s", "16m") == (found["spelling s"], found["other"])
    assert "spelling h" not in found


def test_bytes_in_other_units():
    found = sorts("size")

    assert ("102400Ki", "100Gi", "100") == (found["spelling Ki"], found["unit Gi"], found["no unit"])


def test_what_there_is_can_be_taken_away():
    """And is what others differ from."""
    assert {"absent": None, "choice A": "A", "no choice": "no-such-choice"} == sorts("choice", "B")


@pytest.mark.parametrize("name", LEAVES)
def test_wrong_types_and_values_beyond_limits_are_wrong_by_the_schema_too(name: str):
    """And values at the limits are right."""
    leaf = LEAVES[name]
    for sort, to in leaves.sorts(leaf, leaves.ABSENT).items():
        first = sort.split()[0]
        wrong = first in ("type", "below", "above", "unlike") or sort == "no choice"
        if first in ("other", "greatest", "choice", "default", "unit", "spelling"):
            assert not schemas.faults(leaf.schema, to), (sort, to)
        elif wrong:
            assert schemas.faults(leaf.schema, to), (sort, to)
