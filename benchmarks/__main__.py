"""Moorage beside its peers, on one API server, in one run. See docs/benchmarks.md.

    python -m benchmarks [--full] [--rounds N] [--only CASE... [--keep]] [--runtimes NAME...] [--index N]

Each round drives every runtime once, in an order that is another in each round, so that all meet the same machine.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import uvloop

from benchmarks import bare, cases, handover, machine, many, page, profiles, releases, results, table, world
from benchmarks import place as places

CASES = ("life", "backlog", "memory", "pods", "handover", "shards", "profile", "releases")
LATEST = places.ROOT / "benchmarks" / "results" / "latest.json"
PAGE = places.ROOT / "docs" / "benchmarks.md"


class Run:
    """One run: what is asked for, and what it has found so far."""

    def __init__(self, bench: cases.Bench, given: argparse.Namespace, kept: results.Results) -> None:
        self._bench, self._given, self._kept = bench, given, kept

    async def all(self) -> None:
        """Every case that is asked for."""
        given, bench = self._given, self._bench
        for number in range(given.rounds):
            for runtime in places.order(given.runtimes, number):
                if "life" in given.only:
                    restarted = cases.takes("restart", runtime, number)
                    await self._take(number, runtime, bench.life(runtime, restarted=restarted))
            for runtime in places.order(self._operators(), number):
                if "backlog" in given.only and cases.takes("backlog", runtime, number):
                    await self._take(number, runtime, _as("backlog", bench.backlog(runtime)))
        if {"memory", "handover"} & set(given.only):
            async with world.world(bench.admin, cases.fresh("crowd")) as crowd:
                await crowd.make_strangers(bench.size.strangers)
                if "memory" in given.only:
                    await self._memory(crowd.namespace)
                if "handover" in given.only and "moorage" in given.runtimes:  # the others hand over to nobody
                    await self._handover(crowd.namespace)
        if "pods" in given.only:
            for runtime, figures in (await many.measure(bench.size.pods, given.rounds)).items():
                for figure, rounds in figures.items():
                    self._kept.set("pods", runtime, figure, rounds)
            self._kept.save()
        if "shards" in given.only and "moorage" in given.runtimes:
            for number in range(given.rounds):
                await self._take(number, "moorage", _as("shards", handover.shards(bench)))

    async def releases(self) -> None:
        """The last case, as from then on controllers run beside the API server."""
        async with releases.releases(self._bench) as it:
            for number in range(self._given.rounds):
                for runtime in places.order(releases.RUNTIMES, number):
                    await self._take(number, runtime, _as("releases", it.take(runtime)))

    async def _memory(self, crowd: str) -> None:
        bench = self._bench
        async with world.world(bench.admin, cases.fresh("empty")) as empty:
            for number in range(self._given.rounds):
                for runtime in places.order(self._operators(), number):
                    await self._take(number, runtime, _as("memory", bench.memory(runtime, empty.namespace, crowd)))

    async def _handover(self, crowd: str) -> None:
        for number in range(self._given.rounds):
            await self._take(number, "moorage", _as("handover", handover.one_lease(self._bench, crowd)))

    def _operators(self) -> list[str]:
        return [each for each in self._given.runtimes if each != "limit"]

    async def _take(self, number: int, runtime: str, measuring: Any) -> None:
        began = time.monotonic()
        found: Mapping[str, cases.Figures] = await measuring
        for case, figures in found.items():
            self._kept.add(case, runtime, figures)
        self._kept.save()
        seconds = time.monotonic() - began
        print(f"round {number + 1}  {runtime:<23} {seconds:5.1f} s  {', '.join(found)}", file=sys.stderr, flush=True)


async def _as(case: str, measuring: Any) -> Mapping[str, cases.Figures]:
    return {case: await measuring}


async def _run(place: places.Place, given: argparse.Namespace, kept: results.Results) -> tuple[str, str]:
    """The API server's version, and the profiles as text."""
    size = cases.Size() if given.full else cases.SHORT
    async with bare.connected(place.kubeconfig, connections=world.WRITERS) as admin:
        await places.prepare(place, admin)
        bench = cases.Bench(place, admin, size)
        run = Run(bench, given, kept)
        await run.all()
        profiled = ""
        if "profile" in given.only and "moorage" in given.runtimes:
            profiled = profiles.page(await profiles.take(bench, size.profiled))
        if "releases" in given.only and "moorage" in given.runtimes:
            await run.releases()
        version = json.loads(await admin.send("GET", "/version"))["gitVersion"]
    return version, profiled


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="the sizes and rounds of the table; else small ones")
    parser.add_argument("--rounds", type=int, help="default: 7 of the full form, else 2")
    parser.add_argument("--only", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--runtimes", nargs="+", choices=results.RUNTIMES, default=results.RUNTIMES)
    parser.add_argument("--index", default="3", help="of the testbed")
    parser.add_argument("--into", type=Path, help="the file for the figures")
    parser.add_argument("--keep", action="store_true", help="in that file, the cases that are not taken now")
    given = parser.parse_args()
    given.rounds = given.rounds or (7 if given.full else 2)
    given.into = given.into or (LATEST if given.full else places.BUILD / "latest.json")
    return given


def main() -> None:
    """Run it; the full form writes docs/benchmarks.md and benchmarks/results/latest.json."""
    given = _options()
    given.runtimes = places.build(given.runtimes)
    place = places.up(given.index)
    began = os.getloadavg()[0], time.time()
    kept = results.Results(given.into, keep=given.keep)
    try:
        version, profiled = uvloop.run(_run(place, given, kept))
    finally:
        places.down(place)
    text = page.tables(kept.figures, machine.facts(began, version, given.rounds))
    if profiled:
        text += f"\n\n### Where moorage's time goes\n\n{profiled}"
    print(text)
    if given.full:
        page.write(PAGE, text)
    print(f"\nfigures in {given.into}; {table.unreached(kept.figures)}", file=sys.stderr)


if __name__ == "__main__":
    main()
