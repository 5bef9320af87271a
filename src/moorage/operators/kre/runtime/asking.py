"""One question to one server of a Runtime by HTTP, without credentials; the only place that knows HTTP to them.

It decides nothing and retries nothing. Who answers is whatever image the namespace's users run, so that an answer is
believed for that namespace alone, and is bounded.
"""

from __future__ import annotations

import aiohttp
import msgspec

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


class Http:
    """Questions by HTTP, without credentials."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def get(self, address: str, port: int, path: str) -> tuple[int, bytes]:
        """(status, answer). Raises AskError."""
        where = f"[{address}]" if ":" in address else address
        try:
            async with self._open().get(f"http://{where}:{port}{path}", allow_redirects=False) as answer:
                text = bytearray()
                async for part in answer.content.iter_any():
                    text += part
                    if len(text) > ANSWER_LIMIT:
                        raise AskError(f"an answer of more than {ANSWER_LIMIT >> 20} MiB")
                return answer.status, bytes(text)
        except TimeoutError as error:
            raise AskError(f"no answer within {REQUEST_LIMIT:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise AskError(why(error)) from error

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, force_close=True),  # an address may be another pod's next time
                headers={"Accept-Encoding": "identity"},
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
                timeout=aiohttp.ClientTimeout(total=REQUEST_LIMIT),
            )
        return self._session

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()


class NatsMember(msgspec.Struct, frozen=True):
    """Another server of the cluster, as one of them sees it."""

    name: str = ""
    offline: bool = False


class NatsCluster(msgspec.Struct, frozen=True):
    """The group that keeps what streams there are."""

    leader: str = ""
    replicas: tuple[NatsMember, ...] = ()


class NatsAnswer(msgspec.Struct, frozen=True):
    """What a server tells of JetStream at its monitoring port."""

    disabled: bool = False
    meta_cluster: NatsCluster | None = None


def nats_answer(status: int, text: bytes) -> NatsAnswer:
    """What one server told. Raises AskError."""
    if status != 200:
        raise AskError(f"HTTP {status}")
    try:
        return msgspec.json.decode(text, type=NatsAnswer)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise AskError(f"an answer that can't be read: {why(error)}") from error


def why(error: Exception) -> str:
    """An error's own words, the first line of them."""
    return str(error).splitlines()[0][:300] if str(error) else type(error).__name__
