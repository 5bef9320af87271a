"""What a kind shows of its status on people's screens, as data: labelled rows, with items below them. Pure.

`moorage.view` lays them out for every kind alike; what a row says is the kind's own matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

OBJECTS = "Objects"
"""The label of the row below which the objects are listed that the kind owns; its text stands if none were read."""


class Item(msgspec.Struct, frozen=True):
    """One line below a row, marked by whether all is well with it."""

    text: str
    good: bool


class Row(msgspec.Struct, frozen=True):
    """One labelled row."""

    label: str
    text: str = ""
    items: tuple[Item, ...] = ()


Rows: TypeAlias = Callable[[Mapping[str, Any]], Iterable[Row]]
"""From a status, as it is on the wire, to what is shown of it beside what every kind has."""


def nothing(_: Mapping[str, Any]) -> Iterable[Row]:
    """Of a kind of which all is said by its conditions."""
    return ()
