"""The KRE section of the operator's configuration."""

from __future__ import annotations

from typing import Any

import msgspec


class Poll(msgspec.Struct, frozen=True, rename="camel"):
    """Seconds between two looks at the servers of a Runtime."""

    busy_seconds: float = 5.0
    idle_seconds: float = 30.0


class Images(msgspec.Struct, frozen=True, rename="camel"):
    """Of the containers beside a version's own. An empty one is left out."""

    fluent_bit: str = "fluent/fluent-bit:1.3"
    web: str = "nginxinc/nginx-unprivileged:stable-alpine"
    fetcher: str = ""  # brings archives from the Runtime's object store


class Versions(msgspec.Struct, frozen=True, rename="camel"):
    """`systems.kre.versions`."""

    images: Images = Images()
    ack_wait_seconds: float = 22 * 3600.0  # what the product's runners ask for: they refuse another


class Config(msgspec.Struct, frozen=True, rename="camel"):
    """`systems.kre`."""

    accounts: str = ""  # the namespace of the accounts, of which each namespace that holds a Runtime has one
    cluster_role: str = ""  # what such an account may do in its namespace
    charts: str = "/charts-kre"  # the folder with the chart
    namespaces: tuple[str, ...] = ()
    values: dict[str, Any] = {}  # of the chart, for all Runtimes, such as where images are
    poll: Poll = Poll()
    versions: Versions = Versions()
    resync_seconds: float = 600.0
