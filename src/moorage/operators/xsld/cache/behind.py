"""What lies behind a wait for members: the trouble of a pod, by which it is said what comes next. Pure."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import msgspec

from moorage.helm import reasons as of_objects
from moorage.operators.xsld.reasons import Reason
from moorage.runtime import decision, observed
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


def told(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The same steps, whose waits for members bear the cause that most needs someone's doing."""
    return tuple(_told(step) for step in steps)


def _told(step: Step) -> Step:
    @functools.wraps(step)
    def with_cause(seen: Seen) -> Verdict:
        verdict = step(seen)
        if isinstance(verdict, decision.Wait) and verdict.reason in ABOUT_MEMBERS:
            return msgspec.structs.replace(verdict, cause=cause(seen))
        return verdict

    return with_cause


def cause(seen: Seen) -> str:
    """Of all pods; empty if none is in trouble."""
    objects = observed.value_of(seen.objects)
    found = [of_objects.PodReason.of(pod.cause) for pod in objects.pods if pod.cause] if objects else []
    ranked: list[str] = list(of_objects.PodReason)
    return min(found, key=lambda each: ranked.index(each) if each in ranked else len(ranked), default="")
