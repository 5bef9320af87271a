"""Who owns a field: metadata.managedFields, walked next to the object. Pure.

The API server notes for every field who set it last and by which verb. Ownership of a list with merge keys is noted per
element (`k:{"name":"web"}`), of a set per value (`v:"x"`), of an atomic list or map for the whole; so these notes also
tell how the server sees a list, for every kind, which no table could. Seen on a real API server (tests/api/helm): a
user's change moves a leaf to the user's manager, a user's removal takes it from everyone, and a field that the server
or a webhook changed while it was applied stays with the applier.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

__all__ = ["SCALE", "Cursor", "Owner", "Path", "element_key", "held_whole", "root", "scaled"]

Object = Mapping[str, Any]
SCALE = "scale"  # the subresource by which autoscalers and `kubectl scale` set replicas
Path = tuple[str, ...]
"""A place in managedFields, such as ("f:spec", "f:ports", 'k:{"port":80,"protocol":"TCP"}')."""


class Owner(msgspec.Struct, frozen=True):
    """One writer of an object."""

    manager: str
    operation: str  # Apply or Update
    subresource: str = ""


class Cursor(msgspec.Struct, frozen=True):
    """A place in an object with what each owner's notes say below it. An empty node means: owned as a whole."""

    nodes: tuple[tuple[Owner, Object], ...] = ()

    def field(self, name: str) -> Cursor:
        """The place of a field."""
        return self._step(f"f:{name}")

    def element(self, key: Mapping[str, Any]) -> Cursor:
        """The place of the element of a merged list that has these key fields."""
        wanted = element_key(key)
        found = ((owner, node if not node else _element(node, wanted)) for owner, node in self.nodes)
        return Cursor(tuple((owner, node) for owner, node in found if node is not None))

    def whole(self) -> Cursor:
        """Owners of this place as a whole: what lies below is theirs too."""
        return Cursor(tuple((owner, node) for owner, node in self.nodes if not node))

    def owners(self) -> tuple[Owner, ...]:
        """Who owns this very place, or something above it as a whole."""
        return tuple(owner for owner, node in self.nodes if not node or "." in node)

    def taken_from(self, manager: str) -> bool:
        """Others own this place as a whole, and `manager` nothing of it: the server takes it for one value."""
        return bool(self.nodes) and all(not node and owner.manager != manager for owner, node in self.nodes)

    def merge_keys(self) -> tuple[str, ...] | None:
        """Names of the fields that tell elements of this list apart; None if nobody's notes say so."""
        for _, node in self.nodes:
            for entry in node:
                if entry.startswith("k:"):
                    return tuple(sorted(json.loads(entry[2:])))
        return None

    def is_set(self) -> bool:
        """A list of distinct values, merged by value."""
        return any(entry.startswith("v:") for _, node in self.nodes for entry in node)

    def _step(self, entry: str) -> Cursor:
        return Cursor(
            tuple((owner, node if not node else node[entry]) for owner, node in self.nodes if not node or entry in node)
        )


def root(live: Object) -> Cursor:
    """The cursor at the top of a live object."""
    entries: Sequence[Object] = (live.get("metadata") or {}).get("managedFields") or ()
    return Cursor(
        tuple(
            (
                Owner(str(e.get("manager", "")), str(e.get("operation", "")), str(e.get("subresource", ""))),
                e.get("fieldsV1") or {".": {}},
            )
            for e in entries
        )
    )


def scaled(live: Object) -> tuple[tuple[str, ...], ...]:
    """Where in a live object somebody has set replicas through the scale subresource: by field names, sorted.

    It is `("spec", "replicas")` for the kinds of Kubernetes; a custom resource may have it elsewhere.
    """
    nodes = [node for owner, node in root(live).nodes if owner.subresource == SCALE]
    return tuple(sorted({place for node in nodes for place in _leaves(node)}))


def held_whole(live: Object, wanted: Object, manager: str) -> bool:
    """Whether others than `manager` may own a map or list of `wanted` as a whole: then nothing below it is noted."""
    return any(_holds_whole(node, wanted) for owner, node in root(live).nodes if owner.manager != manager)


def element_key(key: Mapping[str, Any]) -> str:
    """One form for the same key, whatever order its fields are written in."""
    return json.dumps(dict(sorted(key.items())), separators=(",", ":"))


def _leaves(node: Object) -> list[tuple[str, ...]]:
    fields = [(entry[2:], below) for entry, below in node.items() if entry.startswith("f:")]
    return [(name, *rest) for name, below in fields for rest in (_leaves(below) if below else [()])]


def _holds_whole(node: Object, wanted: Any) -> bool:
    """A list that is noted by elements counts as held: it is seldom, and a closer look costs little then."""
    if isinstance(wanted, Mapping):
        fields = ((entry[2:], below) for entry, below in node.items() if entry.startswith("f:"))
        return not node or any(name in wanted and _holds_whole(below, wanted[name]) for name, below in fields)
    return isinstance(wanted, list)


def _element(node: Object, wanted: str) -> Object | None:
    for entry, below in node.items():
        if entry.startswith("k:") and element_key(json.loads(entry[2:])) == wanted:
            return below if isinstance(below, Mapping) else {}
    return None
