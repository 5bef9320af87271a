"""What moorage does for a WekaContainer, step by step. Pure: read top to bottom.

First its pod: made under its own name, pinned to the node that it first came to, never forced. Then what it gets of
that node, which is written down before it is used. Then the cluster: what that says of the container and of its drives
is believed, not what was remembered.
"""

from __future__ import annotations

from collections.abc import Callable

from moorage.api import builtin, conditions
from moorage.children import objects, parts, pod_trouble
from moorage.operators import steps
from moorage.operators.weka import allocation, answers, names, place
from moorage.runtime import decision, freshness
from moorage.runtime.decision import DONE, Act, Blocked, Verdict, Wait

from . import build, types
from .observation import NodeSeen, Seen
from .reasons import ContainerReason as Reason

MINUTE = 60.0
POD_RUNS_WITHIN = 10 * MINUTE
STOPS_WITHIN = 30 * MINUTE
STARTS_WITHIN = 10 * MINUTE
FORMS_WITHIN = 30 * MINUTE
JOINS_WITHIN = 2 * MINUTE
DATA_MOVES_WITHIN = 24 * 60 * MINUTE
DRIVE_SHOWS_WITHIN = 2 * MINUTE
NODE_BACK_WITHIN = 10 * MINUTE
PACE = 5.0

ALLOCATION_IS_FREE = "allocation_is_free"
JOINING = "joining"
"""In `status.timestamps`: when it was told last where its cluster is."""

# --- its place, and what it may be ------------------------------------------------------------------------------------


def namespace_is_allowed(seen: Seen) -> Verdict:
    """Who may make one of these is root on nodes, so an administrator opens each namespace for them."""
    return place.namespace_is_allowed(seen, Reason.NAMESPACE_NOT_ALLOWED)


def mode_is_served(seen: Seen) -> Verdict:
    """Drive and compute are, so far."""
    if seen.spec.mode in names.BACKEND:
        return DONE
    said = f"containers of mode {seen.spec.mode} are not looked after yet"
    return Blocked(Reason.MODE_NOT_SERVED, said, decision.next_of(Reason.MODE_NOT_SERVED))


def image_is_allowed(seen: Seen) -> Verdict:
    """By the beginning of its name; nothing is listed, nothing is run."""
    return place.image_is_allowed(seen, seen.spec.image, Reason.IMAGE_NOT_ALLOWED)


def scripts_are_allowed(seen: Seen) -> Verdict:
    """Those that a spec brings."""
    if seen.scripts or not (seen.spec.overrides and seen.spec.overrides.pre_run_script):
        return DONE
    return Blocked(
        Reason.SCRIPTS_NOT_ALLOWED,
        "spec.overrides.preRunScript would be run as root on a node",
        decision.next_of(Reason.SCRIPTS_NOT_ALLOWED),
    )


def finalizer_is_set(seen: Seen) -> Verdict:
    """Before the first outside effect."""
    why = "it must leave its cluster before it is gone"
    return steps.finalizer_is_set(seen.meta, names.CONTAINER_FINALIZER, Reason.TAKING_CARE, why)


def rights_are_bound(seen: Seen) -> Verdict:
    """The account of the container's namespace is bound to its one role there."""
    return place.rights_are_bound(seen, Reason.BINDING)


def objects_are_known(seen: Seen) -> Verdict:
    """Nothing is decided on watches that are not filled."""
    return place.objects_are_known(seen.objects, Reason.OBJECTS_UNKNOWN)


def state_is_followed(seen: Seen) -> Verdict:
    """One that is to go is deleted; how it goes is then for the steps of its deletion."""
    if seen.spec.state not in ("deleting", "destroying"):
        return DONE
    why = f"spec.state is {seen.spec.state}"
    ref = names.CONTAINER.ref(*seen.meta.key, seen.meta.uid)
    gone = decision.Delete(why=why, resource=names.CONTAINER, ref=ref)
    return Act(Reason.FOLLOWING_STATE, f"{seen.name} is deleted, as {why}", (gone,))


def paused_has_no_pod(seen: Seen) -> Verdict:
    """Its data stays where it is; it is stopped at once, as nobody is served meanwhile."""
    if seen.spec.state != "paused":
        return DONE
    pod = seen.there.pod
    if pod is None:
        return Wait(Reason.PAUSED, f"{seen.name} is paused", on="spec", within=0.0)
    return pod_ends(seen, Reason.PAUSING, "it is paused", force=True)


