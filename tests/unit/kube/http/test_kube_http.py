"""HTTP/1.1 as the real transport speaks it, against a server that says what it is told, on both event loops."""

from __future__ import annotations

import asyncio
import pathlib

import pytest
from raw_server import OK, Peer, Server, saying

from moorage.kube import credentials, errors
from moorage.kube.http import http1, transport


def answer(*lines: str, body: bytes = b"") -> bytes:
    return "\r\n".join(["HTTP/1.1 200 OK", *lines, "", ""]).encode() + body


CHUNKED = answer("Transfer-Encoding: chunked", body=b"3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: t\r\n\r\n")
WHOLE = {
    "a length": (answer("Content-Length: 3", body=b"abc"), 200, b"abc", True),
    "no body": (answer("Content-Length: 0"), 200, b"", True),
    "chunks": (CHUNKED, 200, b"abcde", True),
    "204": (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", True),
    "304": (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 304, b"", True),
    "100 first": (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, 200, b"ok", True),
    "103 first": (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\nContent-Length: 7\r\n\r\n" + OK, 200, b"ok", True),
    "a close": (answer("Connection: close", "Content-Length: 3", body=b"abc"), 200, b"abc", False),
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc", 200, b"abc", False),
}


@pytest.mark.parametrize("name", WHOLE)
async def test_a_whole_answer_and_what_follows(raw: Server, wire: transport.HttpTransport, name: str) -> None:
    """The next request takes the same connection exactly when the answer allowed it."""
    said, status, body, kept = WHOLE[name]
    raw.scripts = [saying(said)]
    first = await wire.request("GET", "/x", timeout=30)
    second = await wire.request("GET", "/x", timeout=30)

    assert (status, body) == (first.status, first.body)
    assert first == transport.Response(second.status, first.headers, second.body)
    assert (1 if kept else 2) == len(raw.peers)


@pytest.mark.parametrize("name", WHOLE)
async def test_an_answer_byte_by_byte(raw: Server, wire: transport.HttpTransport, name: str) -> None:
    """Where the network cuts an answer makes no difference."""
    said, status, body, _ = WHOLE[name]

    async def drip(peer: Peer) -> None:
        await peer.heard()
        for byte in said:
            await peer.say(bytes([byte]))
            await asyncio.sleep(0)
        await peer.heard()

    raw.scripts = [drip]
    got = await wire.request("GET", "/x", timeout=30)

    assert (status, body) == (got.status, got.body)


async def test_an_answer_without_a_length_ends_with_its_connection(raw: Server, wire: transport.HttpTransport) -> None:
    """Of such an answer nobody can tell more."""
    raw.scripts = [saying(answer("Content-Type: x", body=b"all of it"), then_close=True)]

    assert b"all of it" == (await wire.request("GET", "/x", timeout=30)).body
    async with wire.stream("GET", "/x", timeout=30) as stream:
        assert [b"all of it"] == [chunk async for chunk in stream.chunks()]


async def test_the_answer_to_head_has_no_body(raw: Server, wire: transport.HttpTransport) -> None:
    """Its length is that of another answer."""
    raw.scripts = [saying(answer("Content-Length: 300"))]
    got = await wire.request("HEAD", "/x", timeout=30)

    assert (200, b"", "300") == (got.status, got.body, got.headers["content-length"])
    assert 200 == (await wire.request("HEAD", "/x", timeout=30)).status


BROKEN = {
    "nothing": b"",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "less than its length": answer("Content-Length: 9", body=b"half"),
    "half a chunk": answer("Transfer-Encoding: chunked", body=b"9\r\nhalf"),
    "no last chunk": answer("Transfer-Encoding: chunked", body=b"4\r\nhalf\r\n"),
    "another protocol": b"SSH-2.0-OpenSSH_9.2\r\n",
    "a chunk of no size": answer("Transfer-Encoding: chunked", body=b"zz\r\nhalf\r\n"),
    "two lengths": answer("Content-Length: 1", "Content-Length: 2", body=b"xy"),
    "a switch of protocols": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
    "a hint alone": b"HTTP/1.1 103 Early Hints\r\n\r\n",
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_broken_answer_is_maybe_applied(raw: Server, wire: transport.HttpTransport, name: str) -> None:
    """Never half an answer, never a silent repetition of a write, and the next request is not harmed."""
    raw.scripts = [saying(BROKEN[name], then_close=True), saying(OK)]
    with pytest.raises(errors.TransportError, match=r"POST /x: the connection broke: .") as caught:
        await wire.request("POST", "/x", body=b"{}", timeout=30)

    assert caught.value.sent
    assert 200 == (await wire.request("POST", "/x", body=b"{}", timeout=30)).status
    assert 2 == len(raw.peers)


@pytest.mark.parametrize("name", ["less than its length", "no last chunk", "a chunk of no size"])
async def test_a_stream_gives_what_came_before_it_broke(raw: Server, wire: transport.HttpTransport, name: str) -> None:
    """Complete lines of a watch count, though its connection is gone."""
    raw.scripts = [saying(BROKEN[name], then_close=True)]
    read = b""
    async with wire.stream("GET", "/x", timeout=30) as stream:
        with pytest.raises(errors.TransportError, match="broke") as caught:
            async for chunk in stream.chunks():
                read += chunk

    assert caught.value.sent
    assert read == (b"" if name == "a chunk of no size" else b"half")


async def test_headers_are_found_whatever_their_case(raw: Server, wire: transport.HttpTransport) -> None:
    """And told as the server spelt them."""
    raw.scripts = [saying(answer("retry-AFTER: 7", "X: 1", "x: 2", "Content-Length: 0"))]
    headers = (await wire.request("GET", "/x", timeout=30)).headers

    assert "7" == headers["Retry-After"]
    assert "1" == headers.get("x")
    assert "gone" not in headers
    assert ["retry-AFTER", "X", "Content-Length"] == list(headers)
    assert 3 == len(headers)


# --- what is asked ----------------------------------------------------------------------------------------------------


async def test_a_request_byte_for_byte(raw: Server) -> None:
    """Nothing is sent that is of no use."""

    class Token(credentials.Credentials):
        async def headers(self) -> dict[str, str]:
            return {"Authorization": "Bearer t"}

    wire = transport.HttpTransport(Token(f"http://user@127.0.0.1:{raw.port}/base/"), user_agent="me")
    common = (
        f"Host: 127.0.0.1:{raw.port}\r\nUser-Agent: me\r\nAccept-Encoding: identity\r\nAccept: application/json\r\n"
    )
    await wire.request("GET", "/x", query={"a": ["1", "2"], "b": "ä&"}, timeout=30)
    await wire.request("PATCH", "/x", body=b"{}", content_type="t", timeout=30)
    await wire.request("POST", "/x", timeout=30)
    await wire.close()

    assert [
        f"GET /base/x?a=1&a=2&b=%C3%A4%26 HTTP/1.1\r\n{common}Authorization: Bearer t\r\n\r\n".encode(),
        f"PATCH /base/x HTTP/1.1\r\n{common}Content-Type: t\r\n".encode()
        + b"Authorization: Bearer t\r\nContent-Length: 2\r\n\r\n",
        f"POST /base/x HTTP/1.1\r\n{common}Authorization: Bearer t\r\nContent-Length: 0\r\n\r\n".encode(),
    ] == raw.peers[0].heads


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/a/b:c@d", b"/a/b:c@d"),
        ("/a%2Fb", b"/a%2Fb"),
        ("/a b?c#d", b"/a%20b%3Fc%23d"),
        ("/ä\r\nX: y", b"/%C3%A4%0D%0AX:%20y"),
        ('/"<>\\^`{|}', b"/%22%3C%3E%5C%5E%60%7B%7C%7D"),
    ],
)
async def test_a_path_is_one_path_whatever_it_holds(
    raw: Server, wire: transport.HttpTransport, path: str, target: bytes
) -> None:
    """No name can end the path, let alone the line."""
    await wire.request("GET", path, timeout=30)

    assert b"GET " + target + b" HTTP/1.1" == raw.peers[0].heads[0].split(b"\r\n")[0]


async def test_a_token_with_a_line_break_is_not_sent(raw: Server) -> None:
    """It would be a header of its own."""

    class Token(credentials.Credentials):
        async def headers(self) -> dict[str, str]:
            return {"Authorization": "Bearer t\r\nX: y"}

    wire = transport.HttpTransport(Token(f"http://127.0.0.1:{raw.port}"))
    with pytest.raises(errors.CredentialsError, match="Authorization"):
        await wire.request("GET", "/x", timeout=30)
    await wire.close()

    assert not raw.peers


@pytest.mark.parametrize("address", ["kubernetes.default", "ftp://x", "https://", "https://x:port", "http://[::1"])
async def test_an_address_that_is_none(address: str) -> None:
    """Told before anything is asked."""
    with pytest.raises(errors.CredentialsError, match="address"):
        transport.HttpTransport(credentials.Credentials(address))


# --- who is cancelled, what is too much -------------------------------------------------------------------------------


async def test_a_request_that_is_given_up_closes_its_connection(raw: Server) -> None:
    """Its answer must not meet the next request; its slot is free at once."""
    wire = transport.HttpTransport(credentials.Credentials(f"http://127.0.0.1:{raw.port}"), limit=1)
    asked = asyncio.Event()

    async def silent(peer: Peer) -> None:
        await peer.heard()
        asked.set()
        await peer.heard()

    raw.scripts = [silent, saying(OK)]
    request = asyncio.create_task(wire.request("GET", "/x", timeout=60))
    await asked.wait()
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    await asyncio.wait_for(raw.peers[0].gone.wait(), 30)

    assert b"ok" == (await wire.request("GET", "/x", timeout=30)).body
    assert 2 == len(raw.peers)
    await wire.close()


async def test_an_answer_before_the_request_has_left(raw: Server, wire: transport.HttpTransport) -> None:
    """A server that refuses a body does not read it; nothing else can be asked on that connection."""

    async def refuse(peer: Peer) -> None:
        await peer.reader.readuntil(b"\r\n\r\n")
        peer.writer.transport.pause_reading()
        await peer.say(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        refused.set()
        await done.wait()

    refused, done = asyncio.Event(), asyncio.Event()
    raw.scripts = [refuse, saying(OK)]

    assert 413 == (await wire.request("POST", "/x", body=bytes(32 << 20), timeout=30)).status
    assert refused.is_set()
    assert 200 == (await wire.request("POST", "/x", body=b"{}", timeout=30)).status
    assert 2 == len(raw.peers)
    done.set()


async def test_a_very_large_answer(raw: Server, wire: transport.HttpTransport) -> None:
    """A list of 40 MB comes whole, as a request and as a stream."""
    body = b"".join(b"%07d\n" % number for number in range(5_000_000))  # no part like another
    raw.scripts = [saying(answer(f"Content-Length: {len(body)}", body=body))]

    assert body == (await wire.request("GET", "/x", timeout=60)).body
    async with wire.stream("GET", "/x", timeout=60) as stream:
        assert body == b"".join([chunk async for chunk in stream.chunks()])


async def test_a_slow_reader_stops_the_server(raw: Server, wire: transport.HttpTransport) -> None:
    """What nobody reads yet is not read from the socket either, and nothing is lost of it."""
    piece, total = b"x" * (1 << 16), 1 << 10
    written = 0

    async def pour(peer: Peer) -> None:
        nonlocal written
        await peer.heard()
        await peer.say(answer(f"Content-Length: {len(piece) * total}"))
        for _ in range(total):
            await peer.say(piece)
            written += 1
        await peer.heard()

    raw.scripts = [pour, saying(OK)]
    async with wire.stream("GET", "/x", timeout=30) as stream:
        seen = -1
        while seen != written:  # it has not moved while 200 other requests were served
            seen = written
            for _ in range(200):
                await wire.request("GET", "/y", timeout=30)
        stopped = written
        read = 0
        async for chunk in stream.chunks():
            read += len(chunk)

    assert 0 < stopped < total / 2
    assert len(piece) * total == read


async def test_chunks_that_have_come_are_read_at_once(raw: Server, wire: transport.HttpTransport) -> None:
    """A reader that was busy gets one piece, not a thousand."""
    body = b"".join(b"1\r\nx\r\n" for _ in range(1000)) + b"0\r\n\r\n"
    raw.scripts = [saying(answer("Transfer-Encoding: chunked", body=body))]
    async with wire.stream("GET", "/x", timeout=30) as stream:
        pieces = [chunk async for chunk in stream.chunks()]

    assert 1000 == sum(map(len, pieces))
    assert 10 > len(pieces)


async def test_closing_ends_what_is_under_way(raw: Server, wire: transport.HttpTransport) -> None:
    """Requests and streams fail as if the server had gone, and no socket is open when it returns."""

    async def hold(peer: Peer) -> None:
        head = await peer.heard()
        if b"watch" in head:
            await peer.say(answer("Transfer-Encoding: chunked", body=b"1\r\nx\r\n"))
        await peer.heard()

    raw.scripts = [hold, hold, saying(OK)]
    async with wire.stream("GET", "/watch", timeout=30) as stream:
        reading = stream.chunks()
        assert b"x" == await anext(reading)
        request = asyncio.create_task(wire.request("POST", "/x", timeout=60))
        await raw.connections(2)
        await wire.request("GET", "/idle", timeout=30)
        ports = [peer.writer.get_extra_info("peername")[1] for peer in raw.peers]
        await wire.close()
        assert not established(ports, raw.port)
        with pytest.raises(errors.TransportError, match="broke"):
            await anext(reading)
        with pytest.raises(errors.TransportError, match="broke") as caught:
            await request
    assert caught.value.sent
    for peer in raw.peers:
        await asyncio.wait_for(peer.gone.wait(), 30)
    with pytest.raises(errors.TransportError, match="closed") as caught:
        await wire.request("POST", "/x", timeout=30)

    assert not caught.value.sent
    assert 3 == len(raw.peers)


def established(ports: list[int], server: int) -> list[int]:
    """Of these local ports those from which there is an open connection to that one; others may have the same."""
    lines = [line.split() for line in pathlib.Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
    ends = [(int(local[-4:], 16), int(remote[-4:], 16)) for _, local, remote, state, *_ in lines if state == "01"]
    return [port for port in ports if (port, server) in ends]


def test_headers_of_no_answer() -> None:
    """An empty mapping like any other."""
    assert {} == dict(http1.Headers([]))
