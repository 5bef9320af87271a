"""Weka: storage clusters of containers, each a pod with drives of its node.

**Kinds.** A WekaCluster makes WekaContainers, and a WekaContainer one pod, which bears its name. Whose a container is
says its owner; `weka.io/cluster-id`, the WekaCluster's uid, is for people to select by.

    WekaCluster  --applies-->  WekaContainer  --makes-->  pod  (runtime: scripts/weka_runtime.py)
         |                          |                      ^
         +--asks and tells----------+----- exec: scripts/weka_tool.py, a question or an order in JSON

**A container** (`container/`): its place and what it may be; the pod, pinned to the node that it first came to; ports
and drives of that node, written down before they are used (`allocation`); start; membership; drives added one by one;
up, by the cluster's word. It leaves by deactivation, its data moved, its drives removed, its pod stopped, the cluster
made to forget it; with its whole cluster it goes with what it holds.

**A cluster** (`cluster/`): logins, a range of ports, containers by role, formation once the least number runs, its
stripe, drives, IO, the people's login, file systems. Then `rolling`: another image or size reaches drive containers
first, then compute, one at a time and behind a gate; surplus containers leave in the same way. `deletion`: the grace,
in which all is kept and paused, a way back, and the end.

**What is believed.** Each step asks what the world says, not what was remembered: the container of itself
(`answers.Local`), the cluster of its members and drives (`answers.Cluster`). After each order of ours the last answer
is outdated (law 6). Orders look first whether they are carried out already, so that they can be repeated.

**An operation** (`operation/`) is done once, on drives of nodes: a pod on each signs them, or looks which there are,
and what it leaves as its last word is written into the node's annotations. These are all that is written of a node.

**A pod of a container is never forced.** It is deleted with its own grace of a year, told by a file that it may stop,
and waited for. The file alone ends nothing, nor does the deletion alone.

**Verdicts and reasons**: each step's in `control`, `deletion`, `rolling`; what each reason means and what comes next,
in the `reasons` of each. What is taken for granted of a proprietary product is one table, `dialect`.

**People's command line** (`shell`) is in a container that runs; who may create pods/exec in the namespace gets there.

**Rights.** Pods are root on their nodes. So an administrator opens each namespace by the label `moorage.dev/weka`,
lists the images that are run, and says whether specs may bring scripts; exec comes with the binding in opened
namespaces alone.

Not there yet: what a WekaClient or a WekaPolicy asks for (`announced/` has their fields); protocols; drivers, which
count as present; drive sharing; removal of blocked drives; resigning of drives at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moorage.operators import system
from moorage.runtime import kind

from . import config, names, shared, shell
from .announced import kind as announced_kind
from .announced import types as announced_types
from .cluster import control as cluster_control
from .cluster import deletion as cluster_deletion
from .cluster import foresee as cluster_foresee
from .cluster import kind as cluster_kind
from .cluster import reasons as cluster_reasons
from .cluster import screen as cluster_screen
from .cluster import types as cluster_types
from .container import control as container_control
from .container import deletion as container_deletion
from .container import kind as container_kind
from .container import reasons as container_reasons
from .container import screen as container_screen
from .container import types as container_types
from .operation import control as operation_control
from .operation import kind as operation_kind
from .operation import reasons as operation_reasons
from .operation import screen as operation_screen
from .operation import types as operation_types


def _kinds(settings: config.Config, environment: system.Environment) -> Sequence[kind.Kind[Any, Any]]:
    common = shared.Shared(settings, environment)
    return (
        container_kind.ContainerKind(common),
        cluster_kind.ClusterKind(common),
        operation_kind.OperationKind(common),
        announced_kind.ClientKind(),
        announced_kind.PolicyKind(),
    )


SYSTEM = system.System(
    name=names.SYSTEM,
    title="Weka",
    config=config.Config,
    definitions=lambda: (
        cluster_types.definition(),
        container_types.definition(),
        operation_types.definition(),
        *announced_types.definitions(),
    ),
    described=(
        system.Described(
            names.CLUSTER,
            cluster_types.WekaClusterStatus,
            cluster_control.STEPS,
            cluster_deletion.DELETION_STEPS,
            cluster_screen.rows,
            cluster_screen.containers,
            shell.cluster,
            cluster_foresee.foresee,
        ),
        system.Described(
            names.CONTAINER,
            container_types.WekaContainerStatus,
            container_control.STEPS,
            container_deletion.DELETION_STEPS,
            container_screen.rows,
            container_screen.pod,
            shell.container,
        ),
        system.Described(
            names.OPERATION,
            operation_types.WekaManualOperationStatus,
            operation_control.STEPS,
            operation_control.DELETION_STEPS,
            operation_screen.rows,
        ),
        *(
            system.Described(it, announced_types.AnnouncedStatus, announced_kind.STEPS, ())
            for it in (names.CLIENT, names.POLICY)
        ),
    ),
    reasons=(
        cluster_reasons.ClusterReason,
        container_reasons.ContainerReason,
        operation_reasons.OperationReason,
        announced_kind.AnnouncedReason,
    ),
    kinds=_kinds,
    ends_by_moorage=(names.CONTAINER,),
)
