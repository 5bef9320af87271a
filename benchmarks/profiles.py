"""Where moorage's time goes: cProfile by CPU time of the same operator, summed up by area and by function.

A profile slows Python down and native code not at all, so shares lean towards Python; they say where to look first.
"""

from __future__ import annotations

import asyncio
import pstats
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks import cases, world
from benchmarks import place as places

AREAS = (
    ("the operator itself", "benchmarks/operators"),
    ("moorage.api", "moorage/api/"),
    ("HTTP", "/kube/http/", "httptools", "/aiohttp/", "/urllib/"),
    ("moorage.kube", "moorage/kube/"),
    ("moorage.runtime", "moorage/runtime/"),
    ("moorage.children", "moorage/children/"),
    ("logs and metrics", "/structlog/", "/prometheus_client/"),
    ("event loop, TLS and sockets", "/asyncio/", "_ssl.", "/ssl.py", "uvloop"),
    ("msgspec", "msgspec"),
)
TOP = 8


class Share(NamedTuple):
    """A part of the CPU time."""

    name: str
    share: float


async def take(bench: cases.Bench, count: int) -> dict[str, Path]:
    """Case -> file, for cold start, warm restart, and resyncs."""
    files = {name: places.BUILD / f"{name}.prof" for name in ("cold", "restart", "steady")}
    async with world.world(bench.admin, cases.fresh("profile")) as it:
        await it.make(count)
        async with places.operator(bench.place, "moorage", it.namespace, profile=str(files["cold"])) as process:
            await it.settled(process.check, count=count)
            await cases.quiet(process)
        async with places.operator(bench.place, "moorage", it.namespace, profile=str(files["restart"])) as process:
            await cases.quiet(process)
        steady = places.operator(bench.place, "moorage", it.namespace, resync=1.0, profile=str(files["steady"]))
        async with steady:
            await asyncio.sleep(6.0)
    return files


def page(files: Mapping[str, Path]) -> str:
    """The profiles as Markdown."""
    return "\n\n".join(f"**{case}**\n\n{_one(pstats.Stats(str(file)))}" for case, file in files.items())


def _one(profile: pstats.Stats) -> str:
    timed = profile.stats  # type: ignore[attr-defined]
    total = sum(own for _, _, own, _, _ in timed.values())
    areas = dict.fromkeys([name for name, *_ in AREAS] + ["the rest of Python"], 0.0)
    functions = []
    for (file, line, name), (_, calls, own, whole, _) in timed.items():
        areas[area(file, name)] += own
        if "moorage/" in file and "benchmarks" not in file:
            functions.append((whole, f"`{file[file.rindex('moorage/') :]}:{line} {name}`", calls))
    lines = ["| area | share of CPU |", "|---|---|"]
    lines += [f"| {name} | {own / total:.0%} |" for name, own in sorted(areas.items(), key=lambda it: -it[1])]
    lines += ["", "| function, with all that it calls | resumptions | share |", "|---|---|---|"]
    for whole, name, calls in sorted(functions, reverse=True)[: 3 * TOP]:
        lines.append(f"| {name} | {calls:,} | {whole / total:.0%} |")
    return "\n".join(lines)


def area(file: str, name: str) -> str:
    """Which area a function belongs to."""
    for title, *marks in AREAS:
        if any(mark in file or (file == "~" and mark in name) for mark in marks):
            return title
    return "the rest of Python"
