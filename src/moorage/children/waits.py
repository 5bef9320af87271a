"""What lies behind a wait, by which it is said what comes next: a pod's trouble, or whatever holds an object. Pure."""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Iterable, Sequence
from typing import TypeAlias, TypeVar

import msgspec

from moorage.runtime import decision
from moorage.runtime.decision import Verdict

from . import pod_trouble
from . import reasons as object_reasons
from .parts import PodSeen

S = TypeVar("S")

Describe: TypeAlias = Callable[[Iterable[str]], str]
"""These pods by name, each with what is wrong with it."""

LET_GO = (
    "see what holds it: kubectl describe shows its finalizers and events; whoever has set a finalizer must take it "
    "away, and a pod on a node that is gone for good ends once that is said: kubectl taint node NAME "
    f"{pod_trouble.OUT_OF_SERVICE}"
)


def told(
    steps: Sequence[decision.Step[S]],
    pods: Callable[[S], Iterable[PodSeen]],
    *,
    about_pods: Container[str],
    ending: Container[str],
) -> tuple[decision.Step[S], ...]:
    """The same steps, whose waits for these reasons say more.

    Where a pod that is spoken of is on a lost node and can't end, waiting is of no use: a person must act, whatever
    the reason. Those `about_pods` bear the cause that most needs someone's doing. Those for the end of an object hand
    over to a person once they are overdue.
    """
    return tuple(_told(step, pods, about_pods, ending) for step in steps)


def _told(
    step: decision.Step[S],
    pods: Callable[[S], Iterable[PodSeen]],
    about_pods: Container[str],
    ending: Container[str],
) -> decision.Step[S]:
    @functools.wraps(step)
    def with_cause(seen: S) -> Verdict:
        verdict = step(seen)
        match verdict:
            case decision.Wait() if stuck := _stuck(pods(seen), verdict):
                return decision.Blocked(object_reasons.PodReason.of(stuck.cause), verdict.message, stuck.fix)
            case decision.Wait(reason=reason) if reason in about_pods:
                return msgspec.structs.replace(verdict, cause=cause(pods(seen)))
            case decision.Wait(reason=reason, fix="") if reason in ending:
                return msgspec.structs.replace(verdict, fix=LET_GO)
        return verdict

    return with_cause


def _stuck(pods: Iterable[PodSeen], verdict: decision.Wait) -> PodSeen | None:
    """Of the pods that the wait speaks of one that nothing but a person gets on."""
    return next((pod for pod in pods if pod.fix and pod.trouble in verdict.message), None)


def cause(pods: Iterable[PodSeen]) -> str:
    """Of all these pods; empty if none is in trouble."""
    found = [object_reasons.PodReason.of(pod.cause) for pod in pods if pod.cause]
    ranked: list[str] = list(object_reasons.PodReason)
    return min(found, key=lambda each: ranked.index(each) if each in ranked else len(ranked), default="")


def of_pod(pod: PodSeen | None, unmade: str = "") -> str:
    """What keeps a pod from working, or that there is none; empty where nothing is wrong with it."""
    if pod is None:
        return unmade or "it has no pod"
    return pod.trouble


def each(names: Iterable[str], why: Callable[[str], str]) -> str:
    """These pods, each with its cause."""
    return ", ".join(f"{name} ({cause})" if (cause := why(name)) else name for name in names)
