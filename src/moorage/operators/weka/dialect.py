"""What is taken for granted of the product and of its nodes: every number, path and word, in one table.

The product is proprietary. What its command line says is known as far as the original operator used it; a field that is
marked "guess" is not known from any public source. The override is the mapping `dialect` of the system's configuration
(`systems.weka.dialect` of the chart), with the names below in camel case and only what differs:

    dialect:
      sizes: {hugePages: "", driveMemoryMib: 64}
      words: {up: UP RUNNING}

Where a word of an answer is named (section `words`) several may stand, with spaces between: any of them counts.
`files` and `commands` reach the pods as `settings.json` beside their scripts.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

_Mib = Annotated[int, msgspec.Meta(ge=0, le=16_777_216)]


_SETUP = "local setup container --name {name} --cores {cores} --base-port {port} --{mode}-only"


class Sizes(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What a container gets, in MiB and thousandths of a core, and how few are a cluster."""

    huge_pages: str = "hugepages-2Mi"  # the resource; empty: nodes have none, and none are asked for
    drive_memory_mib: _Mib = 8000
    drive_memory_per_core_mib: _Mib = 3000
    drive_memory_per_drive_mib: _Mib = 700
    compute_memory_mib: _Mib = 6700
    compute_memory_per_core_mib: _Mib = 5200
    drive_pages_per_core_mib: _Mib = 1400
    drive_pages_per_drive_mib: _Mib = 200
    compute_pages_per_core_mib: _Mib = 3000
    pages_offset_mib: _Mib = 200
    cpu_per_core: Annotated[int, msgspec.Meta(ge=1, le=16_000)] = 1000  # thousandths, for each of the cores
    cpu_beyond: Annotated[int, msgspec.Meta(ge=0, le=16_000)] = 1000  # and once, for all that is not a core of Weka's
    least_drive: Annotated[int, msgspec.Meta(ge=1, le=512)] = 5  # containers that a cluster is formed of
    least_compute: Annotated[int, msgspec.Meta(ge=1, le=512)] = 5
    most_at_first: Annotated[int, msgspec.Meta(ge=1, le=512)] = 10  # of a role, until it is formed
    grace_seconds: Annotated[int, msgspec.Meta(ge=1)] = 365 * 86_400  # in which a pod is asked to end


class Ports(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """How ports are given out on nodes, which all clusters share."""

    first: Annotated[int, msgspec.Meta(ge=1024, le=65_535)] = 35_000
    last: Annotated[int, msgspec.Meta(ge=1024, le=65_535)] = 65_535
    cluster: Annotated[int, msgspec.Meta(ge=10, le=20_000)] = 500  # of one cluster
    container: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100  # of one container
    single: Annotated[int, msgspec.Meta(ge=0, le=20_000)] = 300  # from where in its range a cluster has single ports


class Files(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Paths, on the nodes and in the pods."""

    devices: str = "/dev"  # of the node
    persistence: str = "/opt/k8s-weka"  # of the node
    data: str = "/opt/weka"
    runtime: str = "/opt/weka/k8s-runtime"
    login: str = "/var/run/secrets/weka-operator/operator-user"
    allow_stop: str = "/tmp/.allow-stop"  # noqa: S108 - the product's own
    allow_force_stop: str = "/tmp/.allow-force-stop"  # noqa: S108
    cancel_debug_sleep: str = "/tmp/.cancel-debug-sleep"  # noqa: S108


class Commands(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """How the product's tools are called, and how they are told what nobody else may read."""

    weka: str = "weka"
    agent: str = ""  # guess: what starts the agent; empty: it runs already
    sign: str = "/weka-sign-drive"
    erase_weka_flag: str = "--allow-erase-weka-partitions"  # guess: of the tool that signs, as are the next three
    erase_others_flag: str = "--allow-erase-non-weka-partitions"  # guess
    not_empty_flag: str = "--allow-non-empty-device"  # guess
    skip_trim_flag: str = "--skip-trim-format"  # guess
    aws_drives: str = "0x1d0f:0xcd01"  # guess: VENDOR:DEVICE of a cloud's own drives, with spaces between several
    gcp_drives: str = "0x1ae0:0x001f"  # guess
    identity: str = "local run wapi container-get-identity --container-name {name} --json"  # guess, in part
    setup: str = _SETUP  # guess, in part
    network_flag: str = "--net"  # of it: a device, or udp
    core_ids_flag: str = "--core-ids"  # of it: with commas between
    memory_flag: str = "--memory"  # of it: such as 1400MiB
    groups: str = "fs group --json"  # guess
    secrets_by: Literal["Environment", "Arguments"] = "Environment"  # guess: arguments show in the list of processes
    user_variable: str = "WEKA_USERNAME"
    password_variable: str = "WEKA_PASSWORD"  # noqa: S105 - a name
    org_variable: str = "WEKA_ORG"
    join_secret_variable: str = "WEKA_JOIN_SECRET"  # noqa: S105 - guess
    admin_password_variable: str = "WEKA_ADMIN_PASSWORD"  # noqa: S105 - guess
    new_password_variable: str = "WEKA_NEW_PASSWORD"  # noqa: S105 - guess
    seconds: Annotated[float, msgspec.Meta(gt=0, le=25)] = 10.0  # that one call of a tool may take


class Words(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Words of the product's answers."""

    running: str = "Running"  # of a container, by its agent
    up: str = "UP"  # of a container, by its cluster
    inactive: str = "INACTIVE"
    deactivating: str = "DEACTIVATING"
    drive_active: str = "ACTIVE"  # guess
    drive_inactive: str = "INACTIVE"  # guess
    well: str = "OK REDISTRIBUTING"  # of a cluster
    io_started: str = "STARTED"  # guess: of `io_status`

    def has(self, words: str, said: str) -> bool:
        """Whether what was said is one of these words."""
        return said.upper() in words.upper().split()


class Dialect(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """All of it."""

    sizes: Sizes = Sizes()
    ports: Ports = Ports()
    files: Files = Files()
    commands: Commands = Commands()
    words: Words = Words()
