"""The steps and facts that every helm-backed kind shares: from a claimed name to ready objects, and back to nothing.

Read top to bottom, this is what happens to a release, in which order, and what is waited for. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec

from moorage.api import conditions, kinds
from moorage.runtime import decision, observed, tasks
from moorage.runtime.decision import DONE, Act, Blocked, Fact, Verdict, Wait

from . import claim, failures, manifest, seen, status
from .reasons import Reason
from .seen import HasRelease, ReleaseSeen

MINUTE = 60.0
FOREIGN_HELM_MAY_TAKE = 10 * MINUTE
RUN_DEADLINE = 10 * MINUTE
RETRY_BASE, RETRY_CAP = 5.0, 5 * MINUTE


# --- the name is ours ------------------------------------------------------------------------------------------------


def release_is_claimed(it: HasRelease) -> Verdict:
    """One owner per release: the claim is created before anything else, and only its owner goes on."""
    r = it.release
    if isinstance(r.claim, observed.Failed):
        return _unknown(Reason.CLAIM_UNREADABLE, r.claim, "claim")
    held = observed.value_of(r.claim)
    if held is None:
        return _claim_it(r)
    if held.owner.uid == r.owner.uid:
        return DONE
    if msgspec.structs.replace(held.owner, uid="") == msgspec.structs.replace(r.owner, uid=""):
        patch = _patch_claim(r, held, "the owner was restored and has a new uid", owner=r.owner)
        return Act(Reason.TAKING_OVER, f"the claim of an earlier {r.owner} is taken over", (patch,))
    return Blocked(
        Reason.CLAIMED,
        f"release {r.target.release} in namespace {r.target.namespace} is claimed by {held.owner}",
        f"rename one of the two, or delete the other; if it is gone for good, delete the ConfigMap "
        f"{claim.name(r.target.release)} there",
    )


def _claim_it(r: ReleaseSeen) -> Verdict:
    if isinstance(r.record, observed.Failed):
        return _unknown(Reason.READING_RECORD, r.record, "record")
    record = observed.value_of(r.record)
    if record is not None and not record.mine and not r.policy.adopt:
        return Blocked(
            Reason.FOREIGN_RELEASE,
            f"release {r.target.release} exists in namespace {r.target.namespace} and was not made by moorage",
            "annotate this resource with moorage.dev/adopt=true to take it over, or use another name",
        )
    create = decision.Create(
        why="nobody else may use this release's name", resource=kinds.CONFIG_MAP, body=claim.body(r.target, r.owner)
    )
    return Act(Reason.CLAIMING, f"release {r.target.release} in {r.target.namespace} is claimed", (create,))


# --- helm is at rest, and its last run is accounted for ----------------------------------------------------------------


def no_helm_runs(it: HasRelease) -> Verdict:
    """While helm works for the release, nothing else is done to it."""
    match it.release.task:
        case tasks.Running(task=task):
            return Wait(Reason.RUNNING_HELM, f"helm is at work: {_verb(task)}", on="task", within=RUN_DEADLINE)
    return DONE


def last_run_is_noted(it: HasRelease) -> Verdict:
    """A failed run is written down with helm's words: to be tried again later, or not at all."""
    r = it.release
    last = r.status.attempt
    failure = _failure(r)
    if failure is None or last.reason:
        return DONE
    word, message = failure
    transient = failures.is_transient(word) or last.action != "upgrade"
    delay = min(RETRY_CAP, RETRY_BASE * 2 ** max(0, last.tries - 1))
    noted = msgspec.structs.replace(
        last, reason=word, message=message, retry_at=conditions.timestamp(r.now + delay) if transient else ""
    )
    fields: dict[str, object] = {"attempt": noted, "lastError": message}
    if not transient:
        fields["failed"] = status.FailedDigest(last.digest, word, message)
    return Act(word, message, (decision.Remember(why="the failure is not forgotten", fields=fields),))


