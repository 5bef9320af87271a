"""Start, watch and end the testbed's processes, and never any other.

A process is known by its pid together with its start time, both written down right after its start; a pid that was
given to another process since is never touched. Each also carries the state folder in its environment, so that one
whose record got lost, or a container shim that containerd started, is still recognised as this testbed's.
"""

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from tb.settings import Settings

MARK = "TESTBED_OWNER"
NODE_MARK = "TESTBED_NODE"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Memory for time: all are of Go, and collect garbage when there is four times as much of it as of what is in use.
LAZILY = {"GOGC": "400"}
# An API server with open watches may take a minute to stop; after this many seconds it is killed.
PATIENCE = 5.0


@dataclass(frozen=True)
class Process:
    """A process that was started: `born` is its start time in clock ticks since boot, `digest` names its command."""

    pid: int
    born: int
    digest: str

    def alive(self) -> bool:
        return _born(self.pid) == self.born


def recorded(settings: Settings, name: str) -> Process | None:
    """The process last started under this name, alive or not."""
    try:
        return Process(**json.loads(_record(settings, name).read_text()))
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def names(settings: Settings) -> list[str]:
    """The names under which processes were started and not ended."""
    return sorted(path.stem for path in (settings.run / "processes").glob("*.json"))


def alive(settings: Settings, name: str) -> bool:
    process = recorded(settings, name)
    return process is not None and process.alive()


def digest(command: list[str]) -> str:
    return hashlib.sha256("\0".join(command).encode()).hexdigest()[:16]


def start(settings: Settings, name: str, command: list[str], environment: dict[str, str], namespace: str = "") -> None:
    """Run the command in the testbed's network, or in that namespace, detached, its output appended to its log."""
    settings.logs.mkdir(parents=True, exist_ok=True)
    with (settings.logs / f"{name}.log").open("ab") as log:
        child = subprocess.Popen(
            settings.inside(command, namespace),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=settings.state,
            env={"PATH": PATH, "HOME": str(settings.state), MARK: str(settings.state), **LAZILY, **environment},
        )
    path = _record(settings, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    process = Process(child.pid, _born(child.pid) or 0, digest(command))
    path.write_text(json.dumps(asdict(process)))
    # The child is to outlive this command, so its Popen object must not complain that nobody waited.
    child.returncode = 0


def stop(settings: Settings, name: str) -> None:
    """End the process under this name: ask first, kill after a few seconds; return when it is gone."""
    process = recorded(settings, name)
    if process:
        end([process])
        _record(settings, name).unlink()


def kill(settings: Settings, name: str) -> bool:
    """Kill the process under this name at once and keep its record; False when it was not running."""
    process = recorded(settings, name)
    if process is None or not process.alive():
        return False
    end([process], patience=0)
    return True


def end(processes: Iterable[Process], patience: float = PATIENCE) -> None:
    """End these processes and wait until they are gone: TERM, and KILL after `patience` seconds."""
    left = [process for process in processes if process.alive()]
    if patience > 0:
        left = _signal_and_wait(left, signal.SIGTERM, patience)
    _signal_and_wait(left, signal.SIGKILL, 30)


def suspend(processes: Iterable[Process]) -> None:
    """Stop these processes where they are, until they are resumed."""
    _signal(processes, signal.SIGSTOP)


def resume(processes: Iterable[Process]) -> None:
    """Have suspended processes go on."""
    _signal(processes, signal.SIGCONT)


def suspended(process: Process) -> bool:
    """Whether it is stopped where it is."""
    fields = _stat(process.pid)
    return fields is not None and fields[0] == "T"


def marked(state: Path, node: str = "") -> list[Process]:
    """Every live process that carries this state folder, and that node if one is named, in its environment."""
    marks = {f"{MARK}={state}".encode(), *([f"{NODE_MARK}={node}".encode()] if node else [])}
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid() and marks <= set(_environment(entry)):
            born = _born(int(entry.name))
            if born is not None:
                found.append(Process(int(entry.name), born, ""))
    return found


def living(pids: Iterable[int]) -> list[Process]:
    """The processes behind these pids that are alive now."""
    return [Process(pid, born, "") for pid in pids if (born := _born(pid)) is not None]


def memory(pid: int) -> int:
    """The resident memory of a process in KiB; 0 when it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), 0)


def _signal_and_wait(processes: list[Process], number: signal.Signals, patience: float) -> list[Process]:
    _signal(processes, number)
    deadline = time.monotonic() + patience
    while processes and time.monotonic() < deadline:
        time.sleep(0.02)
        for process in processes:
            _reap(process.pid)
        processes = [process for process in processes if process.alive()]
    return processes


def _signal(processes: Iterable[Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)


def _reap(pid: int) -> None:
    # What an earlier command started is not a child of this one.
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _born(pid: int) -> int | None:
    """The start time of a process; None when there is none, or only its exit status is left."""
    fields = _stat(pid)
    return None if fields is None or fields[0] in "ZX" else int(fields[19])


def _stat(pid: int) -> list[str] | None:
    """What the kernel says of a process, from its state on; None when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command's name may hold spaces and parentheses; the fields after the last parenthesis are safe.
    return stat[stat.rindex(")") + 2 :].split()


def _environment(entry: Path) -> list[bytes]:
    try:
        return (entry / "environ").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return []


def _record(settings: Settings, name: str) -> Path:
    return settings.run / "processes" / f"{name}.json"
