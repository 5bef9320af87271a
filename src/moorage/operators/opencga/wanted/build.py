"""From an installation's spec to the objects that are made of it. Pure.

All of them carry `names.LABEL`, are owned by the installation, and are applied whole. No password is in any: pods read
Secrets from files that are kept in memory.
"""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from moorage.api import builtin, meta
from moorage.children import bodies, volumes
from moorage.children.parts import Desired
from moorage.operators.opencga import dialect as dialects
from moorage.operators.opencga import names, types

from . import automation, overrides, trees

MANAGED = "app.kubernetes.io/managed-by"
START_PERIOD = 5
"""Seconds between probes of a pod that starts."""

GRACE = 90
"""Seconds that a server gets to stop in order, with what its agent has begun."""

LINGER = 5
"""Seconds for which Services may send queries to a pod that is to end, or that is not ready any more."""

MOST_DRAIN = 120
"""Seconds that a member waits at most until it is not ready, before its server is restarted."""

VERSION = f"{names.GROUP}/version"
"""Annotation of a pod template: the version of OpenCGA in its image."""


class Wanted(msgspec.Struct, frozen=True):
    """What the bodies are made from."""

    namespace: str
    name: str
    uid: str
    spec: types.CommunitySpec
    said: dialects.Dialect
    args: dict[str, trees.Tree]  # the product's files
    fault: str  # why nothing can be made of the spec; empty where all is well

    @property
    def ref(self) -> meta.ObjectRef:
        """The installation, which owns all of them."""
        return names.COMMUNITY.ref(self.namespace, self.name, self.uid)

    @property
    def labels(self) -> dict[str, str]:
        """On every object."""
        return {**self.selector, "app.kubernetes.io/name": "opencga", MANAGED: "moorage"}

    @property
    def selector(self) -> dict[str, str]:
        """Of all pods."""
        return {names.APP: names.headless(self.name), names.LABEL: self.name}

    def role(self, role: str) -> dict[str, str]:
        """Of the pods of one role."""
        return {**self.selector, names.ROLE: role}


def children(wanted: Wanted) -> tuple[Desired, ...]:
    """All but the StatefulSets and the document."""
    made = [_headless(wanted), _endpoint(wanted)]
    if wanted.spec.pod_disruption_budget.enabled and wanted.spec.members >= 2:
        made.append(bodies.budget(wanted.ref, selector=wanted.role(names.REST), labels=wanted.labels))
    return tuple(made)


def _service(wanted: Wanted, name: str, spec: dict[str, Any]) -> Desired:
    body = bodies.owned(builtin.SERVICE, name, wanted.ref, {"spec": spec}, labels=wanted.labels)
    return Desired(builtin.SERVICE, body)


def _port(name: str, number: int) -> dict[str, Any]:
    return {"name": name, "port": number, "protocol": "TCP"}


def _headless(wanted: Wanted) -> Desired:
    """Agents call each other before anybody is ready."""
    ports = [_port("rest", wanted.said.ports.rest), _port("agent", wanted.said.ports.agent)]
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": wanted.selector, "ports": ports}
    return _service(wanted, names.headless(wanted.name), spec)


def _endpoint(wanted: Wanted) -> Desired:
    spec = {
        "type": "ClusterIP",
        "selector": wanted.role(names.REST),
        "ports": [_port("rest", wanted.said.ports.rest)],
    }
    return _service(wanted, names.endpoint(wanted.name), spec)


def configuration(wanted: Wanted, made: automation.Document, version: int) -> Desired:
    """The Secret with the document, in this version."""
    text = base64.b64encode(automation.text(made, version)).decode()
    body = bodies.owned(
        builtin.SECRET,
        names.configuration(wanted.name),
        wanted.ref,
        {"type": "Opaque", "data": {wanted.said.container.configuration_file: text}},
        labels={**wanted.labels, names.CONFIGURATION: wanted.name},
    )
    return Desired(builtin.SECRET, body)


# --- the StatefulSets ---------------------------------------------------------------------------------------------


def members(wanted: Wanted, replicas: int, version: str) -> Desired:
    """The StatefulSet of the REST members, with what the user lays over it."""
    override, spec = wanted.spec.stateful_set, wanted.spec
    plain: dict[str, Any] = {
        "template": _template(wanted, names.REST, version, spec.resources),
        "volumeClaimTemplates": [_claim(wanted)],
    }
    laid = overrides.merged(plain, {key: value for key, value in override.spec.items() if key in plain})
    template = _ours(laid["template"], plain["template"], wanted, names.REST, spec.resources)
    body = bodies.statefulset(
        wanted.ref,
        replicas,
        template,
        selector=wanted.role(names.REST),
        labels={**override.metadata.labels, **wanted.labels},
        claims=laid["volumeClaimTemplates"],
        name=names.rest(wanted.name),
        service=names.headless(wanted.name),
    )
    return _further(wanted, body, override)


def _further(wanted: Wanted, made: Desired, override: types.StatefulSetOverride) -> Desired:
    """Fields of the StatefulSet itself, and annotations, that the user lays over."""
    further = {k: v for k, v in override.spec.items() if k in ("minReadySeconds", "revisionHistoryLimit")}
    if not further and not override.metadata.annotations:
        return made
    metadata = made.body["metadata"]
    body = bodies.owned(
        builtin.STATEFUL_SET,
        made.name,
        wanted.ref,
        {"spec": {**made.body["spec"], **further}},
        labels=metadata["labels"],
        annotations=override.metadata.annotations,
    )
    return Desired(made.resource, body)


