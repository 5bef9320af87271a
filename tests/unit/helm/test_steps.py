"""What is done to a release in which state. Each test starts from a settled release and changes one thing."""

from __future__ import annotations

import msgspec
import pytest

from moorage.api import conditions, meta
from moorage.children import reasons as object_reasons
from moorage.helm import facts, observation, release_status, steps
from moorage.helm.reasons import Reason
from moorage.helm.release import claim, manifest, surplus
from moorage.helm.runs import failures
from moorage.runtime import decision, freshness, tasks

from . import release_states as states


def decide(release: observation.ReleaseSeen) -> decision.Decision:
    return decision.decide(states.It(release), steps=steps.STEPS)


def stand(release: observation.ReleaseSeen) -> tuple[str, str]:
    """The step at which the list stops, and its reason."""
    standing = decide(release).standing
    assert standing is not None
    return standing.name, str(standing.verdict.reason)  # type: ignore[union-attr]


def kinds_of(release: observation.ReleaseSeen) -> list[str]:
    return [type(action).__name__ for act in decide(release).acts for action in act.actions]


def test_a_settled_release_needs_nothing() -> None:
    made = decide(states.settled())

    assert made.standing is None
    assert made.acts == ()
    assert [step.__name__ for step in steps.STEPS] == [taken.name for taken in made.steps]


def test_the_first_install_is_written_down_before_helm_runs() -> None:
    release = states.nothing()

    assert ("release_is_current", "Installing") == stand(release)
    assert ["Remember", "Patch", "Run"] == kinds_of(release)

    remember, patch, run = states.actions(decide(release).acts[0])
    attempt = remember.fields["attempt"]
    assert ("upgrade", "d1", 1, 1) == (attempt.action, attempt.digest, attempt.revision, attempt.tries)
    assert attempt.id == run.args["attempt"]
    assert run.lane == states.TARGET.lane
    assert [guard.check for guard in run.require] == ["claim_is_mine"]
    inventory = next(op for op in patch.ops if op["path"] == "/data/inventory")
    assert states.INVENTORY == manifest.load_inventory(inventory["value"])
    assert {"op": "test", "path": "/metadata/resourceVersion", "value": "7"} == patch.ops[0]


# --- claims


def test_an_unclaimed_name_is_claimed_by_creation() -> None:
    release = states.nothing(claim=None)

    assert ("release_is_claimed", "Claiming") == stand(release)
    assert ["Create"] == kinds_of(release)


def test_a_name_claimed_by_another_blocks_and_names_it() -> None:
    other = msgspec.structs.replace(states.OWNER, name="other", uid="uid-2")

    made = decide(states.nothing(claim=states.claim(owner=other)))

    verdict = made.standing.verdict  # type: ignore[union-attr]
    assert isinstance(verdict, decision.Blocked)
    assert verdict.reason == Reason.CLAIMED
    assert "Collector default/other" in verdict.message
    assert made.acts == ()


def test_the_claim_of_an_earlier_incarnation_is_taken_over() -> None:
    earlier = msgspec.structs.replace(states.OWNER, uid="uid-0")
    release = states.settled(claim=states.claim(owner=earlier))

    assert ("release_is_claimed", "TakingOver") == stand(release)
    assert ["Patch"] == kinds_of(release)


@pytest.mark.parametrize(("adopt", "expected"), [(False, "ForeignRelease"), (True, "Claiming")])
def test_a_release_that_moorage_did_not_make_is_adopted_only_on_request(adopt: bool, expected: str) -> None:
    foreign = states.record(description="Install complete", attempt="", digest="")

    release = states.settled(claim=None, record=foreign, policy=observation.Policy(adopt=adopt))

    assert ("release_is_claimed", expected) == stand(release)


def test_a_restored_owner_finds_its_release_without_its_status() -> None:
    release = states.settled(status=release_status.HelmStatus())

    assert decide(release).standing is None


# --- runs


def test_while_helm_runs_nothing_is_done() -> None:
    release = states.nothing(task=tasks.Running("release.upgrade", states.NOW))

    assert ("no_helm_runs", "RunningHelm") == stand(release)
    assert [] == kinds_of(release)


def ended(reason: str, message: str = "helm's words") -> tasks.Ended:
    return tasks.Ended("release.upgrade", "a1", states.NOW, decision.Refused(reason, message))


