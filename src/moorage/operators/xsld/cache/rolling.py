"""How a change of image or pod settings reaches the members: one after another, each once the group is well. Pure.

Highest ordinal first and the primary last. As catalog servers sit on the lowest ordinals, that is the vendor's order.
"""

from __future__ import annotations

from moorage.api import conditions, quantities
from moorage.children import ordinals, pod_replacement, stateful_set
from moorage.children.parts import PodSeen
from moorage.operators.xsld.group import answers
from moorage.operators.xsld.reasons import Reason
from moorage.runtime import decision
from moorage.runtime.decision import DONE, Act, Blocked, Verdict, Wait

from . import left_members, member_trouble, replication, tasks
from .observation import Seen


def outdated(seen: Seen) -> list[PodSeen]:
    """Pods that are not of the current template, in the order in which they are replaced."""
    group = seen.group
    chief = group.primary.name if group and group.primary else ordinals.pod(seen.name, 0)
    old = pod_replacement.outdated(seen.there.pods, seen.there.workload)
    return sorted(old, key=lambda pod: (_works(seen, pod), pod.name == chief, -pod.ordinal))


def _works(seen: Seen, pod: PodSeen) -> bool:
    member = seen.group.member(pod.name) if seen.group else None
    return member is not None and member.online


def _registered(seen: Seen, pod: PodSeen) -> bool:
    """Whether the group knows the member under its pod's address, if it tells of addresses at all."""
    member = seen.group.member(pod.name) if seen.group else None
    return member is None or not member.address or not pod.address or member.address == pod.address


def new_members_are_back(seen: Seen) -> Verdict:
    """While others are still of the old template, a member that was replaced must come back before the next one goes.

    How long it is away is told by its pod alone, so that nothing else that happens starts that time anew.
    """
    live, strategy = seen.there.workload, seen.spec.update_strategy
    new = (
        pod
        for pod in seen.there.pods
        if live and pod.revision == live.revision and pod.ordinal < live.replicas
        if pod.name in seen.known  # who was no member is nobody that is to come back
    )
    return pod_replacement.replaced_are_back(
        new,
        outdated(seen),
        Reason.UPDATING,
        is_back=lambda pod: _works(seen, pod) and _registered(seen, pod),
        why=lambda name: member_trouble.of(seen, name),
        now=seen.now,
        on="group",
        within=quantities.seconds(strategy.member_timeout),
        pace=seen.busy,
        instead=lambda _, late: _roll_back(seen, late),
        blocked=Reason.UPDATE_STALLED if strategy.pause_on_failure else None,
    )


def _roll_back(seen: Seen, late: str) -> Verdict:
    """The last good image is run again, if that is wanted."""
    good = _last_good_image(seen)
    if not good:
        return DONE
    note = decision.Remember(why="it is not tried again", fields={"failedImage": seen.spec.image})
    return Act(Reason.UPDATE_ROLLED_BACK, f"{late}; all run {good} again", (note,))


def _last_good_image(seen: Seen) -> str:
    """What a failed roll goes back to; nothing if that is not wanted, or it is not the image that has changed."""
    good = seen.status.good_image
    return good if seen.spec.update_strategy.rollback and good != seen.spec.image else ""


def image_is_as_asked(seen: Seen) -> Verdict:
    """After a roll back all is well, but not what the user asked for."""
    if not seen.refused_image:
        return DONE
    late = seen.spec.update_strategy.member_timeout
    return Blocked(
        Reason.UPDATE_ROLLED_BACK,
        f"a member of {seen.refused_image} did not come back within {late}; all run {seen.spec.image}",
        "name another image in spec.image; the same is tried again with updateStrategy.rollback: false",
    )


def template_rolls(seen: Seen) -> Verdict:
    """The next member of an old template is replaced, if every other is Online.

    Who was to join, and has given up its place as there was none, keeps nobody from being replaced.
    """
    group = seen.group
    if group is None or seen.spec.update_strategy.type == "OnDelete":
        return DONE
    return pod_replacement.next_is_replaced(
        [pod for pod in outdated(seen) if not pod.overdue or pod.name in group.names],
        seen.meta.namespace,
        Reason.UPDATING,
        gate=lambda pod: _may_go(seen, group, pod),
        guard=lambda pod: decision.Guard("others_are_online", {"pod": pod.name}),
        within=quantities.seconds(seen.spec.update_strategy.member_timeout),
        again=seen.busy,
        describe=lambda names: member_trouble.of_all(seen, names),
    )


