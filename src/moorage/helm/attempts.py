"""Runs of helm as data: written down before they begin, judged when ended, repeated with growing delays. Pure."""

from __future__ import annotations

import hashlib

from moorage.api import conditions
from moorage.runtime import decision, observed, tasks
from moorage.runtime.decision import Wait

from . import failures, seen, status
from .reasons import Reason
from .seen import ReleaseSeen

MINUTE = 60.0
RUN_DEADLINE = 10 * MINUTE
LONGEST_DELAY = 5 * MINUTE


def failure(r: ReleaseSeen) -> tuple[str, str] | None:
    """Why the last attempt failed: from this process's own run, or from the record that a former process left."""
    last = r.status.attempt
    if not last.id:
        return None
    match r.task:
        case tasks.Ended(attempt=last.id, outcome=decision.Refused(reason=reason, message=message)):
            return reason, message
        case tasks.Ended(attempt=last.id, outcome=decision.Unknown(message=message)):
            return failures.FailureKind.OTHER, message
        case tasks.Ended(attempt=last.id):
            return None
    record = observed.value_of(r.record)
    if record is None or record.status != "failed" or record.revision != last.revision or record.attempt != last.id:
        return None
    return record.failure, record.description


def wait_for_retry(r: ReleaseSeen, action: str) -> Wait | None:
    """The wait after a failed run, or None when it is time, or when there is something new to try."""
    last = r.status.attempt
    if last.action != action or not last.retry_at or (action == "upgrade" and last.digest != r.desired):
        return None
    left = conditions.epoch(last.retry_at) - r.now
    if not 0 < left <= LONGEST_DELAY + conditions.SKEW:  # of a time that far away a clock was set back since
        return None
    message = f"{last.message}; tried again at {last.retry_at}"
    return Wait(failures.FailureKind.of(last.reason), message, on="time", within=60 * MINUTE, again=left)


def wait_for_former(r: ReleaseSeen) -> Wait | None:
    """The wait for a helm of a former leader to be surely over, where its record says that it was at work."""
    record = observed.value_of(r.record)
    if record is None or record.status not in seen.PENDING or r.settles_in <= 0:
        return None
    message = f"revision {record.revision} was left {record.status} by a former process of moorage, which was lost"
    return Wait(Reason.INTERRUPTED, message, on="time", within=MINUTE, again=r.settles_in)


def begin(r: ReleaseSeen, action: str, digest: str, revision: int) -> status.Attempt:
    """The attempt to write down before a run on top of `revision`; its id is in the record that the run makes."""
    last = r.status.attempt
    again = (last.action, last.digest) == (action, digest) and bool(last.reason)
    tries = last.tries + 1 if again else 1
    text = f"{r.owner.uid}/{action}/{digest}/{revision}/{tries}/{r.now}"
    return status.Attempt(
        id=hashlib.blake2b(text.encode(), digest_size=8).hexdigest(),
        action=action,
        digest=digest,
        revision=revision if action == "uninstall" else revision + 1,
        started=conditions.timestamp(r.now),
        tries=tries,
    )


def run(r: ReleaseSeen, task: str, attempt: status.Attempt, args: dict[str, object]) -> decision.Run:
    """The action that starts the attempt; nobody but the claim's owner may."""
    return decision.Run(
        why=f"{verb(task)} {r.target.release}",
        require=(decision.Guard("claim_is_mine", {"uid": r.owner.uid}),),
        task=task,
        lane=r.target.lane,
        args={"attempt": attempt.id, **args},
        deadline=RUN_DEADLINE,
    )


def verb(task: str) -> str:
    """What a task is called to people."""
    return task.rpartition(".")[2]
