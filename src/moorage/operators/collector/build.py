"""From a Collector's spec to what is made of it: the chart's values, and the tenant's namespace.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.api import builtin
from moorage.helm.charts import chart_archive, values

from . import types

ADMITS = "moorage.dev/collectors-from"
"""Annotation of a tenant's namespace: the namespaces whose Collectors it admits, with commas between."""

TENANT = "moorage.dev/tenant"
SYSTEM = "collector"


def chart_values(
    spec: types.CollectorSpec, configured: values.Given, image_repository: str, contents: chart_archive.Contents
) -> values.Given:
    """The user's configuration over what moorage knows, each of the latter only where the chart's schema takes it."""
    known: dict[tuple[str, ...], str] = {
        ("tenant", "id"): spec.tenant.id,
        ("tenant", "reference"): spec.tenant.reference,
        ("tenant", "instance"): spec.tenant.instance,
        ("cluster",): spec.cluster,
        ("image", "repository"): f"{image_repository}/{spec.collector.name}" if image_repository else "",
    }
    given: dict[str, Any] = {}
    for path, value in known.items():
        if value and contents.schema_takes(path):
            given = values.merge(given, _nest(path, value))
    return configured.over(given)


def namespace(spec: types.CollectorSpec, admits: str, labels: Mapping[str, str]) -> dict[str, Any]:
    """The tenant's namespace, which at first admits the Collector's own namespace alone."""
    tenant = {TENANT: spec.tenant.reference, "app.kubernetes.io/managed-by": "moorage"}
    return {
        "apiVersion": builtin.NAMESPACE.api_version,
        "kind": builtin.NAMESPACE.kind,
        "metadata": {"name": spec.namespace, "labels": {**labels, **tenant}, "annotations": {ADMITS: admits}},
    }


def admitted(annotation: str) -> tuple[str, ...]:
    """The namespaces that the annotation lists."""
    return tuple(part for part in (piece.strip() for piece in annotation.split(",")) if part)


def _nest(path: tuple[str, ...], value: str) -> dict[str, Any]:
    nested: Any = value
    for name in reversed(path):
        nested = {name: nested}
    return nested  # type: ignore[no-any-return]
