"""Bodies of objects that are owned: each with its owner, its labels and its stamp. Pure.

Of the shapes that a stateful system needs those are here that the steps of this layer count on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.api import builtin, meta

from . import apply, volumes
from .parts import Desired


def owned(
    resource: meta.Resource,
    name: str,
    owner: meta.ObjectRef,
    rest: Mapping[str, Any],
    *,
    labels: Mapping[str, str],
    annotations: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """An object beside its owner, whose end it shares; `rest` is all but its metadata."""
    reference = {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
    }
    body = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": name,
            "namespace": owner.namespace,
            "labels": dict(labels),
            "annotations": dict(annotations or {}),
            "ownerReferences": [reference],
        },
        **rest,
    }
    return apply.stamped(body)


def statefulset(
    owner: meta.ObjectRef,
    replicas: int,
    template: Mapping[str, Any],
    *,
    selector: Mapping[str, str],
    labels: Mapping[str, str],
    claims: Sequence[Mapping[str, Any]] = (),
    name: str = "",
    service: str = "",
) -> Desired:
    """A StatefulSet, as `stateful_set`, `pod_replacement` and `volumes` look after it.

    It and its headless Service are called as its owner, where no other `name` and `service` are given. Its pods start
    together, as after a full outage they must; their replacement and their claims are ours to order.
    """
    spec: dict[str, Any] = {
        "replicas": replicas,
        "serviceName": service or owner.name,
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "OnDelete"},
        "selector": {"matchLabels": dict(selector)},
        "template": dict(template),
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    }
    if claims:
        spec["volumeClaimTemplates"] = [dict(each) for each in claims]
    body = owned(builtin.STATEFUL_SET, name or owner.name, owner, {"spec": spec}, labels=labels)
    return Desired(builtin.STATEFUL_SET, body)


def claim(
    name: str, size: str, *, modes: Sequence[str], storage_class: str | None, labels: Mapping[str, str]
) -> dict[str, Any]:
    """A claim template of a StatefulSet; without a class the cluster's default one is meant."""
    spec: dict[str, Any] = {
        "accessModes": list(modes),
        "resources": {"requests": {"storage": volumes.claimed(size)}},
    }
    if storage_class is not None:
        spec["storageClassName"] = storage_class
    return {"metadata": {"name": name, "labels": dict(labels)}, "spec": spec}


def budget(
    owner: meta.ObjectRef, *, selector: Mapping[str, str], labels: Mapping[str, str], unavailable: int = 1
) -> Desired:
    """A disruption budget of its owner's name, by which others let one pod go at a time as well.

    `unavailable` is more than one where some of the pods are meant not to be ready.
    """
    spec = {
        "maxUnavailable": unavailable,
        "selector": {"matchLabels": dict(selector)},
        "unhealthyPodEvictionPolicy": "AlwaysAllow",  # a pod that never came up must not hold up a drain
    }
    body = owned(builtin.DISRUPTION_BUDGET, owner.name, owner, {"spec": spec}, labels=labels)
    return Desired(builtin.DISRUPTION_BUDGET, body)


def apart(given: Mapping[str, Any], how: str, selector: Mapping[str, str]) -> dict[str, Any]:
    """The affinity that the user gives, and that pods of one selector are on nodes of their own.

    `how` is Required, Preferred or None; the user's own rule of that kind is left as it is.
    """
    if how == "None" or "podAntiAffinity" in given:
        return dict(given)
    term = {"labelSelector": {"matchLabels": dict(selector)}, "topologyKey": "kubernetes.io/hostname"}
    if how == "Required":
        rule: dict[str, Any] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    else:
        weighed = {"weight": 100, "podAffinityTerm": term}
        rule = {"preferredDuringSchedulingIgnoredDuringExecution": [weighed]}
    return {**given, "podAntiAffinity": rule}
