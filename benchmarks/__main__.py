"""Moorage beside its peers, on one API server, in one run. See docs/benchmarks.md.

python -m benchmarks [--full] [--rounds N] [--only CASE...] [--runtimes NAME...] [--index N] [--into FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import uvloop

from benchmarks import bare, cases, results, world
from benchmarks import place as places

CASES = ("life", "backlog", "memory")


async def _rounds(bench: cases.Bench, given: argparse.Namespace, kept: results.Results) -> None:
    for number in range(given.rounds):
        for case in ("life", "backlog"):
            for runtime in places.rotated(given.runtimes, number):
                if case not in given.only or (case == "backlog" and runtime == "limit"):
                    continue
                began = time.monotonic()
                if case == "life":
                    found = await bench.life(runtime)
                else:
                    found = {"backlog": await bench.backlog(runtime)}
                _take(kept, number, runtime, found, time.monotonic() - began)
    if "memory" in given.only:
        await _memory(bench, given, kept)


async def _memory(bench: cases.Bench, given: argparse.Namespace, kept: results.Results) -> None:
    async with world.world(bench.admin, cases.strangers_namespace()) as crowd:
        await crowd.make_strangers(bench.size.strangers)
        async with world.world(bench.admin, cases.strangers_namespace()) as empty:
            for number in range(given.rounds):
                for runtime in places.rotated([x for x in given.runtimes if x != "limit"], number):
                    began = time.monotonic()
                    found = {"memory": await bench.memory(runtime, empty.namespace, crowd.namespace)}
                    _take(kept, number, runtime, found, time.monotonic() - began)


def _take(kept: results.Results, number: int, runtime: str, found: Mapping[str, cases.Figures], seconds: float) -> None:
    for case, figures in found.items():
        kept.add(case, runtime, figures)
    kept.save()
    print(f"round {number + 1}  {runtime:<23} {', '.join(found)}  {seconds:.1f} s", file=sys.stderr, flush=True)


async def _run(place: places.Place, given: argparse.Namespace) -> results.Results:
    size = cases.Size() if given.full else cases.SHORT
    async with bare.connected(place.kubeconfig, connections=world.WRITERS) as admin:
        await places.prepare(place, admin)
        kept = results.Results(given.into)
        await _rounds(cases.Bench(place, admin, size), given, kept)
        return kept


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="the sizes and rounds of the table; else small ones")
    parser.add_argument("--rounds", type=int, help="default: 7 of the full form, else 2")
    parser.add_argument("--only", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--runtimes", nargs="+", choices=places.RUNTIMES, default=places.RUNTIMES)
    parser.add_argument("--index", default="3", help="of the testbed")
    parser.add_argument("--into", type=Path, default=places.BUILD / "latest.json")
    given = parser.parse_args()
    given.rounds = given.rounds or (7 if given.full else 2)
    places.build()
    place = places.up(given.index)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            kept = runner.run(_run(place, given))
    finally:
        places.down(place)
    for case, runtimes in kept.figures.items():
        print(case, runtimes)


if __name__ == "__main__":
    main()
