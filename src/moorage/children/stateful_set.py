"""Steps for a StatefulSet whose pods are replaced by us: it is there, as it should be, and nobody's but ours. Pure.

Its update strategy is OnDelete, and its claims are retained: what becomes of pods and volumes is decided by
`pod_replacement` and `volumes`. Fewer pods only by live proof, pod by pod.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from moorage.api import additions, builtin
from moorage.runtime import decision
from moorage.runtime.decision import DONE, Act, Verdict, Wait

from . import apply, objects
from .parts import Desired, Key, WorkloadSeen


class Reasons(msgspec.Struct, frozen=True):
    """Under what it is told."""

    creating: decision.Reason  # it is made, or put right
    resizing: decision.Reason  # it gets another number of pods
    replacing: decision.Reason  # it is made anew around its pods
    ending: decision.Reason  # somebody deletes it


def is_right(
    live: WorkloadSeen | None,
    key: Key,
    replicas: int,
    desired: Callable[[int], Desired],
    reasons: Reasons,
    *,
    owner: str,
    may_go: Callable[[int], decision.Guard],
    handed_on: str = "",
) -> Verdict:
    """The StatefulSet, its template and its number of pods. `may_go` guards the end of the pod of one ordinal.

    `owner` is what its owner is called in a sentence, such as "the cache". `handed_on` names settings that go into the
    template as the user wrote them: the API server may refuse them without a word of where.
    """
    name, told = key[1], f", and has what {handed_on} says" if handed_on else ""
    if live is None:
        free = objects.name_is_free(builtin.STATEFUL_SET, name)
        why = f"{owner} has no StatefulSet{told}"
        action = decision.Apply(why=why, require=(free,), resource=builtin.STATEFUL_SET, body=desired(replicas).body)
        return Act(reasons.creating, f"StatefulSet {name} is made with {replicas} pods", (action,))
    if live.child.deleting:
        said = f"StatefulSet {name} is being deleted"
        return Wait(reasons.ending, said, on="child", within=objects.ENDS_WITHIN)
    if live.fixed:
        return made_anew(live, key, reasons.replacing)
    if live.child.good:
        return template_is_its_own(live, key, reasons.creating)
    down = replicas < live.replicas
    action = apply.write(
        builtin.STATEFUL_SET,
        desired(replicas).body,
        live.child,
        why=f"{replicas} pods, there are {live.replicas}" if down else f"it is {objects.change(live.child)}{told}",
        require=tuple(may_go(ordinal) for ordinal in range(replicas, live.replicas)),
    )
    if replicas != live.replicas:
        return Act(reasons.resizing, f"StatefulSet {name} goes from {live.replicas} to {replicas} pods", (action,))
    return Act(reasons.creating, f"StatefulSet {name} is put right", (action,))


def made_anew(live: WorkloadSeen, key: Key, reason: decision.Reason) -> Verdict:
    """It goes and leaves its pods, which the next one takes in, as `live.fixed` can't be changed in place."""
    remove = decision.Delete(
        why=f"{', '.join(live.fixed)} can't be changed in place; the pods stay",
        resource=builtin.STATEFUL_SET,
        ref=builtin.STATEFUL_SET.ref(*key, live.uid),
        propagation="Orphan",
    )
    return Act(reason, f"StatefulSet {key[1]} is made anew around its pods", (remove,))


def template_is_its_own(live: WorkloadSeen, key: Key, reason: decision.Reason) -> Verdict:
    """What others put into the template would replace every pod, and is none of the spec."""
    if not live.added:
        return DONE
    said = ", ".join(".".join(map(str, place)) for place in reversed(live.added))
    unchanged = {"op": "test", "path": "/metadata/resourceVersion", "value": live.version}
    patch = decision.Patch(
        why=f"{said} is not of the spec",
        resource=builtin.STATEFUL_SET,
        ref=builtin.STATEFUL_SET.ref(*key, live.uid),
        ops=(unchanged, *({"op": "remove", "path": additions.pointer(place)} for place in live.added)),
    )
    message = f"StatefulSet {key[1]} is put right: {said}, which is not of the spec, is taken out"
    return Act(reason, message, (patch,))


def template_is_known(live: WorkloadSeen | None, reason: decision.Reason) -> Verdict:
    """Until the StatefulSet's controller has looked at a change, nobody knows whether the pods are up to date."""
    if live is None or live.revision:
        return DONE
    said = "the StatefulSet's controller is to look at the new template"
    return Wait(reason, said, on="workload", within=300.0, unseen=True)
