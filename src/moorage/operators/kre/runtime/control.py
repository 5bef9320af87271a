"""What moorage does for a Runtime, step by step. Pure: read top to bottom.

Its own steps make sure of what helm must not break (credentials, volumes, the shape of NATS), the release is one like
any other (`moorage.helm.steps`), and then the servers are asked: a pod that is ready says little of a cluster.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from moorage.api import meta
from moorage.children import ordinals, volumes
from moorage.children.parts import VolumeSeen
from moorage.helm import observation as helm_observation
from moorage.helm import steps as helm_steps
from moorage.operators import accounts, steps
from moorage.operators.kre import kinds
from moorage.operators.kre.reasons import RuntimeReason as Reason
from moorage.runtime import decision, freshness
from moorage.runtime.decision import DONE, Act, Blocked, Verdict, Wait

from . import types

MINUTE = 60.0
SERVERS_WITHIN = 10 * MINUTE


class CredentialsSeen(msgspec.Struct, frozen=True):
    """The Secret with the credentials; none of its values."""

    uid: str = ""
    made: bool = False  # by moorage
    fault: str = ""  # what is wrong with it
    differs: tuple[str, ...] = ()  # keys of which the spec says something else, in clear
    known: bool = False  # where it is gone: what it held is known still, so that it can be made as it was


class NatsSeen(msgspec.Struct, frozen=True):
    """The cluster, by its own word."""

    leader: str = ""
    servers: tuple[str, ...] = ()  # those that are in it, and answer


class MongoSeen(msgspec.Struct, frozen=True):
    """The replica set, by its own word."""

    initiated: bool = True
    primary: bool = True
    reader: bool = True  # the user that may only read is there; asked only where there is to be one
    refused: str = ""  # its words, where it does not take the credentials


class VersionSeen(msgspec.Struct, frozen=True):
    """A RuntimeVersion that has something in the Runtime."""

    name: str
    deleting: bool = False


class PublishedSeen(msgspec.Struct, frozen=True):
    """What is to be published, and what is."""

    wanted: str = ""  # a version's name; empty: none
    led: str | None = ""  # where calls are led to; None while that is not known
    trouble: str = ""  # why the wanted one does not answer, in its own words


class HeldSeen(msgspec.Struct, frozen=True):
    """The volumes of one server, and whether it still has pods."""

    server: str
    volumes: tuple[VolumeSeen, ...] = ()
    pods: tuple[str, ...] = ()


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is decided on. The spec itself is left out, as passwords may stand in it."""

    meta: meta.ObjectMeta
    settings: types.Settings
    status: types.RuntimeStatus
    rights: accounts.Rights
    allowed: bool  # the namespace may hold a Runtime
    namespace_ending: bool
    binding: freshness.Observed[accounts.BindingSeen | None]
    neighbours: int  # other Runtimes of the namespace, and versions
    older: str = ""  # one of them that was there before
    versions: freshness.Observed[tuple[VersionSeen, ...]] = freshness.Fresh(())  # what is made in it
    credentials: freshness.Observed[CredentialsSeen]
    held: freshness.Observed[tuple[HeldSeen, ...]]
    published: PublishedSeen = PublishedSeen()
    components: tuple[types.Component, ...] = ()
    nats: freshness.Observed[NatsSeen]
    mongo: freshness.Observed[MongoSeen]
    store: freshness.Observed[bool]  # MinIO is ready
    metrics: freshness.Observed[bool] | None  # InfluxDB is ready; None: it is switched off
    release: helm_observation.ReleaseSeen

    def held_by(self, server: str) -> HeldSeen:
        """The volumes of that server, as far as they are known."""
        known = freshness.value_of(self.held) or ()
        return next((each for each in known if each.server == server), HeldSeen(server))

    @property
    def nats_before(self) -> int:
        """How many NATS servers may hold streams: as many as were written down, and those that have a volume.

        Without volumes streams are with the pods; where nothing of it is left there are none.
        """
        held = self.held_by("nats")
        claims = [volume.ordinal + 1 for volume in held.volumes if not volume.deleting]
        if not claims and not held.pods and all(each.name != "nats" for each in self.components):
            return 0
        return max([self.status.nats_servers, *claims])


# --- before helm: its place, and what helm must not break -----------------------------------------------------------


def runtime_is_alone(seen: Seen) -> Verdict:
    """A namespace has one Runtime, the oldest: its servers have fixed names."""
    if not seen.older:
        return DONE
    said = f"Runtime {seen.older}, which is older, is in this namespace"
    return Blocked(Reason.SECOND_RUNTIME, said, "make this one in a namespace of its own, and delete it here")


def namespace_is_allowed(seen: Seen) -> Verdict:
    """Runtimes live anywhere but in the namespaces of Kubernetes, or in those that the administrator lists."""
    if seen.allowed:
        return DONE
    said = f"namespace {seen.meta.namespace} may hold no Runtime"
    return Blocked(Reason.NAMESPACE_NOT_ALLOWED, said, decision.next_of(Reason.NAMESPACE_NOT_ALLOWED))


