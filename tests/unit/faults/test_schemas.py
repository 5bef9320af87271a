"""The second opinion on what an API server takes, fills in and merges."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest

from moorage.api import crd, schema
from tests.api.faults.transitions import schemas


class Inner(msgspec.Struct, frozen=True):
    name: Annotated[str, msgspec.Meta(min_length=2, max_length=4)]
    size: Annotated[str, msgspec.Meta(max_length=6, pattern=r"^[0-9]+(s|m)$")] = "5m"

    __cel__ = (crd.Rule("self.name != 'xx'", "name is bad"),)


class Spec(msgspec.Struct):
    count: Annotated[int, msgspec.Meta(ge=1, le=9, extra_json_schema={"format": "int32"})]
    wide: int = 0
    choice: Literal["A", "B"] = "A"
    inner: Inner | None = None
    tags: Annotated[tuple[str, ...], msgspec.Meta(max_length=2)] = ()
    labels: Annotated[dict[str, str], msgspec.Meta(max_length=2)] = {}
    free: dict[str, Any] = {}


SCHEMA = schema.of(Spec)


@pytest.mark.parametrize(
    ("value", "places"),
    [
        ({"count": 1}, []),
        ({}, ["count"]),
        ({"count": True}, ["count"]),
        ({"count": 10}, ["count"]),
        ({"count": 1, "wide": 2**63}, ["wide"]),
        ({"count": 1, "choice": "C"}, ["choice"]),
        ({"count": 1, "inner": {"size": "1m"}}, ["inner.name"]),
        ({"count": 1, "inner": {"name": "x"}}, ["inner.name"]),
        ({"count": 1, "inner": {"name": "xx", "size": "1m\n"}}, ["inner.size"]),
        ({"count": 1, "inner": []}, ["inner"]),
        ({"count": 1, "tags": ["a", "b", "c"]}, ["tags"]),
        ({"count": 1, "tags": [1]}, ["tags"]),
        ({"count": 1, "labels": {"a": 1}}, ["labels.a"]),
        ({"count": 1, "labels": {"a": "", "b": "", "c": ""}}, ["labels"]),
        ({"count": 1, "free": {"any": [{"thing": 1}]}}, []),
        ({"count": "1", "wide": "1"}, ["count", "wide"]),
    ],
)
def test_what_is_wrong_with_a_value(value: dict[str, Any], places: list[str]):
    """Each fault by its place, as an API server tells them."""
    assert places == [".".join(path) for path in schemas.faults(SCHEMA, value)]


def test_defaults_are_filled_in_where_there_is_an_object_to_hold_them():
    filled = schemas.filled(SCHEMA, {"count": 1, "inner": {"name": "xx"}})

    assert {"count": 1, "wide": 0, "choice": "A", "inner": {"name": "xx", "size": "5m"}} == filled
    assert "inner" not in schemas.filled(SCHEMA, {"count": 1})


def test_a_merge_patch_takes_away_what_is_null_and_replaces_lists():
    base = {"a": {"b": 1, "c": 2}, "list": [1, 2]}

    assert {"a": {"c": 2, "d": 3}, "list": [3]} == schemas.merged(base, {"a": {"b": None, "d": 3}, "list": [3]})
    assert {"a": {"b": 1, "c": 2}, "list": [1, 2]} == base


def test_two_patches_in_one_do_what_both_do_in_turn():
    base = {"a": {"b": 1, "c": 2}, "x": 1}
    first, second = {"a": {"b": None}, "x": 2}, {"a": {"c": 3}, "x": None}
    both = schemas.together(first, second)

    assert schemas.merged(schemas.merged(base, first), second) == schemas.merged(base, both)


def test_rules_are_found_at_any_depth():
    assert ["name is bad"] == [rule["message"] for rule in schemas.rules(SCHEMA)]
