"""The reasons of runtimes, and of their versions."""

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
    TAKING_CREDENTIALS = "TakingCredentials", "Servers are given the credentials that are wanted.", _GOES_ON
    CHANGING_PASSWORDS = (
        "ChangingPasswords",
        "The Secret has another password than mongo, which is told of it before anybody is given it.",
        _GOES_ON,
    )
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
        "take the passwords out of the spec, or put back those of the Secret; others are written into the Secret",
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
        "A volume goes: the Runtime is deleted, as spec.reclaim says, or its NATS server has left, with nothing on it.",
        "the end of the volumes is awaited; what holds one is told by kubectl describe pvc",
    )
    REMOVING_CREDENTIALS = (
        "RemovingCredentials",
        "The Secret that was made for the Runtime goes with the volumes that need it.",
        _GOES_ON,
    )
    VERSIONS_STAY = (
        "VersionsStay",
        "The Runtime is deleted, and versions are in it, which would be lost with their messages.",
        "delete the RuntimeVersions that the message names; with moorage.dev/on-delete=Orphan all stays where it is",
        WARNS,
    )
    VERSIONS_LEAVE = (
        "VersionsLeave",
        "The Runtime is deleted, and so are its versions, which go first.",
        "their end is awaited; what keeps one is told by the RuntimeVersion itself",
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
    NATS_TOO_FEW = (
        "NatsTooFew",
        "A cluster of NATS is to have fewer than three servers, and two stand still while one of them is away.",
        "set spec.nats_streaming.replicas to 3 at least, or make a new Runtime of that size",
        WARNS,
    )
    NATS_STREAMS_UNKNOWN = (
        "NatsStreamsUnknown",
        "A NATS server is to leave, and NATS does not tell where all of its streams are.",
        "NATS is awaited; a stream of which nobody tells has lost its servers, or elects who leads it",
    )
    NATS_LOGIN = (
        "NatsLogin",
        "NATS does not take the login of its own account, without which no server is removed from its cluster.",
        "restart its servers, which then read the Secret kre-nats-login: kubectl rollout restart statefulset/kre-nats",
        WARNS,
    )
    NATS_STREAMS_STAY = (
        "NatsStreamsStay",
        "A NATS server is to leave, and a stream that is not moorage's has more copies than there would be servers.",
        "lower the copies of the streams that the message names, or put spec.nats_streaming.replicas back",
        WARNS,
    )
    NATS_EMPTIES = (
        "NatsEmpties",
        "What is on the NATS server that is to leave goes to those that stay.",
        "the copies are awaited; the server keeps its own until another one has all",
    )
    NATS_SHRINKS = (
        "NatsShrinks",
        "The last NATS server has nothing any more, and leaves its cluster.",
        "its end is awaited, which takes seconds",
    )
    NATS_RETURNS = (
        "NatsReturns",
        "A NATS server that was about to leave comes back: it is needed still, or again.",
        "the server is awaited; where it is still to leave, it is emptied anew",
    )
    NATS_REFUSES = (
        "NatsRefuses",
        "NATS does not do what it was asked, by its own words.",
        "correct what the message says; NATS is asked again after a while",
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
        "Mongo takes neither the credentials of the Secret nor those that it was given before.",
        "put those into the Secret that mongo has; from there on they can be changed",
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
    # --- what is published ---
    VERSION_PUBLISHED = "VersionPublished", "Calls are led to the version that spec.publishedVersion names.", "nothing"
    NOTHING_PUBLISHED = (
        "NothingPublished",
        "spec.publishedVersion names no version, so the default page answers.",
        "set spec.publishedVersion to a version, where one is to answer",
    )
    PUBLISHED_LATER = (
        "PublishedLater",
        "The version that spec.publishedVersion names is not ready, or there is none of that name.",
        "the version is awaited; what keeps it is in the message",
        WARNS,
    )
    PUBLISHED_FAILS = (
        "PublishedFails",
        "Calls are led to the version that spec.publishedVersion names, and not all of it is ready.",
        "look at what the message names, or set spec.publishedVersion to another version",
        WARNS,
    )
    METRICS_OFF = "MetricsOff", "InfluxDB is switched off, by the spec or by the chart's values.", "nothing"
    WHOLE = "Whole", "It was asked, and is as it should be.", "nothing"


class VersionReason(decision.Reason):
    """Of a RuntimeVersion; those about its pods are in `moorage.children.reasons`."""

    TAKING_CARE = (
        "TakingCare",
        "The finalizer is set, so that nothing is left behind when the resource is deleted.",
        _GOES_ON,
    )
    RETRYING = (
        "Retrying",
        "A fresh try was asked for by moorage.dev/reconcile-at.",
        _GOES_ON,
    )
    LEAVING = "Leaving", "Nothing is left to remove.", "the resource goes at once"

    NAMESPACE_NOT_ALLOWED = (
        "NamespaceNotAllowed",
        "The namespace is Kubernetes' or moorage's own, or moorage's administrator does not list it for Runtimes.",
        "make Runtime and version in another namespace, or have the administrator add this one to "
        "systems.kre.namespaces",
        WARNS,
    )
    BINDING = (
        "Binding",
        "The operator is given its rights in the version's namespace.",
        "the API server is awaited, which takes seconds to know the rights",
    )

    # --- the runtime of a version ---
    RUNTIME_NOT_FOUND = (
        "RuntimeNotFound",
        "There is no Runtime for this version in its namespace.",
        "a Runtime is awaited, of whoever makes it",
    )
    AMBIGUOUS_RUNTIME = (
        "AmbiguousRuntime",
        "There are several Runtimes in the namespace, and the version names none.",
        "set spec.runtimeRef.name",
    )
    MADE_ELSEWHERE = (
        "MadeElsewhere",
        "The version was made in another Runtime than the one that it names now.",
        "make a new RuntimeVersion for the other Runtime, and delete this one",
        WARNS,
    )
    RUNTIME_NOT_READY = (
        "RuntimeNotReady",
        "The Runtime is not Ready.",
        "the Runtime is awaited; moorage explain runtime/NAME says on what it waits",
    )
    VERSION_TAKEN = (
        "VersionTaken",
        "An older RuntimeVersion of the same Runtime has this version's name.",
        "delete one of the two, or make this one anew with another spec.version",
        WARNS,
    )

    # --- what the user gives ---
    GRAPH_BROKEN = (
        "GraphBroken",
        "Messages can't go through a workflow as it is written. Nothing is made of it.",
        "correct spec.workflows as the message says; moorage krt check says the same of a .krt file",
        WARNS,
    )
    CONFIG_UNKNOWN = (
        "ConfigUnknown",
        "The values of the config keys are not looked at yet.",
        _LOOKS,
    )
    CONFIG_MISSING = (
        "ConfigMissing",
        "Config keys have no value, so the version can't start.",
        "give each key that the message names a value in spec.config, or make what its valueFrom names",
    )
    FILES_WRONG = (
        "FilesWrong",
        "The files of the version, or the description of its service, are missing, or nobody can bring them.",
        "make the ConfigMap that the message names, or correct spec.files or spec.entrypoint.proto",
        WARNS,
    )
    CREDENTIALS_WRONG = (
        "CredentialsWrong",
        "The Secret with the Runtime's credentials is missing, or lacks what the version's containers need of it.",
        "the Secret is awaited, of the Runtime or of whoever made it; moorage explain runtime/NAME says which it is",
    )

    # --- NATS ---
    NATS_UNREACHABLE = (
        "NatsUnreachable",
        "The runtime's NATS does not answer, or has no leader.",
        "NATS is awaited; moorage explain runtime/NAME says what is wrong with it",
    )
    FOREIGN_STREAM = (
        "ForeignStream",
        "NATS has a stream or bucket of a name that the version needs, and moorage did not make it.",
        "remove it in NATS if nobody needs it, or make this version anew under another name",
        WARNS,
    )
    NOTING = (
        "Noting",
        "Something of the version is there that its status does not tell, as after a restore from a backup.",
        _GOES_ON,
    )
    MAKING_STREAMS = (
        "MakingStreams",
        "Streams, consumers and stores of the version are made in NATS, or put right.",
        _GOES_ON,
    )

    # --- objects ---
    OBJECTS_UNKNOWN = (
        "ObjectsUnknown",
        "The objects of the version are not looked at yet.",
        _LOOKS,
    )
    APPLYING = (
        "Applying",
        "ConfigMaps, Deployments and the Service of the version are made, or put right.",
        "the pods are awaited",
    )
    STARTING = (
        "Starting",
        "Nodes of the version are not ready yet; the message has the first one's own words.",
        "the pods are awaited",
    )
    NATS_REFUSES = (
        "NatsRefuses",
        "NATS does not do what it was asked, by its own words.",
        "correct what the message says; NATS is asked again after a while",
        WARNS,
    )
    NODE_LEAVING = (
        "NodeLeaving",
        "A node that is no longer in the version is removed, with its consumers.",
        _GOES_ON,
    )
    STARTED = "Started", "All nodes and the entrypoint are ready.", "nothing"

    COMPLETE = "Complete", "Each config key has a value.", "nothing"

    # --- publishing ---
    PUBLISHING = (
        "Publishing",
        "The Service of what is published is led to this version, by one write.",
        "new calls reach this version within seconds",
    )
    UNPUBLISHING = (
        "Unpublishing",
        "The Runtime publishes nothing any more, so the Service that led here goes.",
        "new calls are answered by the default backend",
    )
    SERVICE_ENDING = (
        "ServiceEnding",
        "The Service of what is published is being deleted.",
        "its end is awaited; then it is made anew",
    )
    PUBLISHED = (
        "Published",
        "The version is published, so it can be neither stopped nor deleted.",
        "publish another version, or none: spec.publishedVersion of the Runtime that the message names",
        WARNS,
    )
    STILL_SERVING = (
        "StillServing",
        "Calls are led to this version still, as the one that is to be published next has not started.",
        "the next version is awaited; or set spec.publishedVersion of the Runtime to this one again, or take it out",
    )
    STANDS_IN = (
        "StandsIn",
        "Calls are led to this version, as the one that is published is broken, and publishOnFailure is Previous.",
        "the published version is awaited, which is led to again as soon as it is ready",
        WARNS,
    )
    NOT_PUBLISHED = "NotPublished", "The version is not what its Runtime publishes.", "nothing"

    # --- stopping ---
    CLOSING = (
        "Closing",
        "The entrypoint is removed, so that nothing more comes in.",
        "the nodes are awaited, until they have taken all messages that are there",
    )
    DRAINING = (
        "Draining",
        "The version stops, and nodes have not taken all messages yet.",
        "the nodes are awaited, until they have taken all messages",
    )
    STOPPING = (
        "Stopping",
        "Objects, streams and object stores of the version are removed.",
        _GOES_ON,
    )
    STOPPED = "Stopped", "Nothing of the version runs, as spec.running says.", "nothing"
