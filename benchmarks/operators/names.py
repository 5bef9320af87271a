"""What every one of the compared operators has in common: names, paths and bodies. Imports nothing of the product.

A Widget owns one ConfigMap that holds its text; its status says which text and which generation that is, in fields and
in the conditions that tools wait for. What the API server makes of a status costs more than what an operator makes of
it, so all write the same.
"""

from __future__ import annotations

import argparse
import datetime
from typing import Any

GROUP = "bench.moorage.dev"
VERSION = "v1"
OWNER = f"{GROUP}/widget"
"""The label by which ConfigMaps of Widgets are watched; its value is the Widget's name."""

WIDE = (
    ("apps", "v1", "Deployment", "deployments"),
    ("apps", "v1", "StatefulSet", "statefulsets"),
    ("apps", "v1", "DaemonSet", "daemonsets"),
    ("batch", "v1", "Job", "jobs"),
    ("batch", "v1", "CronJob", "cronjobs"),
    ("", "v1", "Service", "services"),
    ("", "v1", "Secret", "secrets"),
    ("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"),
)
"""Eight kinds (group, version, kind, plural) watched beside the Widget's two, to see what idle watches cost."""


def widgets(namespace: str, name: str = "", subresource: str = "") -> str:
    """The path of Widgets."""
    path = f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/widgets"
    return "/".join(filter(None, (path, name, subresource)))


def config_maps(namespace: str, name: str = "") -> str:
    """The path of ConfigMaps."""
    return "/".join(filter(None, (f"/api/v1/namespaces/{namespace}/configmaps", name)))


def leases(namespace: str) -> str:
    """The path of Leases."""
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"


def child(name: str) -> str:
    """What the ConfigMap of a Widget is called."""
    return f"{name}-widget"


def body(namespace: str, name: str, uid: str, text: str) -> dict[str, Any]:
    """The ConfigMap of a Widget."""
    owner = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Widget", "name": name, "uid": uid, "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": child(name),
            "namespace": namespace,
            "labels": {OWNER: name},
            "ownerReferences": [owner],
        },
        "data": {"text": text},
    }


CONDITIONS = (
    ("Available", "True", "Present", ""),
    ("Ready", "True", "Ready", "all steps are done"),
    ("Reconciling", "False", "Settled", ""),
    ("Stalled", "False", "Settled", ""),
)
"""Of a settled Widget: type, status, reason, message."""


def status(text: str, generation: int) -> dict[str, Any]:
    """The status of a Widget that is settled as of now."""
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    conditions = [
        {
            "type": type_,
            "status": value,
            "reason": reason,
            "message": message,
            "observedGeneration": generation,
            "lastTransitionTime": now,
        }
        for type_, value, reason, message in CONDITIONS
    ]
    return {"text": text, "observedGeneration": generation, "conditions": conditions}


def options() -> argparse.Namespace:
    """What the harness has told the operator."""
    return parser().parse_args()


def parser() -> argparse.ArgumentParser:
    """What the harness tells each operator."""
    it = argparse.ArgumentParser()
    it.add_argument("--kubeconfig", required=True)
    it.add_argument("--namespace", required=True)
    it.add_argument("--resync", type=float, default=36000.0, help="seconds between two looks at a settled object")
    it.add_argument("--workers", type=int, default=16)
    it.add_argument("--port", type=int, default=0, help="of the probes and metrics, where the runtime has them")
    it.add_argument("--wide", action="store_true", help="ten watches and a lease")
    return it