def test_a_transient_failure_is_noted_and_tried_again_later() -> None:
    failed = states.nothing(task=ended("Forbidden"), status=release_status.HelmStatus(attempt=states.ATTEMPT))

    remember = states.actions(decide(failed).acts[0])[0]

    assert "Forbidden" == remember.fields["attempt"].reason
    assert conditions.epoch(remember.fields["attempt"].retry_at) > states.NOW
    assert "failed" not in remember.fields

    noted = release_status.HelmStatus(attempt=remember.fields["attempt"])
    waiting = states.nothing(task=ended("Forbidden"), status=noted)
    assert ("release_is_current", "Forbidden") == stand(waiting)
    assert [] == kinds_of(waiting)

    later = msgspec.structs.replace(waiting, now=states.NOW + 3600)
    assert ["Remember", "Patch", "Run"] == kinds_of(later)


def test_a_clock_that_was_set_back_holds_no_try_up() -> None:
    """Nobody notes a time further away than the longest delay: one that is was noted by another clock."""
    attempt = msgspec.structs.replace(
        states.ATTEMPT, reason="Forbidden", message="no", retry_at=conditions.timestamp(states.NOW + 86400)
    )
    release = states.nothing(status=release_status.HelmStatus(attempt=attempt))
    lagging = states.settled(
        task=tasks.Ended("release.upgrade", "a1", states.NOW + 86400, decision.Ok(1)), record=None, children=()
    )

    assert ["Remember", "Patch", "Run"] == kinds_of(release)
    assert "ReadingRecord" != stand(lagging)[1]


def test_delays_between_tries_grow_and_are_capped() -> None:
    delays = []
    for tries in (1, 2, 3, 20):
        attempt = msgspec.structs.replace(states.ATTEMPT, tries=tries)
        failed = states.nothing(task=ended("Quota"), status=release_status.HelmStatus(attempt=attempt))
        noted = states.actions(decide(failed).acts[0])[0].fields["attempt"]
        delays.append(conditions.epoch(noted.retry_at) - states.NOW)

    assert delays == sorted(delays)
    assert steps.RETRY_CAP == delays[-1]


def test_a_failure_for_good_blocks_the_digest_until_the_spec_changes() -> None:
    failed = states.nothing(task=ended("HookFailed"), status=release_status.HelmStatus(attempt=states.ATTEMPT))
    fields = states.actions(decide(failed).acts[0])[0].fields
    after = release_status.HelmStatus(attempt=fields["attempt"], failed=fields["failed"])

    blocked = states.nothing(task=ended("HookFailed"), status=after)
    changed = states.nothing(
        task=ended("HookFailed"), status=after, render=observation.RenderSeen("d2", states.INVENTORY)
    )

    assert ("failed_digest_is_left_alone", "UpgradeFailed") == stand(blocked)
    assert [] == kinds_of(blocked)
    assert ("release_is_current", "Installing") == stand(changed)


def test_reconcile_at_forgets_failures_once() -> None:
    after = release_status.HelmStatus(
        attempt=states.ATTEMPT, failed=release_status.FailedDigest("d1", "HookFailed", "words")
    )
    asked = states.nothing(status=after, reconcile_at="now")

    remember = states.actions(decide(asked).acts[0])[0]

    assert {
        "reconciledAt": "now",
        "failed": release_status.FailedDigest(),
        "attempt": release_status.Attempt(),
    } == remember.fields
    heard = msgspec.structs.replace(asked, status=release_status.HelmStatus(reconciled_at="now"))
    assert ("release_is_current", "Installing") == stand(heard)


def test_the_failure_of_a_former_process_is_read_from_the_record() -> None:
    broken = states.record(status="failed", description="post-install hook failed", failure="HookFailed")

    release = states.settled(record=broken, status=release_status.HelmStatus(attempt=states.ATTEMPT))

    assert ("last_run_is_noted", "HookFailed") == stand(release)


@pytest.mark.parametrize("pending", ["pending-install", "pending-upgrade", "pending-rollback", "uninstalling"])
def test_a_record_left_pending_by_an_own_run_is_unlocked_at_once(pending: str) -> None:
    release = states.settled(record=states.record(status=pending, description="Initial install underway"))

    assert ("record_is_not_stuck", "Unlocking") == stand(release)
    assert ["Call"] == kinds_of(release)


