"""The steps by which containers get another image or size, and by which they become fewer: one after another. Pure.

Drive containers first, then compute. A container is replaced by a change of its own spec; how it stops and comes back
is for its own steps. Whoever is down already is changed at once, whatever else is waited for: a bad image must not
outlive its correction.
"""

from __future__ import annotations

from collections.abc import Sequence

from moorage.children import apply
from moorage.operators.weka import answers, names
from moorage.runtime import decision, freshness
from moorage.runtime.decision import DONE, Act, Blocked, Verdict, Wait

from . import build, types
from .observation import ContainerSeen, Seen
from .reasons import ClusterReason as Reason

MINUTE = 60.0
BACK_WITHIN = 30 * MINUTE
GATED_FOR = 60 * MINUTE
DATA_MOVES_WITHIN = 24 * 60 * MINUTE
PACE = 15.0
ENOUGH = 0.9
"""Of the containers that there are to be of a role, so many are up before the next one goes."""

UPGRADE = "upgrade"
"""In `status.told`, while an upgrade is begun and not over: what is told to begin is told its end."""

PHASES = {"drive": "DrivePhase", "compute": "ComputeRollingPhase"}


def old(seen: Seen) -> list[ContainerSeen]:
    """Containers that are to be replaced, in order."""
    return [it for role in names.BACKEND for it in seen.of(role) if it.revision != it.wanted]


def dead_are_rolled(seen: Seen) -> Verdict:
    """Those that the cluster does not list as up, and that do not run: nobody is served by them."""
    dead = [it for it in old(seen) if not it.runs and not seen.up(it)]
    if not dead or _paused(seen):
        return DONE
    if seen.formed and seen.known is None and any(it.runs for it in seen.there.containers):
        return DONE  # those who run have not said yet whether they are up
    return _change(seen, dead, f"{_names(dead)} does not run, and is changed at once")


def replaced_are_back(seen: Seen) -> Verdict:
    """While others are still to be replaced, each that was must be back; it is up, by the cluster's word."""
    left = old(seen)
    if not left or _at_once(seen):
        return DONE
    new = [it for role in names.BACKEND for it in seen.of(role) if it.revision == it.wanted]
    for it in new:
        if it.settled and seen.up(it):
            continue
        away = seen.now - it.since if it.since else 0.0
        if away > BACK_WITHIN:
            said = (
                f"{it.name} did not come back within {BACK_WITHIN / MINUTE:g} minutes; {_names(left)} is left as it is"
            )
            return Blocked(Reason.UPGRADE_STUCK, said, decision.next_of(Reason.UPGRADE_STUCK))
        said = f"{it.name} is to come back ({it.status.status or 'new'}); then {left[0].name} is replaced"
        return Wait(Reason.UPGRADING, said, on="container", within=BACK_WITHIN, again=PACE)
    return DONE


def phase_is_begun(seen: Seen) -> Verdict:
    """The cluster is told which of its parts are about to have another version."""
    left, found = [it for it in old(seen) if it.spec.image != seen.spec.image], seen.known
    if not left or found is None or _paused(seen) or _at_once(seen):
        return DONE
    if (held := _held(seen, left[0])) is not DONE:
        return held
    phase = PHASES[left[0].role]
    if found.phase == phase:
        return DONE
    if (gate := gate_is_open(seen, left[0], Reason.UPGRADE_GATED)) is not DONE:
        return gate
    args = {"phase": phase, "version": version(seen.spec.image)}
    told = {**seen.status.told, UPGRADE: args["version"]}
    note = decision.Remember(why="what is begun is brought to its end", fields={"told": told})
    begin = decision.Call(why="containers get another version", operation="upgrade.phase", args=args)
    return Act(Reason.UPGRADING, f"the cluster is told that {left[0].role} containers are upgraded", (note, begin))


def next_is_rolled(seen: Seen) -> Verdict:
    """One at a time, or all where that is asked for and confirmed."""
    left = old(seen)
    if not left:
        return DONE
    if _paused(seen):
        said = f"spec.overrides.upgradePaused is set; {_names(left)} is left as it is"
        return Wait(Reason.UPGRADE_PAUSED, said, on="spec", within=0.0)
    if _at_once(seen):
        return _change(seen, left, f"{_names(left)} are changed at once, as spec.overrides.upgradeAllAtOnce asks")
    going = left[0]
    if (held := _held(seen, going)) is not DONE:
        return held
    if (gate := gate_is_open(seen, going, Reason.UPGRADE_GATED)) is not DONE:
        return gate
    return _change(seen, [going], f"{going.name} is changed to {seen.spec.image}; {len(left) - 1} more are to follow")


def _held(seen: Seen, going: ContainerSeen) -> Verdict:
    """The pause point between drive and compute containers."""
    given = seen.spec.overrides
    if going.role != "compute" or not (given and given.upgrade_pause_pre_compute):
        return DONE
    said = f"spec.overrides.upgradePausePreCompute is set; {going.name} and the other compute containers are left"
    return Wait(Reason.UPGRADE_PAUSED, said, on="spec", within=0.0)