# --- its pod ----------------------------------------------------------------------------------------------------------


def scripts_are_there(seen: Seen) -> Verdict:
    """What runs in the pod, before the pod."""
    found = seen.there.scripts
    return DONE if found is None else objects.are_right((found,), Reason.WRITING_SCRIPTS)


def node_is_there(seen: Seen) -> Verdict:
    """What the container holds is on that node, and on no other."""
    pinned = seen.status.node_affinity
    if seen.there.node_gone:
        said = f"node {pinned} is gone, with what {seen.name} holds"
        return Blocked(Reason.NODE_GONE, said, decision.next_of(Reason.NODE_GONE))
    node = seen.there.node
    if node is not None and not node.ready:
        said = f"node {node.name} does not report; {seen.name} is left as it is"
        return Wait(Reason.NODE_NOT_READY, said, on="node", within=NODE_BACK_WITHIN, fix=way_out(seen, node))
    return DONE


def way_out(seen: Seen, node: NodeSeen) -> str:
    """What a person can do about a node that is lost with its power. Whether it is off nobody here can know."""
    off = f"kubectl taint node {node.name} {pod_trouble.OUT_OF_SERVICE}"
    gone = f"kubectl delete wekacontainer {seen.name} -n {seen.meta.namespace}"
    said = f"bring node {node.name} back; or, once it is certain that it is off for good, say so: {off}"
    if seen.meta.deleting:
        return f"{said}. Kubernetes then lets go of its pods, and the deletion goes on"
    return f"{said}. Kubernetes then lets go of its pods; after that {gone}: it goes once the others have its data"


def pod_that_ends_is_let_go(seen: Seen) -> Verdict:
    """Whoever deletes it, it is told that it may stop; a new one is made once it is gone."""
    pod = seen.there.pod
    if pod is None or not pod.seen.deleting:
        return DONE
    given, replaced = seen.spec.overrides, pod.revision != seen.revision
    force = bool(given and given.pod_delete_force_replace) or (replaced and _forces_its_replacement(seen))
    if not force and not replaced and (held := others_hold_it_up(seen)) is not DONE:
        return held
    return pod_ends(seen, Reason.ENDING_POD, "its pod is being deleted", force=force)


def _forces_its_replacement(seen: Seen) -> bool:
    """By the override, which its cluster sets, and which is confirmed there."""
    given, owner = seen.spec.overrides, seen.there.owner
    return bool(given and given.upgrade_force_replace and owner and owner.forces)


def others_hold_it_up(seen: Seen) -> Verdict:
    """Whoever deletes pods, as a drain of several nodes does: no more stop at once than redundancy covers.

    Until then the pod serves on. Of a cluster that nobody hears from, or whose redundancy is disregarded, none is held;
    nor where the namespace ends, as Kubernetes deletes its pods before all else.
    """
    owner, member, words = seen.there.owner, seen.listed, seen.dialect.words
    if seen.spec.mode != "drive" or owner is None or owner.deleting or owner.single_node or seen.namespace_ending:
        return DONE
    if seen.told is not None and (seen.told.allow_stop or seen.told.allow_force_stop):
        return DONE
    if isinstance(seen.cluster, freshness.Stale):
        return Wait(
            Reason.CLUSTER_UNKNOWN, f"the cluster is asked anew: {seen.cluster.why}", on="cluster", within=5 * MINUTE
        )
    found = freshness.value_of(seen.cluster)
    if found is None or member is None or not words.has(words.up, member.status) or not found.of(member.host):
        return DONE
    away = [it for it in found.members if it.host != member.host and found.of(it.host)]
    away = [it for it in away if it.host in owner.away or not words.has(words.up, it.status)]
    if len(away) < found.parity:
        return DONE
    said = f"{seen.name} serves on, as {len(away)} others with drives are away, and redundancy covers {found.parity}"
    return Wait(Reason.STOP_GATED, said, on="cluster", within=STOPS_WITHIN, again=PACE)


