"""What `make test` tells at its end, from reports that pytest has really written; and whose cluster a worker has."""

from __future__ import annotations

import collections
import os
import shutil
import subprocess
import sys
from pathlib import Path

from dev import outcome

ROOT = Path(__file__).parents[3]
MANY = """
import pytest

@pytest.fixture
def broken():
    raise OSError

@pytest.fixture
def unclear():
    yield
    raise OSError

def test_good(): pass

def test_bad(): assert False

def test_without(): pytest.skip()

@pytest.mark.xfail
def test_known(): assert False

def test_never_begun(broken): pass

@pytest.mark.parametrize("word", ["a b"])
def test_left_a_mess(word, unclear): pass
"""
BEDS = """
import os

def test_bed():
    print(os.environ["PYTEST_XDIST_WORKER"], os.environ["TESTBED_STATE"], os.environ["MOORAGE_TEST_KUBECONFIG"])
"""


def run(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Pytest in that folder, which has nothing of ours but what the test put there."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", ".", *words]
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    return subprocess.run(command, cwd=folder, env=inherited | environment, capture_output=True, text=True, check=False)


def test_each_way_to_end_is_counted(tmp_path: Path) -> None:
    (tmp_path / "test_many.py").write_text(MANY)
    report = tmp_path / "report.xml"
    run(tmp_path, f"--junit-xml={report}", "-o", "junit_family=xunit1")

    tally = outcome.Tally.of("api", 1.0, report, ok=False)

    assert {"passed": 1, "failed": 1, "skipped": 1, "expected": 1, "error": 2} == tally.counts
    assert "test_many.py::test_left_a_mess[a b]" in [name for _, name in tally.times]


def test_without_a_report_nothing_is_counted(tmp_path: Path) -> None:
    """Pytest did not come to its end."""
    tally = outcome.Tally.of("e2e", 1.0, tmp_path / "none.xml", ok=False)

    assert not tally.counts
    assert (
        "e2e          1.0 s  no tests; one after another 0 s\n  failed: e2e\ntotal: 0 passed, 0 failed, 0 skipped"
        in outcome.summary([tally])
    )


def test_an_error_is_a_failure_in_the_last_line() -> None:
    good = outcome.Tally("unit", 2.0, True, collections.Counter(passed=3, expected=1), [(1.0, "a")])
    bad = outcome.Tally("api", 3.0, False, collections.Counter(passed=1, failed=1, error=1, skipped=1), [])

    told = outcome.summary([good, bad]).splitlines()

    assert "  unit         2.0 s  3 passed; one after another 1 s" == told[0]
    assert ["  failed: api", "total: 4 passed, 2 failed, 1 skipped"] == told[-2:]


def test_the_slowest_of_all_tiers_come_first_and_files_as_a_whole() -> None:
    counts: collections.Counter[str] = collections.Counter()
    unit = outcome.Tally("unit", 9.0, True, counts, [(1.0, "a.py::one"), (1.5, "a.py::two")])
    api = outcome.Tally("api", 9.0, True, counts, [(2.0, "b.py::three")])

    told = outcome.slowest([unit, api]).splitlines()

    assert ["three", "two", "one"] == [line.rpartition("::")[2] for line in told[1:4]]
    assert ["a.py", "b.py"] == [line.split()[-1] for line in told[5:]]
    assert "2.5 s" in told[5]


def test_each_worker_has_a_cluster_of_its_own(tmp_path: Path) -> None:
    """By tests/conftest.py, before any file below it is read."""
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    for name in ("a", "b"):
        (tmp_path / f"test_{name}.py").write_text(BEDS)

    done = run(tmp_path, "-n2", "--dist=loadfile", "-rP", MOORAGE_TEST_BEDS=os.pathsep.join(["/one", "/two"]))

    said = [line for line in done.stdout.splitlines() if line.startswith("gw")]
    assert ["gw0 /one /one/kubeconfig", "gw1 /two /two/kubeconfig"] == sorted(said), done.stdout + done.stderr
