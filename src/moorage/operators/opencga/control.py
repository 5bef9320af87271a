"""What moorage does for an installation of OpenCGA, step by step. Pure: read top to bottom.

First the objects in the cluster (`objects`), which need nobody's answer, so that a repair is never behind what it
repairs. Then the MASTER, which installs and migrates the catalog; then the REST members, which follow it one by one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence

from moorage.api import conditions, quantities
from moorage.children import parts, pod_replacement, waits
from moorage.children.parts import PodSeen
from moorage.runtime import decision, freshness
from moorage.runtime.decision import DONE, Act, Blocked, Verdict, Wait

from . import answers, deletion, objects
from .observation import Seen
from .reasons import Reason

READ_THE_LOG = "read the log of that pod's containers (kubectl logs POD --all-containers), and correct what it says"


# --- all of it is stopped -----------------------------------------------------------------------------------------


def servers_have_stopped(seen: Seen) -> Verdict:
    """One that hibernates has no pod: REST servers end first, and then the MASTER, once it is done with the catalog."""
    if not seen.asleep:
        return DONE
    within = quantities.seconds(seen.spec.timeouts.startup)
    if rest := [pod.name for pod in seen.there.rest.pods]:
        said = f"still to end: {_ending(seen, rest)}; then {seen.master_pod}"
        return Wait(Reason.HIBERNATING, said, on="pod", within=within, again=seen.busy)
    if seen.masters:
        said = f"{seen.kept_awake}; it is stopped after that"
        within = quantities.seconds(seen.spec.timeouts.migration)
        return Wait(Reason.HIBERNATING, said, on="agents", within=within, again=seen.busy)
    if left := [pod.name for pod in seen.there.master.pods]:
        said = f"still to end: {_ending(seen, left)}"
        return Wait(Reason.HIBERNATING, said, on="pod", within=within, again=seen.busy)
    return DONE


def _ending(seen: Seen, pods: Iterable[str]) -> str:
    """These, each with what is wrong with it in the cluster: no agent of theirs is asked any more."""
    return waits.each(pods, lambda name: waits.of_pod(seen.there.pod(name)))


# --- the MASTER ---------------------------------------------------------------------------------------------------


def master_is_replaced(seen: Seen) -> Verdict:
    """The MASTER's pod is of the current template before any REST member is; not while it works at the catalog."""
    master = seen.there.master
    return pod_replacement.next_is_replaced(
        pod_replacement.outdated(master.pods, master.workload),
        seen.meta.namespace,
        Reason.REPLACING_MASTER,
        gate=lambda pod: _master_may_go(seen, pod),
        guard=lambda pod: decision.Guard("master_is_idle", {"pod": pod.name}),
        within=quantities.seconds(seen.spec.timeouts.startup),
        again=seen.busy,
        describe=seen.troubles,
    )


def _master_may_go(seen: Seen, pod: PodSeen) -> Verdict:
    agent = seen.agent(pod.name)
    if agent is None or not objects.works_at_catalog(seen, pod):
        return DONE
    limit = quantities.seconds(seen.spec.timeouts.migration)
    if seen.now > agent.since + limit:
        return DONE
    said = f"{pod.name} is at {agent.move}, and is replaced after that"
    since = conditions.timestamp(agent.since)
    return Wait(Reason.UPDATE_WAITS, said, on="agents", within=limit, again=seen.busy, since=since)


def agents_are_asked(seen: Seen) -> Verdict:
    """What they say is known; who says nothing is told of where that matters."""
    if isinstance(seen.told, freshness.Failed):
        return decision.unknown(Reason.MEMBERS_UNKNOWN, seen.told, "agents")
    if isinstance(seen.told, freshness.Stale):
        said = f"the agents are asked anew: {seen.told.why}"
        return Wait(Reason.MEMBERS_UNKNOWN, said, on="agents", within=120.0, again=seen.busy, unseen=True)
    return DONE


def catalog_is_installed(seen: Seen) -> Verdict:
    """Once, by the MASTER, with the administrator's password; before anything is migrated or served."""
    if seen.status.catalog_version:
        return DONE
    if seen.master is not None and seen.master.installed:
        return DONE
    install = seen.wanted.said.moves.install
    return _catalog(seen, "installs the catalog", Reason.INSTALLING_CATALOG, {install: Reason.CATALOG_FAILED})


