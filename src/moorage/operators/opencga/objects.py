"""Steps that see to the objects in the cluster: rights, what is given, the document, StatefulSets, volumes. Pure.

What they do is in `moorage.children`; here is what an installation knows of its objects.
"""

from __future__ import annotations

import msgspec

from moorage.api import builtin, meta
from moorage.children import objects, ordinals, pod_replacement, stateful_set, volumes
from moorage.children.parts import Desired, Pair, PodSeen, VolumeSeen
from moorage.operators import accounts, steps
from moorage.runtime import decision, freshness
from moorage.runtime.decision import DONE, Act, Blocked, Verdict

from . import answers, names, types
from .observation import Seen
from .reasons import Reason
from .wanted import build

WORKLOAD = stateful_set.Reasons(Reason.CREATING, Reason.RESIZING, Reason.REPLACING_WORKLOAD, Reason.CHILD_ENDING)
OWNER = "the installation"


def namespace_is_allowed(seen: Seen) -> Verdict:
    """Anywhere but in the namespaces of Kubernetes, or in those that the administrator lists."""
    if seen.allowed:
        return DONE
    said = f"namespace {seen.meta.namespace} may hold no OpenCGA"
    return Blocked(Reason.NAMESPACE_NOT_ALLOWED, said, decision.next_of(Reason.NAMESPACE_NOT_ALLOWED))


def finalizer_is_set(seen: Seen) -> Verdict:
    """Before the first outside effect."""
    why = "nothing may be left behind when it is deleted"
    return steps.finalizer_is_set(seen.meta, names.FINALIZER, Reason.TAKING_CARE, why)


def rights_are_bound(seen: Seen) -> Verdict:
    """The account of the namespace is bound to its one role there."""
    why = "all that is done in the namespace is done with these rights"
    return accounts.is_bound(seen.binding, seen.meta.namespace, seen.rights, Reason.BINDING, why)


def retry_is_honoured(seen: Seen) -> Verdict:
    """A new value of moorage.dev/reconcile-at; agents try by themselves, so that nothing is forgotten."""
    return steps.retry_is_honoured(seen.meta, seen.status, Reason.RETRYING, "all is looked at anew")


# --- what is given ------------------------------------------------------------------------------------------------


def spec_is_sound(seen: Seen) -> Verdict:
    """Nothing in it contradicts itself, and nothing secret stands in it."""
    fault = seen.wanted.fault
    return Blocked(Reason.SPEC_UNSOUND, fault, decision.next_of(Reason.SPEC_UNSOUND)) if fault else DONE


def database_is_given(seen: Seen) -> Verdict:
    """The original named none, as it had none; the product can't do without."""
    if seen.spec.database.hosts:
        return DONE
    return Blocked(
        Reason.DATABASE_MISSING,
        "spec.database.hosts names no database, where OpenCGA keeps its catalog",
        decision.next_of(Reason.DATABASE_MISSING),
    )


def catalog_is_its_own(seen: Seen) -> Verdict:
    """Two MASTERs that work at one catalog would spoil it; who was there first keeps it."""
    if not seen.catalog_of:
        return DONE
    database = seen.spec.database
    said = (
        f"OpenCGACommunity {seen.catalog_of} has its catalog in the databases of spec.database.hosts that begin with "
        f"{database.prefix} too"
    )
    return Blocked(Reason.CATALOG_TAKEN, said, decision.next_of(Reason.CATALOG_TAKEN))


def version_may_change(seen: Seen) -> Verdict:
    """There is no way back before a migration."""
    spec, catalog = seen.spec.version, seen.status.catalog_version
    if not catalog or types.number(spec) >= types.number(catalog):
        return DONE
    said = f"spec.version is {spec}, and the catalog was migrated to {catalog}"
    return Blocked(Reason.DOWNGRADE, said, decision.next_of(Reason.DOWNGRADE))


def secrets_are_given(seen: Seen) -> Verdict:
    """They are there and have what the product takes; pods would hang without."""
    if isinstance(seen.secrets, freshness.Failed):
        return decision.unknown(Reason.SECRETS_UNKNOWN, seen.secrets, "secrets")
    found = seen.secrets.value
    return Blocked(Reason.SECRET_INVALID, found.fault, found.fix) if found.fault else DONE


