"""One port of a pod over a websocket: each frame starts with the number of its channel (v4.channel.k8s.io).

Channel 0 carries what is sent and what comes back, channel 1 why it can't; the first frame of each names the port. What
can go wrong: nothing listens there, or the connection breaks (TransportError).
"""

from __future__ import annotations

from moorage.kube import errors

from . import transport

__all__ = ["PROTOCOLS", "Stream"]

PROTOCOLS = ("v4.channel.k8s.io",)
_DATA, _ERROR = 0, 1


class Stream:
    """The connection: bytes one way and the other."""

    def __init__(self, socket: transport.Socket, what: str) -> None:
        self._socket, self._what = socket, what
        self._frames = socket.frames()
        self._named: set[int] = set()  # channels whose first frame was seen

    async def send(self, data: bytes) -> None:
        """Raises TransportError."""
        await self._socket.send(bytes([_DATA]) + data)

    async def receive(self) -> bytes:
        """What comes next, cut anywhere; empty at the end. Raises TransportError, with the kubelet's words."""
        async for frame in self._frames:
            channel, data = frame[0] if frame else _DATA, frame[1:]
            if channel not in self._named:
                self._named.add(channel)
            elif channel == _ERROR and data:
                raise errors.TransportError(f"{self._what}: {data.decode(errors='replace').strip()}", sent=True)
            elif channel == _DATA and data:
                return data
        return b""
