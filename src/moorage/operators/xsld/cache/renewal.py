"""What a member that left leaves behind: its volume breaks the group for whoever joins with it. Pure.

Most who leave do so for good, and their pod and volume go. One that is wanted again, because the size was raised
meanwhile or because it is to change its role, gets a new volume and a new pod first.
"""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.api import kinds
from moorage.operators.xsld import names
from moorage.operators.xsld.reasons import Reason
from moorage.runtime import decision
from moorage.runtime.decision import DONE, Act, Blocked, Verdict, Wait

from . import types
from .seen import Seen


def noted(seen: Seen, *members: str) -> list[dict[str, Any]]:
    """The list of those who left, with these and what they have now."""
    others = [left for left in seen.status.left if left.member not in members]
    return [msgspec.to_builtins(each) for each in (*others, *(_belongings(seen, member) for member in members))]


def _belongings(seen: Seen, member: str) -> types.Left:
    ordinal = names.ordinal(seen.name, member)
    volume = next((v.uid for v in seen.there.volumes if v.ordinal == ordinal), "")
    pod = seen.there.pod(member)
    return types.Left(member, volume, pod.uid if pod else "")


def removals_are_noticed(seen: Seen) -> Verdict:
    """Whoever was removed from the group by somebody else leaves the same things behind as one that we removed.

    It counts as removed when it says itself that it is in no group with others, and all others are in theirs without
    it: a group that has forgotten more than one, or one that does not answer, is no such evidence.
    """
    group, was = seen.group, [member.name for member in seen.status.member_statuses if member.state]
    if group is None or seen.primary is None:
        return DONE
    gone = [name for name in was if name not in group.names]
    if len(gone) != 1 or gone[0] in {left.member for left in seen.status.left} or not _is_alone(seen, gone[0]):
        return DONE
    note = decision.Remember(why="it must not join with its old volume", fields={"left": noted(seen, gone[0])})
    return Act(Reason.REJOINING, f"{gone[0]} was removed from the group by somebody else", (note,))


def _is_alone(seen: Seen, member: str) -> bool:
    answer, pod = seen.answer(member), seen.there.pod(member)
    before = next(it.pod_ip for it in seen.status.member_statuses if it.name == member)
    if answer is None or pod is None or (seen.spec.storage.ephemeral and pod.address != before):
        return False  # a new pod without a volume has nothing old
    return {it.name for it in answer.members} == {member}


def left_members_are_renewed(seen: Seen) -> Verdict:
    """Whoever left and is wanted again gets a volume and a pod that know nothing of it."""
    for left in seen.status.left:
        ordinal = names.ordinal(seen.name, left.member)
        volume = next((v for v in seen.there.volumes if v.uid == left.volume), None)
        pod = next((p for p in seen.there.pods if p.uid == left.pod), None)
        if (volume is None and pod is None) or left.member in seen.known:
            return _forget(seen, left.member)
        if ordinal >= seen.replicas:
            continue  # its pod and volume go anyway
        if seen.spec.storage.reclaim_on_scale_down == "Retain" and volume is not None and not volume.deleting:
            return Blocked(
                Reason.LEFTOVER_VOLUME,
                f"{volume.name} is that of {left.member} when it left, and in the way of its joining anew",
                "save what you need of it, and delete it with its pod",
            )
        guard = decision.Guard("member_has_left", {"ordinal": ordinal})
        actions: list[decision.AnyAction] = []
        if volume is not None and not volume.deleting:
            ref = kinds.VOLUME_CLAIM.ref(seen.meta.namespace, volume.name, volume.uid)
            why = f"{left.member} has left the group, and joins with a new volume"
            actions.append(decision.Delete(why=why, resource=kinds.VOLUME_CLAIM, ref=ref, require=(guard,)))
        if pod is not None and not pod.deleting:
            ref = kinds.POD.ref(seen.meta.namespace, pod.name, pod.uid)
            why = f"{left.member} has left the group, and its pod holds the old volume"
            actions.append(decision.Delete(why=why, resource=kinds.POD, ref=ref, require=(guard,)))
        if actions:
            return Act(Reason.CLEARING_VOLUME, f"{left.member} gets a new volume, to join anew", tuple(actions))
        return Wait(Reason.CLEARING_VOLUME, f"the old volume of {left.member} is going", on="volume", within=600.0)
    return DONE


def _forget(seen: Seen, member: str) -> Verdict:
    rest = [msgspec.to_builtins(left) for left in seen.status.left if left.member != member]
    note = decision.Remember(why="nothing of it is left", fields={"left": rest})
    return Act(Reason.TASK_DONE, f"what {member} left behind is gone", (note,))
