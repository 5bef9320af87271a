"""Many Pods at once, as a case of the table: runs `benchmarks.reading` and takes the figures that targets speak of."""

from __future__ import annotations

import asyncio
import sys

import msgspec

from benchmarks import place as places

TAKEN = (
    ("moorage", "ingest-typed", "events_per_cpu_s", "events/s and core"),
    ("kopf", "kopf-style", "events_per_cpu_s", "events/s and core"),
    ("moorage", "ingest-typed", "events_per_s", "events/s"),
    ("kopf", "kopf-style", "events_per_s", "events/s"),
    ("moorage", "stream-typed", "kib_per_object", "typed KiB/Pod"),
    ("moorage", "stream-typed", "rss_mib", "typed rss MiB"),
    ("moorage", "stream-typed", "stall_ms", "list stall ms"),
    ("moorage", "stream-typed", "held_ms", "list stall, own CPU ms"),
    ("moorage", "stream-cold", "kib_per_object", "cold KiB/Pod"),
    ("moorage", "stream-cold", "rss_mib", "cold rss MiB"),
)
"""Runtime, case and figure of `reading`, and what the figure is called here."""


class Read(msgspec.Struct):
    """What `reading` has written."""

    cases: dict[str, dict[str, list[float]]]


async def measure(count: int, rounds: int) -> dict[str, dict[str, list[float]]]:
    """Runtime -> figure -> rounds. Raises RuntimeError when `reading` fails."""
    file = places.BUILD / "reading.json"
    cases = ",".join(dict.fromkeys(case for _, case, _, _ in TAKEN))
    words = ["--objects", str(count), "--events", str(count), "--rounds", str(rounds), "--only", cases]
    reading = await asyncio.create_subprocess_exec(
        *(places.python("moorage"), "-m", "benchmarks.reading", *words, "--json", str(file)),
        stdout=sys.stderr,
        cwd=places.ROOT,
        env=places.environment(),
    )
    if await reading.wait():
        raise RuntimeError(f"benchmarks.reading ended with code {reading.returncode}")
    return taken(msgspec.json.decode(await asyncio.to_thread(file.read_bytes), type=Read))


def taken(read: Read) -> dict[str, dict[str, list[float]]]:
    """The figures of `TAKEN` by their names here."""
    found: dict[str, dict[str, list[float]]] = {}
    for runtime, case, figure, name in TAKEN:
        found.setdefault(runtime, {})[name] = read.cases[case][figure]
    return found