def upgrade_is_noted(seen: Seen) -> Verdict:
    """Once all run with it: the image that one can go back to. One that was taken back is brought to its end too."""
    found, begun = seen.known, UPGRADE in seen.status.told
    if found is None or old(seen) or (seen.status.last_applied_image == seen.spec.image and not begun):
        return DONE
    if not all(it.settled for role in names.BACKEND for it in seen.of(role)):
        return DONE
    told = {name: value for name, value in seen.status.told.items() if name != UPGRADE}
    fields = {"lastAppliedImage": seen.spec.image, "told": told}
    note = decision.Remember(why="all run with it", fields=fields)
    if not isinstance(seen.cluster, freshness.Fresh):
        return DONE
    if not (found.phase or begun):
        return Act(Reason.UPGRADING, f"all containers run {seen.spec.image}", (note,), go_on=True)
    finish = decision.Call(why="all have the new version", operation="upgrade.finish")
    return Act(Reason.UPGRADING, f"all containers run {seen.spec.image}; the upgrade is over", (finish, note))


def surplus_leaves(seen: Seen) -> Verdict:
    """The highest numbers of a role, those first that are down; the next one once this one is gone."""
    for role in names.BACKEND:
        mine = seen.of(role)
        surplus = len(mine) - seen.wanted(role)
        if surplus <= 0:
            continue
        ending = [it.name for it in seen.there.containers if it.deleting]
        if ending:
            said = f"{', '.join(ending)} is leaving; then {surplus} more of {role}"
            return Wait(Reason.SHRINKING, said, on="container", within=DATA_MOVES_WITHIN)
        going = min(mine, key=lambda it: (seen.up(it), -it.number))
        least = _stripe(seen)
        if role == "drive" and len(mine) - 1 < least:
            said = f"{len(mine)} drive containers are there, and a stripe needs {least}"
            return Blocked(Reason.STRIPE_NEEDS_THEM, said, decision.next_of(Reason.STRIPE_NEEDS_THEM))
        if seen.up(going) and (gate := gate_is_open(seen, going, Reason.SHRINK_GATED)) is not DONE:
            return gate
        ref = names.CONTAINER.ref(seen.meta.namespace, going.name, going.uid)
        out = decision.Delete(why=f"the template asks for {seen.wanted(role)}", resource=names.CONTAINER, ref=ref)
        return Act(
            Reason.SHRINKING, f"{going.name} is to leave: {len(mine)} {role} containers are more than asked for", (out,)
        )
    return DONE


def who_leaves_is_gone(seen: Seen) -> Verdict:
    """Until the cluster has forgotten it, the cluster is not what the template asks for."""
    leaving = [it for it in seen.there.containers if it.deleting]
    if not leaving:
        return DONE
    return Wait(Reason.SHRINKING, f"{_names(leaving)} is leaving", on="container", within=DATA_MOVES_WITHIN)


def _stripe(seen: Seen) -> int:
    """What a stripe needs, by the cluster's own word, or the spec's where that says more."""
    found = seen.known
    return max((found.data + found.parity) if found else 0, types.weakest_stripe(seen.spec))


def gate_is_open(seen: Seen, going: ContainerSeen, reason: Reason) -> Verdict:
    """What stands against taking away a container that is up: a cluster that is not well without it."""
    if not isinstance(seen.cluster, freshness.Fresh) or seen.known is None:
        said = f"the cluster is asked anew; then {going.name} is replaced"
        return Wait(Reason.CLUSTER_UNKNOWN, said, on="cluster", within=5 * MINUTE)
    fault = _fault(seen, seen.known)
    if not fault:
        return DONE
    return Wait(reason, f"{going.name} stays meanwhile: {fault}", on="cluster", within=GATED_FOR, again=PACE)


def _fault(seen: Seen, found: answers.Cluster) -> str:
    if not seen.dialect.words.has(seen.dialect.words.well, found.status):
        return f"the cluster says that it is {found.status or 'in no known state'}"
    if found.unprotected:
        return f"{found.unprotected} MiB are without their full protection"
    for role in names.BACKEND:
        up, asked = sum(seen.up(it) for it in seen.of(role)), seen.template.containers[role]
        if up < ENOUGH * asked:
            return f"{up} of {asked} {role} containers are up"
    leaving = [it for it in seen.there.containers if it.deleting]
    if len(leaving) > (1 - ENOUGH) * len(seen.there.containers):
        return f"{_names(leaving)} is leaving"
    return ""


def _change(seen: Seen, these: Sequence[ContainerSeen], said: str) -> Verdict:
    writes = []
    for it in these:
        body = seen.there.bodies[it.name].body
        spec = {**body["spec"], **build.restarting(seen.spec, it.role)}
        if forces(seen, it.role):
            spec["overrides"] = {"upgradeForceReplace": True}
        content = {**body, "spec": {key: value for key, value in spec.items() if value not in (None, [], {}, "")}}
        writes.append(
            apply.write(names.CONTAINER, apply.stamped(content), it.child, why=f"{it.name} is of another spec")
        )
    return Act(Reason.UPGRADING, said, tuple(writes))


def forces(seen: Seen, role: str) -> bool:
    """Whether a container that is replaced need not stop gracefully."""
    given = seen.spec.overrides
    if given is None:
        return False
    return bool(given.upgrade_force_replace or (role == "drive" and given.upgrade_force_replace_drives))


def version(image: str) -> str:
    """What an image's tag says that it holds."""
    return image.rpartition(":")[2]


def _paused(seen: Seen) -> bool:
    return bool(seen.spec.overrides and seen.spec.overrides.upgrade_paused)


def _at_once(seen: Seen) -> bool:
    return bool(seen.spec.overrides and seen.spec.overrides.upgrade_all_at_once)


def _names(these: Sequence[ContainerSeen]) -> str:
    return ", ".join(it.name for it in these)
