"""The XSLD section of the operator's configuration."""

from __future__ import annotations

import msgspec

from .group import dialect


class Poll(msgspec.Struct, frozen=True, rename="camel"):
    """Seconds between two looks at a group."""

    task_seconds: float = 2.0  # while a task of ours runs: who has left serves clients wrongly until it is noticed
    busy_seconds: float = 10.0
    idle_seconds: float = 30.0


class Retry(msgspec.Struct, frozen=True, rename="camel"):
    """How commands that failed are tried again."""

    attempts: int = 5
    base_seconds: float = 10.0
    cap_seconds: float = 300.0
    unanswered_seconds: float = 30.0  # for which a request that got no answer may be carried out still

    def after(self, attempts: int) -> float:
        """Seconds to wait after so many failures."""
        return min(self.cap_seconds, self.base_seconds * 2.0 ** min(attempts - 1, 20))


class Config(msgspec.Struct, frozen=True, rename="camel"):
    """`systems.xsld`."""

    accounts: str  # the namespace of the accounts, of which each namespace that holds caches has one
    cluster_role: str  # what such an account may do in its namespace
    namespaces: tuple[str, ...] = ()
    poll: Poll = Poll()
    retry: Retry = Retry()
    dialect: dialect.Dialect = dialect.Dialect()
    resync_seconds: float = 600.0
