"""Whether anybody looks after the objects, by the Leases under which moorage works. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from moorage.api import conditions

PATIENCE = 60.0
"""Seconds beyond a Lease's own duration, as the clocks of people's machines are not the cluster's."""


class Operator(msgspec.Struct, frozen=True, rename="camel"):
    """What the Leases say of moorage; all is empty where they may not be read, or nobody is elected."""

    away_since: str = ""  # RFC 3339: the last renewal, if that is too long ago
    where: str = ""  # NAMESPACE/NAME of the Lease that was renewed last
    missing: bool = False  # there is no Lease at all: it is not installed
    places: tuple[str, ...] = ()  # namespaces of all that are at work

    @property
    def is_away(self) -> bool:
        """Nobody looks."""
        return self.missing or bool(self.away_since)

    @property
    def words(self) -> str:
        """What is wrong with it; empty if nothing is, as far as one can tell."""
        if self.missing:
            return "moorage does not run: this cluster has no Lease of it"
        if self.away_since:
            return f"moorage does not run: its Lease {self.where} was renewed last at {self.away_since}"
        if len(self.places) > 1:
            return f"moorage runs more than once, in {', '.join(self.places)}: keep one of them"
        return ""

    @property
    def next(self) -> str:
        """What is to be done about it."""
        if self.missing:
            return "install moorage: helm install moorage charts/moorage -n moorage-system --create-namespace"
        namespace = self.where.partition("/")[0]
        return f"start moorage: see kubectl get deployments,pods -n {namespace} -l app.kubernetes.io/name=moorage"


UNKNOWN = Operator()


def of(leases: Sequence[dict[str, Any]], now: float) -> Operator:
    """By all Leases that bear moorage's label, at `now` (epoch seconds)."""
    if not leases:
        return Operator(missing=True)
    renewed = [(at, lease) for lease in leases if (at := (lease.get("spec") or {}).get("renewTime"))]
    if not renewed:
        return UNKNOWN  # nobody has led yet, or nobody is elected here
    last, lease = max(renewed, key=lambda pair: conditions.epoch(pair[0]))
    at_work = {each["metadata"]["namespace"] for at, each in renewed if _is_held(at, each, now)}
    metadata = lease["metadata"]
    where = f"{metadata['namespace']}/{metadata['name']}"
    return Operator("" if at_work else last, where, places=tuple(sorted(at_work)))


def _is_held(renewed: str, lease: dict[str, Any], now: float) -> bool:
    duration = float((lease.get("spec") or {}).get("leaseDurationSeconds") or 0)
    return now - conditions.epoch(renewed) < duration + PATIENCE
