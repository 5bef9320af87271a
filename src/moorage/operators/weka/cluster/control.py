"""What moorage does for a WekaCluster, step by step. Pure: read top to bottom.

Logins and ports, then containers, then the cluster that they are formed into: asked each time anew, as what it says
itself is believed. Then it is rolled to another image or size, and shrinks, one container after another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moorage.api import conditions
from moorage.children import apply, objects
from moorage.operators import steps
from moorage.operators.weka import allocation, answers, names, place
from moorage.runtime import decision, freshness
from moorage.runtime.decision import DONE, Act, Blocked, Verdict, Wait

from . import build, replacing, rolling, types
from .observation import ContainerSeen, Seen
from .reasons import ClusterReason as Reason

MINUTE = 60.0
READY_WITHIN = 30 * MINUTE
ANSWERS_WITHIN = 5 * MINUTE
RANGE_IS_FREE = "range_is_free"
DESTRUCTIVE = {
    "upgradeForceReplace": "upgrade_force_replace",
    "upgradeForceReplaceDrives": "upgrade_force_replace_drives",
    "upgradeAllAtOnce": "upgrade_all_at_once",
}
"""Overrides that may harm data, by their names on the wire."""

CONFIG_FS, DEFAULT_FS, DEFAULT_GROUP = ".config_fs", "default", "default"
MOST_AT_ONCE = 32
"""Containers that are made in one pass."""

# --- its place, and what it may be ------------------------------------------------------------------------------------


def namespace_is_allowed(seen: Seen) -> Verdict:
    """Who may make one of these is root on nodes, so an administrator opens each namespace for them."""
    return place.namespace_is_allowed(seen, Reason.NAMESPACE_NOT_ALLOWED)


def image_is_allowed(seen: Seen) -> Verdict:
    """By the beginning of its name."""
    return place.image_is_allowed(seen, seen.spec.image, Reason.IMAGE_NOT_ALLOWED)


def spec_is_served(seen: Seen) -> Verdict:
    """What would lead to something else than is asked for is not begun."""
    if seen.spec.expand_endpoints:
        said = "spec.expandEndpoints names a cluster that is formed elsewhere"
        return Blocked(Reason.NOT_SERVED, said, decision.next_of(Reason.NOT_SERVED))
    if seen.spec.overrides and seen.spec.overrides.post_form_cluster_script:
        said = "spec.overrides.postFormClusterScript is to be run once the cluster is formed"
        return Blocked(Reason.NOT_SERVED, said, decision.next_of(Reason.NOT_SERVED))
    least = types.weakest_stripe(seen.spec)
    if seen.spec.stripe_width is not None and seen.template.containers["drive"] < least:
        drive = seen.template.containers["drive"]
        said = f"the template has {drive} drive containers, and a stripe of this cluster needs {least}"
        return Blocked(Reason.STRIPE_NEEDS_THEM, said, decision.next_of(Reason.STRIPE_NEEDS_THEM))
    return DONE


def overrides_are_confirmed(seen: Seen) -> Verdict:
    """What may harm data is meant: the annotation names it."""
    for name, field in DESTRUCTIVE.items():
        if seen.spec.overrides and getattr(seen.spec.overrides, field) and not seen.confirmed(name):
            said = f"spec.overrides.{name} is set, and the annotation {names.CONFIRM} does not name it"
            fix = f"annotate the cluster {names.CONFIRM}={name}, or take the override out"
            return Blocked(Reason.OVERRIDE_UNCONFIRMED, said, fix)
    return DONE


def finalizer_is_set(seen: Seen) -> Verdict:
    """Before the first outside effect."""
    why = "its containers must be gone before it is"
    return steps.finalizer_is_set(seen.meta, names.CLUSTER_FINALIZER, Reason.TAKING_CARE, why)


def rights_are_bound(seen: Seen) -> Verdict:
    """The account of the cluster's namespace is bound to its one role there."""
    return place.rights_are_bound(seen, Reason.BINDING)


def objects_are_known(seen: Seen) -> Verdict:
    """Nothing is decided on watches that are not filled."""
    return place.objects_are_known(seen.objects, Reason.OBJECTS_UNKNOWN)


