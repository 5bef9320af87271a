"""What the operator may do in a namespace: one RoleBinding there, of a name per system, to the system's ClusterRole.

Pure. Admission holds the operator to it: `charts/moorage/templates/<system>/admission.yaml`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.api import kinds, meta
from moorage.runtime import decision, observed
from moorage.runtime.decision import DONE, Act, Verdict


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


def is_bound(
    seen: observed.Observed[BindingSeen | None], namespace: str, rights: Rights, reason: decision.Reason, why: str
) -> Verdict:
    """The operator binds itself to its one role in the namespace."""
    if isinstance(seen, observed.Failed):
        return decision.unknown(reason, seen, "binding")
    if seen.value is not None and seen.value.right:
        return DONE
    bind = decision.Apply(why=why, resource=kinds.ROLE_BINDING, body=binding(namespace, rights))
    return Act(reason, f"the operator's rights in {namespace} are bound", (bind,))


def unbind(
    found: BindingSeen, namespace: str, rights: Rights, why: str, require: tuple[decision.Guard, ...] = ()
) -> decision.Delete:
    """Gives the rights back, if the binding is as it was seen."""
    return decision.Delete(
        why=why,
        resource=kinds.ROLE_BINDING,
        ref=kinds.ROLE_BINDING.ref(namespace, rights.binding, found.uid),
        resource_version=found.resource_version,
        require=require,
    )
