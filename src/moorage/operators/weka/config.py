"""The Weka section of the operator's configuration."""

from __future__ import annotations

import msgspec

from . import dialect


class Poll(msgspec.Struct, frozen=True, rename="camel"):
    """Seconds between two looks into a container, and at a cluster.

    Of a container that is ready its cluster tells whether it is up, so that it need not be asked itself as often.
    """

    busy_seconds: float = 5.0  # both, while they are not ready
    idle_seconds: float = 60.0  # a cluster that is ready
    container_seconds: float = 600.0  # a container that is ready


class Replace(msgspec.Struct, frozen=True, rename="camel"):
    """When a container that stays down is replaced by another one."""

    after_seconds: float = 1800.0  # that it is not Ready and its cluster lists it as down; 0: never
    per_day: int = 2  # of one cluster


class Config(msgspec.Struct, frozen=True, rename="camel"):
    """`systems.weka`."""

    accounts: str  # the namespace of the accounts, of which each namespace that holds clusters has one
    cluster_role: str  # what such an account may do in its namespace
    namespaces: tuple[str, ...] = ()
    images: tuple[str, ...] = ()  # how a name must begin to be run as root on nodes; none: nothing is
    scripts: bool = False  # whether a spec may bring scripts of its own, which run as root too
    dialect: dialect.Dialect = dialect.Dialect()
    poll: Poll = Poll()
    replace: Replace = Replace()
    resync_seconds: float = 600.0
