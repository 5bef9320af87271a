"""What people's tools show of a WekaCluster: how it stands, its containers by role, its drives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.operators.weka import names
from moorage.runtime.reporting import screen_rows
from moorage.runtime.reporting.screen_rows import Row


def rows(status: Mapping[str, Any]) -> Iterable[Row]:
    """The product's own id, image, counts, ports, and what was forced."""
    yield Row(screen_rows.OBJECTS)
    if word := status.get("status"):
        yield Row("Status", str(word))
    if guid := status.get("clusterID"):
        yield Row("Cluster", str(guid))
    if image := status.get("lastAppliedImage"):
        yield Row("Image", str(image))
    printer = status.get("printer") or {}
    for title, column in (("Drive", "driveContainers"), ("Compute", "computeContainers"), ("Drives", "drives")):
        if said := printer.get(column):
            active, made, wanted = (*str(said).split("/"), "", "")[:3]
            yield Row(title, f"{active} active of {made}, {wanted} wanted")
    if ports := status.get("ports"):
        first, count = ports.get("basePort", 0), ports.get("portRange", 0)
        yield Row("Ports", f"{first} to {first + count - 1}")
    for name, since in (status.get("overridesUsed") or {}).items():
        yield Row("Override", f"{name}, since {since}")


async def containers(client: kube_client.Client, obj: Mapping[str, Any]) -> screen_rows.Owned:
    """The WekaContainers of the cluster."""
    namespace, uid = obj["metadata"]["namespace"], obj["metadata"]["uid"]
    try:
        found = (await client.list(names.CONTAINER, namespace, labels=f"{names.CLUSTER_ID}={uid}")).items
    except errors.ApiError:
        return screen_rows.Owned()
    live = {names.CONTAINER.ref(namespace, it["metadata"]["name"]): it for it in found}
    return screen_rows.Owned(tuple(live), live=live)
