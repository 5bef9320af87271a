"""The steps of a WekaContainer that is being deleted: out of its cluster, then its pod, then itself. Pure.

How it goes is by `spec.state`: as `destroying`, or with its whole cluster, it goes with what it holds; otherwise its
data is moved first, and it goes only while the cluster is whole without it. Its pod is kept until then. Of
one that is down the others make up for what it holds; it goes once they have, and comes back meanwhile where it can.
"""

from __future__ import annotations

from collections.abc import Callable

from moorage.operators import steps
from moorage.operators.weka import answers, place
from moorage.runtime import decision, freshness
from moorage.runtime.decision import DONE, Act, Blocked, Verdict, Wait

from . import control
from .observation import Seen
from .reasons import ContainerReason as Reason

REBUILDS_WITHIN = control.DATA_MOVES_WITHIN


def namespace_ends(seen: Seen) -> Verdict:
    """Its rights are held until all is in order there; without them nobody can be told anything any more."""
    return place.namespace_ends(seen, Reason.LEAVING)


def nothing_was_made(seen: Seen) -> Verdict:
    """Where no rights were ever bound there is nothing to remove."""
    return steps.nothing_was_made(seen.binding, seen.allowed, Reason.BINDING, Reason.LEAVING)


def override_is_confirmed(seen: Seen) -> Verdict:
    """What loses data is meant: the annotation names it."""
    given = seen.spec.overrides
    if not (given and given.skip_deactivate) or seen.confirmed("skipDeactivate") or not is_member(seen):
        return DONE
    return Blocked(
        Reason.OVERRIDE_UNCONFIRMED,
        f"spec.overrides.skipDeactivate of {seen.name} loses what only it holds",
        "annotate it weka.io/confirm=skipDeactivate, or take the override out",
    )


def override_is_noted(seen: Seen) -> Verdict:
    """That it was heeded stays to be seen."""
    given = seen.spec.overrides
    if not (given and given.skip_deactivate) or not is_member(seen) or "skipDeactivate" in seen.status.overrides_used:
        return DONE
    used = {**seen.status.overrides_used, "skipDeactivate": seen.meta.deletion_timestamp or ""}
    note = decision.Remember(why="it may harm data", fields={"overridesUsed": used})
    return Act(Reason.LEAVING, "spec.overrides.skipDeactivate is heeded", (note,), go_on=True)


def it_may_leave(seen: Seen) -> Verdict:
    """Nothing else is moving, and enough stay for a stripe."""
    if not hands_over(seen):
        return DONE
    if (known := control.cluster_answers_anew(seen)) is not DONE:
        return known
    cluster, member = freshness.value_of(seen.cluster), seen.listed
    words = seen.dialect.words
    if cluster is None or member is None or member.state.upper() != "ACTIVE":
        return DONE  # it is none, or on its way already
    if seen.spec.mode == "drive":
        drives = [it for it in cluster.members if it.state.upper() == "ACTIVE" and cluster.of(it.host)]
        least = seen.there.owner.stripe if seen.there.owner else 0
        if cluster.of(member.host) and len(drives) <= least:
            said = f"{len(drives)} containers have drives, and a stripe needs {least}: {seen.name} is one of them"
            return Blocked(Reason.STRIPE_NEEDS_IT, said, decision.next_of(Reason.STRIPE_NEEDS_IT))
    moves = words.has(words.up, member.status) and cluster.moving  # what is made up for one that is down goes on anyway
    if cluster.unprotected or moves:
        said = f"{seen.name} is to leave, and {_state(cluster)}"
        return Wait(Reason.NOT_PROTECTED, said, on="cluster", within=REBUILDS_WITHIN)
    return DONE


def member_is_deactivated(seen: Seen) -> Verdict:
    """The cluster moves its data away; it says itself when that is done."""
    if not hands_over(seen):
        return DONE
    member, words = seen.listed, seen.dialect.words
    if member is None or words.has(words.inactive, member.state):
        return DONE
    if words.has(words.deactivating, member.state):
        return Wait(Reason.DEACTIVATING, f"data of {seen.name} is moved", on="cluster", within=REBUILDS_WITHIN)
    why = f"{seen.name} is deleted"
    leave = decision.Call(why=why, operation="member.deactivate", args={"host": member.host})
    return Act(Reason.DEACTIVATING, f"{seen.name} is told to leave its cluster", (leave,))