def overrides_are_noted(seen: Seen) -> Verdict:
    """Which were heeded, and when first, stays to be seen."""
    given = seen.spec.overrides
    new = [it for it, field in DESTRUCTIVE.items() if given and getattr(given, field)]
    new = [it for it in new if it not in seen.status.overrides_used]
    if not new:
        return DONE
    at = conditions.timestamp(seen.now)
    note = decision.Remember(
        why="they may harm data", fields={"overridesUsed": {**seen.status.overrides_used, **dict.fromkeys(new, at)}}
    )
    return Act(Reason.TAKING_CARE, f"heeded from now on: {', '.join(new)}", (note,), go_on=True)


def login_is_there(seen: Seen) -> Verdict:
    """Made once, before the cluster is; never made anew for one that was formed with another."""
    login, named = seen.there.login, seen.spec.operator_secret_ref
    if login.operator and login.user:
        return DONE
    if named and not login.operator:
        said = f"there is no Secret {named}, which spec.operatorSecretRef names"
        return Blocked(
            Reason.LOGIN_MISSING,
            said,
            "make it, with the keys username, password, org, join-secret, and user-password for the people's user",
        )
    if not login.operator and (seen.formed or seen.status.formed):
        said = f"Secret {names.operator_secret(seen.meta.uid)} is gone, with which the cluster was formed"
        return Blocked(Reason.LOGIN_MISSING, said, decision.next_of(Reason.LOGIN_MISSING))
    make = decision.Call(why="nobody can log in without", operation="login.make", args={"named": named})
    return Act(Reason.MAKING_LOGIN, "the Secrets with the logins are made", (make,))


def ports_are_chosen(seen: Seen) -> Verdict:
    """Once, and apart from all other clusters: nodes are shared, and pods use their networks."""
    if seen.status.ports is not None and seen.status.ports.base_port:
        return DONE
    rules, asked = seen.dialect.ports, seen.spec.ports.base_port if seen.spec.ports else 0
    found = allocation.cluster_range(seen.there.ranges, rules, wanted=asked)
    if found is None:
        said = f"no range of {rules.cluster} ports is free" + (f" from {asked} on" if asked else "")
        return Blocked(Reason.PORTS_LACKING, said, decision.next_of(Reason.PORTS_LACKING))
    guard = decision.Guard(RANGE_IS_FREE, {"first": found.first, "count": found.count})
    ports = {"basePort": found.first, "portRange": found.count}
    note = decision.Remember(why="it is written down before it is used", fields={"ports": ports}, require=(guard,))
    return Act(Reason.CHOOSING_PORTS, f"ports from {found.first} on are the cluster's", (note,))


# --- its containers ---------------------------------------------------------------------------------------------------


def containers_are_made(seen: Seen) -> Verdict:
    """As many as the template asks for; one that leaves does not count, so that its place is taken at once.

    Their numbers are written down first, and none is used twice: the cluster knows each by its number. Those that were
    written down, and whose containers were not made, come first.
    """
    numbers: dict[str, list[int]] = {}
    new: dict[str, list[int]] = {}
    for role in names.BACKEND:
        missing = min(seen.wanted(role) - len(seen.of(role)), MOST_AT_ONCE)
        if missing > 0:
            begun = _begun(seen, role)[:missing]
            first = max([seen.status.made.get(role, 0), *(it.number + 1 for it in seen.of(role, leaving=True))])
            new[role] = list(range(first, first + missing - len(begun)))
            numbers[role] = [*begun, *new[role]]
    if not numbers:
        return DONE
    made = {**seen.status.made, **{role: them[-1] + 1 for role, them in new.items() if them}}
    making = {**seen.status.making, **{role: [*_begun(seen, role), *them] for role, them in new.items() if them}}
    note = decision.Remember(why="no number is used twice", fields={"made": made, "making": making})
    create = tuple(
        apply.write(
            names.CONTAINER,
            body := _body(seen, role, number),
            apply.Child(),
            why="the template asks for it",
            require=(objects.name_is_free(names.CONTAINER, str(body["metadata"]["name"])),),
        )
        for role, them in numbers.items()
        for number in them
    )
    said = ", ".join(f"{len(them)} {role}" for role, them in numbers.items())
    acts: tuple[decision.AnyAction, ...] = (note, *create) if any(new.values()) else create
    return Act(Reason.MAKING_CONTAINERS, f"containers are made: {said}", acts)


