"""From an installation's spec to the objects that are made of it. Pure.

All of them carry `names.LABEL`, are owned by the installation, and are applied whole. No password is in any.
"""

from __future__ import annotations

import base64
from typing import Any

from moorage.api import builtin
from moorage.children import bodies, ordinals
from moorage.children.parts import Desired
from moorage.operators.opencga import names, types

from . import automation, overrides, pods
from .basis import Wanted


def children(wanted: Wanted, *, monitored: bool = False) -> tuple[Desired, ...]:
    """All but the StatefulSets and the document. `monitored`: the API server knows ServiceMonitors."""
    made = [_headless(wanted), _endpoint(wanted)]
    if wanted.spec.ingress is not None:
        made.append(_ingress(wanted, wanted.spec.ingress))
    if wanted.spec.pod_disruption_budget.enabled and wanted.spec.members >= 2:
        made.append(_budget(wanted))
    metrics = wanted.spec.metrics
    if monitored and metrics.enabled and metrics.service_monitor.enabled:
        made.append(_monitor(wanted, metrics.service_monitor))
    return tuple(made)


def _service(wanted: Wanted, name: str, spec: dict[str, Any]) -> Desired:
    body = bodies.owned(builtin.SERVICE, name, wanted.ref, {"spec": spec}, labels=wanted.labels)
    return Desired(builtin.SERVICE, body)


def _port(name: str, number: int) -> dict[str, Any]:
    return {"name": name, "port": number, "protocol": "TCP"}


def _headless(wanted: Wanted) -> Desired:
    """Agents call each other before anybody is ready."""
    ports = [_port("rest", wanted.said.ports.rest), _port("agent", wanted.said.ports.agent)]
    if wanted.spec.metrics.enabled:
        ports.append(_port(pods.METRICS, wanted.spec.metrics.port))
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": wanted.selector, "ports": ports}
    return _service(wanted, names.headless(wanted.name), spec)


def _endpoint(wanted: Wanted) -> Desired:
    spec = {
        "type": "ClusterIP",
        "selector": wanted.role(names.REST),
        "ports": [_port("rest", wanted.said.ports.rest)],
    }
    return _service(wanted, names.endpoint(wanted.name), spec)


def _budget(wanted: Wanted) -> Desired:
    """One may be taken away beside those that are switched off, which are never ready."""
    off = sum(wanted.spec.is_disabled(ordinals.pod(names.rest(wanted.name), n)) for n in range(wanted.spec.members))
    return bodies.budget(wanted.ref, selector=wanted.role(names.REST), labels=wanted.labels, unavailable=1 + off)


def _ingress(wanted: Wanted, given: types.Ingress) -> Desired:
    """From outside to those that are ready. Its certificate is the controller's to read."""
    service = {"name": names.endpoint(wanted.name), "port": {"name": "rest"}}
    path = {"path": given.path or wanted.said.paths.context, "pathType": "Prefix", "backend": {"service": service}}
    spec: dict[str, Any] = {"rules": [{"host": given.host, "http": {"paths": [path]}}]}
    if given.class_name:
        spec["ingressClassName"] = given.class_name
    if given.tls_secret_ref is not None:
        spec["tls"] = [{"hosts": [given.host], "secretName": given.tls_secret_ref.name}]
    body = bodies.owned(
        builtin.INGRESS,
        names.ingress(wanted.name),
        wanted.ref,
        {"spec": spec},
        labels=wanted.labels,
        annotations=given.annotations,
    )
    return Desired(builtin.INGRESS, body)


def _monitor(wanted: Wanted, given: types.ServiceMonitor) -> Desired:
    """All pods, ready or not, by the one Service that has that port."""
    endpoint = {"port": pods.METRICS, "path": "/metrics"} | ({"interval": given.interval} if given.interval else {})
    spec = {
        "selector": {"matchLabels": wanted.selector},
        "endpoints": [endpoint],
        "podTargetLabels": [names.LABEL, names.ROLE],
    }
    labels = {**given.labels, **wanted.labels}
    body = bodies.owned(names.SERVICE_MONITOR, names.monitor(wanted.name), wanted.ref, {"spec": spec}, labels=labels)
    return Desired(names.SERVICE_MONITOR, body)


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
        "template": pods.template(wanted, names.REST, version, spec.resources),
        "volumeClaimTemplates": [_claim(wanted)],
    }
    laid = overrides.merged(plain, {key: value for key, value in override.spec.items() if key in plain})
    template = pods.ours(laid["template"], plain["template"], wanted, names.REST, spec.resources)
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


def master(wanted: Wanted, version: str, replicas: int = 1) -> Desired:
    """The StatefulSet of the MASTER, which is one, or none while all is stopped."""
    resources = wanted.spec.client.resources
    template = pods.template(wanted, names.MASTER, version, resources)
    return bodies.statefulset(
        wanted.ref,
        replicas,
        pods.ours(template, template, wanted, names.MASTER, resources),
        selector=wanted.role(names.MASTER),
        labels=wanted.labels,
        claims=(_claim(wanted),),
        name=names.master(wanted.name),
        service=names.headless(wanted.name),
    )


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
