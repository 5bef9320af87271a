"""Whose an object is: by its owner, as labels are set by anybody who may make objects in the namespace. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.api import builtin

from . import names

Object = Mapping[str, Any]


def controller(obj: Object) -> Object | None:
    """The one owner that manages it."""
    return next((it for it in obj["metadata"].get("ownerReferences") or () if it.get("controller")), None)


def is_controlled(obj: Object, uid: str) -> bool:
    """Whether the object with that uid manages it."""
    found = controller(obj)
    return found is not None and found.get("uid") == uid


def may_be_of(pod: Object, cache: str) -> bool:
    """Whether a pod is of a StatefulSet of that name, or will be: it takes in those without a controller, by name."""
    found = controller(pod)
    theirs = found is None or (found.get("kind"), found.get("name")) == (builtin.STATEFUL_SET.kind, cache)
    return theirs and names.ordinal(cache, pod["metadata"]["name"]) >= 0


def strangers(obj: Object, uid: str) -> list[str]:
    """Its owners other than the one with that uid."""
    owners = obj["metadata"].get("ownerReferences") or ()
    return [f"{it['kind']} {it['name']}" for it in owners if it["uid"] != uid]
