"""The image specifications: versions that agree with the charts and the code, and nothing inside that isn't needed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
NAMES = {"collector": "collector", "operator": "moorage"}  # folder -> chart


def spec(folder: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / "images" / folder / "image.toml").read_text())


@pytest.mark.parametrize("folder", NAMES)
def test_image_is_what_the_chart_asks_for(folder: str) -> None:
    chart = ROOT / "charts" / NAMES[folder]
    values = yaml.safe_load((chart / "values.yaml").read_text())
    version = yaml.safe_load((chart / "Chart.yaml").read_text())["appVersion"]
    assert spec(folder)["name"] == f"{values['image']['repository']}:{version}"


def test_collector_has_the_version_of_its_modules() -> None:
    modules = (ROOT / "images/collector/go.mod").read_text()
    version = spec("collector")["name"].rpartition(":")[2]
    assert f"go.opentelemetry.io/collector/otelcol v{version}\n" in modules
    assert "replace " not in modules


@pytest.mark.parametrize(
    ("folder", "module"),
    [("kre/nats", "github.com/nats-io/nats-server/v2"), ("kre/mongo", "github.com/FerretDB/FerretDB")],
)
def test_a_server_has_the_version_of_its_module(folder: str, module: str) -> None:
    version = spec(folder)["name"].rpartition(":")[2]

    assert f"{module} v{version}" in (ROOT / "images" / folder / "go.mod").read_text()


def test_what_a_runtime_and_its_versions_run_is_what_is_built() -> None:
    """Servers, what is beside a version's containers, and what the tests' versions run."""
    kre = yaml.safe_load((ROOT / "examples/kre/testbed.yaml").read_text())["systems"]["kre"]
    values, beside = kre["values"], set(kre["versions"]["images"].values()) - {""}
    wanted = {f"{values['imagePrefix']}/{it['repository']}:{it['tag']}" for it in values["images"].values()}
    own = set(re.findall(r'"(moorage\.dev/kre/\S+:\S+)"', (ROOT / "tests/e2e/versions.py").read_text()))

    built = {spec(f"kre/{it.parent.name}")["name"] for it in (ROOT / "images/kre").glob("*/image.toml")}
    assert 2 == len(own)
    assert wanted | beside | own == built


def test_operator_has_the_version_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert spec("operator")["name"] == f"moorage.dev/moorage:{project['version']}"
    assert yaml.safe_load((ROOT / "charts/moorage/Chart.yaml").read_text())["version"] == project["version"]


@pytest.mark.parametrize("folder", NAMES)
def test_nobody_in_particular_and_no_shell(folder: str) -> None:
    image = spec(folder)
    assert image["user"] == "65532:65532"
    assert not {"dash", "bash", "busybox-static", "coreutils", "python3-pip"} & set(image["base"])
    assert {"/bin", "/sbin", "/var"} <= set(image["prune"])


def test_operator_is_isolated_and_compiled() -> None:
    image = spec("operator")
    assert image["entrypoint"] == ["/usr/bin/python3", "-I", "-B", "-m", "moorage"]
    (requirements,) = image["requirements"]
    assert requirements["target"].startswith(tuple(image["compile"]))
    assert all(entry["target"].startswith("/") for entry in image["files"])
    pinned = (ROOT / "images/operator" / requirements["file"]).read_text()
    lines = re.findall(r"^\w\S*==\S+ \\\n    --hash=sha256:", pinned, re.MULTILINE)
    assert len(lines) == len(re.findall(r"^\w", pinned, re.MULTILINE)), "each requirement is pinned by hash"
