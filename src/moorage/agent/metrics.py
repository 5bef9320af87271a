"""What an agent tells Prometheus, in its text format: numbers, and words of this code. Pure but for `Process.now`.

Whoever reaches the port reads it without a token. So nothing is in it that a server, the catalog or a user has said:
no error's words, no hosts, no names; where an agent stands is told by the names of `plan` alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import msgspec

from . import health


class Me(msgspec.Struct, frozen=True):
    """Whose they are; the pod's name is Prometheus' to add."""

    role: str
    version: str


class Server(msgspec.Struct, frozen=True):
    """The server, as the agent saw it last."""

    up: bool
    up_at: float  # epoch seconds when it last answered its ping; 0: never
    took: float  # seconds that it took for that
    starts: int  # how often this agent has had it started


class Process(msgspec.Struct, frozen=True):
    """What the agent itself takes."""

    began: float  # epoch seconds
    cpu: float  # seconds
    resident: int  # bytes

    @classmethod
    def now(cls) -> Process:
        """As the kernel counts it."""
        try:
            with open("/proc/self/statm", "rb") as file:
                resident = int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
        except (OSError, ValueError, IndexError):
            resident = 0
        return cls(_BEGAN, time.process_time(), resident)


_BEGAN = time.time()


def text(me: Me, place: health.Place, server: Server, process: Process, *, catalog: tuple[bool, str] | None) -> bytes:
    """All of them. `catalog` is told beside the MASTER: whether it is installed, and of which version."""
    lines: list[str] = []
    for name, kind, said, samples in _families(me, place, server, process, catalog):
        lines += [f"# HELP {name} {said}", f"# TYPE {name} {kind}"]
        lines += [f"{name}{_labels(labels)} {value:.17g}" for labels, value in samples]
    return ("\n".join(lines) + "\n").encode()


Samples = list[tuple[dict[str, str], float]]


def _families(
    me: Me, place: health.Place, server: Server, process: Process, catalog: tuple[bool, str] | None
) -> Iterator[tuple[str, str, str, Samples]]:
    stand = place.stand

    def gauge(name: str, said: str, value: float) -> tuple[str, str, str, Samples]:
        return name, "gauge", said, [({}, value)]

    labels = {"role": me.role, "version": me.version}
    yield "opencga_agent_info", "gauge", "1; which server the agent is beside.", [(labels, 1.0)]
    yield gauge("opencga_server_up", "1 while the server answers its ping.", server.up)
    yield gauge("opencga_server_expected", "1 where it should run.", stand.expected)
    if server.up_at:
        yield gauge("opencga_server_last_up_timestamp_seconds", "When it last answered, since the epoch.", server.up_at)
    if server.up:
        yield gauge("opencga_server_ping_seconds", "How long its last answer took.", server.took)
    said = "How often this agent has had it started."
    yield "opencga_server_starts_total", "counter", said, [({}, server.starts)]
    wanted, applied = max(place.wanted, 0), max(place.document, 0)
    yield gauge("opencga_configuration_wanted_version", "Of the configuration that is there; 0: none.", wanted)
    yield gauge("opencga_configuration_applied_version", "Of that which was applied last; 0: none.", applied)
    yield gauge("opencga_agent_in_goal", "1 while nothing is left to do.", stand.in_goal)
    yield gauge("opencga_agent_error", "1 while it can't go on; the resource's status says why.", bool(stand.error))
    if not stand.in_goal:
        labels = {"move": stand.move, "step": stand.step}
        said = "Since when it stands at that step, since the epoch."
        yield "opencga_agent_step_timestamp_seconds", "gauge", said, [(labels, place.since)]
    if catalog is not None:
        yield gauge("opencga_catalog_installed", "1 while the catalog is in the database.", catalog[0])
    yield gauge("process_start_time_seconds", "When the agent began, since the epoch.", process.began)
    yield "process_cpu_seconds_total", "counter", "Of the agent.", [({}, process.cpu)]
    yield gauge("process_resident_memory_bytes", "Of the agent.", process.resident)


def _labels(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
