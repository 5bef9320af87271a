"""On what a run was made: processor, kernel, versions, and how busy the machine was otherwise."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import time
from importlib import metadata
from pathlib import Path

from benchmarks import place as places


def facts(began: tuple[float, float], server: str, rounds: int) -> list[tuple[str, str]]:
    """Name and value; `began` is the load average and epoch seconds at the start, `server` its version."""
    return [
        ("date", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(began[1]))),
        ("rounds", f"{rounds} in {(time.time() - began[1]) / 60:.0f} minutes"),
        ("load average", f"{began[0]:.1f} before, {os.getloadavg()[0]:.1f} at the end, this run included"),
        ("CPU", f"{os.cpu_count()} x {_cpu()}"),
        ("memory", f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"),
        ("kernel", platform.release()),
        ("API server", f"kube-apiserver {server}, audit log on, etcd without fsync, TLS, all on this machine"),
        ("moorage", f"{_commit()}, {_said(places.python('moorage'), '-V')}, {_packages()}"),
        ("controller-runtime", f"{_pinned('operators/controller_runtime/go.mod', 'controller-runtime v')}, {_go()}"),
        ("kube-rs", _kube_rs()),
        ("kopf", _pinned("../requirements/benchmarks.txt", "kopf==")),
    ]


def _cpu() -> str:
    found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found[1] if found else platform.machine()


def _packages() -> str:
    return ", ".join(f"{name} {metadata.version(name)}" for name in ("aiohttp", "httptools", "msgspec", "uvloop"))


def _pinned(file: str, before: str) -> str:
    found = re.search(rf"{re.escape(before)}([^\s\"]+)", (places.ROOT / "benchmarks" / file).read_text())
    return found[1] if found else "?"


def _commit() -> str:
    """Of the code: what the benchmark itself writes while it runs is no change of that."""
    git = ("git", "-C", str(places.ROOT))
    compared = (*git, "diff", "--quiet", "HEAD", "--", ".", ":!benchmarks/results", ":!docs/benchmarks.md")
    changed = subprocess.run(compared, check=False).returncode == 1
    return _said(*git, "describe", "--always") + ("-dirty" if changed else "")


def _go() -> str:
    return _said("go", "env", "GOVERSION")


def _kube_rs() -> str:
    cargo = places.cargo()
    if not cargo:
        return "not here, as there is no cargo"
    version = _pinned("operators/kube_rs/Cargo.toml", 'kube = { version = "=')
    return f"{version}, {_said(str(cargo.with_name('rustc')), '--version')}"


def _said(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "?"
