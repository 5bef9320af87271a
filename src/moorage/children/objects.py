"""Steps for the objects beside a workload, or instead of one: all that are wanted are there, and no others. Pure.

An object is written whole, by server-side apply. One that is made must have a name that nobody else uses: the system
serves the guard `NAME_IS_FREE` (see `guards.name_is_free`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from moorage.api import meta
from moorage.runtime import decision
from moorage.runtime.decision import DONE, Act, Verdict, Wait

from . import apply
from .parts import Key, Pair, SurplusSeen

ENDS_WITHIN = 600.0
"""Seconds that the end of an object may take before the wait for it is overdue."""

NAME_IS_FREE = "name_is_free"


def are_right(children: Iterable[Pair], reason: decision.Reason) -> Verdict:
    """They exist as they should be; what is missing is made, and what differs is written once.

    One that is being deleted is left alone: see `have_ended`.
    """
    wrong = [(desired, live) for desired, live in children if not live.good and not live.deleting]
    if not wrong:
        return DONE
    actions = tuple(
        apply.write(
            desired.resource,
            desired.body,
            live,
            why=f"{desired.id} is {change(live)}",
            fill=desired.fill,
            require=() if live.uid else (name_is_free(desired.resource, desired.name),),
        )
        for desired, live in wrong
    )
    said = ", ".join(f"{desired.id} ({change(live)})" for desired, live in wrong)
    return Act(reason, f"put right: {said}", actions)


def have_ended(children: Iterable[Pair], reason: decision.Reason) -> Verdict:
    """What somebody deletes is made anew, once it is gone."""
    ending = [desired.id for desired, live in children if live.deleting]
    if not ending:
        return DONE
    return Wait(reason, f"{', '.join(ending)} is being deleted", on="child", within=ENDS_WITHIN)


def surplus_goes(surplus: Iterable[SurplusSeen], namespace: str, reason: decision.Reason) -> Verdict:
    """What the spec no longer asks for leaves. `reading.surplus` says when nothing needs it any more."""
    going = [it for it in surplus if not it.deleting]
    if not going:
        return DONE
    actions = tuple(
        decision.Delete(
            why="the spec no longer asks for it",
            resource=it.resource,
            ref=it.resource.ref(namespace, it.name, it.uid),
        )
        for it in going
    )
    return Act(reason, f"no longer asked for: {', '.join(it.id for it in going)}", actions)


def are_gone(left: Sequence[str], reason: decision.Reason) -> Verdict:
    """What should be gone is gone; `left` names what is not, each with what is known to hold it."""
    if not left:
        return DONE
    said = f"should be gone, and is there still: {', '.join(left)}"
    return Wait(reason, said, on="surplus", within=ENDS_WITHIN)


def name_is_free(resource: meta.Resource, name: str) -> decision.Guard:
    """What somebody else made under the name of an object of ours is never taken over."""
    return decision.Guard(NAME_IS_FREE, {"kind": resource.kind, "name": name})


def change(live: apply.Child) -> str:
    """How an object is not as it should be, in words."""
    if not live.uid:
        return "missing"
    return "outdated" if live.differs == (apply.STAMP,) else f"changed at {', '.join(live.differs[:5])}"


def let_go(resource: meta.Resource, key: Key, uid: str, why: str) -> decision.Patch:
    """The object is owned by nobody any more, so that it outlives its owner."""
    return decision.Patch(
        why=why,
        resource=resource,
        ref=resource.ref(*key, uid),
        ops=({"op": "add", "path": "/metadata/ownerReferences", "value": []},),
    )