def test_what_a_lost_process_left_pending_is_not_touched_before_its_helm_is_surely_over() -> None:
    """Law 7: another's interrupted work is taken over only after a full lease's duration."""
    pending = states.record(status="pending-upgrade", description="Preparing upgrade")
    release = states.settled(record=pending, settles_in=9.0)

    assert ("record_is_not_stuck", "Interrupted") == stand(release)
    assert [] == kinds_of(release)
    assert 9.0 == decide(release).standing.verdict.again  # type: ignore[union-attr]


def test_somebody_elses_live_helm_gets_its_time() -> None:
    foreign = states.record(status="pending-upgrade", revision=2, modified=states.NOW - 5)
    fresh = states.settled(record=foreign)
    old = states.settled(record=msgspec.structs.replace(foreign, modified=states.NOW - 3600))

    assert ("record_is_not_stuck", "AnotherHelm") == stand(fresh)
    assert [] == kinds_of(fresh)
    assert ("record_is_not_stuck", "Unlocking") == stand(old)


# --- upgrades and what people do by hand


def test_another_digest_is_an_upgrade() -> None:
    release = states.settled(render=observation.RenderSeen("d2", states.INVENTORY))

    assert ("release_is_current", "Upgrading") == stand(release)
    attempt = states.actions(decide(release).acts[0])[0].fields["attempt"]
    assert (2, "d2", 1) == (attempt.revision, attempt.digest, attempt.tries)


def test_the_inventory_written_ahead_holds_old_and_new_objects() -> None:
    new = manifest.InventoryItem(states.config_map("new"))
    release = states.settled(render=observation.RenderSeen("d2", (new,)))

    patch = states.actions(decide(release).acts[0])[1]

    inventory = next(op["value"] for op in patch.ops if op["path"] == "/data/inventory")
    assert {*states.INVENTORY, new} == set(manifest.load_inventory(inventory))


@pytest.mark.parametrize("description", ["Upgrade complete", "Rollback to 1", "Install complete"])
def test_a_revision_made_by_hand_is_put_back_unless_drift_is_off(description: str) -> None:
    by_hand = states.record(revision=2, description=description)

    assert ("release_is_current", "Reverting") == stand(states.settled(record=by_hand))
    assert decide(states.settled(record=by_hand, policy=observation.Policy(enforce=False))).standing is None


def test_a_release_uninstalled_by_hand_is_installed_again() -> None:
    assert ("release_is_current", "Installing") == stand(states.settled(record=None, children=()))


def test_drift_is_undone_object_by_object_and_the_steps_go_on() -> None:
    drifted = (states.child(states.DEPLOYMENT, drift=("spec.replicas",)), states.child(states.SERVICE))
    release = states.settled(children=drifted)

    made = decide(release)

    assert made.standing is None
    (restore,) = states.actions(made.acts[0])
    assert isinstance(restore, decision.Call)
    assert "release.restore" == restore.operation
    assert states.DEPLOYMENT == msgspec.convert(restore.args["ref"], meta.ObjectRef)
    assert () == decide(states.settled(children=drifted, policy=observation.Policy(enforce=False))).acts


def test_a_repair_that_the_server_refuses_keeps_nothing_else_from_being_done() -> None:
    refused = states.child(states.DEPLOYMENT, drift=("spec.x",), refusal="422 Invalid: both can't be")
    drifted = states.child(states.SERVICE, drift=("spec.ports",))

    made = decide(states.settled(children=(refused, drifted)))

    (restore,) = states.actions(made.acts[0])
    assert isinstance(restore, decision.Call)
    assert states.SERVICE == msgspec.convert(restore.args["ref"], meta.ObjectRef)
    assert () == decide(states.settled(children=(refused,))).acts


def test_a_failed_release_is_not_repaired_object_by_object() -> None:
    drifted = (states.child(drift=("spec.replicas",)),)

    release = states.settled(children=drifted, record=states.record(status="failed", attempt="other"))

    assert "release.restore" not in [getattr(a, "operation", "") for act in decide(release).acts for a in act.actions]