def values_are_bounded(seen: Seen) -> Verdict:
    """The chart's schema says what they may be; how much of them is said here."""
    if seen.settings.further <= types.MOST_VALUES:
        return DONE
    said = f"spec.values has {seen.settings.further} bytes, and may have {types.MOST_VALUES}"
    return Blocked(Reason.TOO_MANY_VALUES, said, "take out of spec.values what the chart does not need")


def finalizer_is_set(seen: Seen) -> Verdict:
    """Before the first outside effect."""
    why = "nothing may be left behind when it is deleted"
    return steps.finalizer_is_set(seen.meta, kinds.RUNTIME_FINALIZER, Reason.TAKING_CARE, why)


def rights_are_bound(seen: Seen) -> Verdict:
    """The account of the Runtime's namespace is bound to its one role there."""
    why = "all that is done in the namespace is done with these rights"
    return accounts.is_bound(seen.binding, seen.meta.namespace, seen.rights, Reason.BINDING, why)


def cluster_is_known(seen: Seen) -> Verdict:
    """Nothing is decided on watches that are not filled."""
    if isinstance(seen.held, freshness.Failed):
        return decision.unknown(Reason.CLUSTER_UNKNOWN, seen.held, "volumes")
    return DONE


def credentials_are_there(seen: Seen) -> Verdict:
    """Those of the user, or a Secret that is made once and outlives the Runtime with its volumes."""
    if isinstance(seen.credentials, freshness.Failed):
        return decision.unknown(Reason.CREDENTIALS_UNKNOWN, seen.credentials, "credentials")
    found, name = seen.credentials.value, seen.settings.secret
    if isinstance(seen.credentials, freshness.Stale) and not found.uid:
        said = f"Secret {name} is looked at anew: {seen.credentials.why}"
        return Wait(Reason.CREDENTIALS_UNKNOWN, said, on="credentials", within=2 * MINUTE)
    kept = [volume.name for volume in seen.held_by("mongo").volumes if not volume.deleting]
    if not found.uid and not seen.settings.named and kept and not found.known:
        said = f"Secret {name} is gone, and volume {', '.join(kept)} can't be read without what it held"
        return Blocked(Reason.CREDENTIALS_LOST, said, decision.next_of(Reason.CREDENTIALS_LOST))
    if not found.uid and not seen.settings.named:
        call = decision.Call(why="none is named, and none was made", operation="credentials.make")
        return Act(Reason.MAKING_CREDENTIALS, f"Secret {name} is made", (call,))
    if not found.uid:
        said = f"there is no Secret {name}, which spec.credentialsSecretRef names"
        return Blocked(Reason.CREDENTIALS_INVALID, said, "make it, or correct spec.credentialsSecretRef")
    if found.fault:
        return Blocked(Reason.CREDENTIALS_INVALID, f"Secret {name}: {found.fault}", "correct the Secret")
    if found.differs:
        said = f"the spec has other credentials than Secret {name}: {', '.join(found.differs)}"
        return Blocked(Reason.CREDENTIALS_DIFFER, said, decision.next_of(Reason.CREDENTIALS_DIFFER))
    return DONE


def nats_keeps_its_shape(seen: Seen) -> Verdict:
    """One server and a cluster are two things, and a server that leaves may hold streams that nobody else has.

    How many there are to be is written down before the first of them is made, as their volumes come one by one.
    """
    wanted, had = seen.settings.nats, seen.nats_before
    if not had and seen.status.nats_servers != wanted:
        note = decision.Remember(why="its servers are not made all at once", fields={"natsServers": wanted})
        said = f"NATS is to be made of {wanted} server{'s' if wanted > 1 else ''}"
        return Act(Reason.MAKING_NATS, said, (note,), go_on=True)
    if not had or wanted == had or (1 < had < wanted):
        return DONE
    said = (
        f"NATS may have streams on {had} server{'s' if had > 1 else ''}, and spec.nats_streaming.replicas is {wanted}"
    )
    fix = f"set it to {had} again, or make a new Runtime of {wanted}"
    if (wanted > 1) != (had > 1):
        return Blocked(Reason.NATS_CONVERTS, said, fix)
    last = f"{kinds.CLAIM}-{ordinals.pod(kinds.workload('nats'), had - 1)}"
    return Blocked(Reason.NATS_SHRINKS, said, f"{fix}; volume {last} is of the server that would leave")


def volumes_grow(seen: Seen) -> Verdict:
    """Each to what the spec says, by its claim; the template of a StatefulSet stays as it was made."""
    for server, wanted in seen.settings.volumes.items():
        field = " or ".join(f"spec.{path}.size" for path in types.VOLUMES[server][0])
        verdict = volumes.grow(
            seen.held_by(server).volumes,
            wanted.size,
            seen.meta.namespace,
            Reason.GROWING_VOLUME,
            blocked=Reason.VOLUME_STUCK,
            field=field,
        )
        if verdict is not DONE:
            return verdict
    return DONE


