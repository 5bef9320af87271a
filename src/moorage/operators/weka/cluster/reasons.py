"""The reasons of WekaClusters."""

from __future__ import annotations

from moorage.operators.weka import reasons
from moorage.runtime import decision
from moorage.runtime.decision import WARNS


class ClusterReason(decision.Reason):
    """Of a WekaCluster."""

    # --- its place, and what it may be ---
    NAMESPACE_NOT_ALLOWED = reasons.NAMESPACE_NOT_ALLOWED
    IMAGE_NOT_ALLOWED = reasons.IMAGE_NOT_ALLOWED
    NOT_SERVED = (
        "NotServed",
        "The spec asks for what is not looked after yet, and without which the cluster would be another one.",
        "take the field that the message names out",
        WARNS,
    )
    OVERRIDE_UNCONFIRMED = reasons.OVERRIDE_UNCONFIRMED
    TAKING_CARE = reasons.TAKING_CARE
    BINDING = "Binding", "The operator is given its rights in the cluster's namespace.", reasons.BINDS
    OBJECTS_UNKNOWN = "ObjectsUnknown", "The cluster's containers and Secrets are not looked at yet.", reasons.LOOKS
    MAKING_LOGIN = "MakingLogin", "The Secrets with the logins are made, once.", reasons.GOES_ON
    LOGIN_MISSING = (
        "LoginMissing",
        "The Secret with the operator's login is not there, while a cluster is formed with it or the spec names it.",
        "restore the Secret that the message names",
        WARNS,
    )
    CHOOSING_PORTS = "ChoosingPorts", "The cluster's range of ports is written down before it is used.", reasons.GOES_ON
    PORTS_LACKING = (
        "PortsLacking",
        "No range of ports is free for the cluster, or the one that it asks for is not.",
        "delete a cluster that is not needed, take another spec.ports.basePort, or make the ranges smaller: "
        "systems.weka.dialect.ports",
        WARNS,
    )

    # --- its containers ---
    MAKING_CONTAINERS = "MakingContainers", "Containers that the template asks for are made.", reasons.GOES_ON
    CHANGING_CONTAINERS = (
        "ChangingContainers",
        "Containers are made as the spec has them, without a restart.",
        reasons.GOES_ON,
    )
    CONTAINERS_NOT_READY = (
        "ContainersNotReady",
        "Too few containers run for a cluster to be formed.",
        "the containers are awaited; each says in its own status what it lacks",
    )
    FORMING = "Forming", "The containers are formed into a cluster, by an order to one of them.", reasons.LOOKS
    CLUSTER_UNKNOWN = (
        "ClusterUnknown",
        "The cluster was not asked yet, or none of its containers answers.",
        reasons.LOOKS,
    )
    SETTING = "Setting", "The cluster is told its stripe and its hot spare.", reasons.LOOKS
    CONTAINERS_JOIN = "ContainersJoin", "Containers are to join the cluster.", "the containers are awaited"
    WAITING_FOR_DRIVES = (
        "WaitingForDrives",
        "The cluster has fewer drives than are needed to begin.",
        "the drive containers are awaited, which add them",
    )
    STARTING_IO = "StartingIo", "The cluster is told to begin, and begins.", "the cluster is awaited"
    ADDING_USER = "AddingUser", "The people's login is made in the cluster.", reasons.LOOKS
    ADDING_FILESYSTEM = "AddingFilesystem", "The file systems that every cluster has are made.", reasons.LOOKS

    ORDER_REFUSED = reasons.ORDER_REFUSED

    # --- its upgrade, and its shrinking ---
    UPGRADE_PAUSED = (
        "UpgradePaused",
        "spec.overrides holds the upgrade where it is.",
        "take spec.overrides.upgradePaused or upgradePausePreCompute out",
    )
    UPGRADE_GATED = (
        "UpgradeGated",
        "No further container is replaced while the cluster is not well.",
        "the cluster is awaited: its rebuild, and that enough containers are up",
    )
    UPGRADING = (
        "Upgrading",
        "One container after another is replaced by one of the new image or size.",
        ("the container that the message names is awaited"),
    )
    UPGRADE_STUCK = (
        "UpgradeStuck",
        "A container that was replaced did not come back, so that no other is.",
        "look at that container; set spec.image back to status.lastAppliedImage to go back",
        WARNS,
    )
    SHRINKING = (
        "Shrinking",
        "A container leaves: the template no longer asks for it, or somebody has deleted it.",
        ("the container's own deletion is awaited, with its data"),
    )
    SHRINK_GATED = (
        "ShrinkGated",
        "A container is to leave, and may not while the cluster is not well.",
        "the cluster's own rebuild is awaited",
    )
    STRIPE_NEEDS_THEM = (
        "StripeNeedsThem",
        "The template asks for fewer drive containers than a stripe needs.",
        "raise spec.dynamicTemplate.driveContainers",
        WARNS,
    )
    REPLACING = (
        "Replacing",
        "A container stayed down for too long, and is deleted; another one takes its place before it goes.",
        "the container's own deletion is awaited, which goes on once the others have its data",
        WARNS,
    )
    REPLACE_GATED = (
        "ReplaceGated",
        "A container has stayed down for too long, and is not replaced by itself: too much else is down, or too many "
        "were replaced already.",
        "look at the containers that the message names; delete one yourself where you know better",
        WARNS,
    )
    NOT_ALL_UP = (
        "NotAllUp",
        "The cluster serves, and some of its containers or drives are not up.",
        "the containers that the message names are awaited; each says in its own status what it lacks",
        WARNS,
    )
    UNHEEDED = reasons.UNHEEDED
    HEEDED = reasons.HEEDED
    WELL = "Well", "It is as it should be.", "nothing"

    # --- its end ---
    GRACE_PERIOD = (
        "GracePeriod",
        "The cluster is deleted, and stands still with all its data until spec.gracefulDestroyDuration is over.",
        "to have it back, set spec.overrides.cancelDeletion; to be done with it, set gracefulDestroyDuration to 0",
        WARNS,
    )
    DELETION_CANCELLED = (
        "DeletionCancelled",
        "The cluster is deleted and spec.overrides.cancelDeletion is set: it is looked after as any other.",
        "take cancelDeletion out, and the deletion goes on",
        WARNS,
    )
    DESTROYING = "Destroying", "The containers go, with what they hold.", "the containers' ends are awaited"
    LEAVING = "Leaving", "Nothing keeps the cluster any more; the finalizer goes.", "the API server removes it"
