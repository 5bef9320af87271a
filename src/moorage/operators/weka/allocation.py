"""Who gets what of a node, and of the ports that all clusters share. Pure: what is seen in, what is to be had out.

Nothing is taken before it is written into a status; two who want the same at once are told apart by the guard that
looks right before the write (see `agents.Agents`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable

import msgspec

from . import dialect

_SERIAL = re.compile(r"[A-Za-z0-9_.:-]{1,128}")

MOST_DRIVES = 512
"""Of one node."""


class Span(msgspec.Struct, frozen=True, order=True):
    """Ports from `first` on."""

    first: int
    count: int

    def meets(self, other: Span) -> bool:
        """Whether they share a port."""
        return self.first < other.first + other.count and other.first < self.first + self.count


class Taken(msgspec.Struct, frozen=True):
    """What one other container has on the same node."""

    owner: str
    drives: frozenset[str] = frozenset()
    ports: tuple[Span, ...] = ()


def cluster_range(others: Iterable[Span], rules: dialect.Ports, *, wanted: int = 0) -> Span | None:
    """The range of one more cluster: where it asks to be, or the lowest that is free; None where there is none."""
    taken = sorted(it for it in others if it.count > 0)
    if wanted:
        asked = Span(wanted, rules.cluster)
        fits = wanted + rules.cluster - 1 <= 65_535
        return asked if fits and not any(asked.meets(it) for it in taken) else None
    first = rules.first
    for it in taken:
        if Span(first, rules.cluster).meets(it):
            first = it.first + it.count
    return Span(first, rules.cluster) if first + rules.cluster - 1 <= rules.last else None


def container_ports(within: Span, others: Iterable[Span], rules: dialect.Ports) -> tuple[int, int] | None:
    """(weka port, agent port) of one more container of a cluster on a node; None where its range has no more room."""
    taken = tuple(others)
    blocks = range(within.first, within.first + rules.single - rules.container + 1, rules.container)
    block = next((it for it in blocks if not any(Span(it, rules.container).meets(o) for o in taken)), 0)
    singles = range(within.first + rules.single, within.first + within.count)
    agent = next((it for it in singles if not any(Span(it, 1).meets(o) for o in taken)), 0)
    return (block, agent) if block and agent else None


def drives(
    signed: Iterable[str], blocked: Collection[str], taken: Collection[str], wanted: int, have: Iterable[str] = ()
) -> tuple[str, ...]:
    """So many drives that are not blocked, fewer where there are no more: those that it has, and then others by name.

    None that it has is taken away in here, as the cluster may hold data on it: that is for whoever removes a drive.
    """
    kept = tuple(dict.fromkeys(have))
    lacking = wanted - sum(it not in blocked for it in kept)
    free = sorted(it for it in set(signed) if it not in blocked and it not in taken and it not in kept)
    return (*kept, *free[: max(0, lacking)])


def serials(text: str) -> tuple[str, ...]:
    """The serials in a node's annotation, a JSON list of texts or of objects. Raises ValueError with what is wrong."""
    if not text:
        return ()
    try:
        found = msgspec.json.decode(text.encode())
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"it is no JSON: {str(error)[:100]}") from error
    if not isinstance(found, list) or len(found) > MOST_DRIVES:
        raise ValueError(f"it is no list of at most {MOST_DRIVES} drives")
    named = [it.get("serial_id") or it.get("serial") if isinstance(it, dict) else it for it in found]
    if not all(isinstance(it, str) and _SERIAL.fullmatch(it) for it in named):
        raise ValueError("an entry has no serial")
    return tuple(dict.fromkeys(map(str, named)))


def failure_domain(values: Iterable[str]) -> str:
    """The failure domain of a node, from the values of its labels: short enough for the product."""
    found = "-".join(it for it in values if it).replace("/", "-")
    return found if len(found) <= 16 else hashlib.sha256(found.encode()).hexdigest()[:16]
