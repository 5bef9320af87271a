"""How an agent asks its hook, the server and other agents; and how it is asked itself: over real sockets."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import pytest

from moorage.agent import health, hook, outside, plan, serving
from moorage.api import proof


@contextlib.contextmanager
def hooked(folder: Path, answer: Callable[[dict[str, Any]], bytes]) -> Iterator[hook.Client]:
    """A hook that answers so; one connection for each request."""
    path = folder / "s"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            while True:
                try:
                    line, _ = listener.accept()
                except OSError:
                    return
                with line, line.makefile("rb") as asked:
                    line.sendall(answer(json.loads(asked.readline())))

        threading.Thread(target=serve, daemon=True).start()
        yield hook.Client(path)
        listener.shutdown(socket.SHUT_RDWR)


def said(**fields: Any) -> bytes:
    return json.dumps(fields).encode() + b"\n"


def test_what_a_hook_tells(tmp_path: Path) -> None:
    """The server, its container's life, and the command that was run last, with the end of what it said."""
    told = {"id": "a", "running": False, "exit": 3, "output": "x" * 1000 + " end\n"}
    with hooked(tmp_path, lambda _: said(running=True, boot="b", command=told)) as asked:
        found = asked.state()

    assert (True, "b") == (found.running, found.boot)
    assert found.command is not None
    assert ("a", False, 3, True) == (
        found.command.id,
        found.command.running,
        found.command.exit,
        found.command.output.endswith("x end"),
    )
    assert hook.MOST_OUTPUT >= len(found.command.output)


def test_what_a_hook_is_asked(tmp_path: Path) -> None:
    """A password goes over the socket, and nowhere else."""
    asked: list[dict[str, Any]] = []

    def answer(request: dict[str, Any]) -> bytes:
        asked.append(request)
        return said(files={"configuration.yml": "a: 1"}, exit=2, output="{}")

    with hooked(tmp_path, answer) as client:
        assert {"configuration.yml": "a: 1"} == client.files()
        client.start(["tool", "server"], "secret\n")
        client.stop()
        client.run("i", ["tool", "migration", "run"], "secret\n")
        assert (2, "{}") == client.ask(["tool", "catalog", "status"], 1.0)

    assert [
        {"do": "files"},
        {"do": "start", "args": ["tool", "server"], "stdin": "secret\n"},
        {"do": "stop"},
        {"do": "run", "id": "i", "args": ["tool", "migration", "run"], "stdin": "secret\n"},
        {"do": "ask", "args": ["tool", "catalog", "status"], "seconds": 1.0, "stdin": ""},
    ] == asked


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (said(error="command a runs"), "command a runs"),
        (b"", "does not answer"),
        (b"[]\n", "is no mapping"),
        (b"{\n", "does not answer"),
        (b"x" * (hook.ANSWER_LIMIT + 1), "an answer without end"),
    ],
)
def test_a_hook_that_refuses_or_says_nothing(tmp_path: Path, answer: bytes, words: str) -> None:
    """In words."""
    with hooked(tmp_path, lambda _: answer) as asked, pytest.raises(hook.HookError, match=words):
        asked.state()


def test_no_hook(tmp_path: Path) -> None:
    """As before the server's container runs."""
    with pytest.raises(hook.HookError, match="the hook does not answer"):
        hook.Client(tmp_path / "nowhere").state()


TOKEN = "t" * 43


class _Told:
    """As much of an agent as its server needs."""

    told, metrics = b"{}", b"up 1\n"
    me = "demo-client-0"

    def __init__(self, token: str = TOKEN) -> None:
        self._token = token

    def token(self) -> str:
        return self._token


@contextlib.contextmanager
def telling(agent: _Told) -> Iterator[int]:
    """It serves at a port."""
    server = serving.health(agent, 0)
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def asked(token: str = TOKEN, of: str = "demo-client-0", at: float = 0.0) -> str:
    """A question's proof, of now or of that time."""
    return proof.question(token, of, at or time.time(), "a1")


