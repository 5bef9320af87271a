"""What people's tools show of a RuntimeVersion: its phase, and each workflow's nodes by their own words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from moorage.api import builtin
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.operators.kre import kinds
from moorage.runtime.reporting import screen_rows
from moorage.runtime.reporting.screen_rows import Item, Row


def rows(status: Mapping[str, Any]) -> Iterable[Row]:
    """Phase and Runtime, then the entrypoint and the nodes by workflow, then what lacks a value."""
    if phase := status.get("phase"):
        yield Row("Phase", str(phase))
    if runtime := status.get("runtime"):
        yield Row("Runtime", str(runtime))
    by_workflow: dict[str, list[Mapping[str, Any]]] = {}
    for node in status.get("nodes") or ():
        by_workflow.setdefault(node.get("workflow") or "", []).append(node)
    for workflow, nodes in sorted(by_workflow.items()):
        ready = sum(_is_ready(node) for node in nodes)
        items = tuple(_item(node) for node in nodes)
        yield Row(f"Workflow {workflow}" if workflow else "Entrypoint", f"{ready} of {len(nodes)} ready", items)
    if missing := status.get("missingConfig"):
        yield Row("Without a value", ", ".join(missing))


def _is_ready(node: Mapping[str, Any]) -> bool:
    return node.get("state") == "STARTED"


def _item(node: Mapping[str, Any]) -> Item:
    text = f"{node['name']}  {node.get('state', '')}  {node.get('ready', 0)} of {node.get('wanted', 0)}"
    if restarts := node.get("restarts"):
        text += f"  {restarts} restarts"
    if words := node.get("message"):
        text += f"  {words}"
    return Item(text, good=_is_ready(node))


async def objects(client: kube_client.Client, obj: Mapping[str, Any]) -> screen_rows.Owned:
    """Its Deployments and Services, with the pods that tell why one is not ready."""
    metadata = obj["metadata"]
    labels = f"{kinds.OF_VERSION}={metadata['name']}"
    live: dict[Any, Mapping[str, Any] | None] = {}
    try:
        for resource in (kinds.DEPLOYMENT, builtin.SERVICE):
            for each in (await client.list(resource, metadata["namespace"], labels=labels)).items:
                live[resource.ref(metadata["namespace"], each["metadata"]["name"], each["metadata"]["uid"])] = each
        pods = (await client.list(builtin.POD, metadata["namespace"], labels=labels)).items
    except errors.ApiError:
        return screen_rows.Owned()
    return screen_rows.Owned(tuple(live), tuple(pods), live)
