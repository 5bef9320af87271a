"""From a WekaContainer to its pod, and to the ConfigMap with what runs in it. Pure.

A pod is made once and never changed: what it was made for is in its annotation `REVISION`, and a pod of another
revision is replaced. Only what a container must be restarted for is in there, so that another moorage restarts nobody.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from importlib import resources as package
from typing import Any

import msgspec

from moorage.api import builtin
from moorage.children import apply, bodies, parts
from moorage.operators.weka import common_types, dialect, names

from . import types

REVISION = f"{names.GROUP}/revision"
"""Annotation of a pod: what it was made for."""

FOLDER = "/opt"
"""Of the scripts in the pod, as the original has them."""

RUNTIME, TOOL, DRIVES, SETTINGS = "weka_runtime.py", "weka_tool.py", "weka_drives.py", "settings.json"

_TOLERATED = (
    ("weka.io/shutdown-node", ("NoExecute",)),
    ("node.kubernetes.io/not-ready", ("NoExecute",)),
    ("node.kubernetes.io/unreachable", ("NoExecute",)),
    ("node.kubernetes.io/network-unavailable", ("NoExecute",)),
    ("node.kubernetes.io/unschedulable", ("NoExecute",)),
    ("node.kubernetes.io/disk-pressure", ("NoExecute", "NoSchedule")),
    ("node.kubernetes.io/memory-pressure", ("NoExecute", "NoSchedule")),
    ("node.kubernetes.io/pid-pressure", ("NoExecute", "NoSchedule")),
)
TOLERATED = tuple(
    {"key": key, "operator": "Exists", "effect": effect} for key, effects in _TOLERATED for effect in effects
)
"""Taints that no pod of Weka is kept away by."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a pod is made of."""

    name: str
    namespace: str
    uid: str
    labels: dict[str, str]
    spec: types.WekaContainerSpec
    node: str = ""  # that it is pinned to
    login: str = ""  # the Secret with the login
    cluster_uid: str = ""
    dialect: dialect.Dialect = dialect.Dialect()


def revision(spec: types.WekaContainerSpec) -> str:
    """Names all for which a container must be restarted."""
    of = {
        "image": spec.image,
        "cores": (spec.num_cores, spec.extra_cores, spec.core_ids, spec.cpu_policy),
        "pages": (spec.hugepages, spec.hugepages_offset, spec.hugepages_size, spec.hugepages_override),
        "memory": spec.additional_memory,
        "network": _said(spec.network),
        "resources": spec.resources,
        "host": (spec.host_pid, spec.ipv6),
    }
    text = msgspec.json.encode(of, order="deterministic")
    return hashlib.blake2b(text, digest_size=8).hexdigest()


def _said(network: common_types.Network | None) -> common_types.Network | None:
    """Without lists of nothing, which say as much as none."""
    if network is None:
        return None
    given = {name: getattr(network, name) for name in network.__struct_fields__}
    found = common_types.Network(**{name: it for name, it in given.items() if it != ()})
    return None if found == common_types.Network() else found


def pages(spec: types.WekaContainerSpec, sizes: dialect.Sizes) -> tuple[int, int]:
    """(huge pages, of these the offset) in MiB: as the spec says, else as is reckoned."""
    drives = spec.num_drives if spec.mode == "drive" else 0
    if spec.mode == "drive":
        reckoned = sizes.drive_pages_per_core_mib * spec.num_cores + sizes.drive_pages_per_drive_mib * drives
        beyond = sizes.drive_pages_per_drive_mib * drives
    else:
        reckoned, beyond = sizes.compute_pages_per_core_mib * spec.num_cores, sizes.pages_offset_mib
    total = spec.hugepages or reckoned
    return total + total % 2, spec.hugepages_offset or beyond


def memory(spec: types.WekaContainerSpec, sizes: dialect.Sizes) -> int:
    """MiB beside huge pages."""
    if spec.mode == "drive":
        own = sizes.drive_memory_mib + sizes.drive_memory_per_core_mib * spec.num_cores
        own += sizes.drive_memory_per_drive_mib * spec.num_drives
    else:
        own = sizes.compute_memory_mib + sizes.compute_memory_per_core_mib * spec.num_cores
    return own + spec.additional_memory


