"""Where a repair must first take ownership over, as an apply takes away only what its own manager has set. Pure.

A user who edits a key of a merged list (the port of a Service, the name of a variable) makes another element of it: the
release's is missing, and the user's stays beside the one that an apply puts back, or has the apply refused. Two members
of a union are the like. Once the notes in metadata.managedFields say that the element is helm's, the next apply, which
doesn't hold it, takes it away. Only such elements are taken, so that what others have added survives.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from typing import Any

from moorage.api import managed_fields

__all__ = ["SPEC", "ops"]

SPEC: managed_fields.Path = ("f:spec",)
_NOTES = "/metadata/managedFields"


def ops(live: Mapping[str, Any], manager: str, places: Iterable[managed_fields.Path]) -> list[dict[str, Any]]:
    """JSON patch by which `manager` owns by Apply what people own at the places; empty if there is nothing to take.

    It tests the notes that it changes, and not the whole object, whose status may move at any time. Owners of a
    subresource, such as autoscalers and controllers that write status, keep what they have.
    """
    entries: list[dict[str, Any]] = (live.get("metadata") or {}).get("managedFields") or []
    mine = next((i for i, e in enumerate(entries) if (e.get("manager"), e.get("operation")) == (manager, "Apply")), -1)
    if mine < 0 or entries[mine].get("subresource"):
        return []
    after = copy.deepcopy(entries)
    for entry in after:
        if entry is after[mine] or entry.get("subresource") or entry.get("apiVersion") != after[mine]["apiVersion"]:
            continue
        for place in places:
            if (found := _pop(entry.get("fieldsV1") or {}, place)) is not None:
                _put(after[mine]["fieldsV1"], place, found)
    changed = [index for index, entry in enumerate(entries) if entry != after[index]]
    tests = [{"op": "test", "path": f"{_NOTES}/{index}", "value": entries[index]} for index in changed]
    kept = [i for i in changed if after[i]["fieldsV1"]]
    replaced = [{"op": "replace", "path": f"{_NOTES}/{i}/fieldsV1", "value": after[i]["fieldsV1"]} for i in kept]
    removed = [{"op": "remove", "path": f"{_NOTES}/{i}"} for i in reversed(changed) if i not in kept]
    return [*tests, *replaced, *removed]


def _pop(node: dict[str, Any], place: managed_fields.Path) -> dict[str, Any] | None:
    """Remove and return what is noted at the place, and the maps that are empty without it."""
    name = _entry(node, place[0])
    if name is None:
        return None
    if len(place) == 1:
        return dict(node.pop(name))
    found = _pop(node[name], place[1:])
    if found is not None and not node[name]:
        del node[name]
    return found


def _put(node: dict[str, Any], place: managed_fields.Path, found: dict[str, Any]) -> None:
    for part in place:
        node = node.setdefault(_entry(node, part) or part, {})
    _merge(node, found)


def _merge(node: dict[str, Any], other: Mapping[str, Any]) -> None:
    for name, below in other.items():
        _merge(node.setdefault(_entry(node, name) or name, {}), below)


def _entry(node: Mapping[str, Any], wanted: str) -> str | None:
    """The name by which the node has it: the fields of a key may be written in any order."""
    if wanted in node or not wanted.startswith("k:"):
        return wanted if wanted in node else None
    key = managed_fields.element_key(json.loads(wanted[2:]))
    return next((n for n in node if n.startswith("k:") and managed_fields.element_key(json.loads(n[2:])) == key), None)
