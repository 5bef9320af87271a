"""The hook's socket: the server's parent, in the server's container. One request a connection, JSON both ways.

The hook outlives the agent, so that a command at the catalog goes on when the agent ends; and the agent asks it, so
that nothing of the server is guessed.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from . import plan

ANSWER_LIMIT = 2**20
SHORT = 5.0
"""Seconds for what the hook answers at once."""

MOST_OUTPUT = 600
"""Characters of what a command said last."""


class HookError(Exception):
    """The hook does not answer, or refuses; the message says which."""


class Client:
    """Requests to the hook of this pod."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def state(self) -> plan.Hook:
        """The server, and the command that was run last. Raises HookError."""
        found = self._ask({"do": "state"})
        told = found.get("command")
        command = None
        if isinstance(told, dict) and told.get("id"):
            output = str(told.get("output", ""))[-MOST_OUTPUT:].strip()
            command = plan.Command(str(told["id"]), bool(told.get("running")), int(told.get("exit") or 0), output)
        return plan.Hook(bool(found.get("running")), command, str(found.get("boot", "")))

    def files(self) -> dict[str, str]:
        """The product's own files, as they are in the image. Raises HookError."""
        found = self._ask({"do": "files"}).get("files")
        return {str(name): str(text) for name, text in found.items()} if isinstance(found, dict) else {}

    def start(self, args: Sequence[str], stdin: str = "") -> None:
        """The server, unless it runs. Raises HookError."""
        self._ask({"do": "start", "args": list(args), "stdin": stdin})

    def stop(self) -> None:
        """The server is asked to end, and ends in its time; `state` tells. Raises HookError."""
        self._ask({"do": "stop"})

    def run(self, id_: str, args: Sequence[str], stdin: str) -> None:
        """A command begins; there is one at a time. The same id again begins nothing. Raises HookError."""
        self._ask({"do": "run", "id": id_, "args": list(args), "stdin": stdin})

    def ask(self, args: Sequence[str], within: float, stdin: str = "") -> tuple[int, str]:
        """(exit, output) of a command that changes nothing. Raises HookError."""
        asked = {"do": "ask", "args": list(args), "seconds": within, "stdin": stdin}
        found = self._ask(asked, within + SHORT)
        return int(found.get("exit") or 0), str(found.get("output", ""))

    def _ask(self, request: dict[str, Any], within: float = SHORT) -> dict[str, Any]:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
                line.settimeout(within)
                line.connect(str(self._path))
                line.sendall(msgspec.json.encode(request) + b"\n")
                found = msgspec.json.decode(_line(line))
        except (OSError, ValueError) as error:
            raise HookError(f"the hook does not answer: {error}") from error
        if not isinstance(found, dict):
            raise HookError("the hook's answer is no mapping")
        if refused := found.get("error"):
            raise HookError(str(refused))
        return found


def _line(line: socket.socket) -> bytes:
    text = bytearray()
    while not text.endswith(b"\n"):
        part = line.recv(65536)
        if not part:
            break
        text += part
        if len(text) > ANSWER_LIMIT:
            raise ValueError("an answer without end")
    return bytes(text)