# --- after helm: the servers are asked ------------------------------------------------------------------------------


def mongo_is_initiated(seen: Seen) -> Verdict:
    """A fresh server is made a replica set of one, by its own word; not behind others' pods, which may wait for it."""
    mongo = freshness.value_of(seen.mongo)
    if mongo is None or mongo.refused or mongo.initiated:
        return DONE
    if isinstance(seen.mongo, freshness.Stale):
        return Wait(Reason.MONGO_UNKNOWN, f"mongo is asked anew: {seen.mongo.why}", on="mongo", within=2 * MINUTE)
    call = decision.Call(why="it is no replica set yet", operation="mongo.initiate")
    return Act(Reason.INITIATING_MONGO, "mongo is made a replica set", (call,))


def reader_is_made(seen: Seen) -> Verdict:
    """The user as whom mongo-express reads, whose pod ends again and again without it."""
    if not seen.settings.reader or not isinstance(seen.mongo, freshness.Fresh):
        return DONE
    mongo = seen.mongo.value
    if mongo.refused or not mongo.primary or mongo.reader:
        return DONE
    call = decision.Call(why="mongo-express reads as that user", operation="mongo.make_reader")
    return Act(Reason.MAKING_READER, "the user that reads is made in mongo", (call,))


def mongo_answers(seen: Seen) -> Verdict:
    """It takes the credentials and has a primary."""
    if isinstance(seen.mongo, freshness.Failed):
        return decision.unknown(Reason.MONGO_UNKNOWN, seen.mongo, "mongo", within=SERVERS_WITHIN)
    mongo = seen.mongo.value
    if mongo.refused:
        said = f"mongo does not take the credentials of Secret {seen.settings.secret}: {mongo.refused}"
        return Blocked(Reason.MONGO_REFUSES, said, decision.next_of(Reason.MONGO_REFUSES))
    if not mongo.primary:
        return Wait(Reason.MONGO_NOT_PRIMARY, "mongo has no primary", on="mongo", within=5 * MINUTE, again=5.0)
    return DONE


def nats_is_whole(seen: Seen) -> Verdict:
    """It has a leader and all servers; from then on it is known how many there were."""
    if isinstance(seen.nats, freshness.Failed):
        return decision.unknown(Reason.NATS_UNKNOWN, seen.nats, "nats", within=SERVERS_WITHIN)
    wanted = seen.settings.nats
    if fault := nats_fault(seen.nats.value, wanted):
        return Wait(Reason.NATS_NOT_WHOLE, fault, on="nats", within=SERVERS_WITHIN, again=5.0)
    if seen.status.nats_servers == wanted:
        return DONE
    note = decision.Remember(why="its streams are of so many servers", fields={"natsServers": wanted})
    return Act(Reason.WHOLE, f"NATS is whole with {wanted} server{'s' if wanted > 1 else ''}", (note,), go_on=True)


def nats_fault(nats: NatsSeen, wanted: int) -> str:
    """What is wrong with a cluster of so many servers; nothing where all is well."""
    there = f"{len(nats.servers)} of {wanted} NATS servers answer: {', '.join(nats.servers) or 'none'}"
    if wanted > 1 and not nats.leader:
        return f"NATS has no leader that answers; {there}"
    return there if len(nats.servers) < wanted else ""


def store_answers(seen: Seen) -> Verdict:
    """Files of versions come from there."""
    if isinstance(seen.store, freshness.Failed):
        return decision.unknown(Reason.STORE_UNKNOWN, seen.store, "store", within=SERVERS_WITHIN)
    if seen.store.value:
        return DONE
    return Wait(Reason.STORE_UNKNOWN, "MinIO is not ready", on="store", within=SERVERS_WITHIN, again=5.0)


def metrics_answer(seen: Seen) -> Verdict:
    """InfluxDB, where it is not switched off."""
    if seen.metrics is None:
        return DONE
    if isinstance(seen.metrics, freshness.Failed):
        return decision.unknown(Reason.METRICS_UNKNOWN, seen.metrics, "metrics", within=SERVERS_WITHIN)
    if seen.metrics.value:
        return DONE
    return Wait(Reason.METRICS_UNKNOWN, "InfluxDB is not ready", on="metrics", within=SERVERS_WITHIN, again=5.0)


STEPS: tuple[Callable[[Seen], Verdict], ...] = (
    runtime_is_alone,
    namespace_is_allowed,
    values_are_bounded,
    finalizer_is_set,
    rights_are_bound,
    cluster_is_known,
    credentials_are_there,
    nats_keeps_its_shape,
    volumes_grow,
    *(step for step in helm_steps.STEPS if step is not helm_steps.children_are_ready),
    mongo_is_initiated,
    reader_is_made,
    helm_steps.children_are_ready,
    mongo_answers,
    nats_is_whole,
    store_answers,
    metrics_answer,
)
