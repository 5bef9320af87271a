"""The watches of a namespace that holds objects of a kind: all that is made for them, by one label."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moorage.api import builtin, meta
from moorage.children import owners
from moorage.kube.informers import informer
from moorage.runtime import kind, namespace_watches

Object = dict[str, Any]


class View(namespace_watches.View):
    """Watched is each of these resources, as far as it has the label, whose value names the owner.

    Of Secrets the metadata alone is read.
    """

    def __init__(
        self, world: kind.World, namespace: str, user: str, *, label: str, resources: Iterable[meta.Resource]
    ) -> None:
        super().__init__(world, namespace, user)
        self._label = label
        self.objects = {resource: self._labelled(resource) for resource in resources}

    def _labelled(self, resource: meta.Resource) -> informer.Informer[Object]:
        return self.open(resource, dict, labels=self._label, metadata_only=resource == builtin.SECRET)

    def of(self, resource: meta.Resource, owner: str) -> list[Object]:
        """The objects with that owner's name, by name and number: what is decided hangs on no order."""
        mine = [obj for obj in self.objects[resource].items() if owners.has_label(obj, self._label, owner)]
        return sorted(mine, key=lambda obj: (len(obj["metadata"]["name"]), obj["metadata"]["name"]))

    def mine(self, resource: meta.Resource, name: str, owner: meta.ObjectMeta) -> Object | None:
        """The object of that name if it is labelled as this owner's, and owned by nobody else."""
        live = self.objects[resource].get(self.namespace, name)
        return live if live is not None and owners.is_of(live, self._label, owner.name, owner.uid) else None

    def pods_of(self, owner: str) -> list[Object]:
        """Pods of a StatefulSet of that name, and such as it will take for its own. The label is for anybody to set."""
        return [pod for pod in self.of(builtin.POD, owner) if owners.may_be_of(pod, owner)]

    def members_of(self, owner: str, uid: str) -> list[Object]:
        """Pods of the very StatefulSet that the owner with that uid manages: whom a password may be told."""
        workload = self.objects[builtin.STATEFUL_SET].get(self.namespace, owner)
        if workload is None or not owners.is_controlled(workload, uid):
            return []
        mine = workload["metadata"]["uid"]
        return [pod for pod in self.pods_of(owner) if owners.is_controlled(pod, mine)]
