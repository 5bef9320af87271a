"""The pods of an installation: hook, server and agent, as a template of each role. Pure.

No password is in any: agents read Secrets from files that are kept in memory.
"""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.api import builtin, quantities
from moorage.children import bodies, volumes
from moorage.operators.opencga import dialect as dialects
from moorage.operators.opencga import names, types

from . import automation
from .basis import Wanted

START_PERIOD = 5
"""Seconds between probes of a pod that starts."""

GRACE = 90
"""Seconds that a server gets to stop in order, with what its agent has begun."""

LINGER = 5
"""Seconds for which Services may send queries to a pod that is to end, or that is not ready any more."""

MOST_DRAIN = 120
"""Seconds that a member waits at most until it is not ready, before its server is restarted."""

METRICS = "metrics"
"""What the port is called at which an agent tells Prometheus."""

TRUSTED, SHOWN = "truststore.jks", "keystore.jks"
"""What agents call the files with the authorities that the server's JVM trusts, and with the certificate it shows."""

NO_PASSWORD = "changeit"  # noqa: S105 - it is public
"""Of the keystore, whose format wants one; what keeps its key is that the file is in the pod's memory."""

VERSION = f"{names.GROUP}/version"
"""Annotation of a pod template: the version of OpenCGA in its image."""


def template(wanted: Wanted, role: str, version: str, resources: types.Resources) -> dict[str, Any]:
    """What moorage wants of a pod of that role, by itself."""
    spec: dict[str, Any] = {
        "initContainers": [_hook(wanted)],
        "containers": [_server(wanted, role, version, resources), _agent(wanted, role, version)],
        "terminationGracePeriodSeconds": GRACE,
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsUser": wanted.said.container.user,
            "runAsNonRoot": True,
            "fsGroup": wanted.said.container.user,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumes": _volumes(wanted, role),
    }
    if account := _account(wanted, role):
        spec["serviceAccountName"] = account
    if role == names.REST and (apart := bodies.apart({}, wanted.spec.anti_affinity, wanted.role(role))):
        spec["affinity"] = apart
    annotations = {VERSION: version, builtin.DEFAULT_CONTAINER: container_of(role, wanted.said)}
    metadata = {"labels": {**wanted.labels, names.ROLE: role}, "annotations": annotations}
    return {"metadata": metadata, "spec": spec}


def _volumes(wanted: Wanted, role: str) -> list[dict[str, Any]]:
    memory: dict[str, Any] = {"emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}
    made: list[dict[str, Any]] = [
        {"name": "hooks", "emptyDir": {}},
        {"name": "healthstatus", "emptyDir": {}},
        {"name": "tmp", "emptyDir": {}},
        {"name": "conf", **memory},
        {
            "name": "automation-config",
            "secret": {"secretName": names.configuration(wanted.name), "defaultMode": 0o440},
        },
        {"name": "credentials", "projected": {"defaultMode": 0o440, "sources": _credentials(wanted)}},
    ]
    if _is_entered(wanted, role):
        made.append({"name": "people", **memory})
    if _account(wanted, role):
        made.append({"name": "api", "projected": {"defaultMode": 0o440, "sources": _API}})
    if shared := wanted.spec.volumes.shared:
        made.append({"name": "shared", "persistentVolumeClaim": {"claimName": shared.claim_name}})
    return made


_API: list[dict[str, Any]] = [
    {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
]
"""What a client of the API server looks for, as Kubernetes itself would mount it, but into one container."""

_API_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"


def _account(wanted: Wanted, role: str) -> str:
    """As whom jobs are made by who makes them: the MASTER."""
    return wanted.spec.client.service_account_name if role == names.MASTER else ""


def _is_entered(wanted: Wanted, role: str) -> bool:
    """Whether people work in it: what their tools keep, such as sessions, is in memory, and goes with the pod."""
    return role == names.MASTER and wanted.spec.client.shell


def _entered(wanted: Wanted, role: str) -> list[dict[str, Any]]:
    if not _is_entered(wanted, role):
        return []
    return [{"name": "OPENCGA_SHELL", "value": "on"}, {"name": "HOME", "value": wanted.said.container.people}]


def _credentials(wanted: Wanted) -> list[dict[str, Any]]:
    """Files, each of which an agent finds where the document says."""
    spec, admin = wanted.spec, automation.admin_secret(wanted.name, wanted.spec)
    made = [
        _source("secret", names.agent_token(wanted.name), "agent", names.AGENT_TOKEN_KEY),
        _source("secret", admin.name, "admin", admin.key),
    ]
    if ref := spec.database.credentials_secret_ref:
        made.append(_source("secret", ref.name, "database", ref.user_key, ref.password_key))
    if authority := automation.authority(spec):
        kind = "secret" if authority.resource == builtin.SECRET else "configMap"
        made.append(_source(kind, authority.name, "ca", automation.AUTHORITY_KEY))
    if name := automation.shown(spec):
        made.append(_source("secret", name, "client", *automation.CERTIFICATE_KEYS))
    return made


def _source(kind: str, name: str, folder: str, *keys: str) -> dict[str, Any]:
    return {kind: {"name": name, "items": [{"key": key, "path": f"{folder}/{key}"} for key in keys]}}


_SAFE = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


def _mount(name: str, path: str, **rest: Any) -> dict[str, Any]:
    return {"name": name, "mountPath": path, **rest}


def _hook(wanted: Wanted) -> dict[str, Any]:
    """Copies hook and probe, by the hook's own word: there is no shell in its image."""
    inside = wanted.said.container
    return {
        "name": inside.hook,
        "image": wanted.said.images.hook,
        "command": [
            inside.hook_source,
            "copy",
            f"{inside.hook_source}={inside.hooks}/{inside.hook_name}",
            f"{inside.probe_source}={inside.hooks}/{inside.probe_name}",
        ],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}},
        "securityContext": _SAFE,
        "volumeMounts": [_mount("hooks", inside.hooks)],
    }


