"""What an agent takes while nothing is left to do: its own process, beside a server and a hook that are played."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.agent import outside
from tests.unit.agent import played, test_metrics, test_outside

pytestmark = pytest.mark.campaign

FOR = 60.0
"""Seconds of rest."""

MOST_MEMORY = 40 * 2**20
MOST_CPU = 0.05
"""Of a core: it looks each second."""

PAIR = "http://127.0.0.1:{}/"


@contextlib.contextmanager
def server() -> Iterator[int]:
    """It says that it is well."""

    class Well(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Well)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    try:
        yield made.server_address[1]
    finally:
        made.shutdown()
        made.server_close()


def free() -> int:
    with socket.create_server(("127.0.0.1", 0)) as line:
        return int(line.getsockname()[1])


def hooked() -> Callable[[dict[str, Any]], bytes]:
    """A hook that has the server run, once it was asked to, and the catalog that is there."""
    state: dict[str, Any] = {"running": False, "boot": "b"}

    def answer(asked: dict[str, Any]) -> bytes:
        match asked["do"]:
            case "start":
                state["running"] = True
            case "run":
                state["command"] = {"id": asked["id"], "running": False, "exit": 0, "output": ""}
            case "files":
                return test_outside.said(files={"configuration.yml": "logLevel: info\n"})
            case "ask":
                told = "[]" if "search" in asked["args"] else '{"mongodbStatus": true, "installed": true}'
                return test_outside.said(exit=0, output=told)
        return test_outside.said(**state)

    return answer


def test_it_is_small_and_does_little(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """After its first goal: memory, and processor time; and what it took until it was there."""
    world = played.World(tmp_path)
    world.publish()
    at = world.settings
    with test_outside.hooked(tmp_path, hooked()) as asked, server() as ping:
        port = free()
        env = {
            "POD_NAME": at.me,
            "OPENCGA_ROLE": "master",
            "OPENCGA_VERSION": at.version,
            "OPENCGA_CONF": str(at.conf),
            "OPENCGA_DATA": str(at.data),
            "OPENCGA_HOOK": str(asked._path),
            "OPENCGA_TOKEN_FILE": str(at.token),
            "OPENCGA_TOOL": at.tool,
            "OPENCGA_PING": PAIR.format(ping),
            "OPENCGA_METRICS_PORT": str(port),
        }
        flags = [f"-healthCheckFilePath={at.health}", f"-cluster={at.document}", f"-serveStatusPort={free()}"]
        command = [sys.executable, "-m", "moorage.agent.main", *flags]
        with subprocess.Popen(command, env={**os.environ, **env}, stdout=subprocess.DEVNULL) as agent:
            try:
                first = _in_goal(port)
                time.sleep(FOR)  # of rest, which is what is measured
                last = _told(port)
            finally:
                agent.terminate()
        assert 0 == agent.returncode

    def of(found: test_metrics.Read, name: str) -> float:
        return found[name][0][1]

    cpu, resident = "process_cpu_seconds_total", "process_resident_memory_bytes"
    figures = {
        "cpu until its goal, s": of(first, cpu),
        "cpu at rest, of a core": (of(last, cpu) - of(first, cpu)) / FOR,
        "memory at rest, MiB": of(last, resident) / 2**20,
    }
    for name, value in figures.items():
        record_property(name, round(value, 4))
    print(json.dumps(figures))
    assert MOST_MEMORY > of(last, resident)
    assert MOST_CPU > figures["cpu at rest, of a core"]


def _told(port: int) -> test_metrics.Read:
    _, text, _ = outside.get(PAIR.format(port) + "metrics", {})
    return test_metrics.read(text) if text else {}


def _in_goal(port: int, within: float = 120.0) -> test_metrics.Read:
    until = time.monotonic() + within
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            if (found := _told(port)) and found["opencga_agent_in_goal"][0][1]:
                return found
        time.sleep(0.2)
    raise AssertionError("it is not in its goal")
