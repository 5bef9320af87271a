"""Members that mean harm: one that answers at random whatever it is asked, and one next door whom nobody should ask.

What comes back is well formed and lies, or is malformed, huge, slow, cut off or a refusal; all is drawn from the seed.
A lie names other members, addresses, tasks, states and grids than there are.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from tests import listening

from . import proxy, tenant

PORT = 9445
LARGE = 6 * 2**20
"""Bytes of what is too much. The members run in the operator's process, which must not wait for them."""

HIDDEN = zlib.compress(bytes(32 * 2**20))
DRIP = 0.3
"""Seconds between two bytes of a slow answer."""


class Member:
    """Answers at one address, from `serving` on. `others` are addresses that it tells of."""

    def __init__(self, cache: str, address: str, others: Sequence[str], draw: random.Random) -> None:
        self._cache, self.address, self._others, self._draw = cache, address, others, draw
        self._open: set[asyncio.StreamWriter] = set()
        self.asked: list[str] = []
        """Method and path of each request."""

        self._names = [f"{cache}-{number}" for number in ("0", "0", "1", "2", "7", "99", "100", "-1", "07", "9" * 5000)]
        self._names += ["another-0", "x", "", "é" * 300, "a\x00b"]

    @contextlib.asynccontextmanager
    async def serving(self, certificate: proxy.Certificate) -> AsyncIterator[Member]:
        """Listen meanwhile."""
        server = await asyncio.start_server(self._connected, self.address, PORT, ssl=certificate.context)
        try:
            yield self
        finally:
            await listening.close(server)
            for writer in tuple(self._open):
                writer.transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while await self._one(reader, writer):
                pass
        writer.transport.abort()
        self._open.discard(writer)

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request; whether the connection goes on."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode(errors="replace")
        method, path, _ = head.split(" ", 2)
        length = next((line for line in head.lower().splitlines() if line.startswith("content-length:")), ":0")
        await reader.readexactly(int(length.partition(":")[2]))
        self.asked.append(f"{method} {path}")
        ways: dict[Callable[[], bytes], int] = {
            lambda: _answer(self._lie(method, path)): 24,
            self._refusal: 3,
            self._malformed: 3,
            self._large: 1,
        }
        (way,) = self._draw.choices(list(ways), list(ways.values()))
        pace = self._draw.choices(("whole", "slow", "cut", "silent", "flood"), (30, 1, 2, 1, 1))[0]
        text = way()
        if pace == "slow":
            for byte in text[:200]:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(DRIP)
        elif pace == "cut":
            text = text[: self._draw.randrange(len(text))]
        elif pace == "silent":
            await reader.read()
        elif pace == "flood":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n[" % LARGE**2)
            for _ in range(LARGE // 2**16):
                writer.write(b"0," * 2**15)
                await writer.drain()
        if pace in ("whole", "cut"):
            writer.write(text)
            await writer.drain()
        return pace == "whole"

    # --- what is well formed and not true -------------------------------------------------------------------------

    def _lie(self, method: str, path: str) -> Any:
        draw = self._draw
        if method != "GET":
            number = draw.choice([1, 7, "7", 0, -1, 2**63, 10**40, "9" * 5000, True, None, {"a": 1}, 1e300])
            return draw.choice([{"taskId": number}, {"taskId": number, "more": 1}, number, [], {}])
        if path.endswith("/cacheMemberGroup"):
            return self._group()
        if path.endswith("/task"):
            return [self._task() for _ in range(draw.choice([0, 0, 1, 2, 9, 300]))]
        if path.endswith("/status"):
            return self._task()
        if path.endswith("/grid"):
            return [self._grid() for _ in range(draw.choice([0, 1, 2, 2000]))]
        return draw.choice([[], [{"name": self._word()}], [self._word()], {"name": self._word()}])

    def _group(self) -> Any:
        draw = self._draw
        listed = [self._listed() for _ in range(draw.choice([0, 1, 1, 2, 5, 400]))]
        if draw.random() < 0.7:
            own = {"memberName": f"{self._cache}-0", "ipAddress": self.address, "status": "Online", "primary": True}
            listed.insert(0, {**own, "hostName": f"{self._cache}-0", "catalogServer": True, "derbyRole": "none"})
        return draw.choices([{"members": listed}, listed, {"members": self._word()}, {}], (12, 1, 1, 1))[0]

    def _listed(self) -> Any:
        draw = self._draw
        made = {
            "memberName": draw.choice(self._names),
            "hostName": draw.choice(self._others),
            "ipAddress": draw.choice([*self._others, self.address, "169.254.169.254", "::1", self._word()]),
            "status": draw.choice(["Online", "Offline", "Joining", "Leaving", "x", self._word()]),
            "catalogServer": draw.choice([True, False, "true", self._word()]),
            "primary": draw.choice([True, False, False, "true"]),
            "derbyRole": draw.choice(["master", "slave", "none", self._word()]),
        }
        if draw.random() < 0.2:
            made[draw.choice(list(made))] = self._word()
        return made

    def _task(self) -> Any:
        draw = self._draw
        return {
            "taskId": draw.choice([1, 2, 7, "7", -1, 10**40, "9" * 5000, self._word()]),
            "command": draw.choice(["NewMemberJoinTaskCommand", "RemoveMemberTaskCommand", "x" * 5000, self._word()]),
            "description": draw.choice(["", "moorage x: Leave another-0", self._word()]),
            "status": draw.choice(["Running", "Pending", "Success", "Failed", "Cancelled", "error", self._word()]),
            "progress": draw.choice([0, 45, 100, -7, 1e300, "NaN", "inf", self._word()]),
            "message": draw.choice(["", "x" * 5000, "\x1b[2J\r\n{{ . }}", self._word()]),
        }

    def _grid(self) -> Any:
        draw = self._draw
        name = draw.choice(["g", "another", "x" * 3000, "../x", self._word()])
        return {"name": name, "status": draw.choice(["Online", "Error", self._word()]), "numPartition": self._word()}

    def _word(self) -> Any:
        return self._draw.choice(tenant.STRANGE)

    # --- what is not ------------------------------------------------------------------------------------------------

    def _refusal(self) -> bytes:
        draw = self._draw
        status = draw.choice([101, 204, 301, 302, 307, 400, 401, 403, 404, 409, 418, 500, 502, 503, 999])
        where = f"https://{draw.choice(self._others)}:{PORT}/wxsadmin/v1/task"
        return _answer({"error": draw.choice(["x", "\x00" * 10**5, self._word()])}, status, Location=where)

    def _malformed(self) -> bytes:
        bodies = [b"", b"{", b"[" * 10**5, b"9" * 10**5, b'"\xff"', b'"\\ud800"', b'{"members": [{]}', b"\x00", b"NaN"]
        body = self._draw.choice(bodies)
        heads = [b"HTTP/1.1 200 OK\r\n"] * 2 + [b"HTTP/9.9 x\r\n", b"SSH-2.0-x\r\n", b"\x00\x01\x02\r\n"]
        length = len(body) + self._draw.choice((0, 0, 7, -1))
        return self._draw.choice(heads) + b"Content-Length: %d\r\n\r\n" % length + body

    def _large(self) -> bytes:
        draw = self._draw
        if draw.random() < 0.5:
            head = b"HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\nContent-Length: %d\r\n\r\n"
            return head % len(HIDDEN) + HIDDEN
        item = draw.choice([{"memberName": "x" * 1000}, {"memberName": "cache-0"}, {"taskId": 1, "status": "Running"}])
        return _answer({"members": [item] * (LARGE // 1000)})


def _answer(value: Any, status: int = 200, **headers: str) -> bytes:
    body = json.dumps(value).encode()
    lines = [f"HTTP/1.1 {status} x", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {text}" for name, text in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
