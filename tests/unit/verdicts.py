"""What is decided, in short: the rows of tables that steps are tested by, whatever the system."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from moorage.runtime import decision


class Waits(msgspec.Struct, frozen=True):
    """A Wait, its words aside."""

    reason: str
    on: str
    within: float
    again: float = 0.0
    unseen: bool = False


class Blocks(msgspec.Struct, frozen=True):
    """A Blocked, its words aside."""

    reason: str


class Acts(msgspec.Struct, frozen=True):
    """An Act, its words aside."""

    reason: str
    actions: tuple[str, ...]


class Settles(msgspec.Struct, frozen=True):
    """No step has anything to do."""


SETTLED = Settles()
Shape = Waits | Blocks | Acts | Settles


class Row(msgspec.Struct, frozen=True):
    """A situation, and what comes of it: the step where the list stops, and its verdict in short."""

    seen: Any
    step: str
    shape: Shape
    says: str = ""  # part of the message
    steps: Sequence[Callable[[Any], decision.Verdict]] = ()


def acts(reason: str, *actions: str) -> Acts:
    """An Act with these actions."""
    return Acts(reason, actions)


def decided(it: Any, steps: Sequence[Callable[[Any], decision.Verdict]]) -> tuple[str, Shape, str, decision.Decision]:
    """The step where it stands, the verdict in short, its message, and all of it."""
    made = decision.decide(it, steps=steps)
    if made.standing is None:
        return "", SETTLED, "", made
    verdict = made.standing.verdict
    return made.standing.name, shape(verdict), getattr(verdict, "message", ""), made


def shape(verdict: decision.Verdict) -> Shape:
    """A verdict in short."""
    match verdict:
        case decision.Wait(reason=reason, on=on, within=within, again=again, unseen=unseen):
            return Waits(str(reason), on, within, again, unseen)
        case decision.Blocked(reason=reason):
            return Blocks(str(reason))
        case decision.Act(reason=reason, actions=actions):
            return Acts(str(reason), tuple(short(action) for action in actions))
        case decision.Done():
            return SETTLED


def short(action: decision.AnyAction) -> str:
    """An action in few words."""
    return _verb(action) + "".join(f" if {guard.check}{_values(guard.args)}" for guard in action.require)


def _verb(action: decision.AnyAction) -> str:
    match action:
        case decision.Remember(fields=fields):
            return " ".join(["remember", *(f"{key}" if value else f"no-{key}" for key, value in fields.items())])
        case decision.Call(operation="submit", args=args):
            return f"submit {args['command']} {args['target']} at {args['endpoint']}"
        case decision.Call(operation=operation, args=args):
            return f"{operation}{_values(args)}"
        case decision.Apply(body=body, fill=fill):
            uid = body["metadata"].get("uid", "new")
            return f"apply {body['kind']}/{body['metadata']['name']} {uid}" + (f" with {fill}" if fill else "")
        case decision.Delete(ref=ref, propagation=propagation):
            how = f" {propagation.lower()}" if propagation != "Background" else ""
            return f"delete {ref.kind}/{ref.name} {ref.uid}{how}"
        case decision.Patch(ref=ref, ops=ops):
            return f"patch {ref.kind}/{ref.name} {ref.uid} " + " ".join(
                f"{op['path']}={op.get('value', '-')}" for op in ops
            )
        case decision.Evict(ref=ref):
            return f"evict {ref.name} {ref.uid}"
        case decision.SetPodCondition(ref=ref, status=status):
            return f"condition {ref.kind}/{ref.name} {status}"
        case decision.EditFinalizer(present=present):
            return "finalizer on" if present else "finalizer off"
    raise ValueError(f"no words for {action}")


def _values(args: dict[str, Any]) -> str:
    return "".join(f" {value}" for value in args.values())


def check(row: Row, steps: Sequence[Callable[[Any], decision.Verdict]]) -> None:
    """One row of a table."""
    step, found, message, _ = decided(row.seen, row.steps or steps)

    assert (row.step, row.shape) == (step, found), message
    assert row.says in message


def same(verdict: decision.Verdict, expected: Shape, says: str = "") -> None:
    """One verdict by itself."""
    message = getattr(verdict, "message", "")

    assert expected == shape(verdict), message
    assert says in message
