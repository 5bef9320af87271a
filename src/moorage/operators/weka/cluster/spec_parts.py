"""Parts of a WekaCluster's spec that nobody reads on their own: by role, pod settings, services, telemetry."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from moorage.api import crd
from moorage.operators.weka import common_types as common


class RoleSelectors(msgspec.Struct, frozen=True, rename="camel"):
    """Node selectors by role; one that is set replaces the global one."""

    compute: common.Labels = {}
    drive: common.Labels = {}
    s3: common.Labels = {}
    nfs: common.Labels = {}
    smbw: common.Labels = {}
    data_services: common.Labels = {}


_Annotations = Annotated[dict[str, str], common.LABELS]


class RoleAnnotations(msgspec.Struct, frozen=True, rename="camel"):
    """Annotations of containers by role."""

    compute: _Annotations = {}
    drive: _Annotations = {}
    s3: _Annotations = {}
    nfs: _Annotations = {}
    smbw: _Annotations = {}
    data_services: _Annotations = {}


class RoleNetworks(msgspec.Struct, frozen=True, rename="camel"):
    """Networks by role; one that is set replaces the global one."""

    compute: common.Network | None = None
    drive: common.Network | None = None
    s3: common.Network | None = None
    nfs: common.Network | None = None
    smbw: common.Network | None = None
    data_services: common.Network | None = None


_Cores = Annotated[tuple[Annotated[int, msgspec.Meta(ge=0, le=4096)], ...], msgspec.Meta(max_length=512)]


class RoleCoreIds(msgspec.Struct, frozen=True, rename="camel"):
    """Cores by role, for cpuPolicy manual."""

    compute: _Cores = ()
    drive: _Cores = ()
    s3: _Cores = ()
    nfs: _Cores = ()
    smbw: _Cores = ()
    data_services: _Cores = ()


class AdditionalMemory(msgspec.Struct, frozen=True, rename="camel"):
    """Memory by role beyond what is reckoned, in MiB."""

    compute: Annotated[int, common.MIB] = 0
    drive: Annotated[int, common.MIB] = 0
    s3: Annotated[int, common.MIB] = 0
    nfs: Annotated[int, common.MIB] = 0
    smbw: Annotated[int, common.MIB] = 0
    data_services: Annotated[int, common.MIB] = 0
    envoy: Annotated[int, common.MIB] = 0


class FailureDomain(msgspec.Struct, frozen=True, rename="camel"):
    """What fails together: a label of nodes, or several."""

    label: Annotated[str, common.LABEL_KEY] | None = None
    skew: Annotated[int, msgspec.Meta(ge=1, le=512)] | None = None
    composite_labels: Annotated[tuple[Annotated[str, common.LABEL_KEY], ...], msgspec.Meta(max_length=8)] = ()

    __cel__ = (
        crd.Rule(
            "!(has(self.label) && has(self.compositeLabels) && self.compositeLabels.size() > 0)",
            "label and compositeLabels say the same thing: take one of them out",
        ),
    )


_Constraints = Annotated[tuple[dict[str, Any], ...], msgspec.Meta(max_length=16)]
_ROLES = msgspec.Meta(max_length=16)


class PodConfig(msgspec.Struct, frozen=True, rename="camel"):
    """Where pods go, as in a pod's own fields; by role before for all."""

    topology_spread_constraints: _Constraints = ()
    role_topology_spread_constraints: Annotated[dict[str, _Constraints], _ROLES] = {}
    affinity: dict[str, Any] = {}
    role_affinity: Annotated[dict[str, dict[str, Any]], _ROLES] = {}
    scheduler_name: Annotated[str, common.SCHEDULER] = ""


