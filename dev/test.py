"""`make test` and `make campaign`: every tier, on testbeds of their own, so that one in use is left alone.

    python -m dev.test [unit|api|testbed|e2e]... [--campaign]

What mostly waits waits together: the tiers run side by side, as far as `LANES` says, and those that need a cluster with
several workers, each of which has a cluster of its own and takes one file after another. A campaign, which loads the
machine by itself, and a cluster that was given have one worker, and one tier after another. $MOORAGE_TEST_KUBECONFIG
names such a cluster (with all images loaded), $SEED the seed of random tests, $TESTS what to run of the tiers,
$TESTBED_STATE the folder of the testbeds, $TESTBED_INDEX the indexes that they may take.
"""

from __future__ import annotations

import dataclasses
import os
import random
import re
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent import futures
from pathlib import Path

from . import deploy, ground, outcome, stage
from . import place as places

ROOT = stage.ROOT
NO_TESTS = 5
"""Pytest's exit code when it was given no test."""

EVERYDAY = "20261128"
"""The seed of an ordinary run."""

LATE = ("tests/unit/helm", "tests/unit/packaging", "tests/unit/operators/kre/nats")
"""Unit tests with the real helm, or with NATS itself: on a new machine they run once helm is built."""

CLOSING = re.compile(r"=+ (?!test session starts)")
"""The line with which pytest begins to tell of the whole."""

STARTED = re.compile(r"(tests/\S+::.* )?\n")
"""A line that says no more than that a worker has begun a test."""


@dataclasses.dataclass(frozen=True)
class Tier:
    """Tests that need the same. Each of its `workers` has a testbed of its own; 0: one worker, and no testbed."""

    name: str
    folder: str
    workers: int = 0


TIERS = (
    Tier("unit", "tests/unit"),
    Tier("api", "tests/api", workers=1),
    Tier("testbed", "testbed/tests"),
    Tier("e2e", "tests/e2e", workers=1),
)
LANES = (("unit", "testbed", "api"), ("e2e",))
"""Side by side, as far as two cores bear it; within a lane one tier after another."""


