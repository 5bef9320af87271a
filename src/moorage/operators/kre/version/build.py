"""From a RuntimeVersion's spec to the objects that run it. Pure.

All of them carry the label `kinds.OF_VERSION`, are owned by the version, and are applied whole. Names, labels,
environment and volumes are the product's, as what runs inside was written for them.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from moorage.api import builtin, meta
from moorage.children import bodies
from moorage.children.parts import Desired
from moorage.operators.kre import kinds, names

from . import container_files, pods
from .wanted import Wanted

INPUTS = f"{kinds.GROUP}/inputs"
"""Annotation of what is made from others' objects: what those were, so that it is made anew when they change."""

GRPC, WEB = 9000, 8080


def children(wanted: Wanted) -> tuple[Desired, ...]:
    """All objects, the way in last."""
    data, files = _config(wanted), container_files.texts(wanted.names, wanted.spec, wanted.images)
    digest = _digest(data, files, wanted.inputs)
    made = [
        _object(wanted, builtin.CONFIG_MAP, wanted.names.config, {"data": data}, type="version"),
        _object(wanted, builtin.CONFIG_MAP, wanted.names.files, {"data": files}, type="version"),
        _mongo(wanted),
    ]
    for workflow in wanted.spec.graph:
        full = wanted.spec.nodes_of(workflow.name)
        for node in workflow.nodes:
            name = wanted.names.deployment(workflow.name, node.name)
            labels = {"type": "node", "workflow-name": workflow.name, "node-name": node.name, "node-id": name}
            spec = pods.of_node(wanted, workflow, node, full[node.name])
            made.append(_deployment(wanted, name, node.replicas, spec, labels, digest))
    labels = {"type": "entrypoint", "node-name": "entrypoint", "node-id": "entrypoint"}
    made.append(_deployment(wanted, wanted.names.entrypoint, 1, pods.of_entrypoint(wanted), labels, digest))
    made.append(_service(wanted, wanted.names.entrypoint, labels))
    return tuple(made)


def is_entrance(resource: meta.Resource, name: str, of: names.Names) -> bool:
    """Whether calls come in by that object."""
    return resource in (kinds.DEPLOYMENT, builtin.SERVICE) and name == of.entrypoint


def active(wanted: Wanted, owner: meta.ObjectRef) -> Desired:
    """The Service of what is published, led to this version. It is the Runtime's, as it outlives versions."""
    selector = {"type": "entrypoint", "runtime-id": wanted.runtime, "version-name": wanted.spec.version}
    body = bodies.owned(
        builtin.SERVICE,
        wanted.names.active,
        owner,
        {"spec": {"type": "ClusterIP", "selector": selector, "ports": _ports()}},
        labels={**wanted.labels, "type": "active-entrypoint"},
    )
    return Desired(builtin.SERVICE, body)


def _config(wanted: Wanted) -> dict[str, str]:
    return {key.name: key.value for key in wanted.spec.config if key.value is not None}


def _digest(*parts: Any) -> str:
    return hashlib.blake2b(msgspec.json.encode(parts, order="deterministic"), digest_size=8).hexdigest()


def _object(wanted: Wanted, resource: meta.Resource, name: str, rest: dict[str, Any], **labels: str) -> Desired:
    return Desired(resource, bodies.owned(resource, name, wanted.ref, rest, labels={**wanted.labels, **labels}))


def _mongo(wanted: Wanted) -> Desired:
    """What is secret is filled in by the executor; the annotation has it done anew when the credentials change."""
    annotations = {INPUTS: wanted.inputs}
    body = bodies.owned(
        builtin.SECRET, wanted.names.mongo, wanted.ref, {}, labels=wanted.labels, annotations=annotations
    )
    return Desired(builtin.SECRET, body, fill="mongo")


def _deployment(
    wanted: Wanted, name: str, replicas: int, spec: dict[str, Any], labels: dict[str, str], digest: str
) -> Desired:
    """Its pods are replaced one by one, each when the next is ready."""
    mine = {**wanted.labels, **labels}
    selector = {key: mine[key] for key in ("runtime-id", "version-name", "type", "node-name", "node-id")}
    body = {
        "replicas": replicas,
        "revisionHistoryLimit": 2,
        "selector": {"matchLabels": selector},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        "template": {"metadata": {"labels": mine, "annotations": {INPUTS: digest}}, "spec": spec},
    }
    return _object(wanted, kinds.DEPLOYMENT, name, {"spec": body}, **labels)


def _service(wanted: Wanted, name: str, labels: dict[str, str]) -> Desired:
    selector = {"type": "entrypoint", "runtime-id": wanted.runtime, "version-name": wanted.spec.version}
    return _object(wanted, builtin.SERVICE, name, {"spec": {"selector": selector, "ports": _ports()}}, **labels)


def _ports() -> list[dict[str, Any]]:
    return [
        {"name": "grpc", "port": GRPC, "targetPort": GRPC, "protocol": "TCP", "appProtocol": "kubernetes.io/h2c"},
        {"name": "web", "port": 80, "targetPort": WEB, "protocol": "TCP"},
    ]
