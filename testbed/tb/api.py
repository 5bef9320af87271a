"""The few requests that the testbed itself makes to its API server, and probes of its parts' health."""

import json
import socket
import ssl
import struct
import urllib.error
import urllib.request
from typing import Any

from tb.errors import TestbedError
from tb.settings import API_PORT, DOMAIN, Settings

TIMEOUT = 5.0
WRITE_TIMEOUT = 60.0
"""Seconds for one answer; a look is taken again, a write is not."""

FIELD_MANAGER = "testbed"


class Api:
    """The API server, as the admin; each call raises OSError while the server cannot be reached."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._trust = ssl.create_default_context(cafile=str(settings.pki / "ca.crt"))
        self._trust.load_cert_chain(settings.pki / "admin.crt", settings.pki / "admin.key")

    def healthy(self, port: int, path: str, *, scheme: str = "https", host: str | None = None) -> bool:
        """Does a component's own health endpoint say yes?"""
        try:
            self._open(f"{scheme}://{host or self._settings.address}:{port}{path}").close()
        except OSError:
            return False
        return True

    def get(self, path: str) -> Any:
        """The decoded object at this path; None when there is none."""
        try:
            with self._open(f"{self._settings.server}{path}") as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise

    def apply(self, path: str, body: dict[str, Any]) -> None:
        """Create the object at this path, or bring the fields of `body` to what they say."""
        url = f"{self._settings.server}{path}?fieldManager={FIELD_MANAGER}&force=true"
        headers = {"Content-Type": "application/apply-patch+yaml"}
        request = urllib.request.Request(url, json.dumps(body).encode(), headers, method="PATCH")
        try:
            self._open(request, WRITE_TIMEOUT).close()
        except urllib.error.HTTPError as error:
            raise TestbedError(f"the API server refused {path}: {error.read().decode()}") from error

    def _open(self, request: str | urllib.request.Request, timeout: float = TIMEOUT) -> Any:
        # No proxy of the user's environment may come in between.
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=self._trust)
        )
        return opener.open(request, timeout=timeout)


def port_is_free(settings: Settings, port: int = API_PORT) -> bool:
    """True when nothing listens on this port of the testbed's address."""
    with socket.socket() as probe:
        probe.settimeout(TIMEOUT)
        return probe.connect_ex((settings.address, port)) != 0


def resolves(settings: Settings, name: str = f"kubernetes.default.svc.{DOMAIN}") -> bool:
    """Does the cluster's DNS know this name? Asks for its A record once."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    # Header: id, recursion desired, one question; then the question itself: type A, class IN.
    question = struct.pack(">HHHHHH", 1, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", 1, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.sendto(question, (settings.address, 53))
            answer = probe.recv(512)
        except OSError:
            return False
    # Flags with the error code in their last four bits, then how many questions and answers follow.
    flags, _, answers = struct.unpack(">HHH", answer[2:8])
    return bool(flags & 0x000F == 0 and answers > 0)
