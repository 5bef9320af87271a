"""From an XsldCache's spec to the objects that are made of it. Pure.

All of them carry `LABEL`, are owned by the cache, and are applied whole. What is secret is filled in by the executor.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from importlib import resources
from typing import Any

import msgspec

from moorage.api import builtin, meta, quantities
from moorage.children import bodies, ordinals
from moorage.children.parts import Desired
from moorage.operators.xsld import names
from moorage.operators.xsld.group import dialect as dialects

from . import types

LABEL = f"{names.GROUP}/cache"
GATE = f"{names.GROUP}/member-online"
SCRIPTS_HASH = f"{names.GROUP}/scripts"
CREDENTIALS = ("adminPwd", "secretKey")
SCRIPTS = "/moorage"

START_PERIOD = 5
"""Seconds between probes of a member that starts."""

COUNT_MAX = 2**31 - 1
"""The most that a probe can count."""

HANDED_ON = (
    *("image_pull_secrets", "resources", "node_selector", "tolerations", "affinity", "topology_spread_constraints"),
    *("security_context", "annotations", "labels", "env"),
)

ALONE = "alone"
"""Key beside the scripts: the one member that is the whole group, or nobody. Not in their hash: it rolls nobody."""

ANSWER_LIMIT = 8
"""Seconds that a member's database has to answer its own container; the kubelet would cut off the script alone."""

HANGING_GRACE = 30
"""Seconds that a server which has stopped to answer gets to stop in an orderly way: it can't."""


class Wanted(msgspec.Struct, frozen=True):
    """What the bodies are made from."""

    namespace: str
    name: str
    uid: str
    spec: types.XsldCacheSpec
    said: dialects.Dialect
    entrypoint: str | None = None  # the user's own script, if the spec names one

    @property
    def ref(self) -> meta.ObjectRef:
        """The cache, which owns all of them."""
        return names.CACHE.ref(self.namespace, self.name, self.uid)

    @property
    def labels(self) -> dict[str, str]:
        """On every object."""
        return {**self.selector, "app.kubernetes.io/name": "xsld", "app.kubernetes.io/managed-by": "moorage"}

    @property
    def selector(self) -> dict[str, str]:
        """Of the pods."""
        return {names.APP: self.name, LABEL: self.name}

    @property
    def credentials(self) -> tuple[str, str, str]:
        """Name of the Secret, and its keys for the password and the secret key."""
        if ref := self.spec.credentials_secret_ref:
            return ref.name, ref.admin_pwd_key, ref.secret_key_key
        return (f"{self.name}-credentials", *CREDENTIALS)


def children(wanted: Wanted, *, primary: str, pods: int, alone: str = "") -> tuple[Desired, ...]:
    """All but the StatefulSet, for a group with so many pods.

    The admin Service selects the primary's pod, and the scripts let `alone` serve although it knows of nobody else.
    """
    made = [_scripts(wanted, alone), _headless(wanted), _client(wanted), _admin(wanted, primary)]
    if wanted.spec.credentials_secret_ref is None:
        made.append(_credentials(wanted))
    if wanted.spec.pod_disruption_budget.enabled and wanted.spec.size >= 2:
        made.append(bodies.budget(wanted.ref, selector=wanted.selector, labels=wanted.labels))
    if wanted.spec.debug_node_ports:
        made += [_debug(wanted, ordinal) for ordinal in range(pods)]
    return tuple(made)


def _object(
    resource: meta.Resource, wanted: Wanted, name: str, rest: dict[str, Any], annotations: dict[str, str] | None = None
) -> dict[str, Any]:
    return bodies.owned(resource, name, wanted.ref, rest, labels=wanted.labels, annotations=annotations)


def _credentials(wanted: Wanted) -> Desired:
    name = wanted.credentials[0]
    return Desired(builtin.SECRET, _object(builtin.SECRET, wanted, name, {}), fill="credentials")


def scripts(wanted: Wanted) -> dict[str, str]:
    """The scripts by name; the user's own entrypoint replaces ours."""
    own = {} if wanted.entrypoint is None else {"entrypoint.sh": wanted.entrypoint}
    return {**_shipped(), **own}


@functools.cache
def _shipped() -> Mapping[str, str]:
    folder = resources.files(__package__) / "scripts"
    names_ = ("alive.sh", "entrypoint.sh", "prestop.sh", "probe.sh", "within.sh")
    return {name: (folder / name).read_text() for name in names_}


