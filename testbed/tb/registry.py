"""Real OCI registries inside the testbed: Debian's docker-registry, one process and one store for each port.

Clients outside reach it at the testbed's address, pods at the node's address.
"""

import json
from pathlib import Path

from tb import cluster, host, network, process
from tb.api import port_is_free
from tb.errors import TestbedError
from tb.settings import Settings

DEFAULT_PORT = 5000
PREFIX = "registry-"


def up(settings: Settings, port: int, *, htpasswd: Path | None, tls: bool) -> str:
    """Start a registry on this port unless it runs, and return its address.

    With `htpasswd` it asks for a login of that file, with `tls` it has a certificate of the testbed's authority.
    """
    host.demand(host.REGISTRY_NEED)
    if not settings.kubeconfig.exists():
        raise TestbedError("a registry lives in the testbed's network; bring the testbed up first")
    name = f"{PREFIX}{port}"
    with cluster.alone(settings):
        network.up(settings)
        path = settings.config / f"{name}.json"
        wanted = json.dumps(_configuration(settings, port, htpasswd, tls), indent=2)
        if process.alive(settings, name) and path.read_text() != wanted:
            process.stop(settings, name)
        if not process.alive(settings, name):
            path.write_text(wanted)
            process.start(settings, name, ["docker-registry", "serve", str(path)], {"OTEL_TRACES_EXPORTER": "none"})
        cluster.wait(settings, name, f"the registry on port {port}", lambda: not port_is_free(settings, port))
    return f"{settings.address}:{port}"


def down(settings: Settings, port: int | None) -> None:
    """Stop the registry on this port, or all of them; what was pushed stays until the testbed goes."""
    with cluster.alone(settings):
        for name in process.names(settings):
            if name.startswith(PREFIX) and port in (None, int(name.removeprefix(PREFIX))):
                process.stop(settings, name)


def _configuration(settings: Settings, port: int, htpasswd: Path | None, tls: bool) -> dict[str, object]:
    http: dict[str, object] = {"addr": f"0.0.0.0:{port}"}
    if tls:
        http["tls"] = {"certificate": str(settings.pki / "serving.crt"), "key": str(settings.pki / "serving.key")}
    configuration: dict[str, object] = {
        "version": 0.1,
        "log": {"level": "warn", "accesslog": {"disabled": True}},
        "storage": {
            "filesystem": {"rootdirectory": str(settings.data / f"registry/{port}")},
            "delete": {"enabled": True},
        },
        "http": http,
    }
    if htpasswd is not None:
        configuration["auth"] = {"htpasswd": {"realm": "testbed", "path": str(htpasswd.absolute())}}
    return configuration
