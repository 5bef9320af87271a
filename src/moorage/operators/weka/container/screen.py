"""What people's tools show of a WekaContainer: how it stands, where it is, what it has, and its pod."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from moorage.api import builtin
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.runtime.reporting import screen_rows
from moorage.runtime.reporting.screen_rows import Item, Row


def rows(status: Mapping[str, Any]) -> Iterable[Row]:
    """Its status, node, addresses, and each drive."""
    yield Row(screen_rows.OBJECTS)
    if word := status.get("status"):
        inside = status.get("internalStatus")
        yield Row("Status", f"{word} ({inside})" if inside else str(word))
    if node := status.get("nodeAffinity"):
        yield Row("Node", str(node))
    if addresses := status.get("managementIPs"):
        yield Row("Addresses", ", ".join(addresses))
    if (number := status.get("containerID")) is not None:
        yield Row("Container", str(number))
    given = (status.get("allocations") or {}).get("drives") or ()
    if given:
        added = {it.get("serial_number"): it.get("status", "") for it in status.get("addedDrives") or ()}
        items = tuple(Item(f"{it}  {added.get(it, 'not added')}", good=it in added) for it in given)
        yield Row("Drives", f"{sum(it in added for it in given)} of {len(given)} added", items)
    for name, since in (status.get("overridesUsed") or {}).items():
        yield Row("Override", f"{name}, since {since}")


async def pod(client: kube_client.Client, obj: Mapping[str, Any]) -> screen_rows.Owned:
    """The pod, which bears the container's name."""
    namespace, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
    ref = builtin.POD.ref(namespace, name)
    try:
        found: Any = await client.get(builtin.POD, namespace, name)
    except errors.NotFound:
        found = None
    except errors.ApiError:
        return screen_rows.Owned()
    return screen_rows.Owned((ref,), live={ref: found})
