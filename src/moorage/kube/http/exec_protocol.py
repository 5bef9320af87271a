"""The websocket protocol of exec: each frame starts with the number of its channel (v5 and v4.channel.k8s.io).

What can go wrong: the socket closes before the status arrives (TransportError), or the command could not be started
(ApiError).
"""

from __future__ import annotations

import msgspec

from moorage.kube import codec, errors

from . import transport

__all__ = ["PROTOCOLS", "ExecResult", "collect"]

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_STDOUT, _STDERR, _ERROR = 1, 2, 3  # 255 closes a channel in v5; a command without stdin never needs it


class ExecResult(msgspec.Struct, frozen=True):
    """What a command said and how it ended."""

    stdout: str
    stderr: str
    code: int


class _Outcome(errors.Status, frozen=True):
    status: str = ""


async def collect(socket: transport.Socket, what: str) -> ExecResult:
    """Read a command's output to its end."""
    texts = {_STDOUT: bytearray(), _STDERR: bytearray(), _ERROR: bytearray()}
    async for frame in socket.frames():
        if frame and frame[0] in texts:
            texts[frame[0]] += frame[1:]
    if not texts[_ERROR]:
        raise errors.TransportError(f"{what}: the connection closed before the command's status came", sent=True)
    code = _exit_code(codec.decode(bytes(texts[_ERROR]), _Outcome, what), what)
    return ExecResult(texts[_STDOUT].decode(errors="replace"), texts[_STDERR].decode(errors="replace"), code)


def _exit_code(outcome: _Outcome, what: str) -> int:
    if outcome.status == "Success":
        return 0
    for cause in outcome.causes():
        if cause.get("reason") == "ExitCode":
            return int(cause["message"])
    status = msgspec.structs.replace(outcome, code=outcome.code or 500)
    raise errors.from_status(what, status)
