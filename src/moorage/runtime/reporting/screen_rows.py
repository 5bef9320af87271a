"""What a kind shows of itself on people's screens, as data: labelled rows with items below them, and its objects. Pure.

`moorage.view` lays them out for every kind alike; what a row says, and which objects are a kind's, is its own matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

from moorage.api import meta

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


class Owned(msgspec.Struct, frozen=True):
    """The objects of one, as they were found with the user's own rights.

    `pods` tell why another object is not ready; `live` is what was read with them: None is gone.
    """

    refs: tuple[meta.ObjectRef, ...] = ()
    pods: tuple[Mapping[str, Any], ...] = ()
    live: Mapping[meta.ObjectRef, Mapping[str, Any] | None] = {}
