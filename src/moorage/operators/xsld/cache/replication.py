"""The copy of the administrative database: set up, kept, moved, and taken over from. Pure."""

from __future__ import annotations

from moorage.children import ordinals
from moorage.operators.xsld.group import answers
from moorage.operators.xsld.reasons import Reason
from moorage.runtime.decision import DONE, Blocked, Verdict, Wait

from . import member_trouble, tasks
from .observation import Seen

ANSWERED = frozenset({answers.Fault.UNAUTHORIZED, answers.Fault.UNAVAILABLE, answers.Fault.MALFORMED})
"""Faults that are an answer."""


def slave_of(seen: Seen) -> answers.Member | None:
    """The member that holds the copy."""
    return next((m for m in seen.group.members if m.role == "slave"), None) if seen.group else None


def wanted(seen: Seen) -> bool:
    """Whether there should be a copy."""
    return seen.spec.derby_replication.mode != "Disabled" and seen.spec.size >= 2


def candidate(seen: Seen, *, without: str = "") -> str:
    """Who should hold the copy: the lowest other catalog server that is Online, else the lowest other member."""
    if seen.group is None or seen.primary is None:
        return ""
    fit = [
        m
        for m in seen.group.online
        if not m.primary and m.name != without and ordinals.of(seen.name, m.name) < seen.spec.size
    ]
    ranked = sorted(fit, key=lambda m: (not m.catalog, ordinals.of(seen.name, m.name)))
    return ranked[0].name if ranked else ""


def primary_leads(seen: Seen) -> Verdict:
    """The primary answers; where it stays away and there is a copy, the copy takes over.

    Not while its node does not answer: it may run there, cut off, and there would be two. One that answers and is
    alone in its own eyes has lost what it had: that does not come back by waiting.
    """
    if seen.group is None or seen.primary is not None:
        return DONE
    if (current := seen.task) is not None and current.command == tasks.FAILOVER:
        return DONE  # it is followed
    chief = seen.group.primary
    name = chief.name if chief else seen.status.primary_of(seen.name)
    slave, answer, fault = slave_of(seen), seen.answer(name), seen.fault(name)
    patience = float(seen.spec.derby_replication.failover_seconds)
    if fault is not None and fault.fault in ANSWERED and chief is not None and chief.online:
        return _errs(seen, fault)
    cause = member_trouble.of(seen, name)
    said = f"{name}, the primary, does not answer" + (f" ({cause})" if cause else "")
    blank = False
    if answer is not None and chief is not None:
        said = f"{name}, the primary, has lost its state and tells of a group of its own"
        blank = all(m.name == name for m in answer.members)
    if slave is None or not slave.online or seen.answer(slave.name) is None:
        if slave is None and answer is not None and chief is not None:
            return Blocked(Reason.PRIMARY_LOST, said, "restore its volume from a backup, or make the cache anew")
        return Wait(Reason.PRIMARY_UNAVAILABLE, said, on="group", within=900.0, again=seen.busy)
    waited = seen.waited_at(primary_leads.__name__)
    if (pod := seen.there.pod(name)) and pod.cut_off:
        said = f"{said}; as it may still run there, {slave.name} does not take over before that is known"
        return Wait(Reason.PRIMARY_UNAVAILABLE, said, on="group", within=900.0, again=seen.busy)
    if waited < patience and not blank:
        return Wait(
            Reason.PRIMARY_UNAVAILABLE,
            f"{said}; after {patience:g} s {slave.name} takes over",
            on="group",
            within=patience + 900.0,
            again=min(seen.busy, patience - waited),
        )
    why = said if blank else f"{name} has not answered for {waited:.0f} s"
    return tasks.submit(
        seen,
        tasks.FAILOVER,
        slave.name,
        slave.name,
        reason=Reason.FAILING_OVER,
        message=f"{slave.name} becomes the primary, as {why}",
    )


def _errs(seen: Seen, fault: answers.Answer) -> Verdict:
    """The primary works, by its own probe and the group's word, and answers with an error: nobody takes over."""
    said = f"{fault.pod}, the primary, is Online, and answers with an error: {fault.words}"
    if fault.fault is answers.Fault.UNAUTHORIZED:
        fix = "put the password that the group was made with into the Secret"
        return Blocked(Reason.CREDENTIALS_REJECTED, said, fix)
    following = f"{fault.pod} is to answer; if it does not, look at its log, and delete its pod to have it started anew"
    return Wait(Reason.PRIMARY_UNAVAILABLE, said, on="group", within=900.0, again=seen.busy, next=following)


def replication_runs(seen: Seen) -> Verdict:
    """Two members and more keep a copy. A slave that left or stays away is replaced by another, once there is one."""
    if not wanted(seen) or seen.primary is None:
        return DONE
    slave = slave_of(seen)
    if slave is not None and slave.online:
        return DONE
    heir = candidate(seen)
    if not heir:
        return DONE  # who is off, or is to join, is waited for elsewhere
    patience = float(seen.spec.derby_replication.failover_seconds)
    if slave is not None and (waited := seen.waited_at(replication_runs.__name__)) < patience:
        said = f"{slave.name}, which holds the copy, is not online; after {patience:g} s {heir} gets it"
        return Wait(
            Reason.REPLICATION_MISSING,
            said,
            on="group",
            within=patience + 900.0,
            again=min(seen.busy, patience - waited),
        )
    return replicate(seen, heir, f"{heir} becomes the copy of {seen.primary.name}")


def replicate(seen: Seen, heir: str, message: str) -> Verdict:
    """Ask the primary to have its copy there."""
    if seen.primary is None:
        raise ValueError("there is no primary to copy from")
    return tasks.submit(seen, tasks.REPLICATE, heir, seen.primary.name, reason=Reason.REPLICATING, message=message)
