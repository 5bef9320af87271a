"""What runs on a node: containerd, the kubelet and kube-proxy; beside the first, CoreDNS and the volume provisioner."""

import json
from collections.abc import Callable
from pathlib import Path

from tb import cgroups, containers, process
from tb.api import Api, resolves
from tb.component import Component, Level, kubernetes
from tb.nodes import Node
from tb.process import NODE_MARK, Process
from tb.settings import API_PORT, DOMAIN, LOST_AFTER, Settings

KUBELET_PORT = 10250
KUBELET_HEALTH_PORT = 10248
PROXY_HEALTH_PORT = 10256
PROVISIONER_PORT = 10260


def _kubelet_configuration(node: Node) -> dict[str, object]:
    settings, serving = node.settings, node.settings.pki / node.part("kubelet")
    found: dict[str, object] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "port": KUBELET_PORT,
        "healthzBindAddress": node.health_address,
        "healthzPort": KUBELET_HEALTH_PORT,
        "tlsCertFile": f"{serving}-serving.crt",
        "tlsPrivateKeyFile": f"{serving}-serving.key",
        "authentication": {"anonymous": {"enabled": False}, "x509": {"clientCAFile": str(settings.pki / "ca.crt")}},
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{node.containerd_socket}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{node.cgroup}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "makeIPTablesUtilChains": False,
        "oomScoreAdj": 0,
        "clusterDNS": [settings.node_address],
        "clusterDomain": DOMAIN,
        "resolvConf": "",
        "podLogsDir": str(node.data / "pod-logs"),
        "volumePluginDir": str(node.data / "kubelet-plugins"),
        "serializeImagePulls": False,
        # A testbed's machine is small and shared: pods stay until the disk or the memory is really gone.
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        # A container that ends comes back after a second at most, so that tests that kill stay short.
        "crashLoopBackOff": {"maxContainerRestartPeriod": "1s"},
    }
    if settings.nodes > 1:
        found["nodeLeaseDurationSeconds"] = LOST_AFTER  # it is renewed four times meanwhile
    return found


def _prepare_kubelet(node: Node) -> None:
    cgroups.up(node)
    containers.load_pause(node)
    for folder in ("pod-logs", "kubelet-plugins"):
        (node.data / folder).mkdir(parents=True, exist_ok=True)
    _write(node.config, "kubelet.json", json.dumps(_kubelet_configuration(node), indent=2))


def _kubelet(node: Node) -> list[str]:
    return kubernetes(
        node.settings,
        "kubelet",
        {
            "kubeconfig": node.settings.pki / f"{node.part('kubelet')}.kubeconfig",
            "config": node.config / "kubelet.json",
            "root-dir": node.data / "kubelet",
            "cert-dir": node.data / "kubelet/pki",
            "hostname-override": node.name,
            "node-ip": node.address,
        },
    )


def _kubelet_ready(node: Node, api: Api) -> bool:
    """Healthy, and the node has told the API server that pods can run on it."""
    if not _healthy(node, api, KUBELET_HEALTH_PORT):
        return False
    found = api.get(f"/api/v1/nodes/{node.name}") or {}
    conditions = found.get("status", {}).get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _healthy(node: Node, api: Api, port: int) -> bool:
    """Asked on the first node itself; the machine reaches the others through the API server alone."""
    if node.first:
        return api.healthy(port, "/healthz", scheme="http")
    return api.healthy(API_PORT, f"/api/v1/nodes/http:{node.name}:{port}/proxy/healthz")


def _prepare_proxy(node: Node) -> None:
    configuration = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "hostnameOverride": node.name,
        "clientConnection": {"kubeconfig": str(node.settings.pki / "kube-proxy.kubeconfig")},
        "clusterCIDR": node.settings.pod_network,
        "healthzBindAddress": f"{node.health_address}:{PROXY_HEALTH_PORT}",
        # These are the machine's, not the namespace's: leave them as they are.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }
    _write(node.config, "kube-proxy.json", json.dumps(configuration, indent=2))


def _proxy(node: Node) -> list[str]:
    return kubernetes(node.settings, "kube-proxy", {"config": node.config / "kube-proxy.json"})


def _proxy_ready(node: Node, api: Api) -> bool:
    return _healthy(node, api, PROXY_HEALTH_PORT)


def _prepare_coredns(settings: Settings) -> None:
    _write(
        settings.config,
        "Corefile",
        f""".:53 {{
    bind {settings.node_address} {settings.address}
    errors
    cache 5
    kubernetes {DOMAIN} in-addr.arpa ip6.arpa {{
        kubeconfig {settings.pki / "coredns.kubeconfig"} {settings.name}
        pods verified
        ttl 5
    }}
}}
""",
    )


def _coredns(settings: Settings) -> list[str]:
    return [str(settings.bin / "coredns"), "-conf", str(settings.config / "Corefile")]


def _coredns_ready(settings: Settings, api: Api) -> bool:
    return resolves(settings)


def _provisioner(settings: Settings) -> list[str]:
    return [
        str(settings.bin / "provisioner"),
        f"--kubeconfig={settings.pki / 'provisioner.kubeconfig'}",
        f"--directory={settings.data / 'volumes'}",
        f"--listen={settings.address}:{PROVISIONER_PORT}",
    ]


def _provisioner_ready(settings: Settings, api: Api) -> bool:
    return api.healthy(PROVISIONER_PORT, "/healthz", scheme="http")


def _write(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def containerd(node: Node) -> Component:
    return _component(node, "containerd", containers.command, containers.ready, containers.prepare)


def kubelet(node: Node) -> Component:
    return _component(node, "kubelet", _kubelet, _kubelet_ready, _prepare_kubelet)


def proxy(node: Node) -> Component:
    return _component(node, "kube-proxy", _proxy, _proxy_ready, _prepare_proxy)


def _component(
    node: Node,
    name: str,
    command: Callable[[Node], list[str]],
    ready: Callable[[Node, Api], bool],
    prepare: Callable[[Node], None],
) -> Component:
    return Component(
        node.part(name),
        Level.NODE,
        lambda _: command(node),
        lambda _, api: ready(node, api),
        lambda _: prepare(node),
        {NODE_MARK: node.name},
        node.namespace,
    )


def processes(node: Node) -> list[Process]:
    """All that runs on the node: its parts, what containerd has started, and what runs in its pods."""
    found = {one.pid: one for one in process.marked(node.settings.state, node.name)}
    return [*found.values(), *process.living(cgroups.members_of(node) - found.keys())]


OF_NODE = (containerd, kubelet, proxy)
"""What makes a node of it, in the order in which each needs the one before."""

BESIDE = (
    Component("coredns", Level.NODE, _coredns, _coredns_ready, _prepare_coredns),
    Component("provisioner", Level.NODE, _provisioner, _provisioner_ready),
)
