"""What a node is called, which addresses it has, and where it keeps its things.

The first node lives beside the control plane, in the testbed's own network namespace and folders. Each further one has
a namespace, folders and a cgroup of its own, so that its ports, its pods and its end are its own.
"""

from dataclasses import dataclass
from pathlib import Path

from tb.errors import TestbedError
from tb.settings import Settings

PREFIX = "node-"


@dataclass(frozen=True)
class Node:
    """One node of a testbed, by its number."""

    settings: Settings
    number: int

    @property
    def first(self) -> bool:
        return self.number == 0

    @property
    def name(self) -> str:
        return f"{PREFIX}{self.number}"

    @property
    def namespace(self) -> str:
        """Names its network namespace."""
        return self.settings.name if self.first else f"{self.settings.name}-{self.name}"

    @property
    def cgroup(self) -> str:
        """Not below the first node's, nor with a name that begins like it: that one's kubelet would watch it."""
        return self.settings.name if self.first else f"{self.name}-{self.settings.name}"

    @property
    def pod_prefix(self) -> str:
        """The first three octets of its pods' addresses."""
        return f"10.{244 + self.settings.index}.{self.number}"

    @property
    def address(self) -> str:
        return f"{self.pod_prefix}.1"

    @property
    def health_address(self) -> str:
        """Where its parts tell of their health: the first node's where the machine reaches it."""
        return self.settings.address if self.first else self.address

    @property
    def bridge_hardware_address(self) -> str:
        """Given, so that it stays: else it is the lowest of the pods', and when that pod goes others lose the node."""
        return f"02:00:0a:{244 + self.settings.index:02x}:{self.number:02x}:01"

    @property
    def data(self) -> Path:
        return self.settings.data if self.first else self.settings.data / self.name

    @property
    def config(self) -> Path:
        return self.settings.config if self.first else self.settings.config / self.name

    @property
    def containerd_state(self) -> Path:
        """With the socket in it, whose path may not be long."""
        return self.data / ("containerd/run" if self.first else "run")

    @property
    def containerd_socket(self) -> Path:
        return self.containerd_state / "containerd.sock"

    def part(self, name: str) -> str:
        """How a component or a certificate of this node is called: the first node's bear the plain name."""
        return name if self.first else f"{name}-{self.number}"

    def inside(self, command: list[str]) -> list[str]:
        """The same command, run in the node's network namespace."""
        return self.settings.inside(command, self.namespace)


def all_of(settings: Settings) -> list[Node]:
    """The testbed's nodes, the first one first."""
    return [Node(settings, number) for number in range(settings.nodes)]


def find(settings: Settings, name: str) -> Node:
    """The node of that name; TestbedError when there is none."""
    for node in all_of(settings):
        if node.name == name:
            return node
    known = ", ".join(node.name for node in all_of(settings))
    raise TestbedError(f"there is no node {name}, only {known}; `testbed up --nodes N` adds nodes")
