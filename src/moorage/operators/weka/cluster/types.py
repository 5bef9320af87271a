"""The WekaCluster kind: the original's fields with their types; those that it lacks are marked "Added"."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from moorage.api import common_status, crd, meta
from moorage.operators.weka import common_types as common
from moorage.operators.weka import heeding, names

from . import spec_parts as parts

_ROLE_CORES = msgspec.Meta(ge=1, le=128)
_HUGE = msgspec.Meta(ge=0, le=16_777_216, description="MiB; 0 is reckoned.")


class DynamicTemplate(msgspec.Struct, frozen=True, rename="camel"):
    """How many containers of each role there are, and how large."""

    compute_containers: Annotated[int, common.COUNT] | None = None
    drive_containers: Annotated[int, common.COUNT] | None = None
    s3_containers: Annotated[int, common.COUNT] = msgspec.field(name="s3Containers", default=0)
    nfs_containers: Annotated[int, common.COUNT] = 0
    smbw_containers: Annotated[int, common.COUNT] = 0
    data_services_containers: Annotated[int, common.COUNT] = 0
    compute_cores: Annotated[int, _ROLE_CORES] = 1
    drive_cores: Annotated[int, _ROLE_CORES] = 1
    s3_cores: Annotated[int, _ROLE_CORES] = msgspec.field(name="s3Cores", default=1)
    nfs_cores: Annotated[int, _ROLE_CORES] = 1
    smbw_cores: Annotated[int, _ROLE_CORES] = 1
    data_services_cores: Annotated[int, _ROLE_CORES] = 1
    compute_extra_cores: Annotated[int, common.COUNT] = 0
    drive_extra_cores: Annotated[int, common.COUNT] = 0
    s3_extra_cores: Annotated[int, common.COUNT] = msgspec.field(name="s3ExtraCores", default=1)
    nfs_extra_cores: Annotated[int, common.COUNT] = 1
    smbw_extra_cores: Annotated[int, common.COUNT] = 0
    data_services_extra_cores: Annotated[int, common.COUNT] = 0
    envoy_cores: Annotated[int, _ROLE_CORES] = 1
    compute_hugepages: Annotated[int, _HUGE] = 0
    drive_hugepages: Annotated[int, _HUGE] = 0
    s3_hugepages: Annotated[int, _HUGE] = msgspec.field(name="s3Hugepages", default=0)
    nfs_hugepages: Annotated[int, _HUGE] = 0
    smbw_hugepages: Annotated[int, _HUGE] = 0
    data_services_hugepages: Annotated[int, _HUGE] = 0
    compute_hugepages_offset: Annotated[int, _HUGE] = 0
    drive_hugepages_offset: Annotated[int, _HUGE] = 0
    s3_hugepages_offset: Annotated[int, _HUGE] = msgspec.field(name="s3HugepagesOffset", default=0)
    nfs_hugepages_offset: Annotated[int, _HUGE] = 0
    smbw_hugepages_offset: Annotated[int, _HUGE] = 0
    data_services_hugepages_offset: Annotated[int, _HUGE] = 0
    num_drives: Annotated[
        int, msgspec.Meta(ge=0, le=256, description="Of each drive container; 0: one, unless a capacity is named.")
    ] = 0
    drive_capacity: Annotated[int, msgspec.Meta(ge=0, le=1_000_000, description="GiB.")] = 0
    container_capacity: Annotated[int, msgspec.Meta(ge=0, le=10_000_000, description="GiB.")] = 0
    drive_types_ratio: common.DriveTypesRatio | None = None

    __cel__ = (
        crd.Rule(
            "!(has(self.driveTypesRatio) && self.driveCapacity > 0)",
            "driveCapacity and driveTypesRatio say how drives are shared in two ways: take one of them out",
        ),
        crd.Rule(
            "!(self.numDrives > 0 && self.containerCapacity > 0)",
            "numDrives and containerCapacity say how much a container has in two ways: take one of them out",
        ),
        crd.Rule(
            "self.driveCapacity == 0 || self.numDrives == 0 || self.numDrives >= self.driveCores",
            "with driveCapacity each drive core needs a drive: raise numDrives, or lower driveCores",
        ),
        crd.Rule(
            "!has(self.driveTypesRatio) || self.driveTypesRatio.tlc > 0",
            "driveTypesRatio.tlc must be above 0: metadata needs tlc",
        ),
    )


class WekaClusterSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The desired state."""

    image: Annotated[str, common.IMAGE]
    template: Literal["dynamic", "small", "small_s3", "small_nfs", "large"] = "dynamic"
    image_pull_secret: Annotated[str, common.NAME] = ""
    service_account_name: Annotated[str, common.NAME] = ""
    operator_secret_ref: Annotated[
        str, msgspec.Meta(max_length=253, description="A Secret with a login that is there already; none is made.")
    ] = ""
    node_selector: common.Labels = {}
    role_node_selector: parts.RoleSelectors | None = None
    role_annotations: parts.RoleAnnotations | None = None
    role_network_selector: parts.RoleNetworks | None = None
    role_core_ids: parts.RoleCoreIds | None = None
    failure_domain: parts.FailureDomain | None = None
    pod_config: parts.PodConfig | None = None
    tolerations: Annotated[
        tuple[Annotated[str, common.LABEL_KEY], ...],
        msgspec.Meta(max_length=64, description="Keys of taints, each for NoSchedule and NoExecute."),
    ] = ()
    raw_tolerations: common.Tolerations = ()
    cpu_policy: common.CpuPolicy = "auto"
    additional_memory: parts.AdditionalMemory | None = None
    network: common.Network | None = None
    ipv6: bool = False
    ports: parts.Ports | None = None
    dynamic_template: DynamicTemplate | None = None
    hot_spare: Annotated[int, msgspec.Meta(ge=0, le=256)] = 0
    redundancy_level: Annotated[Literal[2, 4], msgspec.Meta(description="2 where it is left out.")] | None = None
    stripe_width: (
        Annotated[int, msgspec.Meta(ge=3, le=16, description="Where it is left out, the cluster decides.")] | None
    ) = None
    leadership_raft_size: Literal[5, 9] | None = None
    bucket_raft_size: Literal[5, 9] | None = None
    start_io_conditions: parts.StartIo | None = None
    graceful_destroy_duration: Annotated[str, common.DURATION] = "24h"
    overrides: parts.Overrides | None = None
    drivers_dist_service: Annotated[str, common.TEXT] = ""
    traces_configuration: common.Traces | None = None
    weka_home: parts.WekaHome | None = None
    global_pvc: common.Volume | None = msgspec.field(name="globalPVC", default=None)
    expand_endpoints: Annotated[tuple[Annotated[str, common.ADDRESS], ...], msgspec.Meta(max_length=96)] = ()
    csi_config: parts.CsiConfig | None = None
    encryption: parts.Encryption | None = None
    nfs: parts.Nfs | None = None
    s3: parts.S3 | None = None
    smbw: dict[str, Any] | None = None
    catalog: parts.Catalog | None = None
    telemetry: parts.Telemetry | None = None

    __cel__ = (
        crd.Rule(
            common.IMAGE_RULE,
            "image must end in the version that it holds, such as :4.4.1: an upgrade is told by it what it goes to",
            field_path=".image",
        ),
        *crd.immutable(
            "redundancyLevel",
            "stripeWidth",
            "leadershipRaftSize",
            "bucketRaftSize",
            "ipv6",
            "operatorSecretRef",
            message="{0} can't be changed: a cluster is formed with it",
        ),
        crd.Rule(
            "!has(self.dynamicTemplate) || !has(self.dynamicTemplate.driveContainers) || !has(self.stripeWidth)"
            " || self.dynamicTemplate.driveContainers >= self.stripeWidth + (has(self.redundancyLevel)"
            " ? self.redundancyLevel : 2) + self.hotSpare",
            "dynamicTemplate.driveContainers must be at least stripeWidth + redundancyLevel + hotSpare: each part of a"
            " stripe is on a container of its own",
            field_path=".dynamicTemplate",
        ),
        crd.Rule(
            "!has(self.ports) || self.ports.basePort == 0"
            " || (has(oldSelf.ports) && self.ports.basePort == oldSelf.ports.basePort)",
            "ports.basePort can't be changed: containers listen there, or where status.ports says",
            field_path=".ports",
        ),
        crd.Rule(
            "self.cpuPolicy != 'manual' || (has(self.roleCoreIds)"
            " && has(self.roleCoreIds.drive) && self.roleCoreIds.drive.size() > 0"
            " && has(self.roleCoreIds.compute) && self.roleCoreIds.compute.size() > 0)",
            "cpuPolicy manual needs roleCoreIds.drive and roleCoreIds.compute",
            field_path=".cpuPolicy",
        ),
    )