def record_is_not_stuck(it: HasRelease) -> Verdict:
    """A record left pending by a helm that died is set to failed; somebody else's live helm gets its time."""
    r = it.release
    record = observed.value_of(r.record)
    if record is None or record.status not in seen.PENDING:
        return DONE
    mine = record.attempt == r.status.attempt.id and record.revision == r.status.attempt.revision
    age = r.now - record.modified
    if not mine and age < FOREIGN_HELM_MAY_TAKE:
        return Wait(
            Reason.ANOTHER_HELM,
            f"revision {record.revision} is {record.status} by somebody else's helm",
            on="record",
            within=FOREIGN_HELM_MAY_TAKE,
            again=FOREIGN_HELM_MAY_TAKE - age,
        )
    unlock = decision.Call(
        why="no helm works on it any more",
        operation="release.unlock",
        args={"secret": record.secret, "uid": record.uid, "resourceVersion": record.resource_version},
    )
    return Act(Reason.UNLOCKING, f"revision {record.revision} was left {record.status} and is set to failed", (unlock,))


def retry_is_heard(it: HasRelease) -> Verdict:
    """moorage.dev/reconcile-at with a new value forgets failures, so that what failed is tried afresh."""
    r = it.release
    if r.reconcile_at == r.status.reconciled_at:
        return DONE
    fields = {"reconciledAt": r.reconcile_at, "failed": status.FailedDigest(), "attempt": status.Attempt()}
    remember = decision.Remember(why="a fresh try was asked for", fields=fields)
    return Act(Reason.RETRYING, "failures are forgotten, as a fresh try was asked for", (remember,))


# --- what was changed by hand ------------------------------------------------------------------------------------------


def drift_is_undone(it: HasRelease) -> Verdict:
    """Objects of a deployed release that differ from its record are put right, one write each."""
    r = it.release
    record = observed.value_of(r.record)
    if record is None or record.status != "deployed" or not r.policy.enforce:
        return DONE
    drifted = [child for child in observed.value_of(r.children) or () if child.drift]
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


# --- the chart and what it renders -------------------------------------------------------------------------------------


def chart_is_chosen(it: HasRelease) -> Verdict:
    """The constraint is resolved once; the exact version and digest are kept in the claim until it changes."""
    r = it.release
    if isinstance(r.chart, observed.Failed):
        return _chart_failed(r.chart)
    held = observed.value_of(r.claim)
    assert held is not None  # noqa: S101 - the claim comes first
    chart = r.chart.value
    if held.pin is not None and held.pin.wanted == r.wanted:
        return DONE
    patch = _patch_claim(r, held, "the version must not move by itself", pin=seen.Pin(r.wanted, chart))
    return Act(Reason.CHART_CHOSEN, f"chart {chart.name} {chart.version} is used", (patch,))


def _chart_failed(failed: observed.Failed) -> Verdict:
    if failed.reason == observed.NOT_YET:
        return _unknown(Reason.CHOOSING_CHART, failed, "chart")
    if failed.transient:
        return Wait(Reason.CHART_UNREACHABLE, failed.message, on="chart", within=10 * MINUTE)
    return Blocked(failed.reason, failed.message, "correct spec or chart source, it is looked at again on any change")


def chart_renders(it: HasRelease) -> Verdict:
    """The values fit the chart's schema, and all that it renders stays inside the namespace."""
    render = it.release.render
    if isinstance(render, observed.Failed):
        if render.reason == observed.NOT_YET:
            return _unknown(Reason.RENDERING, render, "render")
        if render.transient:
            return Wait(render.reason, render.message, on="render", within=10 * MINUTE)
        return Blocked(render.reason, render.message, "correct the configuration or the chart")
    if problems := render.value.problems:
        return Blocked(Reason.REACHES_OUTSIDE, "; ".join(problems[:5]), "use a chart or values without these objects")
    return DONE


# --- the release -------------------------------------------------------------------------------------------------------


