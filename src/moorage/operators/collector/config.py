"""The Collector's section of the operator's configuration."""

from __future__ import annotations

import msgspec


class ChartPlace(msgspec.Struct, frozen=True, rename={"plain_http": "plainHTTP", "secret_ref": "secretRef"}):
    """Where charts come from: a folder, or an OCI registry. Exactly one of the two."""

    folder: str = ""
    oci: str = ""  # oci://HOST/PATH, under which charts are found by name
    plain_http: bool = False
    secret_ref: str = ""  # Secret in moorage's namespace: username, password, ca.crt

    def __post_init__(self) -> None:
        if bool(self.folder) == bool(self.oci):
            raise ValueError("a chart source is either a folder or an oci address")


class Charts(msgspec.Struct, frozen=True):
    """By value of spec.cluster, with a default."""

    default: ChartPlace
    clusters: dict[str, ChartPlace] = {}


class Config(msgspec.Struct, frozen=True, rename="camel"):
    """`systems.collector`."""

    charts: Charts
    accounts: str  # the namespace of the accounts, of which each tenant's namespace has one
    tenant_cluster_role: str  # what such an account may do in its namespace
    namespaces: tuple[str, ...] = ()
    namespace_labels: dict[str, str] = {}
    image_repository: str = ""
    resync_seconds: float = 600.0