@pytest.mark.parametrize(
    ("held", "header", "words"),
    [
        ("", asked, "there is no token in this pod yet"),
        (TOKEN, lambda: "", "a question must bear a proof"),
        (TOKEN, lambda: "x", "the proof of the question can't be read"),
        (TOKEN, lambda: asked("u" * 43), "is proved by another token"),
        (TOKEN, lambda: asked(of="demo-0"), "is proved by another token"),
        (TOKEN, lambda: asked(at=1e9), "more than 300 s"),
    ],
)
def test_nobody_is_told_anything_without_the_token(
    monkeypatch: pytest.MonkeyPatch, held: str, header: Callable[[], str], words: str
) -> None:
    """But why."""
    monkeypatch.setattr(outside, "LIMIT", 60.0)
    with telling(_Told(held)) as port:
        status, text, headers = outside.get(f"http://127.0.0.1:{port}/", {proof.ASKED: header()})

    assert 401 == status
    assert words in text.decode()
    assert proof.TOLD not in headers


def test_agents_ask_each_other_what_they_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over the port at which health is served; who is silent, or says nothing that can be read, is left out."""
    monkeypatch.setattr(outside, "LIMIT", 60.0)
    stand = plan.Stand()
    place = health.Place(stand, 1.8e9, 7, 7)
    agent = _Told()
    agent.told = health.text("demo-client-0", place, up=True, up_at=1.8e9, catalog=(True, "5.0.0"))
    server = serving.health(agent, 0)
    port = server.server_address[1]
    try:
        with futures.ThreadPoolExecutor(2) as pool:
            hosts = {"demo-client-0": "127.0.0.1", "demo-0": "127.0.0.1"}
            found = outside.others(hosts, port, TOKEN, pool)
            assert {} == outside.others(hosts, port, "u" * 43, pool)
        assert {"demo-client-0": plan.Other(True, 7, "5.0.0")} == found
        assert not outside.ping(f"http://127.0.0.1:{port}/any"), "it is no server of the product"
    finally:
        server.shutdown()
        server.server_close()
    assert not outside.ping(f"http://127.0.0.1:{port}/any")
    with futures.ThreadPoolExecutor(1) as pool:
        assert {} == outside.others(hosts, port, TOKEN, pool)


def test_who_asks_and_asks_takes_nobody_elses_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond so many at a time the line is closed; who came before is answered."""
    monkeypatch.setattr(serving, "AT_ONCE", 2)
    monkeypatch.setattr(serving, "ASKED_WITHIN", 60.0)
    server = serving.health(_Told(), 0)
    address = ("127.0.0.1", server.server_address[1])
    try:
        held = [socket.create_connection(address) for _ in range(2)]
        with socket.create_connection(address) as third:
            assert b"" == third.recv(1)
        for line in held:
            asks = proof.question(TOKEN, "demo-client-0", time.time(), "a1")
            line.sendall(f"GET / HTTP/1.0\r\n{proof.ASKED}: {asks}\r\n\r\n".encode())
            with line, line.makefile("rb") as answer:
                assert answer.read().endswith(b"{}")
    finally:
        server.shutdown()
        server.server_close()


def test_metrics_are_for_everybody_and_nothing_else_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a port of their own, without a token; health is not to be had there."""
    monkeypatch.setattr(outside, "LIMIT", 60.0)
    server = serving.metrics(_Told(token=""), 0)
    at = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        status, text, headers = outside.get(f"{at}/metrics", {})
        elsewhere = [outside.get(at + path, {})[0] for path in ("/", "/metrics/", "/health", "/../metrics")]
    finally:
        server.shutdown()
        server.server_close()

    assert (200, b"up 1\n") == (status, text)
    assert "text/plain; version=0.0.4; charset=utf-8" == headers["Content-Type"]
    assert [404] * 4 == elsewhere
    assert "Python" not in str(headers)


@pytest.mark.parametrize(
    "told",
    [b"", b"[]", b"{}", b'{"statuses": {"a": {}}, "mmsStatus": {"a": {}}}', b"[" * 100_000],
)
def test_another_agents_answer_that_is_none(told: bytes) -> None:
    """It is as if it said nothing."""
    with pytest.raises(ValueError, match="a tells nothing that can be read"):
        health.other(told, "a")


def test_an_agent_without_a_catalog_tells_of_none() -> None:
    """Nor does one whose catalog is not installed."""
    place = health.Place(plan.Stand("Start", "WaitPing"), 1.8e9, -1, 3)
    for catalog in (None, (False, "5.0.0")):
        told = health.text("a", place, up=False, up_at=0.0, catalog=catalog)
        assert plan.Other(False, -1, "") == health.other(told, "a")
