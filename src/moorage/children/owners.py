"""Whose an object is: by its owner, as labels are set by anybody who may make objects in the namespace. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.api import builtin

from . import ordinals

Object = Mapping[str, Any]


def controller(obj: Object) -> Object | None:
    """The one owner that manages it."""
    return next((it for it in obj["metadata"].get("ownerReferences") or () if it.get("controller")), None)


def is_controlled(obj: Object, uid: str) -> bool:
    """Whether the object with that uid manages it."""
    found = controller(obj)
    return found is not None and found.get("uid") == uid


def is_owned(obj: Object, uid: str) -> bool:
    """Whether the object with that uid is among its owners."""
    return any(it.get("uid") == uid for it in obj["metadata"].get("ownerReferences") or ())


def strangers(obj: Object, uid: str) -> list[str]:
    """Its owners other than the one with that uid."""
    owners = obj["metadata"].get("ownerReferences") or ()
    return [f"{it['kind']} {it['name']}" for it in owners if it["uid"] != uid]


def has_label(obj: Object, label: str, value: str) -> bool:
    """Whether it bears that label with that value."""
    return (obj["metadata"].get("labels") or {}).get(label) == value


def is_of(obj: Object, label: str, owner: str, uid: str) -> bool:
    """Whether it bears the label with the owner's name, and is owned by nobody but the one with that uid.

    One without an owner counts: it was restored from a backup, where owner references are lost.
    """
    return has_label(obj, label, owner) and not strangers(obj, uid)


def may_be_of(pod: Object, workload: str) -> bool:
    """Whether a pod is of a StatefulSet of that name, or will be: it takes in those without a controller, by name."""
    found = controller(pod)
    theirs = found is None or (found.get("kind"), found.get("name")) == (builtin.STATEFUL_SET.kind, workload)
    return theirs and ordinals.of(workload, pod["metadata"]["name"]) >= 0
