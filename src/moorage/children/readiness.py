"""Whether owned objects are ready, by their health; and the one that is spoken of where several are not. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from moorage.api import meta
from moorage.runtime import decision
from moorage.runtime.decision import DONE, Blocked, Verdict, Wait

from . import reasons as object_reasons


class Judged(Protocol):
    """One object as it is live, with what `health` says of it."""

    @property
    def ref(self) -> meta.ObjectRef:
        """Which it is."""

    @property
    def ready(self) -> bool:
        """It is what its spec says."""

    @property
    def reason(self) -> str:
        """Why it is not, as a word: see `reasons.of_object`."""

    @property
    def message(self) -> str:
        """Why it is not, as a sentence."""

    @property
    def fix(self) -> str:
        """What a person must do before it can be, where nothing comes by itself."""


J = TypeVar("J", bound=Judged)

NOBODYS_FAULT = (object_reasons.ObjectReason.ROLLOUT_PAUSED, object_reasons.ObjectReason.JOB_RUNNING)
"""Of an object that is not ready: no fault of what was changed last, however long it takes."""


def weakest(objects: Iterable[J]) -> J | None:
    """Of those that are not ready, one that somebody must do something about, if there is one; else the first.

    What is nobody's fault is only spoken of when there is nothing else.
    """

    def urgency(it: J) -> tuple[int, bool]:
        reason = object_reasons.of_object(it.reason)
        last = NOBODYS_FAULT.index(reason) + 1 if reason in NOBODYS_FAULT else 0
        return last, not decision.warns(reason)

    return min((it for it in objects if not it.ready), key=urgency, default=None)


def words(it: Judged) -> str:
    """What keeps it from being ready, with its name."""
    return f"{it.ref.kind} {it.ref.name}: {it.message}"


def are_ready(objects: Iterable[Judged], *, within: float, again: float = 0.0) -> Verdict:
    """All are what their specs say; otherwise the message names the object and its own words."""
    weak = weakest(objects)
    if weak is None:
        return DONE
    reason = object_reasons.of_object(weak.reason)
    if reason is object_reasons.ObjectReason.ROLLOUT_PAUSED:
        return Blocked(reason, words(weak), f"kubectl rollout resume {weak.ref.kind.lower()} {weak.ref.name}")
    if weak.fix:
        return Blocked(reason, words(weak), weak.fix)
    return Wait(reason, words(weak), on="children", within=within, again=again)
