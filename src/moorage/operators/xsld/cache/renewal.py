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


def noted(seen: Seen, member: str) -> list[dict[str, Any]]:
    """The list of those who left, with this one and what it has now."""
    ordinal = names.ordinal(seen.name, member)
    volume = next((v.uid for v in seen.there.volumes if v.ordinal == ordinal), "")
    pod = seen.there.pod(member)
    others = [left for left in seen.status.left if left.member != member]
    return [msgspec.to_builtins(each) for each in (*others, types.Left(member, volume, pod.uid if pod else ""))]


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
