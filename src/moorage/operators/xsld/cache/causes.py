"""Why a member is off, in words: its pod's trouble, that it has no pod, or how its admin API answers. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from moorage.runtime import freshness

from .seen import Seen


def of(seen: Seen, name: str) -> str:
    """What is known of the pod of that name, or of its admin API; empty where nothing is wrong with either."""
    objects = freshness.value_of(seen.objects)
    if objects is None:
        return ""
    pod = objects.pod(name)
    if pod is None and seen.yields and name not in seen.known:
        return "it is made once all members are of the current template"
    if pod is None:
        return objects.unmade or "it has no pod"
    if pod.trouble:
        return pod.trouble
    fault = seen.fault(name)
    return f"its admin API: {fault.words}" if fault else ""


def of_all(seen: Seen, members: Iterable[str]) -> str:
    """These members, each with its cause."""
    return ", ".join(f"{name} ({why})" if (why := of(seen, name)) else name for name in members)
