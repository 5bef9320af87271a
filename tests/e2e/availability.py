"""A client of a grid, for a pod: it writes and reads all the time, and says in the end what it met.

    python3 availability.py URL USER:PASSWORD GRID...     until /tmp/stop is there; prints one JSON object per grid

Only the standard library, as the image has no more. A write counts once it is acknowledged; one whose answer did not
come counts as failed, and is not asked for again. What was acknowledged and can't be read in the end is lost.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import pathlib
import random
import ssl
import sys
import threading
import time
import urllib.parse
from typing import Any

STOP = pathlib.Path("/tmp/stop")
PATIENCE = 1.0  # seconds for one request
PACE = 0.02


class Client:
    """One grid's client, with one connection at a time."""

    def __init__(self, url: str, login: str, grid: str) -> None:
        self._at = urllib.parse.urlsplit(url)
        self._path = f"/wxsdata/v1/grids/{grid}/{grid}.LUT.O/"
        self._headers = {
            "Authorization": "Basic " + base64.b64encode(login.encode()).decode(),
            "Content-Type": "application/json",
        }
        self._tls = ssl.create_default_context()
        self._tls.check_hostname, self._tls.verify_mode = False, ssl.CERT_NONE
        self._connection: http.client.HTTPSConnection | None = None
        self.grid, self.acknowledged, self.failed, self.gap = grid, 0, 0, 0.0
        self.troubles: dict[str, int] = {}
        self.lost: list[int] = []

    def run(self) -> None:
        """Write and read until told to stop; then look for everything that was acknowledged."""
        last = time.monotonic()
        acknowledged: list[int] = []
        number = 0
        while not STOP.exists():
            number += 1
            wrote = self._tried("POST", number, {"n": number})
            if wrote:
                acknowledged.append(number)
            key = random.choice(acknowledged) if acknowledged else 0
            read = not key or self._tried("GET", key)
            now = time.monotonic()
            if wrote and read:
                self.gap, last = max(self.gap, now - last), now
            time.sleep(PACE)
        self.acknowledged = len(acknowledged)
        self.lost = [key for key in acknowledged if not self._found(key)]

    def _found(self, key: int) -> bool:
        end = time.monotonic() + 60.0
        while time.monotonic() < end:
            with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
                status, _ = self._ask("GET", key)
                if status in (200, 404):
                    return status == 200
            time.sleep(0.1)
        return False

    def _tried(self, method: str, key: int, value: Any = None) -> bool:
        try:
            status, body = self._ask(method, key, value)
        except (OSError, http.client.HTTPException, ValueError) as error:
            return self._failed(f"{method}: {type(error).__name__}")
        if status >= 300:
            return self._failed(f"{method}: {status} {body[:80].decode(errors='replace')}")
        return True

    def _failed(self, why: str) -> bool:
        self.failed += 1
        self.troubles[why] = self.troubles.get(why, 0) + 1
        return False

    def _ask(self, method: str, key: int, value: Any = None) -> tuple[int, bytes]:
        made = self._connection
        if made is None:
            made = http.client.HTTPSConnection(
                str(self._at.hostname), self._at.port, timeout=PATIENCE, context=self._tls
            )
            self._connection = made
        try:
            made.request(method, f"{self._path}{key}", None if value is None else json.dumps(value), self._headers)
            answer = made.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            made.close()
            self._connection = None
            raise

    def told(self) -> dict[str, Any]:
        """What it met."""
        return {
            "grid": self.grid,
            "acknowledged": self.acknowledged,
            "failed": self.failed,
            "longest gap": round(self.gap, 2),
            "lost": len(self.lost),
            "troubles": self.troubles,
        }


def main(url: str, login: str, *grids: str) -> None:
    """All grids at once."""
    clients = [Client(url, login, grid) for grid in grids]
    threads = [threading.Thread(target=each.run) for each in clients]
    for thread in threads:
        thread.start()
    print("started", flush=True)
    for thread in threads:
        thread.join()
    for each in clients:
        print(json.dumps(each.told()), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