def drives_are_removed(seen: Seen) -> Verdict:
    """Each is inactive before it goes."""
    if not hands_over(seen):
        return DONE
    cluster, words = freshness.value_of(seen.cluster), seen.dialect.words
    if cluster is None:
        return DONE
    for drive in cluster.of(seen.host):
        inactive = words.has(words.drive_inactive, drive.status)
        if not inactive and not words.has(words.drive_active, drive.status):
            said = f"drive {drive.serial} of {seen.name} is {drive.status or 'in no known state'}"
            return Wait(Reason.REMOVING_DRIVES, said, on="cluster", within=REBUILDS_WITHIN)
        operation = "drive.remove" if inactive else "drive.deactivate"
        out = decision.Call(why=f"{seen.name} is deleted", operation=operation, args={"uuid": drive.uuid})
        said = f"drive {drive.serial} of {seen.name} is {'removed' if inactive else 'deactivated'}"
        return Act(Reason.REMOVING_DRIVES, said, (out,))
    return DONE


def pod_is_gone(seen: Seen) -> Verdict:
    """It has handed everything over, or is to take it along; it stops at once, and what it kept on its node goes.

    A volume may be others' too, and stays as it is.
    """
    given = seen.spec.overrides
    forget = seen.spec.pvc is None and not (given and given.skip_cleanup_persistent_dir)
    return control.pod_ends(seen, Reason.ENDING_POD, f"{seen.name} is deleted", force=True, forget=forget)


def member_is_removed(seen: Seen) -> Verdict:
    """The cluster forgets it; `it_may_leave` has seen to it that this is its last word."""
    member = seen.listed
    if not hands_over(seen) or member is None:
        return DONE
    forget = decision.Call(why=f"{seen.name} is deleted", operation="member.remove", args={"host": member.host})
    return Act(Reason.REMOVING_MEMBER, f"the cluster forgets {seen.name}", (forget,))


def it_may_go(seen: Seen) -> Verdict:
    """The last of its namespace also takes away what runs in pods, and gives the operator's rights back."""
    scripts = seen.there.scripts
    return place.it_may_go(seen, scripts[1].uid if scripts else "", Reason.LEAVING)


def is_member(seen: Seen) -> bool:
    """Whether a cluster may hold data on it."""
    return bool(seen.guid) and seen.host is not None


def hands_over(seen: Seen) -> bool:
    """Whether its data is moved before it goes: not where the cluster goes too, nor where it is to go as it is."""
    owner = seen.there.owner if freshness.value_of(seen.objects) is not None else None
    skips = bool(seen.spec.overrides and seen.spec.overrides.skip_deactivate)
    stays = owner is not None and not owner.deleting
    return seen.spec.state != "destroying" and stays and not skips and is_member(seen)


def while_it_hands_over(step: Callable[[Seen], Verdict]) -> Callable[[Seen], Verdict]:
    """A step of a container that stays, for one that has something to hand over still."""

    def told(seen: Seen) -> Verdict:
        member, cluster, words = seen.listed, freshness.value_of(seen.cluster), seen.dialect.words
        if not hands_over(seen) or cluster is None:
            return DONE
        if member is None or (words.has(words.inactive, member.state) and not cluster.of(member.host)):
            return DONE
        if not words.has(words.up, member.status) and not (cluster.unprotected and _may_come_back(seen)):
            return DONE  # it hands nothing over; the others make up for it, or have
        return step(seen)

    told.__name__ = step.__name__
    return told


def _may_come_back(seen: Seen) -> bool:
    """Whether its pod, and with it what nobody else may have, can be where its drives are."""
    node, pod = seen.there.node, seen.there.pod
    return node is not None and node.ready and (not node.cordoned or (pod is not None and not pod.seen.deleting))


def _state(cluster: answers.Cluster) -> str:
    if cluster.unprotected:
        return f"{cluster.unprotected} MiB are without their full protection"
    return "the cluster is moving data"


DELETION_STEPS: tuple[Callable[[Seen], Verdict], ...] = (
    nothing_was_made,
    namespace_ends,
    control.rights_are_bound,
    control.objects_are_known,
    override_is_confirmed,
    override_is_noted,
    while_it_hands_over(control.node_is_there),
    while_it_hands_over(control.pod_that_ends_is_let_go),
    while_it_hands_over(control.pod_is_there),
    while_it_hands_over(control.pod_runs),
    it_may_leave,
    member_is_deactivated,
    drives_are_removed,
    pod_is_gone,
    member_is_removed,
    it_may_go,
)
