"""The figures of a run as Markdown: what each runtime did, and how moorage stands to its targets. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import msgspec

from benchmarks import stats
from benchmarks.results import COLUMNS, Rounds

CR, RYW, KUBE_RS = "controller-runtime", "controller-runtime-ryw", "kube-rs"


class Target(msgspec.Struct, frozen=True):
    """One target. With `peer` it is about the ratio to that runtime's figure, with `own` to another of moorage's."""

    says: str
    case: str
    figure: str
    peer: str = ""
    own: tuple[str, str] = ("", "")
    at_least: float | None = None
    at_most: float | None = None
    aim: bool = False
    """Hoped for, not asked for."""


TARGETS = (
    Target("cold start, objects/s to CR", "cold", "objects/s", CR, at_least=1.2),
    Target("cold start, objects/s to the limit", "cold", "objects/s", "limit", at_least=0.9),
    Target("cold start, objects/s to CR-RYW", "cold", "objects/s", RYW, at_least=1.0, aim=True),
    Target("cold start, operator CPU per object to CR", "cold", "cpu ms/object", CR, at_most=0.8),
    Target("cold start, operator CPU per object to kopf", "cold", "cpu ms/object", "kopf", at_most=0.35),
    Target("cold start, operator CPU per object to CR-RYW", "cold", "cpu ms/object", RYW, at_most=1.0, aim=True),
    Target("cold start, operator CPU per object to kube-rs", "cold", "cpu ms/object", KUBE_RS, at_most=1.0, aim=True),
    Target("cold start, writes per object", "cold", "writes/object", at_most=2),
    Target("burst, writes per object", "burst", "writes/object", at_most=2),
    Target("cold start, refused writes", "cold", "refused writes", at_most=0),
    Target("cold start, passes by own echoes", "cold", "passes by echoes", at_most=0),
    Target("burst, passes by own echoes", "burst", "passes by echoes", at_most=0),
    Target("warm restart, writes", "restart", "writes", at_most=0),
    Target("warm restart, seconds to idle", "restart", "seconds to idle", at_most=1.0),
    Target("warm restart, seconds to idle to kube-rs", "restart", "seconds to idle", KUBE_RS, at_most=1.0, aim=True),
    Target("change to child, p50 to CR", "change", "p50 ms", CR, at_most=1.0),
    Target("change to child, p99 to CR", "change", "p99 ms", CR, at_most=1.0),
    Target(
        "change behind a backlog, p99 to its own idle p99", "backlog", "p99 ms", own=("change", "p99 ms"), at_most=3
    ),
    Target("RSS at 2,500 objects, MiB", "memory", "rss with all objects MiB", at_most=64),
    Target(
        "RSS beside strangers to alone",
        "memory",
        "rss beside strangers MiB",
        own=("memory", "rss alone MiB"),
        at_most=1.01,  # two starts of the same differ as much
    ),
    Target("a typed Pod, KiB", "pods", "typed KiB/Pod", at_most=3),
    Target("a Pod in the cold tier, KiB", "pods", "cold KiB/Pod", at_most=1),
    Target("all Pods typed, RSS MiB", "pods", "typed rss MiB", at_most=400),
    Target("ingest, events per second and core", "pods", "events/s and core", at_least=90_000),
    Target("ingest, to the kopf-style path", "pods", "events/s and core", "kopf", at_least=8),
    Target("worst stall while all Pods are listed, ms", "pods", "list stall ms", at_most=20),
    Target("idle with 10 watches, mCPU", "idle", "mCPU", at_most=5),
    Target("idle with 10 watches, requests but the lease's", "idle", "requests", at_most=0),
    Target("stop to the next leader, s", "handover", "leaderless after a stop s", at_most=1.0),
    Target("crash to the next leader, s beyond the lease", "handover", "beyond the lease after a crash s", at_most=0.5),
    Target("writes in another's time, stop", "handover", "writes in another's time, stop", at_most=0),
    Target("writes in another's time, crash", "handover", "writes in another's time, crash", at_most=0),
    Target("writes in another's time, sleep", "handover", "writes in another's time, sleep", at_most=0),
    Target("two shards, CPU of the busier to one alone", "shards", "busier of two to one alone", at_most=0.6),
    Target("two shards, keys with two writers at once", "shards", "keys with two writers at once", at_most=0),
    Target("three resyncs, writes", "steady", "writes", at_most=0),
    Target("16 releases at once, seconds to helm", "releases", "seconds", "helm", at_most=1.0, aim=True),
)


def values(figures: Rounds, target: Target) -> list[float]:
    """What the target is judged by, round by round; empty when the run has no such figures."""
    ours = figures.get(target.case, {}).get("moorage", {}).get(target.figure, [])
    if target.peer:
        return paired(ours, figures.get(target.case, {}).get(target.peer, {}).get(target.figure, []))
    if not target.own[0]:
        return list(ours)
    theirs = figures.get(target.own[0], {}).get("moorage", {}).get(target.own[1], [])
    return stats.ratios(ours, theirs) if len(ours) == len(theirs) else []


def paired(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Ours to a peer's in the same case, round by round, of those that both took: who leaves some out takes the first.

    Figures of two cases do not pair so, as they may be of two runs.
    """
    both = min(len(ours), len(theirs))
    return stats.ratios(ours[:both], theirs[:both])


