"""The objects that a kind owns, as people look at them: each by the same judgement that the operator makes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from moorage.api import meta
from moorage.children import diagnosis, health

from . import model


def of(ref: meta.ObjectRef, live: Mapping[str, Any] | None, pods: Iterable[Mapping[str, Any]]) -> model.ChildView:
    """One object as it is live, or gone (None). Of `pods`, those that it owns tell why it is not ready."""
    if live is None and ref.kind == "Job":
        gone = "it is not there, as a Job that has ended may remove itself"
        return model.ChildView(ref.kind, ref.namespace, ref.name, "Unknown", "Gone", gone)
    judged = health.health(live, diagnosis.pods_of(live, pods) if live is not None else ())
    said = ("", "") if judged.ok else (judged.reason, judged.message)
    return model.ChildView(ref.kind, ref.namespace, ref.name, str(judged.ok), *said)


def unread(ref: meta.ObjectRef) -> model.ChildView:
    """An object that is not read, as its content is nobody's business here."""
    return model.ChildView(ref.kind, ref.namespace, ref.name, "Unknown", "NotRead", "Secrets are not read")


def unknown(ref: meta.ObjectRef, why: str) -> model.ChildView:
    """An object that could not be read."""
    return model.ChildView(ref.kind, ref.namespace, ref.name, "Unknown", "Unreadable", why)
