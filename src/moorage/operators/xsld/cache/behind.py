"""What lies behind a wait, by which it is said what comes next: a pod's trouble, or whatever holds an object. Pure."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import msgspec

from moorage.children import reasons as object_reasons
from moorage.operators.xsld.reasons import Reason
from moorage.runtime import decision, freshness
from moorage.runtime.decision import Verdict

from .seen import Seen

Step = Callable[[Seen], Verdict]

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

LET_GO = (
    "see what holds it: kubectl describe shows its finalizers and events; whoever has set a finalizer must take it "
    "away, and a pod on a node that is gone for good must be deleted by force"
)


def told(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The same steps, whose waits for members bear the cause that most needs someone's doing.

    Those for the end of an object hand over to a person once they are overdue.
    """
    return tuple(_told(step) for step in steps)


def _told(step: Step) -> Step:
    @functools.wraps(step)
    def with_cause(seen: Seen) -> Verdict:
        verdict = step(seen)
        match verdict:
            case decision.Wait(reason=reason) if reason in ABOUT_MEMBERS:
                return msgspec.structs.replace(verdict, cause=cause(seen))
            case decision.Wait(reason=reason, fix="") if reason in ENDING:
                return msgspec.structs.replace(verdict, fix=LET_GO)
        return verdict

    return with_cause


def cause(seen: Seen) -> str:
    """Of all pods; empty if none is in trouble."""
    objects = freshness.value_of(seen.objects)
    found = [object_reasons.PodReason.of(pod.cause) for pod in objects.pods if pod.cause] if objects else []
    ranked: list[str] = list(object_reasons.PodReason)
    return min(found, key=lambda each: ranked.index(each) if each in ranked else len(ranked), default="")
