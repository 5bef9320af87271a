"""The reasons of installations of OpenCGA."""

from __future__ import annotations

from moorage.runtime import decision
from moorage.runtime.decision import WARNS

_GOES_ON = "moorage goes on with the next step at once"
_LOOKS = "moorage's own look is awaited, which takes seconds"
_AGENT = "the agent in that pod is awaited, whose step the message names; if it stays, read the log of its container"


class Reason(decision.Reason):
    """Each with what it means, and with what comes next."""

    # --- its place ---
    NAMESPACE_NOT_ALLOWED = (
        "NamespaceNotAllowed",
        "The namespace is Kubernetes' or moorage's own, or moorage's administrator does not list it for OpenCGA.",
        "make it in another namespace, or have the administrator add this one to systems.opencga.namespaces",
        WARNS,
    )
    TAKING_CARE = (
        "TakingCare",
        "The finalizer is set, so that nothing is left behind when the installation is deleted.",
        _GOES_ON,
    )
    BINDING = (
        "Binding",
        "The operator is given its rights in the namespace.",
        "the API server is awaited, which takes seconds to know the rights",
    )
    RETRYING = "Retrying", "A fresh try was asked for by moorage.dev/reconcile-at.", _GOES_ON
    CLUSTER_UNKNOWN = "ClusterUnknown", "The objects of the installation are not looked at yet.", _LOOKS

    # --- what the user gives ---
    SPEC_UNSOUND = (
        "SpecUnsound",
        "Something in the spec contradicts itself, or would put a password where many can read it.",
        "correct the field that the message names",
        WARNS,
    )
    CATALOG_TAKEN = (
        "CatalogTaken",
        "Another installation of the namespace, which was there before, has its catalog in the same databases.",
        "delete it and make it anew with another spec.database.prefix, which can't be changed, or delete the other one",
        WARNS,
    )
    DATABASE_MISSING = (
        "DatabaseMissing",
        "The spec names no database, and OpenCGA keeps its catalog in one.",
        "give the hosts of a MongoDB replica set in spec.database.hosts",
        WARNS,
    )
    DOWNGRADE = (
        "Downgrade",
        "The catalog was migrated to a later version than the spec names, and there is no way back from that.",
        "set spec.version to the catalog's version or a later one, or restore the database and make a new installation",
        WARNS,
    )
    SECRETS_UNKNOWN = "SecretsUnknown", "The Secrets that the spec names are not looked at yet.", _LOOKS
    SECRET_INVALID = (
        "SecretInvalid",
        "A Secret that the spec names is missing, lacks a key, or holds what the product does not take.",
        "make or correct the Secret, as the message says",
        WARNS,
    )

    UNKNOWN_KEYS = (
        "UnknownKeys",
        "The spec sets keys that the product's files of this version do not have, or that it takes and does not use.",
        "correct or remove the keys that the message names; servers do not start with one that configuration.yml lacks",
        WARNS,
    )
    UNHEEDED = (
        "Unheeded",
        "The spec sets fields from which nothing follows, as they are not used or by what else it says.",
        "nothing needs to be done; correct what was meant otherwise, as docs/opencga.md says of each field",
        WARNS,
    )
    HEEDED = "Heeded", "Something follows from all that the spec sets.", "nothing"

    # --- its objects ---
    APPLYING = "Applying", "Services and the disruption budget are written.", _GOES_ON
    PUBLISHING = (
        "Publishing",
        "The agents get a configuration with a new version.",
        "the kubelet brings it into the pods, which takes about a minute; then the agents apply it",
    )
    MAKING_TOKEN = (
        "MakingToken",
        "The token is made by which an agent knows who asks, and by which what it tells is believed.",
        "the API server is awaited, which takes seconds; the kubelet brings the token into pods within a minute",
    )
    CREATING = "Creating", "A StatefulSet is made or put right.", "its controller is awaited, which makes the pods"
    RESIZING = "Resizing", "One REST member more, or one less.", "the member is awaited; then the next one follows"
    REPLACING_WORKLOAD = (
        "ReplacingWorkload",
        "A StatefulSet is made anew around its pods, as a field of it can't be changed in place.",
        "it takes its pods in, which takes seconds",
    )
    CHILD_ENDING = (
        "ChildEnding",
        "Somebody deletes an object of the installation.",
        "its end is awaited; then it is made anew",
    )
    REPLACING_DEAD_POD = (
        "ReplacingDeadPod",
        "A pod that never came up is made anew, as its template has changed since.",
        "the new pod is awaited",
    )
    SURPLUS_OBJECT = "SurplusObject", "What the spec no longer asks for is removed.", _GOES_ON
    SURPLUS_STAYS = (
        "SurplusStays",
        "What should be gone is still there.",
        "its end is awaited; what holds one is told by kubectl describe",
    )
    GROWING_VOLUMES = "GrowingVolumes", "Volumes are asked to grow to the size in the spec.", _GOES_ON
    VOLUME_CANNOT_GROW = (
        "VolumeCannotGrow",
        "A volume can't grow, as its storage class does not let it.",
        "set allowVolumeExpansion on the class, or put the size back",
        WARNS,
    )
    CLEARING_VOLUME = (
        "ClearingVolume",
        "A volume that is nobody's any more is deleted, as spec.volumes.data says.",
        "the end of the volume is awaited; what holds it is told by kubectl describe pvc",
    )

    # --- the agents ---
    MEMBERS_UNKNOWN = (
        "MembersUnknown",
        "The agents were not asked yet, or what they said is older than moorage's last act.",
        _LOOKS,
    )
    MEMBER_SILENT = (
        "MemberSilent",
        "The agent of a member does not answer.",
        "the pod is awaited; the message says what is wrong with it",
    )
    MEMBER_FAILED = (
        "MemberFailed",
        "The agent of a member says that it can't go on; the message has its words.",
        "correct what the agent says; it tries again by itself with every new configuration",
        WARNS,
    )
    APPLYING_CONFIGURATION = (
        "ApplyingConfiguration",
        "Members have not applied the last configuration yet.",
        _AGENT,
    )

    # --- the catalog ---
    INSTALLING_CATALOG = (
        "InstallingCatalog",
        "The MASTER installs the catalog in the database, once.",
        _AGENT,
    )
    CATALOG_FAILED = (
        "CatalogFailed",
        "The catalog could not be installed; the message has the product's words.",
        "correct the database or the administrator's password, as the words say; nothing is dropped by moorage",
        WARNS,
    )
    MIGRATING = (
        "Migrating",
        "The MASTER runs the new version and migrates the catalog to it; REST members serve the old one meanwhile.",
        _AGENT,
    )
    MIGRATION_FAILED = (
        "MigrationFailed",
        "A migration failed, so that REST members stay on the old version; the message has the product's words.",
        "correct what the words say; while nothing was migrated spec.version may go back",
        WARNS,
    )
    BACKUP_FAILED = (
        "BackupFailed",
        "The command of spec.upgrade.backup failed, so that nothing is migrated; the message has its last words.",
        "correct what the words say, and change the spec, by which it is run again; or set spec.version back",
        WARNS,
    )
    MIGRATION_HELD = (
        "MigrationHeld",
        "A migration is not run as things are: it forbids the old version to work, or a person is to run it.",
        "do what the message says, or set spec.version back: nothing was migrated so far, and REST members serve on",
        WARNS,
    )
    STOPPING = (
        "Stopping",
        "REST servers are stopped, as a migration forbids the old version to touch the catalog meanwhile.",
        "the agents are awaited, which stop their servers; then the MASTER migrates, and members come back one by one",
    )
    MIGRATED = "Migrated", "The catalog is of the version that the spec names.", _GOES_ON
    INSTALLED = "Installed", "The catalog is in the database.", "nothing"

    # --- pods are replaced ---
    REPLACING_MASTER = (
        "ReplacingMaster",
        "The MASTER's pod is replaced by one of the current template, before REST members are.",
        "the new pod is awaited",
    )
    UPDATING = (
        "Updating",
        "REST members are replaced by those of the current template, one after another.",
        "the new member is awaited; then the next one follows",
    )
    UPDATE_WAITS = (
        "UpdateWaits",
        "A member is to be replaced once all others are ready.",
        "the members that the message names are awaited",
    )
    UPDATE_STALLED = (
        "UpdateStalled",
        "A member that was replaced is not back in time, so that no other is replaced.",
        "correct spec.version or the pods' settings; what never came up is replaced at once then",
        WARNS,
    )
    VERSION_DIFFERS = (
        "VersionDiffers",
        "A REST server tells another version than its image should have.",
        "see which version the image really has; moorage asks again by itself",
        WARNS,
    )
    VERSION_REACHED = "VersionReached", "All members are of the version that the spec names.", "nothing"

    # --- all of it is stopped ---
    HIBERNATING = (
        "Hibernating",
        "spec.hibernate is true: REST servers end, and then the MASTER; all data is kept.",
        "the end of the pods is awaited, in which servers stop in order",
    )
    HIBERNATED = (
        "Hibernated",
        "It has no pod, as spec.hibernate is true; volumes, catalog and configuration are as they were.",
        "set spec.hibernate to false to have it back",
    )
    HIBERNATION_WAITS = (
        "HibernationWaits",
        "spec.hibernate is true, and the MASTER works at the catalog, which is not broken off.",
        "the agent of the MASTER is awaited, whose step the message names; then servers are stopped",
    )

    # --- how it stands ---
    DEPENDENCY_DOWN = (
        "DependencyDown",
        "REST servers say that what they need is out of order, such as the database; none is restarted for that.",
        "what the message names is awaited: database, Solr or variant store; whoever runs it must look",
        WARNS,
    )
    MEMBERS_NOT_READY = (
        "MembersNotReady",
        "Not all REST members are ready.",
        "the members that the message names are awaited; it says what is wrong with each",
    )
    MASTER_NOT_READY = "MasterNotReady", "The MASTER is not ready.", "its pod is awaited; the message has its trouble"
    SERVING = "Serving", "It works.", "nothing"
    NOBODY_WANTED = "NobodyWanted", "spec.members is 0: nobody serves, and nobody should.", "raise spec.members"
    CURRENT = "Current", "It is as the spec has it.", "nothing"

    # --- the way out ---
    REMOVING = "Removing", "The installation is deleted, and its pods end.", "the end of the pods is awaited"
    LEAVING = "Leaving", "Nothing is left to remove.", "the installation goes at once"
