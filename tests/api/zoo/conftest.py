"""One visit for all tests of a session, with the charts that they are about."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from . import charts, visit

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def seen(
    request: pytest.FixtureRequest, cluster: str, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, visit.Seen]:
    """What came of each chart that a selected test asks for."""
    folders = [os.environ.get("TESTBED_BIN", ""), str(ROOT / ".testbed" / "bin"), os.environ["PATH"]]
    helm = os.environ.get("MOORAGE_TEST_HELM") or shutil.which("helm", path=os.pathsep.join(filter(None, folders)))
    if helm is None:
        pytest.skip("no helm binary: set MOORAGE_TEST_HELM or bring the testbed up")
    asked = [item.callspec.params["odd"] for item in request.session.items if "odd" in _parameters(item)]
    return visit.visit(cluster, helm, tmp_path_factory.mktemp("zoo"), asked)


def _parameters(item: pytest.Item) -> dict[str, charts.Odd]:
    spec = getattr(item, "callspec", None)
    return spec.params if spec and "seen" in getattr(item, "fixturenames", ()) else {}