# --- children -----------------------------------------------------------------------------------------------------


def cluster_is_known(seen: Seen) -> Verdict:
    """Nothing is decided on watches that are not filled."""
    if isinstance(seen.objects, freshness.Failed):
        return decision.unknown(Reason.CLUSTER_UNKNOWN, seen.objects, "objects")
    return DONE


def children_exist(seen: Seen) -> Verdict:
    """Services and the disruption budget are as they should be."""
    return objects.are_right(seen.there.rest.children, Reason.APPLYING)


def document(seen: Seen) -> Pair:
    """The Secret that agents read, and what there is of it."""
    return build.configuration(seen.wanted, seen.document, seen.version), seen.there.document


def token_is_there(seen: Seen) -> Verdict:
    """Before any pod: agents tell nothing without it, and nobody is believed without it. Who deletes it renews it."""
    live, name = seen.there.token, names.agent_token(seen.name)
    if live.good or live.deleting:
        return DONE
    guard = decision.Guard("name_is_free", {"kind": builtin.SECRET.kind, "name": name})
    why = "it holds no token" if live.uid else "there is none"
    call = decision.Call(why=why, operation="token.make", require=(guard,))
    return Act(Reason.MAKING_TOKEN, f"Secret {name} gets a token that only this installation's agents know", (call,))


def configuration_is_published(seen: Seen) -> Verdict:
    """The agents' document, each content in a version of its own; whoever edits it is overwritten by a later one."""
    verdict = objects.are_right((document(seen),), Reason.PUBLISHING)
    if not isinstance(verdict, Act):
        return verdict
    members = seen.placed.members
    said = f"version {seen.version} of the configuration, for the MASTER and {members} REST members"
    return msgspec.structs.replace(verdict, message=said)


def children_stay(seen: Seen) -> Verdict:
    """What somebody deletes is made anew, once it is gone."""
    token = _called(builtin.SECRET, names.agent_token(seen.name)), seen.there.token
    return objects.have_ended((*seen.there.rest.children, document(seen), token), Reason.CHILD_ENDING)


def surplus_objects_go(seen: Seen) -> Verdict:
    """What the spec no longer asks for leaves."""
    return objects.surplus_goes(seen.there.rest.surplus, seen.meta.namespace, Reason.SURPLUS_OBJECT)


def surplus_is_gone(seen: Seen) -> Verdict:
    """Pods beyond the StatefulSet's, and objects that nobody asks for."""
    there, live = seen.there.rest, seen.there.rest.workload
    pods = [seen.troubles([pod.name]) for pod in there.pods if live and pod.ordinal >= live.replicas]
    return objects.are_gone([*pods, *(it.id for it in there.surplus)], Reason.SURPLUS_STAYS)


# --- the StatefulSets ---------------------------------------------------------------------------------------------


def master_is_right(seen: Seen) -> Verdict:
    """The MASTER's StatefulSet, always of the spec's version."""
    return stateful_set.is_right(
        seen.there.master.workload,
        (seen.meta.namespace, names.master(seen.name)),
        seen.masters,
        lambda replicas: build.master(seen.wanted, seen.spec.version, replicas),
        WORKLOAD,
        owner=OWNER,
        may_go=lambda ordinal: _may_go(seen, names.master(seen.name), ordinal, asleep=ordinal == 0),
    )


def members_are_right(seen: Seen) -> Verdict:
    """That of the REST members, of the catalog's version. Fewer only by live proof that who goes has no place."""
    return stateful_set.is_right(
        seen.there.rest.workload,
        (seen.meta.namespace, names.rest(seen.name)),
        seen.replicas,
        lambda replicas: build.members(seen.wanted, replicas, seen.rest_version),
        WORKLOAD,
        owner=OWNER,
        may_go=lambda ordinal: _may_go(seen, names.rest(seen.name), ordinal, asleep=seen.asleep),
        handed_on="spec.statefulSet.spec" if seen.spec.stateful_set.spec else "",
    )


