"""The WekaManualOperation kind: the original's fields with their types; those that it lacks are marked "Added"."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from moorage.api import common_status, crd, meta
from moorage.operators.weka import common_types as common
from moorage.operators.weka import names

Action = Literal[
    "sign-drives",
    "discover-drives",
    "force-resign-drives",
    "block-drives",
    "unblock-drives",
    "ensure-nics",
    "remote-traces-session",
    "clean-stale-virtual-drives",
    "rotate-ssdproxy",
]

MOST_DRIVES = 256
"""That one operation may name."""

PATH = msgspec.Meta(max_length=256, pattern=r"^/[A-Za-z0-9_.:/-]+$")
_HEX = msgspec.Meta(max_length=10, pattern=r"^(0x)?[0-9a-fA-F]{1,8}$")
_Serials = Annotated[tuple[Annotated[str, common.SERIAL], ...], msgspec.Meta(max_length=MOST_DRIVES)]
_Paths = Annotated[tuple[Annotated[str, PATH], ...], msgspec.Meta(max_length=MOST_DRIVES)]
_Selector = common.Labels


class PciDevices(msgspec.Struct, frozen=True, rename="camel"):
    """Drives by what they are on the PCI bus, such as 0x1d0f and 0xcd01."""

    vendor_id: Annotated[str, _HEX]
    device_id: Annotated[str, _HEX]


class SignOptions(msgspec.Struct, frozen=True, rename="camel"):
    """What signing may destroy. Each of the first three needs weka.io/confirm."""

    allow_erase_weka_partitions: bool = False
    allow_erase_non_weka_partitions: bool = False
    allow_non_empty_device: bool = False
    skip_trim_format: bool = False


class SignDrives(msgspec.Struct, frozen=True, rename="camel"):
    """Which drives are signed, and where."""

    type: Literal["aws-all", "gcp-all", "device-identifiers", "device-paths", "all-not-root"]
    node_selector: _Selector = {}
    device_paths: _Paths = ()
    pci_devices: PciDevices | None = None
    options: SignOptions | None = None
    shared: bool = False

    __cel__ = (
        crd.Rule(
            "self.type != 'device-paths' || (has(self.devicePaths) && self.devicePaths.size() > 0)",
            "type device-paths needs devicePaths: the drives to sign, such as /dev/nvme1n1",
            field_path=".devicePaths",
        ),
        crd.Rule(
            "self.type != 'device-identifiers' || has(self.pciDevices)",
            "type device-identifiers needs pciDevices: vendorId and deviceId of the drives to sign",
            field_path=".pciDevices",
        ),
        crd.Rule(
            "!has(self.devicePaths) || self.devicePaths.all(path, !path.contains('..'))",
            "a path of devicePaths has .. in it: name the device itself",
            field_path=".devicePaths",
        ),
    )


class DiscoverDrives(msgspec.Struct, frozen=True, rename="camel"):
    """Where drives are looked at anew."""

    node_selector: _Selector = {}


class BlockDrives(msgspec.Struct, frozen=True, rename="camel"):
    """Which drives of which node are not to be used, or may be again."""

    node: Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
    serial_ids: _Serials = msgspec.field(name="serialIDs", default=())
    physical_uuids: _Serials = msgspec.field(name="physicalUUIDs", default=())

    __cel__ = (
        crd.Rule(
            "(has(self.serialIDs) && self.serialIDs.size() > 0)"
            " || (has(self.physicalUUIDs) && self.physicalUUIDs.size() > 0)",
            "name the drives: serialIDs, or physicalUUIDs of shared ones",
        ),
    )


class ForceResign(msgspec.Struct, frozen=True, rename="camel"):
    """Which drives of which node lose what Weka wrote on them, and are signed anew."""

    node_name: Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
    device_serials: _Serials = ()
    device_paths: _Paths = ()

    __cel__ = (
        crd.Rule(
            "(has(self.deviceSerials) && self.deviceSerials.size() > 0)"
            " != (has(self.devicePaths) && self.devicePaths.size() > 0)",
            "name the drives either by deviceSerials or by devicePaths",
        ),
        crd.Rule(
            "!has(self.devicePaths) || self.devicePaths.all(path, !path.contains('..'))",
            "a path of devicePaths has .. in it: name the device itself",
            field_path=".devicePaths",
        ),
    )


class EnsureNics(msgspec.Struct, frozen=True, rename="camel"):
    """Network devices of clouds."""

    type: Literal["aws", "oci"]
    node_selector: _Selector = {}
    data_nics_number: Annotated[int, msgspec.Meta(ge=0, le=64)] = msgspec.field(name="dataNICsNumber", default=0)


class RemoteTraces(msgspec.Struct, frozen=True, rename="camel"):
    """A session in which the vendor reads traces."""

    cluster: dict[str, Any] = {}
    node_selector: _Selector = {}
    host_network: bool = False
    duration: Annotated[str, common.DURATION] = "168h"
    weka_home_endpoint_override: Annotated[str, common.TEXT] | None = None
    allow_http_weka_home_endpoint: bool | None = None
    allow_insecure_weka_home_endpoint: bool | None = None
    weka_home_ca_secret: Annotated[str, common.NAME] | None = None


class Payload(msgspec.Struct, frozen=True, rename="camel"):
    """What the action is about: the one part that is its own."""

    sign_drives_payload: SignDrives | None = None
    block_drives_payload: BlockDrives | None = None
    discover_drives_payload: DiscoverDrives | None = None
    ensure_nics_payload: EnsureNics | None = msgspec.field(name="ensureNICsPayload", default=None)
    force_resign_drives_payload: ForceResign | None = None
    remote_traces_session_payload: RemoteTraces | None = None


def _needs(action: str, part: str, said: str) -> crd.Rule:
    return crd.Rule(
        f"self.action != '{action}' || (has(self.payload) && has(self.payload.{part}))",
        f"action {action} needs payload.{part}: {said}",
        field_path=".payload",
    )


class WekaManualOperationSpec(msgspec.Struct, frozen=True, rename="camel"):
    """What is done, once."""

    action: Action
    image: Annotated[str, msgspec.Meta(min_length=1, max_length=1024, description="With the tool that signs drives.")]
    image_pull_secret: Annotated[str, common.NAME] = ""
    service_account_name: Annotated[str, common.NAME] = ""
    tolerations: common.Tolerations = ()
    payload: Payload | None = None
    deletion_delay: Annotated[
        str,
        msgspec.Meta(
            max_length=32,
            pattern=common.DURATION.pattern,
            description="After which one that is Done is deleted; one that has Failed stays.",
        ),
    ] = "5m"

    __cel__ = (
        _needs("sign-drives", "signDrivesPayload", "which drives are signed, and where"),
        _needs("force-resign-drives", "forceResignDrivesPayload", "which drives are signed anew, and where"),
        _needs("block-drives", "blockDrivesPayload", "which drives are not to be used"),
        _needs("unblock-drives", "blockDrivesPayload", "which drives may be used again"),
        *crd.immutable(
            "action",
            "image",
            "payload",
            message="{0} can't be changed: an operation is done once; make another one under another name",
        ),
    )


class NodeResult(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What has come of it on one node."""

    status: Annotated[str, msgspec.Meta(description="Running, Done or Failed.")] = ""
    message: str = ""
    drives: Annotated[int, msgspec.Meta(description="That are signed there.")] = 0
    signed: Annotated[tuple[str, ...], msgspec.Meta(description="Serials of those that this operation signed.")] = ()