def _may_go(seen: Seen, group: answers.Group, pod: PodSeen) -> Verdict:
    """What stands against replacing that member, or is to be done before; a primary hands over first."""
    weak = [m.name for m in group.members if not m.online and m.name != pod.name]
    if away := sorted({*weak, *coming(seen)} - {pod.name}):
        said = f"{member_trouble.of_all(seen, away)} not online; {pod.name} is not replaced meanwhile"
        return Wait(Reason.UPDATE_WAITS, said, on="group", within=pod_replacement.GATED_FOR, again=seen.busy)
    if bad := grids_that_are_off(seen):
        said = f"{pod.name} is replaced once {bad}"
        return Wait(Reason.UPDATE_WAITS, said, on="group", within=pod_replacement.GATED_FOR, again=seen.busy)
    if _works(seen, pod) and (held := _held_back(seen, pod)) != DONE:
        return held
    member = group.member(pod.name)
    if member is None or not member.primary:
        return DONE
    heir = _heir(seen)
    if heir:
        return tasks.submit(
            seen,
            tasks.FAILOVER,
            heir,
            heir,
            reason=Reason.FAILING_OVER,
            message=f"{heir} becomes the primary, before {pod.name} is replaced",
        )
    if heir := _next_copy(seen):
        return replication.replicate(seen, heir, f"{heir} becomes the copy, before {pod.name} is replaced")
    return DONE


def coming(seen: Seen) -> list[str]:
    """Who is to join: it may fail for the template that others are to get, or take the place that one leaves free.

    Who has no place may have given its own up by then (`Seen.yields`). Not whom a volume keeps out that the user is to
    delete.
    """
    kept = left_members.with_old_volumes(seen) if seen.spec.storage.reclaim_on_scale_down == "Retain" else ()
    return [name for name in seen.missing if name not in kept]


def grids_that_are_off(seen: Seen) -> str:
    """What is to be so before anybody goes, where it is not: all grids are known, and online."""
    if seen.told.grids is None:
        return "somebody tells whether the grids are online"
    bad = [grid.name for grid in seen.told.grids if grid.status != seen.wanted.said.grid_online]
    return f"grid {', '.join(bad)} is online" if bad else ""


def _held_back(seen: Seen, pod: PodSeen) -> Verdict:
    """What stands against replacing a pod that works.

    Nobody tells whether grid data is copied to others that came back a moment ago, so they get time for it.
    """
    settle, others = seen.spec.update_strategy.settle, seen.known - {pod.name}
    settled = pod_replacement.have_settled(
        pod,
        [other for other in seen.there.pods if other.name in others],
        Reason.UPDATING,
        back_since=lambda other: _back_since(seen, other),
        now=seen.now,
        settle=quantities.seconds(settle),
        said=settle,
        on="group",
    )
    if settled != DONE:
        return settled
    return pod_replacement.budget_allows(pod, seen.there.disruptions, Reason.UPDATE_WAITS, again=seen.busy)


def _back_since(seen: Seen, pod: PodSeen) -> float:
    """Since when its member works (epoch seconds): a pod is ready before the group has its member Online."""
    online = seen.online_since(pod.name)
    return max(pod.since, seen.now - conditions.age(online, seen.now) if online else 0.0)


def template_is_known(seen: Seen) -> Verdict:
    """Until the StatefulSet's controller has looked at a change, nobody knows whether the pods are up to date."""
    return stateful_set.template_is_known(seen.there.workload, Reason.UPDATING)


def _heir(seen: Seen) -> str:
    """The member with the copy, if it works."""
    members = seen.group.members if seen.group else ()
    return next((m.name for m in members if m.role == "slave" and m.online and seen.answer(m.name)), "")


def _next_copy(seen: Seen) -> str:
    """Who could hold the copy that the primary's replacement needs; nobody, if that failed a moment ago."""
    if not replication.wanted(seen) or seen.primary is None:
        return ""
    heir = replication.candidate(seen)
    return heir if heir and tasks.held_back(seen, tasks.REPLICATE, heir) is None else ""
