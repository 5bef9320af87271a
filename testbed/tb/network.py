"""The testbed's network namespaces: no default route, so nothing in them can leave the machine.

The host gets one veth link with a /30 address and nothing else; its routes, firewall and forwarding stay as they are.
Each node but the first has a namespace of its own, with one link into the testbed's, which forwards between them.
"""

from pathlib import Path

from tb.command import run
from tb.nodes import Node
from tb.settings import SERVICE_NETWORK, Settings

NAMESPACES = Path("/run/netns")
UPLINK = "uplink"


def up(settings: Settings) -> None:
    """Make the namespace, unless it is there and whole; one that is half made is made anew."""
    if _complete(settings):
        return
    down(settings)
    run(["ip", "netns", "add", settings.name])
    ends = ["type", "veth", "peer", "name", settings.inner_link, "netns", settings.name]
    run(["ip", "link", "add", settings.outer_link, *ends])
    run(["ip", "address", "add", f"{settings.outer_address}/30", "dev", settings.outer_link])
    run(["ip", "link", "set", settings.outer_link, "up"])
    batch = f"""
        link set lo up
        address add {settings.address}/30 dev {settings.inner_link}
        link set {settings.inner_link} up
        {_bridge(Node(settings, 0))}
    """
    run(settings.inside(["ip", "-batch", "-"]), text=batch)
    run(settings.inside(["sysctl", "-q", "-w", "net.ipv4.ip_forward=1"]))


def join(node: Node) -> None:
    """Make the node's namespace, unless it is there and whole, and have its link up."""
    if node.first:
        return
    if not _joined(node):
        leave(node)
        run(["ip", "netns", "add", node.namespace])
        ends = ["type", "veth", "peer", "name", UPLINK, "netns", node.namespace]
        run(node.settings.inside(["ip", "link", "add", node.name, *ends]))
        outside = f"""
            address add {_near(node)}/30 dev {node.name}
            link set {node.name} up
            route add {node.pod_prefix}.0/24 via {_far(node)} src {node.settings.node_address}
        """
        run(node.settings.inside(["ip", "-batch", "-"]), text=outside)
        inside = f"""
            link set lo up
            address add {_far(node)}/30 dev {UPLINK}
            {_bridge(node)}
        """
        run(node.inside(["ip", "-batch", "-"]), text=inside)
        run(node.inside(["sysctl", "-q", "-w", "net.ipv4.ip_forward=1"]))
    mend(node)


def cut(node: Node) -> None:
    """Take the node's link down: nothing reaches it or leaves it, and nobody is told."""
    run(node.inside(["ip", "link", "set", UPLINK, "down"]))


def mend(node: Node) -> None:
    """Have the link up, with the routes that went with it."""
    batch = f"""
        link set {UPLINK} up
        route replace {node.settings.pod_network} via {_near(node)} src {node.address}
        route replace {node.settings.address}/32 via {_near(node)} src {node.address}
    """
    run(node.inside(["ip", "-batch", "-"]), text=batch)


def leave(node: Node) -> None:
    """Remove the node's link and namespace, whatever of them is there."""
    if node.name in _links(node.settings):
        run(node.settings.inside(["ip", "link", "delete", node.name]))
    if (NAMESPACES / node.namespace).exists():
        run(["ip", "netns", "delete", node.namespace])


def down(settings: Settings) -> None:
    """Remove the links and namespaces, whatever of them is there, those of all nodes that there ever were included."""
    if Path(f"/sys/class/net/{settings.outer_link}").exists():
        run(["ip", "link", "delete", settings.outer_link])
    for path in (*NAMESPACES.glob(f"{settings.name}-node-*"), settings.namespace_path):
        if path.exists():
            run(["ip", "netns", "delete", path.name])


def _bridge(node: Node) -> str:
    """The pods' bridge. The route is made last: it says that all the rest is there."""
    bridge = node.settings.bridge
    return f"""
        link add {bridge} address {node.bridge_hardware_address} type bridge
        address add {node.address}/24 dev {bridge}
        link set {bridge} up
        route add {SERVICE_NETWORK} dev {bridge}
    """


def _near(node: Node) -> str:
    """The testbed's end of a node's link; no packet bears it, as each side sends with its own address."""
    return f"169.254.{node.number}.1"


def _far(node: Node) -> str:
    return f"169.254.{node.number}.2"


def _complete(settings: Settings) -> bool:
    if not settings.namespace_path.exists() or not Path(f"/sys/class/net/{settings.outer_link}").exists():
        return False
    return SERVICE_NETWORK in run(settings.inside(["ip", "route", "show"]))


def _joined(node: Node) -> bool:
    """The near end lives as long as the far one does."""
    if not (NAMESPACES / node.namespace).exists() or node.name not in _links(node.settings):
        return False
    return SERVICE_NETWORK in run(node.inside(["ip", "route", "show"]))


def _links(settings: Settings) -> list[str]:
    """The links of the testbed's namespace, by name."""
    if not settings.namespace_path.exists():
        return []
    lines = run(settings.inside(["ip", "-brief", "link", "show"])).splitlines()
    return [line.split()[0].partition("@")[0] for line in lines]
