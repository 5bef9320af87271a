"""One HTTP/1.1 connection as a client has it: a request out, its answer in, one exchange at a time.

Observes what arrives on its socket; alone decides when an answer is complete, and whether another request may follow.
What can go wrong: the peer closes or resets it, or sends what is not HTTP; all of it is `BrokenError`. After
that, and when a request is given up, the connection is aborted: what still arrives would be taken for the next answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import cast

import httptools

__all__ = ["BUFFER", "BrokenError", "Connection", "Headers"]

BUFFER = 1 << 18  # bytes of a stream that wait for their reader; with more the socket is not read
_LEAST, _MOST = 1 << 14, 1 << 16  # bytes that are parsed at once: most answers fit into the least
_SWITCHING = 101


class BrokenError(ConnectionError):
    """An answer that did not come, or not whole."""


class Headers(Mapping[str, str]):
    """The headers of one answer. Case does not matter; of several with one name the first counts."""

    __slots__ = ("_pairs",)

    def __init__(self, pairs: list[tuple[bytes, bytes]]) -> None:
        self._pairs = pairs  # as they came: hardly one is ever read

    def __getitem__(self, name: str) -> str:
        wanted = name.lower().encode()
        for key, value in self._pairs:
            if key.lower() == wanted:
                return value.decode("latin-1")
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        names = {key.lower(): key for key, _ in reversed(self._pairs)}
        return (key.decode("latin-1") for key in reversed(names.values()))

    def __len__(self) -> int:
        return len({key.lower() for key, _ in self._pairs})


class Connection(asyncio.BufferedProtocol):
    """A connection, and the answer that it reads. `on_lost` is told once when it is gone.

    `ask`; then `status`, `headers` and `take` for an answer as a whole, or `read` until it gives nothing for a stream.
    The methods named on_… are called by the parser, within `buffer_updated`.
    """

    def __init__(self, generation: int, on_lost: Callable[[Connection], None]) -> None:
        self.generation = generation  # of the credentials that it was made with
        self.idle_since = 0.0  # by the loop's clock
        self.used = False  # it has carried an exchange before
        self.status = 0
        self.heard = False  # of the present exchange something has arrived
        self._on_lost = on_lost
        self._transport: asyncio.Transport
        self._landing = memoryview(bytearray(_LEAST))  # what arrives, until it is parsed
        self._pairs: list[tuple[bytes, bytes]] = []
        self._parts: list[bytes] = []
        self.on_body = self._parts.append  # each event of a watch is one, so no more is done with it
        self._parser = httptools.HttpResponseParser(self)
        self._size = 0  # about that of the parts of a stream
        self._awaited = False  # an answer, or the rest of one
        self._whole = True
        self._bodiless = False
        self._paused = False
        self._ends = False  # no further exchange may follow
        self._error: BrokenError | None = None
        self._waiter: asyncio.Future[None] | None = None

    # --- for those who ask ----------------------------------------------------------------------------------------

    async def ask(self, request: bytes, *, whole: bool, bodiless: bool = False) -> None:
        """Send a request and wait for its headers, or for the `whole` answer. Raises BrokenError.

        `bodiless` is the answer to HEAD. Cancelled, it aborts the connection.
        """
        self._whole, self._bodiless = whole, bodiless
        self._awaited, self.heard, self.status, self._pairs = True, False, 0, []
        try:
            self._transport.write(request)
            while self._awaited and (whole or not self.status):
                await self._news()
            if whole or not self.status:
                self._check()
        except BaseException:
            self.abort()
            raise

    @property
    def headers(self) -> Headers:
        """Of the answer."""
        return Headers(self._pairs)

    def take(self) -> bytes:
        """What has arrived of the body and was not taken yet."""
        body = b"".join(self._parts)
        self._parts.clear()
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        self._size = 0
        return body

    async def read(self) -> bytes:
        """The next part of a stream's body as soon as there is one, b"" at its end. Raises BrokenError."""
        while not self._parts and self._awaited:
            await self._news()
        if not self._parts:
            self._check()
        return self.take()

    @property
    def reusable(self) -> bool:
        """True when its answer was read to the end, and both sides are ready for another request."""
        if self._ends or self._awaited or self._parts or self._error is not None or self._transport.is_closing():
            return False
        return not self._transport.get_write_buffer_size()  # else answered early: the rest of a request still leaves

    def abort(self) -> None:
        """Drop it at once. A farewell would be waited for, with a server that hangs for long."""
        self._transport.abort()

    async def _news(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    def _fail(self, why: str) -> None:
        self._error = BrokenError(why)
        self._awaited = False
        self._wake()

    # --- for the event loop ---------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        """See `asyncio.BufferedProtocol`."""
        return self._landing

    def buffer_updated(self, nbytes: int) -> None:
        """See `asyncio.BufferedProtocol`."""
        self.heard = True
        try:
            self._parser.feed_data(self._landing[:nbytes])
        except httptools.HttpParserError as error:
            if self._awaited:
                self._fail(f"what the server sent is not an HTTP answer: {error}")
            self._ends = True
            self.abort()
            return
        if not self._whole and self._parts:
            self._arrived(nbytes)
        if nbytes == len(self._landing) < _MOST:
            self._landing = memoryview(bytearray(2 * nbytes))

    def _arrived(self, nbytes: int) -> None:
        """More of a stream is there."""
        self._size += nbytes
        if self._size >= BUFFER and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        """See `asyncio.Protocol`."""
        self._closed(None)
        self.abort()  # TLS would wait for a farewell of the other end, which may have none

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._closed(exc)
        del self._parser  # it refers back
        self._on_lost(self)

    def _closed(self, exc: Exception | None) -> None:
        """The peer sends nothing more: the end of an answer that tells no length, else of an answer that lacks some."""
        self._ends = True
        if not self._awaited:
            return
        if exc is not None:
            self._fail(str(exc) or type(exc).__name__)
        elif not self.status:
            self._fail("the server closed it without an answer")
        elif "Content-Length" in self.headers or "Transfer-Encoding" in self.headers:
            self._fail("the server closed it within an answer")
        else:
            self._awaited = False
            self._wake()

    # --- for the parser -------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """The first byte of an answer."""
        if not self._awaited:
            raise BrokenError("an answer that nobody asked for")

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        self._pairs.append((name, value))

    def on_headers_complete(self) -> None:
        """The end of the head."""
        status = self._parser.get_status_code()
        if status < 200 and status != _SWITCHING:
            return  # "100 Continue" and its kind: the answer follows
        if status == _SWITCHING:
            raise BrokenError("another protocol than HTTP/1.1")
        self.status = status
        if self._bodiless:
            self._ends = True  # the parser waits for a body
            self._awaited = False
        if not self._whole or self._bodiless:
            self._wake()

    def on_message_complete(self) -> None:
        """The end of the answer, or of a preliminary one."""
        if not self.status:
            self._pairs = []
            return
        if not self._parser.should_keep_alive():
            self._ends = True
        self._awaited = False
        self._wake()
