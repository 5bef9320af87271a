"""`moorage explain --if`: what the API server says of the change, then what would follow, and nothing is written."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from click import testing

from moorage import cli
from moorage.cli import connection
from moorage.kube import client as kube_client
from tests.unit.runtime import fake_api

SIZES = {"driveContainers": 6, "computeContainers": 0}


class Asked:
    """Calls the command with a WekaCluster of six drive containers in the cluster."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.api = fake_api.FakeApi()
        monkeypatch.setattr(connection, "connected", self._connected)

    @contextlib.asynccontextmanager
    async def _connected(self, *_: Any) -> AsyncIterator[connection.Reached]:
        spec = {"image": "weka:4.4", "dynamicTemplate": SIZES}
        await self.api.put("wekaclusters", "w", {"metadata": {"uid": "u"}, "spec": spec})
        await self.api.put("xsldcaches", "c", {"spec": {"members": 4}})
        for number in range(6):
            spec = {"image": "weka:4.4", "name": f"x{number}", "mode": "drive", "numCores": 1}
            await self.api.put("wekacontainers", f"w-drive-{number}", {"spec": spec, "status": {"status": "Running"}})
        yield connection.Reached(kube_client.Client(self.api), "ns")

    def __call__(self, target: str, *words: str) -> testing.Result:
        given = [word for each in words if "=" in each for word in ("--if", each)]
        return testing.CliRunner().invoke(cli.main, ["explain", target, *given, *(it for it in words if "=" not in it)])


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(monkeypatch)


def test_what_would_follow_is_said_and_nothing_is_written(asked: Asked) -> None:
    done = asked("wekacluster/w", "spec.dynamicTemplate.driveContainers=5")

    assert 0 == done.exit_code, done.output
    assert [
        "WekaCluster ns/w, if spec.dynamicTemplate.driveContainers were 5 in place of 6",
        "  ✓ the API server takes it; this was a dry run, and nothing is changed",
        "  ✓ 1 drive container (w-drive-5) leaves, one after another",
    ] == done.output.splitlines()[:3]
    assert SIZES == asked.api.objects[fake_api.Place("wekaclusters", "ns", "w")]["spec"]["dynamicTemplate"]
    assert ["All"] == [it.query["dryRun"] for it in asked.api.writes("wekaclusters") if it.method == "PATCH"]


def test_what_stands_in_its_way_is_an_exit_code_too(asked: Asked) -> None:
    done = asked("wekacluster/w", "spec.dynamicTemplate.driveContainers=2", "-ojson")
    told = json.loads(done.output)

    assert 1 == done.exit_code
    assert {"field": "spec.dynamicTemplate.driveContainers", "before": 6, "after": 2} == told["changes"][0]
    assert [True, False, True] == [each["good"] for each in told["follows"]]


@pytest.mark.parametrize(
    ("code", "reason", "exit_code", "says"),
    [
        (422, "Invalid", 2, "✗ the API server refuses it: it is too small"),
        (403, "Forbidden", 3, "a dry run needs the right to patch wekaclusters in namespace ns"),
    ],
)
def test_what_the_api_server_says_against_it_comes_first(
    asked: Asked, code: int, reason: str, exit_code: int, says: str
) -> None:
    async def refuse(request: fake_api.Asked) -> None:
        if request.method == "PATCH":
            raise fake_api.Refusal(code, reason, "it is too small")

    asked.api.before = refuse
    done = asked("wekacluster/w", "spec.dynamicTemplate.driveContainers=2")

    assert exit_code == done.exit_code
    assert says in " ".join(done.output.split())
    assert "leave" not in done.output


def test_of_a_kind_that_foretells_nothing_the_other_way_is_said(asked: Asked) -> None:
    done = asked("xsldcache/c", "spec.members=3")

    assert 0 == done.exit_code
    assert "kubectl annotate xsldcache c -n ns moorage.dev/paused=true; then change it" in done.output


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["spec="], "is not spec.FIELD=VALUE"),
        (["metadata.name=x"], "is not spec.FIELD=VALUE"),
        (["spec..a=x"], "is not spec.FIELD=VALUE"),
        (["spec.a=1", "spec.a.b=2"], "is inside of what another --if gives"),
        (["spec.a={"], "is no value"),
    ],
)
def test_what_is_no_change_is_told(asked: Asked, given: list[str], says: str) -> None:
    done = asked("wekacluster/w", *given)

    assert 3 == done.exit_code
    assert says in " ".join(done.output.replace("│", "").split())
