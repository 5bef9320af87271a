"""`moorage krt push` against an API server in memory, behind which a store listens: what it sends, makes and says."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import click.testing
import pytest
import yaml

from moorage.cli import connection, krt
from moorage.kube import client as kube_client
from moorage.operators.kre import kinds
from tests.unit.runtime import fake_api

ROOT = Path(__file__).resolve().parents[3]
GREETER = ROOT / "examples/kre/greeter"


class Store:
    """Behind every socket: one request, and its answer."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.refuses = b""

    def answer(self, request: bytes) -> bytes:
        head, _, body = request.partition(b"\r\n\r\n")
        method, path, _ = head.split(b"\r\n")[0].decode().split()
        self.asked.append(f"{method} {path}")
        assert b"authorization: AWS4-HMAC-SHA256 Credential=admin/" in head
        if self.refuses:
            return self.refuses
        if method == "HEAD":
            found = self.objects.get(path)
            return b"HTTP/1.1 404 Not Found\r\n\r\n" if found is None else _ok(len(found))
        self.objects[path] = body
        return _ok(0)


def _ok(length: int) -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n".encode()


class Socket:
    """A forwarded port of the pod of the store."""

    protocol = "v4.channel.k8s.io"

    def __init__(self, store: Store) -> None:
        self._store, self._sent = store, b""
        self._whole = asyncio.Event()

    async def send(self, frame: bytes) -> None:
        assert frame[0] == 0
        self._sent += frame[1:]
        head, found, body = self._sent.partition(b"\r\n\r\n")
        if found and len(body) == int(head.partition(b"content-length: ")[2].split(b"\r\n")[0]):
            self._whole.set()

    async def frames(self) -> AsyncIterator[bytes]:
        for frame in (b"\x00\x28\x23", b"\x01\x28\x23"):
            yield frame
        await self._whole.wait()
        yield b"\x00" + self._store.answer(self._sent)


class Api(fake_api.FakeApi):
    """Its pods can be reached."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store = store
        self.reached: list[str] = []

    @contextlib.asynccontextmanager
    async def socket(self, path: str, **asked: Any) -> AsyncIterator[Socket]:
        self.reached.append(f"{path}?ports={asked['query']['ports']}")
        yield Socket(self.store)


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Api:
    """With a Runtime `demo` in the namespace `ns`, which is the one that is meant."""
    found = Api(Store())

    @contextlib.asynccontextmanager
    async def connected(*_: Any) -> AsyncIterator[connection.Reached]:
        yield connection.Reached(kube_client.Client(found), "ns")

    monkeypatch.setattr(connection, "connected", connected)
    put(found, "runtimes", "demo", spec={})
    login = {"minioAccessKey": "admin", "minioSecretKey": "secret-key"}
    put(found, "secrets", kinds.IN_USE, data={k: base64.b64encode(v.encode()).decode() for k, v in login.items()})
    return found


def put(api: Api, plural: str, name: str, **content: Any) -> None:
    metadata = {"creationTimestamp": content.pop("created", "2026-01-01T00:00:00Z")}
    asyncio.run(api.put(plural, name, {"metadata": metadata, **content}))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The example, packed."""
    return Path(shutil.make_archive(str(tmp_path / "greeter"), "gztar", GREETER))


def push(*words: str | Path) -> click.testing.Result:
    return click.testing.CliRunner().invoke(krt.krt, ["push", *map(str, words)])


def test_a_file_is_in_the_store_and_a_version_is_there(api: Api, file: Path) -> None:
    """By its digest, in the one place that nodes fetch it from; a second time nothing is sent."""
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    done = push(file, "-c", "GREETING=hello")

    assert 0 == done.exit_code, done.output
    assert f"sha256:{digest} is in the store of Runtime demo\n" in done.output
    assert "moorage status runtimeversion/greeter-v1 -n ns" in done.output
    assert {"/krt": b"", f"/krt/{digest}.krt": file.read_bytes()} == api.store.objects
    assert {"/api/v1/namespaces/ns/pods/kre-minio-0/portforward?ports=9000"} == set(api.reached)
    spec = api.one("runtimeversions", "greeter-v1")["spec"]
    assert {"key": f"{digest}.krt", "digest": f"sha256:{digest}"} == spec["files"]["object"]
    assert ([{"name": "GREETING", "value": "hello"}], {"name": "demo"}) == (spec["config"], spec["runtimeRef"])
    assert (GREETER / "public_input.proto").read_text() == spec["entrypoint"]["proto"]["inline"]

    api.store.asked.clear()
    again = push(file)
    assert "is in the store of Runtime demo already" in again.output
    assert "GREETING is as in greeter-v1" in again.output
    assert ["PUT /krt", f"HEAD /krt/{digest}.krt"] == api.store.asked