def pod_ends(seen: Seen, reason: Reason, why: str, *, force: bool, forget: bool = False) -> Verdict:
    """It is deleted, told that it may stop, and waited for. Never more than that.

    The flag alone ends nothing: the pod's runtime waits for both. `force` lets it stop without moving on what it holds
    in memory; the pod's own grace stays as it is. `forget`: what it kept on its node goes with it.
    """
    pod = seen.there.pod
    if pod is None:
        return DONE
    if not pod.seen.deleting:
        ref = builtin.POD.ref(seen.meta.namespace, pod.seen.name, pod.seen.uid)
        return Act(
            reason, f"{seen.name} is stopped, as {why}", (decision.Delete(why=why, resource=builtin.POD, ref=ref),)
        )
    node = seen.there.node
    if node is not None and not node.ready:
        said = f"{seen.name} is to stop, and node {node.name} does not report"
        return Wait(Reason.NODE_NOT_READY, said, on="node", within=NODE_BACK_WITHIN, fix=way_out(seen, node))
    told = seen.told
    if not pod.seen.running and told is None:  # a container that never ran, or has ended, waits for nobody
        return Wait(reason, f"{seen.name} is ending{_because(pod.seen)}", on="pod", within=STOPS_WITHIN)
    if not isinstance(seen.local, freshness.Fresh) or told is None:
        said = f"{seen.name} is to be told that it may stop, and was not reached{_why(seen.local)}"
        return Wait(reason, said, on="container", within=STOPS_WITHIN, again=PACE)
    if not (told.allow_force_stop if force else told.allow_stop or told.allow_force_stop):
        how = "at once" if force else "in its own time"
        args = {"pod": pod.seen.uid, "force": force, **({"forget": True} if forget else {})}
        allow = decision.Call(why=why, operation="container.allow_stop", args=args)
        return Act(reason, f"{seen.name} may stop {how}", (allow,))
    return Wait(reason, f"{seen.name} is stopping", on="pod", within=STOPS_WITHIN)


def pod_that_has_ended_goes(seen: Seen) -> Verdict:
    """One that was evicted, or whose node has ended it, stays as a record and runs no more."""
    pod = seen.there.pod
    if pod is None or not pod.ended:
        return DONE
    why = "it has ended, and runs no more"
    ref = builtin.POD.ref(seen.meta.namespace, pod.seen.name, pod.seen.uid)
    gone = decision.Delete(why=why, resource=builtin.POD, ref=ref)
    return Act(Reason.REPLACING_POD, f"pod {seen.name} has ended, and is made anew{_because(pod.seen)}", (gone,))


def pod_is_there(seen: Seen) -> Verdict:
    """Under the container's own name, with the spec as it is now."""
    if seen.there.pod is not None:
        return DONE
    if seen.namespace_ending:  # where nothing can be made any more
        said = f"namespace {seen.meta.namespace} is being deleted, and {seen.name} goes with it"
        return Wait(Reason.ENDING_POD, said, on="namespace", within=STOPS_WITHIN)
    node = seen.there.node
    if node is not None and node.cordoned:
        said = f"node {node.name} takes no new pods, so that {seen.name} waits"
        return Wait(Reason.NODE_CORDONED, said, on="node", within=NODE_BACK_WITHIN)
    free = objects.name_is_free(builtin.POD, seen.name)
    make = decision.Create(why="there is none", resource=builtin.POD, body=seen.pod_body.body, require=(free,))
    return Act(Reason.MAKING_POD, f"pod {seen.name} is made", (make,))


def pod_is_of_this_spec(seen: Seen) -> Verdict:
    """One of another image or size goes, gracefully; who says when is the cluster, by when it changes this spec."""
    pod = seen.there.pod
    if pod is None or pod.revision == seen.revision:
        return DONE
    why = f"it runs {pod.seen.image}, and is to run {seen.spec.image}"
    if pod.seen.image == seen.spec.image:
        why = "its size or settings have changed"
    return pod_ends(seen, Reason.REPLACING_POD, why, force=_forces_its_replacement(seen))


def pod_runs(seen: Seen) -> Verdict:
    """Why it does not, in the words of whoever keeps it from running."""
    pod = seen.there.pod
    if pod is not None and pod.seen.running:
        return DONE
    seen_ = pod.seen if pod else None
    said = f"pod {seen.name} does not run yet{_because(seen_)}"
    cause = seen_.cause if seen_ else ""
    fix = seen_.fix if seen_ else ""
    return Wait(Reason.POD_NOT_RUNNING, said, on="pod", within=POD_RUNS_WITHIN, cause=cause, fix=fix)


