"""How a release goes: everything that is its own, nothing that is another's, and the finalizer last."""

from __future__ import annotations

import msgspec

from moorage.api import builtin, conditions
from moorage.helm import deletion, observation, release_status, steps
from moorage.helm.runs import failures
from moorage.runtime import decision, freshness

from . import release_states as states

STEPS = (
    deletion.orphaning_is_honoured,
    deletion.claim_is_known,
    steps.no_helm_runs,
    steps.last_run_is_noted,
    deletion.release_is_uninstalled,
    deletion.leftovers_are_gone,
    deletion.owner_may_go,
)


def leave(release: observation.ReleaseSeen) -> tuple[str, list[str]]:
    """The standing reason and the kinds of the actions."""
    made = decision.decide(states.It(release), steps=STEPS)
    assert made.standing is not None
    names = [type(action).__name__ for act in made.acts for action in act.actions]
    return str(made.standing.verdict.reason), names  # type: ignore[union-attr]


def test_no_second_uninstall_begins_while_a_lost_process_may_still_be_at_it() -> None:
    """Law 7: another's interrupted work is taken over only after a full lease's duration."""
    pending = states.record(status="uninstalling")

    assert ("Interrupted", []) == leave(states.settled(record=pending, settles_in=9.0))
    assert "Uninstalling" == leave(states.settled(record=pending))[0]


def test_what_has_a_record_is_uninstalled_after_a_live_look_at_the_claim() -> None:
    reason, names = leave(states.settled())

    assert ("Uninstalling", ["Remember", "Run"]) == (reason, names)
    made = decision.decide(states.It(states.settled()), steps=STEPS)
    run = states.actions(made.acts[0])[1]
    assert ["claim_is_mine"] == [guard.check for guard in run.require]


def test_a_pending_record_is_uninstalled_too() -> None:
    assert "Uninstalling" == leave(states.settled(record=states.record(status="pending-install")))[0]


def test_without_a_record_the_inventory_says_what_is_left() -> None:
    live = observation.Leftover(msgspec.structs.replace(states.SERVICE, uid="u"), builtin.CONFIG_MAP, "3", False)

    assert ("Sweeping", ["Delete"]) == leave(states.settled(record=None, leftovers=(live,)))
    ending = msgspec.structs.replace(live, terminating=True)
    assert ("Sweeping", []) == leave(states.settled(record=None, leftovers=(ending,)))


def test_leftovers_not_looked_at_yet_are_no_evidence_of_absence() -> None:
    assert ("Sweeping", []) == leave(states.settled(record=None, leftovers=freshness.not_yet("leftovers")))


def test_the_claim_goes_and_then_the_finalizer() -> None:
    assert ("Leaving", ["Delete", "EditFinalizer"]) == leave(states.settled(record=None))
    made = decision.decide(states.It(states.settled(record=None)), steps=STEPS)
    assert ["release_is_gone"] == [guard.check for guard in states.actions(made.acts[0])[0].require]


def test_anothers_claim_is_left_alone() -> None:
    other = msgspec.structs.replace(states.OWNER, name="other", uid="uid-2")

    assert ("Leaving", ["EditFinalizer"]) == leave(states.settled(claim=states.claim(owner=other)))


def test_without_a_claim_nothing_was_made() -> None:
    assert ("Leaving", ["EditFinalizer"]) == leave(states.settled(claim=None))


def test_the_claim_of_an_earlier_incarnation_is_taken_over_to_clean_up() -> None:
    earlier = msgspec.structs.replace(states.OWNER, uid="uid-0")

    assert ("TakingOver", ["Patch"]) == leave(states.settled(claim=states.claim(owner=earlier)))


def test_orphaning_gives_up_the_claim_and_nothing_else() -> None:
    orphan = observation.Policy(orphan=True)

    assert ("Orphaning", ["Delete", "EditFinalizer"]) == leave(states.settled(policy=orphan))
    assert ("ClaimUnreadable", []) == leave(states.settled(policy=orphan, claim=freshness.not_yet("claims")))


def test_orphaning_is_possible_without_rights() -> None:
    no_rights = freshness.Failed(observation.NO_RIGHTS, "none")

    assert ("Orphaning", ["EditFinalizer"]) == leave(
        states.settled(policy=observation.Policy(orphan=True), claim=no_rights)
    )


def test_a_failed_uninstall_is_tried_again_later() -> None:
    attempt = release_status.Attempt(
        id="u1",
        action="uninstall",
        digest="d1",
        revision=1,
        tries=1,
        reason="Quota",
        retry_at=conditions.timestamp(states.NOW + 100),
    )

    assert ("Quota", []) == leave(states.settled(status=release_status.HelmStatus(attempt=attempt)))