def failed_digest_is_left_alone(it: HasRelease) -> Verdict:
    """What failed for good is not tried in a loop; the last good revision is restored if the policy says so."""
    r = it.release
    failed, good = r.status.failed, r.status.good
    if not failed.digest or failed.digest != _desired(r):
        return DONE
    record = observed.value_of(r.record)
    if r.policy.rollback and good.revision and good.digest != failed.digest and not _is_rolled_back(r):
        if wait := _wait_for_retry(r, "rollback"):
            return wait
        attempt = _attempt(r, "rollback", good.digest, record.revision if record else 0)
        fields = {"attempt": attempt, "failed": msgspec.structs.replace(failed, rolled_back_to=good.revision)}
        run = _run(r, "release.rollback", attempt, {"to": good.revision})
        return Act(
            Reason.ROLLING_BACK,
            f"{failed.message}; revision {good.revision} is restored",
            (decision.Remember(why="a run is written down before it begins", fields=fields), run),
        )
    back = f"; revision {failed.rolled_back_to} was restored" if failed.rolled_back_to else ""
    return Blocked(
        Reason.UPGRADE_FAILED,
        f"{failed.reason}: {failed.message}{back}",
        "change the spec, or ask for a fresh try with the annotation moorage.dev/reconcile-at",
    )


def release_is_current(it: HasRelease) -> Verdict:
    """Helm runs only when the digest of chart and values changed, or the release was changed by hand."""
    r = it.release
    if isinstance(r.record, observed.Failed):
        return _unknown(Reason.READING_RECORD, r.record, "record")
    record, desired = observed.value_of(r.record), _desired(r)
    if record is not None and record.status == "deployed" and record.digest == desired:
        if record.mine or not r.policy.enforce:
            return DONE
    if wait := _wait_for_retry(r, "upgrade"):
        return wait
    held, render = observed.value_of(r.claim), observed.value_of(r.render)
    assert held is not None and render is not None  # noqa: S101, PT018 - both steps come first
    attempt = _attempt(r, "upgrade", desired, record.revision if record else 0)
    inventory = claim.union(held.inventory, render.inventory)
    reason, message = _why(r, record, desired)
    return Act(
        reason,
        message,
        (
            decision.Remember(why="a run is written down before it begins", fields={"attempt": attempt}),
            _patch_claim(r, held, "all that the run may create is written down first", inventory=inventory),
            _run(r, "release.upgrade", attempt, {"digest": desired, "adopt": r.policy.adopt}),
        ),
    )


def _why(r: ReleaseSeen, record: seen.RecordSeen | None, desired: str) -> tuple[str, str]:
    chart = observed.value_of(r.chart)
    what = f"release {r.target.release} with chart {chart.name} {chart.version}" if chart else r.target.release
    if record is None:
        return Reason.INSTALLING, f"{what} is installed"
    if record.digest == desired and record.status == "deployed":
        return Reason.REVERTING, f"revision {record.revision} was made by hand; {what} is put back"
    return Reason.UPGRADING, f"{what} is upgraded from revision {record.revision} ({record.status})"


def inventory_is_exact(it: HasRelease) -> Verdict:
    """Objects that left the chart are gone before the inventory forgets them."""
    r = it.release
    held, record = observed.value_of(r.claim), observed.value_of(r.record)
    assert held is not None  # noqa: S101 - the claim comes first
    if record is None or record.digest != _desired(r):
        return DONE
    if not surplus(held, record):
        return DONE
    if wait := _leftovers_go(r, Reason.PRUNING):
        return wait
    patch = _patch_claim(r, held, "what left the chart is gone", inventory=record.inventory)
    return Act(Reason.INVENTORY, "the inventory matches the release again", (patch,), go_on=True)


def surplus(held: seen.ClaimSeen, record: seen.RecordSeen | None) -> tuple[manifest.InventoryItem, ...]:
    """What the claim lists beyond the record, `keep` objects aside: it must be gone."""
    recorded = {item.ref for item in record.inventory} if record else set()
    return tuple(item for item in held.inventory if item.ref not in recorded and not item.keep)


