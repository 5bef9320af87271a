"""The vocabulary of decisions, and the pure function that makes one. No I/O, no clock, no randomness.

A kind states **facts** (conditions, evaluated on every pass) and **steps** (an ordered list of named checks). Each
step gives a verdict:

    Done      nothing to do here, go on
    Act       carry out actions; then look again, or go on with the following steps
    Wait      for an event that will come by itself, with a deadline after which the wait calls itself overdue, or
              hands over to the user
    Blocked   until the user acts; says how

The list stops at the first Wait, Blocked, or Act that needs a fresh look.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Self, TypeAlias, TypeVar

import msgspec

from moorage.api import conditions, meta

from . import freshness

S = TypeVar("S")

FIELD_MANAGER = "moorage"
"""In whose name actions write, so that metadata.managedFields tell what is moorage's own."""


WARNS = True
"""Of a reason: a person should look, so what is told of it is a Warning, also where it may heal by itself."""


class Reason(str, enum.Enum):  # noqa: UP042 - a member carries its documentation too
    """Base of each system's reasons. Reasons are API: documented, stable, CamelCase.

    A member is declared as `NAME = "CamelCase", "what it means", "what comes next"`: who must do what, or
    what is awaited and from whom. `WARNS` as the fourth makes its Events Warnings.
    """

    help: str
    next: str
    warns: bool

    def __new__(cls, value: str, text: str = "", next_: str = "", warns: bool = False) -> Reason:
        """Keep the documentation beside the value, for people's tools and the generated page."""
        return cls._made(value, text, next_, warns)

    @classmethod
    def _made(cls, value: str, text: str, next_: str, warns: bool) -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.help, member.next, member.warns = text, next_, warns
        return member

    def __str__(self) -> str:
        return str(self.value)

    @classmethod
    def of(cls, word: str) -> str:
        """The member of that word, as when it comes back from a status; what it was where there is none."""
        known: dict[Any, Any] = {} if isinstance(word, Reason) else cls._value2member_map_
        found: str = known.get(word, word)
        return found


def next_of(reason: str) -> str:
    """What comes next by the reason itself; empty for a word that is nobody's member."""
    return reason.next if isinstance(reason, Reason) else ""


def warns(reason: str) -> bool:
    """Whether a person should look."""
    return isinstance(reason, Reason) and reason.warns


# --- actions -----------------------------------------------------------------------------------------------------


class Guard(msgspec.Struct, frozen=True):
    """A check by a live read that the executor makes right before the action; `check` names a guard of the kind."""

    check: str
    args: dict[str, Any] = {}


class Action(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="action"):
    """One effect on the world, as data, with one sentence why.

    Objects beside the reconciled one are written as `Kind.user` says; `as_operator`: by the operator's own rights.
    """

    why: str
    require: tuple[Guard, ...] = ()
    as_operator: bool = False


class Create(Action, frozen=True, kw_only=True):
    """Create one object; an existing one is a Conflict, which makes creation an atomic claim."""

    resource: meta.Resource
    body: dict[str, Any]


class Apply(Action, frozen=True, kw_only=True):
    """Server-side apply of the owned fields. The body carries metadata.uid when it updates a known object.

    `fill` names a filler of the kind, which completes the body right before it is sent: what is secret never is in a
    decision.
    """

    resource: meta.Resource
    body: dict[str, Any]
    fill: str = ""


class Patch(Action, frozen=True, kw_only=True):
    """JSON patch of one object; its first operations test what the decision was based on."""

    resource: meta.Resource
    ref: meta.ObjectRef
    ops: tuple[dict[str, Any], ...]


class Delete(Action, frozen=True, kw_only=True):
    """Delete exactly the incarnation that was seen: the reference must hold a uid."""

    resource: meta.Resource
    ref: meta.ObjectRef
    resource_version: str = ""
    propagation: Literal["Background", "Foreground", "Orphan"] = "Background"


class Evict(Action, frozen=True, kw_only=True):
    """Evict one pod, so that its disruption budget is respected."""

    ref: meta.ObjectRef


class EditFinalizer(Action, frozen=True, kw_only=True):
    """Add or remove this kind's own finalizer on the reconciled object."""

    present: bool


class SetPodCondition(Action, frozen=True, kw_only=True):
    """Set one condition (a readiness gate) on one incarnation of a pod."""

    ref: meta.ObjectRef
    type: str
    status: bool
    message: str = ""


class Call(Action, frozen=True, kw_only=True):
    """One named operation of the system's own API, short enough to be awaited (see `executor.ACTION_LIMIT`).

    With `keep` its Ok value is a mapping of status fields, which is merged at once.
    """

    operation: str
    args: dict[str, Any] = {}
    keep: bool = False


class Run(Action, frozen=True, kw_only=True):
    """Start a long task in the bounded pool. Its start and end are observed, and its end enqueues the key."""

    task: str
    lane: str
    args: dict[str, Any] = {}
    deadline: float = 600.0  # seconds


class Ended(msgspec.Struct, frozen=True):
    """A long operation outside the cluster is over; it becomes a metric when the Remember that says so is written."""

    operation: str
    outcome: str
    seconds: float


class Remember(Action, frozen=True, kw_only=True):
    """Write-ahead: merge these fields into status before the actions that follow are tried."""

    fields: dict[str, Any]
    ended: Ended | None = None


