"""What the kinds and their objects are called: group, kinds, labels, finalizers, files in a pod. Pure."""

from __future__ import annotations

import hashlib

from moorage.api import meta

SYSTEM = "weka"
"""The system's name, as in the operator's configuration."""

GROUP, VERSION = "weka.weka.io", "v1alpha1"
CLUSTER = meta.Resource(GROUP, VERSION, "WekaCluster", "wekaclusters")
CONTAINER = meta.Resource(GROUP, VERSION, "WekaContainer", "wekacontainers")
OPERATION = meta.Resource(GROUP, VERSION, "WekaManualOperation", "wekamanualoperations")
CLIENT = meta.Resource(GROUP, VERSION, "WekaClient", "wekaclients")
POLICY = meta.Resource(GROUP, VERSION, "WekaPolicy", "wekapolicies")

CLUSTER_FINALIZER = f"{GROUP}/finalizer"
CONTAINER_FINALIZER = f"{GROUP}/finalizer"
OPERATION_FINALIZER = f"{GROUP}/finalizer"

CLUSTER_ID = "weka.io/cluster-id"
"""Label of a WekaContainer and of its pod: the uid of the WekaCluster."""

CLUSTER_NAME = "weka.io/cluster-name"
MODE = "weka.io/mode"
CONTAINER_NAME = "weka.io/container-name"
"""Added: label of a pod, with the name of its WekaContainer, which is its own."""

APP = {"app": "weka"}

BINDING_FINALIZER = f"{GROUP}/rights"
"""Of the RoleBinding: with a namespace its rights would go first, and nobody could tell the pods that they may stop."""

DRIVES = "weka.io/weka-drives"
"""Annotation of a node: the serials of its signed drives, as a JSON list of texts or of {serial_id, ...}."""

BLOCKED_DRIVES = "weka.io/blocked-drives"
"""Annotation of a node: serials that are not to be used, as a JSON list."""

BLOCKED_UUIDS = "weka.io/blocked-drives-physical-uuids"
"""Annotation of a node: physical uuids of shared drives that are not to be used, as a JSON list."""

SIGN_HASH = "weka.io/sign-drives-hash"
"""Annotation of a node: the start of the node at which its drives were signed last, as a digest of its boot id."""

NODE_MANAGER = "moorage-weka-drives"
"""In whose name these annotations are written, so that managedFields tell who did."""

OPERATION_NAME = "weka.io/operation-name"
"""Added: label of a pod, with the name of its WekaManualOperation."""

CONFIRM = "weka.io/confirm"
"""Added annotation of a WekaCluster or WekaContainer: the override that may harm data, which is meant to be used."""

SCRIPTS = "weka-boot-scripts"
"""The ConfigMap with what runs in the pods, one in each namespace."""

POD_CONTAINER = "weka-container"

BACKEND = ("drive", "compute")
"""The modes that are looked after so far, in the order in which they are made, and rolled."""

OPENED = "moorage.dev/weka"
"""Label of a namespace, by which an administrator opens it for pods that are root on their nodes: `privileged`."""

MOST_CONTAINERS = 512
"""Of one role of one cluster."""


def placement() -> str:
    """All clusters and containers are one process's: ports and drives of a node are shared across namespaces."""
    return SYSTEM


def container(cluster: str, role: str, number: int) -> str:
    """The WekaContainer of that number, and its pod; a number is never used twice."""
    return f"{cluster}-{role}-{number}"


def number(cluster: str, role: str, name: str) -> int:
    """The number in that name, or -1 for a name that is not of this cluster and role."""
    prefix = f"{cluster}-{role}-"
    rest = name.removeprefix(prefix)
    return int(rest) if name.startswith(prefix) and rest.isascii() and rest.isdigit() and len(rest) <= 9 else -1


def within(role: str, uid: str, number_: int) -> str:
    """How the cluster itself calls that container: unique to the WekaCluster, and without a dash."""
    tail = hashlib.sha256(uid.encode()).hexdigest()[:8]
    return f"{role}x{tail}x{number_}"


def operation_pod(operation: str, node: str) -> str:
    """The pod of an operation on one node; node names may be longer than names of pods."""
    return f"{operation}-{hashlib.sha256(node.encode()).hexdigest()[:10]}"


def operator_secret(uid: str) -> str:
    """The Secret by which the operator and the pods log in; made once for each WekaCluster."""
    return f"weka-operator-{uid}"


def user_secret(cluster: str) -> str:
    """The Secret with the people's login."""
    return f"weka-cluster-{cluster}"
