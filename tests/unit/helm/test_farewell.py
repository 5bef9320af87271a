"""How a release goes: everything that is its own, nothing that is another's, and the finalizer last."""

from __future__ import annotations

import msgspec

from moorage.api import conditions, kinds
from moorage.helm import farewell, seen, status, steps
from moorage.runtime import decision, observed

from . import release_states as states

STEPS = (
    farewell.orphaning_is_honoured,
    farewell.claim_is_known,
    steps.no_helm_runs,
    steps.last_run_is_noted,
    farewell.release_is_uninstalled,
    farewell.leftovers_are_gone,
    farewell.owner_may_go,
)


def leave(release: seen.ReleaseSeen) -> tuple[str, list[str]]:
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
    live = seen.Leftover(msgspec.structs.replace(states.SERVICE, uid="u"), kinds.CONFIG_MAP, "3", False)

    assert ("Sweeping", ["Delete"]) == leave(states.settled(record=None, leftovers=(live,)))
    ending = msgspec.structs.replace(live, terminating=True)
    assert ("Sweeping", []) == leave(states.settled(record=None, leftovers=(ending,)))


def test_leftovers_not_looked_at_yet_are_no_evidence_of_absence() -> None:
    assert ("Sweeping", []) == leave(states.settled(record=None, leftovers=observed.not_yet("leftovers")))


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
    orphan = seen.Policy(orphan=True)

    assert ("Orphaning", ["Delete", "EditFinalizer"]) == leave(states.settled(policy=orphan))
    assert ("ClaimUnreadable", []) == leave(states.settled(policy=orphan, claim=observed.not_yet("claims")))


def test_orphaning_is_possible_without_rights() -> None:
    no_rights = observed.Failed(seen.NO_RIGHTS, "none")

    assert ("Orphaning", ["EditFinalizer"]) == leave(states.settled(policy=seen.Policy(orphan=True), claim=no_rights))


def test_a_failed_uninstall_is_tried_again_later() -> None:
    attempt = status.Attempt(
        id="u1",
        action="uninstall",
        digest="d1",
        revision=1,
        tries=1,
        reason="Forbidden",
        retry_at=conditions.timestamp(states.NOW + 100),
    )

    assert ("Forbidden", []) == leave(states.settled(status=status.HelmStatus(attempt=attempt)))


def test_who_holds_a_leftover_is_named_and_after_a_while_it_is_a_persons_business() -> None:
    """A finalizer that hangs passes by nobody's waiting."""
    ref, since = msgspec.structs.replace(states.SERVICE, uid="u"), conditions.timestamp(states.NOW - 200)
    live = seen.Leftover(ref, kinds.CONFIG_MAP, "3", True, since, ("acme.io/guard",))

    verdict = farewell.leftovers_are_gone(states.It(states.settled(record=None, leftovers=(live,))))

    assert isinstance(verdict, decision.Wait)
    assert ("Held", since) == (verdict.reason, verdict.since)
    assert f"since {since}, and held by its finalizer acme.io/guard" in verdict.message
    assert "acme.io/guard" in verdict.next
    assert "kubectl edit ConfigMap" in verdict.fix


def test_a_leftover_that_nothing_holds_is_awaited() -> None:
    """As a pod that is given time to end; its own deletion tells since when."""
    live = seen.Leftover(states.SERVICE, kinds.CONFIG_MAP, "3", True, conditions.timestamp(states.NOW - 400))
    verdict = farewell.leftovers_are_gone(states.It(states.settled(record=None, leftovers=(live,))))

    assert isinstance(verdict, decision.Wait)
    assert live.since == verdict.since
