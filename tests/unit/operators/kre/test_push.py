"""A `.krt` file on its way into a Runtime: its RuntimeVersion, and the store that its archive is brought to."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.operators.kre.krt import check, model
from moorage.operators.kre.push import manifest, signing, store
from moorage.operators.kre.version import graph_check, types

from . import schemas

ROOT = Path(__file__).resolve().parents[4]
GREETER = ROOT / "examples/kre/greeter"
DIGEST = f"sha256:{'0' * 64}"
LOGIN = signing.Login("admin", "secret-key")


def krt() -> model.Krt:
    found = check.check(GREETER).krt
    assert found is not None
    return found


# --- the RuntimeVersion -----------------------------------------------------------------------------------------------

OLD = manifest.Earlier("v1", "2026-01-01T00:00:00Z", ({"name": "GREETING", "value": "hello"},))
NEW = manifest.Earlier("v2", "2026-01-02T00:00:00Z", ({"name": "GREETING", "valueFrom": {"secretKeyRef": {}}},))
BARE = manifest.Earlier("v3", "2026-01-03T00:00:00Z", ({"name": "GREETING"}, {"name": "OTHER", "value": "x"}))


@pytest.mark.parametrize(
    ("given", "earlier", "key", "taken", "missing"),
    [
        ({}, [], {"name": "GREETING"}, {}, ("GREETING",)),
        ({}, [OLD], {"name": "GREETING", "value": "hello"}, {"GREETING": "v1"}, ()),
        ({}, [BARE, NEW, OLD], {"name": "GREETING", "valueFrom": {"secretKeyRef": {}}}, {"GREETING": "v2"}, ()),
        ({"GREETING": ""}, [OLD], {"name": "GREETING", "value": ""}, {}, ()),
        ({}, [BARE], {"name": "GREETING"}, {}, ("GREETING",)),
    ],
)
def test_values_of_config_keys(
    given: dict[str, str],
    earlier: list[manifest.Earlier],
    key: dict[str, Any],
    taken: dict[str, str],
    missing: tuple[str, ...],
) -> None:
    """What is given, else what the newest version has that has one."""
    found = manifest.config(krt(), given, earlier)

    assert ((key,), taken, missing) == (found.keys, found.taken, found.missing)


def test_it_is_what_the_file_says() -> None:
    """No field that the definition lacks, a graph that is sound, and the archive by its digest."""
    proto = (GREETER / "public_input.proto").read_text()
    keys = manifest.config(krt(), {"GREETING": "hello"}, []).keys
    body = manifest.manifest(krt(), proto, DIGEST, keys, name="one", namespace="ns", runtime="demo")
    spec = msgspec.convert(body["spec"], types.RuntimeVersionSpec)

    assert [] == schemas.unknown(body["spec"], schemas.of(types.definition()))
    assert graph_check.Told() == spec.told
    assert krt().workflows == spec.graph
    assert proto == spec.entrypoint.proto.inline
    assert {"key": f"{'0' * 64}.krt", "digest": DIGEST} == body["spec"]["files"]["object"]
    assert ("one", "ns", "RuntimeVersion") == (body["metadata"]["name"], body["metadata"]["namespace"], body["kind"])


# --- the store --------------------------------------------------------------------------------------------------------


class Played:
    """A store that says what it is told to, one answer for each connection; what it was sent is kept."""

    def __init__(self, *answers: bytes) -> None:
        self._answers = list(answers)
        self.sent: list[bytes] = []

    @contextlib.asynccontextmanager
    async def connect(self) -> AsyncIterator[store.Stream]:
        parts = [self._answers.pop(0)]
        self.sent.append(b"")
        yield _Stream(self, parts)

    @property
    def lines(self) -> list[str]:
        """The first line of each request."""
        return [each.split(b"\r\n")[0].decode() for each in self.sent]


class _Stream:
    def __init__(self, of: Played, parts: list[bytes]) -> None:
        self._of, self._parts = of, parts

    async def send(self, data: bytes) -> None:
        self._of.sent[-1] += data

    async def receive(self) -> bytes:
        return self._parts.pop(0) if self._parts else b""


def answer(status: str, body: str = "", **headers: str) -> bytes:
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status}\r\n{lines}\r\n{body}".encode()


def stored(*answers: bytes) -> tuple[Played, store.Store]:
    played = Played(*answers)
    return played, store.Store(played.connect, LOGIN)


async def test_an_archive_is_brought_there_in_pieces() -> None:
    """Whole, with its digest for the store to prove, and told as it goes."""
    played, to = stored(answer("200 OK"), answer("404 Not Found"), answer("200 OK"))
    content, told = bytes(range(256)) * 300, list[int]()
    await to.prepare("krt")

    assert not await to.has("krt", "a.krt", len(content))
    await to.put("krt", "a.krt", io.BytesIO(content), len(content), "f" * 64, told.append)
    assert ["PUT /krt HTTP/1.1", "HEAD /krt/a.krt HTTP/1.1", "PUT /krt/a.krt HTTP/1.1"] == played.lines
    head, _, body = played.sent[-1].partition(b"\r\n\r\n")
    assert content == body
    assert len(content) == sum(told)
    assert len(told) > 1
    assert f"content-length: {len(content)}\r\n".encode() in head
    assert b"x-amz-content-sha256: " + b"f" * 64 in head


@pytest.mark.parametrize(
    ("said", "there"),
    [
        (answer("200 OK", content_length="7"), True),
        (answer("200 OK", Content_Length=" 7 "), True),
        (answer("200 OK", content_length="8"), False),
        (answer("404 Not Found"), False),
    ],
)
async def test_what_is_there_is_known_by_its_size(said: bytes, there: bool) -> None:
    """One of another size was broken off, or is somebody else's."""
    _, to = stored(said)

    assert there is await to.has("krt", "a.krt", 7)


