"""One visit for all tests of a session, with the charts that they are about."""

from __future__ import annotations

import pytest

from tests.api.collector import operating

from . import charts, visit


@pytest.fixture(scope="session")
def seen(
    request: pytest.FixtureRequest, cluster: str, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, visit.Seen]:
    """What came of each chart that a selected test asks for."""
    asked = [item.callspec.params["odd"] for item in request.session.items if "odd" in _parameters(item)]
    return visit.visit(cluster, str(operating.helm_path()), tmp_path_factory.mktemp("zoo"), asked)


def _parameters(item: pytest.Item) -> dict[str, charts.Odd]:
    spec = getattr(item, "callspec", None)
    return spec.params if spec and "seen" in getattr(item, "fixturenames", ()) else {}