def test_objects_that_left_the_chart_are_removed_before_the_inventory_forgets_them() -> None:
    gone = states.config_map("old")
    held = states.claim(inventory=(*states.INVENTORY, manifest.InventoryItem(gone)))
    live = observation.Leftover(
        msgspec.structs.replace(gone, uid="u"), meta.Resource("", "v1", "ConfigMap", "configmaps"), "3", False
    )

    there = states.settled(claim=held, leftovers=(live,))
    ending = states.settled(claim=held, leftovers=(msgspec.structs.replace(live, terminating=True),))
    away = states.settled(claim=held)

    assert ("inventory_is_exact", "Pruning") == stand(there)
    assert ["Delete"] == kinds_of(there)
    assert ("inventory_is_exact", "Pruning") == stand(ending)
    assert [] == kinds_of(ending)
    assert decide(away).standing is None
    assert ["Patch"] == kinds_of(away)


def test_objects_with_the_keep_policy_are_no_surplus() -> None:
    kept = manifest.InventoryItem(states.config_map("kept"), keep=True)

    assert [] == kinds_of(states.settled(claim=states.claim(inventory=(*states.INVENTORY, kept))))


# --- readiness and rollback


def test_what_is_not_ready_is_named_with_its_own_words() -> None:
    weak = states.child(ready=False, reason="ImagePull", message="image nope:1 can't be pulled")

    made = decide(states.settled(children=(weak,)))

    verdict = made.standing.verdict  # type: ignore[union-attr]
    assert isinstance(verdict, decision.Wait)
    assert ("ImagePull", "Deployment collector-main: image nope:1 can't be pulled") == (verdict.reason, verdict.message)


LATE = {
    "record": states.record(revision=2, digest="d2", updated=states.NOW - 301),
    "render": observation.RenderSeen("d2", states.INVENTORY),
}
WEAK = (states.child(ready=False, reason="ImagePull", message="no"),)


def test_an_upgrade_that_is_not_ready_in_time_is_given_up_and_rolled_back() -> None:
    late = states.settled(children=WEAK, **LATE)
    assert ("children_are_ready", "NotReadyInTime") == stand(late)
    failed = states.actions(decide(late).acts[0])[0].fields["failed"]

    given_up = states.settled(
        children=WEAK, status=release_status.HelmStatus(good=release_status.Good(1, "d1"), failed=failed), **LATE
    )
    assert ("failed_digest_is_left_alone", "RollingBack") == stand(given_up)
    remember, run = states.actions(decide(given_up).acts[0])
    assert 1 == run.args["to"]
    assert 1 == remember.fields["failed"].rolled_back_to

    rolled_back = states.settled(
        record=states.record(revision=3, digest="d1", description="Rollback to 1"),
        render=observation.RenderSeen("d2", states.INVENTORY),
        status=release_status.HelmStatus(good=release_status.Good(1, "d1"), failed=remember.fields["failed"]),
    )
    assert ("failed_digest_is_left_alone", "UpgradeFailed") == stand(rolled_back)
    assert [] == kinds_of(rolled_back)


@pytest.mark.parametrize(
    ("policy", "good"),
    [
        (observation.Policy(rollback=False), release_status.Good(1, "d1")),
        (observation.Policy(), release_status.Good()),
        (observation.Policy(), release_status.Good(2, "d2")),
    ],
    ids=["policy keeps it", "nothing to go back to", "it was ready before"],
)
def test_otherwise_a_release_that_is_not_ready_is_waited_for(
    policy: observation.Policy, good: release_status.Good
) -> None:
    release = states.settled(children=WEAK, policy=policy, status=release_status.HelmStatus(good=good), **LATE)

    assert ("children_are_ready", "ImagePull") == stand(release)
    assert [] == kinds_of(release)


def test_of_several_objects_the_one_is_named_that_somebody_must_mend() -> None:
    """What is only being started comes by itself, once the other has."""
    starting = states.child(ready=False, reason="Starting", message="pod a is being started")

    made = decide(states.settled(children=(starting, *WEAK)))

    assert "ImagePull" == made.standing.verdict.reason  # type: ignore[union-attr]


def test_a_job_that_still_runs_rolls_nothing_back() -> None:
    """Nor is it spoken of before what is late."""
    job = states.child(ready=False, reason="JobRunning", message="1 pods run, it has not completed")
    good = release_status.HelmStatus(good=release_status.Good(1, "d1"))

    assert ("children_are_ready", "JobRunning") == stand(states.settled(children=(job,), status=good, **LATE))
    assert ("children_are_ready", "NotReadyInTime") == stand(states.settled(children=(job, *WEAK), status=good, **LATE))


