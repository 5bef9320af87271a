from __future__ import annotations

import asyncio
import pathlib
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable

import kube_fakes
import pytest
import raw_server
import uvloop

from moorage.kube import client as kube_client
from moorage.kube import credentials
from moorage.kube.http import transport
from moorage.kube.informers import informer, reflector

NEAR_SOCKETS = pathlib.Path(__file__).parent / "http"


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """What is close to the sockets runs on uvloop too, which is what production has."""
    plain = {"asyncio": asyncio.SelectorEventLoop}
    return {**plain, "uvloop": uvloop.new_event_loop} if NEAR_SOCKETS in item.path.parents else plain


@pytest.fixture
def server() -> kube_fakes.FakeServer:
    return kube_fakes.FakeServer()


@pytest.fixture
async def raw() -> AsyncIterator[raw_server.Server]:
    """A server without TLS that says byte for byte what it is told."""
    async with raw_server.Server().running() as made:
        yield made


@pytest.fixture
async def wire(raw: raw_server.Server) -> AsyncIterator[transport.HttpTransport]:
    """To the raw server."""
    made = transport.HttpTransport(credentials.Credentials(f"http://127.0.0.1:{raw.port}"))
    yield made
    await made.close()


@pytest.fixture
def clock() -> kube_fakes.Clock:
    return kube_fakes.Clock()


@pytest.fixture
async def cache(
    server: kube_fakes.FakeServer, clock: kube_fakes.Clock
) -> AsyncIterator[informer.Informer[kube_fakes.Box]]:
    """A cache of all boxes, not started, on the fake clock."""
    made = informer.Informer(
        kube_client.Client(server), reflector.Scope(kube_fakes.BOX), kube_fakes.Box, pace=clock.pace(idle=5.0)
    )
    yield made
    await made.stop()


@pytest.fixture
def certificate(tmp_path: pathlib.Path) -> tuple[str, str]:
    """A self-signed certificate for 127.0.0.1 and for the name `inside`, and its key."""
    return _issued(tmp_path, "test")


@pytest.fixture
def other_certificate(tmp_path: pathlib.Path) -> tuple[str, str]:
    """Such a one as by another authority."""
    return _issued(tmp_path, "other")


def _issued(folder: pathlib.Path, name: str) -> tuple[str, str]:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    chain, key = folder / f"{name}-chain.pem", folder / f"{name}-key.pem"
    made = [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
        "-subj",
        f"/CN={name}",
        "-addext",
        "subjectAltName=IP:127.0.0.1,DNS:inside",
    ]
    subprocess.run([openssl, *made, "-keyout", str(key), "-out", str(chain)], check=True, capture_output=True)
    return chain.read_text(), key.read_text()