def children_are_ready(it: HasRelease) -> Verdict:
    """Ready means that the pods run; otherwise the message names the object and its own words."""
    r = it.release
    if isinstance(r.children, observed.Failed):
        return _unknown(Reason.LOOKING, r.children, "children")
    weak = next((child for child in r.children.value if not child.ready), None)
    if weak is None:
        return DONE
    message = f"{weak.ref.kind} {weak.ref.name}: {weak.message}"
    record, good = observed.value_of(r.record), r.status.good
    late = record is not None and r.now - record.updated >= r.policy.ready_timeout
    if late and r.policy.rollback and good.revision and good.digest != _desired(r):
        failed = status.FailedDigest(_desired(r), weak.reason, message)
        remember = decision.Remember(why="it is not tried in a loop", fields={"failed": failed, "lastError": message})
        return Act(Reason.NOT_READY_IN_TIME, f"not ready within {r.policy.ready_timeout:g} s: {message}", (remember,))
    left = record.updated + r.policy.ready_timeout - r.now if record else 0.0
    return Wait(weak.reason, message, on="children", within=r.policy.ready_timeout, again=max(left, 0.0))


# --- leaving -----------------------------------------------------------------------------------------------------------


def orphaning_is_honoured(it: HasRelease) -> Verdict:
    """With moorage.dev/on-delete=Orphan everything stays, and only the claim is given up."""
    r = it.release
    if not r.policy.orphan:
        return DONE
    held = observed.value_of(r.claim)
    give_up = (_delete_claim(r, held),) if held is not None and held.owner.uid == r.owner.uid else ()
    return Act(Reason.ORPHANING, "the release stays, as asked", (*give_up, _finalizer_goes("the release is orphaned")))


def claim_is_known(it: HasRelease) -> Verdict:
    """Only the claim says what there is to remove: without it, or with another's, there is nothing of ours."""
    r = it.release
    if isinstance(r.claim, observed.Failed):
        return _unknown(Reason.CLAIM_UNREADABLE, r.claim, "claim")
    held = observed.value_of(r.claim)
    if held is not None and held.owner.uid == r.owner.uid:
        return DONE
    if held is not None and msgspec.structs.replace(held.owner, uid="") == msgspec.structs.replace(r.owner, uid=""):
        patch = _patch_claim(r, held, "the owner was restored and has a new uid", owner=r.owner)
        return Act(Reason.TAKING_OVER, f"the claim of an earlier {r.owner} is taken over", (patch,))
    guard = decision.Guard("claim_is_not_mine", {"uid": r.owner.uid})
    return Act(
        Reason.LEAVING, "no release is claimed by this resource", (_finalizer_goes("nothing is claimed", guard),)
    )


def release_is_uninstalled(it: HasRelease) -> Verdict:
    """Helm uninstalls what has a record, in the namespace it was installed in."""
    r = it.release
    if isinstance(r.record, observed.Failed):
        return _unknown(Reason.READING_RECORD, r.record, "record")
    record = observed.value_of(r.record)
    if record is None:
        return DONE
    if wait := _wait_for_retry(r, "uninstall"):
        return wait
    attempt = _attempt(r, "uninstall", record.digest, record.revision)
    run = _run(r, "release.uninstall", attempt, {}, decision.Guard("claim_is_mine", {"uid": r.owner.uid}))
    return Act(
        Reason.UNINSTALLING,
        f"release {r.target.release} (revision {record.revision}) is uninstalled",
        (decision.Remember(why="a run is written down before it begins", fields={"attempt": attempt}), run),
    )


def leftovers_are_gone(it: HasRelease) -> Verdict:
    """Hook objects, and what a lost record can't name: all of the inventory must be gone."""
    return _leftovers_go(it.release, Reason.SWEEPING) or DONE


def owner_may_go(it: HasRelease) -> Verdict:
    """Nothing is left: the claim goes, then the finalizer."""
    r = it.release
    held = observed.value_of(r.claim)
    assert held is not None  # noqa: S101 - claim_is_known comes first
    guard = decision.Guard("release_is_gone", {"uid": r.owner.uid})
    return Act(
        Reason.LEAVING,
        "nothing is left of the release",
        (msgspec.structs.replace(_delete_claim(r, held), require=(guard,)), _finalizer_goes("nothing is left")),
    )


# --- facts -------------------------------------------------------------------------------------------------------------


def released(it: HasRelease) -> Fact:
    """Released: the deployed revision is what the spec says."""
    r = it.release
    record = observed.value_of(r.record)
    if record is None:
        unknown = isinstance(r.record, observed.Failed)
        return Fact("Released", None if unknown else False, Reason.NOT_RELEASED, "there is no release yet")
    what = f"revision {record.revision} is {record.status}"
    if record.status == "deployed" and record.digest == _desired(r):
        return Fact("Released", True, Reason.RELEASED, what)
    return Fact("Released", False, Reason.NOT_RELEASED, what)


