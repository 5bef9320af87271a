"""How a version stops, and how it ends. Pure.

The way in is closed first; then nodes take what is there; then all goes but the key-value buckets, which are the
version's memory and go with it. What is published neither stops nor ends.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

from moorage.api import builtin, common_status
from moorage.children import objects
from moorage.children.parts import SurplusSeen
from moorage.helm import deletion as helm_deletion
from moorage.operators import accounts, steps
from moorage.operators.kre import kinds
from moorage.operators.kre.reasons import VersionReason as Reason
from moorage.runtime import decision, freshness
from moorage.runtime.decision import DONE, Act, Blocked, Verdict, Wait

from . import build, streams
from .observation import Seen

DRAIN_WITHIN = 600.0
"""Seconds within which nodes take what is there; after that a person decides."""

AGAIN = 5.0
"""Seconds between two looks at the counts."""

_STOPS = "the version stops"


def rights_are_bound(seen: Seen) -> Verdict:
    """The account of the version's namespace is bound to its one role there, as for the Runtime."""
    why = "all that is done in the namespace is done with these rights"
    return accounts.is_bound(seen.binding, seen.meta.namespace, seen.rights, Reason.BINDING, why)


def objects_are_known(seen: Seen) -> Verdict:
    """Nothing is taken for gone, or for missing, that was not looked for."""
    if isinstance(seen.objects, freshness.Failed):
        return decision.unknown(Reason.OBJECTS_UNKNOWN, seen.objects, "objects")
    return DONE


def _there(seen: Seen) -> tuple[SurplusSeen, ...]:
    found = freshness.value_of(seen.objects)
    return found.there if found else ()


def published_stays(seen: Seen) -> Verdict:
    """What clients are led to is taken from them by the Runtime alone."""
    runtime = seen.runtime
    if runtime is None or runtime.deleting or seen.older:
        return DONE  # of two of one name the younger is never what is published
    version, doing = seen.spec.version, "deleted" if seen.meta.deleting else "stopped"
    if seen.published:
        said = f"version {version} is published by Runtime {runtime.name}, so it can't be {doing}"
        fix = f"set spec.publishedVersion of Runtime {runtime.name} to another version, or take it out"
        return Blocked(Reason.PUBLISHED, said, fix)
    if not seen.serving:
        return DONE
    if not runtime.published:
        return unpublished(seen)
    said = f"calls are led here until version {runtime.published} has started, which Runtime {runtime.name} publishes"
    return Wait(Reason.STILL_SERVING, said, on="versions", within=DRAIN_WITHIN, fix=Reason.STILL_SERVING.next)


def unpublished(seen: Seen) -> Act:
    """Nothing is published any more: the Service goes, if it still leads here."""
    active = seen.active
    remove = decision.Delete(
        why="the Runtime publishes nothing",
        resource=builtin.SERVICE,
        ref=builtin.SERVICE.ref(seen.meta.namespace, seen.names.active, active.uid),
        resource_version=active.resource_version,
    )
    return Act(Reason.UNPUBLISHING, f"Service {seen.names.active} no longer leads here", (remove,))


def what_was_made_is_noted(seen: Seen) -> Verdict:
    """As after a restore from a backup, where the status is lost: what is seen was made."""
    if seen.status.made or not (_there(seen) or seen.mine):
        return DONE
    note = decision.Remember(why="something of it is there", fields={"made": True})
    return Act(Reason.NOTING, "what there is of it is noted", (note,))


def entrance_is_closed(seen: Seen) -> Verdict:
    """Nothing more comes in: the Service goes, and the Deployment once its last pod has ended."""
    entrance = [each for each in _there(seen) if build.is_entrance(each.resource, each.name, seen.names)]
    return leave(seen, entrance, Reason.CLOSING, _STOPS)


def objects_are_gone(seen: Seen) -> Verdict:
    """Deployments, ConfigMaps and the Secret."""
    return leave(seen, _there(seen), Reason.STOPPING, _STOPS)


def leave(seen: Seen, left: Iterable[SurplusSeen], reason: Reason, why: str) -> Verdict:
    """What is removed takes its time; a Deployment is there until its pods, which answer for what they took, are."""
    staying = [each for each in left if not each.deleting]
    if not staying:
        return objects.are_gone([each.id for each in left], reason)
    deletes = tuple(
        decision.Delete(
            why=why,
            resource=each.resource,
            ref=each.resource.ref(seen.meta.namespace, each.name, each.uid),
            propagation="Foreground" if each.resource == kinds.DEPLOYMENT else "Background",
        )
        for each in staying
    )
    return Act(reason, f"removed: {steps.some(each.id for each in staying)}", deletes)


def nats_is_known(seen: Seen) -> Verdict:
    """Nothing in NATS is taken for gone that was not looked for just now."""
    if not seen.status.made:
        return DONE
    match seen.nats:
        case freshness.Failed():
            wait = decision.unknown(Reason.NATS_UNREACHABLE, seen.nats, "nats")
        case freshness.Stale(why=why):
            said = f"what NATS has is asked anew: {why}"
            wait = Wait(Reason.NATS_UNREACHABLE, said, on="nats", within=120.0, unseen=True)
        case _:
            return DONE
    return wait


