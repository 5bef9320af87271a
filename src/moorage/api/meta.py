"""Object metadata, resources and references, in the API server's own vocabulary.

Structs here are read models: they keep only the fields that moorage reads, so a decoded object must never be
sent back whole (the rest would be dropped). Writes are bodies of owned fields; see `moorage.kube.client`.
"""

from __future__ import annotations

import re
import urllib.parse
from typing import Any, TypeAlias

import msgspec

__all__ = [
    "LAST_APPLIED",
    "Identity",
    "ListMeta",
    "ManagedFields",
    "ObjectMeta",
    "ObjectRef",
    "OwnerReference",
    "Partial",
    "Resource",
    "can_name",
]


LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""Annotation in which kubectl keeps a copy of the whole object, with all that is secret in its spec."""


Identity: TypeAlias = tuple[str, str, str, str]
"""Group, kind, namespace and name of an object."""


_NO_SEGMENT = re.compile(r"[/%]|^\.{1,2}$")


def can_name(text: str) -> bool:
    """Whether an object may be called so: the API server takes no name that would be more than one part of a path."""
    return bool(text) and not _NO_SEGMENT.search(text)


def _segment(text: str) -> str:
    """A name as one part of a path, so that one with slashes or dots, which somebody made up, leads nowhere else."""
    return urllib.parse.quote(text, safe="").replace(".", "%2E") if _NO_SEGMENT.search(text) else text


class Resource(msgspec.Struct, frozen=True, order=True):
    """A kind as the API server serves it: enough to build any request path."""

    group: str  # "" is the core group
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """`group/version`, or just `version` in the core group: the text of an object's apiVersion."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_kind(self) -> str:
        """`kind.group`, the version-free name that owner references are compared by."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The request path of the collection, of one object, or of its subresource.

        An empty namespace on a namespaced resource means all namespaces (collections only).
        """
        parts = [f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"]
        if self.namespaced and namespace:
            parts += ["namespaces", _segment(namespace)]
        parts.append(self.plural)
        if name:
            parts.append(_segment(name))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)

    def ref(self, namespace: str, name: str, uid: str = "") -> ObjectRef:
        """A reference to one object of this kind."""
        return ObjectRef(self.api_version, self.kind, namespace if self.namespaced else "", name, uid)


class ObjectRef(msgspec.Struct, frozen=True, order=True, rename="camel", omit_defaults=True):
    """Names one object. With a uid it names one incarnation of it. Objects are told apart by `identity`."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""

    @property
    def group(self) -> str:
        """The API group, empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def identity(self) -> Identity:
        """What the object is, whichever version it is named by: versions are views of one object."""
        return self.group, self.kind, self.namespace, self.name

    def __str__(self) -> str:
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {where}{self.name}"


class OwnerReference(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """One entry of metadata.ownerReferences."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False
    block_owner_deletion: bool = False


class ManagedFields(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One entry of metadata.managedFields: who set which fields, last."""

    manager: str = ""
    operation: str = ""
    subresource: str = ""
    fields_v1: dict[str, Any] = msgspec.field(name="fieldsV1", default_factory=dict)


class ObjectMeta(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """The metadata that decisions read. managedFields are left out: only a raw view (dict) keeps them."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str = ""  # RFC 3339, as sent
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def deleting(self) -> bool:
        """True from the moment a deletion was accepted until the last finalizer is gone."""
        return self.deletion_timestamp is not None

    @property
    def key(self) -> tuple[str, str]:
        """(namespace, name), the key of caches and queues."""
        return self.namespace, self.name

    def without_last_applied(self) -> ObjectMeta:
        """The same without kubectl's copy: fit for an observation."""
        annotations = {key: value for key, value in self.annotations.items() if key != LAST_APPLIED}
        return msgspec.structs.replace(self, annotations=annotations)


class Partial(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Any object seen by its metadata alone (PartialObjectMetadata)."""

    metadata: ObjectMeta = ObjectMeta()
    api_version: str = ""
    kind: str = ""


class ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    """The metadata of a list or of a page of one."""

    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")
    remaining_item_count: int | None = None
