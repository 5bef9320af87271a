"""The testbed's own certificate authority, and a verified certificate for each that serves or logs in."""

import base64
import json
from pathlib import Path

from tb.command import run
from tb.nodes import Node
from tb.settings import API_SERVICE_ADDRESS, DOMAIN, Settings

DAYS = "3650"
# Who logs in to the API server: file name, then the subject that RBAC and the node authorizer look at.
CLIENTS = {
    "admin": "/O=system:masters/CN=testbed-admin",
    "apiserver-to-kubelet": "/O=system:masters/CN=testbed-apiserver",
    "kube-controller-manager": "/CN=system:kube-controller-manager",
    "kube-scheduler": "/CN=system:kube-scheduler",
    "kube-proxy": "/CN=system:kube-proxy",
    "coredns": "/CN=testbed:coredns",
    "provisioner": "/CN=testbed:provisioner",
}
CURVE = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]


def serving_names(settings: Settings) -> str:
    """What the serving certificate is valid for, in openssl's notation."""
    addresses = [settings.address, settings.node_address, settings.outer_address, API_SERVICE_ADDRESS, "127.0.0.1"]
    service = "kubernetes.default.svc"
    hosts = ["kubernetes", "kubernetes.default", service, f"{service}.{DOMAIN}", "localhost"]
    return ",".join([f"IP:{address}" for address in addresses] + [f"DNS:{host}" for host in hosts])


def up(settings: Settings) -> None:
    """Make everything once; kept for as long as the testbed exists."""
    if settings.kubeconfig.exists():
        return
    settings.pki.mkdir(parents=True, exist_ok=True)
    settings.pki.chmod(0o700)
    # An empty configuration of its own: the machine's may add extensions.
    (settings.pki / "openssl.cnf").write_text("[req]\ndistinguished_name = subject\n[subject]\n")
    _authority(settings)
    _issue(
        settings, "serving", "/CN=testbed", [f"subjectAltName={serving_names(settings)}", "extendedKeyUsage=serverAuth"]
    )
    for name, subject in CLIENTS.items():
        _client(settings, name, subject)
    private, public = settings.pki / "service-account.key", settings.pki / "service-account.pub"
    run(["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", str(private)])
    run(["openssl", "pkey", "-in", str(private), "-pubout", "-out", str(public)])
    (settings.state / "ca.crt").write_bytes((settings.pki / "ca.crt").read_bytes())
    _write_kubeconfig(settings, "admin", settings.kubeconfig)


def join(node: Node) -> None:
    """What the node's kubelet logs in with and serves with, made once."""
    settings, login = node.settings, node.part("kubelet")
    if (settings.pki / f"{login}-serving.crt").exists():
        return
    _client(settings, login, f"/O=system:nodes/CN=system:node:{node.name}")
    names = f"subjectAltName=IP:{node.address},DNS:{node.name}"
    _issue(settings, f"{login}-serving", f"/CN={node.name}", [names, "extendedKeyUsage=serverAuth"])


def _client(settings: Settings, name: str, subject: str) -> None:
    _issue(settings, name, subject, ["extendedKeyUsage=clientAuth"])
    _write_kubeconfig(settings, name, settings.pki / f"{name}.kubeconfig")


def _authority(settings: Settings) -> None:
    _request(
        settings,
        "ca",
        "/CN=testbed-ca",
        ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,digitalSignature"],
    )


def _issue(settings: Settings, name: str, subject: str, extensions: list[str]) -> None:
    signer = ["-CA", str(settings.pki / "ca.crt"), "-CAkey", str(settings.pki / "ca.key")]
    _request(settings, name, subject, ["basicConstraints=critical,CA:FALSE", *extensions], signer)


def _request(
    settings: Settings, name: str, subject: str, extensions: list[str], signer: list[str] | None = None
) -> None:
    added = [word for extension in extensions for word in ("-addext", extension)]
    files = ["-keyout", str(settings.pki / f"{name}.key"), "-out", str(settings.pki / f"{name}.crt")]
    base = ["openssl", "req", "-x509", "-config", str(settings.pki / "openssl.cnf"), "-days", DAYS, "-subj", subject]
    run([*base, *CURVE, *files, *added, *(signer or [])])


def _write_kubeconfig(settings: Settings, client: str, path: Path) -> None:
    """A kubeconfig with everything embedded; written as JSON, which every YAML reader takes."""

    def embedded(file: str) -> str:
        return base64.b64encode((settings.pki / file).read_bytes()).decode()

    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": settings.name,
        "clusters": [
            {
                "name": settings.name,
                "cluster": {"server": settings.server, "certificate-authority-data": embedded("ca.crt")},
            }
        ],
        "users": [
            {
                "name": client,
                "user": {
                    "client-certificate-data": embedded(f"{client}.crt"),
                    "client-key-data": embedded(f"{client}.key"),
                },
            }
        ],
        "contexts": [{"name": settings.name, "context": {"cluster": settings.name, "user": client}}],
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(content, indent=2) + "\n")
