"""What an operator, a process of its own, asks, writes and takes while nothing is to be done."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec

from . import faulty, pod_exec, proxy, run

ROOT = Path(__file__).parents[3]


class Rest(msgspec.Struct, frozen=True):
    """What was seen of a time."""

    minutes: float
    writes: list[str]
    """What was asked to be changed, but for the Lease, which is renewed."""

    reads: int
    core: float
    """Of one, on average."""

    rss: float
    """MiB."""

    @property
    def rows(self) -> list[tuple[str, str]]:
        """For people."""
        return [
            ("reads of the API server a minute", f"{self.reads / self.minutes:.0f}"),
            ("CPU, % of a core", f"{100 * self.core:.1f}"),
            ("RSS, MiB", f"{self.rss:.0f}"),
        ]


class Process:
    """The operator, and all that it asks of the API server."""

    def __init__(self, pid: int, between: proxy.Proxy) -> None:
        self._pid, self._between = pid, between

    async def over(self, seconds: float) -> Rest:
        """What it does in that time, which is itself what is looked at."""
        begun, used = time.monotonic(), self._cpu()
        await asyncio.sleep(seconds)
        lasted = time.monotonic() - begun
        asked = [it for it in self._between.exchanges if it.at >= begun]
        changes = (it for it in asked if it.method != "GET" and "/leases" not in it.path)
        return Rest(
            minutes=lasted / 60,
            writes=[f"{it.method} {it.path}" for it in changes],
            reads=sum(it.method == "GET" for it in asked),
            core=(self._cpu() - used) / lasted,
            rss=self._rss(),
        )

    def _cpu(self) -> float:
        user, system = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def _rss(self) -> float:
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{self._pid}/status").read_text())
        assert found is not None
        return int(found[1]) / 1024


@contextlib.asynccontextmanager
async def operating(
    stage: run.Stage, path: Path, namespace: str, execs: faulty.Execs | None = None
) -> AsyncIterator[Process]:
    """It runs over the kinds of that scenario. `execs` answer what it runs in pods."""
    between = proxy.Proxy(stage.admin, stage.certificate)
    await between.start()
    between.kubeconfig(stage.folder / "process")
    async with pod_exec.answered(execs, stage.folder) as socket:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.api.faults.process",
            *map(str, (path, namespace, stage.folder / "process", stage.folder, *([socket] if socket else []))),
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
                "PATH": os.pathsep.join([str(Path(stage.helm).parent), os.environ["PATH"]]),
            },
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            yield Process(process.pid, between)
        finally:
            process.terminate()
            await process.wait()
            await between.close()
