"""The steps that every helm-backed kind shares: from a claimed name to ready objects.

Read top to bottom, this is what happens to a release, in which order, and what is waited for. `deletion` has the way
back to nothing, `facts` the conditions. Pure.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from moorage.api import builtin, conditions
from moorage.children import readiness
from moorage.children import reasons as object_reasons
from moorage.runtime import backoff, decision, freshness, tasks
from moorage.runtime.decision import DONE, Act, Blocked, Verdict, Wait

from . import observation, release_status
from .observation import HasRelease, ReleaseSeen
from .reasons import Reason
from .release import claim, surplus
from .runs import attempts, failures

MINUTE = 60.0
FOREIGN_HELM_MAY_TAKE = 10 * MINUTE
RETRY_BASE, RETRY_CAP = 5.0, attempts.LONGEST_DELAY
RECORD_LAG = 10.0
"""Seconds for which a watch may be behind a helm that has ended."""


def release_is_claimed(it: HasRelease) -> Verdict:
    """One owner per release: the claim is created before anything else, and only its owner goes on."""
    r = it.release
    if isinstance(r.claim, freshness.Failed):
        return claim.unread(r.target, r.claim)
    held = freshness.value_of(r.claim)
    if held is None:
        return _claim_it(r)
    if held.is_of(r.owner):
        return DONE
    if held.is_of_earlier(r.owner):
        patch = claim.patch(r.target, held, "the owner was restored and has a new uid", owner=r.owner)
        return Act(Reason.TAKING_OVER, f"the claim of an earlier {r.owner} is taken over", (patch,))
    return Blocked(
        Reason.CLAIMED,
        f"release {r.target.release} in namespace {r.target.namespace} is claimed by {held.owner}",
        f"rename one of the two, or delete the other; if it is gone for good, delete the ConfigMap "
        f"{claim.name(r.target.release)} there",
    )


def _claim_it(r: ReleaseSeen) -> Verdict:
    if isinstance(r.record, freshness.Failed):
        return record_unread(r.record)
    record = freshness.value_of(r.record)
    if record is not None and not record.mine and not r.policy.adopt:
        return Blocked(
            Reason.FOREIGN_RELEASE,
            f"release {r.target.release} exists in namespace {r.target.namespace} and was not made by moorage",
            "annotate this resource with moorage.dev/adopt=true to take it over, or use another name",
        )
    create = decision.Create(
        why="nobody else may use this release's name", resource=builtin.CONFIG_MAP, body=claim.body(r.target, r.owner)
    )
    return Act(Reason.CLAIMING, f"release {r.target.release} in {r.target.namespace} is claimed", (create,))


def record_unread(failed: freshness.Failed) -> Verdict:
    """What is to be said of a record that could not be read."""
    if failed.transient:
        return decision.unknown(Reason.READING_RECORD, failed, "record")
    fix = (
        "whoever has made or changed that Secret takes that back, or deletes it: then moorage goes on from what is left"
    )
    return Blocked(Reason.RECORD_BROKEN, failed.message, fix)


def no_helm_runs(it: HasRelease) -> Verdict:
    """While helm works for the release, nothing else is done to it. A hook that needs a person is told of at once."""
    match it.release.task:
        case tasks.Running(task=task):
            hooks = "".join(f"; {hook}" for hook in it.release.hooks[:3])
            stuck = (object_reasons.of_object(hook.reason) for hook in it.release.hooks)
            return Wait(
                next((reason for reason in stuck if decision.warns(reason)), Reason.RUNNING_HELM),
                f"helm is at work: {attempts.verb(task)}{hooks}",
                on="task",
                within=attempts.run_deadline(it.release.policy),
                since=it.release.status.attempt.started,
            )
    return DONE


def record_is_seen(it: HasRelease) -> Verdict:
    """Nothing is judged by a record that is older than helm's last run: it would be done a second time."""
    r = it.release
    if isinstance(r.record, freshness.Failed):
        return record_unread(r.record)
    record, last = freshness.value_of(r.record), r.status.attempt
    match r.task:
        case tasks.Ended(attempt=last.id, outcome=decision.Ok(), at=at) if last.action in ("upgrade", "rollback"):
            left = at + RECORD_LAG - r.now
            if 0 < left <= RECORD_LAG and (record is None or record.revision < last.revision):
                message = f"revision {last.revision} is not seen yet"
                return Wait(Reason.READING_RECORD, message, on="record", within=MINUTE, again=left, unseen=True)
    return DONE


