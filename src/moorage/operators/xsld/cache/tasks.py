"""The one task that was asked of the group: followed to its end, found again after a crash, judged by the world.

A command is remembered in status with an intent before it is sent, and the intent stands in the task's description. So
whatever becomes of the answer, the task is recognised, and nothing is asked twice. Pure.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import msgspec

from moorage.api import conditions, quantities
from moorage.operators.xsld.group import answers
from moorage.operators.xsld.reasons import Reason
from moorage.runtime import decision
from moorage.runtime.decision import DONE, Act, Blocked, Verdict, Wait

from . import left_members, types
from .observation import Seen

JOIN, LEAVE, REPLICATE, FAILOVER = "Join", "Leave", "Replicate", "Failover"
SETTLE = 120.0
"""Seconds that the world gets to show the effect of a task that succeeded."""

STUCK = 600.0
"""Seconds without progress after which a replication task is cancelled; the vendor's figure for the well-known 45 %."""

_UNDER_WAY = {
    JOIN: Reason.JOINING,
    LEAVE: Reason.DISJOINING,
    REPLICATE: Reason.REPLICATING,
    FAILOVER: Reason.FAILING_OVER,
}
_SAYS = {
    JOIN: "{} joins the group",
    LEAVE: "{} leaves the group",
    REPLICATE: "{} becomes the copy of the administrative database",
    FAILOVER: "{} becomes the primary",
}
_FAILED = {
    JOIN: (Reason.JOIN_FAILED, Reason.JOIN_GIVEN_UP),
    LEAVE: (Reason.DISJOIN_FAILED, Reason.DISJOIN_GIVEN_UP),
    REPLICATE: (Reason.REPLICATION_FAILED, None),
    FAILOVER: (Reason.PRIMARY_UNAVAILABLE, None),
}


def submit(
    seen: Seen,
    command: str,
    target: str,
    endpoint: str,
    *,
    reason: Reason,
    message: str,
    require: tuple[decision.Guard, ...] = (),
) -> Verdict:
    """Remember the command, then send it to the endpoint; or wait, if it failed lately."""
    held = held_back(seen, command, target)
    if held is not None:
        return held
    trouble = trouble_with(seen, command, target)
    task = types.CurrentTask(
        intent=_intent(seen, command, target),
        command=command,
        target=target,
        endpoint=endpoint,
        started_at=conditions.timestamp(seen.now),
        attempts=trouble.attempts + 1 if trouble else 1,
    )
    fields: dict[str, Any] = msgspec.to_builtins(task)
    why = "a crash must not have it asked twice"
    remember = decision.Remember(why=why, require=require, fields={"currentTask": fields})
    call = decision.Call(why=message, operation="submit", args=fields, keep=True)
    return Act(reason, message, (remember, call))


def trouble_with(seen: Seen, command: str, target: str) -> types.Trouble | None:
    """What is known of failures of that command; none counts any more once the spec has changed."""
    for trouble in seen.status.troubles:
        if (trouble.command, trouble.target, trouble.generation) == (command, target, seen.meta.generation):
            return trouble
    return None


def held_back(seen: Seen, command: str, target: str) -> Verdict | None:
    """What stands against trying the command: that it failed a moment ago, or too often."""
    trouble = trouble_with(seen, command, target)
    if trouble is None:
        return None
    failed, given_up = _FAILED[command]
    said = f"{_SAYS[command].format(target)}: failed {trouble.attempts} times, last with: {trouble.message}"
    if given_up is not None and trouble.attempts >= seen.limits.attempts:
        return Blocked(given_up, said, "set the annotation moorage.dev/reconcile-at to any new value to try again")
    left = seen.limits.after(trouble.attempts) - conditions.age(trouble.at, seen.now)
    if left <= 0:
        return None
    return Wait(failed, said, on="back-off", within=2 * seen.limits.cap_seconds, again=left)


