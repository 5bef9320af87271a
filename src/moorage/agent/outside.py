"""The server's ping, and others' agents, by HTTP. It decides nothing."""

from __future__ import annotations

import http.client
import secrets
import time
import urllib.parse
from collections.abc import Callable, Iterable
from concurrent import futures

from moorage.api import proof

from . import health, plan

LIMIT = 3.0
"""Seconds for each."""

MOST = 64 * 1024
"""Bytes of an answer that are read."""


def ping(url: str) -> bool:
    """Whether the server answers there, and says that it is well."""
    try:
        status, _, _ = get(url, {})
    except (OSError, http.client.HTTPException):
        return False
    return 200 <= status < 300


def get(url: str, headers: dict[str, str]) -> tuple[int, bytes, http.client.HTTPMessage]:
    """(status, answer, its headers). Raises OSError and HTTPException."""
    parts = urllib.parse.urlsplit(url)
    line = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=LIMIT)
    try:
        line.request("GET", parts.path or "/", headers=headers)
        answer = line.getresponse()
        return answer.status, answer.read(MOST), answer.headers
    finally:
        line.close()


def others(hosts: dict[str, str], port: int, token: str, pool: futures.Executor) -> dict[str, plan.Other]:
    """Those of these agents that answer, and prove that it is they, by name; all are asked at once."""

    def one(name: str) -> tuple[str, plan.Other | None]:
        nonce = secrets.token_hex(16)
        asks = {proof.ASKED: proof.question(token, name, time.time(), nonce)}
        try:
            _, told, headers = get(f"http://{hosts[name]}:{port}/", asks)
            proof.check(token, name, nonce, told, headers.get(proof.TOLD, ""))
            return name, health.other(told, name)
        except (OSError, http.client.HTTPException, ValueError, proof.ProofError):
            return name, None

    return {name: found for name, found in _each(pool, one, hosts) if found is not None}


def _each(
    pool: futures.Executor, one: Callable[[str], tuple[str, plan.Other | None]], names: Iterable[str]
) -> Iterable[tuple[str, plan.Other | None]]:
    return pool.map(one, names)
