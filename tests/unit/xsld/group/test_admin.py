"""The client of the admin API."""

from __future__ import annotations

import contextlib
import ssl
import types
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from moorage.operators.xsld.group import admin, answers, dialect

TARGET = admin.Target("c-0", "uid-0", "127.0.0.1", "c-0.c.ns.svc")


async def test_once_closed_it_opens_nothing_anew() -> None:
    """A look that is still under way when credentials change must leave no connection behind."""
    it = admin.Admin(dialect.Dialect(), admin.Credentials("Abcdefg1-x", "Abcdefg1-x"), admin.tls(None, verify=False))
    await it.close()

    with pytest.raises(admin.AdminError, match="credentials have changed, or the cache is gone"):
        await it.call(TARGET, "GET", "/grid")
    assert answers.Fault.UNREACHABLE == (await it.answer(TARGET)).fault


async def test_a_certificate_that_is_not_verified_is_told_with_the_field_that_asks_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def request(*_: object, **__: object) -> object:
        place: Any = types.SimpleNamespace(host="127.0.0.1", port=9445, ssl=True)
        raise aiohttp.ClientConnectorCertificateError(place, ssl.SSLCertVerificationError("self-signed certificate"))

    it = admin.Admin(dialect.Dialect(), admin.Credentials("", ""), admin.tls(None, verify=True))
    monkeypatch.setattr(it, "_open", lambda: types.SimpleNamespace(request=request))

    with pytest.raises(admin.AdminError, match=r"not one that spec\.tls asks for: .*self-signed") as caught:
        await it.call(TARGET, "GET", "/grid")
    assert (answers.Fault.UNREACHABLE, False) == (caught.value.fault, caught.value.maybe)


class Sending(admin.Admin):
    """A member that answers with these bytes."""

    def __init__(self, *parts: bytes, status: int = 200) -> None:
        super().__init__(dialect.Dialect(), admin.Credentials("", ""), admin.tls(None, verify=False))
        self.status, self.content, self._parts = status, self, parts

    def _open(self) -> Any:
        return self

    @contextlib.asynccontextmanager
    async def request(self, *_: object, **__: object) -> AsyncIterator[Sending]:
        yield self

    async def iter_any(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            yield part


@pytest.mark.parametrize("text", [b"[" * 100_000, b'"\xff"', b'"\\ud800"', b"9" * 5000, b"{", b"\x00"])
@pytest.mark.parametrize("status", [200, 500])
async def test_what_is_no_json_is_text(text: bytes, status: int) -> None:
    it = Sending(text, status=status)

    answer = await it.answer(TARGET)

    assert answers.Fault.MALFORMED == answer.fault
    if status == 200:
        assert text.decode(errors="replace") == await it.call(TARGET, "GET", "/task")


async def test_of_an_answer_that_is_too_long_no_more_is_read() -> None:
    read = 0

    class Endless(Sending):
        async def iter_any(self) -> AsyncIterator[bytes]:
            nonlocal read
            while True:
                read += 2**20
                yield bytes(2**20)

    with pytest.raises(admin.AdminError, match="more than 4 MiB") as caught:
        await Endless().call(TARGET, "POST", "/task")
    assert caught.value.maybe, "it may have been carried out"
    assert 5 * 2**20 == read


class Telling(admin.Admin):
    """A member that has ended the task's listing, and tells of it by its own status call alone."""

    def __init__(self, said: object) -> None:
        super().__init__(dialect.Dialect(), admin.Credentials("", ""), admin.tls(None, verify=False))
        self._told = said

    async def call(self, target: admin.Target, method: str, path: str, body: object = None) -> object:
        return self._told


TOLD: dict[str, tuple[object, answers.Task | None]] = {
    # id: (what the status call says, what is known of the task)
    "an object": ({"status": "Running", "progress": 45}, answers.Task(7, "", "", answers.Phase.RUNNING, 45)),
    "one without progress": ({"status": "Running"}, answers.Task(7, "", "", answers.Phase.RUNNING)),
    "a text": ("Task Success", answers.Task(7, "", "", answers.Phase.DONE)),
    "nothing that is known": ({"status": "Rolling"}, None),
}


@pytest.mark.parametrize(("said", "task"), TOLD.values(), ids=TOLD)
async def test_what_the_status_call_says_of_a_task_counts(said: object, task: answers.Task | None) -> None:
    answer = await Telling(said).followed(TARGET, answers.Answer("c-0", "uid-0", "127.0.0.1"), 7)

    assert ((task,) if task else ()) == answer.tasks


async def test_progress_that_the_status_call_lacks_is_that_of_the_list() -> None:
    listed = answers.Task(7, "C", "d", answers.Phase.RUNNING, 30)
    answer = answers.Answer("c-0", "uid-0", "127.0.0.1", tasks=(listed,))

    assert (listed,) == (await Telling({"status": "Running"}).followed(TARGET, answer, 7)).tasks
