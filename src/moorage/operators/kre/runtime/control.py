"""What moorage does for a Runtime, step by step. Pure: read top to bottom.

Its own steps make sure of what helm must not break (credentials, volumes, the shape of NATS), the release is one like
any other (`moorage.helm.steps`), and then the servers are asked: a pod that is ready says little of a cluster.
"""

from __future__ import annotations

from collections.abc import Callable

from moorage.children import volumes
from moorage.helm import steps as helm_steps
from moorage.operators import accounts, steps
from moorage.operators.kre import kinds
from moorage.operators.kre.reasons import RuntimeReason as Reason
from moorage.runtime import decision, freshness
from moorage.runtime.decision import DONE, Act, Blocked, Verdict, Wait

from . import shrinking, sizes, types
from .observation import MongoSeen, NatsSeen, Seen

MINUTE = 60.0
SERVERS_WITHIN = 10 * MINUTE


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
    due = not (found.uid and found.system and found.used) or found.behind or found.in_doubt
    if isinstance(seen.credentials, freshness.Stale) and due:
        said = f"Secret {name} is looked at anew: {seen.credentials.why}"
        return Wait(Reason.CREDENTIALS_UNKNOWN, said, on="credentials", within=2 * MINUTE)
    kept = [volume.name for volume in seen.held_by("mongo").volumes if not volume.deleting]
    if name in (kinds.IN_USE, kinds.NATS_LOGIN):
        said = f"spec.credentialsSecretRef names {name}, which moorage itself writes"
        return Blocked(Reason.CREDENTIALS_INVALID, said, "name a Secret of your own")
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
    if found.system_fault:
        said = f"Secret {kinds.NATS_LOGIN}: {found.system_fault}"
        return Blocked(Reason.CREDENTIALS_INVALID, said, "delete it, and another one is made")
    if not found.system:
        call = decision.Call(why="NATS is to know who may remove servers", operation="credentials.make_nats_login")
        return Act(Reason.MAKING_CREDENTIALS, f"Secret {kinds.NATS_LOGIN} is made", (call,))
    return DONE


def credentials_are_in_use(seen: Seen) -> Verdict:
    """Servers are given what is wanted: at once what they only read as they start, and all before there is a mongo."""
    found = freshness.value_of(seen.credentials)
    if found is None:
        return DONE
    keys = tuple(key for key in found.behind if not (_is_mongos(key) and seen.has_mongo) or key in found.absent)
    if found.used and not keys:
        return DONE
    call = decision.Call(why="servers are given it", operation="credentials.take", args={"keys": keys})
    what = f": {', '.join(keys)}" if found.used else ""
    return Act(
        Reason.TAKING_CREDENTIALS, f"the credentials of Secret {seen.settings.secret} are put to use{what}", (call,)
    )


def _is_mongos(key: str) -> bool:
    """It is of a user of mongo, who is there already once there is a mongo."""
    return key.startswith("mongo")


def nats_keeps_its_shape(seen: Seen) -> Verdict:
    """One server and a cluster are two things, and a cluster shrinks by steps of its own, to three at least.

    How many there are to be is written down before the first of them is made, as their volumes come one by one.
    """
    wanted, had = seen.settings.nats, seen.nats_before
    if not had and seen.status.nats_servers != wanted:
        note = decision.Remember(why="its servers are not made all at once", fields={"natsServers": wanted})
        said = f"NATS is to be made of {_servers(wanted)}"
        return Act(Reason.MAKING_NATS, said, (note,), go_on=True)
    if not had or wanted == had or (1 < had < wanted) or (had > 1 and seen.nats_size.shrinks):
        return DONE
    said = f"NATS may have streams on {_servers(had)}, and spec.nats_streaming.replicas is {wanted}"
    if (wanted > 1) != (had > 1):
        return Blocked(Reason.NATS_CONVERTS, said, f"set it to {had} again, or make a new Runtime of {wanted}")
    fix = f"set it to {sizes.LEAST} at least, or make a new Runtime of {wanted}"
    return Blocked(Reason.NATS_TOO_FEW, f"{said}: two stand still while one of them is away", fix)


def _servers(count: int) -> str:
    return f"{count} server{'s' if count > 1 else ''}"


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
        return _asked_anew(seen.mongo)
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


def _asked_anew(mongo: freshness.Stale[MongoSeen]) -> Wait:
    return Wait(Reason.MONGO_UNKNOWN, f"mongo is asked anew: {mongo.why}", on="mongo", within=2 * MINUTE)


def mongo_knows_passwords(seen: Seen) -> Verdict:
    """It is told of another password before anybody is given it."""
    found, mongo = freshness.value_of(seen.credentials), freshness.value_of(seen.mongo)
    if mongo is None or not mongo.primary or found is None or not (found.behind or found.in_doubt):
        return DONE
    if isinstance(seen.mongo, freshness.Stale):
        return _asked_anew(seen.mongo)
    what = ", ".join(found.behind) or "what its administrator logs in with"
    call = decision.Call(why="nobody is given another one before", operation="mongo.change_passwords")
    return Act(Reason.CHANGING_PASSWORDS, f"mongo is told {what} of Secret {seen.settings.secret}", (call,))


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
    """It has a leader and all servers; once it has grown, it is known how many there are."""
    if isinstance(seen.nats, freshness.Failed):
        return decision.unknown(Reason.NATS_UNKNOWN, seen.nats, "nats", within=SERVERS_WITHIN)
    count = seen.nats_size.now
    if fault := nats_fault(seen.nats.value, count):
        return Wait(Reason.NATS_NOT_WHOLE, fault, on="nats", within=SERVERS_WITHIN, again=5.0)
    if seen.status.nats_servers >= count:
        return DONE
    note = decision.Remember(why="its streams are of so many servers", fields={"natsServers": count})
    return Act(Reason.WHOLE, f"NATS is whole with {_servers(count)}", (note,), go_on=True)


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
    credentials_are_in_use,
    nats_keeps_its_shape,
    volumes_grow,
    *(step for step in helm_steps.STEPS if step is not helm_steps.children_are_ready),
    mongo_is_initiated,
    mongo_knows_passwords,
    reader_is_made,
    helm_steps.children_are_ready,
    mongo_answers,
    nats_is_whole,
    store_answers,
    metrics_answer,
    shrinking.streams_fit,
    shrinking.server_is_emptied,
    shrinking.server_has_left,
    shrinking.volume_is_cleared,
)
