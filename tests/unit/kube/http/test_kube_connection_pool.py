"""Which connection a request takes, and what becomes of it, on both event loops."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import pathlib
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest
from raw_server import OK, Peer, Server, saying

from moorage.kube import credentials, errors
from moorage.kube.http import connection_pool, transport

# --- kept connections -------------------------------------------------------------------------------------------------


async def test_the_connection_used_last_is_taken_first(raw: Server, wire: transport.HttpTransport) -> None:
    """So that the others run out."""
    release = asyncio.Event()

    async def slow(peer: Peer) -> None:
        await peer.heard()
        await release.wait()
        await peer.say(OK)
        await saying(OK)(peer)

    raw.scripts = [slow, saying(OK)]
    first = asyncio.create_task(wire.request("GET", "/1", timeout=30))
    await raw.connections(1)
    await wire.request("GET", "/2", timeout=30)
    release.set()
    await first
    for _ in range(3):
        await wire.request("GET", "/3", timeout=30)

    assert [4, 1] == [len(peer.heads) for peer in raw.peers]


async def test_an_idle_connection_is_closed_in_time(
    raw: Server, wire: transport.HttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the server does it."""
    monkeypatch.setattr(connection_pool, "IDLE", 0.05)
    await asyncio.gather(*(wire.request("GET", "/x", timeout=30) for _ in range(3)))
    for peer in raw.peers:
        await asyncio.wait_for(peer.gone.wait(), 30)
    await wire.request("GET", "/x", timeout=30)

    assert 4 == len(raw.peers)