def test_a_paused_rollout_is_a_persons_to_resume_and_no_fault_of_the_upgrade() -> None:
    """Nothing comes by itself, and going back would not roll out either."""
    paused = (states.child(ready=False, reason="RolloutPaused", message="its rollout is paused"),)

    made = decide(states.settled(children=paused, **LATE))

    verdict = made.standing.verdict  # type: ignore[union-attr]
    assert isinstance(verdict, decision.Blocked)
    assert "kubectl rollout resume deployment collector-main" == verdict.fix


def test_a_pod_on_a_lost_node_is_a_persons_business_and_no_fault_of_the_upgrade() -> None:
    """Going back would not bring the node back."""
    lost = (states.child(ready=False, reason="NodeDown", message="node n1 does not answer", fix="bring node n1 back"),)
    good = release_status.HelmStatus(good=release_status.Good(1, "d1"))

    made = decide(states.settled(children=lost, status=good, **LATE))

    verdict = made.standing.verdict  # type: ignore[union-attr]
    assert isinstance(verdict, decision.Blocked)
    assert (object_reasons.PodReason.NODE_DOWN, "bring node n1 back") == (verdict.reason, verdict.fix)


def test_while_helm_runs_the_hook_that_it_stands_at_is_named() -> None:
    hook = observation.HookSeen(
        meta.ObjectRef("batch/v1", "Job", "acme", "migrate"), "pod migrate-x: ErrImagePull of i:1", "ImagePull"
    )
    running = tasks.Running("release.uninstall", states.NOW)

    made = decide(states.settled(task=running, hooks=(hook,)))

    verdict = made.standing.verdict  # type: ignore[union-attr]
    assert object_reasons.PodReason.IMAGE_PULL is verdict.reason
    assert "helm is at work: uninstall; hook Job migrate: pod migrate-x: ErrImagePull of i:1" == verdict.message


# --- what can't be seen


@pytest.mark.parametrize("fact", ["claim", "chart", "render", "record", "children"])
def test_what_was_not_looked_at_yet_is_waited_for_and_nothing_is_said(fact: str) -> None:
    made = decide(states.settled(**{fact: freshness.not_yet(fact)}))

    verdict = made.standing.verdict  # type: ignore[union-attr]
    assert isinstance(verdict, decision.Wait)
    assert verdict.unseen
    assert made.acts == ()


@pytest.mark.parametrize("fact", ["claim", "chart", "render", "record", "children"])
def test_what_can_not_be_seen_is_said(fact: str) -> None:
    made = decide(states.settled(**{fact: freshness.Failed("Unavailable", "the words")}))

    verdict = made.standing.verdict  # type: ignore[union-attr]
    assert isinstance(verdict, decision.Wait)
    assert not verdict.unseen
    assert "the words" in verdict.message


def test_a_chart_that_reaches_outside_is_refused_before_helm_runs() -> None:
    problem = manifest.Problem(manifest.ProblemKind.CLUSTER_SCOPED, "ClusterRole x", "it is of the whole cluster")
    render = observation.RenderSeen("d2", (), (problem,))

    release = states.settled(render=render)

    assert ("chart_renders", "ReachesOutside") == stand(release)
    assert [] == kinds_of(release)


def test_a_new_constraint_is_resolved_and_pinned() -> None:
    release = states.settled(
        wanted=observation.Wanted("collector", "^2", "default"),
        chart=observation.ChartSeen("collector", "2.1.0", "sha256:e"),
    )

    assert ("chart_is_chosen", "ChartChosen") == stand(release)
    (patch,) = states.actions(decide(release).acts[0])
    assert any(op["path"] == "/data/chart" for op in patch.ops)


STANDS = {
    "chart": freshness.Failed("ChartUnreachable", "registry down"),
    "render": freshness.not_yet("render"),
    "released_before": True,
    "status": release_status.HelmStatus(
        attempt=states.ATTEMPT, release=release_status.ReleaseStatus("collector-main", "acme", 1, "deployed", "d1")
    ),
}


def test_a_release_that_stands_needs_no_chart() -> None:
    assert decide(states.settled(**STANDS)).standing is None
    drifted = (states.child(drift=("spec.replicas",)),)
    assert ["Call"] == kinds_of(states.settled(**STANDS, children=drifted))


