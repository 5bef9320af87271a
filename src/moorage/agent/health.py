"""What an agent tells: the health file of the original's parent, with the catalog beside it. Pure."""

from __future__ import annotations

import datetime
from typing import Any

import msgspec

from . import plan


class Place(msgspec.Struct, frozen=True):
    """Where the agent stands, and since when (epoch seconds)."""

    stand: plan.Stand
    since: float
    document: int  # the version that was applied last; -1: none
    wanted: int  # the version that is there; -1: none


def text(me: str, place: Place, *, up: bool, up_at: float, catalog: tuple[bool, str] | None) -> bytes:
    """The health file.

    `up`: whether the server answers now, and `up_at`: when it last did; `catalog`: whether it is installed, and of
    which version. A step that waits while the server serves on is one by which nobody is held back.
    """
    stand, since = place.stand, _time(place.since)
    step = {"step": stand.step, "stepDoc": "", "isWaitStep": stand.waits and up, "started": since}
    moves = [{"move": stand.move, "moveDoc": "", "steps": [{**step, "completed": None, "result": _result(stand)}]}]
    completed = since if stand.in_goal else None
    plans = [
        {
            "automationConfigVersion": place.wanted,
            "started": since,
            "completed": completed,
            "moves": [] if stand.in_goal else moves,
        }
    ]
    made: dict[str, Any] = {
        "statuses": {
            me: {
                "IsInGoalState": stand.in_goal,
                "LastMongoUpTime": int(up_at),
                "ExpectedToBeUp": stand.expected,
                "ReplicationStatus": -1,
            }
        },
        "mmsStatus": {
            me: {
                "name": me,
                "lastGoalVersionAchieved": place.document,
                "plans": plans,
                "errorCode": 1 if stand.error else 0,
                "errorString": stand.error,
            }
        },
    }
    if catalog is not None:
        made["catalog"] = {"installed": catalog[0], "version": catalog[1]}
    return msgspec.json.encode(made)


def _result(stand: plan.Stand) -> str:
    return "error" if stand.error else "wait" if stand.act is None else ""


def _time(at: float) -> str:
    return datetime.datetime.fromtimestamp(at, datetime.UTC).isoformat().replace("+00:00", "Z")


def other(told: bytes, name: str) -> plan.Other:
    """What another agent told. Raises ValueError for what is none."""
    try:
        found = msgspec.json.decode(told)
        state, progress = found["statuses"][name], found["mmsStatus"][name]
        last = progress["plans"][-1]
        steps = [step["step"] for move in last["moves"] for step in move["steps"]]
        stopped = int(last["automationConfigVersion"]) if steps == [plan.MIGRATED] else -1
        known = found.get("catalog") or {}
        catalog = str(known["version"]) if known.get("installed") is True else ""
        return plan.Other(bool(state["IsInGoalState"]), int(progress["lastGoalVersionAchieved"]), catalog, stopped)
    except (msgspec.MsgspecError, RecursionError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"{name} tells nothing that can be read") from error