def catalog_is_migrated(seen: Seen) -> Verdict:
    """To the spec's version, by a MASTER of that version. From then on REST members follow, and nobody goes back."""
    wanted, master = seen.spec.version, seen.master
    if seen.status.catalog_version == wanted and (master is None or master.catalog in ("", wanted)):
        return DONE
    if master is not None and master.installed and master.catalog == wanted:
        fields = {"catalogVersion": wanted} | ({"stoppedFor": ""} if seen.status.stopped_for else {})
        note = decision.Remember(why="there is no way back from it", fields=fields)
        return Act(Reason.MIGRATED, f"the catalog is of version {wanted}", (note,))
    moves = seen.wanted.said.moves
    at = (master.move, master.step) if master is not None else ("", "")
    if at == (moves.migrate, moves.stop) and not seen.stopped and seen.spec.upgrade.migration == "Offline":
        return _servers_are_stopped(seen)
    failed = Reason.MIGRATION_HELD if at == (moves.migrate, moves.held) else Reason.MIGRATION_FAILED
    doing = "makes a backup before it migrates" if at[0] == moves.backup else "migrates"
    failures = {moves.migrate: failed, moves.backup: Reason.BACKUP_FAILED}
    return _catalog(seen, f"{doing} the catalog to {wanted}{_meanwhile(seen)}", Reason.MIGRATING, failures)


def _meanwhile(seen: Seen) -> str:
    """Who serves, and whose server is still to stop."""
    if not seen.stopped:
        return ""
    moves = seen.wanted.said.moves
    pods = seen.rest_pods(seen.placed.members)

    def has_stopped(pod: str) -> bool:
        agent = seen.agent(pod)
        stopped = agent is not None and (agent.move, agent.step) == (moves.migrate, moves.stopped)
        return stopped or (seen.disabled(pod) and seen.has_applied(pod))

    still = [pod for pod in pods if not has_stopped(pod)]
    return f" once these have stopped: {seen.troubles(still)}" if still else ", while all REST servers are stopped"


def _servers_are_stopped(seen: Seen) -> Verdict:
    """Noted before agents are told, so that nobody forgets it; not while a pod leaves, which nobody would ask."""
    live = seen.there.rest.workload
    leaving = [pod.name for pod in seen.there.rest.pods if pod.ordinal >= seen.placed.members]
    if leaving or (live is not None and live.replicas != seen.placed.members):
        said = f"{seen.troubles(leaving) or 'a member'} leaves first; then REST servers are stopped for the migration"
        return Wait(
            Reason.STOPPING, said, on="pod", within=quantities.seconds(seen.spec.timeouts.startup), again=seen.busy
        )
    note = decision.Remember(
        why="a migration forbids the old version, and spec.upgrade.migration is Offline",
        fields={"stoppedFor": seen.spec.version},
    )
    said = f"REST servers are stopped while {seen.master_pod} migrates the catalog to {seen.spec.version}"
    return Act(Reason.STOPPING, said, (note,))


def _catalog(seen: Seen, doing: str, reason: Reason, failures: dict[str, Reason]) -> Verdict:
    """What is known of the MASTER that does it."""
    master, pod = seen.master, seen.master_pod
    if master is None:
        said = f"{seen.troubles([pod])} {doing}"
        return Wait(reason, said, on="agents", within=quantities.seconds(seen.spec.timeouts.startup), again=seen.busy)
    if master.error:
        failed = failures.get(master.move, Reason.MEMBER_FAILED)
        stopped = "; REST servers stay stopped, as it forbids the old version" if seen.stopped else ""
        return Blocked(failed, f"{pod}: {master.error}{stopped}", decision.next_of(failed))
    return _at_step(seen, pod, master, reason, f"{pod} {doing}", quantities.seconds(seen.spec.timeouts.migration))


def _at_step(seen: Seen, pod: str, agent: answers.Agent, reason: Reason, said: str, limit: float) -> Verdict:
    """A wait for an agent, which is overdue by when its step began, and a person's business from then on."""
    where = f": {agent.move}, {agent.step}" if agent.busy else ""
    since = conditions.timestamp(agent.since) if agent.since > 0 else ""
    fix = READ_THE_LOG.replace("POD", pod)
    return Wait(reason, f"{said}{where}", on="agents", within=limit, again=seen.busy, since=since, fix=fix)


# --- the REST members are replaced --------------------------------------------------------------------------------


def _outdated(seen: Seen) -> list[PodSeen]:
    """Who is not ready goes first: with it nobody is lost. Then from the highest ordinal down."""
    rest = seen.there.rest
    old = pod_replacement.outdated(rest.pods, rest.workload)
    return sorted(old, key=lambda pod: (not pod.deleting, pod.name in rest.up, -pod.ordinal))


