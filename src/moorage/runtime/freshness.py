"""How good a fact is: every outside fact in an observation is Fresh, Stale or Failed, and never silently absent."""

from __future__ import annotations

from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

T = TypeVar("T")

NOT_YET = "NotYet"
"""The reason of a fact that has not been looked at so far."""


class Fresh(msgspec.Struct, Generic[T], frozen=True, tag="fresh"):
    """Seen at `at` (epoch seconds), and not older than its source promises."""

    value: T
    at: float = 0.0


class Stale(msgspec.Struct, Generic[T], frozen=True, tag="stale"):
    """The last good value; looking again failed with `why`. Good enough to keep, never to destroy by."""

    value: T
    at: float
    why: str


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """Nothing is known: `reason` in CamelCase, `message` for a person, `transient` unless a change is needed."""

    reason: str
    message: str = ""
    transient: bool = True


Observed: TypeAlias = Fresh[T] | Stale[T] | Failed


def not_yet(what: str) -> Failed:
    """The fact `what` is being fetched; its arrival enqueues the key."""
    return Failed(NOT_YET, f"{what} not looked at yet")


def is_unseen(fact: Observed[Any]) -> bool:
    """Whether nobody has looked so far, as after a restart: other than that looking failed."""
    return isinstance(fact, Failed) and fact.reason == NOT_YET


def unsynced(error: str, what: str) -> Failed:
    """A watch of `what` that is not filled yet; `error` says why that does not succeed, if it does not."""
    return Failed("Unavailable", error) if error else not_yet(what)


def value_of(fact: Observed[T]) -> T | None:
    """The value, however old, or None when nothing is known."""
    return None if isinstance(fact, Failed) else fact.value
