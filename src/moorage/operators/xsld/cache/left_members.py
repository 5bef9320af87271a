"""What a member that left leaves behind: its volume breaks the group for whoever joins with it. Pure.

Most who leave do so for good, and their pod and volume go. One that is wanted again, because the size was raised
meanwhile or because it is to change its role, gets a new volume and a new pod first.
"""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.api import conditions
from moorage.children import ordinals, pod_replacement, volumes
from moorage.operators.xsld.group import answers
from moorage.operators.xsld.reasons import Reason
from moorage.runtime import decision
from moorage.runtime.decision import DONE, Act, Blocked, Verdict, Wait

from . import member_trouble, types
from .observation import Seen


def noted(seen: Seen, *members: str) -> list[dict[str, Any]]:
    """The list of those who left, with these and what they have now."""
    others = [left for left in seen.status.left if left.member not in members]
    return [msgspec.to_builtins(each) for each in (*others, *(_belongings(seen, member) for member in members))]


def _belongings(seen: Seen, member: str) -> types.Left:
    ordinal = ordinals.of(seen.name, member)
    volume = next((v.uid for v in seen.there.volumes if v.ordinal == ordinal), "")
    pod = seen.there.pod(member)
    return types.Left(member, volume, pod.uid if pod else "")


def dropped(seen: Seen, group: answers.Group) -> types.MemberStatus | None:
    """The one member that the group has no more, and of which it is not known yet what it leaves behind.

    Its entry in status is all that tells of it, so it stays there until then, however many passes that takes: what the
    group says first is that it is gone, and only later that nothing more happens to it. A group that has forgotten more
    than one may be the one that is wrong.
    """
    joining = seen.wanted.said.member.joining
    gone = [it for it in seen.status.member_statuses if it.state not in ("", joining) and it.name not in group.names]
    if len(gone) != 1 or gone[0].name in {left.member for left in seen.status.left}:
        return None
    member = gone[0]
    pod, volume = seen.there.pod(member.name), any(v.ordinal == member.ordinal for v in seen.there.volumes)
    if member.ordinal >= seen.replicas or not (pod or volume):
        return None
    if seen.spec.storage.ephemeral and (pod is None or pod.address not in ("", member.pod_ip)):
        return None  # a new pod without a volume has nothing old
    return member


def removals_are_noticed(seen: Seen) -> Verdict:
    """Whoever was removed from the group by somebody else leaves the same things behind as one that we removed.

    It counts as removed when the primary's group has it no more, and it says itself that it is in no group with others.
    """
    member = dropped(seen, seen.group) if seen.group and seen.primary else None
    answer = seen.answer(member.name) if member else None
    if member is None or answer is None:
        return DONE  # one that does not answer may be one still
    if {it.name for it in answer.members} != {member.name}:
        said = f"the group has {member.name} no more, and it is still to notice that"
        return Wait(Reason.REJOINING, said, on="group", within=600.0, again=seen.busy)
    note = decision.Remember(why="it must not join with its old volume", fields={"left": noted(seen, member.name)})
    return Act(Reason.REJOINING, f"{member.name} was removed from the group by somebody else", (note,))


def with_old_volumes(seen: Seen) -> frozenset[str]:
    """Who is no member any more, and has its volume or pod of then still: nobody joins with that."""
    claims, pods = {v.uid for v in seen.there.volumes}, {p.uid for p in seen.there.pods}
    old = {left.member for left in seen.status.left if left.volume in claims or left.pod in pods}
    unnoticed = dropped(seen, seen.group) if seen.group and seen.primary else None
    return frozenset(old | ({unnoticed.name} if unnoticed else set()))


def left_members_are_renewed(seen: Seen) -> Verdict:
    """Whoever left and is wanted again gets a volume and a pod that know nothing of it."""
    verdicts = [verdict for left in seen.status.left if (verdict := _renewed(seen, left)) != DONE]
    verdicts.sort(
        key=lambda verdict: not isinstance(verdict, Act)
    )  # what can be done does not wait for another's volume
    return verdicts[0] if verdicts else DONE


def _renewed(seen: Seen, left: types.Left) -> Verdict:
    ordinal = ordinals.of(seen.name, left.member)
    volume = next((v for v in seen.there.volumes if v.uid == left.volume), None)
    pod = next((p for p in seen.there.pods if p.uid == left.pod), None)
    if (volume is None and pod is None) or left.member in seen.known:
        return _forget(seen, left.member)
    if ordinal >= min(seen.replicas, max(1, seen.spec.size)):
        return DONE  # its pod and volume go for good, if they have not yet
    if seen.spec.storage.reclaim_on_scale_down == "Retain" and volume is not None and not volume.deleting:
        return Blocked(
            Reason.LEFTOVER_VOLUME,
            f"{volume.name} is that of {left.member} when it left, and in the way of its joining anew",
            "save what you need of it, and delete it with its pod",
        )
    guard = decision.Guard("member_has_left", {"ordinal": ordinal})
    actions: list[decision.AnyAction] = []
    if volume is not None and not volume.deleting:
        why = f"{left.member} has left the group, and joins with a new volume"
        actions.append(volumes.delete(volume, seen.meta.namespace, why, guard))
    if pod is not None and not pod.deleting:
        why = f"{left.member} has left the group, and its pod holds the old volume"
        actions.append(pod_replacement.delete(pod, seen.meta.namespace, why, guard))
    if actions:
        return Act(Reason.CLEARING_VOLUME, f"{left.member} gets a new volume, to join anew", tuple(actions))
    said = f"the old volume of {member_trouble.of_all(seen, [left.member])} is going"
    return Wait(Reason.CLEARING_VOLUME, said, on="volume", within=600.0)


def pods_have_the_credentials(seen: Seen) -> Verdict:
    """A pod that is older than the last change of the credentials, and is off by the group's own word, starts anew.

    A container takes them when it starts. One that began with a wrong secret key would stay off for ever, although the
    Secret is right by now. Who is Online, or was since its container was started, is left alone: it works with what it
    began with, and comes back by itself.
    """
    if seen.listed is None or seen.primary is None or seen.now < seen.credentials_since:
        return DONE
    online = {m.name for m in seen.listed.online}
    old = [
        pod
        for pod in seen.there.pods
        if pod.running and pod.started_at < seen.credentials_since and pod.ordinal < seen.spec.size
        if pod.name not in online and pod.name not in seen.with_task
        if seen.online_run(pod.name) != conditions.timestamp(pod.started_at)
    ]
    if not old:
        return DONE
    names_ = {pod.name for pod in old}
    kept = [msgspec.to_builtins(it) for it in seen.status.troubles if it.target not in names_]
    why = "what failed with other credentials says nothing of these"
    forget = [decision.Remember(why=why, fields={"troubles": kept})] if len(kept) < len(seen.status.troubles) else []
    actions = [
        pod_replacement.delete(
            pod,
            seen.meta.namespace,
            "it began with other credentials than those of now, and is off",
            decision.Guard("pod_is_off", {"name": pod.name, "uid": pod.uid}),
        )
        for pod in old
    ]
    said = f"{', '.join(sorted(names_))} began with other credentials than those of now, and starts anew"
    return Act(Reason.RENEWING_CREDENTIALS, said, (*forget, *actions))


def _forget(seen: Seen, member: str) -> Verdict:
    rest = [msgspec.to_builtins(left) for left in seen.status.left if left.member != member]
    note = decision.Remember(why="nothing of it is left", fields={"left": rest})
    return Act(Reason.TASK_DONE, f"what {member} left behind is gone", (note,))
