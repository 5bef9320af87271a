"""What probes and scrapers are told, and what becomes of those who ask for something else."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from moorage.runtime.reporting import http_server, telemetry


class Probed:
    """A server, and what it is to say."""

    def __init__(self) -> None:
        self.port, self.unhealthy, self.metrics = 0, list[str](), telemetry.Metrics()

    async def ask(self, sent: bytes) -> bytes:
        """All that comes back until the server hangs up."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(sent)
        async with asyncio.timeout(30):
            answer = await reader.read()
        writer.close()
        return answer


@pytest.fixture
async def probed() -> AsyncIterator[Probed]:
    it = Probed()

    def broken() -> list[str]:
        raise RuntimeError("a defect")

    serving = http_server.Server(
        host="127.0.0.1",
        port=it.port,
        unhealthy=lambda: it.unhealthy,
        unready=broken,
        metrics=lambda: it.metrics,
    )
    await serving.start()
    assert serving._server is not None
    it.port = serving._server.sockets[0].getsockname()[1]
    yield it
    await serving.stop()


async def test_a_probe_is_told_what_is_wrong(probed: Probed) -> None:
    """Each complaint is a line, and the status is what the kubelet goes by."""
    assert (await probed.ask(b"GET /healthz HTTP/1.1\r\nHost: it\r\n\r\n")).startswith(b"HTTP/1.1 200 OK\r\n")

    probed.unhealthy = ["one watch", "another watch"]
    head, _, body = (await probed.ask(b"GET /healthz?verbose HTTP/1.1\r\n\r\n")).partition(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert body == b"one watch\nanother watch"
    assert f"Content-Length: {len(body)}\r\n".encode() in head


async def test_head_says_as_much_without_the_body(probed: Probed) -> None:
    """The length is that of the body which GET would bring."""
    head, _, body = (await probed.ask(b"HEAD /healthz HTTP/1.1\r\n\r\n")).partition(b"\r\n\r\n")

    assert b"Content-Length: 2\r\n" in head
    assert body == b""


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /elsewhere HTTP/1.1\r\n\r\n", b"404"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", b"405"),
        (b"GET /readyz HTTP/1.1\r\n\r\n", b"500"),
    ],
)
async def test_other_questions_are_refused(probed: Probed, sent: bytes, status: bytes) -> None:
    """An unknown path, a write, and a callable that fails, which is a defect of ours."""
    assert (await probed.ask(sent)).split(b" ")[1] == status


@pytest.mark.parametrize("sent", [b"\r\n\r\n", b"\x16\x03\x01 no HTTP\r\n\r\n", b"G" * 100_000])
async def test_what_is_no_question_is_hung_up_on_and_others_are_still_answered(probed: Probed, sent: bytes) -> None:
    """A port scanner, TLS where there is none, and a first line without end."""
    with contextlib.suppress(ConnectionResetError):  # it has not read all that was sent
        assert await probed.ask(sent) == b""

    assert b"200 OK" in await probed.ask(b"GET /healthz HTTP/1.1\r\n\r\n")


async def test_a_silent_client_is_hung_up_on(probed: Probed, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may not keep its connection for ever."""
    monkeypatch.setattr(http_server, "PATIENCE", 0.05)

    assert await probed.ask(b"GET /heal") == b""
