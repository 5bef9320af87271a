"""What people's tools show of a RuntimeVersion: its phase, and each workflow's nodes by their own words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

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