def new_members_are_back(seen: Seen) -> Verdict:
    """While others are still old, each that was replaced must be ready before the next one goes."""
    rest = seen.there.rest
    old = _outdated(seen)
    revision = rest.workload.revision if rest.workload else ""
    return pod_replacement.replaced_are_back(
        [pod for pod in rest.pods if pod.revision == revision],
        old,
        Reason.UPDATING,
        is_back=lambda pod: pod.name in rest.up,
        why=seen.trouble,
        now=seen.now,
        on="pod",
        within=quantities.seconds(seen.spec.timeouts.startup),
        pace=seen.busy,
        instead=lambda _, __: DONE,
        blocked=Reason.UPDATE_STALLED,
    )


def members_roll(seen: Seen) -> Verdict:
    """The next member of an old template is replaced, if all others are ready."""
    return pod_replacement.next_is_replaced(
        _outdated(seen),
        seen.meta.namespace,
        Reason.UPDATING,
        gate=lambda pod: _may_go(seen, pod),
        guard=lambda pod: decision.Guard("others_are_ready", {"pod": pod.name}),
        within=quantities.seconds(seen.spec.timeouts.startup),
        again=seen.busy,
        describe=seen.troubles,
    )


def _may_go(seen: Seen, pod: PodSeen) -> Verdict:
    """With one that is not ready nobody is lost; else never below members - 1."""
    rest = seen.there.rest
    if pod.name not in rest.up:
        return DONE
    live = rest.workload.replicas if rest.workload else 0
    away = [name for name in seen.rest_pods(live) if name not in rest.up and name != pod.name]
    if away:
        said = f"{seen.troubles(away)} not ready; {pod.name} is not replaced meanwhile"
        return Wait(Reason.UPDATE_WAITS, said, on="pod", within=pod_replacement.GATED_FOR, again=seen.busy)
    return pod_replacement.budget_allows(pod, rest.disruptions, Reason.UPDATE_WAITS, again=seen.busy)


# --- all have what they should, and say so ------------------------------------------------------------------------


def members_apply_configuration(seen: Seen) -> Verdict:
    """Every agent has applied the document as it is. The message names who has not, at which step, and since when."""
    pods = [seen.master_pod, *seen.rest_pods(seen.placed.members)]
    if failed := [(pod, agent) for pod in pods if (agent := seen.agent(pod)) and agent.error]:
        said = "; ".join(f"{pod}: {agent.error}" for pod, agent in failed)
        return Blocked(Reason.MEMBER_FAILED, said, decision.next_of(Reason.MEMBER_FAILED))
    if silent := [pod for pod in pods if seen.agent(pod) is None]:
        said = f"{seen.troubles(silent)} is to apply version {seen.version} of the configuration"
        within = quantities.seconds(seen.spec.timeouts.startup)
        return Wait(Reason.MEMBER_SILENT, said, on="agents", within=within, again=seen.busy)
    behind = [(pod, agent) for pod in pods if (agent := seen.agent(pod)) and not seen.has_applied(pod)]
    if not behind:
        return DONE
    pod, agent = min(behind, key=lambda it: it[1].since or seen.now)
    others = f", and {len(behind) - 1} more" if len(behind) > 1 else ""
    has = f"version {agent.configuration} of the" if agent.configuration >= 0 else "no"
    said = f"{pod} has {has} configuration, {seen.version} is wanted{others}"
    limit = quantities.seconds(seen.spec.timeouts.step)
    return _at_step(seen, pod, agent, Reason.APPLYING_CONFIGURATION, said, limit)


def members_tell_the_version(seen: Seen) -> Verdict:
    """Servers say which version they are; only then it counts as reached."""
    wanted = seen.rest_version
    told = [(pod, server.version) for pod in _serving(seen) if (server := seen.server(pod))]
    if wrong := [f"{pod} tells {version}" for pod, version in told if version != wanted]:
        said = f"{', '.join(wrong)}, and its image is called {wanted}"
        fix = f"see what is in the image {seen.wanted.said.images.server}:{wanted}"
        return Wait(Reason.VERSION_DIFFERS, said, on="agents", within=600.0, again=seen.busy, fix=fix)
    if seen.status.version == wanted or len(told) < len(_serving(seen)):
        return DONE
    note = decision.Remember(why="all tell it", fields={"version": wanted})
    return Act(Reason.VERSION_REACHED, f"all members are of version {wanted}", (note,), go_on=True)