async def test_a_bucket_that_is_there_is_enough() -> None:
    _, to = stored(answer("409 Conflict", "<Error><Code>BucketAlreadyOwnedByYou</Code></Error>"))

    await to.prepare("krt")


ERROR = "<Error><Code>SignatureDoesNotMatch</Code><Message>The request signature</Message></Error>"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (answer("403 Forbidden", ERROR), "403 to bucket krt: SignatureDoesNotMatch: The request signature$"),
        (answer("500 Internal Server Error"), "500 to bucket krt$"),
        (answer("403 Forbidden", "<Code>a\nb</Code>"), "403 to bucket krt$"),
        (b"", "no object store"),
        (b"SSH-2.0-x\r\n\r\n", "no object store"),
        (b"HTTP/1.1 200", "no object store"),
        (b"HTTP/1.1 many OK\r\n\r\n", "no object store"),
    ],
)
async def test_what_it_refuses_is_told_in_its_words(said: bytes, words: str) -> None:
    """As far as they can be printed; what is no store says so little."""
    _, to = stored(said)

    with pytest.raises(store.StoreError, match=words):
        await to.prepare("krt")


async def test_an_answer_is_over_when_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection may stay open behind it; one that never comes is given up."""

    class Kept:
        def __init__(self, *parts: bytes) -> None:
            self._parts = list(parts)

        async def send(self, data: bytes) -> None:
            pass

        async def receive(self) -> bytes:
            if not self._parts:
                await asyncio.Event().wait()
            return self._parts.pop(0)

    def to(*parts: bytes) -> store.Store:
        @contextlib.asynccontextmanager
        async def connect() -> AsyncIterator[store.Stream]:
            yield Kept(*parts)

        return store.Store(connect, LOGIN)

    whole = answer("200 OK", "body", Content_Length="4")
    await to(whole[:9], whole[9:-2], whole[-2:]).prepare("krt")
    assert await to(answer("200 OK", content_length="7")).has("krt", "a.krt", 7)
    monkeypatch.setattr(store, "ANSWER_WITHIN", 0.05)
    with pytest.raises(store.StoreError, match=r"no answer within 0\.05 s"):
        await to(whole[:-1]).prepare("krt")


async def test_an_answer_without_end_is_not_read_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "ANSWER_LIMIT", 100)

    class Endless:
        async def send(self, data: bytes) -> None:
            pass

        async def receive(self) -> bytes:
            return b"x" * 64

    @contextlib.asynccontextmanager
    async def connect() -> AsyncIterator[store.Stream]:
        yield Endless()

    with pytest.raises(store.StoreError):
        await store.Store(connect, LOGIN).prepare("krt")


def test_a_signature_is_of_all_that_is_asked() -> None:
    """Another moment, path, host, body or key is another signature; characters go over the wire as they are signed."""
    now = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
    asked: tuple[Any, ...] = ("GET", "kre-minio:9000", "/krt/a b+ü.krt", signing.NOTHING, LOGIN, now)
    path, found = signing.headers(*asked)
    others = {
        0: "PUT",
        1: "other:9000",
        2: "/krt/a",
        3: "0" * 64,
        4: signing.Login("admin", "other"),
        5: now.replace(2027),
    }

    assert "/krt/a%20b%2B%C3%BC.krt" == path
    assert "20260102T030405Z" == found["x-amz-date"]
    assert SIGNED == found["authorization"]
    for at, other in others.items():
        changed = (*asked[:at], other, *asked[at + 1 :])
        assert SIGNED.rpartition("=")[2] != signing.headers(*changed)[1]["authorization"].rpartition("=")[2]


SIGNED = (
    "AWS4-HMAC-SHA256 Credential=admin/20260102/us-east-1/s3/aws4_request, "
    "SignedHeaders=host;x-amz-content-sha256;x-amz-date, "
    "Signature=7e1bbd2fcf4a1b05d412dec45f18d2f805eceed5a690c3b2110e5c8eb888539c"
)
"""The fetcher of `images/kre` signs alike: see signing_test.go there."""
