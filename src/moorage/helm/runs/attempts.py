"""Runs of helm as data: written down before they begin, judged when ended, repeated with growing delays. Pure.

What comes after a failure follows from its `failures.Cure`: what time heals is repeated for ever, what only a person
can mend is not, and what looks like that at first (rights that were bound just now) gets some tries.
"""

from __future__ import annotations

import hashlib
import math

from moorage.api import conditions
from moorage.children import reasons as object_reasons
from moorage.helm import observation, release_status
from moorage.helm.observation import ReleaseSeen
from moorage.helm.reasons import Reason
from moorage.runtime import decision, freshness, tasks
from moorage.runtime.decision import Blocked, Wait

from . import failures

MINUTE = 60.0
LONGEST_DELAY = 5 * MINUTE
ASK = "ask for a fresh try with a new value of the annotation moorage.dev/reconcile-at"
_TRIES: dict[failures.Cure, float] = {
    failures.Cure.TIME: math.inf,
    failures.Cure.CLUSTER: 3,
    failures.Cure.INPUT: 1,
    failures.Cure.UNKNOWN: 10,
}
"""After so many the failure is taken for a lasting one."""


def run_deadline(policy: observation.Policy) -> float:
    """Seconds after which a run is stopped: helm has ended before, by its own hand."""
    return policy.run_limit + MINUTE


def is_lasting(word: str, tries: int) -> bool:
    """Whether trying again unchanged has no prospect."""
    return max(1, tries) >= _TRIES[failures.cure(word)]


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
    record = freshness.value_of(r.record)
    if record is None or record.status != "failed" or record.revision != last.revision or record.attempt != last.id:
        return None
    return record.failure, record.description


def wait_for_retry(r: ReleaseSeen, action: str) -> Wait | None:
    """The wait after a failed run, or None when it is time, or when there is something new to try."""
    left = _left(r, action)
    if left <= 0:
        return None
    last = r.status.attempt
    message = f"{last.message}; tried again at {last.retry_at}"
    return Wait(failures.FailureKind.of(last.reason), message, on="time", within=60 * MINUTE, again=left)


def wait_for_former(r: ReleaseSeen) -> Wait | None:
    """The wait for a helm of a former leader to be surely over, where its record says that it was at work."""
    record = freshness.value_of(r.record)
    if record is None or record.status not in observation.PENDING or r.settles_in <= 0:
        return None
    message = f"revision {record.revision} was left {record.status} by a former process of moorage, which was lost"
    return Wait(Reason.INTERRUPTED, message, on="time", within=MINUTE, again=r.settles_in)


def stuck_uninstall(r: ReleaseSeen) -> Wait | Blocked | None:
    """As `wait_for_retry`; what time alone won't mend blocks, with the ways out, though it is tried again seldom."""
    last = r.status.attempt
    if last.action != "uninstall" or not is_lasting(last.reason, last.tries):
        return wait_for_retry(r, "uninstall")
    is_hook = last.reason == failures.FailureKind.HOOK_FAILED
    if _left(r, "uninstall") <= 0 or (is_hook and not r.policy.delete_hooks):
        return None
    ways = way_out(last.reason, last.message)
    ways = f"mend what the hook needs and {ASK}, or {NO_HOOKS}" if is_hook else ways
    return Blocked(failures.FailureKind.of(last.reason), last.message, f"{ways}, or {LEAVE_IT}")


NO_HOOKS = "have it removed without hooks by the annotation moorage.dev/on-delete=NoHooks"
LEAVE_IT = "leave all that is left in place by moorage.dev/on-delete=Orphan"


def way_out(word: str, message: str) -> str:
    """What a person can do about a lasting failure of a run, or of a look."""
    refusal = failures.refusal(message)
    if word == failures.FailureKind.FORBIDDEN and refusal is not None:
        return f"{missing(refusal.rule)}, then {ASK}"
    why = decision.next_of(failures.FailureKind.of(word)) or decision.next_of(object_reasons.of_object(word))
    return f"{why}; change the spec, or {ASK}"


def missing(rules: str) -> str:
    """How rights for kinds that charts seldom hold are given."""
    return f"an administrator adds {rules} to the system's extraTenantRules, in the values of moorage's chart"


def _left(r: ReleaseSeen, action: str) -> float:
    last = r.status.attempt
    if last.action != action or not last.retry_at or (action == "upgrade" and last.digest != r.desired):
        return 0.0
    left = conditions.epoch(last.retry_at) - r.now
    return left if left <= LONGEST_DELAY + conditions.SKEW else 0.0  # that far away: a clock was set back since


def begin(r: ReleaseSeen, action: str, digest: str, revision: int) -> release_status.Attempt:
    """The attempt to write down before a run on top of `revision`; its id is in the record that the run makes."""
    last = r.status.attempt
    again = (last.action, last.digest) == (action, digest) and bool(last.reason)
    tries = last.tries + 1 if again else 1
    text = f"{r.owner.uid}/{action}/{digest}/{revision}/{tries}/{r.now}"
    return release_status.Attempt(
        id=hashlib.blake2b(text.encode(), digest_size=8).hexdigest(),
        action=action,
        digest=digest,
        revision=revision if action == "uninstall" else revision + 1,
        started=conditions.timestamp(r.now),
        tries=tries,
    )


def run(r: ReleaseSeen, task: str, attempt: release_status.Attempt, args: dict[str, object]) -> decision.Run:
    """The action that starts the attempt; nobody but the claim's owner may."""
    return decision.Run(
        why=f"{verb(task)} {r.target.release}",
        require=(decision.Guard("claim_is_mine", {"uid": r.owner.uid}),),
        task=task,
        lane=r.target.lane,
        args={"attempt": attempt.id, **args},
        deadline=run_deadline(r.policy),
    )


def verb(task: str) -> str:
    """What a task is called to people."""
    return task.rpartition(".")[2]