@dataclasses.dataclass
class Run:
    """One run of some tiers."""

    tiers: Sequence[Tier]
    seed: str
    campaign: bool
    ground: ground.Ground = dataclasses.field(default_factory=ground.Ground)
    chosen: Sequence[str] = dataclasses.field(default_factory=lambda: os.environ.get("TESTS", "").split())
    late: Sequence[str] = ()
    troubles: list[str] = dataclasses.field(default_factory=list)
    speaking: threading.Lock = dataclasses.field(default_factory=threading.Lock)

    def lanes(self) -> list[list[Tier]]:
        """What runs side by side."""
        if self.campaign or self.ground.given:
            return [list(self.tiers)]
        lanes = [[tier for tier in self.tiers if tier.name in names] for names in LANES]
        return [lane for lane in lanes if lane]

    def begin(self) -> None:
        """Have made what the tiers need."""
        if any(tier.name != "unit" for tier in self.tiers):
            needs = {tier.name: self._workers(tier) for tier in self.tiers if tier.workers}
            self.late = () if self.ground.given or (places.BIN / "helm").exists() else LATE
            self.ground.begin(needs)

    def lane(self, tiers: Sequence[Tier]) -> list[outcome.Tally]:
        """Run these one after another."""
        return [tally for tier in tiers for tally in self._tier(tier)]

    def _tier(self, tier: Tier) -> Iterator[outcome.Tally]:
        try:
            if tier.workers:
                beds = self.ground.beds(tier.name)
                yield (tally := self._pytest(tier, self._paths(tier), beds))
                if not tally.ok:
                    told = "\n".join(f"{bed.name}:\n{deploy.trouble(bed)}" for bed in beds)
                    self._say(f"\nThe clusters of {tier.name} after the failure:\n{told}\n")
            elif tier.name == "unit":
                yield self._pytest(tier, [*self._paths(tier), *(f"--ignore={folder}" for folder in self.late)])
                if self.late:
                    self.ground.helm()
                    yield self._pytest(tier, self.late)
            else:
                self.ground.binaries()
                yield self._pytest(tier, self._paths(tier))
        except stage.Failed as error:
            self.troubles.append(f"{tier.name}: {error}")

    def _paths(self, tier: Tier) -> list[str]:
        """What was asked for of this tier."""
        return [path for path in self.chosen if path.startswith(tier.folder)] or [tier.folder]

    def _workers(self, tier: Tier) -> int:
        """As many as there is work for."""
        named = [ROOT / path.partition("::")[0] for path in self._paths(tier)]
        files = sum(len(list(path.rglob("test_*.py"))) if path.is_dir() else 1 for path in named)
        return 1 if self.campaign else min(tier.workers, max(files, 1))

    def _pytest(self, tier: Tier, words: Sequence[str], beds: Sequence[places.Place] = ()) -> outcome.Tally:
        report = stage.LOGS / f"tests-{tier.name}.xml"
        report.unlink(missing_ok=True)
        command = [sys.executable, "-m", "pytest", *words, "-ra", "--no-header", f"--junit-xml={report}"]
        command += ["-o", "junit_family=xunit1", "-q" if tier.name == "unit" else "-v"]
        if len(beds) > 1:  # files stay whole: fixtures of modules, and tests that go on from one another's end
            command += [f"--numprocesses={len(beds)}", "--dist=loadfile", "--no-loadscope-reorder"]
            command += ["--max-worker-restart=0"]
        if tier.name == "testbed":
            command += ["-p", "no:asyncio"]  # it has settings of its own, and no use for it
        else:
            command += [f"--hypothesis-seed={self.seed}", "-m", "campaign" if self.campaign else "not campaign"]
        environment = {"MOORAGE_TEST_SEED": self.seed, "PYTHONUNBUFFERED": "1", "TESTBED_BIN": str(places.BIN)}
        if beds and not self.ground.given:
            environment["MOORAGE_TEST_BEDS"] = os.pathsep.join(str(bed.state) for bed in beds)
        begun = time.monotonic()
        code = self._follow(tier, command, environment)
        return outcome.Tally.of(tier.name, time.monotonic() - begun, report, ok=code in (0, NO_TESTS))

    def _follow(self, tier: Tier, command: Sequence[str], environment: dict[str, str]) -> int:
        """Run it; each line is told with its tier as it comes, what is said at the end in one piece."""
        running, lines = stage.spawn(command, environment)
        closing: list[str] = []
        for line in lines:
            if closing or CLOSING.match(line):
                closing.append(line)
            elif not STARTED.fullmatch(line):
                self._say(f"{tier.name:<8}{line}")
        self._say(f"\n── {tier.name} ──\n{''.join(closing)}\n")
        return running.wait()

    def _say(self, text: str) -> None:
        with self.speaking:
            print(text, end="", flush=True)


def work() -> int:
    """All tiers; the exit code tells whether something failed."""
    began, before = time.monotonic(), _processors()
    words = sys.argv[1:]
    campaign = "--campaign" in words
    # a campaign looks for what nobody has met yet; every day the same is played, so that what fails is the change's
    drawn = str(random.SystemRandom().randrange(10**6)) if campaign else EVERYDAY
    seed = os.environ.get("SEED") or drawn
    print(f"seed {seed}: the same again with SEED={seed}", flush=True)
    run = Run([tier for tier in TIERS if tier.name in words] or TIERS, seed, campaign)
    run.begin()
    lanes = run.lanes()
    with futures.ThreadPoolExecutor(len(lanes)) as pool:
        tallies = [tally for lane in pool.map(run.lane, lanes) for tally in lane]
    run.ground.settle()
    print(f"\n── all ──\n{outcome.slowest(tallies)}\n")
    idle, whole = (now - then for now, then in zip(_processors(), before, strict=True))
    share = 1 - idle / max(whole, 1)
    print(f"{time.monotonic() - began:.0f} s in all, in which the machine's processors were busy for {share:.0%}\n")
    for trouble in run.troubles:
        print(f"These tests had nothing to run on: {trouble}\n")
    print(outcome.summary(tallies))
    return 0 if all(tally.ok for tally in tallies) and not run.troubles else 1


def _processors() -> tuple[int, int]:
    """Time that this machine's processors were idle, and all their time, in the kernel's ticks."""
    times = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return times[3] + times[4], sum(times)


if __name__ == "__main__":
    sys.exit(stage.main(["make test"], work))