def messages_are_taken(seen: Seen) -> Verdict:
    """All that came in is worked off, or given up by a person."""
    if seen.discards:
        return DONE
    pending = seen.pending()
    if not pending:
        return DONE
    counts = steps.some(f"{name} {left}" for name, left in pending.items())
    said = f"messages that nodes have not taken: {counts}"
    fix = f"see why the nodes do not take them, or annotate this with {kinds.DISCARD}=true, which loses them"
    return Wait(Reason.DRAINING, said, on="nats", within=DRAIN_WITHIN, again=AGAIN, fix=fix)


def streams_are_gone(seen: Seen) -> Verdict:
    """Streams and object stores; what is not this version's stays."""
    return _gone(seen, (streams.STREAM, streams.OBJECTS))


def all_of_nats_is_gone(seen: Seen) -> Verdict:
    """The key-value buckets too."""
    return _gone(seen, (streams.STREAM, streams.OBJECTS, streams.KEY_VALUES))


def _gone(seen: Seen, which: tuple[str, ...]) -> Verdict:
    left = [name for name in seen.mine if streams.kind_of(name)[0] in which]
    if not left:
        return DONE
    calls = tuple(
        decision.Call(why="nothing of it is to run", operation="nats.drop_stream", args={"name": name}) for name in left
    )
    return Act(
        Reason.STOPPING, f"removed in NATS: {steps.some(' '.join(streams.kind_of(name)) for name in left)}", calls
    )


def to_stop(step: Callable[[Seen], Verdict]) -> Callable[[Seen], Verdict]:
    """A step of a version that is to stand still; none of one that is to run."""

    @functools.wraps(step)
    def stepped(seen: Seen) -> Verdict:
        return DONE if seen.spec.running else step(seen)

    return stepped


STEPS: tuple[Callable[[Seen], Verdict], ...] = tuple(
    to_stop(step)
    for step in (
        published_stays,
        entrance_is_closed,
        nats_is_known,
        messages_are_taken,
        objects_are_gone,
        streams_are_gone,
    )
)


# --- steps of a version that is being deleted -------------------------------------------------------------------------


def namespace_ends(seen: Seen) -> Verdict:
    """With the namespace everything goes, and rights with it."""
    return steps.namespace_ends(seen.namespace_ending, Reason.LEAVING)


def nothing_was_made(seen: Seen) -> Verdict:
    """Where no rights were ever bound there is nothing to remove."""
    held = seen.allowed and seen.status.made
    return steps.nothing_was_made(seen.binding, held, Reason.BINDING, Reason.LEAVING)


def orphaning_is_honoured(seen: Seen) -> Verdict:
    """Everything stays where it is, if that is asked for; what is owned must be let go of first."""
    if seen.meta.annotations.get(common_status.ON_DELETE) != "Orphan":
        return DONE
    why = "it is left where it is, as moorage.dev/on-delete=Orphan asks"
    free = tuple(
        objects.let_go(each.resource, (seen.meta.namespace, each.name), each.uid, why) for each in _there(seen)
    )
    said = f"all of version {seen.spec.version} stays where it is"
    goes = steps.it_may_go(_rights_returned(seen), Reason.LEAVING, why)
    return Act(Reason.LEAVING, said, (*free, *goes.actions))


def runtime_is_there(seen: Seen) -> Verdict:
    """With the Runtime its NATS is gone, and all that the version had there."""
    if isinstance(seen.runtimes, freshness.Failed):
        return decision.unknown(Reason.RUNTIME_NOT_FOUND, seen.runtimes, "runtime")
    if seen.runtimes.value:
        return DONE
    if (left := objects_are_gone(seen)) is not DONE:
        return left
    return _leaves(seen, "its Runtime is gone, and all that it had there")


def version_may_go(seen: Seen) -> Verdict:
    """By the word of Kubernetes and of NATS nothing is left."""
    return _leaves(seen, f"nothing is left of version {seen.spec.version}")


def _leaves(seen: Seen, why: str) -> Act:
    return steps.it_may_go(_rights_returned(seen), Reason.LEAVING, why)


def _rights_returned(seen: Seen) -> helm_deletion.Last:
    """Who leaves a namespace last, Runtimes counted, gives the operator's rights there back."""
    binding, why = freshness.value_of(seen.binding), f"no Runtime and no version is left in {seen.meta.namespace}"
    return steps.rights_returned(binding, seen.meta.namespace, seen.rights, seen.neighbours, why)


DELETION_STEPS: tuple[Callable[[Seen], Verdict], ...] = (
    namespace_ends,
    nothing_was_made,
    rights_are_bound,
    objects_are_known,
    orphaning_is_honoured,
    what_was_made_is_noted,
    runtime_is_there,
    published_stays,
    entrance_is_closed,
    nats_is_known,
    messages_are_taken,
    objects_are_gone,
    all_of_nats_is_gone,
    version_may_go,
)