async def test_a_connection_that_was_idle_too_long_is_not_used(
    raw: Server, wire: transport.HttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process may have been paused, and no timer has come in between."""
    await wire.request("GET", "/x", timeout=30)
    monkeypatch.setattr(connection_pool, "IDLE", 0.0)
    await wire.request("GET", "/x", timeout=30)

    assert 2 == len(raw.peers)


async def test_a_connection_that_the_server_closed_is_not_used(raw: Server, wire: transport.HttpTransport) -> None:
    """A write is sent once, over a new one."""
    raw.scripts = [saying(OK, then_close=True), saying(OK)]
    await wire.request("POST", "/x", body=b"{}", timeout=30)
    reader, writer = await asyncio.open_connection("127.0.0.1", raw.port)  # its end comes after the other's
    await raw.connections(2)
    writer.close()
    await asyncio.wait_for(raw.peers[1].gone.wait(), 30)
    await asyncio.wait_for(reader.read(), 30)

    assert 200 == (await wire.request("POST", "/x", body=b"{}", timeout=30)).status
    assert [1, 0, 1] == [len(peer.heads) for peer in raw.peers]


async def test_what_nobody_asked_for_ends_the_connection(raw: Server, wire: transport.HttpTransport) -> None:
    """Neither a second answer in one go nor one between requests is taken for the next."""
    raw.scripts = [saying(OK + b"HTTP/1.1 408 Timeout\r\nContent-Length: 0\r\n\r\n"), saying(OK)]

    assert 200 == (await wire.request("GET", "/x", timeout=30)).status
    await asyncio.wait_for(raw.peers[0].gone.wait(), 30)
    assert 200 == (await wire.request("GET", "/x", timeout=30)).status
    await raw.peers[1].say(b"HTTP/1.1 408 Timeout\r\nContent-Length: 0\r\n\r\n")
    await asyncio.wait_for(raw.peers[1].gone.wait(), 30)
    assert 200 == (await wire.request("GET", "/x", timeout=30)).status
    assert 3 == len(raw.peers)


async def _hang_up(peer: Peer) -> None:
    """One answer; the next request is read and not answered."""
    await peer.heard()
    await peer.say(OK)
    await peer.heard()


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_what_may_be_asked_twice_is_asked_again_when_a_kept_connection_ends(
    raw: Server, wire: transport.HttpTransport, method: str
) -> None:
    """The server may close a connection just as a request is on its way. Other kept ones may be as dead."""
    raw.scripts = [_hang_up, _hang_up, saying(OK)]
    await asyncio.gather(wire.request("GET", "/0", timeout=30), wire.request("GET", "/0", timeout=30))

    assert 200 == (await wire.request(method, "/x", timeout=30)).status
    assert [1, 1, 2] == sorted(len(peer.heads) for peer in raw.peers)


@pytest.mark.parametrize("method", ["POST", "PATCH"])
async def test_what_may_not_be_asked_twice_is_maybe_applied(
    raw: Server, wire: transport.HttpTransport, method: str
) -> None:
    """Only the caller knows what to do."""
    raw.scripts = [_hang_up, saying(OK)]
    await wire.request("GET", "/0", timeout=30)
    with pytest.raises(errors.TransportError, match="without an answer") as caught:
        await wire.request(method, "/x", body=b"{}", timeout=30)

    assert caught.value.sent
    assert 1 == len(raw.peers)


async def test_a_new_connection_that_ends_is_no_reason_to_ask_again(raw: Server, wire: transport.HttpTransport) -> None:
    """A server that hangs up always must not be asked for ever."""
    raw.scripts = [saying(b"", then_close=True)]
    with pytest.raises(errors.TransportError):
        await wire.request("GET", "/x", timeout=30)

    assert 1 == len(raw.peers)


async def test_half_an_answer_is_not_asked_for_again(raw: Server, wire: transport.HttpTransport) -> None:
    """The server has dealt with it."""
    raw.scripts = [saying(OK, b"HTTP/1.1 2", then_close=True), saying(OK)]
    await wire.request("GET", "/0", timeout=30)
    with pytest.raises(errors.TransportError):
        await wire.request("DELETE", "/x", timeout=30)

    assert 1 == len(raw.peers)


async def test_sent_once_is_sent_though_the_second_try_finds_nobody(raw: Server, wire: transport.HttpTransport) -> None:
    """The first may have been carried out."""

    async def vanish(peer: Peer) -> None:
        await peer.heard()
        await peer.say(OK)
        await peer.heard()
        raw.stop_listening()

    raw.scripts = [vanish]
    await wire.request("GET", "/0", timeout=30)
    with pytest.raises(errors.TransportError) as caught:
        await wire.request("DELETE", "/x", timeout=30)

    assert isinstance(caught.value.__cause__, ConnectionRefusedError)
    assert caught.value.sent


async def test_a_stream_read_to_its_end_leaves_its_connection(raw: Server, wire: transport.HttpTransport) -> None:
    """One left before drops it."""
    async with wire.stream("GET", "/x", timeout=30) as stream:
        assert [b"ok"] == [chunk async for chunk in stream.chunks()]
    async with wire.stream("GET", "/x", timeout=30) as stream:
        pass
    await asyncio.wait_for(raw.peers[0].gone.wait(), 30)
    await wire.request("GET", "/x", timeout=30)

    assert [2, 1] == [len(peer.heads) for peer in raw.peers]


async def test_a_renewed_certificate_makes_new_connections(raw: Server) -> None:
    """Over an old one the server would know the old certificate."""
    known = credentials.Credentials(f"http://127.0.0.1:{raw.port}")
    wire = transport.HttpTransport(known)
    await wire.request("GET", "/x", timeout=30)
    known.generation += 1
    await wire.request("GET", "/x", timeout=30)
    await wire.request("GET", "/x", timeout=30)
    await wire.close()

    assert [1, 2] == [len(peer.heads) for peer in raw.peers]


# --- TLS --------------------------------------------------------------------------------------------------------------


class Trusting(credentials.Credentials):
    """Knows one authority."""

    def __init__(self, server: str, authority: str, **more: str) -> None:
        super().__init__(server, **more)
        self._authority = authority

    def _make_tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=self._authority)


@pytest.fixture
async def secure(certificate: tuple[str, str], tmp_path: pathlib.Path) -> AsyncIterator[Server]:
    (tmp_path / "both.pem").write_text("".join(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "both.pem")
    async with Server().running(context) as made:
        yield made


@pytest.mark.parametrize(
    ("host", "name", "why"),
    [
        ("127.0.0.1", "", ""),
        ("localhost", "inside", ""),
        ("localhost", "", "not valid for 'localhost'"),
        ("127.0.0.1", "outside", "not valid for 'outside'"),
        ("127.0.0.1", "127.0.0.2", "IP address mismatch"),
    ],
)
async def test_the_name_in_the_certificate_is_verified(
    secure: Server, certificate: tuple[str, str], host: str, name: str, why: str
) -> None:
    """The host's, or that which the credentials say instead. Nothing was sent to who has another."""
    wire = transport.HttpTransport(Trusting(f"https://{host}:{secure.port}", certificate[0], server_name=name))
    with pytest.raises(errors.TransportError, match=why) if why else contextlib.nullcontext() as caught:
        assert b"ok" == (await wire.request("GET", "/x", timeout=30)).body
    await wire.close()

    assert caught is None or not caught.value.sent


async def test_an_unknown_authority_is_not_trusted(secure: Server) -> None:
    """Nothing was sent."""

    class Usual(credentials.Credentials):
        """The machine's authorities."""

    wire = transport.HttpTransport(Usual(f"https://127.0.0.1:{secure.port}"))
    with pytest.raises(errors.TransportError, match=r"check address, certificate.*self-signed") as caught:
        await wire.request("POST", "/x", timeout=30)
    await wire.close()

    assert not caught.value.sent


@pytest.fixture
def account(tmp_path: pathlib.Path, other_certificate: tuple[str, str]) -> pathlib.Path:
    """A service account that knows an authority, which is not the server's."""
    folder = tmp_path / "account"
    folder.mkdir()
    (folder / "token").write_text("t")
    (folder / "ca.crt").write_text(other_certificate[0])
    return folder


async def test_a_rotated_authority_is_taken_up_by_the_next_connection(
    secure: Server, account: pathlib.Path, certificate: tuple[str, str]
) -> None:
    """A pod's ca.crt is renewed in place; a process that never read it again would be cut off until it is restarted."""
    known = credentials.InCluster(f"https://127.0.0.1:{secure.port}", folder=account)
    wire = transport.HttpTransport(known)
    with pytest.raises(errors.TransportError, match="self-signed"):
        await wire.request("GET", "/x", timeout=30)
    (account / "ca.crt").write_text(certificate[0])
    known._distrusted_at = -1e9  # else it has just been read for that

    assert b"ok" == (await wire.request("GET", "/x", timeout=30)).body
    await wire.close()


async def test_so_is_that_of_a_kubeconfig(
    secure: Server, account: pathlib.Path, certificate: tuple[str, str], tmp_path: pathlib.Path
) -> None:
    """A file that it names, too."""
    cluster = {"server": f"https://127.0.0.1:{secure.port}", "certificate-authority": str(account / "ca.crt")}
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
    }
    (tmp_path / "config").write_text(json.dumps(config))
    known = await credentials.from_kubeconfig(tmp_path / "config")
    assert known.tls() is not None
    wire = transport.HttpTransport(known)
    (account / "ca.crt").write_text(certificate[0])

    assert b"ok" == (await wire.request("GET", "/x", timeout=30)).body
    await wire.close()