def node_is_pinned(seen: Seen) -> Verdict:
    """From the first moment on: the drives and what is on them go nowhere else."""
    pod = seen.there.pod
    if seen.status.node_affinity or pod is None or not pod.node:
        return DONE
    note = decision.Remember(why="what it holds will be there", fields={"nodeAffinity": pod.node})
    return Act(Reason.PINNING, f"{seen.name} belongs to node {pod.node}", (note,))


# --- what it gets -----------------------------------------------------------------------------------------------------


def container_answers(seen: Seen) -> Verdict:
    """By an answer of this very pod, given after the last that it was told."""
    if isinstance(seen.local, freshness.Fresh) and seen.told is not None and seen.told.persistent:
        return DONE
    if isinstance(seen.local, freshness.Failed):
        return decision.unknown(Reason.AGENT_UNKNOWN, seen.local, "container", within=STARTS_WITHIN)
    said = f"{seen.name} is asked anew{_why(seen.local)}"
    if seen.told is not None and not seen.told.persistent:
        said = f"{seen.name} has not begun to keep its state"
    return Wait(Reason.AGENT_UNKNOWN, said, on="container", within=STARTS_WITHIN)


def resources_are_allocated(seen: Seen) -> Verdict:
    """Ports and drives of its node. Drives that were blocked since, or that are too few, are chosen anew."""
    node, owner = seen.there.node, seen.there.owner
    have = seen.status.allocations or types.Allocations()
    if node is None:
        return Wait(Reason.OBJECTS_UNKNOWN, f"the node of {seen.name} is not seen yet", on="node", within=MINUTE)
    ports: tuple[int, int] | None = (have.weka_port, have.agent_port)
    if not (have.weka_port and have.agent_port):
        if owner is not None and owner.ports is None and not seen.spec.port:
            said = f"WekaCluster {owner.name} has no range of ports yet"
            return Wait(Reason.CLUSTER_HAS_NO_PORTS, said, on="cluster", within=5 * MINUTE)
        ports = _ports(seen)
    if ports is None:
        said = f"no ports are left for {seen.name} on node {node.name}"
        return Blocked(Reason.PORTS_LACKING, said, decision.next_of(Reason.PORTS_LACKING))
    chosen = _drives(seen, node)
    wanted = seen.spec.num_drives if seen.spec.mode == "drive" else 0
    if sum(it not in node.blocked for it in chosen) < wanted and chosen == have.drives:
        why = node.fault or f"{len(node.drives)} are signed, {len(node.blocked)} of them blocked"
        said = f"{seen.name} is to have {wanted} drives and {len(chosen)} of node {node.name} are free for it: {why}"
        return Blocked(Reason.DRIVES_LACKING, said, decision.next_of(Reason.DRIVES_LACKING))
    single = owner is not None and owner.single_node
    given = types.Allocations(
        drives=chosen,
        weka_port=ports[0],
        agent_port=ports[1],
        failure_domain=node.failure_domain,
        machine_identifier=seen.meta.uid if single else have.machine_identifier,
        net_devices=have.net_devices,
    )
    if given == have:
        return DONE
    fields = {"drives": list(chosen), "wekaPort": ports[0], "agentPort": ports[1]}
    more = {"failureDomain": given.failure_domain, "machineIdentifier": given.machine_identifier}
    guard = decision.Guard(ALLOCATION_IS_FREE, {"node": node.name, **fields})
    note = decision.Remember(
        why="it is written down before it is used", fields={"allocations": {**fields, **more}}, require=(guard,)
    )
    said = f"{seen.name} gets ports from {ports[0]} on, and {len(chosen)} drives of node {node.name}"
    return Act(Reason.ALLOCATING, said, (note,))


def _ports(seen: Seen) -> tuple[int, int] | None:
    if seen.spec.port and seen.spec.agent_port:
        return seen.spec.port, seen.spec.agent_port
    owner, rules = seen.there.owner, seen.dialect.ports
    own = seen.spec.port_range
    within = owner.ports if owner is not None and owner.ports is not None else None
    if within is None:
        first = own.base_port if own is not None else 45_000
        within = allocation.Span(first, rules.cluster)
    taken = [span for it in seen.there.taken for span in it.ports]
    return allocation.container_ports(within, taken, rules)


