"""The WekaContainer kind: the original's fields with their types; those that it lacks are marked "Added"."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from moorage.api import common_status, crd, meta
from moorage.operators.weka import common_types as common
from moorage.operators.weka import heeding, names

Mode = Literal[
    "drive",
    "compute",
    "client",
    "s3",
    "nfs",
    "smbw",
    "data-services",
    "envoy",
    "telemetry",
    "ssdproxy",
    "dist",
    "drivers-dist",
    "drivers-loader",
    "drivers-builder",
    "discovery",
    "adhoc-op",
    "adhoc-op-with-container",
]
State = Literal["active", "paused", "destroying", "deleting"]


class Instructions(msgspec.Struct, frozen=True):
    """What a container that runs once is to do."""

    type: Annotated[str, common.TEXT]
    payload: Annotated[str, msgspec.Meta(max_length=65536)] = ""


class Overrides(msgspec.Struct, frozen=True, rename="camel"):
    """Exceptions, for operators in trouble. Change them by a merge patch of `spec.overrides`."""

    skip_deactivate: Annotated[
        bool | None, msgspec.Meta(description="It leaves without its data being moved. Needs weka.io/confirm.")
    ] = None
    skip_drives_force_resign: bool | None = None
    skip_virtual_drives_removal: bool | None = None
    skip_cleanup_persistent_dir: bool | None = None
    upgrade_force_replace: bool | None = None
    upgrade_prevent_eviction: bool | None = None
    pod_delete_force_replace: bool | None = None
    machine_identifier_node_ref: Annotated[str, common.TEXT] | None = None
    pre_run_script: Annotated[
        str, msgspec.Meta(max_length=65536, description="Only where moorage's administrator allows scripts.")
    ] = ""
    force_drain: bool | None = None
    skip_active_mounts_check: bool | None = None
    umount_on_host: bool | None = None
    debug_sleep_on_terminate: Annotated[int, msgspec.Meta(ge=0, le=86_400)] | None = None
    migrate_out_from_pvc: bool | None = None


class WekaContainerSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The desired state."""

    image: Annotated[str, common.IMAGE]
    name: Annotated[
        str,
        msgspec.Meta(min_length=1, max_length=63, pattern=r"^[A-Za-z0-9_-]+$", description="How the cluster calls it."),
    ]
    mode: Mode
    num_cores: Annotated[int, common.CORES]
    extra_cores: Annotated[int, common.COUNT] = 0
    core_ids: Annotated[tuple[Annotated[int, msgspec.Meta(ge=0, le=4096)], ...], msgspec.Meta(max_length=512)] = ()
    cpu_policy: common.CpuPolicy = "auto"
    node_affinity: Annotated[str, common.NAME] | None = None
    node_selector: common.Labels = {}
    failure_domain: dict[str, Any] | None = None
    topology_spread_constraints: Annotated[tuple[dict[str, Any], ...], msgspec.Meta(max_length=16)] = ()
    affinity: dict[str, Any] = {}
    scheduler_name: Annotated[str, common.SCHEDULER] = ""
    tolerations: common.Tolerations = ()
    port: Annotated[int, common.PORT] = 0
    agent_port: Annotated[int, common.PORT] = 0
    port_range: common.PortRange | None = None
    exposed_ports: Annotated[tuple[dict[str, Any], ...], msgspec.Meta(max_length=64)] = ()
    network: common.Network | None = None
    hugepages: Annotated[int, common.MIB] = 0
    hugepages_offset: Annotated[int, common.MIB] = 0
    hugepages_size: Annotated[str, msgspec.Meta(max_length=16)] = "2Mi"
    hugepages_override: Annotated[str, common.TEXT] = ""
    num_drives: Annotated[int, msgspec.Meta(ge=0, le=256)] = 0
    drive_capacity: Annotated[int, msgspec.Meta(ge=0)] = 0
    container_capacity: Annotated[int, msgspec.Meta(ge=0)] = 0
    drive_types_ratio: common.DriveTypesRatio | None = None
    drivers_dist_service: Annotated[str, common.TEXT] = ""
    drivers_loader_image: Annotated[str, msgspec.Meta(max_length=1024)] = ""
    drivers_build_id: Annotated[str, common.TEXT] | None = None
    weka_secret_ref: Annotated[str, msgspec.Meta(max_length=253, description="A Secret with the login.")] = ""
    join_ip_ports: Annotated[
        tuple[Annotated[str, common.ADDRESS], ...],
        msgspec.Meta(max_length=512, extra_json_schema={"x-kubernetes-list-type": "atomic"}),
    ] = ()
    traces_configuration: common.Traces | None = None
    ipv6: bool = False
    additional_memory: Annotated[int, common.MIB] = 0
    group: Annotated[str, common.TEXT] = ""
    service_account_name: Annotated[str, common.NAME] = ""
    image_pull_secret: Annotated[str, common.NAME] = ""
    additional_secrets: Annotated[dict[str, Annotated[str, common.NAME]], msgspec.Meta(max_length=16)] = {}
    instructions: Instructions | None = None
    drop_affinity_constraints: bool = False
    upload_results_to: Annotated[str, common.TEXT] = ""
    upgrade_policy_type: Literal["manual", "all-at-once", "rolling", "all-at-once-force"] = "manual"
    state: Annotated[
        State,
        msgspec.Meta(
            description="paused: no pod, all data kept. deleting: it leaves the cluster, its data moved, and goes. "
            "destroying: it goes with what it holds, as the whole cluster does."
        ),
    ] = "active"
    allow_hot_upgrade: bool = False
    auto_remove_timeout: Annotated[str, common.DURATION] = "0s"
    host_pid: bool = msgspec.field(name="hostPID", default=False)
    resources: dict[str, Any] = {}
    pvc: common.Volume | None = None
    overrides: Overrides | None = None

    __cel__ = (
        crd.Rule(
            common.IMAGE_RULE,
            "image must end in the version that it holds, such as :4.4.1: an upgrade is told by it what it goes to",
            field_path=".image",
        ),
        *crd.immutable("name", "mode", message="{0} can't be changed: delete this container, and make another"),
        crd.Rule(
            "self.mode == 'drive' || !has(self.numDrives) || self.numDrives == 0",
            "numDrives is for containers of mode drive alone",
            field_path=".numDrives",
        ),
        crd.Rule(
            "!has(oldSelf.nodeAffinity) || (has(self.nodeAffinity) && self.nodeAffinity == oldSelf.nodeAffinity)",
            "nodeAffinity can't be changed once it is set: what the container holds is on that node",
            field_path=".nodeAffinity",
        ),
        crd.Rule(
            "oldSelf.state != 'destroying' || self.state == 'destroying'",
            "a container that is being destroyed can't be taken back",
            field_path=".state",
        ),
        crd.Rule(
            "self.cpuPolicy != 'manual' || (has(self.coreIds) && self.coreIds.size() > 0)",
            "cpuPolicy manual needs coreIds",
            field_path=".coreIds",
        ),
    )


