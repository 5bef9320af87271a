"""The testbed's network namespace: no default route, so nothing in it can leave the machine.

The host gets one veth link with a /30 address and nothing else; its routes, firewall and forwarding stay as they are.
"""

from pathlib import Path

from tb.command import run
from tb.settings import SERVICE_NETWORK, Settings


def up(settings: Settings) -> None:
    """Make the namespace, unless it is there and whole; one that is half made is made anew."""
    if _complete(settings):
        return
    down(settings)
    run(["ip", "netns", "add", settings.name])
    run(
        [
            "ip",
            "link",
            "add",
            settings.outer_link,
            "type",
            "veth",
            "peer",
            "name",
            settings.inner_link,
            "netns",
            settings.name,
        ]
    )
    run(["ip", "address", "add", f"{settings.outer_address}/30", "dev", settings.outer_link])
    run(["ip", "link", "set", settings.outer_link, "up"])
    batch = f"""
        link set lo up
        address add {settings.address}/30 dev {settings.inner_link}
        link set {settings.inner_link} up
        link add {settings.bridge} address {settings.bridge_hardware_address} type bridge
        address add {settings.node_address}/24 dev {settings.bridge}
        link set {settings.bridge} up
        route add {SERVICE_NETWORK} dev {settings.bridge}
    """
    run(settings.inside(["ip", "-batch", "-"]), text=batch)
    run(settings.inside(["sysctl", "-q", "-w", "net.ipv4.ip_forward=1"]))


def down(settings: Settings) -> None:
    """Remove the link and the namespace, whatever of them is there."""
    if Path(f"/sys/class/net/{settings.outer_link}").exists():
        run(["ip", "link", "delete", settings.outer_link])
    if settings.namespace_path.exists():
        run(["ip", "netns", "delete", settings.name])


def _complete(settings: Settings) -> bool:
    """The route is what is made last, so where it is, all the rest is."""
    if not settings.namespace_path.exists() or not Path(f"/sys/class/net/{settings.outer_link}").exists():
        return False
    return SERVICE_NETWORK in run(settings.inside(["ip", "route", "show"]))
