"""containerd, the kubelet, kube-proxy, CoreDNS and the volume provisioner: what a cluster needs to run pods."""

import json
from pathlib import Path

from tb import cgroups, containers
from tb.api import Api, resolves
from tb.component import Component, Level, kubernetes
from tb.settings import DOMAIN, NODE, Settings

KUBELET_PORT = 10250
KUBELET_HEALTH_PORT = 10248
PROXY_HEALTH_PORT = 10256
PROVISIONER_PORT = 10260


def _kubelet_configuration(settings: Settings) -> dict[str, object]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "port": KUBELET_PORT,
        "healthzBindAddress": settings.address,
        "healthzPort": KUBELET_HEALTH_PORT,
        "tlsCertFile": str(settings.pki / "serving.crt"),
        "tlsPrivateKeyFile": str(settings.pki / "serving.key"),
        "authentication": {"anonymous": {"enabled": False}, "x509": {"clientCAFile": str(settings.pki / "ca.crt")}},
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{settings.containerd_socket}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{settings.name}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "makeIPTablesUtilChains": False,
        "oomScoreAdj": 0,
        "clusterDNS": [settings.node_address],
        "clusterDomain": DOMAIN,
        "resolvConf": "",
        "podLogsDir": str(settings.data / "pod-logs"),
        "volumePluginDir": str(settings.data / "kubelet-plugins"),
        "serializeImagePulls": False,
        # A testbed's machine is small and shared: pods stay until the disk or the memory is really gone.
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        # A container that ends comes back after a second at most, so that tests that kill stay short.
        "crashLoopBackOff": {"maxContainerRestartPeriod": "1s"},
    }


def _prepare_kubelet(settings: Settings) -> None:
    cgroups.up(settings)
    containers.load_pause(settings)
    for folder in ("pod-logs", "kubelet-plugins"):
        (settings.data / folder).mkdir(parents=True, exist_ok=True)
    _write(settings, "kubelet.json", json.dumps(_kubelet_configuration(settings), indent=2))


def _kubelet(settings: Settings) -> list[str]:
    return kubernetes(
        settings,
        "kubelet",
        {
            "kubeconfig": settings.pki / "kubelet.kubeconfig",
            "config": settings.config / "kubelet.json",
            "root-dir": settings.data / "kubelet",
            "cert-dir": settings.data / "kubelet/pki",
            "hostname-override": NODE,
            "node-ip": settings.node_address,
        },
    )


def _kubelet_ready(settings: Settings, api: Api) -> bool:
    """Healthy, and the node has told the API server that pods can run on it."""
    if not api.healthy(KUBELET_HEALTH_PORT, "/healthz", scheme="http"):
        return False
    found = api.get(f"/api/v1/nodes/{NODE}") or {}
    conditions = found.get("status", {}).get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _prepare_proxy(settings: Settings) -> None:
    configuration = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "hostnameOverride": NODE,
        "clientConnection": {"kubeconfig": str(settings.pki / "kube-proxy.kubeconfig")},
        "clusterCIDR": f"{settings.pod_prefix}.0/24",
        "healthzBindAddress": f"{settings.address}:{PROXY_HEALTH_PORT}",
        # These are the machine's, not the namespace's: leave them as they are.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }
    _write(settings, "kube-proxy.json", json.dumps(configuration, indent=2))


def _proxy(settings: Settings) -> list[str]:
    return kubernetes(settings, "kube-proxy", {"config": settings.config / "kube-proxy.json"})


def _proxy_ready(settings: Settings, api: Api) -> bool:
    return api.healthy(PROXY_HEALTH_PORT, "/healthz", scheme="http")


def _prepare_coredns(settings: Settings) -> None:
    _write(
        settings,
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


def _write(settings: Settings, name: str, text: str) -> Path:
    settings.config.mkdir(parents=True, exist_ok=True)
    path = settings.config / name
    path.write_text(text)
    return path


COMPONENTS = (
    Component("containerd", Level.NODE, containers.command, containers.ready, containers.prepare),
    Component("kubelet", Level.NODE, _kubelet, _kubelet_ready, _prepare_kubelet),
    Component("kube-proxy", Level.NODE, _proxy, _proxy_ready, _prepare_proxy),
    Component("coredns", Level.NODE, _coredns, _coredns_ready, _prepare_coredns),
    Component("provisioner", Level.NODE, _provisioner, _provisioner_ready),
)
