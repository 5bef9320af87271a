"""NATS with JetStream in memory, as far as a version's streams need it, over its real protocol.

It keeps configurations and counts, and no messages. It can lose answers, refuse, be without a leader, and say anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from tests import listening

Object = dict[str, Any]
PAGE = 3
"""Entries of a list in one answer: few, so that all reading takes several."""


class ApiError(Exception):
    """An answer that says no."""

    def __init__(self, code: int, err_code: int, description: str) -> None:
        super().__init__(description)
        self.body = {"code": code, "err_code": err_code, "description": description}


NO_STREAM = ApiError(404, 10059, "stream not found")
NO_CONSUMER = ApiError(404, 10014, "consumer not found")


class NatsStub:
    """`asked` has the questions so far. `silent`: those that begin so get no answer, though they are done."""

    def __init__(self) -> None:
        self.streams: dict[str, Object] = {}
        self.consumers: dict[str, dict[str, Object]] = {}
        self.pending: dict[str, int] = {}  # by consumer
        self.asked: list[str] = []
        self.silent = ""
        self.refuse: dict[str, ApiError] = {}  # by how the question begins
        self.answer: Callable[[str], bytes | None] = lambda _: None  # anything instead
        self.jetstream = True
        self.port = 0

    @property
    def changes(self) -> list[str]:
        """The questions that may have changed something."""
        return [it for it in self.asked if any(verb in it for verb in ("CREATE", "UPDATE", "DELETE"))]

    @contextlib.asynccontextmanager
    async def running(self, address: str = "127.0.0.1", port: int = 0) -> AsyncIterator[NatsStub]:
        """It listens on this machine; several at once are servers of one cluster."""
        async with listening.served(self._serve, address, port) as self.port:
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        info = {"server_id": "S", "version": "2.15.0", "max_payload": 2**20, "proto": 1, "headers": True}
        writer.write(f"INFO {json.dumps(info)}\r\n".encode())
        subscribed: dict[str, str] = {}
        while line := await reader.readline():
            verb, *words = line.decode().split()
            match verb:
                case "PING":
                    writer.write(b"PONG\r\n")
                case "SUB":
                    subscribed[words[0]] = words[-1]
                case "PUB":
                    data = (await reader.readexactly(int(words[-1]) + 2))[:-2]
                    answer = self._said(words[0].removeprefix("$JS.API."), data)
                    if answer is not None:
                        self._reply(writer, subscribed, words[1], answer)
            await writer.drain()

    def _reply(self, writer: asyncio.StreamWriter, subscribed: dict[str, str], to: str, data: bytes) -> None:
        sid = next((sid for subject, sid in subscribed.items() if to.startswith(subject.removesuffix("*"))), "1")
        if not data:  # nobody listens there
            head = b"NATS/1.0 503\r\n\r\n"
            writer.write(f"HMSG {to} {sid} {len(head)} {len(head)}\r\n".encode() + head + b"\r\n")
            return
        writer.write(f"MSG {to} {sid} {len(data)}\r\n".encode() + data + b"\r\n")

    def _said(self, what: str, data: bytes) -> bytes | None:
        self.asked.append(what)
        if not self.jetstream:
            return b""
        if (said := self.answer(what)) is not None:
            return said
        try:
            for begins, error in self.refuse.items():
                if what.startswith(begins):
                    raise error
            found = self._done(what.split("."), json.loads(data or b"{}"))
        except ApiError as error:
            found = {"error": error.body}
        return None if self.silent and what.startswith(self.silent) else json.dumps(found).encode()

    # --- what is asked of JetStream -----------------------------------------------------------------------------------

    def _done(self, what: list[str], body: Object) -> Object:
        match what:
            case ["STREAM", "LIST"]:
                rows = [{"config": each} for _, each in sorted(self.streams.items())]
                return {"streams": _page(rows, body), "total": len(rows)}
            case ["STREAM", "INFO", name]:
                return {"config": self._stream(name)}
            case ["STREAM", "CREATE", name]:
                if self.streams.get(name, body) != body:
                    raise ApiError(400, 10058, "stream name already in use with a different configuration")
                self.streams[name] = body
                self.consumers.setdefault(name, {})
                return {"config": body}
            case ["STREAM", "UPDATE", name]:
                self._stream(name)
                self.streams[name] = body
                return {"config": body}
            case ["STREAM", "DELETE", name]:
                self._stream(name)
                del self.streams[name]
                self.consumers.pop(name, None)
                return {"success": True}
            case ["CONSUMER", "LIST", name]:
                self._stream(name)
                rows = [self._consumer(each) for _, each in sorted(self.consumers[name].items())]
                return {"consumers": _page(rows, body), "total": len(rows)}
            case ["CONSUMER", "DURABLE", "CREATE", name, consumer]:
                self._stream(name)
                self.consumers[name][consumer] = body["config"]
                return self._consumer(body["config"])
            case ["CONSUMER", "INFO", name, consumer]:
                self._stream(name)
                return self._consumer(self._known(name, consumer))
            case ["CONSUMER", "DELETE", name, consumer]:
                self._stream(name)
                self._known(name, consumer)
                del self.consumers[name][consumer]
                return {"success": True}
        raise AssertionError(f"the stub knows no {what}")

    def _stream(self, name: str) -> Object:
        if name not in self.streams:
            raise NO_STREAM
        return self.streams[name]

    def _known(self, name: str, consumer: str) -> Object:
        if consumer not in self.consumers[name]:
            raise NO_CONSUMER
        return self.consumers[name][consumer]

    def _consumer(self, config: Object) -> Object:
        name = config["durable_name"]
        return {"name": name, "config": config, "num_pending": self.pending.get(name, 0), "num_ack_pending": 0}


def _page(rows: list[Object], body: Object) -> list[Object]:
    offset = int(body.get("offset") or 0)
    return rows[offset : offset + PAGE]