def test_what_has_no_value_is_told(api: Api, file: Path) -> None:
    """And what an earlier version says is taken, under the name of the RuntimeVersion that there is."""
    assert "GREETING has no value yet, and nothing starts without" in push(file).output
    spec = {"version": "greeter-v0", "config": [{"name": "GREETING", "value": "welcome"}]}
    put(api, "runtimeversions", "older", spec=spec)
    put(api, "runtimeversions", "mine", spec={"version": "greeter-v1"}, created="2026-01-02T00:00:00Z")
    asyncio.run(api.drop("runtimeversions", "greeter-v1"))

    assert "GREETING is as in greeter-v0" in push(file).output
    assert "welcome" == api.one("runtimeversions", "mine")["spec"]["config"][0]["value"]


def test_a_dry_run_sends_nothing(api: Api, file: Path) -> None:
    done = push(file, "--dry-run", "-c", "GREETING=hello")

    assert 0 == done.exit_code
    assert ("RuntimeVersion", "greeter-v1") == (
        (body := yaml.safe_load(done.stdout))["kind"],
        body["metadata"]["name"],
    )
    assert [] == api.reached
    assert [] == api.writes()


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        (("-c", "GREETING"), "'GREETING' gives no value: write KEY=VALUE", 3),
        (("-c", "OTHER=x"), "the version has no config key OTHER", 3),
        (("--runtime", "other"), "there is no Runtime other in namespace ns; there is demo", 3),
        (("-n", "else"), "namespace else has not one Runtime but none", 3),
    ],
)
def test_what_can_t_be_meant_is_said(api: Api, file: Path, words: tuple[str, ...], said: str, code: int) -> None:
    """Before anything is sent."""
    done = push(file, *words)

    assert code == done.exit_code
    assert said in done.output
    assert [] == api.reached
    assert [] == api.writes()


def test_a_namespace_with_two_runtimes_has_to_be_told_which(api: Api, file: Path) -> None:
    put(api, "runtimes", "second", spec={})

    assert "namespace ns has not one Runtime but demo, second: name one by --runtime" in push(file).output
    assert 0 == push(file, "--runtime", "demo").exit_code


@pytest.mark.parametrize(
    ("refuses", "said"),
    [
        (b"HTTP/1.1 403 Forbidden\r\n\r\n<Code>AccessDenied</Code>", "the store says 403 to bucket krt: AccessDenied"),
        (b"SSH-2.0\r\n\r\n", "what answers there is no object store"),
    ],
)
def test_a_store_that_refuses_leaves_no_version(api: Api, file: Path, refuses: bytes, said: str) -> None:
    """Nothing is to run that has no files."""
    api.store.refuses = refuses
    done = push(file)

    assert 3 == done.exit_code
    assert said in done.output
    assert [] == api.writes()


def test_credentials_that_are_not_there_are_told(api: Api, file: Path) -> None:
    put(api, "secrets", kinds.IN_USE, data={"minioAccessKey": "%"})
    assert f"Secret {kinds.IN_USE} has no minioAccessKey and minioSecretKey that can be read" in push(file).output
    asyncio.run(api.drop("secrets", kinds.IN_USE))
    done = push(file)

    assert 3 == done.exit_code
    assert kinds.IN_USE in done.output


def test_what_can_t_be_a_version_is_told_whole(api: Api, tmp_path: Path) -> None:
    """As `moorage krt check` does."""
    other = shutil.copytree(GREETER, tmp_path / "other")
    (other / "krt.yml").write_text((GREETER / "krt.yml").read_text().replace("- hello", "- helo"))
    bad = push(shutil.make_archive(str(tmp_path / "bad"), "gztar", other))
    (tmp_path / "text").write_text("no archive")
    none = push(tmp_path / "text")

    assert (1, 1) == (bad.exit_code, none.exit_code)
    assert "did you mean hello?" in bad.output
    assert "it is no .krt archive" in none.output
    assert 3 == push(tmp_path / "nowhere").exit_code
    assert [] == api.reached
