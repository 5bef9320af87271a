"""The reasons of WekaContainers."""

from __future__ import annotations

from moorage.operators.weka import reasons
from moorage.runtime import decision
from moorage.runtime.decision import WARNS


class ContainerReason(decision.Reason):
    """Of a WekaContainer."""

    # --- its place, and what it may be ---
    NAMESPACE_NOT_ALLOWED = reasons.NAMESPACE_NOT_ALLOWED
    MODE_NOT_SERVED = (
        "ModeNotServed",
        "Containers of this mode are not looked after yet: drive and compute are.",
        "take the container out of what is applied, or have another operator look after it",
        WARNS,
    )
    IMAGE_NOT_ALLOWED = reasons.IMAGE_NOT_ALLOWED
    SCRIPTS_NOT_ALLOWED = (
        "ScriptsNotAllowed",
        "The spec brings a script of its own, which would be run as root on a node.",
        f"take spec.overrides.preRunScript out, or {reasons.ADMIN} set systems.weka.scripts",
        WARNS,
    )
    TAKING_CARE = reasons.TAKING_CARE
    BINDING = "Binding", "The operator is given its rights in the container's namespace.", reasons.BINDS
    OBJECTS_UNKNOWN = "ObjectsUnknown", "The container's pod, node and neighbours are not looked at yet.", reasons.LOOKS
    FOLLOWING_STATE = (
        "FollowingState",
        "spec.state says that the container is to go, so it is deleted.",
        "its deletion is awaited, step by step",
    )
    PAUSING = "Pausing", "spec.state is paused: the pod is ended, and all data is kept.", "the pod's end is awaited"
    PAUSED = "Paused", "spec.state is paused: there is no pod, and all data is kept.", "set spec.state to active"

    # --- its node and its pod ---
    WRITING_SCRIPTS = (
        "WritingScripts",
        "What runs in the pods is written into the namespace's ConfigMap.",
        reasons.GOES_ON,
    )
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
    MAKING_POD = "MakingPod", "The pod is made, under the container's own name.", reasons.GOES_ON
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
    STOP_GATED = (
        "StopGated",
        "The pod is being deleted, and its stop would take away more than the cluster's redundancy covers.",
        "bring the others back, as by kubectl uncordon: it stops then; or set spec.overrides.podDeleteForceReplace",
        WARNS,
    )
    PINNING = "Pinning", "The node is written down: what the container holds is there from now on.", reasons.GOES_ON

    # --- what it gets ---
    AGENT_UNKNOWN = "AgentUnknown", "The container was not asked yet, or does not answer.", reasons.LOOKS
    ALLOCATING = "Allocating", "Ports and drives are written down before they are used.", reasons.GOES_ON
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
    WRITING_RESOURCES = (
        "WritingResources",
        "The container is told its ports, drives and failure domain.",
        reasons.GOES_ON,
    )
    STARTING = "Starting", "The container starts: its agent has not reported it as ready.", "the container is awaited"

    # --- within its cluster ---
    JOINING = "Joining", "The container belongs to no cluster, and is told where its cluster is.", reasons.LOOKS
    NOT_FORMED = (
        "NotFormed",
        "The container is ready to be part of a cluster that is not formed yet.",
        ("the other containers are awaited, and then the WekaCluster forms the cluster"),
    )
    CLUSTER_FORGOTTEN = (
        "ClusterForgotten",
        "The container was part of its cluster and knows nothing of it any more: what it kept on its node is gone.",
        "bring back what it kept (dialect files.persistence), or delete the WekaContainer: the others make up for it",
        WARNS,
    )
    CLUSTER_UNKNOWN = "ClusterUnknown", "The cluster was not asked yet, or does not answer.", reasons.LOOKS
    FOREIGN_CLUSTER = (
        "ForeignCluster",
        "The container says that it belongs to another cluster than its WekaCluster.",
        "look whose node this was; nothing is done to it. To let go of it, set spec.state to destroying",
        WARNS,
    )
    ADDING_DRIVE = "AddingDrive", "A drive that is the container's is added to the cluster.", reasons.GOES_ON
    DRIVE_MISSING = (
        "DriveMissing",
        "The node does not show a drive that is the container's.",
        "the kernel is awaited, which may take a minute after a start; then somebody must look at the drive",
        WARNS,
    )
    DRIVE_NOT_FREE = (
        "DriveNotFree",
        "A drive that is the container's is mounted, signed for another cluster, or listed as another container's.",
        "look at the drive; sign it anew if nothing on it is needed, or block it (annotation weka.io/blocked-drives)",
        WARNS,
    )
    NOT_UP = (
        "NotUp",
        "The cluster does not list the container as up.",
        "the container is awaited; look at its log if that takes long",
        WARNS,
    )
    RUNNING = "Running", "The container is up, by its cluster's word.", "nothing"

    ORDER_REFUSED = reasons.ORDER_REFUSED

    # --- its end ---
    OVERRIDE_UNCONFIRMED = reasons.OVERRIDE_UNCONFIRMED
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
    REMOVING_DRIVES = (
        "RemovingDrives",
        "The drives of the container leave the cluster, one after another.",
        reasons.LOOKS,
    )
    REMOVING_MEMBER = "RemovingMember", "The cluster forgets the container.", reasons.LOOKS
    LEAVING = "Leaving", "Nothing keeps the container any more; the finalizer goes.", "the API server removes it"

    UNHEEDED = reasons.UNHEEDED
    HEEDED = reasons.HEEDED
