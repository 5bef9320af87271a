"""The Collector kind: `example.com/v1alpha`, fields as users of the original know them, plus `spec.policy` (ours)."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from moorage.api import crd, meta
from moorage.helm import release_status

GROUP, VERSION = "example.com", "v1alpha"
COLLECTOR = meta.Resource(GROUP, VERSION, "Collector", "collectors")
FINALIZER = f"{GROUP}/release"
RELEASE_NAME_MAX = 53
"""Helm's own limit for the name of a release."""

_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"


class CollectorRef(msgspec.Struct, frozen=True, rename="camel"):
    """Which chart, in which version, with which values."""

    name: Annotated[
        str,
        msgspec.Meta(min_length=1, max_length=52, pattern=_LABEL, description="The chart's name. It can't be changed."),
    ]
    version: Annotated[
        str,
        msgspec.Meta(
            max_length=128,
            description="An exact chart version, a range such as ^1.2, or empty for the newest. Resolved once; "
            "the version in use is in status.chart and moves only when this field changes.",
        ),
    ] = ""
    configuration: Annotated[
        str,
        msgspec.Meta(max_length=1_000_000, description="The chart's values: a YAML mapping, encoded as base64."),
    ] = ""


class Tenant(msgspec.Struct, frozen=True, rename="camel"):
    """Whose collector it is. None of it can be changed, as it names the release and its namespace."""

    reference: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=63,
            pattern=r"^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?$",
            description="The tenant's namespace is this in lower case.",
        ),
    ]
    instance: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=51,
            pattern=_LABEL,
            description="The last part of the release's name: NAME-INSTANCE.",
        ),
    ]
    id: Annotated[str, msgspec.Meta(max_length=253, description="The tenant's id, handed to the chart.")] = ""


class Policy(msgspec.Struct, frozen=True, rename="camel"):
    """How the release is looked after."""

    drift: Annotated[
        Literal["Enforce", "Off"],
        msgspec.Meta(description="Enforce puts hand-made changes right; Off only reports them."),
    ] = "Enforce"
    on_failure: Annotated[
        Literal["Rollback", "Keep"],
        msgspec.Meta(description="What to do with an upgrade that fails or does not become ready in time."),
    ] = "Rollback"
    ready_timeout_seconds: Annotated[
        int,
        msgspec.Meta(ge=10, le=86_400, description="How long an upgrade may take to become ready, in seconds."),
    ] = 300
    hook_timeout_seconds: Annotated[
        int,
        msgspec.Meta(
            ge=10,
            le=3600,
            description="How long each hook of the chart may take, in seconds: what `helm --timeout` is.",
        ),
    ] = 300
    history_limit: Annotated[int, msgspec.Meta(ge=2, le=100, description="Revisions of the release that are kept.")] = (
        10
    )


class CollectorSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The desired state."""

    collector: CollectorRef
    tenant: Tenant
    cluster: Annotated[
        str,
        msgspec.Meta(
            max_length=63,
            description="The environment, such as gke-prod; chooses the chart source in the operator's configuration.",
        ),
    ] = ""
    policy: Policy = Policy()

    __cel__ = (
        crd.Rule(
            "self.collector.name == oldSelf.collector.name",
            "collector.name can't be changed, as it names the release: create a new Collector and delete this one",
        ),
        crd.Rule(
            "self.tenant == oldSelf.tenant",
            "tenant can't be changed, as it names the release and its namespace: create a new Collector and "
            "delete this one",
        ),
        crd.Rule(
            f"self.collector.name.size() + 1 + self.tenant.instance.size() <= {RELEASE_NAME_MAX}",
            f"the release is named collector.name-tenant.instance, and may have {RELEASE_NAME_MAX} characters: "
            "shorten one of them",
        ),
    )

    @property
    def release(self) -> str:
        """The name of the Helm release."""
        return f"{self.collector.name}-{self.tenant.instance}"

    @property
    def namespace(self) -> str:
        """The tenant's namespace, in which the release lives."""
        return self.tenant.reference.lower()


class CollectorStatus(release_status.HelmStatus, frozen=True, kw_only=True, rename="camel"):
    """The observed state: all of it is what every helm-backed kind reports."""


class Collector(msgspec.Struct, frozen=True):
    """A Collector, as its cache holds it."""

    metadata: meta.ObjectMeta
    spec: CollectorSpec
    status: CollectorStatus = CollectorStatus()


def definition() -> dict[str, object]:
    """The CustomResourceDefinition."""
    ready = '.status.conditions[?(@.type=="Ready")]'
    return crd.crd(
        group=GROUP,
        version=VERSION,
        kind="Collector",
        plural="collectors",
        short_names=("col",),
        spec=CollectorSpec,
        status=CollectorStatus,
        columns=(
            crd.Column("Ready", f"{ready}.status"),
            crd.Column("Status", f"{ready}.reason"),
            crd.Column("Version", ".status.chart.version"),
            crd.Column("Tenant", ".spec.tenant.reference"),
            crd.Column("Message", f"{ready}.message", priority=1),
            crd.Column("Age", ".metadata.creationTimestamp", type="date"),
        ),
    )
