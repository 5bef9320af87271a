"""Charts from a registry that asks for a login and has a certificate of its own authority."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import conftest, tools, trouble

PORT = 5001
USER, PASSWORD, WRONG = "pilot", "Correct-Horse-42", "Wrong-Horse-43"
HTPASSWD = f"{USER}:$2b$06$31T2U/SEAkw27sxPV.Q7XegVswsHIDSJjX5XNP2hLZmjn.jQaNiKq\n"
"""bcrypt of PASSWORD."""

CA = tools.STATE / "pki" / "ca.crt"
SECRET = ["secret", "private-registry", "-n", tools.NAMESPACE]


@pytest.fixture(scope="module")
def private(cluster: tools.Cluster, registry: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The registry, with the chart `tricky` in it; returns HOST:PORT."""
    folder = tmp_path_factory.mktemp("private")
    (folder / "htpasswd").write_text(HTPASSWD)
    tools.testbed("registry", "up", "--port", str(PORT), "--htpasswd", str(folder / "htpasswd"), "--tls")
    address = conftest.beside(registry, PORT)
    packed = cluster.helm("package", str(conftest.CHARTS / "tricky"), "-d", str(folder)).strip().rpartition(" ")[2]
    (folder / "auth.json").write_text(json.dumps({"auths": {address: {"auth": _pair(PASSWORD)}}}))
    login = ["--registry-config", str(folder / "auth.json"), "--ca-file", str(CA)]
    cluster.helm("push", packed, f"oci://{address}/charts", *login)
    return address


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Path]:
    """A file that fills with the arguments and environment of all that runs on this machine, pods too."""
    file = tmp_path / "processes"
    with file.open("w") as out:
        looks = subprocess.Popen(["sh", "-c", "while :; do ps axeww -o args; sleep 0.1; done"], stdout=out)
    yield file
    looks.kill()
    looks.wait()


def test_the_login_is_needed_told_and_kept_secret(
    collector: conftest.Make, moorage: tools.Cluster, private: str, processes: Path
) -> None:
    """No Secret, no authority, a wrong password, the right one: each heals without an edit of the Collector."""
    moorage.kubectl("delete", *SECRET, "--ignore-not-found")
    one = collector(trouble.pod(), chart="tricky", cluster="private")
    message = one.wait_reason("ChartUnreachable")
    assert f"the registry's Secret {tools.NAMESPACE}/private-registry can't be read" in message

    _secret(moorage, username=USER, password=PASSWORD)
    message = _told(one, "x509")
    assert "certificate signed by unknown authority" in message
    assert "; give the authority of its certificate as ca.crt in the source's Secret" in message

    _secret(moorage, **{"username": USER, "password": WRONG, "ca.crt": CA.read_text()})
    message = _told(one, "401")
    assert f"tricky can't be pulled from oci://{private}/charts: " in message
    assert "; check the credentials" in message

    with _held():
        _secret(moorage, **{"username": USER, "password": PASSWORD, "ca.crt": CA.read_text()})
        tools.wait("a pull is among the processes", lambda: "pull oci://" in _read(processes))
    assert one.wait_ready()["status"]["chart"]["source"] == "private"

    everything = moorage.kubectl("get", "collectors,events,configmaps", "-A", "-o", "yaml")
    everything += moorage.kubectl("logs", "-n", tools.NAMESPACE, "deploy/moorage", "--tail=-1")
    everything += _read(processes)
    for password in (PASSWORD, WRONG):
        assert password not in everything
        assert _pair(password) not in everything


@contextlib.contextmanager
def _held() -> Iterator[None]:
    """The registry stands still meanwhile, so that who asks it is there to be seen."""
    process = json.loads((tools.STATE / f"run/processes/registry-{PORT}.json").read_text())["pid"]
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def _read(processes: Path) -> str:
    """It is being written, and may end within a character."""
    return processes.read_text(errors="replace")


def _told(one: tools.Collector, word: str) -> str:
    """The message, once the source has been asked anew and says this."""

    def message() -> str:
        found = str(one.condition("Ready").get("message"))
        return found if word in found else ""

    return tools.wait(f"{one.name} tells of {word}", message)


def _pair(password: str) -> str:
    return base64.b64encode(f"{USER}:{password}".encode()).decode()


def _secret(cluster: tools.Cluster, **data: str) -> None:
    metadata = {"name": SECRET[1], "namespace": tools.NAMESPACE}
    cluster.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data})
