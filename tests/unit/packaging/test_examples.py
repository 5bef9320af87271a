"""The examples say in their comments what their base64 holds, and the sample chart takes it."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(__file__).resolve().parents[3] / "examples/collector"
EXAMPLES = sorted(FOLDER.glob("*.yaml"))


def values_in(spec: dict[str, Any]) -> str:
    return base64.b64decode(spec["collector"]["configuration"]).decode()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_comment_is_what_the_base64_holds(path: Path) -> None:
    text = path.read_text()
    comment = "".join(line + "\n" for line in re.findall(r"^    #   (.*)$", text, re.MULTILINE))
    assert comment == values_in(yaml.safe_load(text)["spec"])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_sample_chart_takes_it(path: Path, render: Any) -> None:
    spec = yaml.safe_load(path.read_text())["spec"]
    values = {**yaml.safe_load(values_in(spec)), "tenant": spec["tenant"], "cluster": spec["cluster"]}
    objects = render(
        spec["collector"]["name"], values, release=f"{spec['collector']['name']}-{spec['tenant']['instance']}"
    )
    assert {each["kind"] for each in objects} >= {"Deployment", "Secret", "Service"}


def test_pinned_version_is_the_chart_s(root: Path) -> None:
    pinned = yaml.safe_load((FOLDER / "production.yaml").read_text())["spec"]["collector"]["version"]
    assert pinned == yaml.safe_load((root / "charts/collector/Chart.yaml").read_text())["version"]
