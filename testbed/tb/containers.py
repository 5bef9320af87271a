"""containerd of each node's own: its configuration, the pods' network, and the images loaded into it."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tb import process
from tb.api import Api
from tb.command import run, succeeds
from tb.errors import TestbedError
from tb.images import archive
from tb.nodes import Node, all_of
from tb.settings import PAUSE_IMAGE, Settings

CNI_PLUGINS = "/usr/lib/cni"
# Registries of the testbed speak plain HTTP on these ports; containerd must be told so.
PLAIN_REGISTRY_PORTS = range(5000, 5010)


def command(node: Node) -> list[str]:
    return ["containerd", "--config", str(node.config / "containerd.toml"), "--log-level", "warn"]


def ready(node: Node, api: Api) -> bool:
    if not node.containerd_socket.exists():
        return False
    return succeeds([*_ctr(node), "version"])


def prepare(node: Node) -> None:
    """Write containerd's configuration, the CNI network and the plain-HTTP registries."""
    settings, network = node.settings, node.config / "cni/10-testbed.conflist"
    network.parent.mkdir(parents=True, exist_ok=True)
    network.write_text(json.dumps(_network(node), indent=2))
    (node.config / "containerd.toml").write_text(_configuration(node))
    for address in (settings.address, settings.node_address):
        for port in PLAIN_REGISTRY_PORTS:
            hosts = settings.config / f"registries/{address}:{port}/hosts.toml"
            hosts.parent.mkdir(parents=True, exist_ok=True)
            hosts.write_text(f'server = "http://{address}:{port}"\n[host."http://{address}:{port}"]\n')


def load(settings: Settings, image: Path) -> str:
    """Import an image archive, so that pods can use it without a registry; returns what was imported.

    Each node gets it; one that does not run now gets what it lacks when it is started.
    """
    alive = [node for node in all_of(settings) if process.alive(settings, node.part("containerd"))]
    if not alive:
        raise TestbedError(
            "containerd does not run, so no image can be loaded; bring the testbed up at level node first"
        )
    if not image.exists():
        raise TestbedError(f"there is no image archive {image}")
    with ThreadPoolExecutor() as pool:
        said = list(pool.map(lambda node: _import(node, image), alive))
    return said[0]


def load_pause(node: Node) -> None:
    """The image that holds each pod's namespaces."""
    if PAUSE_IMAGE in images(node):
        return
    pause = (node.settings.bin / "pause").read_bytes()
    layer = archive.layer([archive.Entry.file("pause", pause, mode=0o755)])
    image = node.data / "pause.tar"
    archive.write(image, PAUSE_IMAGE, [layer], archive.Settings(entrypoint=("/pause",), user="65535:65535"))
    _import(node, image)
    image.unlink()


def share_images(node: Node) -> None:
    """Give the node what the others have and it lacks."""
    for other in all_of(node.settings):
        if other == node or not process.alive(node.settings, other.part("containerd")):
            continue
        if lacking := sorted(images(other) - images(node)):
            archives = node.data / "images.tar"
            run([*_ctr(other), "images", "export", str(archives), *lacking])
            _import(node, archives)
            archives.unlink()


def _import(node: Node, image: Path) -> str:
    return run([*_ctr(node), "images", "import", str(image)])


def images(node: Node) -> set[str]:
    """By the names that pods use; by its digest each has another, which follows from these."""
    names = run([*_ctr(node), "images", "list", "--quiet"]).split()
    return {name for name in names if not name.startswith("sha256:")}


def _ctr(node: Node) -> list[str]:
    return ["ctr", "--address", str(node.containerd_socket), "--namespace", "k8s.io"]


def _configuration(node: Node) -> str:
    data = node.data / "containerd"
    return f"""version = 2
root = "{data / "root"}"
state = "{node.containerd_state}"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing"]

[grpc]
address = "{node.containerd_socket}"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE_IMAGE}"
stream_server_address = "127.0.0.1"
stream_server_port = "0"
netns_mounts_under_state_dir = true
# Without CAP_SYS_RESOURCE no process may lower its score, and every pod would fail.
restrict_oom_score_adj = true

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
# A privileged pod is root, but gets no device of the machine.
privileged_without_host_devices = true

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
Root = "{data / "runc"}"

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{CNI_PLUGINS}"
conf_dir = "{node.config / "cni"}"

[plugins."io.containerd.grpc.v1.cri".registry]
config_path = "{node.settings.config / "registries"}"
"""


def _network(node: Node) -> dict[str, object]:
    pods = {"subnet": f"{node.pod_prefix}.0/24", "rangeStart": f"{node.pod_prefix}.10", "gateway": node.address}
    bridge = {
        "type": "bridge",
        "bridge": node.settings.bridge,
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "dataDir": str(node.data / "pod-addresses"),
            "ranges": [[pods]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "0.4.0", "name": node.settings.name, "plugins": [bridge, ports]}