@pytest.mark.parametrize(
    "change",
    [
        {"released_before": False},
        {"record": states.record(status="failed", attempt="other")},
        {"record": states.record(description="Upgrade complete")},
        {"record": states.record(digest="d0")},
    ],
    ids=["the spec changed", "the release failed", "made by hand", "another digest"],
)
def test_any_other_release_waits_for_its_chart(change: dict[str, object]) -> None:
    assert ("chart_is_chosen", "ChartUnreachable") == stand(states.settled(**(STANDS | change)))


def test_a_stale_chart_is_good_enough() -> None:
    assert decide(states.settled(chart=freshness.Stale(states.CHART, 0.0, "registry down"))).standing is None


# --- after a rollback


RED = release_status.FailedDigest("d2", "Immutable", "field is immutable", rolled_back_to=1)


def rolled_back(**changes: object) -> observation.ReleaseSeen:
    """Revision 2 (digest d2) failed, revision 3 is a rollback to revision 1 (digest d1), labels and all."""
    told = release_status.HelmStatus(
        attempt=release_status.Attempt(id="b1", action="rollback", digest="d1", revision=3),
        good=release_status.Good(1, "d1"),
        failed=RED,
    )
    record = states.record(revision=3, description="Rollback to 1")
    return states.settled(**({"status": told, "record": record} | changes))


def test_a_failed_digest_stays_blocked_after_the_rollback() -> None:
    release = rolled_back(render=observation.RenderSeen("d2", states.INVENTORY))

    assert ("failed_digest_is_left_alone", "UpgradeFailed") == stand(release)
    assert "revision 1 was restored" in decide(release).standing.verdict.message  # type: ignore[union-attr]


def test_what_was_restored_is_kept_when_the_spec_goes_back() -> None:
    assert decide(rolled_back()).standing is None


def test_what_was_restored_is_the_good_revision_from_then_on() -> None:
    told = rolled_back().status
    release = rolled_back(
        status=msgspec.structs.replace(told, good=release_status.Good(3, "d1"), failed=release_status.FailedDigest())
    )

    assert decide(release).standing is None
    assert release_status.Good(3, "d1") == facts.report(rolled_back())["good"]


def test_a_rollback_is_not_begun_again_before_its_record_is_seen() -> None:
    after = tasks.Ended("release.rollback", "b1", states.NOW - 1, decision.Ok(0))
    red = observation.RenderSeen("d2", states.INVENTORY)
    stale = states.record(revision=2, description=observation.marker("a2"), attempt="a2", digest="d2")

    for record in (stale, freshness.not_yet("record")):
        assert ("record_is_seen", "ReadingRecord") == stand(rolled_back(render=red, record=record, task=after))
    late = msgspec.structs.replace(after, at=states.NOW - 60)
    assert ("failed_digest_is_left_alone", "RollingBack") == stand(rolled_back(render=red, record=stale, task=late))


def test_an_upgrade_is_not_begun_again_before_its_record_is_seen() -> None:
    attempt = release_status.Attempt(id="a2", action="upgrade", digest="d2", revision=2)
    release = states.settled(
        status=release_status.HelmStatus(attempt=attempt, good=release_status.Good(1, "d1")),
        render=observation.RenderSeen("d2", states.INVENTORY),
        task=tasks.Ended("release.upgrade", "a2", states.NOW - 1, decision.Ok(2)),
    )

    assert ("record_is_seen", "ReadingRecord") == stand(release)


def test_a_rollback_that_died_is_unlocked_at_once() -> None:
    pending = states.record(revision=3, status="pending-rollback", description="Rollback to 1", modified=states.NOW)

    assert ("record_is_not_stuck", "Unlocking") == stand(rolled_back(record=pending))


def test_a_good_revision_that_history_lost_is_forgotten() -> None:
    gone = tasks.Ended("release.rollback", "b1", states.NOW, decision.Refused("NotFound", "release has no 1 version"))
    failed = states.record(revision=2, status="failed", description="x", attempt="a2", digest="d2")
    release = rolled_back(record=failed, render=observation.RenderSeen("d2", states.INVENTORY), task=gone)

    remember = states.actions(decide(release).acts[0])[0]

    assert release_status.Good() == remember.fields["good"]  # type: ignore[attr-defined]
    fields = {name: value for name, value in remember.fields.items() if name != "lastError"}  # type: ignore[attr-defined]
    told = msgspec.structs.replace(release.status, **fields)
    after = msgspec.structs.replace(release, status=told, task=None)
    assert ("failed_digest_is_left_alone", "UpgradeFailed") == stand(after)
    assert "restored" not in decide(after).standing.verdict.message  # type: ignore[union-attr]