class WekaManualOperationStatus(common_status.Status, frozen=True, kw_only=True, rename="camel"):
    """The observed state."""

    status: Annotated[str, msgspec.Meta(description="Running, Done or Failed.")] = ""
    result: Annotated[str, msgspec.Meta(description="What has come of it, as JSON.")] = ""
    completed_at: Annotated[str, msgspec.Meta(description="When it was over (RFC 3339).")] = ""
    nodes: Annotated[
        dict[str, NodeResult],
        msgspec.Meta(description="Added. The nodes that it is for, written down at its beginning."),
    ] = {}
    overrides_used: Annotated[
        dict[str, str], msgspec.Meta(description="Added. What destroys data and was confirmed, and when it was heeded.")
    ] = {}


class WekaManualOperation(msgspec.Struct, frozen=True):
    """A WekaManualOperation, as its cache holds it."""

    metadata: meta.ObjectMeta
    spec: WekaManualOperationSpec
    status: WekaManualOperationStatus = WekaManualOperationStatus()


def definition() -> dict[str, object]:
    """The CustomResourceDefinition."""
    return crd.crd(
        group=names.GROUP,
        version=names.VERSION,
        kind=names.OPERATION.kind,
        plural=names.OPERATION.plural,
        spec=WekaManualOperationSpec,
        status=WekaManualOperationStatus,
        rules=(
            crd.Rule(
                "self.metadata.name.size() <= 50 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
                "metadata.name begins the names of pods: at most 50 lower-case letters, digits and dashes",
            ),
        ),
        columns=(
            crd.Column("Action", ".spec.action"),
            crd.Column("Status", ".status.status"),
            crd.Column("Message", '.status.conditions[?(@.type=="Ready")].message', priority=1),
            crd.Column("Age", ".metadata.creationTimestamp", type="date"),
        ),
    )


UNHEEDED = (*("payload.signDrivesPayload.shared", "payload.ensureNICsPayload", "payload.remoteTracesSessionPayload"),)
"""Fields that are taken as the original's, and that nothing follows from yet; see `heeding`."""

SERVED = ("sign-drives", "discover-drives", "force-resign-drives", "block-drives", "unblock-drives")
IN_PODS = ("sign-drives", "discover-drives", "force-resign-drives")
"""Those for which a pod must look at the devices of a node."""


def selector(spec: WekaManualOperationSpec) -> dict[str, str]:
    """Labels of the nodes that it is for, where none is named."""
    given = spec.payload or Payload()
    if spec.action == "sign-drives" and given.sign_drives_payload:
        return given.sign_drives_payload.node_selector
    return given.discover_drives_payload.node_selector if given.discover_drives_payload else {}


def node(spec: WekaManualOperationSpec) -> str:
    """The one node that it names; empty: it is for those of `selector`."""
    given = spec.payload or Payload()
    if spec.action == "force-resign-drives" and given.force_resign_drives_payload:
        return given.force_resign_drives_payload.node_name
    if spec.action in ("block-drives", "unblock-drives") and given.block_drives_payload:
        return given.block_drives_payload.node
    return ""


def destroys(spec: WekaManualOperationSpec) -> tuple[str, ...]:
    """What of it destroys data, by the names under which it is confirmed."""
    if spec.action == "force-resign-drives":
        return (spec.action,)
    given = spec.payload.sign_drives_payload if spec.payload and spec.action == "sign-drives" else None
    options = given.options if given and given.options else SignOptions()
    found = {
        "allowEraseWekaPartitions": options.allow_erase_weka_partitions,
        "allowEraseNonWekaPartitions": options.allow_erase_non_weka_partitions,
        "allowNonEmptyDevice": options.allow_non_empty_device,
    }
    return tuple(name for name, is_set in found.items() if is_set)
