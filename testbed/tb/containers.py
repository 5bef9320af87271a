"""containerd of the testbed's own: its configuration, the pods' network, and the images loaded into it."""

import json
from pathlib import Path

from tb import process
from tb.api import Api
from tb.command import run, succeeds
from tb.errors import TestbedError
from tb.images import archive
from tb.settings import PAUSE_IMAGE, Settings

CNI_PLUGINS = "/usr/lib/cni"
# Registries of the testbed speak plain HTTP on these ports; containerd must be told so.
PLAIN_REGISTRY_PORTS = range(5000, 5010)


def command(settings: Settings) -> list[str]:
    return ["containerd", "--config", str(settings.config / "containerd.toml"), "--log-level", "warn"]


def ready(settings: Settings, api: Api) -> bool:
    if not settings.containerd_socket.exists():
        return False
    return succeeds([*_ctr(settings), "version"])


def prepare(settings: Settings) -> None:
    """Write containerd's configuration, the CNI network and the plain-HTTP registries."""
    settings.config.mkdir(parents=True, exist_ok=True)
    (settings.config / "containerd.toml").write_text(_configuration(settings))
    network = settings.config / "cni/10-testbed.conflist"
    network.parent.mkdir(parents=True, exist_ok=True)
    network.write_text(json.dumps(_network(settings), indent=2))
    for address in (settings.address, settings.node_address):
        for port in PLAIN_REGISTRY_PORTS:
            hosts = settings.config / f"registries/{address}:{port}/hosts.toml"
            hosts.parent.mkdir(parents=True, exist_ok=True)
            hosts.write_text(f'server = "http://{address}:{port}"\n[host."http://{address}:{port}"]\n')


def load(settings: Settings, image: Path) -> str:
    """Import an image archive, so that pods can use it without a registry; returns what was imported."""
    if not process.alive(settings, "containerd"):
        raise TestbedError(
            "containerd does not run, so no image can be loaded; bring the testbed up at level node first"
        )
    if not image.exists():
        raise TestbedError(f"there is no image archive {image}")
    return run([*_ctr(settings), "images", "import", str(image)])


def load_pause(settings: Settings) -> None:
    """The image that holds each pod's namespaces."""
    if PAUSE_IMAGE in run([*_ctr(settings), "images", "list", "--quiet"]).split():
        return
    layer = archive.layer([archive.Entry.file("pause", (settings.bin / "pause").read_bytes(), mode=0o755)])
    image = settings.data / "pause.tar"
    archive.write(image, PAUSE_IMAGE, [layer], archive.Settings(entrypoint=("/pause",), user="65535:65535"))
    load(settings, image)
    image.unlink()


def _ctr(settings: Settings) -> list[str]:
    return ["ctr", "--address", str(settings.containerd_socket), "--namespace", "k8s.io"]


def _configuration(settings: Settings) -> str:
    data = settings.data / "containerd"
    return f"""version = 2
root = "{data / "root"}"
state = "{data / "run"}"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing"]

[grpc]
address = "{settings.containerd_socket}"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE_IMAGE}"
stream_server_address = "127.0.0.1"
stream_server_port = "0"
netns_mounts_under_state_dir = true
# Without CAP_SYS_RESOURCE no process may lower its score, and every pod would fail.
restrict_oom_score_adj = true

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
Root = "{data / "runc"}"

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{CNI_PLUGINS}"
conf_dir = "{settings.config / "cni"}"

[plugins."io.containerd.grpc.v1.cri".registry]
config_path = "{settings.config / "registries"}"
"""


def _network(settings: Settings) -> dict[str, object]:
    pods = {
        "subnet": f"{settings.pod_prefix}.0/24",
        "rangeStart": f"{settings.pod_prefix}.10",
        "gateway": settings.node_address,
    }
    bridge = {
        "type": "bridge",
        "bridge": settings.bridge,
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "dataDir": str(settings.data / "pod-addresses"),
            "ranges": [[pods]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "0.4.0", "name": settings.name, "plugins": [bridge, ports]}