def test_a_history_that_begins_anew_has_no_good_revision() -> None:
    release = states.nothing(status=release_status.HelmStatus(good=release_status.Good(4, "d0")))

    remember = states.actions(decide(release).acts[0])[0]

    assert release_status.Good() == remember.fields["good"]  # type: ignore[attr-defined]


def test_a_record_that_names_objects_of_other_places_is_not_worked_with() -> None:
    """Neither to repair, nor to upgrade, nor to go back: whoever may write Secrets there has put them in."""
    release = states.settled(record=states.record(outside=("ConfigMap other/planted",)), children=())
    standing = decide(release).standing

    assert standing is not None
    assert isinstance(standing.verdict, decision.Blocked)
    assert ("record_stays_inside", Reason.REACHES_OUTSIDE) == (standing.name, standing.verdict.reason)
    assert "ConfigMap other/planted, outside namespace acme" in standing.verdict.message
    assert "Secret sh.helm.release.v1.collector-main.v1" in standing.verdict.fix
    assert [] == kinds_of(release)


# --- by what a failure can pass


def noted(word: str, tries: int = 1, action: str = "upgrade") -> dict[str, object]:
    """What is written down of a run that failed so, in its try of that number."""
    attempt = msgspec.structs.replace(states.ATTEMPT, tries=tries, action=action)
    made = decide(
        states.nothing(
            task=ended(word), status=release_status.HelmStatus(attempt=attempt, good=release_status.Good(1, "d0"))
        )
    )
    remember = states.actions(made.acts[0])[0]
    assert isinstance(remember, decision.Remember)
    return remember.fields


@pytest.mark.parametrize(
    ("word", "tries"),
    [("Invalid", 1), ("ReachesOutside", 1), ("Forbidden", 3), ("UnknownKind", 3), ("Other", 10), ("TimedOut", 10)],
)
def test_what_time_does_not_heal_is_given_up_after_some_tries(word: str, tries: int) -> None:
    """What only a person can mend is not tried for ever, a failed revision each."""
    assert "failed" in noted(word, tries)
    assert "" == noted(word, tries)["attempt"].retry_at  # type: ignore[attr-defined]
    if tries > 1:
        assert "failed" not in noted(word, tries - 1)


@pytest.mark.parametrize("word", ["Quota", "NotReachable", "Conflict", "Killed", "Moved"])
def test_what_time_heals_is_tried_for_ever(word: str) -> None:
    """Also a word that no failure of helm has."""
    assert "failed" not in noted(word, 100)
    assert noted(word, 100)["attempt"].retry_at  # type: ignore[attr-defined]


def test_a_rollback_that_can_not_be_is_not_tried_for_ever() -> None:
    """As when the good revision names a version that is no longer served: the way back is closed, and it is told."""
    fields = noted("UnknownKind", 3, "rollback")

    assert release_status.Good() == fields["good"]
    failed = release_status.FailedDigest("d1", "Invalid", "no")
    told = release_status.HelmStatus(attempt=fields["attempt"], failed=failed)  # type: ignore[arg-type]
    blocked = states.settled(record=states.record(status="failed", attempt="x"), status=told)
    assert ("failed_digest_is_left_alone", "UpgradeFailed") == stand(blocked)
    assert "going back failed too: UnknownKind" in decide(blocked).standing.verdict.message  # type: ignore[union-attr]


def test_lasting_want_of_rights_is_told_by_its_own_reason_and_rule() -> None:
    """An administrator reads which rule is missing."""
    words = 'roles is forbidden: User "u" cannot patch resource "roles" in API group "g" in the namespace "acme"'
    told = release_status.HelmStatus(failed=release_status.FailedDigest("d1", "Forbidden", words))

    verdict = decide(states.nothing(status=told)).standing.verdict  # type: ignore[union-attr]

    assert isinstance(verdict, decision.Blocked)
    assert failures.FailureKind.FORBIDDEN is verdict.reason
    assert '{apiGroups: ["g"], resources: [roles], verbs: [' in verdict.fix
    assert "extraTenantRules" in verdict.fix