def drifted(it: HasRelease) -> Fact:
    """Drifted: objects, or the release itself, were changed by hand and are not yet put right."""
    r = it.release
    record = observed.value_of(r.record)
    changed = [str(c.ref) for c in observed.value_of(r.children) or () if c.drift]
    if record is not None and record.status == "deployed" and not record.mine and not _is_rolled_back(r):
        changed.insert(0, f"revision {record.revision} was made by hand")
    if changed:
        return Fact("Drifted", True, Reason.DRIFTED, ", ".join(changed[:10]))
    return Fact("Drifted", False, Reason.IN_SYNC, "")


def available(it: HasRelease) -> Fact:
    """Available: all recorded objects are ready, whether or not they are what the spec says by now."""
    children = it.release.children
    if isinstance(children, observed.Failed):
        return Fact("Available", None, Reason.LOOKING, children.message)
    weak = next((child for child in children.value if not child.ready), None)
    if weak is not None:
        return Fact("Available", False, weak.reason, f"{weak.ref.kind} {weak.ref.name}: {weak.message}")
    if not children.value:
        return Fact("Available", False, Reason.NOT_RELEASED, "there are no objects yet")
    return Fact("Available", True, Reason.READY, f"{len(children.value)} objects are ready")


def report(r: ReleaseSeen) -> dict[str, object]:
    """The status fields that tell about the release."""
    record, held, children = observed.value_of(r.record), observed.value_of(r.claim), observed.value_of(r.children)
    fields: dict[str, object] = {}
    if held is not None and held.pin is not None and held.owner.uid == r.owner.uid:
        pin = held.pin
        fields["chart"] = status.ChartStatus(
            pin.chart.name, pin.chart.version, pin.chart.digest, pin.wanted.constraint, pin.wanted.source
        )
    if not isinstance(r.record, observed.Failed):
        fields["release"] = (
            status.ReleaseStatus(r.target.release, r.target.namespace, record.revision, record.status, record.digest)
            if record
            else status.ReleaseStatus(r.target.release, r.target.namespace)
        )
    if children is not None:
        counted: dict[str, int] = {}
        for child in children:
            counted[child.ref.kind] = counted.get(child.ref.kind, 0) + 1
        ready = sum(child.ready for child in children)
        fields["inventory"] = status.InventoryStatus(len(children), ready, dict(sorted(counted.items())))
        is_good = record is not None and record.status == "deployed" and record.mine and ready == len(children) > 0
        if is_good and record is not None:
            fields["good"] = status.Good(record.revision, record.digest)
            if record.digest == _desired(r):
                fields["lastError"] = ""
    return fields


# --- shared pieces -----------------------------------------------------------------------------------------------------


def _unknown(reason: Reason, failed: observed.Failed, on: str) -> Wait:
    """A fact that can't be decided on yet; of one that was only not looked at so far, nothing is said."""
    unseen = failed.reason == observed.NOT_YET
    return Wait(reason, failed.message, on=on, within=2 * MINUTE, again=0.0 if unseen else 5.0, unseen=unseen)


def _desired(r: ReleaseSeen) -> str:
    render = observed.value_of(r.render)
    return render.digest if render else ""


def _failure(r: ReleaseSeen) -> tuple[str, str] | None:
    """Why the last attempt failed: from this process's own run, or from the record that a former process left."""
    last = r.status.attempt
    if not last.id:
        return None
    match r.task:
        case tasks.Ended(attempt=last.id, outcome=decision.Refused(reason=reason, message=message)):
            return reason, message
        case tasks.Ended(attempt=last.id, outcome=decision.Unknown(message=message)):
            return failures.FailureKind.OTHER.word, message
        case tasks.Ended(attempt=last.id):
            return None
    record = observed.value_of(r.record)
    if record is None or record.status != "failed" or record.revision != last.revision or record.attempt != last.id:
        return None
    return record.failure, record.description


