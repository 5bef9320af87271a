"""The step by which a container that stays down is replaced by another one, within a budget. Pure.

It is deleted, and goes in its own time: its deletion waits until a new one has come, where a stripe needs that many,
and until the others have its data. What only a person can judge is left alone: a node that does not report may run it
still.
"""

from __future__ import annotations

from moorage.api import conditions
from moorage.operators.weka import names
from moorage.operators.weka.container.reasons import ContainerReason
from moorage.runtime import decision, freshness
from moorage.runtime.decision import DONE, Act, Blocked, Verdict, Wait

from . import rolling
from .observation import ContainerSeen, Seen
from .reasons import ClusterReason as Reason

DAY = 86_400.0
FOR = frozenset(
    {
        ContainerReason.NOT_UP,
        ContainerReason.STARTING,
        ContainerReason.AGENT_UNKNOWN,
        ContainerReason.POD_NOT_RUNNING,
        ContainerReason.NODE_GONE,
        ContainerReason.CLUSTER_FORGOTTEN,
    }
)
"""Where a container stands that another one may be better than. Of a node that takes no pods, or does not report, a
person decides; who lacks drives or ports would lack them again."""

PASSING = frozenset(
    {
        ContainerReason.OBJECTS_UNKNOWN,
        ContainerReason.WRITING_SCRIPTS,
        ContainerReason.MAKING_POD,
        ContainerReason.REPLACING_POD,
        ContainerReason.PINNING,
        ContainerReason.ALLOCATING,
        ContainerReason.WRITING_RESOURCES,
        ContainerReason.JOINING,
        ContainerReason.CLUSTER_UNKNOWN,
        ContainerReason.ADDING_DRIVE,
    }
)
"""What a container that does not come up passes through, again and again. After anything else, such as its node's
maintenance, it is given its time anew: all that it had is there still."""


def down(seen: Seen) -> dict[str, str]:
    """Who is down where another one may be better, by name, and since when; for `status.down`."""
    found: dict[str, str] = {}
    for it in (it for role in names.BACKEND for it in seen.of(role)):
        before, reason = seen.status.down.get(it.name), it.status.progress.reason
        if not it.down or seen.up(it):
            continue
        if reason in FOR:
            found[it.name] = before or conditions.timestamp(seen.now)
        elif before and reason in PASSING:
            found[it.name] = before
    return found


def down_are_replaced(seen: Seen) -> Verdict:
    """One at a time, the one that has been down for longest; while all others are up, and so many a day."""
    after = seen.replace.after_seconds
    if not after or seen.known is None or not seen.status.timestamps.io_started or rolling.old(seen):
        return DONE
    stay = [it for role in names.BACKEND for it in seen.of(role)]
    since = {it.name: seen.status.down[it.name] for it in stay if _is_down(seen, it)}
    if not since:
        return DONE
    going = min((it for it in stay if it.name in since), key=lambda it: (since[it.name], it.name))
    away = f"{going.name} has been down for {conditions.age(since[going.name], seen.now) / 60:.0f} minutes"
    if any(it.deleting for it in seen.there.containers):
        return DONE  # who leaves is told of by the steps that follow
    if others := [it.name for it in stay if it is not going and not seen.up(it)]:
        said = f"{away}, and is left, as others are not up either: {', '.join(others)}"
        return Blocked(Reason.REPLACE_GATED, said, decision.next_of(Reason.REPLACE_GATED))
    recent = {name: at for name, at in seen.status.replaced.items() if conditions.age(at, seen.now) < DAY}
    if len(recent) >= seen.replace.per_day:
        said = f"{away}, and {len(recent)} containers were replaced within a day: {', '.join(sorted(recent))}"
        return Blocked(Reason.REPLACE_GATED, said, decision.next_of(Reason.REPLACE_GATED))
    if not isinstance(seen.cluster, freshness.Fresh):
        said = f"{away}; the cluster is asked anew before it is replaced"
        return Wait(Reason.CLUSTER_UNKNOWN, said, on="cluster", within=300.0)
    note = decision.Remember(
        why="no more are replaced than the budget allows",
        fields={"replaced": {**recent, going.name: conditions.timestamp(seen.now)}},
    )
    ref = names.CONTAINER.ref(seen.meta.namespace, going.name, going.uid)
    gone = decision.Delete(why="it stayed down", resource=names.CONTAINER, ref=ref)
    return Act(Reason.REPLACING, f"{away}: it is deleted, and another one takes its place", (note, gone))


def _is_down(seen: Seen, it: ContainerSeen) -> bool:
    """By its own word, by its cluster's, and for long."""
    since = seen.status.down.get(it.name)
    if since is None or conditions.age(since, seen.now) <= seen.replace.after_seconds:
        return False
    return it.down and not seen.up(it) and it.status.progress.reason in FOR
