"""`moorage shell`: kubectl is called for the right container, or what is missing is said."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click import testing

from moorage import cli
from moorage.cli import connection
from moorage.kube import client as kube_client
from tests.unit.runtime import fake_api

HOOK = {"name": "opencga-client", "command": ["/hooks/version-upgrade"]}
AGENT = {"name": "opencga-agent"}
FOR_PEOPLE = {"kubectl.kubernetes.io/default-container": "opencga-client"}


def pod(*containers: Mapping[str, Any], running: str, **metadata: Any) -> dict[str, Any]:
    told = [{"name": it["name"], "state": {"running": {}} if it["name"] == running else {}} for it in containers]
    return {"metadata": metadata, "spec": {"containers": [*containers]}, "status": {"containerStatuses": told}}


def container(mode: str) -> dict[str, Any]:
    return {"metadata": {"labels": {"weka.io/cluster-id": "uid"}}, "spec": {"mode": mode}}


class Asked:
    """Calls the command with these objects in the cluster; kubectl writes down its words."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.objects = folder, {}
        self._patch = monkeypatch
        kubectl = folder / "kubectl"
        kubectl.write_text(f'#!/bin/sh\necho "$*" > {folder}/words\nexit 7\n')
        kubectl.chmod(0o755)
        monkeypatch.setenv("PATH", str(folder))
        monkeypatch.setattr(connection, "connected", self._connected)

    objects: dict[tuple[str, str], dict[str, Any]]

    @contextlib.asynccontextmanager
    async def _connected(self, *_: Any) -> AsyncIterator[connection.Reached]:
        api = fake_api.FakeApi()
        for (plural, name), obj in self.objects.items():
            await api.put(plural, name, obj)
        yield connection.Reached(kube_client.Client(api), "ns")

    def __call__(self, *words: str) -> testing.Result:
        return testing.CliRunner().invoke(cli.main, ["shell", *words])

    @property
    def words(self) -> str:
        """What kubectl was called with."""
        return (self.folder / "words").read_text().rstrip("\n")


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(tmp_path, monkeypatch)


def opencga(asked: Asked, **spec: Any) -> None:
    asked.objects["opencgacommunity", "a"] = {"spec": spec}
    asked.objects["pods", "a-client-0"] = pod(AGENT, HOOK, running="opencga-client", annotations=FOR_PEOPLE)


def test_a_command_runs_beside_the_master_by_the_hook(asked: Asked) -> None:
    opencga(asked)
    done = asked("opencga/a", "--", "opencga.sh", "users", "login", "-u", "me")

    assert 7 == done.exit_code, done.output
    assert (
        "exec -i -n ns a-client-0 -c opencga-client -- /hooks/version-upgrade shell opencga.sh users login -u me"
        == asked.words
    )


def test_without_a_command_it_is_the_command_line(asked: Asked) -> None:
    opencga(asked)
    asked("opencgacommunity/a", "--context", "there", "--kubeconfig", "/k")

    assert (
        "--kubeconfig /k --context there exec -i -n ns a-client-0 -c opencga-client -- /hooks/version-upgrade shell"
        == asked.words
    )


@pytest.mark.parametrize(
    ("target", "objects", "says"),
    [
        ("opencga/a", {}, "there is no opencgacommunity 'a'"),
        ("opencga/a", {("opencgacommunity", "a"): {}}, "pod a-client-0 is not there; see moorage explain opencga/a"),
        (
            "opencga/a",
            {("opencgacommunity", "a"): {"spec": {"client": {"shell": False}}}},
            "has spec.client.shell: false",
        ),
        (
            "opencga/a",
            {
                ("opencgacommunity", "a"): {},
                ("pods", "a-client-0"): pod(AGENT, HOOK, running="opencga-agent", annotations=FOR_PEOPLE),
            },
            "container opencga-client of pod a-client-0 does not run",
        ),
        ("wekacluster/w", {("wekaclusters", "w"): {"metadata": {"uid": "uid"}}}, "no container of WekaCluster w runs"),
        ("collector/a", {}, "a command line of OpenCGACommunity, WekaCluster and WekaContainer, and of nothing else"),
        ("opencga", {}, "name one object, such as opencgacommunity/NAME"),
    ],
)
def test_what_stands_against_it_is_said(
    asked: Asked, target: str, objects: dict[tuple[str, str], dict[str, Any]], says: str
) -> None:
    asked.objects = objects
    done = asked(target)

    assert 3 == done.exit_code
    assert says in " ".join(done.output.split())


def test_without_kubectl_that_is_said(asked: Asked) -> None:
    opencga(asked)
    (asked.folder / "kubectl").unlink()
    done = asked("opencga/a")

    assert 3 == done.exit_code
    assert "kubectl is not on the PATH" in done.output


def test_of_a_cluster_it_is_a_container_that_runs_and_rather_one_that_computes(asked: Asked) -> None:
    asked.objects["wekaclusters", "w"] = {"metadata": {"uid": "uid"}}
    for name, mode in (("w-drive-0", "drive"), ("w-compute-0", "compute"), ("w-compute-1", "compute")):
        asked.objects["wekacontainers", name] = container(mode)
    asked.objects["pods", "w-compute-1"] = pod({"name": "weka-container"}, running="weka-container")
    asked.objects["pods", "w-drive-0"] = pod({"name": "weka-container"}, running="weka-container")
    asked("wekacluster/w", "--", "weka", "status")

    assert "exec -i -n ns w-compute-1 -c weka-container -- weka status" == asked.words
