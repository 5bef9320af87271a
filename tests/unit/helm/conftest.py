"""A real helm binary and charts made on the spot."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.helm.runs import binary

ROOT = Path(__file__).parents[3]

PROBE = """apiVersion: v1
kind: ConfigMap
metadata: {name: probe}
data: {values: {{ toJson .Values | quote }}}
"""


def find_helm() -> str | None:
    """MOORAGE_TEST_HELM, the testbed's, or the one on the PATH."""
    places = (os.environ.get("MOORAGE_TEST_HELM"), str(ROOT / ".testbed/bin/helm"), shutil.which("helm"))
    return next((p for p in places if p and os.access(p, os.X_OK)), None)


@pytest.fixture(scope="session")
def helm_path() -> str:
    path = find_helm()
    if path is None:
        pytest.skip("no helm binary: set MOORAGE_TEST_HELM or bring the testbed up")
    return path


@pytest.fixture
def helm(helm_path: str, tmp_path: Path) -> binary.Helm:
    """Helm without a cluster."""
    return binary.Helm(helm_path, binary.KubeAccess(server="https://127.0.0.1:1"), tmp_path / "scratch", grace=1)


@pytest.fixture
def make_chart(tmp_path: Path) -> Any:
    """make_chart({"templates/a.yaml": "..."}, name=..., version=...) -> its folder."""

    def make(files: dict[str, str] | None = None, *, name: str = "probe", version: str = "0.1.0", **meta: Any) -> Path:
        folder = tmp_path / "charts" / version / name
        body = {"apiVersion": "v2", "name": name, "version": version, **meta}
        for path, text in {
            "Chart.yaml": yaml.safe_dump(body),
            "values.yaml": "{}\n",
            "templates/probe.yaml": PROBE,
            **(files or {}),
        }.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        return folder

    return make
