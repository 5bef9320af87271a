"""Pods as a cluster holds them, about 3.4 KB of JSON each, and the view of them that an operator would take."""

from __future__ import annotations

import random
import string
from typing import Any, Literal

import msgspec

from moorage.api import meta

__all__ = ["Pod", "event", "pod"]

_HEX = string.hexdigits[:16]
_APPS = ("postgres", "redis", "ingest", "frontend", "billing", "search", "mailer", "reports", "auth", "gateway")
_TIERS = ("web", "batch", "data")


class Spec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What is read of a spec."""

    node_name: str = ""


class Condition(msgspec.Struct, frozen=True, gc=False):
    """One condition."""

    type: str = ""
    status: Literal["True", "False", "Unknown"] = "Unknown"  # closed sets are decoded to one string each


class ContainerStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What is read of a container's status."""

    name: str = ""
    ready: bool = False
    restart_count: int = 0


class Status(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What is read of a status."""

    phase: Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"] = "Unknown"
    pod_ip: str = msgspec.field(default="", name="podIP")
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(msgspec.Struct, frozen=True, gc=False):
    """A pod as an operator of members reads it."""

    metadata: meta.ObjectMeta
    spec: Spec = Spec()
    status: Status = Status()


def _word(dice: random.Random, length: int) -> str:
    return "".join(dice.choices(_HEX, k=length))


def _uid(dice: random.Random) -> str:
    return "-".join(_word(dice, length) for length in (8, 4, 4, 4, 12))


def pod(number: int, version: int, *, spaces: int = 50) -> dict[str, Any]:
    """The pod of that number: the same for the same number, save for its version and what a new version changes."""
    dice = random.Random(number)  # noqa: S311 - repeatable, not secret
    app, tier = dice.choice(_APPS), dice.choice(_TIERS)
    image = f"registry.example.com/{tier}/{app}:v{dice.randrange(5)}.{dice.randrange(30)}.{dice.randrange(10)}"
    owner, day = f"{app}-{_word(dice, 10)}", f"2026-{dice.randrange(1, 12):02}-{dice.randrange(1, 28):02}"
    made = f"{day}T{dice.randrange(24):02}:{dice.randrange(60):02}:{dice.randrange(60):02}Z"
    address = f"10.{dice.randrange(250)}.{dice.randrange(250)}.{dice.randrange(250)}"
    node, token = f"node-{dice.randrange(200):03}", f"kube-api-access-{_word(dice, 5)}"
    labels = {"app": app, "tier": tier, "pod-template-hash": owner.rpartition("-")[2], "release": f"{app}-{tier}"}
    env = [{"name": f"{app.upper()}_SETTING_{i}", "value": _word(dice, 12)} for i in range(5)]
    probe = {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "timeoutSeconds": 1, "periodSeconds": 10}
    conditions = [
        {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": made}
        for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": f"{owner}-{_word(dice, 5)}",
            "generateName": f"{owner}-",
            "namespace": f"team-{number % spaces:02}",
            "uid": _uid(dice),
            "resourceVersion": str(version),
            "generation": 1,
            "creationTimestamp": made,
            "labels": labels,
            "annotations": {"checksum/config": _word(dice, 64), "prometheus.io/scrape": "true"},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": owner,
                    "uid": _uid(random.Random(owner)),  # noqa: S311
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "volumes": [
                {
                    "name": token,
                    "projected": {
                        "sources": [
                            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                        ],
                        "defaultMode": 420,
                    },
                },
                {"name": "config", "configMap": {"name": f"{app}-config", "defaultMode": 420}},
            ],
            "containers": [
                {
                    "name": app,
                    "image": image,
                    "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
                    "env": env,
                    "resources": {
                        "limits": {"cpu": "1", "memory": "1Gi"},
                        "requests": {"cpu": f"{dice.randrange(1, 10)}00m", "memory": f"{dice.randrange(1, 9)}00Mi"},
                    },
                    "volumeMounts": [
                        {"name": "config", "mountPath": "/etc/app"},
                        {
                            "name": token,
                            "readOnly": True,
                            "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
                        },
                    ],
                    "livenessProbe": probe,
                    "readinessProbe": probe,
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                    "imagePullPolicy": "IfNotPresent",
                }
            ],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": app,
            "serviceAccount": app,
            "nodeName": node,
            "securityContext": {"runAsNonRoot": True, "runAsUser": 10001, "fsGroup": 10001},
            "schedulerName": "default-scheduler",
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {
            "phase": "Running",
            "conditions": conditions,
            "hostIP": f"192.168.{dice.randrange(4)}.{dice.randrange(250)}",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "startTime": made,
            "containerStatuses": [
                {
                    "name": app,
                    "state": {"running": {"startedAt": made}},
                    "lastState": {},
                    "ready": True,
                    "restartCount": version % 7,
                    "image": image,
                    "imageID": f"registry.example.com/{tier}/{app}@sha256:{_word(dice, 64)}",
                    "containerID": f"containerd://{_word(dice, 64)}",
                    "started": True,
                }
            ],
            "qosClass": "Burstable",
        },
    }


def event(kind: str, number: int, version: int) -> bytes:
    """A line of a watch, without its newline."""
    return msgspec.json.encode({"type": kind, "object": pod(number, version)})
