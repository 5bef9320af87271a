"""What people's tools show of a Runtime: its phase and servers, and then its release as of every kind that is one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from moorage.helm import screen
from moorage.runtime.reporting.screen_rows import Item, Row

ASKED = {"mongo": "MongoReady", "nats": "NatsReady", "minio": "ObjectStoreReady", "influxdb": "MetricsReady"}
"""By whose condition a server tells of itself."""


def rows(status: Mapping[str, Any]) -> Iterable[Row]:
    """Phase, each server by its pods and by its own word, then chart, release and objects."""
    if phase := status.get("phase"):
        yield Row("Phase", str(phase))
    if components := status.get("components") or ():
        told = {each["type"]: each for each in status.get("conditions") or ()}
        ready = sum(it.get("ready", 0) >= it.get("wanted", 0) for it in components)
        items = tuple(_item(it, told.get(ASKED.get(it["name"], ""))) for it in components)
        yield Row("Servers", f"{ready} of {len(components)} ready", items)
    if version := status.get("publishedVersion"):
        told = {each["type"]: each for each in status.get("conditions") or ()}
        words = (told.get("Published") or {}).get("message")
        yield Row("Published", f"{version}  {words}" if words else str(version))
    yield from screen.rows(status)


def _item(component: Mapping[str, Any], told: Mapping[str, Any] | None) -> Item:
    ready, wanted = component.get("ready", 0), component.get("wanted", 0)
    answers = told is None or told.get("status") == "True"
    words = component.get("message") or ("" if answers or told is None else told.get("message") or told.get("reason"))
    text = f"{component['name']}  {ready} of {wanted}" + (f"  {words}" if words else "")
    return Item(text, good=ready >= wanted and answers)