def _begun(seen: Seen, role: str) -> tuple[int, ...]:
    """Numbers that were written down, and of which no container was seen yet."""
    there = {it.number for it in seen.of(role, leaving=True)}
    return tuple(sorted(set(seen.status.making.get(role, ())) - there))


def made_are_noted(seen: Seen) -> Verdict:
    """Whose container was seen is made: it is not made once more under that number when it is gone."""
    left = {role: them for role in names.BACKEND if (them := _begun(seen, role))}
    if left == seen.status.making:
        return DONE
    note = decision.Remember(
        why="no number is used twice", fields={"making": {role: [*them] for role, them in left.items()}}
    )
    return Act(Reason.MAKING_CONTAINERS, "the containers that were begun are there", (note,), go_on=True)


def _body(seen: Seen, role: str, number: int) -> dict[str, Any]:
    login = seen.spec.operator_secret_ref or names.operator_secret(seen.meta.uid)
    return build.container(seen.meta, seen.spec, role, number, login=login, join=join_points(seen)).body


def join_points(seen: Seen) -> tuple[str, ...]:
    """Where a container is told that its cluster is: those that are up, by name, so that no two looks differ."""
    if not seen.formed:
        return ()
    up = [it for it in seen.there.containers if it.status.cluster_id and it.status.management_ip and not it.deleting]
    up.sort(key=lambda it: (it.role, it.number))
    found = [
        (it.status.management_ip, it.status.allocations.weka_port) for it in up[:5] if it.status.allocations is not None
    ]
    return build.endpoints(found)


def containers_are_right(seen: Seen) -> Verdict:
    """As the spec has them, but for what needs a restart, and for where they are joined, which is told when made."""
    wrong = [it for it in seen.there.containers if not it.deleting and not it.child.good]
    if not wrong:
        return DONE
    writes = tuple(
        apply.write(
            names.CONTAINER, seen.there.bodies[it.name].body, it.child, why=f"{it.name} is {objects.change(it.child)}"
        )
        for it in wrong
    )
    return Act(Reason.CHANGING_CONTAINERS, f"put right: {', '.join(it.name for it in wrong)}", writes)


def containers_are_ready(seen: Seen) -> Verdict:
    """Until the cluster is formed: enough of each role that run."""
    if seen.formed:
        return DONE
    least = {"drive": seen.dialect.sizes.least_drive, "compute": seen.dialect.sizes.least_compute}
    lacking = []
    for role in names.BACKEND:
        mine = seen.of(role)
        ready, needed = sum(it.runs for it in mine), max(least[role], seen.wanted(role))
        if ready < needed:
            late = ", ".join(f"{it.name} ({it.status.status or 'new'})" for it in mine if not it.runs)
            lacking.append(f"{ready} of {needed} {role} containers run" + (f": {late}" if late else ""))
    if not lacking:
        return DONE
    return Wait(Reason.CONTAINERS_NOT_READY, "; ".join(lacking), on="container", within=READY_WITHIN)


# --- the cluster itself -----------------------------------------------------------------------------------------------


def cluster_is_formed(seen: Seen) -> Verdict:
    """By an order to one container, which is written down first: whoever repeats it gives it to the same one."""
    if seen.formed:
        return DONE
    if not isinstance(seen.cluster, freshness.Fresh):
        return _unknown(seen)
    runs = [it for role in ("compute", "drive") for it in seen.of(role) if it.runs]
    via = next((it for it in runs if it.name == seen.status.formed), runs[0])
    args = {
        "pod": via.name,
        "members": [
            [it.status.management_ip, it.status.allocations.weka_port if it.status.allocations else 0] for it in runs
        ],
        "leadership": seen.spec.leadership_raft_size or 0,
    }
    note = decision.Remember(why="the order is not given to two", fields={"formed": via.name})
    form = decision.Call(why="its containers run", operation="cluster.form", args=args)
    return Act(Reason.FORMING, f"{len(runs)} containers are formed into a cluster, by {via.name}", (note, form))


