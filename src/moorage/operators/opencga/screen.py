"""What people's tools show of an installation: who is in it, in which role, and at which step of the agents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from moorage.api import builtin
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.runtime.reporting import screen_rows
from moorage.runtime.reporting.screen_rows import Item, Row

from . import names


def rows(status: Mapping[str, Any]) -> Iterable[Row]:
    """Phase, address, versions, and the members."""
    yield Row(screen_rows.OBJECTS)
    if phase := status.get("phase"):
        yield Row("Phase", str(phase))
    if uri := status.get("opencgarestUri"):
        yield Row("REST", str(uri))
    if catalog := status.get("catalogVersion"):
        yield Row("Catalog", str(catalog))
    if members := status.get("memberStatuses") or ():
        ready = sum(bool(member.get("ready")) for member in members)
        wanted = status.get("configurationVersion", 0)
        said = f"{ready} of {len(members)} ready, configuration {wanted}"
        yield Row("Members", said, tuple(_member(member, wanted) for member in members))


def _member(member: Mapping[str, Any], wanted: int) -> Item:
    applied = member.get("configuration", -1)
    cells = [str(member["name"]), str(member.get("role", "")), str(member.get("version", ""))]
    if applied != wanted:
        cells.append(f"configuration {applied}")
    if step := member.get("step"):
        cells.append(f"at {step} since {member.get('since', '')}")
    if error := member.get("error"):
        cells.append(str(error))
    return Item("  ".join(cell for cell in cells if cell), good=bool(member.get("ready")) and not member.get("error"))


async def pods(client: kube_client.Client, obj: Mapping[str, Any]) -> screen_rows.Owned:
    """The pods of both StatefulSets."""
    namespace, label = obj["metadata"]["namespace"], f"{names.LABEL}={obj['metadata']['name']}"
    try:
        found = (await client.list(builtin.POD, namespace, labels=label)).items
    except errors.ApiError:
        return screen_rows.Owned()
    there = {pod["metadata"]["name"]: pod for pod in found}
    told = ((obj.get("status") or {}).get("memberStatuses")) or ()
    every = sorted({*there, *(member["name"] for member in told)})
    live = {builtin.POD.ref(namespace, name): there.get(name) for name in every}
    return screen_rows.Owned(tuple(live), live=live)