def pod(wanted: Wanted) -> parts.Desired:
    """The pod, under the container's own name."""
    spec = wanted.spec
    owner = names.CONTAINER.ref(wanted.namespace, wanted.name, wanted.uid)
    content: dict[str, Any] = {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": wanted.dialect.sizes.grace_seconds,
        "hostNetwork": True,
        "dnsPolicy": "ClusterFirstWithHostNet",
        "hostPID": spec.host_pid,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "affinity": _affinity(wanted),
        "tolerations": _tolerations(spec),
        "containers": [_container(wanted)],
        "volumes": _volumes(wanted),
    }
    if spec.node_selector and not wanted.node:
        content["nodeSelector"] = dict(spec.node_selector)
    if spec.topology_spread_constraints and not wanted.node:
        content["topologySpreadConstraints"] = [dict(it) for it in spec.topology_spread_constraints]
    if spec.scheduler_name:
        content["schedulerName"] = spec.scheduler_name
    if spec.service_account_name:
        content["serviceAccountName"] = spec.service_account_name
    if spec.image_pull_secret:
        content["imagePullSecrets"] = [{"name": spec.image_pull_secret}]
    labels = {
        **wanted.labels,
        **names.APP,
        names.MODE: spec.mode,
        names.CONTAINER_NAME: wanted.name,
        "app.kubernetes.io/name": "WekaContainer",
        "app.kubernetes.io/managed-by": "moorage",
    }
    body = bodies.owned(
        builtin.POD,
        wanted.name,
        owner,
        {"spec": content},
        labels=labels,
        annotations={REVISION: revision(spec)},
    )
    return parts.Desired(builtin.POD, body)


def _affinity(wanted: Wanted) -> dict[str, Any]:
    """Where it may be: its node, once it has one, and else apart from others of its cluster and mode."""
    given = dict(wanted.spec.affinity)
    if wanted.node:
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [wanted.node]}]}
        pinned = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        return {**given, "nodeAffinity": pinned}
    if wanted.spec.drop_affinity_constraints:
        return given
    same = {names.MODE: wanted.spec.mode, names.CLUSTER_ID: wanted.cluster_uid or wanted.uid}
    return bodies.apart(given, "Required", same)


def _tolerations(spec: types.WekaContainerSpec) -> list[dict[str, Any]]:
    return [*TOLERATED, *(dict(it) for it in spec.tolerations if it not in TOLERATED)]


def _container(wanted: Wanted) -> dict[str, Any]:
    spec, sizes = wanted.spec, wanted.dialect.sizes
    size = {"memory": f"{memory(spec, sizes)}Mi", "cpu": f"{_cpu(spec, sizes)}m"}
    if sizes.huge_pages:
        size[sizes.huge_pages] = f"{pages(spec, sizes)[0]}Mi"
    files = wanted.dialect.files
    mounts = [
        {"name": "scripts", "mountPath": f"{FOLDER}/{name}", "subPath": name, "readOnly": True}
        for name in (RUNTIME, TOOL, SETTINGS)
    ]
    mounts += [
        {"name": "devices", "mountPath": devices(files)},
        {"name": "run", "mountPath": "/host/run"},
        {"name": "sys", "mountPath": "/sys"},
        {"name": "data", "mountPath": files.data},
    ]
    if sizes.huge_pages:
        mounts.append({"name": "pages", "mountPath": "/dev/hugepages"})
    if wanted.login:
        mounts.append({"name": "login", "mountPath": files.login, "readOnly": True})
    return {
        "name": names.POD_CONTAINER,
        "image": spec.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", f"{FOLDER}/{RUNTIME}"],
        "securityContext": {"privileged": True, "runAsUser": 0},
        "resources": {"requests": size, "limits": size, **spec.resources},
        "env": _env(wanted),
        "volumeMounts": mounts,
    }


def _cpu(spec: types.WekaContainerSpec, sizes: dialect.Sizes) -> int:
    """Thousandths of a core; whole ones are pinned by the kubelet, where its policy is static."""
    threads = 2 if spec.cpu_policy in ("auto", "dedicated_ht") else 1
    return sizes.cpu_per_core * (threads * spec.num_cores + spec.extra_cores) + sizes.cpu_beyond


