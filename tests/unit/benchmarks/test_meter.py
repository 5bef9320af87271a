"""A helm in front of helm, which writes down what the real one used."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks import meter

BURNS = "#!/bin/sh\ni=0; while [ $i -lt 200000 ]; do i=$((i+1)); done\n"


def fake(folder: Path, script: str) -> Path:
    """What is started in place of helm."""
    path = folder / "real helm"
    path.write_text(script)
    path.chmod(0o700)
    return path


def test_each_run_is_told_by_its_verb_with_what_it_used(tmp_path: Path) -> None:
    """And what the runs before it used is not counted again."""
    it = meter.Meter(tmp_path / "meter", fake(tmp_path, BURNS))
    for verb in ("template", "install"):
        subprocess.run([it.path, verb, "a release"], check=True)

    runs = dict(it.read())

    assert {"template", "install"} == runs.keys()
    assert all(0 < used < 60 for used in runs.values())


def test_whoever_starts_it_gets_what_the_real_one_says(tmp_path: Path) -> None:
    """Words, input and exit code."""
    it = meter.Meter(tmp_path / "meter", fake(tmp_path, '#!/bin/sh\ncat\necho "$2" >&2\nexit 7\n'))

    done = subprocess.run([it.path, "upgrade", "two words"], input=b"given", capture_output=True, check=False)

    assert (7, b"given", b"two words\n") == (done.returncode, done.stdout, done.stderr)


def test_one_that_is_made_anew_has_seen_nothing(tmp_path: Path) -> None:
    """Each installation is measured by itself."""
    helm = fake(tmp_path, "#!/bin/sh\n")
    subprocess.run([meter.Meter(tmp_path / "meter", helm).path, "version"], check=True)

    assert [] == meter.Meter(tmp_path / "meter", helm).read()


@pytest.mark.parametrize(
    ("told", "seconds"),
    [("0m0.25s 0m0.05s", 0.30), ("1m2.500000s 0m0.500000s", 63.0)],
)
def test_shells_tell_minutes_and_seconds(told: str, seconds: float) -> None:
    """The second of their lines is that of their children."""
    assert [("install", pytest.approx(seconds))] == meter.metered(f"install\n0m9.00s 0m9.00s\n{told}\n")
