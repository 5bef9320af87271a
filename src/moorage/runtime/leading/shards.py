"""Which part of the objects this process looks after: all of them, or shards, each under a lease and a gate of its own.

A key belongs to one shard, by the hash of its kind's `placement`, whoever runs. `shard_balancer` says which shards are
held; a pass over a key of another's shard never begins, and a pass that is under way goes through the gate of its
shard, as do the tasks that it starts. All processes watch everything, so that each can take over any shard at once.
"""

from __future__ import annotations

import asyncio
import zlib

from moorage.runtime import gate


class Shard:
    """One part. `held` while this process has its lease, `giving` while it is being handed over."""

    def __init__(self, number: int, at: gate.Gate) -> None:
        self.number, self.gate = number, at
        self.held = self.giving = False
        self._passes = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def is_mine(self) -> bool:
        """Whether passes over its keys may begin."""
        return self.held and not self.giving

    def passing(self) -> _Passing:
        """A pass over a key of this shard; all that is written in here goes through its gate."""
        return _Passing(self)

    async def idle(self) -> None:
        """Return once no pass is under way."""
        await self._idle.wait()

    def begin(self) -> None:
        """One more pass is under way."""
        self._passes += 1
        self._idle.clear()

    def end(self) -> None:
        """It is over."""
        self._passes -= 1
        if not self._passes:
            self._idle.set()


class _Passing:
    __slots__ = ("_shard", "_through")

    def __init__(self, shard: Shard) -> None:
        self._shard, self._through = shard, gate.through(shard.gate)

    def __enter__(self) -> None:
        self._shard.begin()
        self._through.__enter__()

    def __exit__(self, *_: object) -> None:
        self._through.__exit__(None, None, None)
        self._shard.end()


class Shards:
    """All shards there are. One alone is always held: whether anything may be written its gate says."""

    def __init__(self, count: int, whole: gate.Gate) -> None:
        """`whole` is the gate of the one shard, where there is but one. Raises ValueError."""
        if count < 1:
            raise ValueError(f"there are at least 1 shards, not {count}")
        self._only = Shard(0, whole) if count == 1 else None
        self.division = gate.Gate()
        """Open while the objects are divided into that many parts; no shard's gate is open longer."""
        self.all = [self._only] if self._only else [Shard(n, gate.Gate(within=self.division)) for n in range(count)]
        if self._only:
            self._only.held = True
            return
        for shard in self.all:
            shard.gate.open_until(None)

    @property
    def are_many(self) -> bool:
        """Whether a key may be another's."""
        return self._only is None

    @property
    def held(self) -> list[Shard]:
        """Those that this process has the lease of."""
        return [shard for shard in self.all if shard.held]

    def of(self, placement: str) -> Shard:
        """The shard of what is placed there."""
        return self._only or self.all[zlib.crc32(placement.encode()) % len(self.all)]
