"""The reasons of WekaContainers and WekaClusters."""

from __future__ import annotations

from moorage.runtime import decision
from moorage.runtime.decision import WARNS

_GOES_ON = "moorage goes on with the next step at once"
_LOOKS = "moorage's own look is awaited, which takes seconds"
_ADMIN = "have moorage's administrator"
_BINDS = "the API server is awaited, which takes seconds to know the rights"
_TAKES_CARE = "The finalizer is set, so that nothing is left behind when it is deleted."
_NOT_ALLOWED = (
    "The namespace is Kubernetes' or moorage's own, or it is not opened for pods that are root on their nodes: by the "
    "label moorage.dev/weka=privileged, and in systems.weka.namespaces where that is listed."
)
_OPEN = f"{_ADMIN} label the namespace moorage.dev/weka=privileged, and list it where namespaces are listed"


class ContainerReason(decision.Reason):
    """Of a WekaContainer."""

    # --- its place, and what it may be ---
    NAMESPACE_NOT_ALLOWED = "NamespaceNotAllowed", _NOT_ALLOWED, _OPEN, WARNS
    MODE_NOT_SERVED = (
        "ModeNotServed",
        "Containers of this mode are not looked after yet: drive and compute are.",
        "take the container out of what is applied, or have another operator look after it",
        WARNS,
    )
    IMAGE_NOT_ALLOWED = (
        "ImageNotAllowed",
        "Pods of this kind are root on their nodes, so moorage's administrator lists which images are run.",
        f"take an image that is listed, or {_ADMIN} add this one to systems.weka.images",
        WARNS,
    )
    SCRIPTS_NOT_ALLOWED = (
        "ScriptsNotAllowed",
        "The spec brings a script of its own, which would be run as root on a node.",
        f"take spec.overrides.preRunScript out, or {_ADMIN} set systems.weka.scripts",
        WARNS,
    )
    TAKING_CARE = "TakingCare", _TAKES_CARE, _GOES_ON
    BINDING = "Binding", "The operator is given its rights in the container's namespace.", _BINDS
    OBJECTS_UNKNOWN = "ObjectsUnknown", "The container's pod, node and neighbours are not looked at yet.", _LOOKS
    FOLLOWING_STATE = (
        "FollowingState",
        "spec.state says that the container is to go, so it is deleted.",
        "its deletion is awaited, step by step",
    )
    PAUSING = "Pausing", "spec.state is paused: the pod is ended, and all data is kept.", "the pod's end is awaited"
    PAUSED = "Paused", "spec.state is paused: there is no pod, and all data is kept.", "set spec.state to active"

    # --- its node and its pod ---
    WRITING_SCRIPTS = "WritingScripts", "What runs in the pods is written into the namespace's ConfigMap.", _GOES_ON
    NODE_GONE = (
        "NodeGone",
        "The node that holds what the container has is no longer part of the Kubernetes cluster.",
        "bring the node back under its name; or delete the WekaContainer: it goes once others made up for its data",
        WARNS,
    )
    NODE_NOT_READY = (
        "NodeNotReady",
        "The kubelet of the container's node does not report, so nobody knows whether the pod runs there.",
        "the node is awaited; a person may have to mend it",
        WARNS,
    )
    NODE_CORDONED = (
        "NodeCordoned",
        "The container's node takes no new pods, and no other node has what the container holds.",
        "somebody cordoned the node; kubectl uncordon it when its work is done",
        WARNS,
    )
    MAKING_POD = "MakingPod", "The pod is made, under the container's own name.", _GOES_ON
    POD_NOT_RUNNING = "PodNotRunning", "The pod is there and does not run yet.", "the kubelet is awaited"
    REPLACING_POD = (
        "ReplacingPod",
        "The pod was made for another image or size than the spec has; it is ended and made anew.",
        "the graceful stop of the container is awaited",
    )
    ENDING_POD = (
        "EndingPod",
        "The pod is being deleted. It is told that it may stop, and stops in its own time; it is never forced.",
        "the graceful stop of the container is awaited, however long it takes",
    )
    PINNING = "Pinning", "The node is written down: what the container holds is there from now on.", _GOES_ON

    # --- what it gets ---
    AGENT_UNKNOWN = "AgentUnknown", "The container was not asked yet, or does not answer.", _LOOKS
    ALLOCATING = "Allocating", "Ports and drives are written down before they are used.", _GOES_ON
    DRIVES_LACKING = (
        "DrivesLacking",
        "The node has fewer signed drives that are free than the container is to have.",
        "sign drives of the node (annotation weka.io/weka-drives), unblock some, or lower spec.numDrives",
        WARNS,
    )
    PORTS_LACKING = (
        "PortsLacking",
        "The cluster's range of ports has no room on this node.",
        "take containers off the node, or make the ranges larger: systems.weka.dialect.ports",
        WARNS,
    )
    CLUSTER_HAS_NO_PORTS = (
        "ClusterHasNoPorts",
        "The WekaCluster of the container has no range of ports yet.",
        "the cluster's own steps are awaited",
    )
    WRITING_RESOURCES = "WritingResources", "The container is told its ports, drives and failure domain.", _GOES_ON
    STARTING = "Starting", "The container starts: its agent has not reported it as ready.", "the container is awaited"

    # --- within its cluster ---
    JOINING = "Joining", "The container belongs to no cluster, and is told where its cluster is.", _LOOKS
    NOT_FORMED = (
        "NotFormed",
        "The container is ready to be part of a cluster that is not formed yet.",
        ("the other containers are awaited, and then the WekaCluster forms the cluster"),
    )
    CLUSTER_UNKNOWN = "ClusterUnknown", "The cluster was not asked yet, or does not answer.", _LOOKS
    FOREIGN_CLUSTER = (
        "ForeignCluster",
        "The container says that it belongs to another cluster than its WekaCluster.",
        "look whose node this was; nothing is done to it. To let go of it, set spec.state to destroying",
        WARNS,
    )
    ADDING_DRIVE = "AddingDrive", "A drive that is the container's is added to the cluster.", _GOES_ON
    DRIVE_MISSING = (
        "DriveMissing",
        "The node does not show a drive that is the container's.",
        "the kernel is awaited, which may take a minute after a start; then somebody must look at the drive",
        WARNS,
    )
    DRIVE_NOT_FREE = (
        "DriveNotFree",
        "A drive that is the container's is mounted, or was signed for another cluster: it may hold somebody's data.",
        "look at the drive; sign it anew if nothing on it is needed, or block it (annotation weka.io/blocked-drives)",
        WARNS,
    )
    NOT_UP = (
        "NotUp",
        "The cluster does not list the container as up.",
        "the container is awaited; look at its log if that takes long",
        WARNS,
    )
    RUNNING = "Running", "The container is up, by its cluster's word."

    # --- its end ---
    OVERRIDE_UNCONFIRMED = (
        "OverrideUnconfirmed",
        "An override that may harm data is set, and the annotation weka.io/confirm does not name it.",
        "annotate the object weka.io/confirm=OVERRIDE, or take the override out",
        WARNS,
    )
    NOT_PROTECTED = (
        "NotProtected",
        "The cluster is moving or mending data, so that no other container may leave it.",
        "the cluster's own rebuild is awaited",
    )
    STRIPE_NEEDS_IT = (
        "StripeNeedsIt",
        "Without this container there would be fewer than a stripe needs.",
        "add a drive container first; or delete the whole WekaCluster; or set spec.overrides.skipDeactivate and "
        "confirm it, which loses data",
        WARNS,
    )
    DEACTIVATING = (
        "Deactivating",
        "The container leaves its cluster, which moves its data.",
        ("the cluster is awaited, which takes as long as the data is large"),
    )
    REMOVING_DRIVES = "RemovingDrives", "The drives of the container leave the cluster, one after another.", _LOOKS
    REMOVING_MEMBER = "RemovingMember", "The cluster forgets the container.", _LOOKS
    LEAVING = "Leaving", "Nothing keeps the container any more; the finalizer goes.", "the API server removes it"


