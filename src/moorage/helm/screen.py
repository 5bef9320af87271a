"""What people's tools show of a release: rows of its status, and which objects it has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from moorage.api import builtin
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.runtime.reporting import screen_rows
from moorage.runtime.reporting.screen_rows import Row

from .release import claim


def rows(status: Mapping[str, Any]) -> Iterable[Row]:
    """Chart, release, and how many of its objects are ready."""
    chart, release, counted = (status.get(name) or {} for name in ("chart", "release", "inventory"))
    if chart:
        digest = str(chart.get("digest", ""))[:19]
        asked = f'  for "{chart["constraint"]}"' if chart.get("constraint") else ""
        yield Row("Chart", f"{chart.get('name')} {chart.get('version')}  {digest}{asked}")
    if release:
        made = f"revision {release['revision']} {release.get('status', '')}" if release.get("revision") else "none yet"
        yield Row("Release", f"{release.get('namespace')}/{release.get('name')}  {made}")
    yield Row(screen_rows.OBJECTS, _counted(counted) if counted.get("objects") else "")
    if status.get("lastError"):
        yield Row("Last error", str(status["lastError"]))


def _counted(inventory: Mapping[str, Any]) -> str:
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted((inventory.get("kinds") or {}).items()))
    return f"{inventory.get('ready', 0)} of {inventory['objects']} ready  ({kinds})"


async def objects(client: kube_client.Client, obj: Mapping[str, Any]) -> screen_rows.Owned:
    """Those of the release, by the inventory in its claim; none where the user may not read that."""
    release = (obj.get("status") or {}).get("release") or {}
    if not release.get("name"):
        return screen_rows.Owned()
    namespace = release["namespace"]
    try:
        held = await client.get(builtin.CONFIG_MAP, namespace, claim.name(release["name"]), as_=claim.ClaimObject)
        items = claim.read(held).inventory
        pods = (await client.list(builtin.POD, namespace)).items
    except (errors.ApiError, ValueError):
        return screen_rows.Owned()
    return screen_rows.Owned(tuple(item.ref for item in items if not item.hook), tuple(pods))