def _has_left(workload: str, ordinal: int) -> decision.Guard:
    return decision.Guard("member_has_left", {"pod": ordinals.pod(workload, ordinal)})


def _may_go(seen: Seen, workload: str, ordinal: int, *, asleep: bool) -> decision.Guard:
    """Who is stopped with all others keeps its place, and must not be stopped by a word that was taken back."""
    if asleep and seen.spec.hibernate:
        return decision.Guard("may_hibernate", {"pod": ordinals.pod(workload, ordinal)})
    return _has_left(workload, ordinal)


def templates_are_known(seen: Seen) -> Verdict:
    """Until their controller has looked at a change, nobody knows whether the pods are up to date."""
    known = stateful_set.template_is_known(seen.there.master.workload, Reason.CREATING)
    return known if known != DONE else stateful_set.template_is_known(seen.there.rest.workload, Reason.CREATING)


# --- pods that never came up --------------------------------------------------------------------------------------


def failing_pods_are_replaced(seen: Seen) -> Verdict:
    """A pod of an old template that serves nobody is made anew at once; not a MASTER that works at the catalog."""
    for each in (seen.there.master, seen.there.rest):
        verdict = pod_replacement.dead_are_replaced(
            each.pods,
            each.workload.revision if each.workload else "",
            seen.meta.namespace,
            Reason.REPLACING_DEAD_POD,
            spared=lambda pod: works_at_catalog(seen, pod),
        )
        if verdict != DONE:
            return verdict
    return DONE


def works_at_catalog(seen: Seen, pod: PodSeen) -> bool:
    """Whether its agent installs, backs up or migrates the catalog, as far as anybody knows."""
    moves = seen.wanted.said.moves
    return is_at_work(seen.agent(pod.name), moves.install, moves.backup, moves.migrate)


def is_at_work(agent: answers.Agent | None, *moves: str) -> bool:
    """Whether an agent stands in one of these moves, and has not given up."""
    return agent is not None and agent.busy and not agent.error and agent.move in moves


# --- volumes ------------------------------------------------------------------------------------------------------


def volumes_grow(seen: Seen) -> Verdict:
    """Volumes that are smaller than the spec says are asked to grow."""
    return volumes.grow(
        (*seen.there.master.volumes, *seen.there.rest.volumes),
        build.data_size(seen.spec),
        seen.meta.namespace,
        Reason.GROWING_VOLUMES,
        blocked=Reason.VOLUME_CANNOT_GROW,
        field="spec.volumes.data.size",
    )


def volumes_are_reclaimed(seen: Seen) -> Verdict:
    """The volume of a member that has left goes after its pod, where the spec says so; else it waits for its return."""
    live = seen.there.rest.workload
    if live is None or seen.spec.volumes.data.reclaim_on_scale_down == "Retain":
        return DONE
    left = (v for v in seen.there.rest.volumes if v.ordinal >= max(live.replicas, seen.spec.members))
    return volumes.are_reclaimed(
        [volume for volume in left if not in_use(seen, volume)],
        seen.meta.namespace,
        Reason.CLEARING_VOLUME,
        guard=lambda volume: _has_left(names.rest(seen.name), volume.ordinal),
    )


def in_use(seen: Seen, volume: VolumeSeen) -> bool:
    """Whether the pod that a REST member's volume is for is still there."""
    return seen.there.rest.pod(ordinals.pod(names.rest(seen.name), volume.ordinal)) is not None


def kept(seen: Seen) -> tuple[Pair, ...]:
    """All that is owned beside the REST members' StatefulSet, by name: it is let go of whatever the spec says."""
    made = [
        *seen.there.rest.children,
        (_called(builtin.SECRET, names.configuration(seen.name)), seen.there.document),
        (_called(builtin.SECRET, names.agent_token(seen.name)), seen.there.token),
    ]
    if master := seen.there.master.workload:
        child = msgspec.structs.replace(master.child, uid=master.uid)
        made.append((_called(builtin.STATEFUL_SET, names.master(seen.name)), child))
    return tuple(made)


def _called(resource: meta.Resource, name: str) -> Desired:
    return Desired(resource, {"metadata": {"name": name}})
