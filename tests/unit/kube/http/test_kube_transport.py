"""The real transport against a real HTTP server in this process."""

from __future__ import annotations

import asyncio
import pathlib
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

import pytest
from aiohttp import web

from moorage.kube import credentials, errors
from moorage.kube.http import exec_protocol, transport

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Token(credentials.Credentials):
    """A token that is renewed when refused."""

    def __init__(self, server: str) -> None:
        super().__init__(server)
        self.token = "old"
        self.refreshed = 0
        self.worth = True

    async def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    async def refresh(self) -> bool:
        self.refreshed += 1
        self.token = "new"
        return self.worth


class Site:
    """A server whose one handler the test sets, and a transport to it."""

    def __init__(self) -> None:
        self.handler: Handler = self.echo
        self.seen: list[web.Request] = []
        self.url = ""

    async def echo(self, request: web.Request) -> web.StreamResponse:
        return web.json_response({"path": request.path_qs, "body": (await request.read()).decode()})

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(request)
        return await self.handler(request)

    def transport(self, limit: int = 64) -> transport.HttpTransport:
        self.credentials = Token(self.url)
        return transport.HttpTransport(self.credentials, limit=limit)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    made = Site()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", made.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    listener = web.TCPSite(runner, "127.0.0.1", 0)
    await listener.start()
    host, port = runner.addresses[0][:2]
    made.url = f"http://{host}:{port}/prefix/"
    yield made
    await runner.cleanup()


@pytest.fixture
async def wire(site: Site) -> AsyncIterator[transport.HttpTransport]:
    made = site.transport()
    yield made
    await made.close()


async def test_a_request(site: Site, wire: transport.HttpTransport) -> None:
    answer = await wire.request(
        "PATCH",
        "/api/v1/x",
        query={"a": "1 &", "command": ["ls", "-l"]},
        body=b"{}",
        content_type="application/merge-patch+json",
        timeout=30,
    )
    assert answer.status == 200
    assert answer.body == b'{"path": "/prefix/api/v1/x?a=1+%26&command=ls&command=-l", "body": "{}"}'
    headers = site.seen[0].headers
    assert headers["Authorization"] == "Bearer old"
    assert headers["Content-Type"] == "application/merge-patch+json"
    assert headers["Accept"] == "application/json"
    assert headers["Accept-Encoding"] == "identity"
    assert "Cookie" not in headers


async def test_whom_a_request_acts_as(site: Site, wire: transport.HttpTransport) -> None:
    """One request, one user: what another asks over the same connection is not his."""
    for user in ("system:serviceaccount:accounts:collector.acme", ""):
        await wire.request("GET", "/x", user=user, timeout=30)
        async with wire.stream("GET", "/x", user=user, timeout=30) as stream:
            assert 200 == stream.status
            async for _ in stream.chunks():
                pass
        heads = [seen.headers.getall(transport.IMPERSONATE, []) for seen in site.seen[-2:]]

        assert [[user] if user else []] * 2 == heads


@pytest.mark.parametrize("user", ["eve\r\nX: y", "eve eve", "\x00", "ü"])
async def test_a_name_that_no_header_can_hold_is_sent_nowhere(
    site: Site, wire: transport.HttpTransport, user: str
) -> None:
    with pytest.raises(ValueError, match="no name to act as"):
        await wire.request("GET", "/x", user=user, timeout=30)

    assert [] == site.seen


@pytest.mark.parametrize("worth", [True, False])
async def test_a_401_renews_the_credentials_once(site: Site, wire: transport.HttpTransport, worth: bool) -> None:
    async def refuse(request: web.Request) -> web.StreamResponse:
        return web.Response(status=200 if request.headers["Authorization"] == "Bearer new" else 401)

    site.handler, site.credentials.worth = refuse, worth
    answer = await wire.request("POST", "/x", body=b"{}", timeout=30)
    assert answer.status == (200 if worth else 401)
    assert site.credentials.refreshed == 1


async def test_a_401_that_stays(site: Site, wire: transport.HttpTransport) -> None:
    async def refuse(request: web.Request) -> web.StreamResponse:
        return web.Response(status=401)

    site.handler = refuse
    assert (await wire.request("GET", "/x", timeout=30)).status == 401
    assert len(site.seen) == 2


async def test_no_connection_is_certainly_not_sent() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    wire = transport.HttpTransport(credentials.Credentials(f"http://127.0.0.1:{port}"))
    with pytest.raises(errors.TransportError, match="POST /x: no connection") as caught:
        await wire.request("POST", "/x", body=b"{}", timeout=30)
    assert not caught.value.sent
    await wire.close()