def _scripts(wanted: Wanted, alone: str) -> Desired:
    data = {**scripts(wanted), ALONE: alone}
    body = _object(builtin.CONFIG_MAP, wanted, f"{wanted.name}-scripts", {"data": data})
    return Desired(builtin.CONFIG_MAP, body)


def _ports(said: dialects.Ports, *which: str) -> list[dict[str, Any]]:
    return [{"name": name, "port": getattr(said, name), "protocol": "TCP"} for name in which]


def _service(wanted: Wanted, name: str, spec: dict[str, Any], annotations: dict[str, str] | None = None) -> Desired:
    return Desired(builtin.SERVICE, _object(builtin.SERVICE, wanted, name, {"spec": spec}, annotations))


def _headless(wanted: Wanted) -> Desired:
    """A member needs its own name before it is ready."""
    ports = _ports(wanted.said.ports, "ui", "data", "admin", "catalog")
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": wanted.selector, "ports": ports}
    return _service(wanted, wanted.name, spec)


def _client(wanted: Wanted) -> Desired:
    service = wanted.spec.service
    ports = _ports(wanted.said.ports, "ui", "data", "catalog")
    spec = {"type": service.type, "selector": wanted.selector, "ports": ports}
    return _service(wanted, f"{wanted.name}-client", spec, dict(service.annotations))


def _admin(wanted: Wanted, primary: str) -> Desired:
    selector = {**wanted.selector, "statefulset.kubernetes.io/pod-name": primary}
    spec = {"type": "ClusterIP", "selector": selector, "ports": _ports(wanted.said.ports, "ui", "admin")}
    return _service(wanted, f"{wanted.name}-admin", spec)


def _debug(wanted: Wanted, ordinal: int) -> Desired:
    pod = ordinals.pod(wanted.name, ordinal)
    selector = {**wanted.selector, "statefulset.kubernetes.io/pod-name": pod}
    ports = _ports(wanted.said.ports, "ui", "data", "admin", "catalog")
    return _service(wanted, f"{pod}-debug", {"type": "NodePort", "selector": selector, "ports": ports})


def handed_on(pod: types.Pod) -> str:
    """Which settings of pods are as the user wrote them, so that the API server alone can say what is wrong in them.

    It may say so without a word of where.
    """
    plain = types.Pod()
    names_ = [field for field in HANDED_ON if getattr(pod, field) != getattr(plain, field)]
    wire = {field.name: field.encode_name for field in msgspec.structs.fields(types.Pod)}
    return ", ".join(f"spec.pod.{wire[field]}" for field in names_)


# --- the StatefulSet ---------------------------------------------------------------------------------------------


def workload(wanted: Wanted, replicas: int) -> Desired:
    """The StatefulSet with so many pods."""
    storage = wanted.spec.storage
    claim = bodies.claim(
        names.VOLUME,
        storage.size,
        modes=storage.access_modes,
        storage_class=storage.storage_class_name,
        labels=wanted.labels,
    )
    return bodies.statefulset(
        wanted.ref,
        replicas,
        _template(wanted),
        selector=wanted.selector,
        labels=wanted.labels,
        claims=() if storage.ephemeral else (claim,),
    )


def _template(wanted: Wanted) -> dict[str, Any]:
    pod = wanted.spec.pod
    digest = hashlib.blake2b(msgspec.json.encode(scripts(wanted), order="deterministic"), digest_size=8).hexdigest()
    spec: dict[str, Any] = {
        "containers": [_container(wanted)],
        "terminationGracePeriodSeconds": pod.termination_grace_period_seconds,
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
        "securityContext": pod.security_context or {"seccompProfile": {"type": "RuntimeDefault"}},
        "volumes": [
            {"name": "scripts", "configMap": {"name": f"{wanted.name}-scripts", "defaultMode": 0o755}},
            *([{"name": names.VOLUME, "emptyDir": {}}] if wanted.spec.storage.ephemeral else []),
        ],
    }
    optional = {
        "serviceAccountName": pod.service_account_name,
        "imagePullSecrets": list(pod.image_pull_secrets),
        "nodeSelector": pod.node_selector,
        "tolerations": list(pod.tolerations),
        "affinity": bodies.apart(pod.affinity, pod.anti_affinity, wanted.selector),
        "topologySpreadConstraints": list(pod.topology_spread_constraints),
        "priorityClassName": pod.priority_class_name,
        "readinessGates": [{"conditionType": GATE}] if wanted.spec.readiness_gate else [],
    }
    spec |= {key: value for key, value in optional.items() if value}
    metadata = {
        "labels": {**pod.labels, **wanted.labels},
        "annotations": {**pod.annotations, SCRIPTS_HASH: digest},
    }
    return {"metadata": metadata, "spec": spec}


