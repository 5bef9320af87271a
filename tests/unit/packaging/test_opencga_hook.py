"""Hook and probe of OpenCGA's pods have tests of their own, in Go, which take a few seconds."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

HOOK = Path(__file__).parents[3] / "images" / "opencga-hook"


def test_the_hook_s_own_tests_pass() -> None:
    go = shutil.which("go")
    if go is None:
        pytest.skip("go is not installed")
    environment = os.environ | {"CGO_ENABLED": "0"}  # as its image is built, whose packages are taken over
    command = [go, "test", "-trimpath", "./..."]
    done = subprocess.run(command, cwd=HOOK, env=environment, capture_output=True, text=True, check=False, timeout=600)

    assert 0 == done.returncode, done.stdout + done.stderr
