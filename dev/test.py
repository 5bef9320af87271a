"""`make test` and `make campaign`: every tier, on a testbed of its own, so that one in use is left alone.

    python -m dev.test [unit|api|testbed|e2e]... [--campaign]

The testbed is built and started while the tests that need nothing run. $MOORAGE_TEST_KUBECONFIG names another cluster
(with both images loaded), $SEED the seed of random tests, $TESTS what to run of the tiers, $TESTBED_STATE and
$TESTBED_INDEX where the testbed lives.
"""

from __future__ import annotations

import dataclasses
import os
import random
import re
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from . import deploy, stage
from . import place as places

ROOT = stage.ROOT
NO_TESTS = 5
"""Pytest's exit code when it was given no test."""

TIERS = ("unit", "api", "testbed", "e2e")
FOLDERS = {"unit": "tests/unit", "api": "tests/api", "testbed": "testbed/tests", "e2e": "tests/e2e"}
EVERYDAY = "20261128"
"""The seed of an ordinary run."""

NEED_HELM = ("tests/unit/helm", "tests/unit/packaging")
"""Unit tests with the real helm binary: on a new machine they run once the testbed has built it."""

INDEXES = ("4", "5", "6", "8", "9", "10", "11")
"""Of testbeds: the lower ones are for people, 7 is for the testbed's own tests."""

COUNTED = ("passed", "failed", "skipped", "error")


@dataclasses.dataclass
class Tally:
    """What became of the tests of one tier."""

    tier: str
    seconds: float
    counts: dict[str, int]
    ok: bool


class Testbed:
    """The cluster of the tests, brought up beside the tests that need none."""

    def __init__(self) -> None:
        given = os.environ.get("MOORAGE_TEST_KUBECONFIG", "")
        self.given = bool(given)
        state = Path(os.environ.get("TESTBED_STATE") or ROOT / "build" / "testbed")
        self.place = places.Place(given or str(state / "kubeconfig"), state=state)
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._bring_up)

    def start(self) -> None:
        """Begin to bring it up."""
        self._thread.start()

    def wait(self) -> None:
        """Return when it is there. Raises Failed when it can't be had."""
        self._thread.join()
        if self._error:
            raise self._error

    def settle(self) -> None:
        """Leave no half-made testbed behind when the tests ended first."""
        if self._thread.ident:
            self._thread.join()

    def environment(self) -> dict[str, str]:
        """What tests look for."""
        state = {} if self.given else {"TESTBED_STATE": str(self.place.state)}
        return state | {"MOORAGE_TEST_KUBECONFIG": self.place.kubeconfig, "TESTBED_BIN": str(places.BIN)}

    def fresh(self) -> None:
        """No operator of an earlier run may act on what the API tests make."""
        if not self.given and self.place.get("deployment", "moorage", "-n", places.NAMESPACE):
            with stage.stage("remove moorage of an earlier run"):
                self.place.helm("uninstall", "moorage", "-n", places.NAMESPACE, "--wait")

    def _bring_up(self) -> None:
        try:
            if not self.given:
                places.up(self.place, indexes=INDEXES)
                deploy.images(self.place, deploy.INPUTS)
        except stage.Failed as error:
            self._error = error


def work() -> int:
    """All tiers in order; the exit code tells whether something failed."""
    began = time.monotonic()
    words = sys.argv[1:]
    tiers = [word for word in words if word in TIERS] or list(TIERS)
    # a campaign looks for what nobody has met yet; every day the same is played, so that what fails is the change's
    drawn = str(random.SystemRandom().randrange(10**6)) if "--campaign" in words else EVERYDAY
    seed = os.environ.get("SEED") or drawn
    print(f"seed {seed}: the same again with SEED={seed}", flush=True)
    bed = Testbed()
    if tiers != ["unit"]:
        bed.start()
    tallies, trouble = [], ""
    late = NEED_HELM if len(tiers) > 1 and not (places.BIN / "helm").exists() else ()
    for tier in tiers:
        if tier != "unit":
            try:
                bed.wait()
            except stage.Failed as error:
                trouble = str(error)
                break
        if tier == "api":
            bed.fresh()
            if late:
                tallies.append(_pytest("unit", seed, bed, campaign="--campaign" in words, only=late))
        without = late if tier == "unit" else ()
        tally = _pytest(tier, seed, bed, campaign="--campaign" in words, without=without)
        tallies.append(tally)
        if not tally.ok and tier in ("api", "e2e"):
            print(f"\nThe cluster after the failure:\n{deploy.trouble(bed.place)}", flush=True)
    bed.settle()
    return _close(tallies, trouble, time.monotonic() - began)


def _pytest(
    tier: str, seed: str, bed: Testbed, *, campaign: bool, only: Sequence[str] = (), without: Sequence[str] = ()
) -> Tally:
    chosen = only or os.environ.get("TESTS", "").split() or [FOLDERS[tier]]
    command = [sys.executable, "-m", "pytest", *_only(chosen, tier), "-ra", "--durations=15", "--no-header"]
    command += [f"--ignore={folder}" for folder in without]
    command += ["-q"] if tier == "unit" else ["-v"]
    if tier == "testbed":
        command += ["-p", "no:asyncio"]  # it has settings of its own, and no use for it
    else:
        command += [f"--hypothesis-seed={seed}", "-m", "campaign" if campaign else "not campaign"]
    print(f"\n── {tier} ──", flush=True)
    environment = {**bed.environment(), "MOORAGE_TEST_SEED": seed, "PYTHONUNBUFFERED": "1"}
    begun, counts = time.monotonic(), dict.fromkeys(COUNTED, 0)
    running, lines = stage.spawn(command, environment)
    for line in lines:
        print(line, end="", flush=True)
        if re.search(r"\d+ (passed|failed|skipped|errors?|deselected)\b.* in [\d.]+s", line):
            counts = {word: _count(word, line) for word in COUNTED}
    code = running.wait()
    return Tally(tier, time.monotonic() - begun, counts, code in (0, NO_TESTS))


def _only(chosen: Sequence[str], tier: str) -> list[str]:
    """What was asked for of this tier."""
    return [path for path in chosen if path.startswith(FOLDERS[tier])] or [FOLDERS[tier]]


def _count(word: str, line: str) -> int:
    found = re.search(rf"(\d+) {word}", line)
    return int(found[1]) if found else 0


def _close(tallies: Sequence[Tally], trouble: str, seconds: float) -> int:
    print("\n── all ──")
    for it in tallies:
        words = ", ".join(f"{count} {word}" for word, count in it.counts.items() if count) or "no tests"
        print(f"  {it.tier:<8} {it.seconds:7.1f} s  {words}")
    total = {word: sum(it.counts[word] for it in tallies) for word in COUNTED}
    bad = [it.tier for it in tallies if not it.ok]
    if trouble:
        print(f"\nThe testbed did not come up, so the tests that need it did not run: {trouble}")
    if bad:
        print(f"  failed: {', '.join(bad)}")
    print(f"  {seconds:.0f} s in all")
    print(f"total: {total['passed']} passed, {total['failed'] + total['error']} failed, {total['skipped']} skipped")
    return 1 if bad or trouble else 0


if __name__ == "__main__":
    sys.exit(stage.main(["make test"], work))