def _data_mounts(wanted: Wanted) -> list[dict[str, Any]]:
    data = wanted.said.container.data
    made = [_mount(names.CLAIM, data)]
    if wanted.spec.volumes.shared:
        made += [_mount("shared", f"{data}/{each}", subPath=each) for each in ("sessions", "variants")]
    return made


def _server(wanted: Wanted, role: str, version: str, resources: types.Resources) -> dict[str, Any]:
    """The hook is its first process. It knows whether the server should run: a database that is gone kills nobody."""
    inside, ports = wanted.said.container, wanted.said.ports
    hook = f"{inside.hooks}/{inside.hook_name}"
    startup = max(3, int(quantities.seconds(wanted.spec.timeouts.startup) // START_PERIOD))
    port = _container_port("rest", ports.rest) if role == names.REST else _container_port("monitor", ports.monitor)
    return {
        "name": container_of(role, wanted.said),
        "image": f"{wanted.said.images.server}:{version}",
        "command": [hook],
        "env": [
            _field("POD_NAME", "metadata.name"),
            {"name": "AGENT_STATUS_FILEPATH", "value": f"{inside.server_health}/{inside.health_file}"},
            {"name": "OPENCGA_HOME", "value": inside.home},
            {"name": "OPENCGA_ROLE", "value": role},
            {"name": "OPENCGA_VERSION", "value": version},
            {"name": "OPENCGA_CONF", "value": inside.conf},
            {"name": "OPENCGA_HOOK", "value": f"{inside.hooks}/{inside.socket}"},
            {"name": "OPENCGA_PING", "value": _ping(role, wanted.said)},
            {"name": "OPENCGA_STARTUP_SECONDS", "value": str(startup * START_PERIOD)},
            {"name": "OPENCGA_LINGER_SECONDS", "value": str(LINGER if role == names.REST else 0)},
            *_entered(wanted, role),
            *_trust(wanted),
        ],
        "ports": [port],
        "resources": _amounts(resources),
        "startupProbe": {"exec": {"command": [hook, "started"]}, "periodSeconds": START_PERIOD, "timeoutSeconds": 5}
        | {"failureThreshold": startup},
        "livenessProbe": {"exec": {"command": [hook, "alive"]}, "periodSeconds": 20, "timeoutSeconds": 10}
        | {"failureThreshold": 6},
        **_serving(role, hook),
        "securityContext": _SAFE,
        "volumeMounts": [
            _mount("hooks", inside.hooks),
            _mount("healthstatus", inside.server_health),
            _mount("automation-config", inside.configuration, readOnly=True),
            _mount("conf", inside.conf, readOnly=True),
            _mount("tmp", "/tmp"),  # noqa: S108 - in the container, of its own
            *([_mount("people", inside.people)] if _is_entered(wanted, role) else ()),
            *([_mount("api", _API_PATH, readOnly=True)] if _account(wanted, role) else ()),
            *_data_mounts(wanted),
        ],
    }


def _serving(role: str, hook: str) -> dict[str, Any]:
    """A REST server that is switched off gets no queries, although its agent, which has done its work, is ready."""
    if role != names.REST:
        return {}
    probe = {"exec": {"command": [hook, "serving"]}, "periodSeconds": 3, "timeoutSeconds": 3, "failureThreshold": 2}
    return {"readinessProbe": probe}


def _trust(wanted: Wanted) -> list[dict[str, Any]]:
    """The product has no key for an authority or a certificate: its JVM is told where the agent writes them."""
    conf, options = wanted.said.container.conf, []
    if automation.authority(wanted.spec) is not None:
        options += [f"-Djavax.net.ssl.trustStore={conf}/{TRUSTED}", "-Djavax.net.ssl.trustStoreType=JKS"]
    if automation.shown(wanted.spec):
        options += [f"-Djavax.net.ssl.keyStore={conf}/{SHOWN}", "-Djavax.net.ssl.keyStoreType=JKS"]
        options.append(f"-Djavax.net.ssl.keyStorePassword={NO_PASSWORD}")
    return [{"name": "JDK_JAVA_OPTIONS", "value": " ".join(options)}] if options else []


def _ping(role: str, said: dialects.Dialect) -> str:
    """Where the server says that it is well, to who is in its pod."""
    port, path = (said.ports.rest, said.paths.ping) if role == names.REST else (said.ports.monitor, said.paths.monitor)
    return f"http://localhost:{port}{said.paths.context}{path}"


def _agent(wanted: Wanted, role: str, version: str) -> dict[str, Any]:
    inside, ports, metrics = wanted.said.container, wanted.said.ports, wanted.spec.metrics
    health = f"{inside.agent_health}/{inside.health_file}"
    return {
        "name": inside.agent,
        "image": wanted.said.images.agent,
        "args": [
            f"-healthCheckFilePath={health}",
            f"-serveStatusPort={ports.agent}",
            f"-cluster={inside.configuration}/{inside.configuration_file}",
            "-skipMongoStart",
            "-noDaemonize",
            "-useLocalOpencgaTools",
        ],
        "env": [
            _field("POD_NAME", "metadata.name"),
            _field("POD_NAMESPACE", "metadata.namespace"),
            {"name": "HEADLESS_AGENT", "value": "true"},
            {"name": "AGENT_STATUS_FILEPATH", "value": health},
            {"name": "OPENCGA_ROLE", "value": role},
            {"name": "OPENCGA_VERSION", "value": version},
            {"name": "OPENCGA_CONF", "value": inside.conf},
            {"name": "OPENCGA_DATA", "value": inside.data},
            {"name": "OPENCGA_CONFIGURATION", "value": f"{inside.configuration}/{inside.configuration_file}"},
            {"name": "OPENCGA_HOOK", "value": f"{inside.agent_scripts}/{inside.socket}"},
            {"name": "OPENCGA_TOKEN_FILE", "value": f"{inside.credentials}/agent/{names.AGENT_TOKEN_KEY}"},
            {"name": "OPENCGA_TOOL", "value": inside.tool},
            {"name": "OPENCGA_PING", "value": _ping(role, wanted.said)},
            *([{"name": "OPENCGA_METRICS_PORT", "value": str(metrics.port)}] if metrics.enabled else []),
        ],
        "ports": [
            _container_port("agent", ports.agent),
            *([_container_port(METRICS, metrics.port)] if metrics.enabled else []),
        ],
        "resources": {"requests": {"cpu": "20m", "memory": "40Mi"}, "limits": {"memory": "128Mi"}},
        "readinessProbe": {"exec": {"command": [f"{inside.agent_scripts}/{inside.probe_name}"]}, "timeoutSeconds": 5}
        | {"initialDelaySeconds": 5, "periodSeconds": 5, "failureThreshold": 3},
        "securityContext": _SAFE,
        "volumeMounts": [
            _mount("hooks", inside.agent_scripts),  # the hook's socket is there too
            _mount("healthstatus", inside.agent_health),
            _mount("automation-config", inside.configuration, readOnly=True),
            _mount("credentials", inside.credentials, readOnly=True),
            _mount("conf", inside.conf),
            _mount("tmp", "/tmp"),  # noqa: S108 - in the container, of its own
            *_data_mounts(wanted),
        ],
    }


def _container_port(name: str, number: int) -> dict[str, Any]:
    return {"name": name, "containerPort": number, "protocol": "TCP"}


def _field(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _amounts(resources: types.Resources) -> dict[str, Any]:
    told = {
        "limits": {k: v for k, v in msgspec.to_builtins(resources.limits).items() if v},
        "requests": {k: v for k, v in msgspec.to_builtins(resources.requests).items() if v},
    }
    return {key: value for key, value in told.items() if value}


# --- beside what a user lays over it ------------------------------------------------------------------------------


def ours(laid: Any, plain: dict[str, Any], wanted: Wanted, role: str, resources: types.Resources) -> dict[str, Any]:
    """What the user lays over a template leaves its labels and version; the heap follows from the memory limit."""
    metadata = laid.get("metadata") or {}
    made = {
        **laid,
        "metadata": {
            "labels": {**(metadata.get("labels") or {}), **plain["metadata"]["labels"]},
            "annotations": {**(metadata.get("annotations") or {}), **plain["metadata"]["annotations"]},
        },
    }
    server = container_of(role, wanted.said)
    containers = [
        _with_heap(each, wanted.said, resources) if each.get("name") == server else each
        for each in made["spec"]["containers"]
    ]
    agent = wanted.said.container.agent
    settle = next((_unready_within(each) for each in containers if each.get("name") == server), 0)
    containers = [_with_drain(each, settle) if each.get("name") == agent else each for each in containers]
    return {**made, "spec": {**made["spec"], "containers": containers}}


def container_of(role: str, said: dialects.Dialect) -> str:
    """What the server's container is called."""
    return said.container.rest if role == names.REST else said.container.master


def _with_drain(container: dict[str, Any], settle: int) -> dict[str, Any]:
    """How long it takes until nobody sends queries to a member that tells that it is not ready, by its own probe.

    And `settle`: until the server's container is not ready, once there is no server.
    """
    drain = min(_unready_within(container) + LINGER, MOST_DRAIN)
    made = _with_variable(container, "OPENCGA_DRAIN_SECONDS", str(drain))
    return _with_variable(made, "OPENCGA_SETTLE_SECONDS", str(min(settle, MOST_DRAIN))) if settle else made


def _unready_within(container: dict[str, Any]) -> int:
    """Seconds until its readiness probe has failed, from what it asks about; 0 where it has none."""
    probe = container.get("readinessProbe")
    if not probe:
        return 0
    period, failures, answer = (
        int(probe.get(key) or otherwise)
        for key, otherwise in (("periodSeconds", 10), ("failureThreshold", 3), ("timeoutSeconds", 1))
    )
    return period * failures + answer


def _with_variable(container: dict[str, Any], name: str, value: str) -> dict[str, Any]:
    """One that the user gives is left as it is."""
    known = container.get("env") or ()
    if any(entry.get("name") == name for entry in known):
        return container
    return {**container, "env": [*known, {"name": name, "value": value}]}


def _with_heap(container: dict[str, Any], said: dialects.Dialect, resources: types.Resources) -> dict[str, Any]:
    limit = ((container.get("resources") or {}).get("limits") or {}).get("memory") or resources.limits.memory
    return _with_variable(container, "JAVA_HEAP", heap(str(limit), said.heap)) if limit else container


def heap(limit: str, said: dialects.Heap) -> str:
    """How much of a memory limit the JVM gets, as its own word for it."""
    share = volumes.whole_bytes(limit) * said.percent // 100 // 2**20
    return f"{max(share, said.least_mebibytes)}m"