class Timestamps(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """When what began (RFC 3339)."""

    io_started: Annotated[str, msgspec.Meta(description="When it was first seen that IO runs.")] = ""


class WekaClusterStatus(common_status.Status, frozen=True, kw_only=True, rename="camel"):
    """The observed state."""

    status: Annotated[
        str,
        msgspec.Meta(
            description="Init, WaitForDrives, StartingIO, Ready, GracePeriod, Deallocating or Destroying; added: "
            "Upgrading and Degraded."
        ),
    ] = ""
    cluster_id: Annotated[str, msgspec.Meta(description="By which the product knows it.")] = msgspec.field(
        name="clusterID", default=""
    )
    trace_id: str = ""
    span_id: str = ""
    last_applied_image: Annotated[str, msgspec.Meta(description="The image that all containers ran with last.")] = ""
    last_applied_spec: str = ""
    ports: Annotated[parts.Ports | None, msgspec.Meta(description="Chosen once, before they are used.")] = None
    timestamps: Timestamps = Timestamps()
    printer: dict[str, str] = {}
    stats: dict[str, Any] | None = None
    made: Annotated[
        dict[str, int], msgspec.Meta(description="Added. By role how many containers were ever made: their numbers.")
    ] = {}
    making: Annotated[
        dict[str, tuple[int, ...]],
        msgspec.Meta(description="Added. By role the numbers whose containers are being made."),
    ] = {}
    formed: Annotated[
        str, msgspec.Meta(description="Added. The container in which the cluster was told to form, before it was told.")
    ] = ""
    told: Annotated[
        dict[str, str],
        msgspec.Meta(
            description="Added. What the cluster was told and says nothing of: its name, bucketRaftSize, and upgrade, "
            "the version of one that is not over."
        ),
    ] = {}
    down: Annotated[
        dict[str, str],
        msgspec.Meta(
            description="Added. Containers that are down where another one may be better, and since when; the time for "
            "which a node was away, or taken out of use, does not count."
        ),
    ] = {}
    replaced: Annotated[
        dict[str, str], msgspec.Meta(description="Added. Containers that stayed down and were replaced, and when.")
    ] = {}
    overrides_used: Annotated[
        dict[str, str], msgspec.Meta(description="Added. Overrides that may harm data, and when each was first heeded.")
    ] = {}


class WekaCluster(msgspec.Struct, frozen=True):
    """A WekaCluster, as its cache holds it."""

    metadata: meta.ObjectMeta
    spec: WekaClusterSpec
    status: WekaClusterStatus = WekaClusterStatus()


def definition() -> dict[str, object]:
    """The CustomResourceDefinition."""
    return crd.crd(
        group=names.GROUP,
        version=names.VERSION,
        kind=names.CLUSTER.kind,
        plural=names.CLUSTER.plural,
        spec=WekaClusterSpec,
        status=WekaClusterStatus,
        rules=(
            crd.Rule(
                "self.metadata.name.size() <= 40 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
                "metadata.name begins the names of pods: at most 40 lower-case letters, digits and dashes",
            ),
        ),
        columns=(
            crd.Column("Status", ".status.status"),
            crd.Column("Cluster ID", ".status.clusterID"),
            crd.Column("CCT(A/C/D)", ".status.printer.computeContainers", description="active, created, desired"),
            crd.Column("DCT(A/C/D)", ".status.printer.driveContainers", description="active, created, desired"),
            crd.Column("DRVS(A/C/D)", ".status.printer.drives", description="active, created, desired"),
            crd.Column("IOPS(R/W/M)", ".status.printer.iops", priority=1),
            crd.Column("THRPT(R/W)", ".status.printer.throughput", priority=1),
            crd.Column("FS(Capacity)", ".status.printer.filesystemCapacity", priority=1),
            crd.Column("Message", '.status.conditions[?(@.type=="Ready")].message', priority=1),
            crd.Column("Age", ".metadata.creationTimestamp", type="date"),
        ),
    )


class Template(msgspec.Struct, frozen=True):
    """What the template comes to: containers, cores, extra cores and drives by role."""

    containers: dict[str, int]
    cores: dict[str, int]
    extra_cores: dict[str, int]
    hugepages: dict[str, tuple[int, int]]  # MiB, and of these the offset; 0 is reckoned
    drives: int  # of each drive container


DEFAULT_CONTAINERS = 6
_STATIC = {"small": (6, 6, 1), "small_s3": (6, 6, 1), "small_nfs": (6, 6, 1), "large": (20, 20, 1)}
"""(compute, drive, drives): the original names these templates and tells nobody their sizes."""


def template(spec: WekaClusterSpec) -> Template:
    """What a spec's template comes to."""
    dynamic = spec.dynamic_template or DynamicTemplate()
    compute, drive, drives = dynamic.compute_containers, dynamic.drive_containers, dynamic.num_drives
    if spec.template != "dynamic" and spec.dynamic_template is None:
        compute, drive, drives = _STATIC[spec.template]
    return Template(
        containers={
            "drive": DEFAULT_CONTAINERS if drive is None else drive,
            "compute": DEFAULT_CONTAINERS if compute is None else compute,
        },
        cores={"drive": dynamic.drive_cores, "compute": dynamic.compute_cores},
        extra_cores={"drive": dynamic.drive_extra_cores, "compute": dynamic.compute_extra_cores},
        hugepages={
            "drive": (dynamic.drive_hugepages, dynamic.drive_hugepages_offset),
            "compute": (dynamic.compute_hugepages, dynamic.compute_hugepages_offset),
        },
        drives=drives or (0 if dynamic.container_capacity else 1),
    )


_OTHERS = ("s3", "nfs", "smbw", "dataServices")
"""Roles that are not served yet."""

_BY_ROLE = ("roleNodeSelector", "roleAnnotations", "roleNetworkSelector", "roleCoreIds", "additionalMemory")
_SIZES = ("Containers", "Cores", "ExtraCores", "Hugepages", "HugepagesOffset")
_NETWORKS = ("network", "roleNetworkSelector.compute", "roleNetworkSelector.drive")
UNHEEDED = (
    *(f"dynamicTemplate.{role}{size}" for role in _OTHERS for size in _SIZES),
    *(f"dynamicTemplate.{name}" for name in ("envoyCores", "driveCapacity", "containerCapacity", "driveTypesRatio")),
    *(f"{name}.{role}" for name in _BY_ROLE for role in _OTHERS),
    "additionalMemory.envoy",
    *(f"{network}.{name}" for network in _NETWORKS for name in common.UNHEEDED_OF_NETWORKS),
    "ipv6",
    *(f"ports.{name}" for name in ("portRange", "lbPort", "lbAdminPort", "s3Port", "managementProxyPort")),
    *("driversDistService", "tracesConfiguration", "wekaHome", "globalPVC", "csiConfig", "encryption"),
    *("nfs", "s3", "smbw", "catalog", "telemetry"),
    *(f"overrides.{name}" for name in ("allowS3ClusterDestroy", "allowSmbwClusterDestroy", "driversBuildId")),
    *(f"overrides.{name}" for name in ("driversLoaderImage", "forceAio", "podTerminationDeactivationTimeout")),
)
"""Fields that are taken as the original's, and that nothing follows from yet; see `heeding`."""


def unheeded(spec: WekaClusterSpec) -> tuple[str, ...]:
    """Which of these the spec sets."""
    return heeding.unheeded(spec, UNHEEDED)


def redundancy(spec: WekaClusterSpec) -> int:
    """Parts of a stripe that may be lost."""
    return spec.redundancy_level or 2


def weakest_stripe(spec: WekaClusterSpec) -> int:
    """Drive containers below which no stripe can be whole."""
    return (spec.stripe_width or 3) + redundancy(spec)
