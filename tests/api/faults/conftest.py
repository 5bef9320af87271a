from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.kube import client as kube_client
from moorage.kube import credentials

from . import report, run

ROOT = Path(__file__).parents[3]


def _helm() -> str:
    folders = [os.environ.get("TESTBED_BIN", ""), str(ROOT / ".testbed" / "bin"), os.environ["PATH"]]
    found = shutil.which("helm", path=os.pathsep.join(filter(None, folders)))
    return os.environ.get("MOORAGE_TEST_HELM") or found or ""


@pytest.fixture
async def stage(client: kube_client.Client, admin: credentials.Credentials, tmp_path: Path) -> run.Stage:
    """Where scenarios are played."""
    return run.Stage(client, admin, tmp_path, _helm())


@pytest.fixture
def told(request: pytest.FixtureRequest) -> Iterator[report.Report]:
    """What this test has to tell, also if it fails."""
    it = report.Report(request.node.nodeid)
    yield it
    with request.config.pluginmanager.get_plugin("capturemanager").global_and_fixture_disabled():
        print(f"\n{it.close()}")
