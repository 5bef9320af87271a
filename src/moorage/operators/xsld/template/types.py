"""The GridTemplate kind."""

from __future__ import annotations

from typing import Annotated

import msgspec

from moorage.api import common_status, crd, meta
from moorage.operators.xsld import names
from moorage.operators.xsld.within_cache import common_steps
from moorage.operators.xsld.within_cache import rules as cache_rules

_XML = msgspec.Meta(min_length=1, max_length=262_144)


class Inline(
    msgspec.Struct, frozen=True, rename={"object_grid_xml": "objectGridXml", "deployment_xml": "deploymentXml"}
):
    """The two documents themselves."""

    object_grid_xml: Annotated[str, _XML]
    deployment_xml: Annotated[str, _XML]


class KeysRef(msgspec.Struct, frozen=True, rename="camel"):
    """An object of the same namespace that holds both documents."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
    object_grid_key: Annotated[str, msgspec.Meta(min_length=1, max_length=253)] = "objectGrid.xml"
    deployment_key: Annotated[str, msgspec.Meta(min_length=1, max_length=253)] = "deployment.xml"


class Source(msgspec.Struct, frozen=True, rename="camel"):
    """Where the documents come from: exactly one of these."""

    inline: Inline | None = None
    config_map_ref: KeysRef | None = None
    secret_ref: KeysRef | None = None

    __cel__ = (
        crd.Rule(
            "(has(self.inline) ? 1 : 0) + (has(self.configMapRef) ? 1 : 0) + (has(self.secretRef) ? 1 : 0) == 1",
            "give exactly one of inline, configMapRef and secretRef",
        ),
    )


class GridTemplateSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The desired state."""

    source: Source
    description: Annotated[str, msgspec.Meta(max_length=1024)] = ""
    template_name: Annotated[
        str, msgspec.Meta(max_length=253, description="The name on the server; empty: metadata.name.")
    ] = ""
    cache_ref: Annotated[
        common_steps.CacheRef | None, msgspec.Meta(description="Which cache; needed where the namespace has several.")
    ] = None

    __cel__ = crd.immutable("templateName")


class GridTemplateStatus(common_status.Status, frozen=True, kw_only=True, rename="camel"):
    """The observed state."""

    state: Annotated[str, msgspec.Meta(description="Pending, Uploading, Available, InUse or Error.")] = ""
    cache: str = ""
    asked: Annotated[bool, msgspec.Meta(description="An upload was begun, so the server may have it.")] = False
    hash: Annotated[str, msgspec.Meta(description="Of the documents that the server has.")] = ""
    used_by: Annotated[tuple[str, ...], msgspec.Meta(description="Grids that are made of it.")] = ()
    refused: Annotated[str, msgspec.Meta(description="Why the server would not take the documents.")] = ""
    refused_hash: str = ""


class GridTemplate(msgspec.Struct, frozen=True):
    """A GridTemplate, as its cache holds it."""

    metadata: meta.ObjectMeta
    spec: GridTemplateSpec
    status: GridTemplateStatus = GridTemplateStatus()

    @property
    def server_name(self) -> str:
        """The template's name on the server."""
        return self.spec.template_name or self.metadata.name

    @property
    def holder(self) -> str:
        """The cache that the template is in; empty: none yet."""
        return self.status.cache if self.status.hash else ""


def definition() -> dict[str, object]:
    """The CustomResourceDefinition."""
    return crd.crd(
        group=names.GROUP,
        version=names.VERSION,
        kind=names.TEMPLATE.kind,
        plural=names.TEMPLATE.plural,
        spec=GridTemplateSpec,
        status=GridTemplateStatus,
        rules=(cache_rules.stays_in_its_cache("has(self.status.asked) && self.status.asked"),),
        columns=(
            crd.Column("Cache", ".status.cache"),
            crd.Column("State", ".status.state"),
            crd.Column("Used", ".status.usedBy"),
            crd.Column("Message", '.status.conditions[?(@.type=="Ready")].message', priority=1),
            crd.Column("Age", ".metadata.creationTimestamp", type="date"),
        ),
    )
