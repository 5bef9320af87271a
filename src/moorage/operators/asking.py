"""One question to a server of a system: by plain HTTP, without credentials; and how any question may end, in words.

It decides nothing and retries nothing. Who answers is whatever image the namespace's users run, so that an answer is
believed for that namespace alone, and is bounded in time and size.
"""

from __future__ import annotations

from collections.abc import Mapping

import aiohttp

from moorage.runtime import decision, reasons, source

REQUEST_LIMIT = 5.0
"""Seconds that one question may take."""

ANSWER_LIMIT = 2**20
"""Bytes of one answer."""


class AskError(Exception):
    """No answer, or none that can be read; the message says which. `maybe`: what was asked may have been done."""

    def __init__(self, words: str, *, maybe: bool = False) -> None:
        super().__init__(words)
        self.maybe = maybe


class RefusedError(AskError):
    """The server answered, and refused; by its own words."""


def outcome(error: AskError | source.SourceError, refused: decision.Reason) -> decision.Outcome:
    """What came of something that a server was told, and that ended so; `refused`: why, where the server says no.

    Where nobody could be asked, which is a SourceError, nothing was sent.
    """
    if isinstance(error, source.SourceError):
        return decision.Refused(reasons.Reason.NOT_SENT, error.message)
    if isinstance(error, RefusedError):
        return decision.Refused(refused, str(error))
    return decision.Unknown(str(error)) if error.maybe else decision.Refused(reasons.Reason.NOT_SENT, str(error))


class Http:
    """Questions by HTTP. Every one has a connection of its own, as an address may be another pod's the next time."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    async def get(self, address: str, port: int, path: str) -> tuple[int, bytes]:
        """(status, answer). Raises AskError."""
        status, text, _ = await self.exchange(address, port, path, {})
        return status, text

    async def exchange(
        self, address: str, port: int, path: str, headers: Mapping[str, str]
    ) -> tuple[int, bytes, Mapping[str, str]]:
        """(status, answer, headers of the answer). Raises AskError."""
        host = f"[{address}]" if ":" in address else address
        url = f"http://{host}:{port}{path}"
        try:
            async with self._opened().get(url, allow_redirects=False, headers=headers) as answer:
                return answer.status, await _bounded(answer.content), answer.headers
        except TimeoutError as error:
            raise AskError(f"no answer within {REQUEST_LIMIT:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise AskError(why(error)) from error

    def _opened(self) -> aiohttp.ClientSession:
        if self._closed:
            raise AskError("nobody is asked any more")
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, force_close=True),
                headers={"Accept-Encoding": "identity"},
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,  # nobody asks for it, and a little can hide much
                trust_env=False,
                timeout=aiohttp.ClientTimeout(total=REQUEST_LIMIT),
            )
        return self._session

    async def close(self) -> None:
        """Close all connections; whoever asks later gets none, and so leaves none open."""
        self._closed = True
        if self._session is not None:
            await self._session.close()


async def _bounded(content: aiohttp.StreamReader) -> bytes:
    text = bytearray()
    async for part in content.iter_any():
        text += part
        if len(text) > ANSWER_LIMIT:
            raise AskError(f"an answer of more than {ANSWER_LIMIT >> 20} MiB")
    return bytes(text)


def why(error: Exception) -> str:
    """An error's own words, the first line of them."""
    return str(error).splitlines()[0][:300] if str(error) else type(error).__name__
