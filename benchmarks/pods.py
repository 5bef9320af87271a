"""Many Pods at once: what a cached one weighs, how fast a watch is taken in, and how long the event loop stands still.

Pods of about 3.4 KB come over TLS from a process that has them ready (`pods_server`), as no API server could send them
fast enough. What is measured is a fresh process each time (`pods_reader`): moorage's cache, typed and in its cold tier,
and the path that kopf goes: lines, json.loads, dicts.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from benchmarks import place as places

READERS = {"moorage": ("typed", "cold"), "kopf": ("dicts",)}

SHARE = 5
"""Of how many Pods the kopf-style path takes one: it slows down with what is stored, so this is in its favour."""


async def measure(place: places.Place, runtime: str, *, count: int) -> dict[str, float]:
    """The figures of one runtime, each tier in a process of its own."""
    figures: dict[str, float] = {}
    for tier in READERS[runtime]:
        many = count // SHARE if tier == "dicts" else count
        async with _server(place, many) as address:
            found = await _read(place, address, tier, many)
        name = "typed" if tier == "dicts" else tier  # side by side with what it is compared with
        figures |= {f"{name} {figure}": value for figure, value in found.items()}
    return figures


@asynccontextmanager
async def _server(place: places.Place, count: int) -> AsyncIterator[str]:
    pki = place.state / "pki"
    words = ["--cert", str(pki / "serving.crt"), "--key", str(pki / "serving.key"), "--count", str(count)]
    command = [sys.executable, "-m", "benchmarks.pods_server", *words]
    serving = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, cwd=places.ROOT)
    assert serving.stdout is not None  # noqa: S101 - it is a pipe
    try:
        yield (await serving.stdout.readline()).decode().strip()
    finally:
        serving.terminate()
        await serving.wait()


async def _read(place: places.Place, address: str, tier: str, count: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.pods_reader", tier]
    command += ["--kubeconfig", place.access_at(address), "--count", str(count)]
    environment = {**os.environ, "PYTHONPATH": f"{places.ROOT / 'src'}:{places.ROOT}"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    reading = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, cwd=places.ROOT, env=environment)
    said, _ = await reading.communicate()
    if reading.returncode:
        raise RuntimeError(f"the reader of {tier} ended with code {reading.returncode}")
    return msgspec.json.decode(said, type=dict[str, float])
