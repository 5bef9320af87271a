"""What a system may do in a namespace: an account for that namespace alone, bound there to the system's ClusterRole.

All that moorage reads and writes in a namespace goes by that account, by impersonation, so that whatever it was led to
believe, the API server lets it reach nothing outside. An account is a name in a namespace of moorage's own in which
nothing else lives: no ServiceAccount is made of it, so that there is no token that anybody could take. Pure. Admission
holds the operator to it: `charts/moorage/templates/<system>/admission.yaml`.

An installation for one namespace alone needs no such account: its own reaches nothing else. It says in the RoleBinding
of that name, which its chart makes there, whose it is, and so others leave the namespace to it.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from moorage.api import builtin, common_status, meta
from moorage.runtime import decision, freshness
from moorage.runtime.decision import DONE, Act, Verdict

_INSTALLATION = re.compile(r"[a-z0-9][-a-z0-9]*/[a-z0-9][-a-z0-9.]*")
MOST_NAME = 320
"""Characters of an installation's name."""


class Rights(msgspec.Struct, frozen=True, rename="camel"):
    """Whose accounts those are, where they are, and the one ClusterRole that each is bound to in its namespace."""

    system: str
    namespace: str  # the operator's own
    accounts: str  # the namespace of all accounts
    cluster_role: str
    finalizer: str = ""  # of the binding: rights that outlast a namespace's deletion until all is in order there
    here: bool = False  # the operator is there for its own namespace alone, by its own account

    @property
    def binding(self) -> str:
        """The name of the RoleBinding in each namespace."""
        return f"moorage-{self.system}"

    def account(self, namespace: str) -> str:
        """The account that reaches that namespace."""
        return f"{self.system}.{namespace}"

    def user(self, namespace: str) -> str:
        """Who that account is to the API server; empty where it is the operator itself."""
        return "" if self.here else f"system:serviceaccount:{self.accounts}:{self.account(namespace)}"

    def is_moorages_own(self, namespace: str) -> bool:
        """Nobody's release or cache may live there."""
        if self.here:
            return namespace != self.namespace
        return namespace.startswith("kube-") or namespace in (self.namespace, self.accounts)


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
    """The RoleBinding of a namespace's account as an observation has it."""

    uid: str
    resource_version: str
    role: bool  # it is to the right role, which can't be changed
    subject: bool  # it is for the right account, and for nobody else
    held: int = -1  # where among its finalizers that is by which moorage holds it; -1: nowhere
    other: str = ""  # the installation that says that the namespace is its own

    @property
    def right(self) -> bool:
        """It gives what it should."""
        return self.role and self.subject


HERE = BindingSeen("", "", role=True, subject=True)
"""What an installation for one namespace alone has there, by its chart."""


def look(found: RoleBinding | None, rights: Rights) -> BindingSeen | None:
    """What is to be known of the binding that was found."""
    if found is None:
        return None
    wanted = Subject("ServiceAccount", rights.account(found.metadata.namespace), rights.accounts)
    finalizers = found.metadata.finalizers
    return BindingSeen(
        found.metadata.uid,
        found.metadata.resource_version,
        (found.role_ref.kind, found.role_ref.name) == ("ClusterRole", rights.cluster_role),
        found.subjects == (wanted,),
        finalizers.index(rights.finalizer) if rights.finalizer in finalizers else -1,
        _other(found.metadata),
    )


def _other(metadata: meta.ObjectMeta) -> str:
    name = metadata.annotations.get(common_status.OPERATOR, "")
    return name if len(name) <= MOST_NAME and _INSTALLATION.fullmatch(name) else ""


def binding(namespace: str, rights: Rights) -> dict[str, Any]:
    """The RoleBinding by which the namespace's account works in it."""
    return {
        "apiVersion": builtin.ROLE_BINDING.api_version,
        "kind": builtin.ROLE_BINDING.kind,
        "metadata": {
            "name": rights.binding,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/managed-by": "moorage"},
            **({"finalizers": [rights.finalizer]} if rights.finalizer else {}),
        },
        "roleRef": {"apiGroup": builtin.ROLE_BINDING.group, "kind": "ClusterRole", "name": rights.cluster_role},
        "subjects": [{"kind": "ServiceAccount", "name": rights.account(namespace), "namespace": rights.accounts}],
    }


def is_bound(
    seen: freshness.Observed[BindingSeen | None], namespace: str, rights: Rights, reason: decision.Reason, why: str
) -> Verdict:
    """The namespace's account is bound to its one role there. A binding to another role is made anew."""
    if isinstance(seen, freshness.Failed):
        return decision.unknown(reason, seen, "binding")
    found = seen.value
    if found is not None and found.right:
        return DONE
    bind = decision.Apply(why=why, resource=builtin.ROLE_BINDING, body=binding(namespace, rights), as_operator=True)
    first = give_back(found, namespace, rights, "it is to another role") if found is not None and not found.role else ()
    return Act(reason, f"rights in {namespace} are bound", (*first, bind))


def give_back(
    found: BindingSeen, namespace: str, rights: Rights, why: str, require: tuple[decision.Guard, ...] = ()
) -> tuple[decision.AnyAction, ...]:
    """The binding goes, if it is as it was seen; first its finalizer, after which one that was ending is gone."""
    resource, ref = builtin.ROLE_BINDING, builtin.ROLE_BINDING.ref(namespace, rights.binding, found.uid)
    if found.held < 0:
        version = found.resource_version
        gone = decision.Delete(
            why=why, resource=resource, ref=ref, resource_version=version, require=require, as_operator=True
        )
        return (gone,)
    mine = f"/metadata/finalizers/{found.held}"
    free: tuple[dict[str, Any], ...] = (
        {"op": "test", "path": mine, "value": rights.finalizer},
        {"op": "remove", "path": mine},
    )
    return (
        decision.Patch(why=why, resource=resource, ref=ref, ops=free, require=require, as_operator=True),
        decision.Delete(why=why, resource=resource, ref=ref, as_operator=True),
    )
