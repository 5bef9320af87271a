"""The steps by which a helm-backed resource leaves: release, leftovers, claim, and the finalizer last. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from moorage.runtime import decision, freshness
from moorage.runtime.decision import DONE, Act, Verdict

from . import observation, steps
from .observation import HasRelease
from .reasons import Reason
from .release import claim, surplus
from .runs import attempts

Last: TypeAlias = Callable[[decision.EditFinalizer], tuple[decision.AnyAction, ...]]
"""Makes the last actions of all: those by which a kind gives back what is its own, and the finalizer's edit.

Whatever of them comes first takes over the guards of the edit, as nothing can be asked after it.
"""


def finalizer_alone(edit: decision.EditFinalizer) -> tuple[decision.AnyAction, ...]:
    """Of a kind that has nothing to give back."""
    return (edit,)


def orphaning_is_honoured(it: HasRelease, last: Last = finalizer_alone) -> Verdict:
    """With moorage.dev/on-delete=Orphan everything stays, and only the claim is given up."""
    r = it.release
    if not r.policy.orphan:
        return DONE
    if isinstance(r.claim, freshness.Failed) and r.claim.reason != observation.NO_RIGHTS:
        return claim.unread(r.target, r.claim)
    held = freshness.value_of(r.claim)
    if (verdict := _whole_again(r)) is not None:
        return verdict
    give_up = (claim.delete(r.target, held),) if held is not None and held.is_of(r.owner) else ()
    leave = last(_finalizer_goes("the release is orphaned"))
    return Act(Reason.ORPHANING, "the release stays, as asked", (*give_up, *leave))


def _whole_again(r: observation.ReleaseSeen) -> Verdict | None:
    """A release whose uninstall was begun and is given up stays as a deployed one, without what the hooks left."""
    if isinstance(r.record, freshness.Failed):
        return (
            decision.unknown(Reason.READING_RECORD, r.record, "record")
            if r.record.reason == freshness.NOT_YET
            else None
        )
    record = r.record.value
    if record is None or record.status != "uninstalling":
        return None
    hooks = decision.Call(why="nobody's uninstall runs any more", operation="release.leave_whole")
    unlock = decision.Call(
        why="it stays, so it is deployed",
        operation="release.unlock",
        args={
            "secret": record.secret,
            "uid": record.uid,
            "resourceVersion": record.resource_version,
            "status": "deployed",
            "description": observation.marker(record.attempt) if record.attempt else "its uninstall was given up",
        },
    )
    return Act(Reason.ORPHANING, "the uninstall that was begun is given up", (hooks, unlock))


def claim_is_known(it: HasRelease, last: Last = finalizer_alone) -> Verdict:
    """Only the claim says what there is to remove: without it, or with another's, there is nothing of ours."""
    r = it.release
    if isinstance(r.claim, freshness.Failed):
        return claim.unread(r.target, r.claim)
    held = freshness.value_of(r.claim)
    if held is not None and held.is_of(r.owner):
        return DONE
    if held is not None and held.is_of_earlier(r.owner):
        patch = claim.patch(r.target, held, "the owner was restored and has a new uid", owner=r.owner)
        return Act(Reason.TAKING_OVER, f"the claim of an earlier {r.owner} is taken over", (patch,))
    guard = decision.Guard("claim_is_not_mine", {"uid": r.owner.uid})
    leave = last(_finalizer_goes("nothing is claimed", guard))
    return Act(Reason.LEAVING, "no release is claimed by this resource", leave)


def release_is_uninstalled(it: HasRelease) -> Verdict:
    """Helm uninstalls what has a record, in the namespace it was installed in."""
    r = it.release
    if isinstance(r.record, freshness.Failed):
        return steps.record_unread(r.record)
    record = freshness.value_of(r.record)
    if record is None:
        return DONE
    if stuck := attempts.wait_for_former(r) or attempts.stuck_uninstall(r):
        return stuck
    attempt = attempts.begin(r, "uninstall", record.digest, record.revision)
    run = attempts.run(r, "release.uninstall", attempt, {})
    return Act(
        Reason.UNINSTALLING,
        f"release {r.target.release} (revision {record.revision}) is uninstalled",
        (decision.Remember(why="a run is written down before it begins", fields={"attempt": attempt}), run),
    )


def leftovers_are_gone(it: HasRelease) -> Verdict:
    """Hook objects, and what a lost record can't name: all of the inventory must be gone."""
    return surplus.go(it.release, Reason.SWEEPING) or DONE


def owner_may_go(it: HasRelease, last: Last = finalizer_alone) -> Verdict:
    """Nothing is left: the claim goes, then the finalizer."""
    r = it.release
    held = freshness.value_of(r.claim)
    assert held is not None  # noqa: S101 - claim_is_known comes first
    guard = decision.Guard("release_is_gone", {"uid": r.owner.uid})
    give_up = msgspec.structs.replace(claim.delete(r.target, held), require=(guard,))
    return Act(Reason.LEAVING, "nothing is left of the release", (give_up, *last(_finalizer_goes("nothing is left"))))


def _finalizer_goes(why: str, *guards: decision.Guard) -> decision.EditFinalizer:
    return decision.EditFinalizer(why=why, present=False, require=guards)
