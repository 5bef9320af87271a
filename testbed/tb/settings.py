"""Where a testbed lives and which addresses it has.

Two testbeds stand side by side when both the state folder and the index differ: the index picks the network namespace,
the addresses and the cgroup, the state folder holds everything that is written.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from tb.errors import TestbedError

HOME = Path(__file__).resolve().parent.parent
REPOSITORY = HOME.parent
VERSION = "v1.35.4"
SERVICE_NETWORK = "10.96.0.0/16"
API_SERVICE_ADDRESS = "10.96.0.1"
API_PORT = 6443
DOMAIN = "cluster.local"
NODE = "node-0"
PAUSE_IMAGE = "testbed.local/pause:1"
STORAGE_CLASS = "standard"
# The pod network is 10.(244 + index), so the last index is the last that fits an octet.
LAST_INDEX = 11
MOST_NODES = 9
# With several nodes: seconds without a word after which a node counts as lost, and then until its pods are told to go.
LOST_AFTER = 16
EVICTED_AFTER = 5
# A Unix socket's path has at most 107 bytes, and the longest name below the state folder takes 42 of them.
LONGEST_STATE = 65


@dataclass(frozen=True)
class Settings:
    """One testbed: its state folder, its index, and the folder of binaries that testbeds may share."""

    state: Path
    index: int
    bin: Path
    nodes: int = 1

    @property
    def name(self) -> str:
        """Names the network namespace, the cgroup and the kubeconfig's context."""
        return f"testbed{self.index}"

    @property
    def outer_link(self) -> str:
        return f"tb{self.index}-outer"

    @property
    def inner_link(self) -> str:
        return f"tb{self.index}-inner"

    @property
    def outer_address(self) -> str:
        """The host's end of the veth pair."""
        return f"10.231.{self.index}.1"

    @property
    def address(self) -> str:
        """The testbed's end of the veth pair: API server, registries and DNS as the host sees them."""
        return f"10.231.{self.index}.2"

    @property
    def bridge(self) -> str:
        return f"lk{self.index}"

    @property
    def pod_network(self) -> str:
        """All pods of all nodes: each node has the part that bears its number."""
        return f"10.{244 + self.index}.0.0/16"

    @property
    def node_address(self) -> str:
        """The first node as pods see it: DNS and registries listen here too."""
        return f"10.{244 + self.index}.0.1"

    @property
    def server(self) -> str:
        return f"https://{self.address}:{API_PORT}"

    @property
    def namespace_path(self) -> Path:
        return Path("/run/netns") / self.name

    @property
    def owner_file(self) -> Path:
        """Says which state folder holds this index; outside the state, so that another testbed can see it."""
        return Path("/run/testbed") / f"{self.index}.owner"

    @property
    def run(self) -> Path:
        return self.state / "run"

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    @property
    def pki(self) -> Path:
        return self.state / "pki"

    @property
    def config(self) -> Path:
        return self.state / "config"

    @property
    def data(self) -> Path:
        """What the components write: etcd's database, containers, volumes, registries."""
        return self.state / "data"

    @property
    def cache(self) -> Path:
        return self.state / "cache"

    @property
    def kubeconfig(self) -> Path:
        return self.state / "kubeconfig"

    @property
    def audit_log(self) -> Path:
        return self.state / "audit.log"

    def inside(self, command: list[str], namespace: str = "") -> list[str]:
        """The same command, run in the testbed's network namespace, or in that one."""
        return ["nsenter", f"--net={self.namespace_path.with_name(namespace or self.name)}", "--", *command]


def resolve(state: str | None, index: int | None, environment: dict[str, str]) -> Settings:
    """Settings from the command line, then the environment, then what an earlier `up` wrote down, then defaults.

    Raises TestbedError for an index or a state folder that cannot work.
    """
    folder = Path(state or environment.get("TESTBED_STATE") or REPOSITORY / ".testbed").absolute()
    if len(os.fsencode(folder)) > LONGEST_STATE:
        raise TestbedError(
            f"the state folder {folder} has a path of more than {LONGEST_STATE} bytes, "
            "too long for the Unix sockets in it; choose a shorter one with --state"
        )
    recorded = _recorded(folder).get("index")
    if index is not None and recorded is not None and index != recorded:
        raise TestbedError(
            f"the testbed in {folder} has index {recorded}, not {index}; take it down first to change its index"
        )
    chosen = next(number for number in (index, recorded, 0) if number is not None)
    if not 0 <= chosen <= LAST_INDEX:
        raise TestbedError(f"index {chosen} is not between 0 and {LAST_INDEX}")
    binaries = Path(environment.get("TESTBED_BIN") or REPOSITORY / ".testbed/bin").absolute()
    return Settings(folder, chosen, binaries, _recorded(folder).get("nodes", 1))


def record(settings: Settings) -> None:
    """Write index and number of nodes down, so that later commands on this state folder need not be told."""
    settings.run.mkdir(parents=True, exist_ok=True)
    _file(settings.state).write_text(json.dumps({"index": settings.index, "nodes": settings.nodes}))


def _recorded(state: Path) -> dict[str, int]:
    try:
        found: dict[str, int] = json.loads(_file(state).read_text())
    except FileNotFoundError:
        return {}
    return found


def _file(state: Path) -> Path:
    return state / "run/settings.json"
