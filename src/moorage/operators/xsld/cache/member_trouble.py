"""Why a member is off, in words: its pod's trouble, that it has no pod, or how its admin API answers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from moorage.children import parts, waits
from moorage.operators.xsld.reasons import Reason
from moorage.runtime import decision, freshness

from .observation import Seen

ABOUT_MEMBERS = frozenset(
    [
        Reason.GROUP_UNREACHABLE,
        Reason.PRIMARY_UNAVAILABLE,
        Reason.MEMBER_STARTING,
        Reason.MEMBERS_NOT_ONLINE,
        Reason.GROUP_DEGRADED,
        Reason.UPDATING,
        Reason.UPDATE_WAITS,
    ]
)
"""Whoever is waited for here is a pod's."""

ENDING = frozenset([Reason.CHILD_ENDING, Reason.CLEARING_VOLUME, Reason.REMOVING])
"""Whatever is waited for here is being deleted, and only who holds it can let it go."""


def of(seen: Seen, name: str) -> str:
    """What is known of the pod of that name, or of its admin API; empty where nothing is wrong with either."""
    objects = freshness.value_of(seen.objects)
    if objects is None:
        return ""
    pod = objects.pod(name)
    if pod is None and seen.yields and name not in seen.known:
        return "it is made once all members are of the current template"
    if wrong := waits.of_pod(pod, objects.unmade):
        return wrong
    fault = seen.fault(name)
    return f"its admin API: {fault.words}" if fault else ""


def of_all(seen: Seen, members: Iterable[str]) -> str:
    """These members, each with its cause."""
    return waits.each(members, lambda name: of(seen, name))


def told(steps: Sequence[decision.Step[Seen]]) -> tuple[decision.Step[Seen], ...]:
    """The same steps, whose waits say what lies behind them."""
    return waits.told(steps, _pods, about_pods=ABOUT_MEMBERS, ending=ENDING)


def _pods(seen: Seen) -> Iterable[parts.PodSeen]:
    objects = freshness.value_of(seen.objects)
    return objects.pods if objects else ()
