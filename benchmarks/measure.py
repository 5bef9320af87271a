"""What a process has used, from /proc, and what it asked of the API server, from the audit log. Linux alone."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from benchmarks.operators import names

_TICK = os.sysconf("SC_CLK_TCK")
WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


def cpu(pid: int) -> float:
    """CPU seconds of a process so far, in steps of 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def children_cpu(pid: int) -> float:
    """CPU seconds of the processes that this one has started and seen end, and of theirs."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / _TICK


def fine_cpu(pid: int) -> float:
    """CPU seconds of the threads that are alive, in nanoseconds' steps: for differences over a short time."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            total += int((task / "schedstat").read_text().split()[0])
        except FileNotFoundError:  # ended meanwhile
            continue
    return total / 1e9


def memory(pid: int) -> tuple[float, float]:
    """Resident memory now and at its peak, in MiB."""
    found = {}
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in ("VmRSS", "VmHWM"):
            found[name] = int(value.split()[0]) / 1024
    return found["VmRSS"], found["VmHWM"]


class User(msgspec.Struct):
    """Who asked."""

    username: str = ""


class Reference(msgspec.Struct):
    """What for."""

    resource: str = ""
    subresource: str = ""
    name: str = ""


class Status(msgspec.Struct):
    """How it went."""

    code: int = 0


class Request(msgspec.Struct, rename="camel"):
    """One line of the audit log."""

    stage: str = ""
    verb: str = ""
    user: User = msgspec.field(default_factory=User)
    object_ref: Reference = msgspec.field(default_factory=Reference)
    response_status: Status = msgspec.field(default_factory=Status)
    request_received_timestamp: str = ""
    stage_timestamp: str = ""


class Asked(msgspec.Struct):
    """What one user asked of the API server, leases aside."""

    writes: int = 0
    """That succeeded."""

    refused: int = 0
    """Writes that were answered with an error."""

    requests: int = 0
    """Of any kind; a watch counts when it begins."""

    watches: int = 0


def count(lines: Iterable[Request], user: str) -> Asked:
    """The user's part of the log."""
    asked = Asked()
    for line in lines:
        if line.user.username != user or line.object_ref.resource == "leases":
            continue
        if line.verb == "watch":
            begun = line.stage == "ResponseStarted"
            asked.watches += begun
            asked.requests += begun
        elif line.stage in ("ResponseComplete", "Panic"):
            asked.requests += 1
            if line.verb in WRITES:
                refused = line.response_status.code >= 400
                asked.refused += refused
                asked.writes += not refused
    return asked


def writes(lines: Iterable[Request], user: str, *, leases: bool = False) -> list[Request]:
    """The user's writes that were answered well, as they were received: those of leases, or all others."""
    mine = [
        line
        for line in lines
        if line.user.username == user
        and line.verb in WRITES
        and line.stage == "ResponseComplete"
        and line.response_status.code < 400
        and (line.object_ref.resource == "leases") is leases
    ]
    return sorted(mine, key=begun)


def begun(line: Request) -> float:
    """When the server received it, in epoch seconds."""
    return datetime.fromisoformat(line.request_received_timestamp).timestamp()


def ended(line: Request) -> float:
    """When it was answered, in epoch seconds."""
    return datetime.fromisoformat(line.stage_timestamp).timestamp()


def overlaps(lines: Sequence[Request], users: Sequence[str]) -> set[str]:
    """The Widgets for which writes of two users were under way at the same time."""
    spans: dict[str, list[tuple[float, float, str]]] = {}
    for user in users:
        for line in writes(lines, user):
            of = line.object_ref.name.removesuffix(names.child(""))
            spans.setdefault(of, []).append((begun(line), ended(line), user))
    return {
        of
        for of, each in spans.items()
        for (_, end, one), (start, _, other) in itertools.combinations(sorted(each), 2)
        if one != other and start < end
    }


class AuditLog:
    """The end of the audit log, read on from where it was last read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._decoder = msgspec.json.Decoder(Request)
        self.skip()

    def skip(self) -> None:
        """Forget what is there."""
        self._read_to = self._path.stat().st_size

    def read(self) -> list[Request]:
        """What has come since, as far as its lines are whole."""
        with self._path.open("rb") as file:
            file.seek(self._read_to)
            whole, newline, _ = file.read().rpartition(b"\n")
        self._read_to += len(whole) + len(newline)
        return [self._decoder.decode(line) for line in whole.splitlines()]


def span(lines: Iterable[Request], user: str) -> float:
    """Seconds from the receipt of a user's first write to the answer to its last; 0 without any."""
    mine = [x for x in lines if x.user.username == user and x.verb in WRITES and x.object_ref.resource != "leases"]
    if not mine:
        return 0.0
    first = min(x.request_received_timestamp for x in mine)
    last = max(x.stage_timestamp for x in mine)
    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()