def _is_rolled_back(r: ReleaseSeen) -> bool:
    record, target = observed.value_of(r.record), r.status.failed.rolled_back_to
    if record is None or not target:
        return False
    return record.status == "deployed" and record.description == f"Rollback to {target}"


def _wait_for_retry(r: ReleaseSeen, action: str) -> Wait | None:
    last = r.status.attempt
    if last.action != action or not last.retry_at or (action == "upgrade" and last.digest != _desired(r)):
        return None
    left = conditions.epoch(last.retry_at) - r.now
    if left <= 0:
        return None
    message = f"{last.message}; tried again at {last.retry_at}"
    return Wait(last.reason, message, on="time", within=60 * MINUTE, again=left)


def _attempt(r: ReleaseSeen, action: str, digest: str, revision: int) -> status.Attempt:
    last = r.status.attempt
    tries = last.tries + 1 if (last.action, last.digest) == (action, digest) else 1
    text = f"{r.owner.uid}/{action}/{digest}/{revision}/{tries}/{r.now}"
    return status.Attempt(
        id=hashlib.blake2b(text.encode(), digest_size=8).hexdigest(),
        action=action,
        digest=digest,
        revision=revision if action == "uninstall" else revision + 1,
        started=conditions.timestamp(r.now),
        tries=tries,
    )


def _run(
    r: ReleaseSeen, task: str, attempt: status.Attempt, args: dict[str, object], *guards: decision.Guard
) -> decision.Run:
    return decision.Run(
        why=f"{_verb(task)} {r.target.release}",
        require=guards or (decision.Guard("claim_is_mine", {"uid": r.owner.uid}),),
        task=task,
        lane=r.target.lane,
        args={"attempt": attempt.id, **args},
        deadline=RUN_DEADLINE,
    )


def _patch_claim(r: ReleaseSeen, held: seen.ClaimSeen, why: str, **changes: object) -> decision.Patch:
    return decision.Patch(
        why=why,
        resource=kinds.CONFIG_MAP,
        ref=claim.ref(r.target, held),
        ops=claim.edit(held, **changes),  # type: ignore[arg-type]
    )


def _delete_claim(r: ReleaseSeen, held: seen.ClaimSeen) -> decision.Delete:
    return decision.Delete(
        why="the release's name is free again",
        resource=kinds.CONFIG_MAP,
        ref=claim.ref(r.target, held),
        resource_version=held.resource_version,
    )


def _finalizer_goes(why: str, *guards: decision.Guard) -> decision.EditFinalizer:
    return decision.EditFinalizer(why=why, present=False, require=guards)


def _leftovers_go(r: ReleaseSeen, reason: Reason) -> Verdict | None:
    if isinstance(r.leftovers, observed.Failed):
        return _unknown(reason, r.leftovers, "leftovers")
    left = r.leftovers.value
    if not left:
        return None
    alive = [item for item in left if not item.terminating]
    if not alive:
        names = ", ".join(str(item.ref) for item in left[:5])
        return Wait(reason, f"{names} still terminating", on="leftovers", within=5 * MINUTE, again=2.0)
    actions = tuple(
        decision.Delete(
            why="it is in the inventory of the release and no longer in the release",
            resource=item.resource,
            ref=item.ref,
            resource_version=item.resource_version,
        )
        for item in alive
    )
    return Act(reason, "removed: " + ", ".join(str(item.ref) for item in alive[:5]), actions)


def _verb(task: str) -> str:
    return task.rpartition(".")[2]


STEPS: tuple[Callable[[HasRelease], Verdict], ...] = (
    release_is_claimed,
    no_helm_runs,
    last_run_is_noted,
    record_is_not_stuck,
    retry_is_heard,
    drift_is_undone,
    chart_is_chosen,
    chart_renders,
    failed_digest_is_left_alone,
    release_is_current,
    inventory_is_exact,
    children_are_ready,
)

FAREWELL: tuple[Callable[[HasRelease], Verdict], ...] = (
    claim_is_known,
    no_helm_runs,
    last_run_is_noted,
    release_is_uninstalled,
    leftovers_are_gone,
    owner_may_go,
)

FACTS: tuple[Callable[[HasRelease], Fact], ...] = (released, drifted, available)