def targets(figures: Rounds) -> str:
    """How moorage stands to each target."""
    lines = [
        "| what | target | median | 95 % interval | least - most | reached |",
        "|---|---|---|---|---|---|",
    ]
    for target in TARGETS:
        found = values(figures, target)
        goal = f">= {target.at_least:,g}" if target.at_least is not None else f"<= {target.at_most:,g}"
        goal += " (aim)" if target.aim else ""
        if not found:
            lines.append(f"| {target.says} | {goal} | not measured | | | |")
            continue
        it = stats.estimate(found)
        verdict = "yes" if stats.reached(it, at_least=target.at_least, at_most=target.at_most) else "**no**"
        interval, spread = f"{number(it.low)} - {number(it.high)}", f"{number(it.least)} - {number(it.most)}"
        lines.append(f"| {target.says} | {goal} | {number(it.median)} | {interval} | {spread} | {verdict} |")
    return "\n".join(lines)


def medians(figures: Rounds) -> str:
    """The median of each figure for each runtime, and moorage's ratio to each peer with its interval."""
    there = [runtime for runtime in COLUMNS if any(runtime in of for of in figures.values())]
    lines = [
        f"| case | figure | {' | '.join(there)} |",
        f"|---|---|{'---|' * len(there)}",
    ]
    for case, of in figures.items():
        for figure in dict.fromkeys(name for runtime in there for name in of.get(runtime, {})):
            cells = [_cell(of, runtime, figure) for runtime in there]
            lines.append(f"| {case} | {figure} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(of: dict[str, dict[str, list[float]]], runtime: str, figure: str) -> str:
    theirs = of.get(runtime, {}).get(figure)
    if not theirs:
        return ""
    median = number(statistics.median(theirs))
    ours = of.get("moorage", {}).get(figure)
    if runtime == "moorage" or not ours:
        return median
    it = stats.estimate(paired(ours, theirs))
    if not math.isfinite(it.high) or not it.most:
        return median
    return f"{median} ({number(it.median)}x, {number(it.low)} - {number(it.high)})"


def facts(known: Sequence[tuple[str, str]]) -> str:
    """What the figures depend on."""
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in known)])


def number(value: float) -> str:
    """Three digits that count."""
    if not math.isfinite(value):
        return "∞"
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def unreached(figures: Rounds) -> str:
    """One sentence about the targets."""
    judged = [(target, values(figures, target)) for target in TARGETS if not target.aim]
    missed = [
        target.says
        for target, found in judged
        if found and not stats.reached(stats.estimate(found), at_least=target.at_least, at_most=target.at_most)
    ]
    return f"targets not reached: {'; '.join(missed)}" if missed else "all targets that were measured are reached"