def test_helm_is_not_begun_without_the_rights_that_it_needs() -> None:
    """Nothing is written ahead either, so that nothing keeps a deletion."""
    release = states.nothing(missing_rules=freshness.Fresh(("{resources: [roles]}",)))

    assert ("rights_suffice", "Forbidden") == stand(release)
    assert [] == kinds_of(release)
    unknown = states.nothing(missing_rules=freshness.not_yet("rights"))
    assert decide(unknown).standing.verdict.unseen  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (manifest.ProblemKind.UNKNOWN_KIND, "UnknownKind"),
        (manifest.ProblemKind.DUPLICATE, "ChartInvalid"),
        (manifest.ProblemKind.NAMELESS, "ChartInvalid"),
        (manifest.ProblemKind.OTHER_NAMESPACE, "ReachesOutside"),
    ],
)
def test_each_fault_of_a_render_has_its_own_reason(kind: manifest.ProblemKind, reason: str) -> None:
    """Only what is outside reaches outside."""
    render = observation.RenderSeen("d2", (), (manifest.Problem(kind, "it", "it is so"),))

    assert ("chart_renders", reason) == stand(states.settled(render=render))


# --- an install that failed is an install again


def run_of(release: observation.ReleaseSeen) -> decision.Run:
    """The run that is begun."""
    return next(a for act in decide(release).acts for a in act.actions if isinstance(a, decision.Run))


def test_until_a_revision_was_deployed_it_is_an_install() -> None:
    """Install hooks run, and the revisions are counted on."""
    broken = states.record(status="failed", attempt="x", revision=3, installed=False)
    never = states.settled(record=broken, status=release_status.HelmStatus())
    once = states.settled(record=msgspec.structs.replace(broken, installed=True), status=release_status.HelmStatus())

    assert ("release_is_current", "Installing") == stand(never)
    assert "release.install" == run_of(never).task
    assert 4 == states.actions(decide(never).acts[0])[0].fields["attempt"].revision  # type: ignore[attr-defined]
    assert "release.upgrade" == run_of(once).task
    assert "release.install" == run_of(states.nothing()).task


def test_values_that_were_good_are_restored_and_not_rendered_anew() -> None:
    """What a template would find by now, as by lookup, plays no part."""
    failed = states.record(status="failed", revision=2, digest="d2", attempt="x")
    told = release_status.HelmStatus(
        good=release_status.Good(1, "d1"), failed=release_status.FailedDigest("d2", "Invalid", "no")
    )
    release = states.settled(record=failed, status=told)

    assert ("release_is_current", "RollingBack") == stand(release)
    assert ("release.rollback", 1) == (run_of(release).task, run_of(release).args["to"])
    remember = states.actions(decide(release).acts[0])[0]
    assert 1 == remember.fields["failed"].rolled_back_to  # type: ignore[attr-defined]


def test_a_hook_at_work_is_named_with_its_trouble() -> None:
    """For as long as it may take, which its owner says."""
    hook = observation.HookSeen(meta.ObjectRef("batch/v1", "Job", "acme", "seed"), "pod seed-x: no image")
    running = tasks.Running("release.install", states.NOW)
    release = states.nothing(task=running, hooks=(hook,), policy=observation.Policy(hook_timeout=1000.0))

    verdict = decide(release).standing.verdict  # type: ignore[union-attr]

    assert isinstance(verdict, decision.Wait)
    assert "helm is at work: install; hook Job seed: pod seed-x: no image" == verdict.message
    assert verdict.within > 2000


# --- one object under several versions


def test_an_object_is_the_same_under_each_version() -> None:
    """It is no surplus when the chart names it by another one, and it is in the inventory once."""
    old, new = (meta.ObjectRef(f"autoscaling/{v}", "HorizontalPodAutoscaler", "acme", "h") for v in ("v1", "v2"))
    held = states.claim(inventory=(manifest.InventoryItem(old),))
    record = states.record(inventory=(manifest.InventoryItem(new),))

    assert () == surplus.surplus(held, record)
    both = claim.union(held.inventory, record.inventory)
    assert (manifest.InventoryItem(new),) == both
