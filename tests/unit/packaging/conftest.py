"""Renders the charts with the real helm binary, offline. Skipped where there is none: `make up` brings it."""

from __future__ import annotations

import functools
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
Render = Callable[..., list[dict[str, Any]]]


@functools.cache
def _helm() -> str:
    own = ROOT / ".testbed/bin/helm"
    found = str(own) if own.exists() else shutil.which("helm")
    if not found:
        pytest.skip("no helm binary in .testbed/bin nor on the PATH; `testbed/testbed up` builds it")
    return found


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs helm with these arguments, away from the user's own helm files and cluster."""
    home = tmp_path_factory.mktemp("helm")
    env = {"HOME": str(home), "KUBECONFIG": "/dev/null"}

    def run(*args: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [_helm(), *args], env=env, input=stdin, capture_output=True, text=True, timeout=60, check=False
        )

    return run


@pytest.fixture(scope="session")
def render(helm: Callable[..., subprocess.CompletedProcess[str]]) -> Render:
    """render(chart, values, release=, namespace=) -> the objects that the chart makes of these values."""

    @functools.cache
    def text(chart: str, values: str, release: str, namespace: str) -> str:
        where = ["template", release, str(ROOT / "charts" / chart), "--namespace", namespace, "--values", "-"]
        done = helm(*where, stdin=values)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run(
        chart: str, values: dict[str, Any] | None = None, release: str = "rel", namespace: str = "place"
    ) -> list[dict[str, Any]]:
        rendered = text(chart, yaml.safe_dump(values or {}), release, namespace)
        return [document for document in yaml.safe_load_all(rendered) if document]

    return run


@pytest.fixture(scope="session")
def refusal(helm: Callable[..., subprocess.CompletedProcess[str]]) -> Callable[[str, dict[str, Any]], str]:
    """refusal(chart, values) -> what helm says when it refuses these values."""

    def run(chart: str, values: dict[str, Any]) -> str:
        done = helm("template", "rel", str(ROOT / "charts" / chart), "--values", "-", stdin=yaml.safe_dump(values))
        assert done.returncode != 0, f"accepted {values}"
        return done.stderr

    return run
