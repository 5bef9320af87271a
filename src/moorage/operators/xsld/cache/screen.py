"""What people's tools show of an XsldCache: who is in its group, in which role, what is under way, and its pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from moorage.api import builtin
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.runtime.reporting import screen_rows
from moorage.runtime.reporting.screen_rows import Item, Row


def rows(status: Mapping[str, Any]) -> Iterable[Row]:
    """Phase, members, the task that is under way, what has failed, and the grids."""
    yield Row(screen_rows.OBJECTS)
    if phase := status.get("phase"):
        yield Row("Phase", str(phase))
    if members := status.get("memberStatuses") or ():
        yield _members(status, members)
    if task := status.get("currentTask"):
        percent = (status.get("taskProgress") or {}).get("percent", 0)
        said = f"{task['command']} {task['target']} at {task['endpoint']}: {percent} %"
        yield Row("Task", f"{said}, attempt {task.get('attempts', 1)}, since {task.get('startedAt', '')}")
    for trouble in status.get("troubles") or ():
        said = f"{trouble['command']} {trouble['target']}: {trouble['attempts']} times, last: {trouble.get('message')}"
        yield Row("Failed", said)
    if grids := status.get("grids"):
        yield Row("Grids", ", ".join(grids))


def _members(status: Mapping[str, Any], members: Sequence[Mapping[str, Any]]) -> Row:
    online = sum(member.get("state") == "Online" for member in members)
    wanted = f", {size} wanted" if (size := status.get("size", 0)) != len(members) else ""
    said = f"{online} of {len(members)} online{wanted}"
    return Row("Members", said, tuple(_member(status, member) for member in members))


def _member(status: Mapping[str, Any], member: Mapping[str, Any]) -> Item:
    address = str(member.get("podIP") or "no pod")
    if member.get("registeredIP") not in (member.get("podIP"), "", None):
        address += f" (the group knows {member['registeredIP']})"
    state, image = str(member.get("state", "")), str(member.get("image", ""))
    cells = [str(member["name"]), state, " ".join(_roles(status, member)), address, image]
    return Item("  ".join(cell for cell in cells if cell), good=state == "Online")


def _roles(status: Mapping[str, Any], member: Mapping[str, Any]) -> Iterable[str]:
    if member["name"] == status.get("primary"):
        yield "primary"
    if member["name"] == (status.get("replication") or {}).get("slave"):
        yield "copy"
    if member.get("catalog"):
        yield "catalog"


async def pods(client: kube_client.Client, obj: Mapping[str, Any]) -> screen_rows.Owned:
    """The pods that status counts as members, and all others that its selector names."""
    status, namespace = obj.get("status") or {}, obj["metadata"]["namespace"]
    if not status.get("selector"):
        return screen_rows.Owned()
    try:
        found = (await client.list(builtin.POD, namespace, labels=status["selector"])).items
    except errors.ApiError:
        return screen_rows.Owned()
    there = {pod["metadata"]["name"]: pod for pod in found}
    names = sorted({*there, *(member["name"] for member in status.get("memberStatuses") or ())})
    live = {builtin.POD.ref(namespace, name): there.get(name) for name in names}
    return screen_rows.Owned(tuple(live), live=live)
