"""The OpenCGA section of the operator's configuration."""

from __future__ import annotations

import msgspec

from . import dialect


class Poll(msgspec.Struct, frozen=True, rename="camel"):
    """Seconds between two looks at the agents and servers of an installation."""

    busy_seconds: float = 5.0
    idle_seconds: float = 30.0


class Config(msgspec.Struct, frozen=True, rename="camel"):
    """`systems.opencga`."""

    accounts: str  # the namespace of the accounts, of which each namespace that holds an installation has one
    cluster_role: str  # what such an account may do in its namespace
    namespaces: tuple[str, ...] = ()
    poll: Poll = Poll()
    dialect: dialect.Dialect = dialect.Dialect()
    resync_seconds: float = 600.0
