"""Depots, a small made-up system: a StatefulSet `d` of three pods with a claim each, a Service and a ConfigMap.

Who is in use is all that it knows by itself.
"""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.api import builtin, meta
from moorage.children import apply, bodies, ordinals, parts, stateful_set
from moorage.runtime import decision

NOW = 1_800_000_000.0
KEY = ("ns", "d")
LABEL = "test.moorage.dev/depot"
DEPOT = meta.Resource("test.moorage.dev", "v1", "Depot", "depots")
OWNER = DEPOT.ref("ns", "d", "uid-d")


class Reason(decision.Reason):
    """What a Depot says: one for each thing that can be."""

    APPLYING = "Applying", "Objects are made.", "nothing"
    CREATING = "Creating", "The StatefulSet is made.", "nothing"
    RESIZING = "Resizing", "It gets another number of pods.", "nothing"
    REMAKING = "Remaking", "It is made anew.", "nothing"
    ENDING = "Ending", "An object is being deleted.", "its end is awaited"
    SURPLUS = "Surplus", "An object is too many.", "nothing"
    GROWING = "Growing", "Volumes grow.", "nothing"
    STUCK = "Stuck", "Volumes can't grow.", "see the class"
    CLEARING = "Clearing", "A volume goes.", "its end is awaited"
    KEPT = "Kept", "A volume is in the way.", "delete it"
    REVIVING = "Reviving", "A dead pod is made anew.", "nothing"
    ROLLING = "Rolling", "Pods are replaced.", "the next is awaited"
    HELD = "Held", "A pod may not go.", "the others are awaited"
    STALLED = "Stalled", "A pod did not come back.", "correct it"
    LEAVING = "Leaving", "It goes.", "nothing"


REASONS = stateful_set.Reasons(Reason.CREATING, Reason.RESIZING, Reason.REMAKING, Reason.ENDING)


def desired(resource: meta.Resource, name: str, *, fill: str = "", **rest: Any) -> parts.Desired:
    """An object to be had."""
    return parts.Desired(resource, bodies.owned(resource, name, OWNER, rest, labels={LABEL: "d"}), fill)


CONFIG = desired(builtin.CONFIG_MAP, "d-config", data={"a": "1"})
SERVICE = desired(builtin.SERVICE, "d", spec={})
SECRET = desired(builtin.SECRET, "d-key", fill="key")


def good(it: parts.Desired, **changes: Any) -> parts.Pair:
    """What there is of it is as it should be, but for these changes."""
    return it, msgspec.structs.replace(apply.Child(f"uid-{it.id}"), **changes)


def missing(it: parts.Desired) -> parts.Pair:
    return it, apply.Child()


def statefulset(replicas: int) -> parts.Desired:
    """The StatefulSet with so many pods."""
    return desired(builtin.STATEFUL_SET, "d", spec={"replicas": replicas})


def live(replicas: int = 3, **changes: Any) -> parts.WorkloadSeen:
    """The StatefulSet as it should be, but for these changes."""
    made = parts.WorkloadSeen("sts-uid", replicas, "new", apply.Child("sts-uid"))
    return msgspec.structs.replace(made, **changes)


def differs(*paths: str, **changes: Any) -> apply.Child:
    """What there is of the StatefulSet, where it is not as it should be."""
    return msgspec.structs.replace(apply.Child("sts-uid", differs=paths or (apply.STAMP,)), **changes)


def pod(ordinal: int, **changes: Any) -> parts.PodSeen:
    """A pod that is well, of the current template."""
    made = parts.PodSeen(
        name=ordinals.pod("d", ordinal),
        ordinal=ordinal,
        uid=f"uid-{ordinal}",
        revision="new",
        came_up=True,
        running=True,
        ready=True,
        since=NOW - 600.0,
    )
    return msgspec.structs.replace(made, **changes)


def volume(ordinal: int, **changes: Any) -> parts.VolumeSeen:
    """A claim of the size that is wanted."""
    made = parts.VolumeSeen(f"data-d-{ordinal}", ordinal, f"pvc-{ordinal}", "1Gi")
    return msgspec.structs.replace(made, **changes)


def guard(it: parts.PodSeen | parts.VolumeSeen) -> decision.Guard:
    """What a Depot asks right before anything goes."""
    return decision.Guard("is_unused", {"ordinal": it.ordinal})


def described(names: Any) -> str:
    """Pods with what is wrong with each."""
    return ", ".join(f"{name} (its words)" for name in names)
