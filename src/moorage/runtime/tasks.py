"""What is known of a long task: plain data that observations hold. `task_pool` runs them."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from . import decision


class Running(msgspec.Struct, frozen=True, tag="running"):
    """`task` has run since `since` (epoch seconds)."""

    task: str
    since: float


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """`task` ended at `at` (epoch seconds)."""

    task: str
    attempt: str
    at: float
    outcome: decision.Outcome


TaskState: TypeAlias = Running | Ended | None
