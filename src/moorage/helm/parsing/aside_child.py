"""The child process in which `aside` has jobs done. I/O on its own pipes only.

    python -m moorage.helm.parsing.aside_child

It reads one job after another from stdin and writes each result to stdout, until stdin ends. Memory is limited for the
whole process, processor time for each job: beyond the first the job is refused, beyond the second the process is
killed. After a job that needed much memory it ends, as Python gives little back.
"""

from __future__ import annotations

import os
import resource
import struct
import sys
import typing
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from . import helm_yaml, jobs

MEMORY = 160 << 20  # bytes beyond what the process begins with
CPU = 10  # seconds of processor time for one job
WORN_OUT = 96 << 20  # bytes that are still resident after a job
VIRTUAL, RESIDENT = 0, 1  # places in /proc/self/statm
LENGTH = struct.Struct(">I")


class Asked(msgspec.Struct, frozen=True, array_like=True):
    """A job by its name, with limits and arguments."""

    job: str
    limits: jobs.Limits
    args: tuple[msgspec.Raw, ...]


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """A result, or the name of an error and its words."""

    error: str
    message: str
    result: msgspec.Raw
    last: bool  # no further job is taken


def main() -> None:
    """Serve until stdin ends."""
    os.nice(5)
    most = _memory(VIRTUAL) + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while True:
        asked = read(sys.stdin.buffer)
        if asked is None:
            return
        _grant(CPU)
        answer = _answer(asked)
        write(sys.stdout.buffer, answer)
        if answer.last:
            return


def read(stream: BinaryIO) -> bytes | None:
    """One frame; None at the end."""
    head = stream.read(LENGTH.size)
    return stream.read(LENGTH.unpack(head)[0]) if len(head) == LENGTH.size else None


def write(stream: BinaryIO, answer: Answer) -> None:
    """One frame."""
    body = msgspec.msgpack.encode(answer)
    stream.write(LENGTH.pack(len(body)))
    stream.write(body)
    stream.flush()


def do(asked: bytes) -> Any:
    """The result of a job that is given as its frame."""
    order = msgspec.msgpack.decode(asked, type=Asked)
    job = jobs.JOBS[order.job]
    kinds = [kind for name, kind in typing.get_type_hints(job).items() if name not in ("limits", "return")]
    args = [msgspec.msgpack.decode(raw, type=kind) for raw, kind in zip(order.args, kinds, strict=True)]
    return job(order.limits, *args)


def _answer(asked: bytes) -> Answer:
    nothing = msgspec.Raw(msgspec.msgpack.encode(None))
    try:
        return Answer("", "", msgspec.Raw(msgspec.msgpack.encode(do(asked))), _worn_out())
    except MemoryError:
        return Answer(helm_yaml.TooLarge.__name__, f"needs more than {MEMORY >> 20} MiB of memory", nothing, True)
    except tuple(jobs.ERRORS.values()) as error:
        return Answer(type(error).__name__, str(error), nothing, _worn_out())
    except Exception as error:
        return Answer("", f"{type(error).__name__}: {error}", nothing, True)


def _grant(seconds: int) -> None:
    """Processor time beyond what is used up so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime) + 1 + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _worn_out() -> bool:
    return _memory(RESIDENT) > WORN_OUT


def _memory(kind: int) -> int:
    return int(Path("/proc/self/statm").read_text().split()[kind]) * resource.getpagesize()


if __name__ == "__main__":
    main()
