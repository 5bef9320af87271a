"""What a release wants of a live object: with what to compare it, and what to apply when it differs. Pure.

The manifest must be that of the release record, as helm owns what it wrote last: after a `helm upgrade` by hand nothing
differs, and it is the revision's description that tells.
"""

from __future__ import annotations

import copy
from collections.abc import Container, Mapping
from typing import Any

from moorage.api import comparison, managed_fields

__all__ = ["MANAGER", "RELEASE_NAME", "RELEASE_NAMESPACE", "desired", "differing", "restore_body"]

Object = dict[str, Any]
MANAGER = "helm"  # the field manager, as the helm binary names itself
RELEASE_NAME = "meta.helm.sh/release-name"
RELEASE_NAMESPACE = "meta.helm.sh/release-namespace"
MANAGED_BY = "app.kubernetes.io/managed-by"


def desired(body: Mapping[str, Any], release: str, namespace: str) -> Object:
    """The object as helm applies it: with the marks of its owner, which are not in the recorded manifest.

    What it doesn't change is shared with `body`.
    """
    out = {k: v for k, v in body.items() if k != "status"}
    metadata = {k: v for k, v in (out.get("metadata") or {}).items() if v is not None and k != "creationTimestamp"}
    metadata["labels"] = {**(metadata.get("labels") or {}), MANAGED_BY: "Helm"}
    marks = {RELEASE_NAME: release, RELEASE_NAMESPACE: namespace}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), **marks}
    return {**out, "metadata": metadata}


def differing(
    wanted: Mapping[str, Any], live: Mapping[str, Any] | None, *, settled: Container[str] = ()
) -> tuple[str, ...]:
    """The paths at which `live` is no longer as helm made it of `wanted` (see `desired`); THE_OBJECT if it is gone."""
    found = comparison.differences(wanted, live, manager=MANAGER, settled=settled)
    return tuple(each.path or comparison.THE_OBJECT for each in found)


def restore_body(
    body: Mapping[str, Any], release: str, namespace: str, *, live: Mapping[str, Any] | None = None, scoped: bool = True
) -> Object:
    """What to apply, as field manager "helm" and by force, to repair an object.

    It is the whole object, as what one manager leaves out of an apply is taken away. With `live` given it names that
    incarnation by uid, so that an apply can't bring back what was deleted meanwhile, and leaves out replicas that
    somebody has set by scaling: whoever did owns them, so they stay. `scoped` is False for a cluster-scoped kind.

    The server refuses it (422) where a user has put one member of a union beside another, such as a hostPath into an
    emptyDir volume: no apply takes away what another owns, see `field_ownership`. Helm's upgrade is refused there too.
    """
    out = copy.deepcopy(desired(body, release, namespace))
    if scoped:
        out["metadata"].setdefault("namespace", namespace)
    if live is not None:
        if uid := (live.get("metadata") or {}).get("uid"):
            out["metadata"]["uid"] = uid
        for place in managed_fields.scaled(live):
            _leave_out(out, place)
    return out


def _leave_out(body: Object, place: tuple[str, ...]) -> None:
    *above, last = place
    for name in above:
        body = body.get(name) or {}
    body.pop(last, None)
