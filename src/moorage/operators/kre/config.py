"""The KRE section of the operator's configuration."""

from __future__ import annotations

from typing import Any

import msgspec


class Poll(msgspec.Struct, frozen=True, rename="camel"):
    """Seconds between two looks at the servers of a Runtime."""

    busy_seconds: float = 5.0
    idle_seconds: float = 30.0


class Config(msgspec.Struct, frozen=True, rename="camel"):
    """`systems.kre`."""

    accounts: str  # the namespace of the accounts, of which each namespace that holds a Runtime has one
    cluster_role: str  # what such an account may do in its namespace
    charts: str = "/charts-kre"  # the folder with the chart
    namespaces: tuple[str, ...] = ()
    values: dict[str, Any] = {}  # of the chart, for all Runtimes, such as where images are
    poll: Poll = Poll()
    resync_seconds: float = 600.0
