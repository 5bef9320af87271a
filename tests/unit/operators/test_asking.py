"""Questions by plain HTTP: bounded in time and size, followed nowhere, each in words when there is no answer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiohttp import web

from moorage.operators import asking

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@contextlib.asynccontextmanager
async def served(handler: Handler) -> AsyncIterator[tuple[asking.Http, int]]:
    app = web.Application()
    app.router.add_get("/{path:.*}", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    http = asking.Http()
    try:
        yield http, runner.addresses[0][1]
    finally:
        await http.close()
        await runner.cleanup()


async def test_status_and_answer() -> None:
    """As they are, whatever the status; a redirection is an answer, and is not followed."""
    seen = []

    async def told(asked: web.Request) -> web.Response:
        seen.append(asked.path)
        if asked.path == "/away":
            raise web.HTTPFound("/elsewhere")
        return web.Response(status=500, text="KO")

    async with served(told) as (http, port):
        assert (500, b"KO") == await http.get("127.0.0.1", port, "/a")
        assert 302 == (await http.get("127.0.0.1", port, "/away"))[0]
    assert ["/a", "/away"] == seen


async def test_every_question_has_a_connection_of_its_own() -> None:
    """An address may be another pod's the next time."""
    ports = set()

    async def told(asked: web.Request) -> web.Response:
        assert asked.transport is not None
        ports.add(asked.transport.get_extra_info("peername")[1])
        return web.Response()

    async with served(told) as (http, port):
        for _ in range(3):
            await http.get("127.0.0.1", port, "/")
    assert 3 == len(ports)


async def test_an_answer_without_end_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """It must not fill this process's memory."""
    monkeypatch.setattr(asking, "ANSWER_LIMIT", 2**20)

    async def told(_: web.Request) -> web.Response:
        return web.Response(body=b"x" * (2**20 + 1))

    async with served(told) as (http, port):
        with pytest.raises(asking.AskError, match="more than 1 MiB"):
            await http.get("127.0.0.1", port, "/")


async def test_who_does_not_answer_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the limit, and in words."""
    monkeypatch.setattr(asking, "REQUEST_LIMIT", 0.05)
    release = asyncio.Event()

    async def told(_: web.Request) -> web.Response:
        await release.wait()
        return web.Response()

    async with served(told) as (http, port):
        try:
            with pytest.raises(asking.AskError, match=r"no answer within 0\.05 s"):
                await http.get("127.0.0.1", port, "/")
        finally:
            release.set()


async def test_where_nobody_listens() -> None:
    """The first line of the error's own words."""

    async def told(_: web.Request) -> web.Response:
        return web.Response()

    async with served(told) as (_, port):
        pass
    http = asking.Http()
    try:
        with pytest.raises(asking.AskError, match=r"127\.0\.0\.1"):
            await http.get("127.0.0.1", port, "/")
    finally:
        await http.close()


async def test_a_connection_that_is_closed_is_told_of() -> None:
    """As by a server that ends while it is asked."""

    async def told(asked: web.Request) -> web.Response:
        assert asked.transport is not None
        asked.transport.close()
        return web.Response()

    async with served(told) as (http, port):
        with pytest.raises(asking.AskError, match="Server disconnected") as lost:
            await http.get("127.0.0.1", port, "/")
    assert not lost.value.maybe


def test_words_of_an_error_without_any() -> None:
    """Its name."""
    assert "TimeoutError" == asking.why(TimeoutError())
    assert "one" == asking.why(ValueError("one\ntwo"))


async def test_who_asks_once_it_is_closed_leaves_nothing_open() -> None:
    """As who is still asking while all is stopped."""
    http = asking.Http()
    await http.close()

    with pytest.raises(asking.AskError, match="nobody is asked any more"):
        await http.get("127.0.0.1", 1, "/")
    assert http._session is None