def _drives(seen: Seen, node: NodeSeen) -> tuple[str, ...]:
    if seen.spec.mode != "drive":
        return ()
    taken = {serial for it in seen.there.taken for serial in it.drives}
    have = seen.status.allocations.drives if seen.status.allocations else ()
    if isinstance(seen.cluster, freshness.Fresh) and seen.cluster.value.guid:  # what it has forgotten holds nothing
        listed = {it.serial for it in seen.cluster.value.drives}
        have = tuple(it for it in have if it in listed or it not in node.blocked)
    return allocation.drives(node.drives, node.blocked, taken, seen.spec.num_drives, have)


def resources_are_written(seen: Seen) -> Verdict:
    """Into the container's own file, which it waits for before it starts; read back by the next look."""
    told = seen.told
    wanted = build.resources_digest(seen.resources)
    if told is None or told.resources == wanted:
        return DONE
    args = {"pod": told.pod, "text": build.resources_text(seen.resources)}
    write = decision.Call(why="it starts with these", operation="container.write_resources", args=args)
    return Act(Reason.WRITING_RESOURCES, f"{seen.name} is told its ports and drives", (write,))


def weka_runs(seen: Seen) -> Verdict:
    """By its agent's word."""
    told, words = seen.told, seen.dialect.words
    if told is not None and words.has(words.running, told.run_status):
        return DONE
    known = [it for it in (told.agent, told.run_status, told.last_failure) if it] if told else []
    said = f"{seen.name} starts" + (f": {', '.join(known)}" if known else "")
    return Wait(Reason.STARTING, said, on="container", within=STARTS_WITHIN)


# --- within its cluster -----------------------------------------------------------------------------------------------


def it_is_a_member(seen: Seen) -> Verdict:
    """Of its own cluster. One that was not there when the cluster was formed is told where that is."""
    told, owner = seen.told, seen.there.owner
    if told is None or told.cluster:
        if told is not None and owner is not None and owner.guid and told.cluster != owner.guid:
            said = f"{seen.name} says that it belongs to cluster {told.cluster}, and not to {owner.guid}"
            return Blocked(Reason.FOREIGN_CLUSTER, said, decision.next_of(Reason.FOREIGN_CLUSTER))
        return DONE
    if not seen.spec.join_ip_ports and seen.status.cluster_id:
        who = f"{seen.name} was container {seen.status.container_id} of cluster {seen.status.cluster_id}"
        said = f"{who}, and knows nothing of it any more"
        fix = decision.next_of(Reason.CLUSTER_FORGOTTEN)
        return Wait(Reason.CLUSTER_FORGOTTEN, said, on="container", within=STARTS_WITHIN, fix=fix)
    if not seen.spec.join_ip_ports:
        said = f"{seen.name} is ready for a cluster that is not formed yet"
        return Wait(Reason.NOT_FORMED, said, on="cluster", within=FORMS_WITHIN)
    since = seen.now - conditions.epoch(seen.status.timestamps.get(JOINING, ""))
    if 0 <= since < JOINS_WITHIN:
        said = f"{seen.name} was told where its cluster is, and is on its way there"
        return Wait(Reason.JOINING, said, on="container", within=STARTS_WITHIN, again=JOINS_WITHIN - since)
    args = {"pod": told.pod, "to": list(seen.spec.join_ip_ports)}
    at = {**seen.status.timestamps, JOINING: conditions.timestamp(seen.now)}
    note = decision.Remember(why="it restarts for it, and is left to it", fields={"timestamps": at})
    join = decision.Call(why="it belongs to no cluster", operation="container.join", args=args)
    return Act(Reason.JOINING, f"{seen.name} is told where its cluster is", (note, join))


def cluster_answers(seen: Seen) -> Verdict:
    """Somebody has said how it stands; what that was before the last order is enough where nothing is to be done."""
    if isinstance(seen.cluster, freshness.Failed):
        return decision.unknown(Reason.CLUSTER_UNKNOWN, seen.cluster, "cluster", within=5 * MINUTE)
    return DONE