def own_task_is_followed(seen: Seen) -> Verdict:
    """Until the task that was asked for has ended and the world shows it."""
    current = seen.task
    if current is None:
        return DONE if seen.status.current_task is None else _forgotten(seen.status.current_task)
    said = _SAYS[current.command].format(current.target)
    if current.refused:
        return _failure(seen, current, current.refused)
    task = find(seen, current)
    if task is None:
        return _without_task(seen, current, answered=seen.answer(current.endpoint) is not None, said=said)
    match task.phase:
        case answers.Phase.RUNNING:
            return _running(seen, current, task, said)
        case answers.Phase.DONE if not _shows(seen, current):
            if _still(seen, current, task) > SETTLE:
                return _failure(seen, current, "the task succeeded, but the group does not show it")
            reason = _UNDER_WAY[current.command]
            ended = f"{said}: the task has ended, its effect is waited for"
            since = conditions.timestamp(seen.now - _still(seen, current, task))
            return Wait(reason, ended, on="group", within=SETTLE, since=since)
        case answers.Phase.FAILED if not _shows(seen, current):
            return _failure(seen, current, task.message or "the task failed")
    return _success(seen, current, said)


def _forgotten(forged: types.CurrentTask) -> Act:
    """What can't have been asked for, so that nobody has to end it."""
    said = f"{forged.command[:20]} of {forged.target[:70]} at {forged.endpoint[:70]}"
    note = decision.Remember(why="somebody else wrote it", fields={"currentTask": None})
    return Act(Reason.TASK_FORGOTTEN, f"status names a task that was never asked for: {said}", (note,))


def _without_task(seen: Seen, current: types.CurrentTask, *, answered: bool, said: str) -> Verdict:
    """The task is nowhere: never sent, forgotten by its member, or its member does not answer."""
    if _shows(seen, current):
        return _success(seen, current, said)
    age = conditions.age(current.started_at, seen.now)
    if answered and not current.id:
        return _unanswered(seen, current, age, said)
    if answered:
        return _failure(seen, current, "its task is lost")
    if current.command != JOIN and seen.primary is not None and seen.primary.name != current.endpoint:
        return _failure(seen, current, f"{current.endpoint} is no longer the primary, and does not answer")
    if age > _limit(seen, current.command):
        return _failure(seen, current, f"{current.endpoint} does not answer")
    reason = _UNDER_WAY[current.command]
    return Wait(
        reason,
        f"{said}: {current.endpoint} does not answer at the moment",
        on="group",
        within=_limit(seen, current.command),
        again=seen.busy,
        since=current.started_at,
    )


def _unanswered(seen: Seen, current: types.CurrentTask, age: float, said: str) -> Verdict:
    """Of a command nothing shows: it was not sent, or it got no answer and may still be carried out for a while."""
    reason, limit = _UNDER_WAY[current.command], seen.limits.unanswered_seconds
    if seen.unsent:
        action = decision.Remember(why="it was not sent", fields={"currentTask": None})
        return Act(reason, f"{said}: not sent, to be asked anew", (action,))
    if age > limit:
        return _failure(seen, current, f"{current.endpoint} gave no answer, and has not begun it")
    said = f"{said}: {current.endpoint} gave no answer, and may begin it yet"
    return Wait(reason, said, on="group", within=2 * limit, again=min(seen.busy, limit - age) or seen.busy)


def _running(seen: Seen, current: types.CurrentTask, task: answers.Task, said: str) -> Verdict:
    age = conditions.age(current.started_at, seen.now)
    limit = _limit(seen, current.command)
    if age > limit or (current.command == REPLICATE and _still(seen, current, task) > STUCK):
        why = f"it is at {task.progress} %" + (f" after {age:.0f} s" if age < math.inf else "")
        args = {"endpoint": current.endpoint, "id": task.id}
        cancel = decision.Call(why=why, operation="cancel", args=args)
        return Act(Reason.TASK_CANCELLED, f"{said}: cancelled, as {why}", (cancel,))
    if not current.id:
        fields = msgspec.to_builtins(msgspec.structs.replace(current, id=task.id))
        note = decision.Remember(why="the task was found by its intent", fields={"currentTask": fields})
        return Act(_UNDER_WAY[current.command], f"{said}: task {task.id} was found again", (note,))
    return Wait(
        _UNDER_WAY[current.command],
        f"{said}: task {task.id} at {current.endpoint} is at {task.progress} %",
        on="group",
        within=limit,
        again=seen.busy,
        since=current.started_at,
    )