class VirtualDrive(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A share of a drive."""

    virtual_uuid: str = msgspec.field(name="virtualUUID", default="")
    physical_uuid: str = msgspec.field(name="physicalUUID", default="")
    capacity_gib: int = msgspec.field(name="capacityGiB", default=0)
    serial: str = ""
    type: str = ""


class Allocations(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What of its node is this container's; written down before it is used, and never changed silently."""

    drives: Annotated[tuple[str, ...], msgspec.Meta(description="Serials.")] = ()
    weka_port: Annotated[int, msgspec.Meta(description="The first of its block of ports.")] = 0
    agent_port: int = 0
    failure_domain: str = ""
    machine_identifier: str = ""
    net_devices: tuple[str, ...] = ()
    virtual_drives: tuple[VirtualDrive, ...] = ()


class AddedDrive(msgspec.Struct, frozen=True, omit_defaults=True):
    """A drive as the cluster itself lists it."""

    uuid: str = ""
    added_time: str = ""
    device_path: str = ""
    serial_number: str = ""
    status: str = ""


class WekaContainerStatus(common_status.Status, frozen=True, kw_only=True, rename="camel"):
    """The observed state."""

    status: Annotated[
        str,
        msgspec.Meta(
            description="Init, PodNotRunning, PodTerminating, WaitForDrivers, Starting, Running, Stopped, Deleting, "
            "Destroying, Paused, Degraded, Unhealthy, Error or DrivesAdding."
        ),
    ] = ""
    internal_status: Annotated[str, msgspec.Meta(description="In the agent's own words, such as READY or STEM.")] = ""
    management_ip: str = msgspec.field(name="managementIP", default="")
    management_ips: tuple[str, ...] = msgspec.field(name="managementIPs", default=())
    container_id: Annotated[int | None, msgspec.Meta(description="By which the cluster knows it.")] = msgspec.field(
        name="containerID", default=None
    )
    cluster_id: str = msgspec.field(name="clusterID", default="")
    last_applied_image: Annotated[str, msgspec.Meta(description="The image that it last ran with.")] = ""
    last_applied_spec: str = ""
    node_affinity: Annotated[str, msgspec.Meta(description="The node that holds what it has; never another's.")] = ""
    result: str = ""
    allocations: Allocations | None = None
    added_drives: tuple[AddedDrive, ...] = ()
    stats: dict[str, Any] | None = None
    printer: dict[str, str] = {}
    timestamps: dict[str, str] = {}
    not_tolerated_on_reschedule: bool = False
    overrides_used: Annotated[
        dict[str, str], msgspec.Meta(description="Added. Overrides that may harm data, and when each was first heeded.")
    ] = {}


class WekaContainer(msgspec.Struct, frozen=True):
    """A WekaContainer, as its cache holds it."""

    metadata: meta.ObjectMeta
    spec: WekaContainerSpec
    status: WekaContainerStatus = WekaContainerStatus()


def definition() -> dict[str, object]:
    """The CustomResourceDefinition."""
    return crd.crd(
        group=names.GROUP,
        version=names.VERSION,
        kind=names.CONTAINER.kind,
        plural=names.CONTAINER.plural,
        spec=WekaContainerSpec,
        status=WekaContainerStatus,
        rules=(
            crd.Rule(
                "self.metadata.name.size() <= 63",
                "metadata.name is the name of a pod too: at most 63 characters",
            ),
        ),
        columns=(
            crd.Column("Status", ".status.status"),
            crd.Column("Mode", ".spec.mode"),
            crd.Column("Management IPs", ".status.printer.managementIPs"),
            crd.Column("Node", ".status.nodeAffinity"),
            crd.Column("Drives", ".status.printer.drives", priority=1),
            crd.Column("Weka cID", ".status.containerID", type="integer", priority=1),
            crd.Column("Message", '.status.conditions[?(@.type=="Ready")].message', priority=1),
            crd.Column("Age", ".metadata.creationTimestamp", type="date"),
        ),
    )


_OF_CLUSTERS = (
    *(f"network.{name}" for name in common.UNHEEDED_OF_NETWORKS),
    *("ipv6", "driversDistService", "tracesConfiguration"),
)
UNHEEDED = (
    *_OF_CLUSTERS,
    *("portRange.portRange", "exposedPorts", "hugepagesSize", "hugepagesOverride"),
    *("driveCapacity", "containerCapacity", "driveTypesRatio", "driversLoaderImage", "driversBuildId"),
    *("group", "additionalSecrets", "instructions", "uploadResultsTo"),
    *("upgradePolicyType", "allowHotUpgrade", "autoRemoveTimeout", "pvc.path"),
    *(f"overrides.{name}" for name in ("skipDrivesForceResign", "skipVirtualDrivesRemoval", "upgradePreventEviction")),
    *(f"overrides.{name}" for name in ("machineIdentifierNodeRef", "forceDrain", "skipActiveMountsCheck")),
    *(f"overrides.{name}" for name in ("umountOnHost", "migrateOutFromPvc")),
)
"""Fields that are taken as the original's, and that nothing follows from yet; see `heeding`."""


def unheeded(spec: WekaContainerSpec, *, of_cluster: bool) -> tuple[str, ...]:
    """Which of these the spec sets; of one that is `of_cluster` without those that its WekaCluster sets, and tells."""
    return heeding.unheeded(spec, (it for it in UNHEEDED if not of_cluster or it not in _OF_CLUSTERS))
