"""Servers of NATS as processes of this machine, in a cluster, with the configuration that the chart has for them.

Each has an address of its own on loopback, so that every port is what it is in a pod.
"""

from __future__ import annotations

import asyncio
import functools
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from moorage.operators import asking
from moorage.operators.kre.version import jetstream

ROOT = Path(__file__).resolve().parents[5]
PORT = 4222
PACKAGE = "github.com/nats-io/nats-server/v2"


@functools.cache
def binary() -> str:
    """That of this tree's image; where there is none yet it is built as that would be."""
    own = ROOT / "build/kre-nats"
    if own.exists():
        return str(own)
    go = shutil.which("go")
    if go is None:
        pytest.skip("go is not installed, which builds NATS")
    made = Path(tempfile.mkdtemp()) / "nats-server"
    command = [go, "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", str(made), PACKAGE]
    subprocess.run(command, cwd=ROOT / "images/kre/nats", check=True, env={**os.environ, "CGO_ENABLED": "0"})
    return str(made)


class Processes:
    """Each by its pod's name, with what it keeps in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._binary, self._folder = binary(), folder
        self._net = f"127.{20 + os.getpid() % 200}.{os.getpid() // 200 % 250}"
        self._running: dict[str, asyncio.subprocess.Process] = {}

    def address(self, name: str) -> str:
        """Where it listens."""
        return f"{self._net}.{1 + int(name.rpartition('-')[2])}"

    @property
    def names(self) -> list[str]:
        """Those that run."""
        return sorted(self._running)

    def volume(self, name: str) -> Path:
        """What it keeps."""
        return self._folder / name / "data"

    async def start(self, name: str, configuration: str, login: str) -> None:
        """It runs, with what is on its volume."""
        if name in self._running:
            return
        folder = self._folder / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "login.conf").write_text(login)
        (folder / "nats.conf").write_text(self._placed(configuration, name))
        log = (folder / "log").open("ab")
        self._running[name] = await asyncio.create_subprocess_exec(
            self._binary, "--config", str(folder / "nats.conf"), env={"POD_NAME": name}, stdout=log, stderr=log
        )
        log.close()

    async def end(self, name: str) -> None:
        """As a pod ends; its volume stays."""
        if (process := self._running.pop(name, None)) is not None:
            process.terminate()
            await process.wait()

    async def end_all(self) -> None:
        """None is left."""
        for name in self.names:
            await self.end(name)

    def _placed(self, text: str, name: str) -> str:
        """The chart's, but for addresses and folders."""
        address, volume = self.address(name), self.volume(name)
        for pattern, changed in (
            (r"(?m)^port: 4222$", f'listen: "{address}:4222"'),
            (r"(?m)^http_port: 8222$", f'http: "{address}:8222"'),
            (r"(?m)^  port: 6222$", f'  listen: "{address}:6222"'),
            (r"store_dir: /data", f'store_dir: "{volume}"'),
            (r"pid_file: /tmp/nats.pid", f'pid_file: "{volume.parent / "pid"}"'),
        ):
            text, count = re.subn(pattern, changed, text)
            assert count == 1 or ("6222" in pattern and "cluster" not in text), pattern
        return re.sub(r"nats://(kre-nats-\d)\.kre-nats:", lambda found: f"nats://{self.address(found[1])}:", text)

    async def ask(self, name: str, what: str, body: dict[str, object] | None = None) -> bytes:
        """JetStream by that server; asked again while nobody answers."""
        async with asyncio.timeout(120):
            while True:
                try:
                    async with jetstream.connected(self.address(name), PORT) as it:
                        return await it._tell(what, body)
                except asking.AskError:
                    await asyncio.sleep(0.2)
