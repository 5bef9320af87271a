"""What is watched in each namespace that holds releases.

Claims and release records are always watched there (records by their metadata alone), pods too; the kinds of a
release's objects as its inventory names them. Secrets are only ever watched by their metadata.
"""

from __future__ import annotations

from typing import Any

from moorage.api import builtin, meta
from moorage.kube.informers import informer
from moorage.runtime import kind, namespace_watches

from .release import claim, records

CHILDREN = "app.kubernetes.io/managed-by=Helm"


class NamespaceView(namespace_watches.View):
    """The watches of one namespace."""

    def __init__(self, world: kind.World, namespace: str, user: str) -> None:
        super().__init__(world, namespace, user)
        self._kinds: dict[meta.Resource, informer.Informer[Any]] = {}
        self.claims = self.open(builtin.CONFIG_MAP, claim.ClaimObject, labels=claim.SELECTOR)
        self.records = self.open(builtin.SECRET, meta.Partial, labels=records.SELECTOR, metadata_only=True)
        self.pods: informer.Informer[dict[str, Any]] = self.open(builtin.POD, dict)

    def children(self, resource: meta.Resource) -> informer.Informer[Any]:
        """The release objects of one kind: whole, but Secrets by metadata."""
        cache = self._kinds.get(resource)
        if cache is None:
            for other in [r for r, c in self._kinds.items() if r.group_kind == resource.group_kind and c.unserved]:
                self.drop(self._kinds.pop(other))  # that version has gone
            secret = resource == builtin.SECRET
            cache = self.open(resource, meta.Partial if secret else dict, labels=CHILDREN, metadata_only=secret)
            self._kinds[resource] = cache
        return cache
