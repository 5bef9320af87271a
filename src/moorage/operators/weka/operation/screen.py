"""What people's tools show of a WekaManualOperation: how it stands, and what has come of it on each node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from moorage.runtime.reporting.screen_rows import Item, Row


def rows(status: Mapping[str, Any]) -> Iterable[Row]:
    """Its status, and each node."""
    if word := status.get("status"):
        yield Row("Status", str(word))
    nodes = status.get("nodes") or {}
    if nodes:
        items = tuple(
            Item(f"{name}  {_said(it)}", good=it.get("status") == "Done") for name, it in sorted(nodes.items())
        )
        yield Row("Nodes", f"{sum(it.get('status') == 'Done' for it in nodes.values())} of {len(nodes)} done", items)
    for name, since in (status.get("overridesUsed") or {}).items():
        yield Row("Override", f"{name}, since {since}")


def _said(it: Mapping[str, Any]) -> str:
    return str(it.get("message") or f"{it.get('status', '')}, {it.get('drives', 0)} drives signed")