def _serving(seen: Seen) -> list[str]:
    """Who should serve."""
    return [pod for pod in seen.rest_pods(seen.placed.members) if not seen.disabled(pod)]


def all_is_well(seen: Seen) -> Verdict:
    """Pods are ready, and servers have what they need. Nobody is restarted for what lies outside."""
    within = quantities.seconds(seen.spec.timeouts.startup)
    if failing := failing_of(seen):
        said = f"REST servers report out of order: {failing}"
        return Wait(Reason.DEPENDENCY_DOWN, said, on="agents", within=within, again=seen.busy)
    if seen.master_pod not in seen.there.master.up:
        said = f"{seen.troubles([seen.master_pod])} is not ready"
        return Wait(Reason.MASTER_NOT_READY, said, on="pod", within=within, again=seen.busy)
    if away := [pod for pod in seen.rest_pods(seen.spec.members) if pod not in seen.there.rest.up]:
        said = f"{seen.troubles(away)} not ready"
        return Wait(Reason.MEMBERS_NOT_READY, said, on="pod", within=within, again=seen.busy)
    if silent := [pod for pod in _serving(seen) if seen.server(pod) is None]:
        words = [f"{pod} ({it.server_fault})" if (it := seen.of(pod)) and it.server_fault else pod for pod in silent]
        said = f"the server of {', '.join(words)} does not answer"
        return Wait(Reason.MEMBERS_NOT_READY, said, on="agents", within=within, again=seen.busy)
    return DONE


def failing_of(seen: Seen) -> str:
    """What servers say that they need and don't have, each with who says so."""
    found: dict[str, list[str]] = {}
    for pod in _serving(seen):
        for check in server.failing if (server := seen.server(pod)) else ():
            found.setdefault(check, []).append(pod)
    return ", ".join(f"{check} ({', '.join(pods)})" for check, pods in sorted(found.items()))


Step = Callable[[Seen], Verdict]

ABOUT_PODS = frozenset(
    [
        Reason.INSTALLING_CATALOG,
        Reason.MIGRATING,
        Reason.MEMBER_SILENT,
        Reason.MEMBERS_NOT_READY,
        Reason.MASTER_NOT_READY,
        Reason.REPLACING_MASTER,
        Reason.UPDATING,
        Reason.UPDATE_WAITS,
        Reason.HIBERNATING,
    ]
)
"""Whoever is waited for here is a pod's."""

ENDING = frozenset([Reason.CHILD_ENDING, Reason.CLEARING_VOLUME, Reason.REMOVING, Reason.SURPLUS_STAYS])
"""Whatever is waited for here is being deleted, and only who holds it can let it go."""


def told(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The same steps, whose waits say what lies behind them."""
    return waits.told(steps, _pods, about_pods=ABOUT_PODS, ending=ENDING)


def _while_awake(step: Step) -> Step:
    """The same step, which asks nothing of servers that should not be."""

    @functools.wraps(step)
    def awake(seen: Seen) -> Verdict:
        return DONE if seen.asleep else step(seen)

    return awake


def _pods(seen: Seen) -> Iterable[parts.PodSeen]:
    found = freshness.value_of(seen.objects)
    return found.pods if found else ()


STEPS: tuple[Step, ...] = (
    objects.namespace_is_allowed,
    objects.finalizer_is_set,
    objects.rights_are_bound,
    objects.retry_is_honoured,
    objects.spec_is_sound,
    objects.database_is_given,
    objects.catalog_is_its_own,
    objects.version_may_change,
    objects.secrets_are_given,
    objects.cluster_is_known,
    objects.children_exist,
    objects.token_is_there,
    objects.configuration_is_published,
    objects.master_is_right,
    objects.members_are_right,
    objects.failing_pods_are_replaced,
    objects.volumes_grow,
    objects.volumes_are_reclaimed,
    objects.templates_are_known,
    servers_have_stopped,
    *map(
        _while_awake,
        (
            master_is_replaced,
            agents_are_asked,
            catalog_is_installed,
            catalog_is_migrated,
            new_members_are_back,
            members_roll,
            members_apply_configuration,
            members_tell_the_version,
            all_is_well,
        ),
    ),
    objects.surplus_objects_go,
    objects.children_stay,
    objects.surplus_is_gone,
)

DELETION_STEPS: tuple[Step, ...] = deletion.DELETION_STEPS