def master(wanted: Wanted, version: str) -> Desired:
    """The StatefulSet of the MASTER, which is one."""
    resources = wanted.spec.client.resources
    template = _template(wanted, names.MASTER, version, resources)
    return bodies.statefulset(
        wanted.ref,
        1,
        _ours(template, template, wanted, names.MASTER, resources),
        selector=wanted.role(names.MASTER),
        labels=wanted.labels,
        claims=(_claim(wanted),),
        name=names.master(wanted.name),
        service=names.headless(wanted.name),
    )


def _ours(laid: Any, plain: dict[str, Any], wanted: Wanted, role: str, resources: types.Resources) -> dict[str, Any]:
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
    containers = [_with_drain(each) if each.get("name") == agent else each for each in containers]
    return {**made, "spec": {**made["spec"], "containers": containers}}


def container_of(role: str, said: dialects.Dialect) -> str:
    """What the server's container is called."""
    return said.container.rest if role == names.REST else said.container.master


def _with_drain(container: dict[str, Any]) -> dict[str, Any]:
    """How long it takes until nobody sends queries to a member that tells that it is not ready, by its own probe."""
    probe = container.get("readinessProbe") or {}
    period, failures, answer = (
        int(probe.get(key) or otherwise)
        for key, otherwise in (("periodSeconds", 10), ("failureThreshold", 3), ("timeoutSeconds", 1))
    )
    return _with_variable(container, "OPENCGA_DRAIN_SECONDS", str(min(period * failures + answer + LINGER, MOST_DRAIN)))


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


def data_size(spec: types.CommunitySpec) -> str:
    """Of each data volume: what is laid over the claim template, as the original has it, or spec.volumes.data.size."""
    for claim in spec.stateful_set.spec.get("volumeClaimTemplates") or ():
        if claim["metadata"]["name"] == names.CLAIM:
            requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
            return str(requests.get("storage") or spec.volumes.data.size)
    return spec.volumes.data.size


def _claim(wanted: Wanted) -> dict[str, Any]:
    data = wanted.spec.volumes.data
    return bodies.claim(
        names.CLAIM,
        data_size(wanted.spec),
        modes=("ReadWriteOnce",),
        storage_class=data.storage_class_name,
        labels=wanted.labels,
    )


def _template(wanted: Wanted, role: str, version: str, resources: types.Resources) -> dict[str, Any]:
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
        "volumes": _volumes(wanted),
    }
    if role == names.REST and (apart := bodies.apart({}, wanted.spec.anti_affinity, wanted.role(role))):
        spec["affinity"] = apart
    metadata = {"labels": {**wanted.labels, names.ROLE: role}, "annotations": {VERSION: version}}
    return {"metadata": metadata, "spec": spec}


def _volumes(wanted: Wanted) -> list[dict[str, Any]]:
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
    if shared := wanted.spec.volumes.shared:
        made.append({"name": "shared", "persistentVolumeClaim": {"claimName": shared.claim_name}})
    return made


def _credentials(wanted: Wanted) -> list[dict[str, Any]]:
    """Files, each of which an agent finds where the document says."""
    spec, admin = wanted.spec, automation.admin_secret(wanted.name, wanted.spec)
    made = [_source("secret", admin.name, "admin", admin.key)]
    if ref := spec.database.credentials_secret_ref:
        made.append(_source("secret", ref.name, "database", ref.user_key, ref.password_key))
    if spec.security.tls.enabled and (authority := spec.security.tls.ca_config_map_ref):
        made.append(_source("configMap", authority.name, "ca", "ca.crt"))
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
    startup = max(3, int(types.seconds(wanted.spec.timeouts.startup) // START_PERIOD))
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
        ],
        "ports": [port],
        "resources": _amounts(resources),
        "startupProbe": {"exec": {"command": [hook, "started"]}, "periodSeconds": START_PERIOD, "timeoutSeconds": 5}
        | {"failureThreshold": startup},
        "livenessProbe": {"exec": {"command": [hook, "alive"]}, "periodSeconds": 20, "timeoutSeconds": 10}
        | {"failureThreshold": 6},
        "securityContext": _SAFE,
        "volumeMounts": [
            _mount("hooks", inside.hooks),
            _mount("healthstatus", inside.server_health),
            _mount("automation-config", inside.configuration, readOnly=True),
            _mount("conf", inside.conf, readOnly=True),
            _mount("tmp", "/tmp"),  # noqa: S108 - in the container, of its own
            *_data_mounts(wanted),
        ],
    }


def _ping(role: str, said: dialects.Dialect) -> str:
    """Where the server says that it is well, to who is in its pod."""
    port, path = (said.ports.rest, said.paths.ping) if role == names.REST else (said.ports.monitor, said.paths.monitor)
    return f"http://localhost:{port}{said.paths.context}{path}"


def _agent(wanted: Wanted, role: str, version: str) -> dict[str, Any]:
    inside, ports = wanted.said.container, wanted.said.ports
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
            {"name": "OPENCGA_TOOL", "value": inside.tool},
            {"name": "OPENCGA_PING", "value": _ping(role, wanted.said)},
        ],
        "ports": [_container_port("agent", ports.agent)],
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


# --- what can't be built ------------------------------------------------------------------------------------------


def wanted(namespace: str, name: str, uid: str, spec: types.CommunitySpec, said: dialects.Dialect) -> Wanted:
    """What the bodies are made from; where the spec contradicts itself, or has what may not be, `fault` says so."""
    own = frozenset({said.container.rest, said.container.agent, said.container.hook})
    args: dict[str, trees.Tree] = {}
    if fault := overrides.fault(spec.stateful_set.spec, spec.members, own, names.CLAIM):
        fault = f"spec.statefulSet.spec: {fault}"
    else:
        try:
            args = automation.arguments(namespace, name, spec, said)
        except trees.TreeError as error:
            fault = str(error)
    return Wanted(namespace, name, uid, spec, said, args, fault)
