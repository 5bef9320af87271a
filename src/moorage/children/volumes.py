"""Steps for the claims of pods: they grow in place, go with who has left, and are out of the way of who comes. Pure.

Whose a volume is that belongs to nobody any more is the system's to say, and to prove by a guard right before it goes:
what is deleted here is data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from moorage.api import builtin, quantities
from moorage.runtime import decision
from moorage.runtime.decision import DONE, Act, Blocked, Verdict, Wait

from .parts import VolumeSeen

GONE_WITHIN = 600.0
"""Seconds that the end of a claim may take before the wait for it is overdue."""


def grow(
    volumes: Iterable[VolumeSeen],
    size: str,
    namespace: str,
    reason: decision.Reason,
    *,
    blocked: decision.Reason,
    field: str,
) -> Verdict:
    """Volumes that are smaller than the spec says in `field` are asked to grow, if their class lets them."""
    wanted = whole_bytes(size)
    small = [v for v in volumes if not v.deleting and (whole_bytes(v.size) or wanted) < wanted]
    if not small:
        return DONE
    stuck = [volume for volume in small if volume.expandable is False]
    if stuck:
        return Blocked(
            blocked,
            f"{names(stuck)} is of a storage class that does not let volumes grow",
            f"set allowVolumeExpansion on the class, or set {field} back",
        )
    actions = tuple(
        decision.Patch(
            why=f"{volume.size} is less than {size}",
            resource=builtin.VOLUME_CLAIM,
            ref=builtin.VOLUME_CLAIM.ref(namespace, volume.name, volume.uid),
            ops=({"op": "replace", "path": "/spec/resources/requests/storage", "value": claimed(size)},),
        )
        for volume in small
    )
    return Act(reason, f"{names(small)} grows to {size}", actions)


def are_reclaimed(
    left: Iterable[VolumeSeen],
    namespace: str,
    reason: decision.Reason,
    *,
    guard: Callable[[VolumeSeen], decision.Guard],
) -> Verdict:
    """These belong to nobody any more, and go."""
    going = [volume for volume in left if not volume.deleting]
    if not going:
        return DONE
    why = f"{names(going)} belongs to nobody any more"
    actions = tuple(delete(volume, namespace, why, guard(volume)) for volume in going)
    return Act(reason, f"{names(going)} is deleted: {why}", actions)


def are_cleared(
    left: Sequence[VolumeSeen], reason: decision.Reason, *, blocked: decision.Reason, holders: str = ""
) -> Verdict:
    """These are in the way of new ones: those that may go were deleted before, the others are the user's to delete.

    `holders` says which pods hold them, each with its cause.
    """
    if not left:
        return DONE
    said = names(left)
    if not all(volume.deleting for volume in left):
        return Blocked(
            blocked,
            f"{said} of earlier members is in the way of new ones",
            "save what you need of it and delete it",
        )
    held = f", and held by pod {holders}" if holders else ""
    return Wait(reason, f"{said} is being deleted{held}", on="volume", within=GONE_WITHIN)


# --- one volume ---------------------------------------------------------------------------------------------------


def delete(volume: VolumeSeen, namespace: str, why: str, *require: decision.Guard) -> decision.Delete:
    """This incarnation of the claim goes, and what is on it."""
    return decision.Delete(
        why=why,
        resource=builtin.VOLUME_CLAIM,
        ref=builtin.VOLUME_CLAIM.ref(namespace, volume.name, volume.uid),
        require=require,
    )


def names(volumes: Iterable[VolumeSeen]) -> str:
    """What they are called."""
    return ", ".join(volume.name for volume in volumes)


def whole_bytes(size: str) -> int:
    """A quantity in bytes, a part of one rounded up; 0 for what is none."""
    return math.ceil(quantities.number(size) or 0)


_UNITS = [(f"{unit}i", 1024**n) for n, unit in reversed([*enumerate("KMGTPE", 1)])]
_UNITS += [(unit, 1000**n) for n, unit in reversed([*enumerate("kMGTPE", 1)])]


def claimed(size: str) -> str:
    """What is asked of a claim for that size: the same amount in the same words, whichever the spec has for it.

    Of whole bytes, as the API server would keep 0.3Gi as 322122547200m.
    """
    whole = whole_bytes(size)
    unit, factor = next(((unit, factor) for unit, factor in _UNITS if whole and whole % factor == 0), ("", 1))
    return f"{whole // factor}{unit}"
