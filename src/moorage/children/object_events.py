"""What events tell about an object. Pure.

Events of both APIs are taken: events.k8s.io/v1 has `regarding` and `note` where v1 has `involvedObject` and `message`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["about", "cut", "when", "without_words", "words"]

Object = Mapping[str, Any]
MAX_WORDS = 500
_QUOTES = frozenset(["Unhealthy", "FailedPostStartHook", "FailedPreStopHook"])
"""Reasons of events that have the words of a container: what a probe or a hook of it has answered."""


def about(obj: Object, events: Iterable[Object], *reasons: str) -> list[Object]:
    """Warnings about this object, newest first; of these reasons alone, if any are given.

    Of this incarnation alone, if its uid is known.
    """
    metadata, kind = obj.get("metadata") or {}, obj.get("kind")
    name, uid = metadata.get("name"), metadata.get("uid")
    found = [
        event
        for event in events
        if event.get("type") == "Warning"
        and (not reasons or event.get("reason") in reasons)
        and (where := event.get("regarding") or event.get("involvedObject") or {}).get("name") == name
        and (uid is None or where.get("uid") in (uid, None))
        and (kind is None or where.get("kind") in (kind, None))
    ]
    return sorted(found, key=when, reverse=True)


def without_words(events: Iterable[Object]) -> tuple[Any, ...]:
    """The events but for those that have a container's own words: for readers elsewhere."""
    return tuple(event for event in events if event.get("reason") not in _QUOTES)


def words(event: Object) -> str:
    """The event's text."""
    return cut(event.get("note") or event.get("message"))


def when(event: Object) -> str:
    """The last time that it was said (RFC 3339); empty if the event doesn't say."""
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("deprecatedLastTimestamp"))
    created = (event.get("metadata") or {}).get("creationTimestamp")
    return next((str(t) for t in (*times, event.get("eventTime"), created) if t), "")


def cut(text: Any) -> str:
    """A text of others on one line, of bounded length."""
    line = " ".join(str(text or "").split())
    return line if len(line) <= MAX_WORDS else line[: MAX_WORDS - 1] + "…"
