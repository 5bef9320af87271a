"""Leader election on a Lease, judged on the monotonic clock alone.

The holder renews every `retry` seconds and gives up leadership when no renewal succeeded for `renew` seconds, well
before `duration` ends for the others. A candidate takes an unreleased lease only after having itself watched it
unchanged for a full `duration`, so another's interrupted work is never taken over earlier (law 7). Release is an
explicit act after the drain.

It alone writes the Lease. A clock step changes nothing: times in the Lease are for people.
"""

from __future__ import annotations

import asyncio
import datetime
import random
import time
from collections.abc import Callable

import msgspec
import structlog

from moorage.api import kinds, meta
from moorage.kube import client as kube_client
from moorage.kube import errors

log = structlog.get_logger(__name__)


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


class NotLeading(Exception):
    """This process may not write: it does not hold the lease, or not for long enough to finish a request."""


class Timing(msgspec.Struct, frozen=True):
    """Seconds: `duration` > `renew` > `retry`."""

    duration: float = 15.0
    renew: float = 10.0
    retry: float = 2.0


class Gate:
    """Says before each write whether it may start, and how long it may take. Always open without election."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: float | None = float("inf")

    def open_until(self, until: float | None) -> None:
        """Leadership is held until this monotonic time; None closes the gate."""
        self._until = until

    @property
    def is_open(self) -> bool:
        """Whether a write may start now."""
        return self._until is not None and self._clock() < self._until

    def timeout(self, wanted: float) -> float:
        """The time in seconds a request may take, so that it ends before the lease does. Raises NotLeading."""
        left = (self._until if self._until is not None else 0.0) - self._clock()
        if left <= 0:
            raise NotLeading("the lease is lost; nothing may be written")
        return min(wanted, left)


class Election:
    """One candidate. `acquire` returns as leader; `hold` returns when leadership is lost."""

    def __init__(
        self,
        client: kube_client.Client,
        gate: Gate,
        *,
        namespace: str,
        name: str,
        identity: str,
        timing: Timing | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._gate, self._clock = client, gate, clock
        self._namespace, self._name, self.identity = namespace, name, identity
        self._timing = timing or Timing()
        self._seen: tuple[str, float] = ("", 0.0)  # resourceVersion, first seen at
        self._version = ""
        gate.open_until(None)

    async def acquire(self) -> None:
        """Wait until this process leads."""
        while not await self._attempt(self._try_acquire):
            await asyncio.sleep(self._timing.retry * random.uniform(0.8, 1.2))  # noqa: S311 - jitter
        log.info("leading", lease=self._name, identity=self.identity)

    async def hold(self) -> None:
        """Renew until it fails for `renew` seconds or the lease is another's. The gate is closed on return."""
        try:
            while self._gate.is_open:
                await asyncio.sleep(self._timing.retry)
                if await self._attempt(self._renew) is None:
                    break
        finally:
            self._gate.open_until(None)
        log.warning("lease lost", lease=self._name, identity=self.identity)

    async def release(self) -> None:
        """Give the lease back, so that the next leader need not wait. Call after the drain."""
        self._gate.open_until(None)
        if not self._version:
            return
        spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _now()}
        try:
            await self._write(spec, timeout=2.0)
            log.info("lease released", lease=self._name)
        except errors.KubeError as error:
            log.warning("lease not released; it runs out by itself", lease=self._name, error=str(error))

    async def _attempt(self, step: Callable[[], object]) -> bool | None:
        """One try: True leads, False not (yet), None lost for good."""
        try:
            result = await step()  # type: ignore[misc]
        except errors.Conflict:
            return False
        except errors.KubeError as error:
            log.warning("lease request failed", lease=self._name, error=str(error))
            return False
        return result  # type: ignore[no-any-return]

    async def _try_acquire(self) -> bool:
        begun = self._clock()
        try:
            lease = await self._client.get(
                kinds.LEASE, self._namespace, self._name, as_=Lease, timeout=self._timing.renew / 2
            )
        except errors.NotFound:
            return await self._create(begun)
        version = lease.metadata.resource_version
        if version != self._seen[0]:
            self._seen = (version, begun)
        held = bool(lease.spec.holder_identity)
        duration = float(lease.spec.lease_duration_seconds or self._timing.duration)
        if held and begun - self._seen[1] < duration:
            return False
        self._version = version
        transitions = (lease.spec.lease_transitions or 0) + 1
        await self._write(self._spec() | {"acquireTime": _now(), "leaseTransitions": transitions})
        self._open(begun)
        return True

    async def _create(self, begun: float) -> bool:
        body = {
            "apiVersion": kinds.LEASE.api_version,
            "kind": kinds.LEASE.kind,
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": self._spec() | {"acquireTime": _now(), "leaseTransitions": 0},
        }
        lease = await self._client.create(
            kinds.LEASE, self._namespace, body, field_manager="moorage", as_=Lease, timeout=self._timing.renew / 2
        )
        self._version = lease.metadata.resource_version
        self._open(begun)
        return True

    async def _renew(self) -> bool | None:
        begun = self._clock()
        try:
            await self._write(self._spec(), timeout=self._gate.timeout(self._timing.renew / 2))
        except errors.Conflict:
            return await self._still_mine(begun)
        except errors.NotFound:
            return None  # somebody deleted the lease: another may have created it anew already
        except NotLeading:
            return None
        self._open(begun)
        return True

    async def _still_mine(self, begun: float) -> bool | None:
        """After a conflict: a foreign edit of the Lease that left the holder alone is no loss."""
        lease = await self._client.get(
            kinds.LEASE, self._namespace, self._name, as_=Lease, timeout=self._gate.timeout(self._timing.renew / 2)
        )
        if lease.spec.holder_identity != self.identity:
            return None
        self._version = lease.metadata.resource_version
        return False

    async def _write(self, spec: dict[str, object], *, timeout: float | None = None) -> None:
        body = {"metadata": {"resourceVersion": self._version}, "spec": spec}
        lease = await self._client.patch_merge(
            kinds.LEASE,
            self._namespace,
            self._name,
            body,
            field_manager="moorage",
            as_=Lease,
            timeout=timeout or self._timing.renew / 2,
        )
        self._version = lease.metadata.resource_version

    def _spec(self) -> dict[str, object]:
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": max(1, round(self._timing.duration)),
            "renewTime": _now(),
        }

    def _open(self, begun: float) -> None:
        """The lease counts from when the renewal was begun: the server may have written it at any time since."""
        self._gate.open_until(begun + self._timing.renew)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
