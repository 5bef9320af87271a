"""The conditions of a Runtime beside those of its release, and what its status tells. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moorage.children import volumes
from moorage.helm import facts as helm_facts
from moorage.operators.kre.reasons import RuntimeReason as Reason
from moorage.runtime import decision, freshness
from moorage.runtime.decision import Blocked, Fact

from . import control, types
from .observation import Seen


def mongo_ready(seen: Seen) -> Fact:
    """MongoReady: claimed for what mongo was really asked."""
    if isinstance(seen.mongo, freshness.Failed):
        return Fact("MongoReady", None, Reason.MONGO_UNKNOWN, seen.mongo.message)
    mongo = seen.mongo.value
    if mongo.refused:
        return Fact("MongoReady", False, Reason.MONGO_REFUSES, mongo.refused)
    if not mongo.initiated:
        return Fact("MongoReady", False, Reason.INITIATING_MONGO, "it is no replica set yet")
    if not mongo.primary:
        return Fact("MongoReady", False, Reason.MONGO_NOT_PRIMARY, "it has no primary")
    return Fact("MongoReady", True, Reason.WHOLE)


def nats_ready(seen: Seen) -> Fact:
    """NatsReady: a leader, and the wanted servers."""
    if isinstance(seen.nats, freshness.Failed):
        return Fact("NatsReady", None, Reason.NATS_UNKNOWN, seen.nats.message)
    fault = control.nats_fault(seen.nats.value, seen.nats_size.now)
    return Fact("NatsReady", False, Reason.NATS_NOT_WHOLE, fault) if fault else Fact("NatsReady", True, Reason.WHOLE)


def store_ready(seen: Seen) -> Fact:
    """ObjectStoreReady: MinIO answers."""
    return _answers("ObjectStoreReady", seen.store, Reason.STORE_UNKNOWN, "MinIO is not ready")


def metrics_ready(seen: Seen) -> Fact:
    """MetricsReady: InfluxDB answers, or is not wanted."""
    if seen.metrics is None:
        return Fact("MetricsReady", True, Reason.METRICS_OFF)
    return _answers("MetricsReady", seen.metrics, Reason.METRICS_UNKNOWN, "InfluxDB is not ready")


def _answers(type_: str, seen: freshness.Observed[bool], reason: Reason, otherwise: str) -> Fact:
    if isinstance(seen, freshness.Failed):
        return Fact(type_, None, reason, seen.message)
    return Fact(type_, True, Reason.WHOLE) if seen.value else Fact(type_, False, reason, otherwise)


def secrets_kept(seen: Seen) -> Fact:
    """SecretsKept: no password stands in the spec."""
    if seen.settings.plain:
        return Fact("SecretsKept", False, Reason.PLAIN_PASSWORD, f"in clear: {', '.join(seen.settings.plain)}")
    return Fact("SecretsKept", True, Reason.SECRETLY)


def published(seen: Seen) -> Fact:
    """Published: calls are led to what spec.publishedVersion says. A version that has broken is told here, too."""
    it = seen.published
    if it.led is None:
        unknown = Fact(
            "Published", None, Reason.CLUSTER_UNKNOWN, "the Service of what is published is not looked at yet"
        )
        return decision.as_it_stood(unknown, seen.status.conditions)
    if not it.wanted:
        return Fact("Published", False, Reason.NOTHING_PUBLISHED)
    if it.led == it.wanted:
        reason = Reason.PUBLISHED_FAILS if it.trouble else Reason.VERSION_PUBLISHED
        return Fact("Published", True, reason, it.trouble)
    said = f"version {it.wanted} is not led to yet" + (f": {it.trouble}" if it.trouble else "")
    return Fact("Published", False, Reason.PUBLISHED_LATER, f"{said}; calls go to {it.led or 'the default page'}")


Told = Callable[[Seen], Fact]


def _as_it_was(fact: Told, of: Callable[[Seen], freshness.Observed[Any] | None]) -> Told:
    """The same, but that who was not asked yet, as after a restart, stands as it stood."""

    def told(seen: Seen) -> Fact:
        found, known = fact(seen), of(seen)
        if known is None or not freshness.is_unseen(known):
            return found
        return decision.as_it_stood(found, seen.status.conditions)

    return told


FACTS: tuple[Told, ...] = (
    *helm_facts.FACTS,
    _as_it_was(mongo_ready, lambda seen: seen.mongo),
    _as_it_was(nats_ready, lambda seen: seen.nats),
    _as_it_was(store_ready, lambda seen: seen.store),
    _as_it_was(metrics_ready, lambda seen: seen.metrics),
    published,
    secrets_kept,
)
READY_FACTS = frozenset({"Released", "Available", "MongoReady", "NatsReady", "ObjectStoreReady", "MetricsReady"})


def _asked(seen: Seen) -> tuple[freshness.Observed[Any], ...]:
    known: tuple[freshness.Observed[Any] | None, ...] = (seen.mongo, seen.nats, seen.store, seen.metrics)
    return tuple(each for each in known if each is not None)


def report(seen: Seen, standing: decision.StepTaken | None) -> dict[str, Any]:
    """The fields of the status that say how it stands, in the product's words; what is not known stays as it was."""
    fields = helm_facts.report(seen.release)
    if standing is not None and isinstance(standing.verdict, Blocked):
        fields["phase"] = "ERROR"
    elif not any(freshness.is_unseen(known) for known in _asked(seen)):
        asked = (mongo_ready, nats_ready, store_ready, metrics_ready)
        whole = standing is None or all(fact(seen).status for fact in asked)
        fields["phase"] = "STARTED" if whole else "CREATING"
    if not isinstance(seen.held, freshness.Failed):
        fields["components"] = seen.components
        fields["volumeSizes"] = _smallest(seen)
    return fields | _published(seen)


def _smallest(seen: Seen) -> types.VolumeSizes:
    """Of each server's volumes, as far as there are some."""
    found = {}
    for server in types.VOLUMES:
        sizes = [it.size for it in seen.held_by(server).volumes if not it.deleting and volumes.whole_bytes(it.size)]
        if sizes:
            found[server] = min(sizes, key=volumes.whole_bytes)
    return types.VolumeSizes(**found)


def _published(seen: Seen) -> dict[str, Any]:
    """What is published, once it is as it should be; what was until then is the previous one."""
    it, before = seen.published, seen.status.published_version
    if it.led is None or it.led != it.wanted or it.led == before:
        return {}
    return {"publishedVersion": it.led, **({"previousVersion": before} if before else {})}
