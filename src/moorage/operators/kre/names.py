"""How all of a running version is called: objects in Kubernetes, and what is NATS'. Pure.

The names are those of the product, so that what looks for them finds them. Two things are mended. Names of objects,
which may have 63 characters, are shortened where they would be longer. And nodes of different workflows or versions
never get one name: workflow `a-b` with node `c` and workflow `a` with node `b-c` would both be `...-a-b-c`, so a
Deployment whose workflow or node has a `-` in its name bears a digest too.

A name depends on what it names alone, so it stays as it is whatever else comes and goes. All this is within one
runtime, of which there is one in a namespace. NATS' names need no mending: `_` and `.` are in none of their parts but
the last.
"""

from __future__ import annotations

import hashlib

import msgspec

from .krt import model

LONGEST = 63
"""Characters of a label's value, a Service's name or a container's."""
_DIGITS = 10
_MARK = "--"
"""Before the digest. A plain name has no dash right before its last one, as neither of its last two parts has any."""


class Names(msgspec.Struct, frozen=True):
    """The names of one version of one runtime."""

    runtime: str
    version: str

    # --- Kubernetes ---

    @property
    def entrypoint(self) -> str:
        """The Deployment that serves the version, and its Service."""
        return self._object("entrypoint")

    @property
    def config(self) -> str:
        """The ConfigMap with the values of the version's config keys."""
        return self._object("krt-conf")

    @property
    def files(self) -> str:
        """The ConfigMap with the files of the version's containers."""
        return self._object("conf-files")

    @property
    def mongo(self) -> str:
        """The Secret with the address by which the version's containers reach mongo."""
        return self._object("mongo")

    @property
    def active(self) -> str:
        """The Service of what is published, whichever version that is."""
        return _fitted((self.runtime, "active", "entrypoint"))

    def deployment(self, workflow: str, node: str) -> str:
        """The Deployment of a node; its container is called so too."""
        return _fitted((self.runtime, self.version, workflow, node), ambiguous="-" in workflow + node)

    # --- NATS ---

    def stream(self, method: str) -> str:
        """The stream of the workflow that answers this method."""
        return f"{self.runtime}_{self.version}_{method}"

    def subject(self, method: str, node: str) -> str:
        """What a node publishes under; that of the entrypoint by `model.ENTRYPOINT`."""
        return f"{self.stream(method)}.{node}"

    def inputs(self, method: str, node: model.Node) -> tuple[str, ...]:
        """The subjects that a node reads."""
        return tuple(self.subject(method, each) for each in node.subscriptions)

    def consumer(self, method: str, node: str, subscription: str) -> str:
        """The durable consumer by which a node reads one of its subjects, as the product's runners call it.

        Two of a workflow can come to one name, which `graph.check` tells.
        """
        return f"{self.stream(method)}-{model.reader(subscription, node)}"

    def subjects(self, workflow: model.Workflow) -> tuple[str, ...]:
        """All that the workflow's stream keeps: what comes in, and each node's own with its topics."""
        own = [self.subject(workflow.entrypoint, node.name) for node in workflow.nodes]
        incoming = self.subject(workflow.entrypoint, model.ENTRYPOINT)
        return (incoming, *(name for each in own for name in (each, f"{each}.*")))

    def object_store(self, workflow: str, store: model.ObjectStore) -> str:
        """The bucket of a node's object store: shared by who names it, in this workflow or in all."""
        parts = (self.runtime, self.version, *([workflow] if store.scope == "workflow" else []), store.name)
        return "_".join(parts)

    def key_values(self, workflow: str = "", node: str = "") -> str:
        """The key-value bucket of a node, of a workflow, or of the version."""
        return "_".join(part for part in ("key-store", self.runtime, self.version, workflow, node) if part)

    def _object(self, what: str) -> str:
        return _fitted((self.runtime, self.version, what))


def _fitted(parts: tuple[str, ...], *, ambiguous: bool = False) -> str:
    whole = "-".join(parts)
    if len(whole) <= LONGEST and not ambiguous:
        return whole
    digest = hashlib.sha256("/".join(parts).encode()).hexdigest()[:_DIGITS]
    return f"{whole[: LONGEST - len(_MARK) - _DIGITS].rstrip('-')}{_MARK}{digest}"