def test_who_holds_a_leftover_is_named_and_after_a_while_it_is_a_persons_business() -> None:
    """A finalizer that hangs passes by nobody's waiting."""
    ref, since = msgspec.structs.replace(states.SERVICE, uid="u"), conditions.timestamp(states.NOW - 200)
    live = observation.Leftover(ref, builtin.CONFIG_MAP, "3", True, since, ("acme.io/guard",))

    verdict = deletion.leftovers_are_gone(states.It(states.settled(record=None, leftovers=(live,))))

    assert isinstance(verdict, decision.Wait)
    assert ("Held", since) == (verdict.reason, verdict.since)
    assert f"since {since}, and held by its finalizer acme.io/guard" in verdict.message
    assert "acme.io/guard" in verdict.next
    assert "kubectl edit ConfigMap" in verdict.fix


def test_a_leftover_that_nothing_holds_is_awaited() -> None:
    """As a pod that is given time to end; its own deletion tells since when."""
    live = observation.Leftover(states.SERVICE, builtin.CONFIG_MAP, "3", True, conditions.timestamp(states.NOW - 400))
    verdict = deletion.leftovers_are_gone(states.It(states.settled(record=None, leftovers=(live,))))

    assert isinstance(verdict, decision.Wait)
    assert live.since == verdict.since


def failed(word: str, message: str = "words") -> release_status.HelmStatus:
    """An uninstall that failed so, and is tried again some time."""
    later = conditions.timestamp(states.NOW + 100)
    attempt = release_status.Attempt(
        id="u1", action="uninstall", digest="d1", tries=3, reason=word, message=message, retry_at=later
    )
    return release_status.HelmStatus(attempt=attempt)


def test_a_hook_that_fails_blocks_with_the_ways_out() -> None:
    """A person mends it, passes it by, or leaves everything."""
    made = decision.decide(states.It(states.settled(status=failed("HookFailed"))), steps=STEPS)

    verdict = made.standing.verdict  # type: ignore[union-attr]
    assert isinstance(verdict, decision.Blocked)
    assert failures.FailureKind.HOOK_FAILED is verdict.reason
    for way in ("moorage.dev/reconcile-at", "moorage.dev/on-delete=NoHooks", "moorage.dev/on-delete=Orphan"):
        assert way in verdict.fix


def test_without_hooks_it_is_uninstalled_at_once() -> None:
    """The annotation is the change that was waited for."""
    passed_by = states.settled(status=failed("HookFailed"), policy=observation.Policy(delete_hooks=False))

    assert ("Uninstalling", ["Remember", "Run"]) == leave(passed_by)


def test_what_can_not_be_deleted_for_want_of_rights_names_the_rule() -> None:
    """Nobody waits for a rule that nobody adds."""
    words = 'pods "p" is forbidden: User "u" cannot delete resource "pods" in API group "" in the namespace "acme"'
    made = decision.decide(states.It(states.settled(status=failed("Forbidden", words))), steps=STEPS)

    verdict = made.standing.verdict  # type: ignore[union-attr]
    assert isinstance(verdict, decision.Blocked)
    assert '{apiGroups: [""], resources: [pods]' in verdict.fix
    assert "Orphan" in verdict.fix


def test_what_time_heals_is_tried_again() -> None:
    """As an API server that is away."""
    assert ("NotReachable", []) == leave(states.settled(status=failed("NotReachable")))


def test_leftovers_that_may_not_be_looked_at_block_with_the_ways_out() -> None:
    """It is no wait: rights come from a person."""
    words = 'roles "r" is forbidden: User "u" cannot get resource "roles" in API group "g" in the namespace "acme"'
    refused = freshness.Failed("Forbidden", words, transient=False)
    made = decision.decide(states.It(states.settled(record=None, leftovers=refused)), steps=STEPS)

    verdict = made.standing.verdict  # type: ignore[union-attr]
    assert isinstance(verdict, decision.Blocked)
    assert 'apiGroups: ["g"], resources: [roles]' in verdict.fix
    assert "Orphan" in verdict.fix


def test_an_uninstall_that_is_given_up_leaves_a_deployed_release() -> None:
    """Before the claim goes, as nobody would do it afterwards."""
    orphan = observation.Policy(orphan=True)
    begun = states.settled(policy=orphan, record=states.record(status="uninstalling"))

    assert ("Orphaning", ["Call", "Call"]) == leave(begun)
    made = decision.decide(states.It(begun), steps=STEPS)
    hooks, unlock = states.actions(made.acts[0])
    assert isinstance(hooks, decision.Call)
    assert isinstance(unlock, decision.Call)
    assert ("release.leave_whole", "release.unlock") == (hooks.operation, unlock.operation)
    assert ("deployed", observation.marker("a1")) == (unlock.args["status"], unlock.args["description"])
