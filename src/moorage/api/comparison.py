"""What in a live object is not as one manager last applied it. Pure.

Only what is wanted is compared: defaults of the server and fields of others don't count, except inside a map or list
that the server takes for one value (a Service's selector, the peers of a NetworkPolicy): there nobody can add a field
of their own, so it is compared whole. What it takes so is noted on the object, as the owner of such a value is that of
the whole. A leaf that is not as it was applied is no difference in three cases, all read from metadata.managedFields
(see `managed_fields`); the first two are `counts`, the third `_Comparison.is_left_out`:

- the manager still owns it: the value was changed, or dropped, while the manager wrote it, by a webhook or by the
  server itself, and would be again at every repair;
- somebody set it through the scale subresource, or a vertical autoscaler did, by its name;
- nobody can tell, for the object carries no managedFields and the value is one that the server leaves out (false, 0,
  "").

A user's edit moves the leaf to the user's manager, and a removal takes it from everyone: both differ. What is wanted
must be what the manager wrote last: it owns that whatever it was, so of a newer wish nothing here differs, and its
caller tells by a digest. Differences are paths, never values: they may be secret.
"""

from __future__ import annotations

import base64
import enum
from collections.abc import Container, Mapping, Sequence
from typing import Any

import msgspec

from . import equality, managed_fields

__all__ = ["THE_OBJECT", "Difference", "DifferenceKind", "autoscaled", "differences", "renamed"]

THE_OBJECT = "the object"  # the path of what is gone as a whole

_MERGE_KEYS: dict[str, tuple[str, ...]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "volumes": ("name",),
    "env": ("name",),
    "imagePullSecrets": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "resourceClaims": ("name",),
    "webhooks": ("name",),
    "ownerReferences": ("uid",),
    "conditions": ("type",),
}
_PORT_KEYS = (("containerPort", "protocol"), ("port", "protocol"))
_DEFAULT_KEY = {"protocol": "TCP"}  # a key field that may be left out, and what the server then takes
_DEFAULTS = {
    "protocol": "TCP",
    "apiVersion": "v1",
    "divisor": "0",
    "expirationSeconds": 3600,
    "volumeMode": "Filesystem",
    "apiGroup": "rbac.authorization.k8s.io",
}
"""What the server fills in, by the name of the field, inside values of built-in kinds that are one to it."""
_SETS = frozenset(["finalizers"])
_BUILT_IN = ("apps", "batch", "autoscaling", "policy")  # and every group that ends in .k8s.io, and the core group
_SERVER_CHOOSES_IF_EMPTY = frozenset([("spec", "clusterIP"), ("spec", "ports", "nodePort"), ("spec", "volumeName")])
_NOT_COMPARED = ("apiVersion", "kind", "status")
_META_KEPT = ("labels", "annotations", "finalizers", "ownerReferences")


class DifferenceKind(enum.Enum):
    """How a leaf differs."""

    MISSING = "missing"
    CHANGED = "changed"
    ADDED = "added"  # inside a value that is one to the server


class Difference(msgspec.Struct, frozen=True, order=True):
    """One leaf, or the whole object when `path` is empty. A path reads `spec.containers[name=web].image`."""

    path: str
    kind: str  # the value of a DifferenceKind

    def __str__(self) -> str:
        return f"{self.path or THE_OBJECT} {self.kind}"


def differences(
    wanted: Mapping[str, Any], live: Mapping[str, Any] | None, *, manager: str, settled: Container[str] = ()
) -> tuple[Difference, ...]:
    """The leaves of `wanted`, which `manager` applied, that `live` doesn't hold, sorted by path.

    `live` is the raw object with its managedFields, or None if there is none. `settled` are paths that a repair did not
    cure: they are left out, so that no repair is repeated for ever.
    """
    if live is None:
        return (Difference("", DifferenceKind.MISSING.value),)
    compared = _compared(wanted)
    if "stringData" not in wanted and _is_plainly_in(compared, live):
        if not managed_fields.held_whole(live, compared, manager):
            return ()
    compare = _Comparison(wanted, manager, settled)
    compare.top(wanted, live)
    return tuple(sorted(set(compare.found)))