AnyAction: TypeAlias = Create | Apply | Patch | Delete | Evict | EditFinalizer | SetPodCondition | Call | Run | Remember

# --- outcomes ----------------------------------------------------------------------------------------------------


class Ok(msgspec.Struct, frozen=True, tag=True):
    """It happened."""

    value: Any = None


class Refused(msgspec.Struct, frozen=True, tag=True):
    """It did not happen, and was refused with a reason; `after` seconds at least it is not to be tried again."""

    reason: str
    message: str
    after: float = 0.0


class Conflict(msgspec.Struct, frozen=True, tag=True):
    """The world had moved; look again, quietly."""

    message: str


class Unknown(msgspec.Struct, frozen=True, tag=True):
    """The answer was lost; it may have happened. Stop and look again, after so many seconds at least."""

    message: str
    after: float = 0.0


Outcome: TypeAlias = Ok | Refused | Conflict | Unknown


# --- verdicts ----------------------------------------------------------------------------------------------------


class Done(msgspec.Struct, frozen=True, tag=True):
    """Nothing to do here."""


DONE = Done()


class Act(msgspec.Struct, frozen=True, tag=True):
    """Carry out `actions` in order. With `go_on`, later steps are still evaluated in the same pass."""

    reason: str
    message: str
    actions: tuple[AnyAction, ...]
    go_on: bool = False


class Wait(msgspec.Struct, frozen=True, tag=True):
    """Something will happen by itself. `on` names the event, `within` (seconds) is when the wait becomes overdue.

    `again` asks for another look after that many seconds, for events that nothing announces. `unseen` says that this
    process has only not looked yet, as after a restart: status then keeps what the last look wrote, for a while. `next`
    says what is awaited and from whom, where it is more than the reason's own `next`. `since` (RFC 3339) is when what
    is awaited began, where that is known better than by when the steps came to stand here. With `fix` it is a person's
    business once it is overdue: from then on the object is stalled, as if Blocked, and this says what to do. `cause` is
    the reason of what lies behind it, such as a pod's: what comes next is by that, and whether a person should look.
    """

    reason: str
    message: str
    on: str
    within: float
    again: float = 0.0
    unseen: bool = False
    next: str = ""
    since: str = ""
    fix: str = ""
    cause: str = ""


class Blocked(msgspec.Struct, frozen=True, tag=True):
    """Only the user can go on; `fix` says what to do. Looked at again on every change, and each resync."""

    reason: str
    message: str
    fix: str


Verdict: TypeAlias = Done | Act | Wait | Blocked


class Fact(msgspec.Struct, frozen=True):
    """One condition's truth: True, False, or None for unknown."""

    type: str
    status: bool | None
    reason: str
    message: str = ""


class StepTaken(msgspec.Struct, frozen=True):
    """A step and what it said."""

    name: str
    verdict: Verdict


Step: TypeAlias = Callable[[S], Verdict]
FactOf: TypeAlias = Callable[[S], Fact]


class Decision(msgspec.Struct, frozen=True):
    """All that one pass decided. From this one record come status, events, the log line, metrics and `explain`."""

    facts: tuple[Fact, ...] = ()
    steps: tuple[StepTaken, ...] = ()
    report: dict[str, Any] = {}
    paused: bool = False

    @property
    def acts(self) -> tuple[Act, ...]:
        """The verdicts that carry actions, in order; none while paused."""
        if self.paused:
            return ()
        return tuple(taken.verdict for taken in self.steps if isinstance(taken.verdict, Act))

    @property
    def standing(self) -> StepTaken | None:
        """The step where the list stopped, or None when it ran through."""
        return _standing(self.steps)


def _standing(steps: Sequence[StepTaken]) -> StepTaken | None:
    return steps[-1] if steps and stops(steps[-1].verdict) else None


def stops(verdict: Verdict) -> bool:
    """Whether the list ends at this verdict."""
    match verdict:
        case Done():
            return False
        case Act(go_on=go_on):
            return not go_on
        case _:
            return True


def as_it_stood(found: Fact, before: Iterable[conditions.Condition]) -> Fact:
    """What the last look said of this fact; `found` where that said nothing."""
    last = conditions.find(before, found.type)
    if last is None or last.status == "Unknown":
        return found
    return Fact(found.type, last.status == "True", last.reason, last.message)


def unknown(reason: str, failed: freshness.Failed, on: str, *, within: float = 120.0) -> Wait:
    """Wait for a fact that can't be decided on; of one that was only not looked at so far, nothing is said."""
    unseen = freshness.is_unseen(failed)
    return Wait(reason, failed.message, on=on, within=within, again=0.0 if unseen else 5.0, unseen=unseen)


def decide(
    seen: S,
    *,
    steps: Sequence[Step[S]],
    facts: Iterable[FactOf[S]] = (),
    report: Callable[[S, StepTaken | None], dict[str, Any]] | None = None,
    paused: bool = False,
) -> Decision:
    """Evaluate all facts, then the steps until one stops the list.

    While paused nothing is carried out, but everything is still evaluated, so that status stays honest. `report` is
    told where the steps stopped.
    """
    taken: list[StepTaken] = []
    for step in steps:
        verdict = step(seen)
        taken.append(StepTaken(step.__name__, verdict))
        if stops(verdict):
            break
    return Decision(
        facts=tuple(fact(seen) for fact in facts),
        steps=tuple(taken),
        report=report(seen, _standing(taken)) if report else {},
        paused=paused,
    )
