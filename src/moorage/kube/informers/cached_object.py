"""What every cached object has, whatever its model: key, uid, version, metadata. No I/O.

A model is a frozen msgspec Struct with `metadata: ObjectMeta`, or `dict` for a raw view that drops nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from moorage.api.meta import ObjectMeta

__all__ = ["Key", "identity", "labels_of", "meta_of", "version_of"]

Key = tuple[str, str]  # (namespace, name)


def meta_of(obj: Any) -> ObjectMeta:
    """The metadata of a Struct view or of a raw object."""
    if isinstance(obj, dict):
        return msgspec.convert(obj["metadata"], ObjectMeta)
    meta: ObjectMeta = obj.metadata
    return meta


def labels_of(obj: Any) -> Mapping[str, str]:
    """The labels of a Struct view or of a raw object."""
    if isinstance(obj, dict):
        return obj["metadata"].get("labels") or {}
    labels: dict[str, str] = obj.metadata.labels
    return labels


def identity(obj: Any) -> tuple[Key, str, int]:
    """(key, uid, resourceVersion as a number). 0 stands for a version that can't be compared.

    Versions of one resource are comparable as numbers (KEP-5504); an aggregated API may use other text.
    """
    if isinstance(obj, dict):
        meta = obj["metadata"]
        version = meta.get("resourceVersion", "")
        return (meta.get("namespace", ""), meta["name"]), meta.get("uid", ""), int(version) if version.isdigit() else 0
    typed: ObjectMeta = obj.metadata
    version = typed.resource_version
    return (typed.namespace, typed.name), typed.uid, int(version) if version.isdigit() else 0


def version_of(obj: Any) -> str:
    """metadata.resourceVersion as it was sent."""
    if isinstance(obj, dict):
        return str(obj["metadata"].get("resourceVersion", ""))
    typed: ObjectMeta = obj.metadata
    return typed.resource_version