async def test_who_is_not_trusted_has_the_files_read_once_in_a_while(
    secure: Server, account: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An impostor costs no more than that."""
    known = credentials.InCluster(f"https://127.0.0.1:{secure.port}", folder=account)
    readings: list[int] = []
    monkeypatch.setattr(known, "_read", lambda: readings.append(1))
    wire = transport.HttpTransport(known)
    for _ in range(3):
        with pytest.raises(errors.TransportError, match="self-signed"):
            await wire.request("GET", "/x", timeout=30)
    await wire.close()

    assert [1] == readings


async def test_an_authority_that_is_no_longer_trusted_is_found_out_within_a_minute(
    secure: Server, account: pathlib.Path, certificate: tuple[str, str], other_certificate: tuple[str, str]
) -> None:
    """New connections know only the new one; one that can't be used changes nothing."""
    now = [0.0]
    (account / "ca.crt").write_text(certificate[0])
    known = credentials.InCluster(f"https://127.0.0.1:{secure.port}", folder=account, clock=lambda: now[0])
    wire = transport.HttpTransport(known)
    for text in ("", "half of it", certificate[0]):
        (account / "ca.crt").write_text(text) if now[0] else None
        now[0] += credentials.REREAD
        assert b"ok" == (await wire.request("GET", "/x", timeout=30)).body
    (account / "ca.crt").write_text(other_certificate[0])
    now[0] += credentials.REREAD

    with pytest.raises(errors.TransportError, match="self-signed"):
        await wire.request("GET", "/x", timeout=30)
    await wire.close()


async def test_over_tls_as_without(secure: Server, certificate: tuple[str, str]) -> None:
    """Kept, streamed, given up, and closed by the server."""
    wire = transport.HttpTransport(Trusting(f"https://127.0.0.1:{secure.port}", certificate[0]))
    body = bytes(range(256)) * 40_000
    large = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body

    async def silent_by_then(peer: Peer) -> None:
        await peer.heard()
        await peer.say(OK)
        await peer.heard()
        await peer.heard()

    secure.scripts = [saying(large, large, then_close=True), silent_by_then, saying(OK)]
    assert body == (await wire.request("GET", "/x", timeout=30)).body
    async with wire.stream("GET", "/x", timeout=30) as stream:
        assert body == b"".join([chunk async for chunk in stream.chunks()])
    assert b"ok" == (await wire.request("POST", "/x", timeout=30)).body
    with pytest.raises(errors.TransportError, match="no answer in time"):
        await wire.request("POST", "/x", timeout=0.5)  # over a connection that is there: to make one takes its time
    await asyncio.wait_for(secure.peers[1].gone.wait(), 30)
    assert b"ok" == (await wire.request("POST", "/x", timeout=30)).body
    await wire.close()
    await asyncio.wait_for(secure.peers[2].gone.wait(), 30)

    assert [2, 2, 1] == [len(peer.heads) for peer in secure.peers]


async def test_a_server_that_does_not_shake_hands(raw: Server, certificate: tuple[str, str]) -> None:
    """Nothing was sent, and the socket is closed."""

    async def mute(peer: Peer) -> None:
        while await peer.reader.read(1 << 16):
            pass
        peer.gone.set()

    raw.scripts = [mute]
    wire = transport.HttpTransport(Trusting(f"https://127.0.0.1:{raw.port}", certificate[0]))
    with pytest.raises(errors.TransportError, match="no connection in time") as caught:
        await wire.request("POST", "/x", timeout=0.3)
    (peer,) = await raw.connections(1)
    await asyncio.wait_for(peer.gone.wait(), 30)
    await wire.close()

    assert not caught.value.sent


# --- proxies ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("secured", [False, True])
async def test_through_the_proxy_of_the_kubeconfig(
    raw: Server, secure: Server, certificate: tuple[str, str], secured: bool
) -> None:
    """It is asked for a tunnel once per connection, and sees no more when there is TLS."""
    target = secure if secured else raw

    async def forward(peer: Peer) -> None:
        await peer.heard()
        reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
        await peer.say(b"HTTP/1.1 200 Connection established\r\nX: y\r\n\r\n")

        async def pour(source: asyncio.StreamReader, into: asyncio.StreamWriter) -> None:
            while data := await source.read(1 << 16):
                into.write(data)
            into.close()

        try:
            await asyncio.gather(pour(peer.reader, writer), pour(reader, peer.writer))
        finally:
            writer.transport.abort()

    async with Server().running() as proxy:
        proxy.scripts = [forward]
        scheme = "https" if secured else "http"
        known = Trusting(
            f"{scheme}://127.0.0.1:{target.port}", certificate[0], proxy=f"http://me:p%40ss@127.0.0.1:{proxy.port}"
        )
        wire = transport.HttpTransport(known)
        for _ in range(2):
            assert b"ok" == (await wire.request("GET", "/x", timeout=30)).body
        await wire.close()

        there = f"127.0.0.1:{target.port}"
        user = base64.b64encode(b"me:p@ss").decode()
        assert [
            f"CONNECT {there} HTTP/1.1\r\nHost: {there}\r\nProxy-Authorization: Basic {user}\r\n\r\n".encode()
        ] == proxy.peers[0].heads


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "407 Proxy Auth"),
        (b"", "did not answer"),
        (b"\r\n\r\n", ""),
    ],
)
async def test_a_proxy_that_does_not_connect(raw: Server, said: bytes, why: str) -> None:
    """Certainly not sent."""
    raw.scripts = [saying(said, then_close=True)]
    wire = transport.HttpTransport(credentials.Credentials("http://x.invalid", proxy=f"http://127.0.0.1:{raw.port}"))
    with pytest.raises(errors.TransportError, match=f"the proxy 127.0.0.1:{raw.port} .*{why}") as caught:
        await wire.request("POST", "/x", timeout=30)
    await wire.close()

    assert not caught.value.sent


async def test_a_proxy_of_another_kind() -> None:
    """Told before anything is asked."""
    with pytest.raises(errors.CredentialsError, match="the proxy socks5://x"):
        transport.HttpTransport(credentials.Credentials("http://x", proxy="socks5://x"))


# --- start-up ---------------------------------------------------------------------------------------------------------


def test_the_library_of_websockets_is_imported_by_none_but_them() -> None:
    """It is the dearest import of all, and few processes open one."""
    modules = "moorage.kube.client, moorage.kube.informers.informer, moorage.kube.discovery"
    told = f"import sys, {modules}; print('aiohttp' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", told], check=True, capture_output=True, text=True)

    assert "False" == ran.stdout.strip()