async def test_a_certificate_that_does_not_verify_is_not_sent() -> None:
    """A server that speaks no TLS at all fails the same way."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(b"not tls at all, really")
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    wire = transport.HttpTransport(credentials.Credentials(f"https://127.0.0.1:{port}"))
    with pytest.raises(errors.TransportError) as caught:
        await wire.request("POST", "/x", timeout=30)
    assert not caught.value.sent
    await wire.close()
    server.close()


async def test_a_timeout_after_sending_is_maybe_applied(site: Site, wire: transport.HttpTransport) -> None:
    async def never(request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    await wire.request("GET", "/x", timeout=30)  # so that the connection is there
    site.handler = never
    with pytest.raises(errors.TransportError, match="no answer in time") as caught:
        await wire.request("POST", "/x", body=b"{}", timeout=1)
    assert caught.value.sent
    assert caught.value.maybe_applied


async def test_a_connection_that_breaks_is_maybe_applied(site: Site, wire: transport.HttpTransport) -> None:
    async def hang_up(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    site.handler = hang_up
    with pytest.raises(errors.TransportError, match="the connection broke") as caught:
        await wire.request("POST", "/x", body=b"{}", timeout=30)
    assert caught.value.sent


class Unverified(credentials.Credentials):
    """Whatever certificate the server shows will do."""

    def _make_tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context


async def test_closing_leaves_no_socket_to_a_server_that_hangs(
    certificate: tuple[str, str], tmp_path: pathlib.Path
) -> None:
    """An abandoned request must not wait for a farewell of TLS that never comes."""
    (tmp_path / "both.pem").write_text("".join(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "both.pem")
    heard, dropped = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def hang(listener: socket.socket) -> bool:
        """Reads the request, then nothing until told; whether the other end is gone by then."""
        with context.wrap_socket(listener.accept()[0], server_side=True) as peer:
            peer.recv(1 << 16)
            loop.call_soon_threadsafe(heard.set)
            dropped.wait(10)
            peer.settimeout(2)
            try:
                while socket.socket.recv(peer, 1 << 16):
                    pass
            except ConnectionResetError:
                return True
            except TimeoutError:
                return False
            return True

    with socket.create_server(("127.0.0.1", 0)) as listener:
        gone = loop.run_in_executor(None, hang, listener)
        wire = transport.HttpTransport(Unverified(f"https://127.0.0.1:{listener.getsockname()[1]}"))
        request = asyncio.create_task(wire.request("GET", "/x", timeout=60))
        await heard.wait()
        request.cancel()
        await asyncio.gather(request, return_exceptions=True)
        await wire.close()
        dropped.set()
        assert await gone


async def test_waiting_for_a_slot_is_not_sending(site: Site) -> None:
    wire = site.transport(limit=1)
    held = asyncio.Event()
    entered = asyncio.Event()

    async def hold(request: web.Request) -> web.StreamResponse:
        entered.set()
        await held.wait()
        return web.Response()

    site.handler = hold
    first = asyncio.create_task(wire.request("GET", "/x", timeout=30))
    await entered.wait()
    with pytest.raises(errors.TransportError) as caught:
        await wire.request("POST", "/x", timeout=0.05)
    assert not caught.value.sent
    held.set()
    await first
    assert len(site.seen) == 1
    await wire.close()


async def test_streams_never_starve_requests(site: Site) -> None:
    wire = site.transport(limit=1)

    async def stream(request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            return web.Response(text="done")
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(b"first\n")
        await asyncio.Event().wait()
        return answer

    site.handler = stream
    async with (
        wire.stream("GET", "/x", query={"watch": "1"}, timeout=30) as one,
        wire.stream("GET", "/x", query={"watch": "1"}, timeout=30) as two,
    ):
        assert await anext(one.chunks()) == b"first\n"
        assert await anext(two.chunks()) == b"first\n"
        assert (await wire.request("GET", "/x", timeout=30)).body == b"done"
    await wire.close()


async def test_a_stream_that_ends_and_one_that_breaks(site: Site, wire: transport.HttpTransport) -> None:
    async def stream(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(status=200)
        await answer.prepare(request)
        await answer.write(b"half a li")
        if "break" in request.query:
            assert request.transport is not None
            request.transport.abort()
        return answer

    site.handler = stream
    async with wire.stream("GET", "/x", timeout=30) as whole:
        assert [chunk async for chunk in whole.chunks()] == [b"half a li"]
    async with wire.stream("GET", "/x", query={"break": "1"}, timeout=30) as broken:
        with pytest.raises(errors.TransportError, match="broke"):
            [chunk async for chunk in broken.chunks()]


async def test_a_stream_that_never_opens(site: Site, wire: transport.HttpTransport) -> None:
    async def never(request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    site.handler = never
    with pytest.raises(errors.TransportError):
        async with wire.stream("GET", "/x", timeout=0.05):
            raise AssertionError


async def test_a_websocket(site: Site, wire: transport.HttpTransport) -> None:
    async def talk(request: web.Request) -> web.StreamResponse:
        ws = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
        await ws.prepare(request)
        await ws.send_bytes(b"\x01hello")
        await ws.send_bytes(b'\x03{"status":"Success"}')
        await ws.close()
        return ws

    site.handler = talk
    async with wire.socket("/exec", query={"command": ["a"]}, protocols=exec_protocol.PROTOCOLS, timeout=30) as ws:
        assert ws.protocol == "v4.channel.k8s.io"
        assert (await exec_protocol.collect(ws, "exec")).stdout == "hello"
    assert site.seen[0].headers["Authorization"] == "Bearer old"


async def test_a_websocket_refused(site: Site, wire: transport.HttpTransport) -> None:
    async def refuse(request: web.Request) -> web.StreamResponse:
        return web.Response(status=403)

    site.handler = refuse
    with pytest.raises(errors.Forbidden):
        async with wire.socket("/exec", protocols=("x",), timeout=30):
            raise AssertionError


async def test_the_environment_names_no_proxy(
    site: Site, wire: transport.HttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert (await wire.request("GET", "/x", timeout=30)).status == 200


async def test_a_host_without_address_is_an_error_of_ours() -> None:
    """Callers catch KubeError alone."""
    wire = transport.HttpTransport(credentials.Credentials("http://no.such.host.invalid"))
    with pytest.raises(errors.KubeError) as caught:
        await wire.request("GET", "/x", timeout=30)
    assert isinstance(caught.value.__cause__, OSError)
    await wire.close()
