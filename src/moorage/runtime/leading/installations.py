"""Other installations of moorage that see the same objects: each object is one installation's.

Who sets its finalizer on an object writes its name beside it, in the same write, so that of several one is first. An
object that bears another's name is left alone: nothing is written to it but an Event, once. So is one that nobody has
taken yet, in a place where others are at work already for objects of the same namespace: they share what is there. Who
writes objects in another namespace says nothing by them of this one's. An installation that is gone for good leaves its
objects to whoever sees them.

Whether another is at work its Lease tells, which is looked at now and then while there are objects of it. It alone
judges that; it writes nothing. What can go wrong: the Lease may not be read, then the other counts as being at work,
and a person must take its name away from what it has left.
"""

from __future__ import annotations

import enum
import re
import time
from collections.abc import Callable, Hashable
from typing import Protocol, TypeVar

import msgspec

from moorage.api import builtin, common_status, meta
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.runtime import freshness, source

from . import election

OPERATOR = common_status.OPERATOR

LOOK_EVERY = 20.0
"""Seconds between looks at the Lease of another; longer than a Lease lasts, so that one that works has moved it."""

AWAY = 120.0
"""Seconds for which another must have been away to be gone for good: longer than a restart or an update of it."""

_NAME = re.compile(r"([a-z0-9](?:[-a-z0-9]*[a-z0-9])?)/([a-z0-9](?:[-a-z0-9.]*[a-z0-9])?)")


class Other(enum.Enum):
    """What is known of another installation."""

    WORKS = "works"
    AWAY = "away"
    GONE = "gone"
    HIDDEN = "hidden"  # its Lease may not be read


class Placed(Protocol):
    """An object of any kind."""

    @property
    def metadata(self) -> meta.ObjectMeta:
        """The object's metadata."""


O = TypeVar("O", bound=Placed)  # noqa: E741 - the object


class _Seen(msgspec.Struct):
    spec: election.LeaseSpec | None
    moved: float
    away_since: float | None = None


class Installations:
    """All others. `mine` is this installation's name; empty where it has none, as it holds no Lease."""

    def __init__(
        self,
        client: kube_client.Client,
        mine: str,
        enqueue: Callable[[Hashable], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.mine = mine
        self._client, self._clock = client, clock
        self._leases = source.Source[str, Other]("operator", self.look, enqueue, every=LOOK_EVERY)
        self._seen: dict[str, _Seen] = {}
        self._left: dict[Hashable, tuple[str, tuple[str, str]]] = {}  # key -> who has it, its namespace and placement

    def __len__(self) -> int:
        """How many objects are left to others."""
        return len(self._left)

    def whose(self, key: Hashable, obj: O, placement: Callable[[O], str]) -> str:
        """The other installation whose business the object is; empty when it is ours, or anybody's."""
        marked = obj.metadata.annotations.get(OPERATOR, "")
        if not marked and self._left:
            place = (obj.metadata.namespace, placement(obj))
            marked = next((who for left, (who, at) in self._left.items() if at == place and left != key), "")
        return marked if marked != self.mine and self.mine else ""

    def leave(self, key: Hashable, other: str, obj: O, placement: Callable[[O], str]) -> bool:
        """Leave the object to the other, whose coming and going brings it back; whether that is new."""
        new = key not in self._left or self._left[key][0] != other
        self._left[key] = other, (obj.metadata.namespace, placement(obj))
        self._leases.follow(other, key)
        return new

    def is_gone(self, other: str, key: Hashable) -> bool:
        """Whether the other is gone for good, as far as is known now."""
        return freshness.value_of(self._leases.follow(other, key)) is Other.GONE

    def forget(self, key: Hashable) -> None:
        """The object is gone, or is ours."""
        if self._left.pop(key, None) is None and not self._seen:
            return
        self._leases.forget(key)
        held = {who for who, _ in self._left.values()}
        for other in self._seen.keys() - held:
            del self._seen[other]

    async def stop(self) -> None:
        """Look no more."""
        await self._leases.stop()

    async def look(self, other: str) -> Other:
        """At the Lease of another installation. What is no name of any is nobody's."""
        if (named := _NAME.fullmatch(other)) is None:
            return Other.GONE
        try:
            found = await self._client.get(builtin.LEASE, *named.groups(), as_=election.Lease)
        except errors.NotFound:
            return self._judge(other, None)
        except errors.Forbidden:
            return Other.HIDDEN
        return self._judge(other, found.spec)

    def _judge(self, other: str, spec: election.LeaseSpec | None) -> Other:
        now = self._clock()
        seen = self._seen.get(other)
        if seen is None or seen.spec != spec:
            seen = self._seen[other] = _Seen(spec, now, seen.away_since if seen else None)
        lasts = (spec.lease_duration_seconds or 0) if spec and spec.holder_identity else 0
        if now - seen.moved < lasts:
            seen.away_since = None
            return Other.WORKS
        seen.away_since = now if seen.away_since is None else seen.away_since
        return Other.GONE if now - seen.away_since >= AWAY else Other.AWAY
