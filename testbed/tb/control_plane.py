"""etcd, the API server, the controller manager and the scheduler."""

import json

from tb.api import Api
from tb.component import Component, Level, kubernetes
from tb.settings import API_PORT, EVICTED_AFTER, LOST_AFTER, SERVICE_NETWORK, Settings

ETCD = "http://127.0.0.1:2379"
ETCD_HEALTH_PORT = 2381
CONTROLLER_MANAGER_PORT = 10257
SCHEDULER_PORT = 10259
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}


def _etcd(settings: Settings) -> list[str]:
    return kubernetes(
        settings,
        "etcd",
        {
            "name": settings.name,
            "data-dir": settings.data / "etcd",
            "listen-client-urls": ETCD,
            "advertise-client-urls": ETCD,
            "listen-peer-urls": "http://127.0.0.1:2380",
            "initial-advertise-peer-urls": "http://127.0.0.1:2380",
            "initial-cluster": f"{settings.name}=http://127.0.0.1:2380",
            "listen-metrics-urls": f"http://{settings.address}:{ETCD_HEALTH_PORT}",
            "log-level": "warn",
            # A testbed is thrown away, so its data need not survive a power cut.
            "unsafe-no-fsync": "true",
        },
    )


def _write_audit_policy(settings: Settings) -> None:
    settings.config.mkdir(parents=True, exist_ok=True)
    (settings.config / "audit-policy.json").write_text(json.dumps(AUDIT_POLICY))


def _apiserver(settings: Settings) -> list[str]:
    pki = settings.pki
    return kubernetes(
        settings,
        "kube-apiserver",
        {
            "etcd-servers": ETCD,
            "bind-address": "0.0.0.0",
            # Said outright, since there is no default route to guess it from.
            "advertise-address": settings.address,
            "secure-port": API_PORT,
            "cert-dir": settings.data / "apiserver",
            "tls-cert-file": pki / "serving.crt",
            "tls-private-key-file": pki / "serving.key",
            "client-ca-file": pki / "ca.crt",
            "kubelet-certificate-authority": pki / "ca.crt",
            "kubelet-client-certificate": pki / "apiserver-to-kubelet.crt",
            "kubelet-client-key": pki / "apiserver-to-kubelet.key",
            # The node's name resolves nowhere, so exec and logs go to its address.
            "kubelet-preferred-address-types": "InternalIP",
            "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
            "service-account-key-file": pki / "service-account.pub",
            "service-account-signing-key-file": pki / "service-account.key",
            "service-cluster-ip-range": SERVICE_NETWORK,
            "authorization-mode": "Node,RBAC",
            "enable-admission-plugins": "NodeRestriction",
            "allow-privileged": "true",
            "audit-policy-file": settings.config / "audit-policy.json",
            "audit-log-path": settings.audit_log,
            "audit-log-format": "json",
            "audit-log-maxsize": 2000,
            # So that what others change in objects on their way in can be tried.
            "feature-gates": "MutatingAdmissionPolicy=true",
            "runtime-config": "admissionregistration.k8s.io/v1beta1=true",
            **_tolerations(settings),
        },
    )


def _tolerations(settings: Settings) -> dict[str, object]:
    """How long a pod stays on a lost node, unless it says so itself. A node that is alone keeps its pods."""
    if settings.nodes == 1:
        return {}
    return {f"default-{taint}-toleration-seconds": EVICTED_AFTER for taint in ("not-ready", "unreachable")}


def _monitoring(settings: Settings) -> dict[str, object]:
    """After how long a silent node counts as lost."""
    if settings.nodes == 1:
        return {}
    return {"node-monitor-period": "2s", "node-monitor-grace-period": f"{LOST_AFTER}s"}


def _controller_manager(settings: Settings) -> list[str]:
    kubeconfig = settings.pki / "kube-controller-manager.kubeconfig"
    return kubernetes(
        settings,
        "kube-controller-manager",
        {
            "kubeconfig": kubeconfig,
            "authentication-kubeconfig": kubeconfig,
            "authorization-kubeconfig": kubeconfig,
            "leader-elect": "false",
            "root-ca-file": settings.pki / "ca.crt",
            "service-account-private-key-file": settings.pki / "service-account.key",
            "use-service-account-credentials": "true",
            "cluster-signing-cert-file": settings.pki / "ca.crt",
            "cluster-signing-key-file": settings.pki / "ca.key",
            **_monitoring(settings),
            **_serving(settings, CONTROLLER_MANAGER_PORT),
        },
    )


def _scheduler(settings: Settings) -> list[str]:
    kubeconfig = settings.pki / "kube-scheduler.kubeconfig"
    return kubernetes(
        settings,
        "kube-scheduler",
        {
            "kubeconfig": kubeconfig,
            "authentication-kubeconfig": kubeconfig,
            "authorization-kubeconfig": kubeconfig,
            "leader-elect": "false",
            **_serving(settings, SCHEDULER_PORT),
        },
    )


def _serving(settings: Settings, port: int) -> dict[str, object]:
    return {
        "bind-address": settings.address,
        "secure-port": port,
        "tls-cert-file": settings.pki / "serving.crt",
        "tls-private-key-file": settings.pki / "serving.key",
    }


def _etcd_ready(settings: Settings, api: Api) -> bool:
    return api.healthy(ETCD_HEALTH_PORT, "/health", scheme="http")


def _apiserver_ready(settings: Settings, api: Api) -> bool:
    return api.healthy(API_PORT, "/readyz")


def _controller_manager_ready(settings: Settings, api: Api) -> bool:
    """Healthy, and the service account that every pod of the default namespace needs is there."""
    return api.healthy(CONTROLLER_MANAGER_PORT, "/healthz") and bool(
        api.get("/api/v1/namespaces/default/serviceaccounts/default")
    )


def _scheduler_ready(settings: Settings, api: Api) -> bool:
    return api.healthy(SCHEDULER_PORT, "/readyz")


COMPONENTS = (
    Component("etcd", Level.API, _etcd, _etcd_ready),
    Component("apiserver", Level.API, _apiserver, _apiserver_ready, _write_audit_policy),
    Component("controller-manager", Level.CONTROL, _controller_manager, _controller_manager_ready),
    Component("scheduler", Level.CONTROL, _scheduler, _scheduler_ready),
)
