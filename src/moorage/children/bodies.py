"""The body of an object that is owned: with its owner, its labels and its stamp. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.api import meta

from . import apply


def owned(
    resource: meta.Resource,
    name: str,
    owner: meta.ObjectRef,
    rest: Mapping[str, Any],
    *,
    labels: Mapping[str, str],
    annotations: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """An object beside its owner, whose end it shares; `rest` is all but its metadata."""
    reference = {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
    }
    body = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": name,
            "namespace": owner.namespace,
            "labels": dict(labels),
            "annotations": dict(annotations or {}),
            "ownerReferences": [reference],
        },
        **rest,
    }
    return apply.stamped(body)
