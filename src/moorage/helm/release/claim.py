"""The claim on a release: a ConfigMap in the release's namespace, created atomically, that names the owner.

It also holds the write-ahead inventory (every object that a run may have created) and the chart that the owner's
constraint was resolved to. It is the one thing that a deletion needs, and it outlives records, status and operator.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from moorage.api import builtin, meta
from moorage.helm import observation
from moorage.helm.reasons import Reason
from moorage.runtime import decision, freshness
from moorage.runtime.decision import Blocked, Verdict

from . import manifest

LABEL = "moorage.dev/claim"
SELECTOR = f"{LABEL}=release"
BROKEN = "ClaimBroken"
"""The reason of a claim that says what moorage would not have written."""

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class ClaimObject(msgspec.Struct, frozen=True):
    """A claim as its cache holds it."""

    metadata: meta.ObjectMeta
    data: dict[str, str] = {}


def name(release: str) -> str:
    """The ConfigMap's name; the same for everyone who wants this release, whichever way they come by its name."""
    return f"release.{release}"


def body(target: observation.Target, owner: meta.ObjectRef) -> dict[str, Any]:
    """The claim to create."""
    return {
        "apiVersion": builtin.CONFIG_MAP.api_version,
        "kind": builtin.CONFIG_MAP.kind,
        "metadata": {
            "name": name(target.release),
            "namespace": target.namespace,
            "labels": {LABEL: "release", "app.kubernetes.io/managed-by": "moorage"},
        },
        "data": {"owner": _text(owner), "inventory": "[]"},
    }


def read(obj: ClaimObject) -> observation.ClaimSeen:
    """What the claim says. Raises ManifestError for one that was edited by hand.

    It lies in a tenant's hands: what it lists beyond the namespace, or pins that was not wanted, is not believed.
    """
    try:
        owner = msgspec.json.decode(obj.data.get("owner", ""), type=meta.ObjectRef)
        pin = msgspec.json.decode(text, type=observation.Pin) if (text := obj.data.get("chart")) else None
    except msgspec.MsgspecError as error:
        raise manifest.ManifestError(str(error)) from None
    inventory = manifest.load_inventory(obj.data.get("inventory", "[]"))
    if outside := [item.ref for item in inventory if item.ref.namespace != obj.metadata.namespace]:
        raise manifest.ManifestError(f"it lists {outside[0]}, which is not in namespace {obj.metadata.namespace}")
    if pin is not None and (pin.chart.name != pin.wanted.name or not _DIGEST.fullmatch(pin.chart.digest)):
        raise manifest.ManifestError(f"it pins {pin.chart.name} {pin.chart.digest}, which can't be {pin.wanted.name}")
    return observation.ClaimSeen(obj.metadata.uid, obj.metadata.resource_version, owner, inventory, pin)


def unread(target: observation.Target, failed: freshness.Failed) -> Verdict:
    """What is to be said of a claim that could not be read."""
    if failed.reason != BROKEN:
        return decision.unknown(Reason.CLAIM_UNREADABLE, failed, "claim")
    return Blocked(
        Reason.CLAIM_BROKEN,
        failed.message,
        f"whoever has changed ConfigMap {name(target.release)} in namespace {target.namespace} takes that back, or "
        "deletes it: then it is made anew, and a release that is being deleted stays",
    )


def ref(target: observation.Target, claim: observation.ClaimSeen) -> meta.ObjectRef:
    """A reference to this incarnation of the claim."""
    return builtin.CONFIG_MAP.ref(target.namespace, name(target.release), claim.uid)


def edit(
    claim: observation.ClaimSeen,
    *,
    owner: meta.ObjectRef | None = None,
    inventory: tuple[manifest.InventoryItem, ...] | None = None,
    pin: observation.Pin | None = None,
) -> tuple[dict[str, Any], ...]:
    """JSON patch operations that change the named parts, on exactly the claim that was seen."""
    ops: list[dict[str, Any]] = [{"op": "test", "path": "/metadata/resourceVersion", "value": claim.resource_version}]
    if owner is not None:
        ops.append({"op": "add", "path": "/data/owner", "value": _text(owner)})
    if inventory is not None:
        ops.append({"op": "add", "path": "/data/inventory", "value": manifest.dump_inventory(inventory)})
    if pin is not None:
        ops.append({"op": "add", "path": "/data/chart", "value": _text(pin)})
    return tuple(ops)


def patch(target: observation.Target, claim: observation.ClaimSeen, why: str, **changes: Any) -> decision.Patch:
    """The action that makes an `edit`."""
    return decision.Patch(why=why, resource=builtin.CONFIG_MAP, ref=ref(target, claim), ops=edit(claim, **changes))


def delete(target: observation.Target, claim: observation.ClaimSeen) -> decision.Delete:
    """The action that gives the release's name up."""
    return decision.Delete(
        why="the release's name is free again",
        resource=builtin.CONFIG_MAP,
        ref=ref(target, claim),
        resource_version=claim.resource_version,
    )


def union(
    one: tuple[manifest.InventoryItem, ...], other: tuple[manifest.InventoryItem, ...]
) -> tuple[manifest.InventoryItem, ...]:
    """Every object of either; where both name it, the later description of it counts."""
    return tuple(sorted({item.ref.identity: item for item in (*one, *other)}.values(), key=lambda item: item.ref))


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()
