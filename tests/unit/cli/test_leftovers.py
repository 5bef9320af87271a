"""`moorage leftovers`: what stands against an uninstallation, in words that say what to do."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from click import testing

from moorage import cli
from moorage.cli import connection
from moorage.kube import client as kube_client
from tests.unit.runtime import fake_api


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> fake_api.FakeApi:
    made = fake_api.FakeApi()

    @contextlib.asynccontextmanager
    async def connected(*_: Any) -> AsyncIterator[connection.Reached]:
        for number in range(made_of[0]):
            await made.put("wekacontainers", f"a-{number:02}", {})
        yield connection.Reached(kube_client.Client(made), "default")

    made_of = [0]
    monkeypatch.setattr(connection, "connected", connected)
    monkeypatch.setattr(made, "containers", made_of, raising=False)
    return made


def asked(*words: str) -> testing.Result:
    return testing.CliRunner().invoke(cli.main, ["leftovers", *words])


def test_where_there_is_nothing_nothing_is_said(api: fake_api.FakeApi) -> None:
    done = asked("weka")

    assert (0, "") == (done.exit_code, done.output)


def test_what_there_is_is_named_with_a_way_out(api: Any) -> None:
    api.containers[0] = 12
    done = asked()

    assert 1 == done.exit_code
    assert "12 WekaContainer objects exist: ns/a-00, ns/a-01, " in done.output
    assert " and 2 more. " in done.output
    assert "kubectl get wekacontainers -A" in done.output
    assert "helm rollback RELEASE REVISION" in done.output
    assert "--no-hooks" in done.output


def test_an_unknown_system_is_told() -> None:
    done = asked("wekka")

    assert 3 == done.exit_code
    assert "weka" in done.output
