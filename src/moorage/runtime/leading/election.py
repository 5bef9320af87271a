"""Leader election on a Lease, judged on the monotonic clock alone.

The holder renews every `retry` seconds and gives up leadership when no renewal succeeded for `renew` seconds, well
before `duration` ends for the others. A candidate takes an unreleased lease only after having itself seen it
unrenewed for a full `duration`, so another's interrupted work is never taken over earlier (law 7). Release is an
explicit act after the drain. A candidate hears of each renewal and of the release by a watch, so that it neither dates
the one nor finds the other late; where it may not watch, it does as often as it looks, every `retry` seconds.

It alone writes the Lease. What can go wrong: answers get lost (the lease is then recognised by this process's own
identity), others edit the Lease (only a change of its spec counts as a renewal), somebody deletes it (the holder stops
at its next renewal). Who finds none makes one that is held by `UNKNOWN`, whom nobody renews: all wait for as long as
whoever held the missing one may still work, and however often it is deleted, that time begins anew. An installation
that brings an empty Lease along spares its first leader that wait. A clock step changes nothing: times in the Lease are
for people.

Where there are several leases (`shard_balancer`), a candidate may `ask` the holder of one for it, by an annotation that
the holder finds in the answer to its next renewal, and the holder may hand it over to the one who asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import math
import random
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
import structlog

from moorage.api import builtin, meta
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.runtime.gate import Gate, NotLeading

from . import lease_watch

__all__ = ["Election", "Gate", "Lease", "LeaseSpec", "NotLeading", "Timing"]

log = structlog.get_logger(__name__)

RELEASE = 4.0
"""Seconds that giving the lease back may take."""

UNKNOWN = "unknown"
"""Who holds a lease that was missing, until its time is over."""

ASKED_BY = "moorage.dev/asked-by"
"""The annotation by which a candidate asks for a lease; see `Ask`."""


class LeaseSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The fields of a Lease's spec that election reads."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    lease_transitions: int | None = None
    renew_time: str | None = None


class Lease(msgspec.Struct, frozen=True, rename="camel"):
    """A Lease, as election reads it."""

    metadata: meta.ObjectMeta
    spec: LeaseSpec = LeaseSpec()


class Ask(msgspec.Struct, frozen=True):
    """Who wants the lease of another, how many leases that one has, and which time it asks."""

    identity: str
    holds: int
    nonce: str

    @classmethod
    def read(cls, text: str) -> Ask | None:
        """None for what nobody wrote so."""
        match text.split():
            case [identity, holds, nonce] if holds.isascii() and holds.isdigit():
                return cls(identity, int(holds), nonce)
        return None

    def __str__(self) -> str:
        return f"{self.identity} {self.holds} {self.nonce}"


class Timing(msgspec.Struct, frozen=True):
    """Seconds: `duration` > `renew` > `retry`; a task must be able to end within `duration` - `renew`."""

    duration: float = 15.0
    renew: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        """Raises ValueError."""
        if not self.duration > self.renew > self.retry > 0:
            raise ValueError(f"a lease needs duration > renew > retry > 0, not {self}")

    @property
    def margin(self) -> float:
        """What is left of the lease for others when its holder has given up: all must have ended by then."""
        return self.duration - self.renew


class Election:
    """One candidate. `acquire` returns as leader; `hold` returns when leadership is lost.

    `identity` must be unique, or that of all who hold the lease together (see `shard_balancer`).
    """

    def __init__(
        self,
        client: kube_client.Client,
        gate: Gate,
        *,
        namespace: str,
        name: str,
        identity: str,
        timing: Timing | None = None,
        news: asyncio.Event | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    ) -> None:
        """`news` is set when the lease is heard to be free; several elections may share one."""
        self._client, self._gate, self._clock, self._sleep = client, gate, clock, sleep
        self._namespace, self._name, self.identity = namespace, name, identity
        self._timing = timing or Timing()
        self._news = news or asyncio.Event()
        self._seen: LeaseSpec | None = None
        self._seen_at = 0.0
        self._version = ""
        self._lease_watch: lease_watch.LeaseWatch[Lease] | None = None
        self.asked: Ask | None = None
        """The latest wish of another for this lease, as last read."""
        gate.open_until(None)

    @property
    def holder(self) -> str:
        """Who held the lease when it was last read, and as far as is known still does; empty when it is free."""
        seen = self._seen
        if self._gate.is_open:
            return self.identity
        if seen is None or seen.holder_identity == UNKNOWN or self._clock() - self._seen_at >= self._promised():
            return ""
        return seen.holder_identity or ""

    @property
    def due(self) -> float:
        """Seconds until the lease runs out, if it is another's and nothing happens; else infinite."""
        left = 0.0 if self._is_given() else self._seen_at + self._promised() - self._clock()
        return left if left > 0 else math.inf

    async def acquire(self) -> None:
        """Wait until this process leads."""
        async with self.listening():
            while not await self.attempt():
                await self._pause()

    async def _pause(self) -> None:
        """Until it is time for another look."""
        wait = min(self._timing.retry * random.uniform(0.8, 1.2), self.due)  # noqa: S311 - jitter
        waiting = [asyncio.ensure_future(self._sleep(wait)), asyncio.create_task(self._news.wait())]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waiting:
                each.cancel()
        self._news.clear()

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Hear in here of what becomes of the lease."""
        hearing = lease_watch.listening(self._client, builtin.LEASE, self._namespace, self._name, Lease, self._hear)
        async with hearing as self._lease_watch:
            try:
                yield
            finally:
                self._lease_watch = None

    @property
    def is_deaf(self) -> bool:
        """Whether the lease should be heard of, and is not."""
        return self._lease_watch is not None and self._lease_watch.deaf

    def _hear(self, lease: Lease | None) -> None:
        before = self._seen.holder_identity if self._seen else None
        if lease is not None:
            self._see(lease.spec)
        if self._gate.is_open:
            return
        holder = lease.spec.holder_identity if lease is not None else None
        if not holder or (holder == self.identity != before):  # that others renew what is held together is no news
            self._news.set()

    async def attempt(self) -> bool:
        """Take the lease if it is free now: whether this process leads. Never raises."""
        return await self.look() and await self.take()

    async def look(self) -> bool:
        """Read the lease: whether it is free. Never raises."""
        return bool(await self._attempt(self._is_free))

    async def take(self) -> bool:
        """Take the lease as it was when it was found free: whether this process leads. Never raises."""
        leads = bool(await self._attempt(self._take))
        if leads:
            log.info("leading", lease=self._name, identity=self.identity)
        return leads

    async def ask(self, holds: int) -> None:
        """Ask its holder for the lease; this process has so many. Not repeated when the lease has just changed."""
        wish = Ask(self.identity, holds, uuid.uuid4().hex[:8])
        body: dict[str, object] = {"metadata": {"resourceVersion": self._version, "annotations": {ASKED_BY: str(wish)}}}
        await self._attempt(lambda: self._patch(body, self._timing.renew / 2))

    async def hold(self) -> None:
        """Renew until it fails for `renew` seconds or the lease is another's. The gate is closed on return."""
        try:
            while (left := self._gate.left) > 0:
                await self._sleep(min(self._timing.retry, left))
                if await self._attempt(self._renew) is None:
                    break
        finally:
            self._gate.open_until(None)
        log.warning("lease lost", lease=self._name, identity=self.identity)

    async def release(self, to: str = "") -> None:
        """Give the lease back if it is still ours, so that the next leader need not wait; `to` says who that is.

        Call after the drain.
        """
        self._gate.open_until(None)
        try:
            async with asyncio.timeout(RELEASE):
                lease = await self._read(RELEASE)
                if lease.spec.holder_identity != self.identity:
                    return
                kept = math.ceil(self._timing.duration) if to else 1
                await self._write({"holderIdentity": to, "leaseDurationSeconds": kept, "renewTime": _now()}, RELEASE)
            log.info("lease released", lease=self._name, to=to)
        except (errors.KubeError, TimeoutError) as error:
            log.warning("lease not released; it runs out by itself", lease=self._name, error=str(error))

    async def _attempt(self, step: Callable[[], Awaitable[bool | None]]) -> bool | None:
        """One try: True leads, False not (yet), None lost for good."""
        try:
            return await step()
        except NotLeading:
            return None
        except (errors.Conflict, errors.AlreadyExists):
            return False  # somebody was faster, which the next read tells
        except errors.KubeError as error:
            log.warning("lease request failed", lease=self._name, error=str(error))
            return False

    # --- becoming the leader -------------------------------------------------------------------------------------

    async def _is_free(self) -> bool:
        within = self._timing.renew / 2
        try:
            lease = await self._read(within)
        except errors.NotFound:
            lease = await self._create(within)
            log.info("no lease, waiting lest its holder still works", lease=self._name, seconds=self._promised())
        self._see(lease.spec)
        return self._is_given() or self._clock() - self._seen_at >= self._promised()

    def _see(self, spec: LeaseSpec) -> None:
        """A new spec is dated after it has come, as it may have been renewed until then."""
        if spec != self._seen:
            self._seen, self._seen_at = spec, self._clock()

    async def _take(self) -> bool:
        begun = self._clock()
        within = self._timing.renew / 2
        given, seen = self._is_given(), self._seen or LeaseSpec()
        transitions = (seen.lease_transitions or 0) + (seen.holder_identity != self.identity)
        await self._write(self._spec() | {"acquireTime": _now(), "leaseTransitions": transitions}, within)
        if not given:
            self._gate.inherit(self._clock() + self._timing.duration)
        self._open(begun)
        return True

    def _is_given(self) -> bool:
        """Whether the lease, as last seen, is nobody's or ours: its holder has given it back, if it had one."""
        return self._seen is None or self._seen.holder_identity in (None, "", self.identity)

    async def _create(self, within: float) -> Lease:
        promised = math.ceil(self._promised())
        body = {
            "apiVersion": builtin.LEASE.api_version,
            "kind": builtin.LEASE.kind,
            "metadata": {
                "name": self._name,
                "namespace": self._namespace,
                "labels": {"app.kubernetes.io/name": "moorage"},  # by which people's tools find it
            },
            "spec": {"holderIdentity": UNKNOWN, "leaseDurationSeconds": promised, "renewTime": _now()},
        }
        made = await self._client.create(
            builtin.LEASE, self._namespace, body, field_manager="moorage", as_=Lease, timeout=within
        )
        self._note(made)
        return made

    def _promised(self) -> float:
        """Seconds for which the holder that was seen may count on its lease."""
        promised = self._seen.lease_duration_seconds if self._seen else None
        return float(promised or self._timing.duration)

    # --- staying it ----------------------------------------------------------------------------------------------

    async def _renew(self) -> bool | None:
        """True when renewed. None when the lease is deleted: another may have created it anew already."""
        try:
            begun = self._clock()
            try:
                await self._write(self._spec(), self._within())
            except errors.Conflict:
                if not await self._still_mine():
                    return None
                begun = self._clock()
                await self._write(self._spec(), self._within())
        except errors.NotFound:
            return None
        self._open(begun)
        return True

    async def _still_mine(self) -> bool:
        """After a conflict: a foreign edit that left the holder alone is no loss, nor is an own lost answer."""
        lease = await self._read(self._within())
        return lease.spec.holder_identity == self.identity

    def _within(self) -> float:
        return self._gate.timeout(self._timing.renew / 2)

    def _open(self, begun: float) -> None:
        """The lease counts from when the renewal was begun: the server may have written it at any time since."""
        self._gate.open_until(begun + self._timing.renew)

    # --- requests ------------------------------------------------------------------------------------------------

    async def _read(self, timeout: float) -> Lease:
        lease = await self._client.get(builtin.LEASE, self._namespace, self._name, as_=Lease, timeout=timeout)
        self._note(lease)
        return lease

    async def _write(self, spec: dict[str, object], timeout: float) -> None:
        await self._patch({"metadata": {"resourceVersion": self._version}, "spec": spec}, timeout)

    async def _patch(self, body: dict[str, object], timeout: float) -> bool:
        lease = await self._client.patch_merge(
            builtin.LEASE, self._namespace, self._name, body, field_manager="moorage", as_=Lease, timeout=timeout
        )
        self._note(lease)
        return True

    def _note(self, lease: Lease) -> None:
        self._version = lease.metadata.resource_version
        self.asked = Ask.read(lease.metadata.annotations.get(ASKED_BY, ""))

    def _spec(self) -> dict[str, object]:
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": math.ceil(self._timing.duration),
            "renewTime": _now(),
        }


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