def cluster_answers_anew(seen: Seen) -> Verdict:
    """No order is given on what was said before the last one."""
    if (known := cluster_answers(seen)) is not DONE:
        return known
    if isinstance(seen.cluster, freshness.Stale):
        said = f"the cluster is asked anew: {seen.cluster.why}"
        return Wait(Reason.CLUSTER_UNKNOWN, said, on="cluster", within=5 * MINUTE)
    return DONE


def drives_are_added(seen: Seen) -> Verdict:
    """Each that it was given and that the cluster does not list as its own; none that may hold somebody's data."""
    cluster, told = freshness.value_of(seen.cluster), seen.told
    if cluster is None or told is None:
        return DONE
    shown = {it.serial: it for it in told.devices}
    for serial in lacking(seen, cluster):
        if (known := cluster_answers_anew(seen)) is not DONE:
            return known
        if (other := next((it for it in cluster.drives if it.serial == serial), None)) is not None:
            said = f"the cluster lists drive {serial} as that of its container {other.host}, and not of {seen.name}"
            return Blocked(Reason.DRIVE_NOT_FREE, said, decision.next_of(Reason.DRIVE_NOT_FREE))
        device = shown.get(serial)
        if device is None:
            said = f"node {seen.status.node_affinity} does not show drive {serial} of {seen.name}"
            return Wait(Reason.DRIVE_MISSING, said, on="container", within=DRIVE_SHOWS_WITHIN)
        if (fault := _not_free(device, seen)) is not None:
            return Blocked(Reason.DRIVE_NOT_FREE, fault, decision.next_of(Reason.DRIVE_NOT_FREE))
        args = {"pod": told.pod, "host": told.host, "serial": serial, "path": device.path}
        add = decision.Call(why="the cluster does not list it", operation="drive.add", args=args)
        return Act(Reason.ADDING_DRIVE, f"drive {serial} of {seen.name} is added to the cluster", (add,))
    return DONE


def lacking(seen: Seen, cluster: answers.Cluster) -> tuple[str, ...]:
    """Serials that it was given and that its cluster does not list as its own: machines that were cloned share some.

    Who has blocked one has taken it out, and must not find it there again.
    """
    given = seen.status.allocations.drives if seen.status.allocations else ()
    node = seen.there.node if freshness.value_of(seen.objects) is not None else None
    unknown = seen.host is None or seen.host < 0
    own = {it.serial for it in cluster.drives if unknown or it.host in (-1, seen.host)}
    return tuple(it for it in given if it not in own and (node is None or it not in node.blocked))


def _not_free(device: answers.Device, seen: Seen) -> str | None:
    if device.mounted:
        return f"drive {device.serial} of {seen.name} is mounted"
    if device.guid not in ("", seen.guid):
        return f"drive {device.serial} of {seen.name} was signed for cluster {device.guid}"
    return None


def it_is_up(seen: Seen) -> Verdict:
    """By its cluster's word."""
    words, member = seen.dialect.words, seen.listed
    if member is not None and words.has(words.up, member.status):
        return DONE
    said = (
        f"the cluster lists {seen.name} as {member.status or 'nothing'}" if member else "the cluster does not list it"
    )
    return Wait(Reason.NOT_UP, said, on="cluster", within=10 * MINUTE)


def _because(pod: parts.PodSeen | None) -> str:
    return f": {pod.trouble}" if pod is not None and pod.trouble else ""


def _why(fact: freshness.Observed[answers.Local]) -> str:
    match fact:
        case freshness.Failed(message=message) if message:
            return f": {message}"
        case freshness.Stale(why=why):
            return f": {why}"
    return ""


STEPS: tuple[Callable[[Seen], Verdict], ...] = (
    namespace_is_allowed,
    mode_is_served,
    image_is_allowed,
    scripts_are_allowed,
    finalizer_is_set,
    rights_are_bound,
    objects_are_known,
    state_is_followed,
    paused_has_no_pod,
    scripts_are_there,
    node_is_there,
    pod_that_ends_is_let_go,
    pod_that_has_ended_goes,
    pod_is_there,
    pod_is_of_this_spec,
    pod_runs,
    node_is_pinned,
    container_answers,
    resources_are_allocated,
    resources_are_written,
    weka_runs,
    it_is_a_member,
    cluster_answers,
    drives_are_added,
    it_is_up,
)