def _others(seen: Seen, current: types.CurrentTask) -> list[Any]:
    """The failures of other commands."""
    other = [t for t in seen.status.troubles if (t.command, t.target) != (current.command, current.target)]
    return [msgspec.to_builtins(trouble) for trouble in other]


def _still(seen: Seen, current: types.CurrentTask, task: answers.Task) -> float:
    """Seconds for which the task has not moved."""
    before = seen.status.task_progress
    if before is None or before.intent != current.intent or before.percent != task.progress:
        return 0.0
    return conditions.age(before.at, seen.now)


def _success(seen: Seen, current: types.CurrentTask, said: str) -> Verdict:
    fields: dict[str, Any] = {"currentTask": None, "troubles": _others(seen, current)}
    if current.command == LEAVE:
        fields["left"] = left_members.noted(seen, current.target)
    note = decision.Remember(why="it has ended well", fields=fields, ended=_ended(seen, current, "succeeded"))
    return Act(Reason.TASK_DONE, f"{said}: done", (note,))


def _ended(seen: Seen, current: types.CurrentTask, outcome: str) -> decision.Ended:
    return decision.Ended(current.command, outcome, max(0.0, seen.now - conditions.epoch(current.started_at)))


def _failure(seen: Seen, current: types.CurrentTask, why: str) -> Verdict:
    trouble = types.Trouble(
        command=current.command,
        target=current.target,
        attempts=current.attempts,
        at=conditions.timestamp(seen.now),
        message=why[:500],
        generation=seen.meta.generation,
    )
    fields = {"currentTask": None, "troubles": [*_others(seen, current), msgspec.to_builtins(trouble)]}
    outcome = _ended(seen, current, "refused" if current.refused else "failed")
    note = decision.Remember(why="the next try waits a while", fields=fields, ended=outcome)
    reason, _ = _FAILED[current.command]
    return Act(reason, f"{_SAYS[current.command].format(current.target)}: {why}", (note,))


def _shows(seen: Seen, current: types.CurrentTask) -> bool:
    """Whether the group is as the task was to make it."""
    group = seen.group
    if group is None:
        return False
    member = group.member(current.target)
    match current.command:
        case "Join":
            return member is not None and member.online
        case "Leave":
            return member is None
        case "Replicate":
            return member is not None and member.role == "slave"
        case _:
            return member is not None and member.primary


def find(seen: Seen, current: types.CurrentTask) -> answers.Task | None:
    """By its id, if that is known; else by the intent in its description."""
    answer = seen.answer(current.endpoint)
    for task in answer.tasks if answer else ():
        if (current.id and task.id == current.id) or current.intent in task.description:
            return task
    return None


def _limit(seen: Seen, command: str) -> float:
    timeouts = seen.spec.timeouts
    text = {JOIN: timeouts.join, LEAVE: timeouts.disjoin}.get(command, timeouts.replication)
    return quantities.seconds(text)


def _intent(seen: Seen, command: str, target: str) -> str:
    text = f"{seen.meta.uid}/{command}/{target}/{seen.now}"
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def foreign_tasks_end(seen: Seen) -> Verdict:
    """One thing at a time: what others started at the group is waited for."""
    running = [
        f"{task.command} (task {task.id} at {answer.pod}, {task.progress} %)" for answer, task in seen.told.running
    ]
    if not running:
        return DONE
    return Wait(Reason.TASK_RUNNING, f"under way: {', '.join(running)}", on="group", within=1800.0, again=seen.busy)


def troubles_are_forgotten(seen: Seen) -> Verdict:
    """When nothing is left to do, nothing that failed on the way matters."""
    if not seen.status.troubles:
        return DONE
    note = decision.Remember(why="nothing is left to do", fields={"troubles": []})
    return Act(Reason.TASK_DONE, "what failed on the way is forgotten", (note,))