def last_run_is_noted(it: HasRelease) -> Verdict:
    """A failed run is written down with helm's words: to be tried again later, or not at all."""
    r = it.release
    last = r.status.attempt
    failure = attempts.failure(r)
    if failure is None or last.reason:
        return DONE
    word, message = failure
    lasting = attempts.is_lasting(word, last.tries)
    delay = RETRY_CAP if lasting else backoff.seconds(last.tries, base=RETRY_BASE, cap=RETRY_CAP)
    again = not lasting or last.action == "uninstall"
    noted = msgspec.structs.replace(
        last, reason=word, message=message, retry_at=conditions.timestamp(r.now + delay) if again else ""
    )
    fields: dict[str, object] = {"attempt": noted, "lastError": message}
    if lasting and last.action == "upgrade":
        fields["failed"] = release_status.FailedDigest(last.digest, word, message)
    if lasting and last.action == "rollback":
        fields["good"] = (
            release_status.Good()
        )  # the way back is closed: history no longer has it, or the cluster refuses it
    reason = failures.FailureKind.of(word)
    return Act(reason, message, (decision.Remember(why="the failure is not forgotten", fields=fields),))


def record_is_not_stuck(it: HasRelease) -> Verdict:
    """A record left pending by a helm that died is set to failed; one that may be alive gets its time."""
    r = it.release
    record = freshness.value_of(r.record)
    if record is None or record.status not in observation.PENDING:
        return DONE
    last = r.status.attempt  # a rollback bears the labels of the revision that it goes back to
    mine = record.revision == last.revision and (
        record.attempt == last.id or (record.status, last.action) == ("pending-rollback", "rollback")
    )
    age = r.now - record.modified
    if not mine and age < FOREIGN_HELM_MAY_TAKE:
        return Wait(
            Reason.ANOTHER_HELM,
            f"revision {record.revision} is {record.status} by somebody else's helm",
            on="record",
            within=FOREIGN_HELM_MAY_TAKE,
            again=FOREIGN_HELM_MAY_TAKE - age,
            since=conditions.timestamp(record.modified),
        )
    if wait := attempts.wait_for_former(r):
        return wait
    unlock = decision.Call(
        why="no helm works on it any more",
        operation="release.unlock",
        args={"secret": record.secret, "uid": record.uid, "resourceVersion": record.resource_version},
    )
    return Act(Reason.UNLOCKING, f"revision {record.revision} was left {record.status} and is set to failed", (unlock,))


def record_stays_inside(it: HasRelease) -> Verdict:
    """A record lies in the tenant's hands: one that names objects of other places is not worked with."""
    r = it.release
    record = freshness.value_of(r.record)
    if record is None or not record.outside:
        return DONE
    return Blocked(
        Reason.REACHES_OUTSIDE,
        f"the record of revision {record.revision} names {', '.join(record.outside[:5])}, outside namespace "
        f"{r.target.namespace}; that is not from moorage",
        f"whoever has changed Secret {record.secret} there takes the change back, or deletes it: then the revision "
        "before is gone on from",
    )


def retry_is_heard(it: HasRelease) -> Verdict:
    """moorage.dev/reconcile-at with a new value forgets failures, so that what failed is tried afresh."""
    r = it.release
    if r.reconcile_at == r.status.reconciled_at:
        return DONE
    fields = {
        "reconciledAt": r.reconcile_at,
        "failed": release_status.FailedDigest(),
        "attempt": release_status.Attempt(),
    }
    remember = decision.Remember(why="a fresh try was asked for", fields=fields)
    return Act(Reason.RETRYING, "failures are forgotten, as a fresh try was asked for", (remember,))


def drift_is_undone(it: HasRelease) -> Verdict:
    """Objects of a deployed release that differ from its record are put right, one write each.

    One whose repair the server refuses keeps nothing else from being done; the fact Drifted tells of it.
    """
    r = it.release
    record = freshness.value_of(r.record)
    if record is None or record.status != "deployed" or not r.policy.enforce:
        return DONE
    drifted = [child for child in freshness.value_of(r.children) or () if child.drift and not child.refusal]
    if not drifted:
        return DONE
    actions = tuple(
        decision.Call(
            why=f"{child.ref} differs in {', '.join(child.drift[:5])}",
            operation="release.restore",
            args={"ref": msgspec.to_builtins(child.ref), "revision": record.revision},
        )
        for child in drifted
    )
    names = ", ".join(f"{c.ref.kind} {c.ref.name} ({', '.join(c.drift[:3])})" for c in drifted[:5])
    return Act(Reason.RESTORING, f"changed by hand, put right: {names}", actions, go_on=True)


def chart_is_chosen(it: HasRelease) -> Verdict:
    """The constraint is resolved once; the exact version and digest are kept in the claim until it changes."""
    r = it.release
    if r.stands_without_chart:
        return DONE  # a registry that is down takes nothing from a release that stands
    if isinstance(r.chart, freshness.Failed):
        return _chart_failed(r.chart)
    held = freshness.value_of(r.claim)
    assert held is not None  # noqa: S101 - the claim comes first
    chart = r.chart.value
    if held.pin is not None and held.pin.wanted == r.wanted:
        return DONE
    patch = claim.patch(r.target, held, "the version must not move by itself", pin=observation.Pin(r.wanted, chart))
    return Act(Reason.CHART_CHOSEN, f"chart {chart.name} {chart.version} is used", (patch,))


