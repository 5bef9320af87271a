"""Conditions as the API conventions define them, and RFC 3339 times. Pure: the clock is always an argument."""

from __future__ import annotations

import datetime
import functools
import math
import operator
from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

__all__ = ["Condition", "Verdict", "age", "epoch", "find", "is_true", "merge", "timestamp"]

Verdict = Literal["True", "False", "Unknown"]


class Condition(msgspec.Struct, frozen=True, rename="camel"):
    """One aspect of an object's state. Each type has exactly one writer."""

    type: Annotated[str, Meta(min_length=1, max_length=316)]
    status: Verdict
    reason: Annotated[str, Meta(max_length=1024)] = ""
    message: Annotated[str, Meta(max_length=32768)] = ""
    observed_generation: int = 0
    last_transition_time: Annotated[str, Meta(extra_json_schema={"format": "date-time"})] = ""


def merge(previous: Iterable[Condition], new: Iterable[Condition], now: float) -> tuple[Condition, ...]:
    """The new conditions, sorted by type; the transition time moves to `now` (epoch seconds) only with the status.

    A type that is only in `previous` is dropped: what is no longer said is no longer so.
    """
    before = {condition.type: condition for condition in previous}
    stamp = timestamp(now)
    dated = []
    for condition in new:
        old = before.get(condition.type)
        since = old.last_transition_time if old is not None and old.status == condition.status else ""
        dated.append(msgspec.structs.replace(condition, last_transition_time=since or stamp))
    dated.sort(key=operator.attrgetter("type"))
    return tuple(dated)


def find(conditions: Iterable[Condition], type_: str) -> Condition | None:
    """The condition of that type, or None."""
    for condition in conditions:
        if condition.type == type_:
            return condition
    return None


def is_true(conditions: Iterable[Condition], type_: str) -> bool:
    """Whether the condition of that type is there, and says True."""
    found = find(conditions, type_)
    return found is not None and found.status == "True"


SKEW = 60.0
"""Seconds by which the clocks of those who write times down may differ."""


def timestamp(epoch_seconds: float) -> str:
    """Epoch seconds as RFC 3339 in UTC with whole seconds, the form of metav1.Time."""
    return _format(int(epoch_seconds // 1))


@functools.lru_cache(maxsize=64)  # of one second there are many
def _format(second: int) -> str:
    return datetime.datetime.fromtimestamp(second, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def epoch(text: str) -> float:
    """RFC 3339 (also metav1.MicroTime) as epoch seconds.

    What is no time, or one without a zone, was long ago, so that it counts as 0: a status or a record may be written by
    others too, and must not break off the passes that read it.
    """
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return 0.0
    return moment.timestamp() if moment.tzinfo is not None else 0.0


def age(text: str, now: float) -> float:
    """Seconds since a time that was written down, to decide by. `now` is in epoch seconds.

    One that lies in the future was written by a clock that has been set back since, and says nothing: it counts as
    long ago, or what is due then would be waited for until then.
    """
    passed = now - epoch(text)
    return math.inf if passed < -SKEW else max(0.0, passed)