def _env(wanted: Wanted) -> list[dict[str, Any]]:
    spec, sizes = wanted.spec, wanted.dialect.sizes
    total, offset = pages(spec, sizes)
    network = spec.network or common_types.Network()
    given = {
        "NAME": spec.name,
        "MODE": spec.mode,
        "CORES": str(spec.num_cores),
        "CORE_IDS": ",".join(map(str, spec.core_ids)) or "auto",
        "CPU_POLICY": spec.cpu_policy,
        "MEMORY": f"{max(0, total - offset)}MiB" if sizes.huge_pages else "0",
        "NETWORK_DEVICE": ",".join(network.eth_devices or ()) or network.eth_device or "",
        "SUBNETS": ",".join(network.device_subnets or ()),
        "NET_GATEWAY": network.gateway or "",
        "UDP_MODE": str(bool(network.udp_mode)).lower(),
        "BIND_MANAGEMENT_ALL": str(bool(network.bind_management_all)).lower(),
        "IS_IPV6": str(spec.ipv6).lower(),
        "JOIN_IPS": ",".join(spec.join_ip_ports),
        "DEVICES": devices(wanted.dialect.files),
        "IMAGE_NAME": spec.image,
        "WEKA_CONTAINER_ID": wanted.uid,
        "WEKA_OPERATOR_DEBUG_SLEEP": str((spec.overrides.debug_sleep_on_terminate if spec.overrides else None) or 0),
    }
    if spec.overrides and spec.overrides.pre_run_script:
        given["PRE_RUN_SCRIPT"] = base64.b64encode(spec.overrides.pre_run_script.encode()).decode()
    fields = {
        "NODE_NAME": "spec.nodeName",
        "POD_ID": "metadata.uid",
        "POD_NAME": "metadata.name",
        "POD_NAMESPACE": "metadata.namespace",
        "MANAGEMENT_IP": "status.podIP",
    }
    told: list[dict[str, Any]] = [{"name": name, "value": value} for name, value in given.items()]
    told += [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()]
    return told


def devices(files: dialect.Files) -> str:
    """Where devices are in the pod: a folder that stands in for them must not hide those that every process needs."""
    return "/dev" if files.devices == "/dev" else "/devices"


def _volumes(wanted: Wanted) -> list[dict[str, Any]]:
    files = wanted.dialect.files
    kept: dict[str, Any] = {
        "name": "data",
        "hostPath": {"path": f"{files.persistence}/containers/{wanted.uid}", "type": "DirectoryOrCreate"},
    }
    if wanted.spec.pvc is not None:
        kept = {"name": "data", "persistentVolumeClaim": {"claimName": wanted.spec.pvc.name}}
    volumes = [
        {"name": "scripts", "configMap": {"name": names.SCRIPTS, "defaultMode": 0o555}},
        {"name": "devices", "hostPath": {"path": files.devices}},
        {"name": "run", "hostPath": {"path": "/run"}},
        {"name": "sys", "hostPath": {"path": "/sys"}},
        kept,
    ]
    if wanted.dialect.sizes.huge_pages:
        volumes.append({"name": "pages", "emptyDir": {"medium": "HugePages"}})
    if wanted.login:
        volumes.append({"name": "login", "secret": {"secretName": wanted.login, "defaultMode": 0o400}})
    return volumes


# --- what runs in the pods --------------------------------------------------------------------------------------------


@functools.cache
def texts() -> dict[str, str]:
    """The scripts by name."""
    folder = package.files("moorage.operators.weka") / "scripts"
    return {name: (folder / name).read_text() for name in (RUNTIME, TOOL, DRIVES)}


def scripts(namespace: str, spoken: dialect.Dialect) -> parts.Desired:
    """The ConfigMap that all pods of a namespace start with; nobody owns it, so that it outlives each of them."""
    told = {"files": msgspec.structs.asdict(spoken.files), "commands": msgspec.structs.asdict(spoken.commands)}
    body = {
        "apiVersion": builtin.CONFIG_MAP.api_version,
        "kind": builtin.CONFIG_MAP.kind,
        "metadata": {
            "name": names.SCRIPTS,
            "namespace": namespace,
            "labels": {**names.APP, "app.kubernetes.io/managed-by": "moorage"},
            "annotations": {},
        },
        "data": {**texts(), SETTINGS: json.dumps(told, sort_keys=True)},
    }
    return parts.Desired(builtin.CONFIG_MAP, apply.stamped(body))


def resources_text(resources: dict[str, Any]) -> str:
    """What a container is told, as it lies in its file."""
    return json.dumps(resources, sort_keys=True, separators=(",", ":"))


def resources_digest(resources: dict[str, Any]) -> str:
    """Names it; the tool in the pod reckons the same of the file."""
    return hashlib.sha256(resources_text(resources).encode()).hexdigest()


def of(obj: types.WekaContainer, cluster: str, spoken: dialect.Dialect) -> Wanted:
    """What the pod of that container is made of; `cluster` is the uid of its WekaCluster."""
    return Wanted(
        name=obj.metadata.name,
        namespace=obj.metadata.namespace,
        uid=obj.metadata.uid,
        labels={key: value for key, value in obj.metadata.labels.items() if not key.startswith("app.kubernetes.io/")},
        spec=obj.spec,
        node=obj.spec.node_affinity or obj.status.node_affinity,
        login=obj.spec.weka_secret_ref,
        cluster_uid=cluster,
        dialect=spoken,
    )
