"""What the operator may do in a namespace: one RoleBinding there, of a name per system, to the system's ClusterRole.

Pure. Admission holds the operator to it: `charts/moorage/templates/<system>/admission.yaml`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.api import kinds, meta


class Rights(msgspec.Struct, frozen=True, rename="camel"):
    """Who the operator is, and the one ClusterRole that it binds itself to, by a RoleBinding of this name."""

    service_account: str
    namespace: str
    cluster_role: str
    binding: str


class RoleRef(msgspec.Struct, frozen=True, rename="camel"):
    """roleRef of a RoleBinding."""

    name: str = ""
    kind: str = ""


class Subject(msgspec.Struct, frozen=True):
    """One subject of a RoleBinding."""

    kind: str = ""
    name: str = ""
    namespace: str = ""


class RoleBinding(msgspec.Struct, frozen=True, rename="camel"):
    """A RoleBinding, as its cache holds it."""

    metadata: meta.ObjectMeta
    role_ref: RoleRef = RoleRef()
    subjects: tuple[Subject, ...] = ()


class BindingSeen(msgspec.Struct, frozen=True):
    """The operator's RoleBinding as an observation has it."""

    uid: str
    resource_version: str
    right: bool  # it gives what it should


def look(found: RoleBinding | None, rights: Rights) -> BindingSeen | None:
    """What is to be known of the binding that was found."""
    if found is None:
        return None
    right = binds(found.role_ref, found.subjects, rights)
    return BindingSeen(found.metadata.uid, found.metadata.resource_version, right)


def binding(namespace: str, rights: Rights) -> dict[str, Any]:
    """The RoleBinding by which the operator works in the namespace."""
    return {
        "apiVersion": kinds.ROLE_BINDING.api_version,
        "kind": kinds.ROLE_BINDING.kind,
        "metadata": {
            "name": rights.binding,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/managed-by": "moorage"},
        },
        "roleRef": {"apiGroup": kinds.ROLE_BINDING.group, "kind": "ClusterRole", "name": rights.cluster_role},
        "subjects": [{"kind": "ServiceAccount", "name": rights.service_account, "namespace": rights.namespace}],
    }


def binds(role: RoleRef, subjects: tuple[Subject, ...], rights: Rights) -> bool:
    """Whether a RoleBinding gives exactly these rights."""
    wanted = Subject("ServiceAccount", rights.service_account, rights.namespace)
    return (role.kind, role.name) == ("ClusterRole", rights.cluster_role) and subjects == (wanted,)
