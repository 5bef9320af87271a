"""What moorage does for an XsldCache, step by step. Pure: read top to bottom.

First the objects in the cluster (`objects`), which need nobody's answer, so that a repair is never behind what it
repairs. Then the group: one task at a time (`tasks`), the primary (`replication`), who joins and who leaves (here), and
only then updates (`rolling`). Where one of these can't go on, what does not hang on it goes on: such a step is listed
twice, first as far as it acts, and in the end for what it waits for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from moorage.api import builtin
from moorage.children import ordinals
from moorage.operators import steps
from moorage.operators.xsld.group import answers
from moorage.operators.xsld.reasons import Reason
from moorage.runtime import decision, freshness
from moorage.runtime.decision import DONE, Act, Blocked, Verdict, Wait

from . import build, deletion, left_members, member_trouble, objects, replication, rolling, tasks
from .observation import Seen


def retry_is_honoured(seen: Seen) -> Verdict:
    """A new value of moorage.dev/reconcile-at forgets what failed."""
    return steps.retry_is_honoured(seen.meta, seen.status, Reason.RETRYING, "what failed is tried anew", troubles=[])


def group_answers(seen: Seen) -> Verdict:
    """Somebody tells of the group, and nothing was done to it since."""
    polled = seen.polled
    if isinstance(polled, freshness.Failed):
        return decision.unknown(Reason.GROUP_UNREACHABLE, polled, "group")
    if isinstance(polled, freshness.Stale):
        return Wait(Reason.LOOKING, f"the group is asked anew: {polled.why}", on="group", within=120.0, unseen=True)
    if seen.group is not None:
        return DONE
    if polled.value.rejected:
        return Blocked(
            Reason.CREDENTIALS_REJECTED,
            "the members refuse the administrator's password",
            "put the password that the group was made with into the Secret",
        )
    why = "; ".join(f"{a.pod}: {a.words}" for a in polled.value.answers if a.fault) or "no pod has an address yet"
    troubles = [f"{pod.name}: {pod.trouble}" for pod in seen.there.pods if pod.trouble] or [seen.there.unmade]
    return Wait(
        Reason.GROUP_UNREACHABLE,
        f"nobody answers: {why}" + (f" ({'; '.join(troubles)})" if any(troubles) else ""),
        on="group",
        within=1800.0,
        again=seen.busy,
    )


def strangers_leave(seen: Seen) -> Verdict:
    """Whom the group lists and who is none of it, leaves the list, to join anew.

    Such are a member that came back without its state, and so tells of a group of its own, and one whose join failed
    half-way.
    """
    group, chief = seen.group, seen.primary
    if group is None or chief is None:
        return DONE
    for member in group.members:
        if member.online or member.primary:
            continue
        answer = seen.answer(member.name)
        blank = answer is not None and all(m.name != group.teller for m in answer.members)
        half = tasks.trouble_with(seen, tasks.JOIN, member.name) is not None
        if blank or half:
            why = "came back without its state" if blank else "has not joined whole"
            message = f"{member.name} {why}, and leaves the group to join it anew"
            return tasks.submit(seen, tasks.LEAVE, member.name, chief.name, reason=Reason.REJOINING, message=message)
    return DONE


def members_join(seen: Seen) -> Verdict:
    """Pods that are wanted and no members join the group, one at a time, lowest ordinal first."""
    group, chief = seen.group, seen.primary
    if group is None or chief is None:
        return DONE
    missing = seen.missing
    if not missing:
        return DONE
    # by the group's own word: one whose pod is not ready may be ready only once it has company
    if seen.listed and 2 * len(seen.listed.online) <= len(group.members):
        weak = [m.name for m in seen.listed.members if not m.online]
        count = f"{len(seen.listed.online)} of {len(group.members)}"
        said = f"only {count} members are Online by the group's word (not {member_trouble.of_all(seen, weak)})"
        return Wait(
            Reason.GROUP_DEGRADED,
            f"{said}; nobody joins until most are",
            on="group",
            within=3600.0,
            again=seen.busy,
        )
    old = left_members.with_old_volumes(seen)
    ready = [name for name in missing if seen.answer(name) is not None and name not in old]
    held = {name: verdict for name in ready if (verdict := tasks.held_back(seen, tasks.JOIN, name))}
    if joining := next((name for name in ready if name not in held), None):
        return tasks.submit(
            seen, tasks.JOIN, joining, joining, reason=Reason.JOINING, message=f"{joining} joins the group"
        )
    if held:
        return min(held.values(), key=lambda verdict: isinstance(verdict, Blocked))  # who waits is looked at again
    said = f"{member_trouble.of_all(seen, missing)} is to join, and does not answer yet"
    return Wait(Reason.MEMBER_STARTING, said, on="group", within=1800.0, again=seen.busy)


def surplus_leaves(seen: Seen) -> Verdict:
    """Members beyond the wanted size leave the group one at a time, and never the first.

    Those that are off leave first, once all that stay are Online, and all grids: then nothing is held by them alone.
    Else the highest ordinal first, from a group that is whole.
    """
    group, chief = seen.group, seen.primary
    if group is None or chief is None:
        return DONE
    size = max(1, seen.spec.size)
    surplus = [m for m in group.members if ordinals.of(seen.name, m.name) >= size]
    if not surplus:
        return DONE
    if weak := [m.name for m in group.members if not m.online and m not in surplus]:
        said = f"{member_trouble.of_all(seen, weak)} not online; nobody leaves before all that stay are"
        return Wait(Reason.GROUP_DEGRADED, said, on="group", within=3600.0, again=seen.busy)
    off = [m for m in surplus if not m.online]
    leaving = max(off or surplus, key=lambda m: ordinals.of(seen.name, m.name))
    if not off:
        return _leaves(seen, leaving, chief, Reason.DISJOINING, f"{leaving.name} leaves the group")
    said = f"{leaving.name}, which is off, leaves the group"
    if bad := rolling.grids_that_are_off(seen):
        return Wait(Reason.GROUP_DEGRADED, f"{said}, once {bad}", on="group", within=3600.0, again=seen.busy)
    stays = decision.Guard("those_who_stay_are_online", {"size": size})
    return _leaves(seen, leaving, chief, Reason.DISJOINING, said, stays)


def catalogs_match(seen: Seen) -> Verdict:
    """The first so many members run catalog servers: one that should and does not, or the reverse, joins anew."""
    group, chief = seen.group, seen.primary
    if group is None or chief is None:
        return DONE
    wrong = [
        m
        for m in group.members
        if (ordinal := ordinals.of(seen.name, m.name)) > 0 and m.catalog != (ordinal < seen.spec.catalogs)
    ]
    if not wrong:
        return DONE
    if weak := [*(m.name for m in group.members if not m.online), *seen.missing]:
        said = f"{member_trouble.of_all(seen, weak)} not online; no member changes its role in a degraded group"
        return Wait(Reason.GROUP_DEGRADED, said, on="group", within=3600.0, again=seen.busy)
    # a catalog server that is missing first: the group is never left with fewer than it must have
    changing = min(wrong, key=lambda m: (m.catalog, ordinals.of(seen.name, m.name)))
    role = "none" if changing.catalog else "a catalog server"
    message = f"{changing.name} leaves the group and joins anew, to be {role}"
    return _leaves(seen, changing, chief, Reason.CATALOGS_CHANGING, message)


def _leaves(
    seen: Seen, member: answers.Member, chief: answers.Member, reason: Reason, message: str, *require: decision.Guard
) -> Verdict:
    """Whoever holds the database, or its copy, hands it over first."""
    slave = replication.slave_of(seen)
    if member.role == "slave" and replication.wanted(seen):
        if heir := replication.candidate(seen, without=member.name):
            return replication.replicate(seen, heir, f"{heir} becomes the copy, before {member.name} leaves")
    if not member.primary:
        return tasks.submit(seen, tasks.LEAVE, member.name, chief.name, reason=reason, message=message, require=require)
    if slave is not None and slave.online:
        said = f"{slave.name} becomes the primary, before {member.name} leaves"
        return tasks.submit(seen, tasks.FAILOVER, slave.name, slave.name, reason=Reason.FAILING_OVER, message=said)
    if seen.spec.derby_replication.mode != "Disabled" and (heir := replication.candidate(seen, without=member.name)):
        return replication.replicate(seen, heir, f"{heir} becomes the copy, before {member.name} leaves")
    return Blocked(
        Reason.PRIMARY_IS_SURPLUS,
        f"{member.name} is the primary and should leave, and nobody can take over",
        "set derbyReplication.mode to Auto, or raise the size again",
    )


def addresses_are_right(seen: Seen) -> Verdict:
    """The group must know each member under the address that its pod has now."""
    if seen.group is None:
        return DONE
    stale = [
        f"{m.name} ({m.address}, its pod has {pod.address})"
        for m in seen.group.members
        if (pod := seen.there.pod(m.name)) and pod.running and pod.address and m.address and m.address != pod.address
    ]
    if not stale:
        return DONE
    return Wait(
        Reason.ADDRESS_STALE,
        f"the group knows old addresses: {', '.join(stale)}",
        on="group",
        within=600.0,
        again=seen.busy,
    )


def gates_are_set(seen: Seen) -> Verdict:
    """With spec.readinessGate a pod is ready while the group counts its member as Online; False only if it says so."""
    if not seen.spec.readiness_gate or seen.listed is None:
        return DONE
    wrong = [
        (pod, member.online)
        for pod in seen.there.pods
        if (member := seen.listed.member(pod.name)) and not pod.deleting and pod.gate is not member.online
    ]
    if not wrong:
        return DONE
    actions = tuple(
        decision.SetPodCondition(
            why=f"the group counts it as {'Online' if online else 'not Online'}",
            ref=builtin.POD.ref(seen.meta.namespace, pod.name, pod.uid),
            type=build.GATE,
            status=online,
        )
        for pod, online in wrong
    )
    said = ", ".join(f"{pod.name} {'may' if online else 'may not'}" for pod, online in wrong)
    return Act(Reason.GATING, f"serve clients: {said}", actions, go_on=True)


def members_answer(seen: Seen) -> Verdict:
    """Who is Online answers on its admin API too: else nothing can be asked of it when that is needed."""
    if seen.group is None:
        return DONE
    silent = [fault for m in seen.group.online if (fault := seen.fault(m.name))]
    if not silent:
        return DONE
    said = "; ".join(f"{it.pod}: {it.words}" for it in silent)
    if refuse := [it.pod for it in silent if it.fault is answers.Fault.UNAUTHORIZED]:
        return Blocked(
            Reason.CREDENTIALS_REJECTED,
            f"{', '.join(refuse)} refuses the administrator's password, which others take ({said})",
            f"look at the volume of {refuse[0]}, which keeps the password of its first start; if it is that of another "
            "group, delete the claim and the pod, and the member joins anew",
        )
    return Wait(Reason.MEMBER_SILENT, f"Online, and not to be asked: {said}", on="group", within=900.0, again=seen.busy)


def members_are_online(seen: Seen) -> Verdict:
    """In the end every wanted member is Online."""
    if seen.group is None:
        return DONE
    off = [
        name
        for ordinal in range(seen.spec.size)
        if not ((m := seen.group.member(name := ordinals.pod(seen.name, ordinal))) and m.online)
    ]
    if not off:
        return DONE
    said = f"{member_trouble.of_all(seen, off)} not online"
    return Wait(Reason.MEMBERS_NOT_ONLINE, said, on="group", within=1800.0, again=seen.busy)


Step = Callable[[Seen], Verdict]


def acts(step: Step) -> Step:
    """The step as far as it acts. What it waits for, and what blocks it, must not hold up what comes after it."""

    @functools.wraps(step)
    def first(seen: Seen) -> Verdict:
        verdict = step(seen)
        return verdict if isinstance(verdict, Act) else DONE

    return first


def rest(step: Step, name: str) -> Step:
    """The same step where everything else is done, under the name of what it waits for."""

    @functools.wraps(step)
    def whole(seen: Seen) -> Verdict:
        return step(seen)

    whole.__name__ = name
    return whole


STEPS: tuple[Step, ...] = (
    objects.namespace_is_allowed,
    objects.finalizer_is_set,
    objects.rights_are_bound,
    retry_is_honoured,
    objects.credentials_are_given,
    objects.entrypoint_is_given,
    objects.cluster_is_known,
    objects.children_exist,
    objects.workload_is_right,
    objects.failing_pods_are_replaced,
    group_answers,
    gates_are_set,
    replication.primary_leads,
    tasks.own_task_is_followed,
    tasks.foreign_tasks_end,
    acts(strangers_leave),
    acts(left_members.removals_are_noticed),
    objects.volumes_are_reclaimed,
    acts(left_members.left_members_are_renewed),
    left_members.pods_have_the_credentials,
    acts(surplus_leaves),
    acts(members_join),
    acts(catalogs_match),
    rolling.new_members_are_back,
    rolling.template_rolls,
    addresses_are_right,
    replication.replication_runs,
    rest(strangers_leave, "strangers_have_left"),
    rest(left_members.removals_are_noticed, "removals_are_known"),
    rest(left_members.left_members_are_renewed, "left_members_are_new"),
    rest(surplus_leaves, "surplus_has_left"),
    objects.leftover_volumes_are_cleared,
    rest(members_join, "members_have_joined"),
    rest(catalogs_match, "catalogs_are_right"),
    members_are_online,
    members_answer,
    rolling.template_is_known,
    objects.volumes_grow,
    objects.surplus_objects_go,
    objects.children_stay,
    objects.surplus_is_gone,
    tasks.troubles_are_forgotten,
    rolling.image_is_as_asked,
)

DELETION_STEPS: tuple[Step, ...] = deletion.DELETION_STEPS
