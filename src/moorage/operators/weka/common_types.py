"""Parts of the spec that WekaCluster and WekaContainer have in common: the original's fields, with limits."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from moorage.api import crd

NAME = msgspec.Meta(max_length=253)
TEXT = msgspec.Meta(max_length=1024)
SCHEDULER = msgspec.Meta(
    max_length=253, description="Added. Which scheduler finds a node for pods that are made from now on."
)
IMAGE = msgspec.Meta(min_length=1, max_length=1024)
PORT = msgspec.Meta(ge=0, le=65535)
COUNT = msgspec.Meta(ge=0, le=512)
CORES = msgspec.Meta(ge=1, le=128)
MIB = msgspec.Meta(ge=0, le=16_777_216)
DURATION = msgspec.Meta(
    max_length=32,
    pattern=r"^(0|([0-9]{1,7}(\.[0-9]{1,3})?(ns|us|ms|s|m|h))+)$",
    description="Such as 30s, 5m or 24h.",
)
LABELS = msgspec.Meta(max_length=64)
LABEL_KEY = msgspec.Meta(
    max_length=316, pattern=r"^(([a-z0-9][-a-z0-9.]*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$"
)
LABEL_VALUE = msgspec.Meta(max_length=63, pattern=r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$")
CIDR = msgspec.Meta(max_length=64, pattern=r"^[0-9a-fA-F.:]+/[0-9]{1,3}$")
ADDRESS = msgspec.Meta(max_length=128, pattern=r"^[0-9a-zA-Z.:\[\]_-]+$")
DEVICE = msgspec.Meta(max_length=64, pattern=r"^[a-zA-Z0-9_.:@-]+$")
SERIAL = msgspec.Meta(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_.:-]+$")

IMAGE_RULE = r"self.image.matches('[:][0-9]+([.][0-9]+)+([-_+.][0-9A-Za-z_.+-]*)?$')"
"""The tag tells the version, by which the cluster's upgrade is told what it goes to."""

Labels = Annotated[dict[str, Annotated[str, LABEL_VALUE]], LABELS]
"""What is wrong here would show when a pod is next made, so it is refused before."""

CpuPolicy = Literal["auto", "shared", "dedicated", "dedicated_ht", "manual"]


class Selector(msgspec.Struct, frozen=True, rename="camel"):
    """Network devices by what they are."""

    subnet: Annotated[str, CIDR] | None = None
    min: Annotated[int, COUNT] | None = None
    max: Annotated[int, COUNT] | None = None
    device_names: Annotated[tuple[Annotated[str, DEVICE], ...], msgspec.Meta(max_length=32)] = ()


class Network(msgspec.Struct, frozen=True, rename="camel"):
    """Which network the cluster's own traffic takes. UDP needs no device."""

    eth_device: Annotated[str, DEVICE] | None = None
    eth_devices: Annotated[tuple[Annotated[str, DEVICE], ...], msgspec.Meta(max_length=32)] | None = None
    gateway: Annotated[str, ADDRESS] | None = None
    udp_mode: bool | None = None
    device_subnets: Annotated[tuple[Annotated[str, CIDR], ...], msgspec.Meta(max_length=32)] | None = None
    selectors: Annotated[tuple[Selector, ...], msgspec.Meta(max_length=32)] | None = None
    management_ips_selectors: Annotated[tuple[Selector, ...], msgspec.Meta(max_length=32)] | None = None
    bind_management_all: bool | None = None

    __cel__ = (
        crd.Rule(
            "!(has(self.ethDevice) && has(self.ethDevices))",
            "ethDevice and ethDevices name the same thing: take one of them out",
        ),
    )


UNHEEDED_OF_NETWORKS = ("gateway", "deviceSubnets", "selectors", "managementIpsSelectors", "bindManagementAll")
"""Fields of a network that nothing follows from yet; see `heeding`."""


class DriveTypesRatio(msgspec.Struct, frozen=True):
    """How much of each kind of flash."""

    tlc: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0
    qlc: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0


class Traces(msgspec.Struct, frozen=True, rename="camel"):
    """What is kept of the product's own traces, in GB."""

    max_capacity_per_io_node: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 10
    ensure_free_space: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 20
    dumper_config_mode: Literal["auto", "override", "partial-override", "cluster"] = "auto"


class Volume(msgspec.Struct, frozen=True, rename="camel"):
    """A claim on which containers keep their state."""

    name: Annotated[str, NAME]
    path: Annotated[str, TEXT] = ""


class PortRange(msgspec.Struct, frozen=True, rename="camel"):
    """Where ports may be taken from."""

    base_port: Annotated[int, PORT] = 45000
    port_range: Annotated[int, PORT] = 0


Tolerations = Annotated[tuple[dict[str, Any], ...], msgspec.Meta(max_length=64)]
