"""When an object is looked at again, and when its status is left alone. Pure, but for a memory that only saves work.

A pass ends in one of four ways: look again at once (an act was done), after a while (something is waited for, or
resync), with back-off (an action failed), or at rest (the very same act comes back again and again: its effect does not
show up, or somebody undoes it; then not even news brings it back at once). A refusal has no effect that could show up,
and comes back with back-off however often.
"""

from __future__ import annotations

import enum

import msgspec

from moorage.api import conditions
from moorage.runtime import decision
from moorage.runtime.reasons import Reason

from . import status

SAME_ACT_LIMIT = 3
"""How often the very same act may come back within `WINDOW`, whatever lies between, before the object rests."""

WINDOW = 60.0
"""Seconds for which an act is remembered."""

PATIENT = 3
"""How many passes of an object may fail on a server that sheds load before its status, one more write, says so."""

RACES = 3
"""How many passes in a row may be refused for want of rights before status says so: of rights that were given a moment
ago the API server learns a little later, and the first three tries are over within five seconds."""

UNSEEN = 60.0
"""Seconds for which a fact that was not looked at yet leaves status as it is; then the wait is told."""


class How(enum.Enum):
    """How the object comes back."""

    NOW = "now"
    AFTER = "after"
    RETRY = "retry"
    REST = "rest"


class Look(msgspec.Struct, frozen=True):
    """The next look."""

    how: How
    seconds: float = 0.0  # of AFTER; of RETRY at least so many, as the server has asked for it
    backlog: bool = False  # a resync: it gives way to news


class Memory:
    """What this process remembers of one object: losing it loses nothing."""

    def __init__(self, uid: str) -> None:
        self.uid = uid
        self._acts: dict[tuple[str, str, str], tuple[float, ...]] = {}  # when each was tried last
        self._unseen_since: float | None = None

    def acted(self, made: decision.Decision, performed: tuple[status.Performed, ...], at: float) -> bool:
        """Note what was tried at `at` (monotonic seconds), and say whether an act of it has come back too often."""
        tried = {done.step for done in performed if not isinstance(done.outcome, decision.Refused)}
        often = False
        self._acts = {act: times for act, times in self._acts.items() if at - times[-1] < WINDOW}
        for taken in made.steps:
            if taken.name in tried and isinstance(taken.verdict, decision.Act):
                act = (taken.name, str(taken.verdict.reason), taken.verdict.message)
                times = self._acts[act] = (*self._acts.get(act, ()), at)[-SAME_ACT_LIMIT - 1 :]
                often = often or (len(times) > SAME_ACT_LIMIT and at - times[0] < WINDOW)
        return often

    def unseen(self, made: decision.Decision, at: float) -> float:
        """Seconds for which it has been waited, without a pause, for a fact that nobody has looked at yet."""
        taken = made.standing
        if taken is None or not isinstance(taken.verdict, decision.Wait) or not taken.verdict.unseen:
            self._unseen_since = None
            return 0.0
        if self._unseen_since is None:
            self._unseen_since = at
        return at - self._unseen_since


def is_quiet(
    made: decision.Decision,
    performed: tuple[status.Performed, ...],
    *,
    often: bool,
    unseen_for: float,
    shed: bool = False,
    failures: int = RACES,
) -> bool:
    """Whether status is left as it is: nothing is known yet, another look follows right away, or it was `shed`.

    `failures` is how many passes in a row had failed before this one.
    """
    last = performed[-1] if performed else None
    match last.outcome if last else decision.Ok():
        case decision.Conflict():
            return not often
        case decision.Refused(reason=Reason.FORBIDDEN):
            return shed or failures < RACES
        case decision.Refused() | decision.Unknown():
            return shed
    if often or (last and isinstance(last.action, decision.Run)):
        return False
    match made.standing:
        case decision.StepTaken(verdict=decision.Wait(unseen=True)):
            return unseen_for < UNSEEN
        case decision.StepTaken(verdict=decision.Act()):
            return not made.paused
    return False


def next_look(
    made: decision.Decision,
    performed: tuple[status.Performed, ...],
    since: str,
    *,
    now: float,
    resync: float,
    often: bool,
    unseen_for: float,
) -> Look:
    """`since` is when the wait began (RFC 3339), `now` epoch seconds; `resync` comes with its jitter."""
    if often:
        return Look(How.REST)
    if performed:  # with `go_on` too: what the steps after the act were told was from before it
        match performed[-1].outcome:
            case decision.Ok():
                return Look(How.NOW)
            case decision.Refused(after=after) | decision.Unknown(after=after):
                return Look(How.RETRY, after)
        return Look(How.RETRY)
    match made.standing:
        case decision.StepTaken(verdict=decision.Wait(within=within, again=again, unseen=unseen)):
            overdue_in = conditions.epoch(since) + within - now
            tell_in = UNSEEN - unseen_for if unseen else 0.0
            soonest = min(t for t in (resync, again, overdue_in, tell_in) if t > 0)
            return Look(How.AFTER, soonest, backlog=soonest == resync)
    return Look(How.AFTER, resync, backlog=True)
