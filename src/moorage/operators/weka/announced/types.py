"""The WekaClient and WekaPolicy kinds: the original's fields with their types, from which nothing follows yet."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from moorage.api import common_status, crd, meta
from moorage.operators.weka import common_types as common
from moorage.operators.weka import names
from moorage.operators.weka.operation import types as operation_types

_Selector = common.Labels
_Cores = Annotated[tuple[Annotated[int, msgspec.Meta(ge=0, le=4096)], ...], msgspec.Meta(max_length=512)]


class TargetCluster(msgspec.Struct, frozen=True):
    """The WekaCluster that clients mount from."""

    name: Annotated[str, common.NAME] = ""
    namespace: Annotated[str, common.NAME] = ""


class UpgradePolicy(msgspec.Struct, frozen=True):
    """In which order clients get another image."""

    type: Literal["all-at-once", "rolling", "manual"] = "all-at-once"


class ClientCsi(msgspec.Struct, frozen=True, rename="camel"):
    """The CSI driver of clients."""

    csi_group: Annotated[str, common.TEXT] = ""
    disable_controller_creation: bool = False
    advanced: dict[str, Any] | None = None


class ClientOverrides(msgspec.Struct, frozen=True, rename="camel"):
    """Exceptions."""

    drivers_build_id: Annotated[str, common.TEXT] | None = None
    drivers_loader_image: Annotated[str, msgspec.Meta(max_length=1024)] | None = None
    machine_identifier_node_ref: Annotated[str, common.TEXT] | None = None
    force_drain: bool | None = None
    skip_active_mounts_check: bool | None = None
    umount_on_host: bool | None = None
    drop_affinity_constraints: bool | None = None
    weka_container_name: Annotated[str, common.TEXT] | None = None


class WekaClientSpec(msgspec.Struct, frozen=True, rename="camel"):
    """Clients of a cluster, one on each node."""

    image: Annotated[str, common.IMAGE]
    image_pull_secret: Annotated[str, common.NAME] = ""
    port: Annotated[int, common.PORT] = 0
    agent_port: Annotated[int, common.PORT] = 0
    port_range: common.PortRange | None = None
    node_selector: _Selector = {}
    weka_secret_ref: Annotated[str, common.NAME] = ""
    network: common.Network | None = None
    drivers_dist_service: Annotated[str, common.TEXT] = ""
    join_ip_ports: Annotated[tuple[Annotated[str, common.ADDRESS], ...], msgspec.Meta(max_length=512)] = ()
    target_cluster: TargetCluster | None = None
    cpu_policy: common.CpuPolicy = "auto"
    cpu_request: Annotated[str, msgspec.Meta(max_length=32)] = ""
    cores_num: Annotated[int, msgspec.Meta(ge=0, le=128)] = 0
    core_ids: _Cores = ()
    traces_configuration: common.Traces | None = None
    tolerations: Annotated[tuple[Annotated[str, msgspec.Meta(max_length=316)], ...], msgspec.Meta(max_length=64)] = ()
    raw_tolerations: common.Tolerations = ()
    service_account_name: Annotated[str, common.NAME] = ""
    additional_memory: Annotated[int, common.MIB] = 0
    resources: dict[str, Any] | None = None
    hugepages: Annotated[int, common.MIB] = 0
    hugepages_offset: Annotated[int, common.MIB] = 0
    weka_home: dict[str, Any] | None = None
    upgrade_policy: UpgradePolicy | None = None
    allow_hot_upgrade: bool = False
    auto_remove_timeout: Annotated[str, common.DURATION] = "24h"
    global_pvc: common.Volume | None = msgspec.field(name="globalPVC", default=None)
    csi_config: ClientCsi | None = None
    overrides: ClientOverrides | None = None


class DriverDist(msgspec.Struct, frozen=True, rename="camel"):
    """Drivers that are built and given out within the Kubernetes cluster."""

    ensure_images: Annotated[tuple[Annotated[str, common.IMAGE], ...], msgspec.Meta(max_length=64)] = ()
    node_selectors: Annotated[tuple[_Selector, ...], msgspec.Meta(max_length=64)] = ()
    kernel_label_key: Annotated[str, msgspec.Meta(max_length=316)] = "weka.io/kernel"
    architecture_label_key: Annotated[str, msgspec.Meta(max_length=316)] = "weka.io/architecture"
    os_label_key: Annotated[str, msgspec.Meta(max_length=316)] = "weka.io/os"
    builder_image_override: Annotated[str, msgspec.Meta(max_length=1024)] | None = None
    builder_pre_run_script: Annotated[str, msgspec.Meta(max_length=65536)] | None = None
    dist_node_selector: _Selector = {}


class PolicyPayload(msgspec.Struct, frozen=True, rename="camel"):
    """What is done, and how often."""

    interval: Annotated[str, common.DURATION] = "5m"
    sign_drives_payload: operation_types.SignDrives | None = None
    discover_drives_payload: operation_types.DiscoverDrives | None = None
    ensure_nics_payload: operation_types.EnsureNics | None = msgspec.field(name="ensureNICsPayload", default=None)
    remote_traces_session_payload: operation_types.RemoteTraces | None = None
    driver_dist_payload: DriverDist | None = None
    wait_for_policies: Annotated[tuple[Annotated[str, common.NAME], ...], msgspec.Meta(max_length=32)] = ()


class WekaPolicySpec(msgspec.Struct, frozen=True, rename="camel"):
    """What is done again and again."""

    type: Literal[
        "sign-drives", "discover-drives", "ensure-nics", "enable-local-drivers-distribution", "remote-traces-session"
    ]
    image: Annotated[str, msgspec.Meta(max_length=1024)] = ""
    image_pull_secret: Annotated[str, common.NAME] = ""
    service_account_name: Annotated[str, common.NAME] = ""
    tolerations: common.Tolerations = ()
    payload: PolicyPayload | None = None


class AnnouncedStatus(common_status.Status, frozen=True, kw_only=True, rename="camel"):
    """The observed state."""

    status: Annotated[str, msgspec.Meta(description="NotRun, so far.")] = ""


class WekaClient(msgspec.Struct, frozen=True):
    """A WekaClient, as its cache holds it."""

    metadata: meta.ObjectMeta
    spec: WekaClientSpec
    status: AnnouncedStatus = AnnouncedStatus()


class WekaPolicy(msgspec.Struct, frozen=True):
    """A WekaPolicy, as its cache holds it."""

    metadata: meta.ObjectMeta
    spec: WekaPolicySpec
    status: AnnouncedStatus = AnnouncedStatus()


def definitions() -> tuple[dict[str, object], ...]:
    """Both CustomResourceDefinitions."""
    columns = (
        crd.Column("Status", ".status.status"),
        crd.Column("Message", '.status.conditions[?(@.type=="Ready")].message', priority=1),
        crd.Column("Age", ".metadata.creationTimestamp", type="date"),
    )
    own: tuple[tuple[meta.Resource, type[msgspec.Struct], crd.Column], ...] = (
        (names.CLIENT, WekaClientSpec, crd.Column("Target Cluster", ".spec.targetCluster.name")),
        (names.POLICY, WekaPolicySpec, crd.Column("Type", ".spec.type")),
    )
    return tuple(
        crd.crd(
            group=names.GROUP,
            version=names.VERSION,
            kind=resource.kind,
            plural=resource.plural,
            spec=spec,
            status=AnnouncedStatus,
            columns=(column, *columns),
        )
        for resource, spec, column in own
    )