class Ports(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Ports of the cluster; 0 is chosen."""

    base_port: Annotated[int, common.PORT] = 0
    port_range: Annotated[int, common.PORT] = 0
    lb_port: Annotated[int, common.PORT] = 0
    lb_admin_port: Annotated[int, common.PORT] = 0
    s3_port: Annotated[int, common.PORT] = msgspec.field(name="s3Port", default=0)
    management_proxy_port: Annotated[int, common.PORT] = 0


class StartIo(msgspec.Struct, frozen=True, rename="camel"):
    """When IO begins."""

    min_num_drives: Annotated[int, msgspec.Meta(ge=0, le=100_000, description="0: all that are allocated.")] = 0


class WekaHome(msgspec.Struct, frozen=True, rename="camel"):
    """Where the cluster reports to."""

    endpoint: Annotated[str, common.TEXT] = ""
    allow_insecure: bool = False
    cacert_secret: Annotated[str, common.NAME] = ""
    enable_stats: bool | None = None


class CsiAdvanced(msgspec.Struct, frozen=True, rename="camel"):
    """Of the CSI driver."""

    enforce_trusted_https: bool = False
    node_labels: common.Labels = {}
    node_tolerations: common.Tolerations = ()
    controller_labels: common.Labels = {}
    controller_tolerations: common.Tolerations = ()
    skip_garbage_collection: bool = False


class CsiConfig(msgspec.Struct, frozen=True, rename="camel"):
    """The CSI driver of the cluster."""

    endpoints_subnets: Annotated[tuple[Annotated[str, common.CIDR], ...], msgspec.Meta(max_length=32)] = ()
    csi_group: Annotated[str, common.TEXT] = ""
    advanced: CsiAdvanced | None = None


class Vault(msgspec.Struct, frozen=True, rename="camel"):
    """A Vault that holds the key."""

    address: Annotated[str, common.TEXT]
    role: Annotated[str, common.TEXT] = ""
    auth_path: Annotated[str, common.TEXT] = "kubernetes"
    transit_path: Annotated[str, common.TEXT] = "transit"
    method: Annotated[str, common.TEXT] = "kubernetes"
    key_name: Annotated[str, common.TEXT] = "weka-key"


class Internal(msgspec.Struct, frozen=True):
    """A key that the cluster keeps itself."""

    enabled: bool = False


class Encryption(msgspec.Struct, frozen=True):
    """Encryption of file systems."""

    vault: Vault | None = None
    internal: Internal | None = None


class Nfs(msgspec.Struct, frozen=True, rename="camel"):
    """The NFS service."""

    interfaces: Annotated[tuple[Annotated[str, common.DEVICE], ...], msgspec.Meta(max_length=1)] = ()
    ip_ranges: Annotated[tuple[Annotated[str, common.TEXT], ...], msgspec.Meta(max_length=64)] = ()


class S3(msgspec.Struct, frozen=True, rename="camel"):
    """The S3 service."""

    cluster_create_args: Annotated[tuple[Annotated[str, common.TEXT], ...], msgspec.Meta(max_length=64)] = ()


class Catalog(msgspec.Struct, frozen=True, rename="camel"):
    """The catalog."""

    index_interval: Annotated[str, msgspec.Meta(max_length=32)] = "1d"
    retention_period: Annotated[str, msgspec.Meta(max_length=32)] = "30d"


class Splunk(msgspec.Struct, frozen=True, rename="camel"):
    """A Splunk that takes events."""

    auth_token_secret_ref: Annotated[str, common.TEXT]
    endpoint: Annotated[str, common.TEXT]
    ca_cert_secret_ref: Annotated[str, common.TEXT] = ""
    allow_unverified_certificate: bool = False
    verify_with_cluster_cacert: bool = msgspec.field(name="verifyWithClusterCACert", default=False)


class Export(msgspec.Struct, frozen=True):
    """Where telemetry goes."""

    name: Annotated[str, common.TEXT]
    sources: Annotated[tuple[Annotated[str, common.TEXT], ...], msgspec.Meta(max_length=32)] = ()
    splunk: Splunk | None = None


class Telemetry(msgspec.Struct, frozen=True):
    """What is told to others."""

    exports: Annotated[tuple[Export, ...], msgspec.Meta(max_length=16)] = ()


class Overrides(msgspec.Struct, frozen=True, rename="camel"):
    """Exceptions, for operators in trouble. Change them by a merge patch of `spec.overrides`."""

    allow_s3_cluster_destroy: bool | None = msgspec.field(name="allowS3ClusterDestroy", default=None)
    allow_smbw_cluster_destroy: bool | None = msgspec.field(name="allowSmbwClusterDestroy", default=None)
    disregard_redundancy: Annotated[
        bool | None, msgspec.Meta(description="Several containers of a role may share a node, and be lost with it.")
    ] = None
    drivers_build_id: Annotated[str, common.TEXT] | None = None
    drivers_loader_image: Annotated[str, msgspec.Meta(max_length=1024)] | None = None
    force_aio: bool | None = None
    post_form_cluster_script: Annotated[
        str, msgspec.Meta(max_length=65536, description="Only where moorage's administrator allows scripts.")
    ] = ""
    upgrade_force_replace: Annotated[
        bool | None, msgspec.Meta(description="An upgrade does not wait for a graceful stop. Needs weka.io/confirm.")
    ] = None
    upgrade_force_replace_drives: Annotated[
        bool | None, msgspec.Meta(description="The same for drive containers. Needs weka.io/confirm.")
    ] = None
    upgrade_all_at_once: Annotated[
        bool | None, msgspec.Meta(description="All containers at once, which stops IO. Needs weka.io/confirm.")
    ] = None
    upgrade_paused: bool | None = None
    upgrade_pause_pre_compute: bool | None = None
    pod_termination_deactivation_timeout: Annotated[str, common.DURATION] | None = None
    cancel_deletion: Annotated[
        bool | None, msgspec.Meta(description="Within the grace period: the cluster comes back.")
    ] = None
