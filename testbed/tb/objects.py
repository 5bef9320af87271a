"""The objects that a whole cluster needs beside its processes: rights for DNS and provisioner, and a storage class."""

from typing import Any

from tb.api import Api
from tb.settings import STORAGE_CLASS

PROVISIONER = "testbed.local/host-path"
RBAC = "rbac.authorization.k8s.io"
READ = ["get", "list", "watch"]
RIGHTS: dict[str, list[dict[str, Any]]] = {
    "testbed:coredns": [
        {"apiGroups": [""], "resources": ["services", "endpoints", "pods", "namespaces"], "verbs": READ},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": READ},
    ],
    "testbed:provisioner": [
        {
            "apiGroups": [""],
            "resources": ["persistentvolumes"],
            "verbs": [*READ, "create", "delete", "patch", "update"],
        },
        {"apiGroups": [""], "resources": ["persistentvolumeclaims"], "verbs": [*READ, "update"]},
        {"apiGroups": [""], "resources": ["persistentvolumeclaims/status"], "verbs": ["patch"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch", "update"]},
        {"apiGroups": [""], "resources": ["nodes"], "verbs": READ},
        {"apiGroups": ["storage.k8s.io"], "resources": ["storageclasses"], "verbs": READ},
    ],
}


def apply(api: Api) -> None:
    """Bring the objects to what they should be; nothing is written when they are."""
    for name, rules in RIGHTS.items():
        api.apply(f"/apis/{RBAC}/v1/clusterroles/{name}", _named(f"{RBAC}/v1", "ClusterRole", name, rules=rules))
        api.apply(f"/apis/{RBAC}/v1/clusterrolebindings/{name}", _binding(name))
    api.apply(f"/apis/storage.k8s.io/v1/storageclasses/{STORAGE_CLASS}", _storage_class())


def _binding(name: str) -> dict[str, Any]:
    """The role of this name, given to the user of the same name."""
    return _named(
        f"{RBAC}/v1",
        "ClusterRoleBinding",
        name,
        roleRef={"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
        subjects=[{"apiGroup": RBAC, "kind": "User", "name": name}],
    )


def _storage_class() -> dict[str, Any]:
    body = _named(
        "storage.k8s.io/v1",
        "StorageClass",
        STORAGE_CLASS,
        provisioner=PROVISIONER,
        allowVolumeExpansion=True,
        reclaimPolicy="Delete",
        volumeBindingMode="Immediate",
    )
    body["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
    return body


def _named(version: str, kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **fields}