class ClusterReason(decision.Reason):
    """Of a WekaCluster."""

    # --- its place, and what it may be ---
    NAMESPACE_NOT_ALLOWED = "NamespaceNotAllowed", _NOT_ALLOWED, _OPEN, WARNS
    IMAGE_NOT_ALLOWED = (
        "ImageNotAllowed",
        "Pods of this kind are root on their nodes, so moorage's administrator lists which images are run.",
        f"take an image that is listed, or {_ADMIN} add this one to systems.weka.images",
        WARNS,
    )
    SCRIPTS_NOT_ALLOWED = (
        "ScriptsNotAllowed",
        "The spec brings a script of its own, which would be run as root on a node.",
        f"take spec.overrides.postFormClusterScript out, or {_ADMIN} set systems.weka.scripts",
        WARNS,
    )
    NOT_SERVED = (
        "NotServed",
        "The spec asks for the expansion of a cluster that is formed elsewhere, which is not looked after yet.",
        "take spec.expandEndpoints out",
        WARNS,
    )
    OVERRIDE_UNCONFIRMED = (
        "OverrideUnconfirmed",
        "An override that may harm data is set, and the annotation weka.io/confirm does not name it.",
        "annotate the object weka.io/confirm=OVERRIDE, or take the override out",
        WARNS,
    )
    TAKING_CARE = "TakingCare", _TAKES_CARE, _GOES_ON
    BINDING = "Binding", "The operator is given its rights in the cluster's namespace.", _BINDS
    OBJECTS_UNKNOWN = "ObjectsUnknown", "The cluster's containers and Secrets are not looked at yet.", _LOOKS
    MAKING_LOGIN = "MakingLogin", "The Secrets with the logins are made, once.", _GOES_ON
    LOGIN_MISSING = (
        "LoginMissing",
        "The Secret with the operator's login is not there, while a cluster is formed with it or the spec names it.",
        "restore the Secret that the message names",
        WARNS,
    )
    CHOOSING_PORTS = "ChoosingPorts", "The cluster's range of ports is written down before it is used.", _GOES_ON
    PORTS_LACKING = (
        "PortsLacking",
        "No range of ports is free for the cluster, or the one that it asks for is not.",
        "delete a cluster that is not needed, take another spec.ports.basePort, or make the ranges smaller: "
        "systems.weka.dialect.ports",
        WARNS,
    )

    # --- its containers ---
    MAKING_CONTAINERS = "MakingContainers", "Containers that the template asks for are made.", _GOES_ON
    CHANGING_CONTAINERS = "ChangingContainers", "Containers are made as the spec has them, without a restart.", _GOES_ON
    CONTAINERS_NOT_READY = (
        "ContainersNotReady",
        "Too few containers run for a cluster to be formed.",
        "the containers are awaited; each says in its own status what it lacks",
    )
    FORMING = "Forming", "The containers are formed into a cluster, by an order to one of them.", _LOOKS
    CLUSTER_UNKNOWN = "ClusterUnknown", "The cluster was not asked yet, or none of its containers answers.", _LOOKS
    SETTING = "Setting", "The cluster is told its stripe and its hot spare.", _LOOKS
    CONTAINERS_JOIN = "ContainersJoin", "Containers are to join the cluster.", "the containers are awaited"
    WAITING_FOR_DRIVES = (
        "WaitingForDrives",
        "The cluster has fewer drives than are needed to begin.",
        "the drive containers are awaited, which add them",
    )
    STARTING_IO = "StartingIo", "The cluster is told to begin, and begins.", "the cluster is awaited"
    ADDING_USER = "AddingUser", "The people's login is made in the cluster.", _LOOKS
    ADDING_FILESYSTEM = "AddingFilesystem", "The file systems that every cluster has are made.", _LOOKS

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
        "A container that the template no longer asks for leaves.",
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
    NOT_ALL_UP = (
        "NotAllUp",
        "The cluster serves, and some of its containers or drives are not up.",
        "the containers that the message names are awaited; each says in its own status what it lacks",
        WARNS,
    )
    UNHEEDED = (
        "Unheeded",
        "The spec sets fields from which nothing follows yet.",
        "nothing needs to be done; what they ask for is not there",
        WARNS,
    )
    HEEDED = "Heeded", "All that the spec sets is heeded."
    WELL = "Well", "It is as it should be."

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