def renamed(wanted: Mapping[str, Any], live: Mapping[str, Any], *, manager: str) -> tuple[managed_fields.Path, ...]:
    """Elements of merged lists that differ from a missing one of `wanted` in their key alone: it was edited."""
    compare = _Comparison(wanted, manager, ())
    compare.top(wanted, live)
    return tuple(compare.renamed)


def counts(cursor: managed_fields.Cursor, manager: str) -> bool:
    """Whether a leaf that is not as `manager` applied it is a difference: only if it has changed hands.

    Where the manager is still among its owners, what stands there was made of the manager's own write.
    """
    return not any(owner.manager == manager for owner in cursor.owners()) and not autoscaled(cursor)


def autoscaled(cursor: managed_fields.Cursor) -> bool:
    """Whether what is at this place was set by scaling, automatic or by hand."""
    return any(
        owner.subresource == managed_fields.SCALE or owner.manager.startswith("vpa-") for owner in cursor.owners()
    )


class _Comparison:
    """One walk over a wanted object, beside the live one and its owners."""

    def __init__(self, wanted: Mapping[str, Any], manager: str, settled: Container[str]) -> None:
        group = str(wanted.get("apiVersion", "")).rpartition("/")[0]
        self.built_in = not group or group in _BUILT_IN or group.endswith(".k8s.io")
        self.manager = manager
        self.settled = settled
        self.found: list[Difference] = []
        self.renamed: list[managed_fields.Path] = []
        self.tracked = False

    def top(self, wanted: Mapping[str, Any], live: Mapping[str, Any]) -> None:
        cursor = managed_fields.root(live)
        self.tracked = any(owner.manager == self.manager and owner.operation == "Apply" for owner, _ in cursor.nodes)
        for name, value in wanted.items():
            if name == "metadata":
                there = live.get("metadata") or {}
                self.node(_Place().field("metadata"), _kept(value), there, cursor.field("metadata"))
            elif name == "stringData":
                self.string_data(value or {}, live.get("data") or {}, cursor.field("data"))
            elif name not in _NOT_COMPARED:
                if name == "data" and "stringData" in wanted:  # the server lets stringData win
                    value = {k: v for k, v in (value or {}).items() if k not in (wanted["stringData"] or {})}
                self.child(_Place(), name, value, live, cursor)

    def child(
        self, place: _Place, name: str, value: Any, live: Mapping[str, Any], cursor: managed_fields.Cursor
    ) -> None:
        below, owners = place.field(name), cursor.field(name)
        if name in live and live[name] is not None:
            self.node(below, value, live[name], owners)
        elif value is not None and value != []:  # nobody owns an empty list, and the server doesn't store it
            self.absent(below, value, owners)

    def absent(self, place: _Place, value: Any, cursor: managed_fields.Cursor) -> None:
        """Nothing is there. Maps are entered, so that the leaf is named and its owner asked."""
        if isinstance(value, Mapping) and value and cursor.nodes and not cursor.whole().nodes:
            for name, inner in value.items():
                self.child(place, name, inner, {}, cursor)
        elif not self.is_left_out(place, value):
            self.deviates(place, DifferenceKind.MISSING, cursor)

    def is_left_out(self, place: _Place, value: Any) -> bool:
        """Whether the server may have left it out: of a value that says nothing, with nobody known to have owned it."""
        has_owners = self.tracked and not place.whole
        return not has_owners and _is_zero(value)

    def node(self, place: _Place, wanted: Any, live: Any, cursor: managed_fields.Cursor) -> None:
        if wanted is None:
            return  # the server takes its default
        if isinstance(wanted, Mapping | list) and cursor.taken_from(self.manager):
            self.whole(place, wanted, live, cursor)
        elif isinstance(wanted, Mapping) and isinstance(live, Mapping):
            for name, value in wanted.items():
                self.child(place, name, value, live, cursor)
        elif isinstance(wanted, list) and isinstance(live, list):
            self.sequence(place, wanted, live, cursor)
        elif not self.server_chose(place, wanted) and not _same(place, wanted, live):
            self.deviates(place, DifferenceKind.CHANGED, cursor)

    def whole(self, place: _Place, wanted: Any, live: Any, cursor: managed_fields.Cursor) -> None:
        """What others own as a whole is compared to the last field: what they left of it, and what they put into it.

        A default of the server that no rule knows counts too. This can't repeat itself: once put right it is the
        manager's own again, and what its own value becomes is no difference.
        """
        if isinstance(wanted, Mapping) and isinstance(live, Mapping):
            for name in {**wanted, **live}:
                left, right = wanted.get(name), live.get(name)
                if right is None and not (_is_zero(left) and not isinstance(left, Mapping)):
                    self.deviates(place.field(name), DifferenceKind.MISSING, cursor)
                elif left is None and right is not None and not (self.built_in and _DEFAULTS.get(name) == right):
                    self.deviates(place.field(name), DifferenceKind.ADDED, cursor)
                elif left is not None and right is not None:
                    self.whole(place.field(name), left, right, cursor)
        elif isinstance(wanted, list) and isinstance(live, list) and len(wanted) == len(live):
            for index, (left, right) in enumerate(zip(wanted, live, strict=True)):
                self.whole(place.element(str(index)), left, right, cursor)
        elif not _same(place, wanted, live):
            self.deviates(place, DifferenceKind.CHANGED, cursor)

    def server_chose(self, place: _Place, wanted: Any) -> bool:
        """An empty text in the spec asks for the server's default, of which nobody knows who changed it."""
        if wanted == "" and not self.tracked and place.names[0] == "spec":
            return True
        return wanted in ("", 0) and not isinstance(wanted, bool) and place.names in _SERVER_CHOOSES_IF_EMPTY

    def sequence(self, place: _Place, wanted: list[Any], live: list[Any], cursor: managed_fields.Cursor) -> None:
        keys = self.keys(place, wanted, live, cursor)
        if keys:
            self.merged(place, keys, wanted, live, cursor)
        elif cursor.is_set() or (place.names and place.names[-1] in _SETS):
            for value in wanted:
                if value not in live:
                    self.deviates(place.element(str(value)), DifferenceKind.MISSING, managed_fields.Cursor())
        elif len(wanted) != len(live):
            self.deviates(place, DifferenceKind.CHANGED, cursor)
        else:
            for index, (left, right) in enumerate(zip(wanted, live, strict=True)):
                self.node(place.element(str(index), whole=True), left, right, cursor.whole())

    def merged(
        self, place: _Place, keys: Sequence[str], wanted: list[Any], live: list[Any], cursor: managed_fields.Cursor
    ) -> None:
        present = {managed_fields.element_key(_key(item, keys)): item for item in live}
        for item in wanted:
            key = _key(item, keys)
            noted = f"k:{managed_fields.element_key(key)}"
            below, owners = place.element(f"{keys[0]}={key[keys[0]]}", noted=noted), cursor.element(key)
            found = present.get(managed_fields.element_key(key))
            if found is None:
                self.deviates(below, DifferenceKind.MISSING, owners)
                self.renamed.extend(_renamed(place, keys, item, wanted, live))
            else:
                self.node(below, item, found, owners)

    def keys(
        self, place: _Place, wanted: list[Any], live: list[Any], cursor: managed_fields.Cursor
    ) -> tuple[str, ...] | None:
        """The merge keys of this list, if every element has them and no two are alike."""
        name = place.names[-1] if place.names else ""
        candidates = [found] if (found := cursor.merge_keys()) else []
        if self.built_in and not cursor.whole().nodes:
            candidates += [_MERGE_KEYS[name]] if name in _MERGE_KEYS else list(_PORT_KEYS) if name == "ports" else []
        for keys in candidates:
            if _distinguish(wanted, keys) and _distinguish(live, keys):
                return keys
        return None

    def string_data(self, wanted: Mapping[str, Any], live: Mapping[str, Any], cursor: managed_fields.Cursor) -> None:
        """Its applier owns f:stringData whatever happens; a change by another shows as an owner of f:data."""
        for name, value in wanted.items():
            place = _Place(("stringData",), "stringData").field(name)
            if name not in live:
                self.deviates(place, DifferenceKind.MISSING, managed_fields.Cursor())
            elif base64.b64encode(str(value).encode()).decode() != live[name] and cursor.field(name).nodes:
                self.deviates(place, DifferenceKind.CHANGED, cursor.field(name))

    def deviates(self, place: _Place, kind: DifferenceKind, cursor: managed_fields.Cursor) -> None:
        """A leaf is not as it was applied. It is a difference if it `counts`, and no repair of it was in vain."""
        if counts(cursor, self.manager) and place.text not in self.settled:
            self.found.append(Difference(place.text, kind.value))


