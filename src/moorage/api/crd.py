"""Structs -> a CustomResourceDefinition of apiextensions.k8s.io/v1, as a plain dict in a stable order. Pure.

The status starts as `{observedGeneration: -1}`: a resource that nobody has looked at then counts as in progress for
everything that follows kstatus. Other defaults of the status Struct stay in the code: what was not seen is not told.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from . import schema
from .schema import Rule, immutable

__all__ = ["Column", "Rule", "Scale", "crd", "immutable"]

_UNSEEN = {"observedGeneration": -1}


class Column(msgspec.Struct, frozen=True):
    """A column of `kubectl get`. `priority` above 0 shows it with `-o wide` only."""

    name: str
    json_path: str  # e.g. ".status.phase"
    type: Literal["string", "integer", "number", "boolean", "date"] = "string"
    description: str = ""
    priority: int = 0

    def entry(self) -> dict[str, Any]:
        """An entry of additionalPrinterColumns."""
        entry: dict[str, Any] = {"name": self.name, "type": self.type, "jsonPath": self.json_path}
        if self.description:
            entry["description"] = self.description
        if self.priority:
            entry["priority"] = self.priority
        return entry


class Scale(msgspec.Struct, frozen=True):
    """Where the scale subresource reads and writes, as JSON paths."""

    spec: str
    status: str
    selector: str = ""

    def entry(self) -> dict[str, Any]:
        """subresources.scale."""
        entry = {"specReplicasPath": self.spec, "statusReplicasPath": self.status}
        return entry | ({"labelSelectorPath": self.selector} if self.selector else {})


def crd(
    *,
    group: str,
    version: str,
    kind: str,
    plural: str,
    spec: type[msgspec.Struct],
    status: type[msgspec.Struct] | None = None,
    singular: str = "",
    short_names: Sequence[str] = (),
    categories: Sequence[str] = ("moorage",),
    columns: Sequence[Column] = (),
    rules: Sequence[Rule] = (),
    scale: Scale | None = None,
    namespaced: bool = True,
    description: str = "",
) -> dict[str, Any]:
    """The definition of one kind in one version, served and stored.

    `rules` hold for the whole object: they may read `self.metadata.name` beside spec and status. Raises TypeError for a
    field that has no structural schema, with its path.
    """
    names: dict[str, Any] = {"kind": kind, "listKind": f"{kind}List", "plural": plural}
    names["singular"] = singular or kind.lower()
    if short_names:
        names["shortNames"] = list(short_names)
    if categories:
        names["categories"] = list(categories)
    served: dict[str, Any] = {"name": version, "served": True, "storage": True}
    served["schema"] = {"openAPIV3Schema": _root(spec, status, rules, description)}
    subresources: dict[str, Any] = {"status": {}} if status else {}
    if scale:
        subresources["scale"] = scale.entry()
    if subresources:
        served["subresources"] = subresources
    if columns:
        served["additionalPrinterColumns"] = [column.entry() for column in columns]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": names,
            "scope": "Namespaced" if namespaced else "Cluster",
            "versions": [served],
        },
    }


def _root(
    spec: type[msgspec.Struct], status: type[msgspec.Struct] | None, rules: Sequence[Rule], description: str
) -> schema.Schema:
    wanted = schema.of(spec)
    properties = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": wanted,
    }
    root: schema.Schema = {"type": "object"}
    if description:
        root["description"] = description
    root["properties"] = properties
    if wanted.get("required"):
        root["required"] = ["spec"]
    else:
        wanted["default"] = {}  # so that the defaults inside hold for an object without a spec
    if status is not None:
        properties["status"] = _status(status)
    if rules:
        root["x-kubernetes-validations"] = [rule.schema() for rule in rules]
    return root


def _status(status: type[msgspec.Struct]) -> schema.Schema:
    observed = schema.of(status, defaults=False)
    observed.pop("required", None)  # a status is written field by field
    if "observedGeneration" in observed.get("properties", {}):
        observed["default"] = dict(_UNSEEN)
        observed["properties"]["observedGeneration"]["default"] = _UNSEEN["observedGeneration"]
    return observed
