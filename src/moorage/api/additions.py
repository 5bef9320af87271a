"""What others have added to a part of an object that has one writer, read from metadata.managedFields. Pure.

Server-side apply leaves fields of other managers alone, which is right for what is shared. In a part that means
something as a whole, such as a pod template, whose every change replaces pods, it is not.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping
from typing import Any

from . import managed_fields

__all__ = ["additions", "kept_under_two_names", "pointer"]

Place = tuple[str | int, ...]
"""Names of fields and indices of list elements."""

_FILLED_IN = frozenset(
    {"apiVersion", "defaultMode", "divisor", "dnsPolicy", "failureThreshold", "imagePullPolicy", "periodSeconds"}
    | {"protocol", "restartPolicy", "schedulerName", "scheme", "securityContext", "serviceAccount", "successThreshold"}
    | {"terminationGracePeriodSeconds", "terminationMessagePath", "terminationMessagePolicy", "timeoutSeconds"}
    | {"creationTimestamp"}
)
"""Fields of a pod template that the server fills in: whoever has replaced an object whole owns them too."""
_ACCOUNT = ("serviceAccountName", "serviceAccount")
_KEYS = {"protocol": "TCP"}  # a key field that may be left out


def additions(
    wanted: Mapping[str, Any],
    live: Mapping[str, Any],
    *,
    under: tuple[str, ...],
    manager: str,
    but: Container[str] = (),
) -> tuple[Place, ...]:
    """Places under that field that others own and `wanted`, which `manager` applied, has not; later elements first.

    `but` names fields that others may add.
    """
    ours, there, cursor = wanted, live, managed_fields.root(live)
    for name in under:
        ours, there, cursor = ours.get(name) or {}, there.get(name) or {}, cursor.field(name)
    found = {it for owner, node in cursor.nodes if owner.manager != manager for it in _added(node, ours, there, under)}
    return tuple(sorted((it for it in found if it[-1] not in but), key=_order, reverse=True))


def kept_under_two_names(
    wanted: Mapping[str, Any], live: Mapping[str, Any], *, under: tuple[str, ...]
) -> tuple[Place, ...]:
    """Places in a pod template under that field that an apply can't take out, where `wanted` has none.

    The API server keeps the account of a pod under a former name too, of which nobody is the owner: when an apply gives
    up the one, the server fills it in again from the other. They go together, or not at all.
    """
    ours, there = wanted, live
    for name in (*under, "spec"):
        ours, there = ours.get(name) or {}, there.get(name) or {}
    stays = not any(ours.get(name) for name in _ACCOUNT)
    return tuple((*under, "spec", name) for name in _ACCOUNT if stays and there.get(name))


def pointer(place: Place) -> str:
    """The place as a JSON patch has it."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in place)


def _order(place: Place) -> tuple[tuple[int, str], ...]:
    return tuple((part, "") if isinstance(part, int) else (-1, part) for part in place)


def _added(node: Mapping[str, Any], wanted: Any, live: Any, at: Place) -> Iterator[Place]:
    for entry, below in node.items():
        step = _step(entry, wanted, live)
        if step is None:
            continue
        key, has, ours, there = step
        if has and below and isinstance(below, Mapping):
            yield from _added(below, ours, there, (*at, key))
        elif not has and key not in _FILLED_IN:
            yield (*at, key)


def _step(entry: str, wanted: Any, live: Any) -> tuple[str | int, bool, Any, Any] | None:
    """Where an entry leads: the key, whether it is wanted, and what is there on both sides; None: nowhere."""
    kind, _, name = entry.partition(":")
    if kind == "f" and isinstance(live, Mapping) and name in live:
        has = isinstance(wanted, Mapping) and name in wanted
        return name, has, wanted[name] if has else None, live[name]
    if kind in ("k", "v") and isinstance(live, list):
        named = json.loads(name)
        ours = [item for item in wanted or () if _is(item, kind, named)]
        for index, item in enumerate(live):
            if _is(item, kind, named):
                return index, bool(ours), ours[0] if ours else None, item
    return None


def _is(item: Any, kind: str, named: Any) -> bool:
    """Whether a list's element is the one that an entry names, by its key fields or as a whole."""
    if kind == "v":
        return bool(item == named)
    return isinstance(item, Mapping) and all(item.get(key, _KEYS.get(key)) == value for key, value in named.items())
