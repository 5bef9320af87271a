"""What an agent answers by HTTP: its health to who proves that it may ask, and metrics to everybody.

Each has a port of its own, and threads of its own: who asks for one again and again takes nothing of the other.
"""

from __future__ import annotations

import http.server
import socket
import threading
import time
from typing import Any, Protocol

from moorage.api import proof

AT_ONCE = 16
"""Questions that are answered at a time at each port."""

ASKED_WITHIN = 5.0
"""Seconds in which who asks must do so."""


class Tells(Protocol):
    """As much of an agent as is asked here."""

    told: bytes
    metrics: bytes

    @property
    def me(self) -> str:
        """Its pod."""

    def token(self) -> str:
        """Empty where there is none by which anybody is believed."""


class Server(http.server.ThreadingHTTPServer):
    """Answers so many at a time, and lets the others go; at every address of the pod, of either family."""

    daemon_threads = True
    address_family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET

    def __init__(self, port: int, handler: type[http.server.BaseHTTPRequestHandler]) -> None:
        self._slots = threading.BoundedSemaphore(AT_ONCE)
        super().__init__(("", port), handler)

    def server_bind(self) -> None:
        """See the library: one socket for both families."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def process_request(self, request: Any, client_address: Any) -> None:
        """In a thread, if one is left."""
        if self._slots.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Gives its place back whatever happens."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()


class _Handler(http.server.BaseHTTPRequestHandler):
    """One question, and an answer of bytes."""

    def send(self, status: int, kind: str, text: bytes, headers: dict[str, str] | None = None) -> None:
        """All of it."""
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(text)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def version_string(self) -> str:
        """Of no use to anybody."""
        return "opencga-agent"

    def log_message(self, *_: object) -> None:
        """Nobody needs a line for each question."""


def health(agent: Tells, port: int) -> Server:
    """Tells the agent's health to who proves that it may ask; there is nothing else to be had."""

    class Health(_Handler):
        timeout = ASKED_WITHIN

        def do_GET(self) -> None:
            token, told = agent.token(), agent.told
            if not token:
                self.send(401, PLAIN, b"there is no token in this pod yet; the kubelet brings it")
                return
            try:
                nonce = proof.asked(token, agent.me, self.headers.get(proof.ASKED, ""), time.time())
            except proof.ProofError as error:
                self.send(401, PLAIN, str(error).encode())
                return
            self.send(200, "application/json", told, {proof.TOLD: proof.answer(token, agent.me, nonce, told)})

    return _started(Server(port, Health), "health")


def metrics(agent: Tells, port: int) -> Server:
    """Tells metrics to whoever asks, and nothing else: there is no secret in them, and no word of the product."""

    class Metrics(_Handler):
        timeout = ASKED_WITHIN

        def do_GET(self) -> None:
            if self.path.partition("?")[0] != "/metrics":
                self.send(404, PLAIN, b"metrics are at /metrics")
                return
            self.send(200, "text/plain; version=0.0.4; charset=utf-8", agent.metrics)

    return _started(Server(port, Metrics), "metrics")


PLAIN = "text/plain"


def _started(server: Server, name: str) -> Server:
    threading.Thread(target=server.serve_forever, name=name, daemon=True).start()
    return server