def _container(wanted: Wanted) -> dict[str, Any]:
    spec, ports = wanted.spec, wanted.said.ports
    answers = {"timeoutSeconds": ANSWER_LIMIT + 2}
    container: dict[str, Any] = {
        "name": "xsld",
        "image": spec.image,
        "command": [f"{SCRIPTS}/entrypoint.sh"],
        "env": _env(wanted),
        "ports": [
            {"name": name, "containerPort": getattr(ports, name), "protocol": "TCP"}
            for name in ("ui", "data", "admin", "catalog")
        ],
        "volumeMounts": [
            {"name": names.VOLUME, "mountPath": wanted.said.container.volume},
            {"name": "scripts", "mountPath": SCRIPTS, "readOnly": True},
        ],
        "startupProbe": {
            "tcpSocket": {"port": ports.admin},
            "timeoutSeconds": 5,
            "periodSeconds": START_PERIOD,
            "failureThreshold": min(COUNT_MAX, max(3, int(quantities.seconds(spec.timeouts.startup) // START_PERIOD))),
        },
        "readinessProbe": {
            "exec": {"command": [f"{SCRIPTS}/probe.sh"]},
            **answers,
            "periodSeconds": 5,
            "failureThreshold": 3,
        },
        "livenessProbe": {
            "exec": {"command": [f"{SCRIPTS}/alive.sh"]},
            **answers,
            "periodSeconds": 20,
            "failureThreshold": 15,
            "terminationGracePeriodSeconds": HANGING_GRACE,
        },
        "lifecycle": {"preStop": {"exec": {"command": [f"{SCRIPTS}/prestop.sh"]}}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    optional = {"imagePullPolicy": spec.pod.image_pull_policy, "resources": spec.pod.resources}
    return container | {key: value for key, value in optional.items() if value}


def _env(wanted: Wanted) -> list[dict[str, Any]]:
    secret, admin_key, secret_key = wanted.credentials
    inside = wanted.said.container
    stop = max(5, wanted.spec.pod.termination_grace_period_seconds // 2 - 10)
    plain = {
        "LICENSE": wanted.spec.license,
        "CACHE_GROUP": wanted.spec.group,
        "MEMBER_CAP": str(wanted.spec.capacity),
        "XSLD_ENTRYPOINT": inside.entrypoint,
        "XSLD_HOME": inside.home,
        "XSLD_STOP_SECONDS": str(stop),
        "XSLD_ANSWER_SECONDS": str(ANSWER_LIMIT),
        "XSLD_ADMIN_PORT": str(wanted.said.ports.admin),
        "XSLD_SQL_TOOL": inside.sql_tool,
        "XSLD_SQL_CONNECT": inside.sql_connect,
        "XSLD_ADDRESS_TRIES": str(int(quantities.seconds(wanted.spec.timeouts.startup) // 2)),
    }
    filled = {"member": "$(MEMBER_NAME)", "address": "$(POD_IP)"}
    made: list[dict[str, Any]] = [
        {"name": "MEMBER_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "XSADMIN_PWD", "valueFrom": {"secretKeyRef": {"name": secret, "key": admin_key}}},
        {"name": "SECRET_KEY", "valueFrom": {"secretKeyRef": {"name": secret, "key": secret_key}}},
        *({"name": name, "value": value} for name, value in plain.items()),
        {"name": "XSLD_SQL_READ", "value": inside.sql_read_address.format(**filled)},
        {"name": "XSLD_SQL_COUNT", "value": inside.sql_count_members},
        {"name": "XSLD_SQL_WRITE", "value": inside.sql_write_address.format(**filled)},
        *({"name": name, "value": value} for name, value in inside.env.items()),
    ]
    own = {entry["name"] for entry in made}
    return made + [dict(entry) for entry in wanted.spec.pod.env if entry.get("name") not in own]
