"""The watches of a namespace that holds objects of a kind: all that is made for them, by one label."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moorage.api import builtin, meta
from moorage.kube.informers import informer
from moorage.runtime import kind, namespace_watches

from . import owners

Objects = informer.Informer[dict[str, Any]]


class View(namespace_watches.View):
    """Watched are StatefulSets, their pods and claims, and of `others` each; all with the label, which names the owner.

    Of Secrets the metadata alone is read.
    """

    def __init__(
        self, world: kind.World, namespace: str, user: str, *, label: str, others: Iterable[meta.Resource]
    ) -> None:
        super().__init__(world, namespace, user)
        self._label = label
        self.workloads = self._labelled(builtin.STATEFUL_SET)
        self.pods = self._labelled(builtin.POD)
        self.claims = self._labelled(builtin.VOLUME_CLAIM)
        self.others = {resource: self._labelled(resource) for resource in others}

    def _labelled(self, resource: meta.Resource) -> Objects:
        secret = {"metadata_only": True} if resource == builtin.SECRET else {}
        return self.open(resource, dict, labels=self._label, **secret)

    def of(self, cache: Objects, owner: str) -> list[dict[str, Any]]:
        """The objects with that owner's name, by name and number: what is decided hangs on no order."""
        mine = [obj for obj in cache.items() if owners.has_label(obj, self._label, owner)]
        return sorted(mine, key=lambda obj: (len(obj["metadata"]["name"]), obj["metadata"]["name"]))

    def mine(self, cache: Objects, name: str, owner: meta.ObjectMeta) -> dict[str, Any] | None:
        """The object of that name if it is labelled as this owner's, and owned by nobody else."""
        live = cache.get(self.namespace, name)
        return live if live is not None and owners.is_of(live, self._label, owner.name, owner.uid) else None

    def pods_of(self, owner: str) -> list[dict[str, Any]]:
        """Pods of a StatefulSet of that name, and such as it will take for its own. The label is for anybody to set."""
        return [pod for pod in self.of(self.pods, owner) if owners.may_be_of(pod, owner)]

    def members_of(self, owner: str, uid: str) -> list[dict[str, Any]]:
        """Pods of the very StatefulSet that the owner with that uid manages: whom a password may be told."""
        workload = self.workloads.get(self.namespace, owner)
        if workload is None or not owners.is_controlled(workload, uid):
            return []
        mine = workload["metadata"]["uid"]
        return [pod for pod in self.pods_of(owner) if owners.is_controlled(pod, mine)]