def cluster_answers(seen: Seen) -> Verdict:
    """Somebody has said how it stands; what that was before the last order is enough where nothing is to be done."""
    return DONE if seen.known is not None else _unknown(seen)


def anew(seen: Seen, act: Act) -> Verdict:
    """No order is given on what was said before the last one."""
    return act if isinstance(seen.cluster, freshness.Fresh) else _unknown(seen)


def _unknown(seen: Seen) -> Verdict:
    match seen.cluster:
        case freshness.Failed() as failed:
            return decision.unknown(Reason.CLUSTER_UNKNOWN, failed, "cluster", within=ANSWERS_WITHIN)
        case freshness.Stale(why=why):
            return Wait(
                Reason.CLUSTER_UNKNOWN, f"the cluster is asked anew: {why}", on="cluster", within=ANSWERS_WITHIN
            )
    return Wait(Reason.CLUSTER_UNKNOWN, "who was asked belongs to no cluster", on="cluster", within=ANSWERS_WITHIN)


def cluster_is_set(seen: Seen) -> Verdict:
    """Its stripe before IO begins, after which it can't be changed; its hot spare at any time.

    What it says nothing of is told once, and noted once that was carried out.
    """
    found = seen.known
    if found is None:
        return DONE
    wanted: dict[str, int] = {}
    if not _io_runs(seen, found):
        wanted["parity"] = types.redundancy(seen.spec)
        if seen.spec.stripe_width is not None:
            wanted["data"] = seen.spec.stripe_width
    wanted["hot_spare"] = seen.spec.hot_spare
    wrong: dict[str, Any] = {name: value for name, value in wanted.items() if getattr(found, name) != value}
    once = _told_once(seen, found)
    new = {name: value for name, (_, value) in once.items() if seen.status.told.get(name) != str(value)}
    wrong |= {once[name][0]: value for name, value in new.items()}
    if not wrong:
        return DONE
    acts: tuple[decision.AnyAction, ...] = (
        decision.Call(why="the spec has it so", operation="cluster.set", args=wrong),
    )
    if new:
        told = {**seen.status.told, **{name: str(value) for name, value in new.items()}}
        acts += (decision.Remember(why="the cluster does not say it", fields={"told": told}),)
    said = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in wrong.items())
    return anew(seen, Act(Reason.SETTING, f"the cluster is told: {said}", acts))


def _told_once(seen: Seen, found: answers.Cluster) -> dict[str, tuple[str, Any]]:
    """By the name in `status.told`: what the order calls it, and its value."""
    once: dict[str, tuple[str, Any]] = {"name": ("name", seen.name)}
    if seen.spec.bucket_raft_size and not _io_runs(seen, found):
        once["bucketRaftSize"] = ("raft", seen.spec.bucket_raft_size)
    return once


def containers_have_joined(seen: Seen) -> Verdict:
    """Before IO begins: all of them."""
    found = seen.known
    if found is None or _io_runs(seen, found):
        return DONE
    out = [it.name for role in names.BACKEND for it in seen.of(role) if not seen.up(it)]
    if not out:
        return DONE
    return Wait(
        Reason.CONTAINERS_JOIN, f"not in the cluster yet: {', '.join(out)}", on="container", within=READY_WITHIN
    )


def drives_are_enough(seen: Seen) -> Verdict:
    """Before IO begins: as many as the spec names, or all."""
    found = seen.known
    if found is None or _io_runs(seen, found):
        return DONE
    asked = seen.spec.start_io_conditions.min_num_drives if seen.spec.start_io_conditions else 0
    least = asked or sum(it.spec.num_drives for it in seen.of("drive"))
    if len(found.drives) >= least:
        return DONE
    said = f"{len(found.drives)} of {least} drives are added"
    return Wait(Reason.WAITING_FOR_DRIVES, said, on="container", within=READY_WITHIN)