def _compared(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The part of an object that can differ."""
    rest = {k: v for k, v in wanted.items() if k not in _NOT_COMPARED}
    return rest | {"metadata": _kept(wanted.get("metadata"))}


def _kept(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    return {k: v for k, v in (metadata or {}).items() if k in _META_KEPT}


def _is_plainly_in(wanted: Any, live: Any) -> bool:
    """Whether all of `wanted` is there word for word: then nothing differs, whoever owns it. True for most objects."""
    if type(wanted) is dict and type(live) is dict:
        return all(
            value is None or (name in live and _is_plainly_in(value, live[name])) for name, value in wanted.items()
        )
    if type(wanted) is list and type(live) is list:
        return len(wanted) == len(live) and all(map(_is_plainly_in, wanted, live))
    return type(wanted) is type(live) and bool(wanted == live)


class _Place(msgspec.Struct, frozen=True):
    """Where in an object: by field names alone, for rules, and as a text, for people."""

    names: tuple[str, ...] = ()
    text: str = ""
    whole: bool = False  # inside a list that has one owner as a whole: fields below have none of their own
    noted: managed_fields.Path = ()  # as managedFields have it

    def field(self, name: str) -> _Place:
        shown = f'["{name}"]' if "." in name or "/" in name else f".{name}" if self.text else name
        return _Place((*self.names, name), self.text + shown, self.whole, (*self.noted, f"f:{name}"))

    def element(self, label: str, *, whole: bool = False, noted: str = "") -> _Place:
        return _Place(self.names, f"{self.text}[{label}]", self.whole or whole, (*self.noted, noted))


def _renamed(
    place: _Place, keys: Sequence[str], missing: Mapping[str, Any], wanted: list[Any], live: list[Any]
) -> list[managed_fields.Path]:
    rest = {name: value for name, value in missing.items() if name not in keys}
    known = {managed_fields.element_key(_key(item, keys)) for item in wanted}
    others = {managed_fields.element_key(_key(item, keys)): item for item in live}
    alike = [key for key, item in others.items() if key not in known and rest and _holds(place, rest, item)]
    return [(*place.noted, f"k:{key}") for key in alike]


def _holds(place: _Place, wanted: Any, live: Any) -> bool:
    """Whether `live` has all that `wanted` says; what it has beyond that are defaults."""
    if isinstance(wanted, Mapping) and isinstance(live, Mapping):
        return all(
            _holds(place.field(name), value, live[name]) if name in live else _is_zero(value)
            for name, value in wanted.items()
        )
    if isinstance(wanted, list) and isinstance(live, list):
        return len(wanted) == len(live) and all(
            _holds(place, left, right) for left, right in zip(wanted, live, strict=True)
        )
    return _same(place, wanted, live)


def _same(place: _Place, wanted: Any, live: Any) -> bool:
    containers = isinstance(wanted, Mapping | list) or isinstance(live, Mapping | list)
    return not containers and equality.same(place.names, wanted, live)


def _key(item: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    return {name: item.get(name, _DEFAULT_KEY.get(name)) for name in keys}


def _distinguish(items: list[Any], keys: Sequence[str]) -> bool:
    if not all(isinstance(item, Mapping) for item in items):
        return False
    found = [_key(item, keys) for item in items]
    complete = all(value is not None for key in found for value in key.values())
    return complete and len({managed_fields.element_key(key) for key in found}) == len(items)


def _is_zero(value: Any) -> bool:
    """What the server may leave out of a stored object without a change of meaning."""
    if isinstance(value, Mapping):
        return all(_is_zero(inner) for inner in value.values())
    return value is None or value in ("", 0, False, [])
