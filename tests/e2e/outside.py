"""The operator as a process of this host, with the rights of its chart and no more, so that tests can kill it.

The Deployment in the cluster is scaled down meanwhile. The process reads the same configuration, but with a short
lease, and charts from the folder of these tests. In a mount namespace of its own it finds its ServiceAccount where a
pod does.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from . import tools

LEASE = {"durationSeconds": 8, "renewSeconds": 7, "retrySeconds": 0.5}
"""After each kill it is waited for; but one that runs out on a busy machine is a kill that no test has meant."""


class Operator:
    """`moorage run`, started and killed as often as one likes. Lines of its log are kept in `lines`."""

    def __init__(self, cluster: tools.Cluster, folder: Path, *, charts: Path, helm: str = "") -> None:
        """`folder` holds its files; its log of all lives is `folder`/log."""
        self._cluster, self._folder, self._helm = cluster, folder, helm or str(tools.BIN / "helm")
        self._account, self._config = folder / "account", folder / "config.yaml"
        self._environment = _become(cluster, self._account)
        self._config.write_text(yaml.safe_dump(_config(cluster, charts)))
        self._process: subprocess.Popen[str] | None = None
        self._wanted = False
        self._changing = threading.Lock()
        self.lines: list[dict[str, Any]] = []
        self.on_line: Callable[[dict[str, Any]], None] = lambda _: None

    def start(self) -> None:
        """Another life. One that ends by itself, as after a lost lease, is followed by the next, as in a pod."""
        with self._changing:
            self._wanted = True
            self._spawn()

    def _spawn(self) -> None:
        command = ["unshare", "--mount", "sh", "-c", _LIKE_A_POD, "sh", str(self._account), sys.executable]
        command += ["-m", "moorage", "run", "--config", str(self._config)]
        command += ["--helm", self._helm, "--scratch", str(self._folder / "scratch")]
        dropped = ("KUBECONFIG", "PYTHONDONTWRITEBYTECODE")
        environment = {k: v for k, v in os.environ.items() if k not in dropped} | self._environment
        environment["PYTHONPYCACHEPREFIX"] = str(self._folder / "bytecode")  # as in the image, it is compiled before
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        with (self._folder / "log").open("a") as log, process.stderr:
            for line in process.stderr:
                log.write(line)
                log.flush()
                with contextlib.suppress(ValueError):
                    said = json.loads(line)
                    self.lines.append(said)
                    if process is self._process:
                        self.on_line(said)
        process.wait()
        with self._changing:
            if self._wanted and process is self._process:
                self._spawn()

    @property
    def log(self) -> str:
        """All it has said in all its lives."""
        return (self._folder / "log").read_text()

    @property
    def pid(self) -> int:
        """The process' id; 0 when there is none."""
        return self._process.pid if self._process and self._process.poll() is None else 0

    def children(self) -> list[int]:
        """The processes that it has started, which are helm's supervisors, and helm, which they have started."""
        own = _children(self.pid)
        return own + [pid for each in own for pid in _children(each)]

    def kill(self) -> list[int]:
        """kill -9, and nothing else; returns the children that it had."""
        assert self._process is not None
        self._give_up()
        self._process.send_signal(signal.SIGSTOP)  # so that it starts none between the look and the kill
        children = self.children()
        self._process.kill()
        self._process.wait()
        self._reader.join()
        return children

    def _give_up(self) -> None:
        """From now on its end is meant."""
        with self._changing:
            self._wanted = False

    def stop(self) -> int:
        """SIGTERM, and wait; returns the exit code."""
        self._give_up()
        if self._process is None or self._process.poll() is not None:
            return 0
        self._process.terminate()
        code = self._process.wait(60)
        self._reader.join()
        return code


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def alive(pid: int) -> bool:
    """Whether the process still runs; one that nobody has reaped yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


@contextlib.contextmanager
def instead(cluster: tools.Cluster, folder: Path, *, charts: Path, helm: str = "") -> Iterator[Operator]:
    """The operator outside, while the one in the cluster is scaled down."""
    cluster.kubectl("scale", "deploy/moorage", "-n", tools.NAMESPACE, "--replicas=0")
    tools.wait("moorage in the cluster is away", lambda: not cluster.items("pods", "-n", tools.NAMESPACE))
    operator = Operator(cluster, folder, charts=charts, helm=helm)
    operator.start()
    try:
        yield operator
    finally:
        operator.stop()
        cluster.kubectl("scale", "deploy/moorage", "-n", tools.NAMESPACE, "--replicas=1")
        tools.rolled_out(cluster)


_LIKE_A_POD = """
set -e
mount -t tmpfs none /run
mkdir -p /run/secrets/kubernetes.io
cp -r "$1" /run/secrets/kubernetes.io/serviceaccount
shift
exec "$@"
"""


def _become(cluster: tools.Cluster, folder: Path) -> dict[str, str]:
    """Put the token of the operator's ServiceAccount into the folder; returns the variables that a pod has."""
    deployment = cluster.get("deploy", "moorage", "-n", tools.NAMESPACE)
    account = deployment["spec"]["template"]["spec"]["serviceAccountName"]
    admin = json.loads(cluster.kubectl("config", "view", "--minify", "--flatten", "--raw", "-o", "json"))
    server = admin["clusters"][0]["cluster"]
    folder.mkdir()
    token = cluster.kubectl("create", "token", account, "-n", tools.NAMESPACE, "--duration=4h")
    (folder / "token").write_text(token.strip())
    (folder / "ca.crt").write_bytes(base64.b64decode(server["certificate-authority-data"]))
    (folder / "namespace").write_text(tools.NAMESPACE)
    address = urlsplit(server["server"])
    return {
        "KUBERNETES_SERVICE_HOST": str(address.hostname),
        "KUBERNETES_SERVICE_PORT": str(address.port),
        "POD_NAMESPACE": tools.NAMESPACE,
        "POD_NAME": "outside",
    }


def _config(cluster: tools.Cluster, charts: Path) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load(
        cluster.get("configmap", "moorage", "-n", tools.NAMESPACE)["data"]["config.yaml"]
    )
    config["leaderElection"] |= LEASE
    config["http"] = {"port": 0}
    config["systems"]["collector"]["charts"]["default"] = {"folder": str(charts)}
    return config


def converged(what: str, condition: Callable[[], Any]) -> float:
    """Wait until it is true; returns the seconds that it took."""
    began = time.monotonic()
    tools.wait(what, condition, every=0.5)  # each look costs as much as a pass of the operator
    return time.monotonic() - began
