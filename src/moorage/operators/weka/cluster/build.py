"""From a WekaCluster to its WekaContainers. Pure.

What a container must be restarted for (`RESTARTS`) is kept as the container has it until its turn comes; see `rolling`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.api import meta
from moorage.children import bodies, parts
from moorage.operators.weka import names
from moorage.operators.weka.container import types as container_types

from . import types

RESTARTS = (
    "image",
    "numCores",
    "extraCores",
    "coreIds",
    "cpuPolicy",
    "hugepages",
    "hugepagesOffset",
    "network",
    "ipv6",
    "additionalMemory",
)
"""Fields of a WekaContainer's spec, for which its pod is made anew."""


def container(
    obj_meta: meta.ObjectMeta,
    spec: types.WekaClusterSpec,
    role: str,
    number: int,
    *,
    login: str,
    join: tuple[str, ...] = (),
    state: container_types.State = "active",
    keeps: dict[str, Any] | None = None,
    force: bool = False,
) -> parts.Desired:
    """The WekaContainer of that role and number; `keeps` is what it has of `RESTARTS`, until its turn comes."""
    owner = names.CLUSTER.ref(*obj_meta.key, obj_meta.uid)
    content = {**steady(spec, role), **restarting(spec, role), **(keeps or {})}
    content |= {
        "name": names.within(role, obj_meta.uid, number),
        "mode": role,
        "wekaSecretRef": login,
        "state": state,
    }
    if join:
        content["joinIpPorts"] = list(join)
    if force:
        content["overrides"] = {"upgradeForceReplace": True}
    annotations = getattr(spec.role_annotations, role, None) if spec.role_annotations else None
    body = bodies.owned(
        names.CONTAINER,
        names.container(obj_meta.name, role, number),
        owner,
        {"spec": {key: value for key, value in content.items() if value not in (None, [], {}, "")}},
        labels={
            **names.APP,
            names.MODE: role,
            names.CLUSTER_ID: obj_meta.uid,
            names.CLUSTER_NAME: obj_meta.name,
            "app.kubernetes.io/managed-by": "moorage",
        },
        annotations=dict(annotations or {}),
    )
    return parts.Desired(names.CONTAINER, body)


def restarting(spec: types.WekaClusterSpec, role: str) -> dict[str, Any]:
    """What a container of that role must be restarted for."""
    sizes = types.template(spec)
    network = getattr(spec.role_network_selector, role, None) if spec.role_network_selector else None
    cores = getattr(spec.role_core_ids, role, ()) if spec.role_core_ids else ()
    beyond = getattr(spec.additional_memory, role, 0) if spec.additional_memory else 0
    return {
        "image": spec.image,
        "numCores": sizes.cores[role],
        "extraCores": sizes.extra_cores[role],
        "coreIds": list(cores),
        "cpuPolicy": spec.cpu_policy,
        "hugepages": sizes.hugepages[role][0],
        "hugepagesOffset": sizes.hugepages[role][1],
        "network": plain(network or spec.network),
        "ipv6": spec.ipv6,
        "additionalMemory": beyond,
    }


def steady(spec: types.WekaClusterSpec, role: str) -> dict[str, Any]:
    """What reaches a container without a restart, or at its next one."""
    selector = getattr(spec.role_node_selector, role, None) if spec.role_node_selector else None
    config = spec.pod_config
    given: dict[str, Any] = {
        "imagePullSecret": spec.image_pull_secret,
        "serviceAccountName": spec.service_account_name,
        "nodeSelector": dict(selector or spec.node_selector),
        "tolerations": [{"key": it, "operator": "Exists"} for it in spec.tolerations] + list(spec.raw_tolerations),
        "failureDomain": plain(spec.failure_domain),
        "topologySpreadConstraints": _spread(spec, role),
        "affinity": _affinity(spec, role),
        "schedulerName": config.scheduler_name if config else "",
        "driversDistService": spec.drivers_dist_service,
        "tracesConfiguration": plain(spec.traces_configuration),
        "dropAffinityConstraints": bool(spec.overrides and spec.overrides.disregard_redundancy) or None,
        "numDrives": types.template(spec).drives if role == "drive" else None,
    }
    if config is not None and (own := config.role_affinity.get(role)):
        given["affinity"] = own
    return given


def plain(value: Any) -> Any:
    """A part of a spec as it goes over the wire, without what nobody has set."""
    if value is None:
        return None
    found = msgspec.to_builtins(value)
    return {key: it for key, it in found.items() if it not in (None, [], {}, "", ())}


def _affinity(spec: types.WekaClusterSpec, _: str) -> dict[str, Any]:
    return dict(spec.pod_config.affinity) if spec.pod_config else {}


def _spread(spec: types.WekaClusterSpec, role: str) -> list[dict[str, Any]]:
    config = spec.pod_config
    if config is not None:
        own = config.role_topology_spread_constraints.get(role) or list(config.topology_spread_constraints)
        if own:
            return [dict(it) for it in own]
    domain = spec.failure_domain
    if domain is None or role not in ("drive", "compute"):
        return []
    labels = [domain.label] if domain.label else list(domain.composite_labels)
    rule = "DoNotSchedule" if domain.label else "ScheduleAnyway"
    return [
        {
            "maxSkew": domain.skew or 1,
            "topologyKey": key,
            "whenUnsatisfiable": rule,
            "labelSelector": {"matchLabels": {names.MODE: role}},
            "matchLabelKeys": [names.CLUSTER_ID],
        }
        for key in labels
    ]


def endpoints(addresses: list[tuple[str, int]]) -> tuple[str, ...]:
    """Where a cluster is joined, as `address:port`."""
    return tuple(f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}" for ip, port in addresses)


def kept(spec: container_types.WekaContainerSpec) -> dict[str, Any]:
    """What a container has of `RESTARTS`."""
    found = msgspec.to_builtins(spec)
    has = {name: found[name] for name in RESTARTS}
    return {**has, "coreIds": list(spec.core_ids), "network": plain(spec.network)}


def rolled(
    cluster: types.WekaClusterSpec, spec: container_types.WekaContainerSpec
) -> container_types.WekaContainerSpec:
    """A container's spec as it is once its turn has come; what others have added stays."""
    new = {key: it for key, it in restarting(cluster, spec.mode).items() if it is not None}
    found = {**msgspec.to_builtins(spec), "network": None, **new}
    return msgspec.convert(found, container_types.WekaContainerSpec)