def _chart_failed(failed: freshness.Failed) -> Verdict:
    if failed.reason == freshness.NOT_YET:
        return decision.unknown(Reason.CHOOSING_CHART, failed, "chart")
    if failed.transient:
        return Wait(Reason.CHART_UNREACHABLE, failed.message, on="chart", within=10 * MINUTE)
    return Blocked(failed.reason, failed.message, decision.next_of(failed.reason) or "correct spec or chart source")


def chart_renders(it: HasRelease) -> Verdict:
    """The values fit the chart's schema, and all that it renders stays inside the namespace."""
    render = it.release.render
    if it.release.stands_without_chart:
        return DONE
    if isinstance(render, freshness.Failed):
        if render.reason == freshness.NOT_YET:
            return decision.unknown(Reason.RENDERING, render, "render")
        if render.transient:
            return Wait(render.reason, render.message, on="render", within=10 * MINUTE)
        fix = decision.next_of(render.reason) or "correct the configuration or the chart"
        return Blocked(render.reason, render.message, fix)
    problems = render.value.problems
    for reason in _PROBLEMS:
        if found := [problem for problem in problems if problem.kind.reason == reason]:
            return Blocked(reason, "; ".join(problem.message for problem in found[:5]), decision.next_of(reason))
    return DONE


_PROBLEMS = (Reason.REACHES_OUTSIDE, Reason.CHART_INVALID, failures.FailureKind.UNKNOWN_KIND)
"""What objects can have that can't be made, in the order in which it is told."""


def rights_suffice(it: HasRelease) -> Verdict:
    """Helm is not begun for what the role of the namespace's account does not let it make."""
    r = it.release
    if isinstance(r.missing_rules, freshness.Failed):
        return decision.unknown(Reason.RENDERING, r.missing_rules, "rights")
    if not r.missing_rules.value:
        return DONE
    rules = ", ".join(r.missing_rules.value)
    message = f"the account that helm works with in namespace {r.target.namespace} has no rights by {rules}"
    return Blocked(
        failures.FailureKind.FORBIDDEN, message, f"{attempts.missing(rules)}; it is asked again every minute"
    )


def failed_digest_is_left_alone(it: HasRelease) -> Verdict:
    """What failed for good is not tried in a loop; the last good revision is restored if the policy says so."""
    r = it.release
    failed, good = r.status.failed, r.status.good
    if not failed.digest or failed.digest != r.desired:
        return DONE
    record = freshness.value_of(r.record)
    can_go_back = record is not None and good.revision and good.digest != failed.digest
    if r.policy.rollback and can_go_back and not r.is_rolled_back:
        if wait := attempts.wait_for_retry(r, "rollback"):
            return wait
        attempt = attempts.begin(r, "rollback", good.digest, record.revision if record else 0)
        fields = {"attempt": attempt, "failed": msgspec.structs.replace(failed, rolled_back_to=good.revision)}
        run = attempts.run(r, "release.rollback", attempt, {"to": good.revision})
        return Act(
            Reason.ROLLING_BACK,
            f"{failed.message}; revision {good.revision} is restored",
            (decision.Remember(why="a run is written down before it begins", fields=fields), run),
        )
    told = f"{failed.reason}: {failed.message}"
    reason: str = Reason.UPGRADE_FAILED
    if failed.reason in _TOLD_BY_THEMSELVES:
        reason, told = failures.FailureKind.of(failed.reason), failed.message
    return Blocked(reason, f"{told}{_went_back(r)}", attempts.way_out(failed.reason, failed.message))


_TOLD_BY_THEMSELVES = frozenset(
    {failures.FailureKind.OUTSIDE, failures.FailureKind.FORBIDDEN, failures.FailureKind.UNKNOWN_KIND}
)


def _went_back(r: ReleaseSeen) -> str:
    """What became of going back to the last good revision."""
    last = r.status.attempt
    if r.is_rolled_back:
        return f"; revision {r.status.failed.rolled_back_to} was restored"
    if (last.action, bool(last.reason)) == ("rollback", True):
        return f"; going back failed too: {last.reason}: {last.message}"
    return ""


