"""Builds the testbed's binaries from pinned Go modules, one after another, and only what changed.

Next to each binary lies a stamp: the hash of everything that went into it.
"""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tb.command import run
from tb.component import Level
from tb.errors import TestbedError
from tb.progress import Step
from tb.settings import HOME, VERSION, Settings

HELM_VERSION = "v4.1.4"
KUBERNETES_STAMP = {
    "gitVersion": VERSION,
    "gitMajor": VERSION.removeprefix("v").split(".")[0],
    "gitMinor": VERSION.split(".")[1],
    "gitTreeState": "clean",
}


@dataclass(frozen=True)
class Binary:
    """A binary: its Go module is the folder of the same name; `package` is what is built in it."""

    name: str
    level: Level
    package: str = "."
    variables: tuple[str, ...] = ()

    @property
    def module(self) -> Path:
        return HOME / "go" / self.name

    @property
    def link_flags(self) -> str:
        return " ".join(["-s -w", *(f"-X {variable}" for variable in self.variables)])

    def fingerprint(self) -> str:
        """The hash of the module's files and of how they are built."""
        whole = hashlib.sha256(f"{self.package} {self.link_flags}".encode())
        for path in sorted(self.module.iterdir()):
            whole.update(path.name.encode() + b"\0" + path.read_bytes())
        return whole.hexdigest()


BINARIES = (
    Binary(
        "kubernetes",
        Level.API,
        variables=tuple(f"k8s.io/component-base/version.{k}={v}" for k, v in KUBERNETES_STAMP.items()),
    ),
    Binary(
        "helm", Level.API, "helm.sh/helm/v4/cmd/helm", (f"helm.sh/helm/v4/internal/version.version={HELM_VERSION}",)
    ),
    Binary("coredns", Level.NODE),
    Binary("provisioner", Level.NODE),
    Binary("pause", Level.NODE),
)


def build(settings: Settings, level: Level) -> None:
    """Build what this level needs and is not there yet, in order; the first build of all takes minutes."""
    with _alone(settings.bin):
        for binary in BINARIES:
            if binary.level <= level:
                _build(settings, binary)
        kubectl = settings.bin / "kubectl"
        if not kubectl.is_symlink():
            kubectl.symlink_to("kubernetes")


def _build(settings: Settings, binary: Binary) -> None:
    fingerprint = binary.fingerprint()
    target, stamp = settings.bin / binary.name, settings.bin / f".{binary.name}.stamp"
    if target.exists() and stamp.exists() and stamp.read_text() == fingerprint:
        return
    if not shutil.which("go"):
        raise TestbedError(
            f"Go is not installed, and {binary.name} has to be built from source; install Go 1.26 or newer"
        )
    fresh = settings.bin / f".{binary.name}.new"
    command = [
        "go",
        "build",
        "-trimpath",
        "-mod=readonly",
        "-buildvcs=false",
        "-ldflags",
        binary.link_flags,
        "-o",
        str(fresh),
        binary.package,
    ]
    with Step(f"building {binary.name}"):
        run(command, folder=binary.module, environment={**os.environ, "CGO_ENABLED": "0"})
    # A running binary can be replaced, but not written to.
    fresh.replace(target)
    stamp.write_text(fingerprint)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Two testbeds may share the binaries; only one builds at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
