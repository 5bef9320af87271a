"""The reasons of runtimes."""

from __future__ import annotations

from moorage.runtime import decision
from moorage.runtime.decision import WARNS

_GOES_ON = "moorage goes on with the next step at once"
_LOOKS = "moorage's own look is awaited, which takes seconds"


class RuntimeReason(decision.Reason):
    """Of a Runtime itself; those about its release are in `moorage.helm.reasons`."""

    # --- its place ---
    SECOND_RUNTIME = (
        "SecondRuntime",
        "An older Runtime is in this namespace, and a namespace has one: its servers have fixed names.",
        "make this Runtime in a namespace of its own, and delete it here",
        WARNS,
    )
    NAMESPACE_NOT_ALLOWED = (
        "NamespaceNotAllowed",
        "The namespace is Kubernetes' or moorage's own, or moorage's administrator does not list it for Runtimes.",
        "make the Runtime in another namespace, or have the administrator add this one to systems.kre.namespaces",
        WARNS,
    )
    TOO_MANY_VALUES = (
        "TooManyValues",
        "spec.values is larger than what is read of it.",
        "take out of spec.values what the chart does not need",
        WARNS,
    )
    TAKING_CARE = (
        "TakingCare",
        "The finalizer is set, so that nothing is left behind when the Runtime is deleted.",
        _GOES_ON,
    )
    BINDING = (
        "Binding",
        "The operator is given its rights in the Runtime's namespace.",
        "the API server is awaited, which takes seconds to know the rights",
    )
    CLUSTER_UNKNOWN = "ClusterUnknown", "The volumes of the Runtime are not looked at yet.", _LOOKS

    # --- credentials ---
    CREDENTIALS_UNKNOWN = "CredentialsUnknown", "The Secret with the credentials is not looked at yet.", _LOOKS
    MAKING_CREDENTIALS = "MakingCredentials", "No Secret is named, so one is made, once.", _GOES_ON
    CREDENTIALS_INVALID = (
        "CredentialsInvalid",
        "The Secret with the credentials is missing, lacks a key, or holds what a server does not take.",
        "correct the Secret, or spec.credentialsSecretRef, as the message says",
        WARNS,
    )
    CREDENTIALS_LOST = (
        "CredentialsLost",
        "The Secret that was made is gone, while a volume is there that was made with it: new ones would not fit.",
        "restore the Secret, or name one with the same credentials in spec.credentialsSecretRef; or delete the volume, "
        "where nothing of it is needed",
        WARNS,
    )
    CREDENTIALS_DIFFER = (
        "CredentialsDiffer",
        "Passwords in the spec are not those in the Secret, with which the servers were made and their volumes kept.",
        "take the passwords out of the spec, or put back those of the Secret",
        WARNS,
    )
    PLAIN_PASSWORD = (
        "PlainPassword",
        "Passwords stand in clear in the spec, where all who may read the Runtime read them.",
        "put them into a Secret, name it in spec.credentialsSecretRef, and take them out of the spec",
        WARNS,
    )
    SECRETLY = "Secretly", "No password stands in the spec.", "nothing"

    # --- volumes ---
    GROWING_VOLUME = "GrowingVolume", "A volume is asked to grow to the size in the spec.", _GOES_ON
    VOLUME_STUCK = (
        "VolumeStuck",
        "A volume can't grow, as its storage class does not let it.",
        "set allowVolumeExpansion on the class, or put the size back",
        WARNS,
    )
    CLEARING_VOLUME = (
        "ClearingVolume",
        "The Runtime is deleted, and its volumes go with it, as spec.reclaim says.",
        "the end of the volumes is awaited; what holds one is told by kubectl describe pvc",
    )
    REMOVING_CREDENTIALS = (
        "RemovingCredentials",
        "The Secret that was made for the Runtime goes with the volumes that need it.",
        _GOES_ON,
    )
    LEAVING = "Leaving", "Nothing is left to remove.", "the Runtime goes at once"

    # --- the servers, by their own word ---
    MAKING_NATS = (
        "MakingNats",
        "How many servers NATS is to have is written down, before the first of them is made.",
        _GOES_ON,
    )
    NATS_CONVERTS = (
        "NatsConverts",
        "One NATS server and a cluster of them don't become each other in place: streams of the one are nobody's in "
        "the other.",
        "put spec.nats_streaming.replicas back, or make a new Runtime of that size",
        WARNS,
    )
    NATS_SHRINKS = (
        "NatsShrinks",
        "A NATS server is to leave its cluster, and streams may be on it alone.",
        "put spec.nats_streaming.replicas back; or, where nothing of the leaving server is needed, delete its volume",
        WARNS,
    )
    NATS_UNKNOWN = (
        "NatsUnknown",
        "NATS does not tell how it stands.",
        "NATS is awaited; its pods' own words are in the message of Ready",
    )
    NATS_NOT_WHOLE = (
        "NatsNotWhole",
        "NATS has no leader, or not all of its servers.",
        "NATS is awaited; if it stays, look at the pods that the message names",
    )
    MONGO_UNKNOWN = (
        "MongoUnknown",
        "Mongo does not tell how it stands.",
        "mongo is awaited; its pod's own words are in the message of Ready",
    )
    INITIATING_MONGO = (
        "InitiatingMongo",
        "Mongo runs and is no replica set yet, which it is made.",
        "mongo is awaited, which elects its primary in seconds",
    )
    MONGO_NOT_PRIMARY = (
        "MongoNotPrimary",
        "Mongo is a replica set without a primary.",
        "mongo is awaited, which elects its primary; if it stays, look at its log",
    )
    MAKING_READER = (
        "MakingReader",
        "The user is made in mongo by which its data can be read and not changed.",
        _GOES_ON,
    )
    MONGO_REFUSES = (
        "MongoRefuses",
        "Mongo does not take the credentials of the Secret, as its volume was made with others.",
        "put the credentials back into the Secret with which the volume was made",
        WARNS,
    )
    STORE_UNKNOWN = (
        "StoreUnknown",
        "MinIO does not answer, or is not ready.",
        "MinIO is awaited; its pod's own words are in the message of Ready",
    )
    METRICS_UNKNOWN = (
        "MetricsUnknown",
        "InfluxDB does not answer, or is not ready.",
        "InfluxDB is awaited; its pod's own words are in the message of Ready",
    )
    METRICS_OFF = "MetricsOff", "InfluxDB is switched off, by the spec or by the chart's values.", "nothing"
    WHOLE = "Whole", "It was asked, and is as it should be.", "nothing"