def release_is_current(it: HasRelease) -> Verdict:
    """Helm runs only when the digest of chart and values changed, or the release was changed by hand."""
    r = it.release
    if isinstance(r.record, freshness.Failed):
        return record_unread(r.record)
    record, desired = freshness.value_of(r.record), r.desired
    if r.is_current and (r.is_ours or not r.policy.enforce):  # a hand-made revision may stay where drift is not undone
        return DONE
    if record is not None and record.status == "failed" and desired == r.status.good.digest:
        return _good_again(r, record)
    if wait := attempts.wait_for_retry(r, "upgrade"):
        return wait
    held, render = freshness.value_of(r.claim), freshness.value_of(r.render)
    assert held is not None and render is not None  # noqa: S101, PT018 - both steps come first
    attempt = attempts.begin(r, "upgrade", desired, record.revision if record else 0)
    inventory = claim.union(held.inventory, render.inventory)
    reason, message = _why(r, record, desired)
    fields: dict[str, object] = {"attempt": attempt}
    installed = record is not None and record.installed
    if record is None:
        fields["good"] = release_status.Good()  # the history begins anew, as after the end of the namespace
    task = "release.upgrade" if installed else "release.install"
    return Act(
        reason,
        message,
        (
            decision.Remember(why="a run is written down before it begins", fields=fields),
            claim.patch(r.target, held, "all that the run may create is written down first", inventory=inventory),
            attempts.run(r, task, attempt, {"digest": desired, "adopt": r.policy.adopt}),
        ),
    )


def _good_again(r: ReleaseSeen, record: observation.RecordSeen) -> Verdict:
    """The spec says again what was good before an upgrade failed: it is restored as it was, not rendered anew."""
    if wait := attempts.wait_for_retry(r, "rollback"):
        return wait
    good = r.status.good
    attempt = attempts.begin(r, "rollback", good.digest, record.revision)
    failed = msgspec.structs.replace(r.status.failed, rolled_back_to=good.revision)
    return Act(
        Reason.ROLLING_BACK,
        f"the spec is what revision {good.revision} was made of, which is restored",
        (
            decision.Remember(
                why="a run is written down before it begins", fields={"attempt": attempt, "failed": failed}
            ),
            attempts.run(r, "release.rollback", attempt, {"to": good.revision}),
        ),
    )


def _why(r: ReleaseSeen, record: observation.RecordSeen | None, desired: str) -> tuple[str, str]:
    chart = freshness.value_of(r.chart)
    what = f"release {r.target.release} with chart {chart.name} {chart.version}" if chart else r.target.release
    if record is None:
        return Reason.INSTALLING, f"{what} is installed"
    if not record.installed:
        return Reason.INSTALLING, f"{what} is installed; revision {record.revision} ({record.status}) never was"
    if record.digest == desired and record.status == "deployed":
        return Reason.REVERTING, f"revision {record.revision} was made by hand; {what} is put back"
    return Reason.UPGRADING, f"{what} is upgraded from revision {record.revision} ({record.status})"


def inventory_is_exact(it: HasRelease) -> Verdict:
    """Objects that left the chart are gone before the inventory forgets them."""
    r = it.release
    held, record = freshness.value_of(r.claim), freshness.value_of(r.record)
    assert held is not None  # noqa: S101 - the claim comes first
    if record is None or record.digest != r.desired:
        return DONE
    if not surplus.surplus(held, record):
        return DONE
    if wait := surplus.go(r, Reason.PRUNING):
        return wait
    patch = claim.patch(r.target, held, "what left the chart is gone", inventory=record.inventory)
    return Act(Reason.INVENTORY, "the inventory matches the release again", (patch,), go_on=True)


def children_are_ready(it: HasRelease) -> Verdict:
    """Ready means that the pods run; otherwise the message names the object and its own words."""
    r = it.release
    if isinstance(r.children, freshness.Failed):
        return decision.unknown(Reason.LOOKING, r.children, "children")
    record, good, limit = freshness.value_of(r.record), r.status.good, r.policy.ready_timeout
    left = record.updated + limit - r.now if record else 0.0
    verdict = readiness.are_ready(r.children.value, within=limit, again=max(left, 0.0))
    if not isinstance(verdict, Wait):
        return verdict
    reason, message = verdict.reason, verdict.message
    late = record is not None and left <= 0
    undone = late and reason not in readiness.NOBODYS_FAULT and r.policy.rollback
    if undone and good.revision and good.digest != r.desired:
        failed = release_status.FailedDigest(r.desired, str(reason), message)
        remember = decision.Remember(why="it is not tried in a loop", fields={"failed": failed, "lastError": message})
        return Act(Reason.NOT_READY_IN_TIME, f"not ready within {limit:g} s: {message}", (remember,))
    return verdict


STEPS: tuple[Callable[[HasRelease], Verdict], ...] = (
    release_is_claimed,
    no_helm_runs,
    record_is_seen,
    last_run_is_noted,
    record_is_not_stuck,
    record_stays_inside,
    retry_is_heard,
    drift_is_undone,
    chart_is_chosen,
    chart_renders,
    rights_suffice,
    failed_digest_is_left_alone,
    release_is_current,
    inventory_is_exact,
    children_are_ready,
)
