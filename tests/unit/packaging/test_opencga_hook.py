"""Hook and probe of OpenCGA's pods have tests of their own, in Go, which take a few seconds."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

HOOK = Path(__file__).parents[3] / "images" / "opencga-hook"


def test_the_hook_s_own_tests_pass() -> None:
    go = shutil.which("go")
    if go is None:
        pytest.skip("go is not installed")
    done = subprocess.run(
        [go, "test", "-trimpath", "./..."], cwd=HOOK, capture_output=True, text=True, check=False, timeout=600
    )

    assert 0 == done.returncode, done.stdout + done.stderr