def io_runs(seen: Seen) -> Verdict:
    """By the cluster's own word."""
    found = seen.known
    if found is None or _io_runs(seen, found):
        return DONE
    if found.io.upper() == "STARTING":
        return Wait(Reason.STARTING_IO, "the cluster begins", on="cluster", within=READY_WITHIN)
    args = {"started": seen.dialect.words.io_started}
    start = decision.Call(why="all that it needs is there", operation="cluster.start_io", args=args)
    return anew(seen, Act(Reason.STARTING_IO, "the cluster is told to begin", (start,)))


def _io_runs(seen: Seen, found: answers.Cluster) -> bool:
    words = seen.dialect.words
    return words.has(words.io_started, found.io)


def users_are_there(seen: Seen) -> Verdict:
    """People have a login of their own, in a Secret of their own."""
    found = seen.known
    if found is None or names.user_secret(seen.name) in found.users:
        return DONE
    add = decision.Call(
        why="people have a login of their own", operation="user.add", args={"user": names.user_secret(seen.name)}
    )
    return anew(seen, Act(Reason.ADDING_USER, f"user {names.user_secret(seen.name)} is made in the cluster", (add,)))


def filesystems_are_there(seen: Seen) -> Verdict:
    """The group, the one for settings, and the default one."""
    found = seen.known
    if found is None:
        return DONE
    if DEFAULT_GROUP not in found.groups:
        add = decision.Call(why="file systems are in groups", operation="group.add", args={"name": DEFAULT_GROUP})
        return anew(seen, Act(Reason.ADDING_FILESYSTEM, f"group {DEFAULT_GROUP} is made", (add,)))
    for name in (CONFIG_FS, DEFAULT_FS):
        if name not in found.filesystems:
            args = {"name": name, "group": DEFAULT_GROUP, **_size(name, found.capacity)}
            make = decision.Call(why="every cluster has it", operation="filesystem.add", args=args)
            return anew(seen, Act(Reason.ADDING_FILESYSTEM, f"file system {name} is made", (make,)))
    return DONE


def _size(name: str, capacity: int) -> dict[str, int]:
    """Bytes: of the settings' one 100 GiB, but never more than the cluster has; of the default one a tenth, thin."""
    gib = 2**30
    if name == CONFIG_FS:
        total = min(100 * gib, capacity // 10) if capacity else 100 * gib
        return {"total": total, "most": total, "least": max(1, total // 10)}
    return {"total": capacity, "most": max(1, capacity // 10), "least": max(1, capacity // 100)}


def all_are_up(seen: Seen) -> Verdict:
    """What does not come back by itself is told of; the cluster serves meanwhile."""
    out = [_how(seen, it) for role in names.BACKEND for it in seen.of(role) if not seen.up(it) or not it.settled]
    if not out:
        return DONE
    return Wait(Reason.NOT_ALL_UP, f"not as they should be: {', '.join(out)}", on="container", within=READY_WITHIN)


def _how(seen: Seen, it: ContainerSeen) -> str:
    return f"{it.name} ({it.status.status or 'new'}{'' if seen.up(it) else ', not up'})"


STEPS: tuple[Callable[[Seen], Verdict], ...] = (
    namespace_is_allowed,
    image_is_allowed,
    spec_is_served,
    overrides_are_confirmed,
    finalizer_is_set,
    rights_are_bound,
    objects_are_known,
    overrides_are_noted,
    login_is_there,
    ports_are_chosen,
    made_are_noted,
    containers_are_made,
    containers_are_right,
    containers_are_ready,
    cluster_is_formed,
    rolling.dead_are_rolled,
    cluster_answers,
    cluster_is_set,
    containers_have_joined,
    drives_are_enough,
    io_runs,
    users_are_there,
    filesystems_are_there,
    rolling.replaced_are_back,
    rolling.phase_is_begun,
    rolling.next_is_rolled,
    rolling.upgrade_is_noted,
    replacing.down_are_replaced,
    rolling.surplus_leaves,
    all_are_up,
    rolling.who_leaves_is_gone,
)
