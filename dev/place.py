"""The cluster that a job works on: the testbed of this tree, or a context of the user's own kubeconfig."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from . import stage

TESTBED = stage.ROOT / "testbed" / "testbed"
STATE = Path(os.environ.get("TESTBED_STATE") or stage.ROOT / ".testbed")
BIN = Path(os.environ.get("TESTBED_BIN") or stage.ROOT / ".testbed" / "bin")
NAMESPACE = "moorage-system"
INDEXES = ("0", "1", "2", "3")
"""Of testbeds that people use; the first that no other tree's testbed has is taken."""


@dataclasses.dataclass(frozen=True)
class Place:
    """A cluster by kubeconfig and context. `context` is empty for the testbed. `name` is what people read of it."""

    kubeconfig: str
    context: str = ""
    state: Path = STATE
    name: str = "testbed"

    @property
    def environment(self) -> dict[str, str]:
        """For commands that work on it."""
        path = [os.environ.get("PATH", "")]
        path.insert(len(path) if self.context else 0, str(BIN))
        given = {"PATH": os.pathsep.join(path)}
        return given | ({"KUBECONFIG": self.kubeconfig} if self.kubeconfig else {})

    @property
    def flags(self) -> list[str]:
        """What kubectl is told, and moorage too."""
        return ["--context", self.context] if self.context else []

    def kubectl(self, *words: str, stdin: str | None = None) -> str:
        """Raises Failed with kubectl's words."""
        return self._run(["kubectl", *self.flags, *words], stdin)

    def helm(self, *words: str) -> str:
        """Raises Failed with helm's words."""
        return self._run(["helm", *(["--kube-context", self.context] if self.context else []), *words], None)

    def get(self, *words: str) -> Any:
        """The object as it is, or None."""
        out = self.kubectl("get", *words, "--ignore-not-found", "-o", "json")
        return json.loads(out) if out.strip() else None

    @contextlib.contextmanager
    def forwarded(self, what: str, namespace: str, port: int) -> Iterator[str]:
        """A port of a Service or pod on this machine, as http://HOST:PORT. Raises Failed with kubectl's words."""
        command = ["port-forward", what, f":{port}", "-n", namespace, "--address=127.0.0.1"]
        found, environment = self._found("kubectl")
        running = subprocess.Popen(
            [found, *self.flags, *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        try:
            assert running.stdout is not None
            assert running.stderr is not None
            match = re.search(r"127\.0\.0\.1:(\d+)", running.stdout.readline())
            if not match:
                raise stage.Failed(f"`kubectl {' '.join(command)}`: {running.stderr.read().strip()}")
            yield f"http://127.0.0.1:{match[1]}"
        finally:
            running.terminate()
            running.wait()

    def testbed(self, *words: str) -> list[str | Path]:
        """A call of the testbed's tool."""
        return [TESTBED, "--state", self.state, *words]

    def _run(self, command: list[str], stdin: str | None) -> str:
        found, environment = self._found(command[0])
        done = subprocess.run(
            [found, *command[1:]], input=stdin, capture_output=True, text=True, env=environment, check=False
        )
        if done.returncode:
            raise stage.Failed(f"`{' '.join(command)}`: {(done.stderr or done.stdout).strip()}")
        return done.stdout

    def _found(self, tool: str) -> tuple[str, dict[str, str]]:
        environment = {**os.environ, **self.environment}
        found = shutil.which(tool, path=environment["PATH"])
        if not found:
            raise stage.Failed(f"there is no {tool}; `make up` builds one into {BIN}")
        return found, environment


def find() -> Place:
    """$CONTEXT of the user's kubeconfig if it is named, else the testbed."""
    context = os.environ.get("CONTEXT", "")
    if context:
        return Place(os.environ.get("KUBECONFIG", ""), context, name=context)
    return Place(str(STATE / "kubeconfig"))


def up(place: Place, *, level: str = "node") -> None:
    """Have the cluster answer."""
    if place.context:
        with stage.stage(f"cluster {place.context}") as it:
            place.kubectl("version", "--request-timeout=10s")
            it.skip("yours, used as it is")
        with stage.stage("helm for the image") as it:
            it.run(TESTBED, "build", "--level", "api")
        return
    packages()
    bring_up(place, level)


def packages() -> None:
    """Install what the testbed needs of Debian. Raises Failed, before anything takes minutes, when nobody may."""
    if os.geteuid():
        raise stage.Failed("a testbed makes network namespaces and mounts; run it as root")
    with stage.stage("Debian packages") as it:
        if "all packages are there" in it.run(TESTBED, "deps"):
            it.skip("all there")


def bring_up(place: Place, level: str, *, indexes: Sequence[str] = INDEXES) -> None:
    """Bring the testbed up. Of $TESTBED_INDEX, else `indexes`, the first that no other testbed has is taken."""
    recorded = (place.state / "run" / "settings.json").exists()
    wanted = os.environ.get("TESTBED_INDEX", "").split() or list(indexes)
    with stage.stage(place.name) as it:
        said = _up(it, place, level, [""] if recorded else wanted)
        it.hint(said.strip().splitlines()[-1] if said.strip() else "")


def _up(it: stage.Stage, place: Place, level: str, indexes: list[str]) -> str:
    index, *others = indexes
    try:
        return it.run(TESTBED, "--state", place.state, *(["--index", index] if index else []), "up", "--level", level)
    except stage.Failed as error:
        if others and "is in use" in str(error):
            return _up(it, place, level, others)
        raise
