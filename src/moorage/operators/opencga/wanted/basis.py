"""What all of an installation's objects are made from: its spec, and the product's files. Pure."""

from __future__ import annotations

import msgspec

from moorage.api import meta
from moorage.operators.opencga import dialect as dialects
from moorage.operators.opencga import names, types

from . import automation, heeded, overrides, trees

MANAGED = "app.kubernetes.io/managed-by"


class Wanted(msgspec.Struct, frozen=True):
    """What the bodies are made from."""

    namespace: str
    name: str
    uid: str
    spec: types.CommunitySpec
    said: dialects.Dialect
    args: dict[str, trees.Tree]  # the product's files
    fault: str  # why nothing can be made of the spec; empty where all is well
    odd: str = ""  # keys that come to nothing in the product's files, in words

    @property
    def ref(self) -> meta.ObjectRef:
        """The installation, which owns all of them."""
        return names.COMMUNITY.ref(self.namespace, self.name, self.uid)

    @property
    def labels(self) -> dict[str, str]:
        """On every object."""
        return {**self.selector, "app.kubernetes.io/name": "opencga", MANAGED: "moorage"}

    @property
    def selector(self) -> dict[str, str]:
        """Of all pods."""
        return {names.APP: names.headless(self.name), names.LABEL: self.name}

    def role(self, role: str) -> dict[str, str]:
        """Of the pods of one role."""
        return {**self.selector, names.ROLE: role}


def of(namespace: str, name: str, uid: str, spec: types.CommunitySpec, said: dialects.Dialect) -> Wanted:
    """What the bodies are made from; where the spec contradicts itself, or has what may not be, `fault` says so."""
    own = frozenset({said.container.rest, said.container.agent, said.container.hook})
    args: dict[str, trees.Tree] = {}
    odd = ""
    if fault := overrides.fault(spec.stateful_set.spec, spec.members, own, names.CLAIM):
        fault = f"spec.statefulSet.spec: {fault}"
    elif taken := _taken(spec.metrics, said.ports):
        fault = f"spec.metrics.port is {spec.metrics.port}, at which {taken} listens; set another one"
    else:
        try:
            args = automation.arguments(namespace, name, spec, said)
            odd = heeded.odd_keys(spec)
        except trees.TreeError as error:
            fault = str(error)
    return Wanted(namespace, name, uid, spec, said, args, fault, odd)


def _taken(metrics: types.Metrics, ports: dialects.Ports) -> str:
    """Who else listens at that port of a pod; empty where nobody does."""
    others = {ports.rest: "the REST server", ports.monitor: "the MASTER's daemon", ports.agent: "the agent"}
    return others.get(metrics.port, "") if metrics.enabled else ""
