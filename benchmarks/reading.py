"""Reading: from the TLS socket to the cache. Events per second and core, memory per object, stalls of the event loop.

    python -m benchmarks.reading [--objects 100000] [--events 100000] [--rounds 7] [--only CASE,...] [--json FILE]

A server process plays prepared pods of 3.4 KB over TLS as an API server would: paged lists, streaming lists, watches.
Each case runs in a process of its own, in rounds that take turns. `kopf-style` is a line iterator, json.loads and a
dict; the others are `kube.cache` with a view of the fields that an operator of members reads (typed), metadata alone,
raw dicts, or the cold tier.
CPU is the reader's alone. A stall is how late a task wakes up that sleeps for a millisecond; `held` is the CPU time
that was used meanwhile, which other processes on the machine don't lengthen.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import os
import resource
import shutil
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import pods
from moorage.api import builtin, meta
from moorage.kube import client as kube_client
from moorage.kube import credentials
from moorage.kube.http import transport
from moorage.kube.informers import garbage_collector, informer, reflector

SPACES = 50
EVENTS_OF = 50_000  # distinct pods among the events
SLICE = 1 << 16  # bytes that the server hands to TLS at once
END = "k8s.io/initial-events-end"


# --- the server ------------------------------------------------------------------------------------------------------


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def _bookmark(version: int, *, end: bool = False) -> bytes:
    notes = {END: "true"} if end else {}
    body = {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": str(version), "annotations": notes}}
    return msgspec.json.encode({"type": "BOOKMARK", "object": body}) + b"\n"


class Stage:
    """What the server plays. Every event is an HTTP chunk of its own, as the API server flushes each."""

    def __init__(self, objects: int, events: int) -> None:
        self._objects, self._events = objects, events
        self._listed = [msgspec.json.encode(pods.pod(n, n + 1)) for n in range(objects)]
        self._initial = list(self._slices("ADDED", range(objects), 1))
        self._news = list(self._slices("MODIFIED", (n % EVENTS_OF for n in range(events)), objects + 1))

    def _slices(self, kind: str, numbers: Any, first: int) -> Iterator[bytes]:
        held, size = [], 0
        for version, number in enumerate(numbers, first):
            held.append(_chunk(pods.event(kind, number, version) + b"\n"))
            size += len(held[-1])
            if size >= SLICE:
                yield b"".join(held)
                held, size = [], 0
        yield b"".join(held)

    def answer(self, target: str) -> Iterator[bytes]:
        """The whole answer to a GET, piece by piece. A watch stays open."""
        path, _, asked = target.partition("?")
        query = dict(urllib.parse.parse_qsl(asked))
        if "watch" not in query:
            yield self._page(path, query)
            return
        yield b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        if "sendInitialEvents" in query:
            yield from self._initial if path == "/full/api/v1/pods" else ()
            yield _chunk(_bookmark(self._objects, end=True))
        if path == "/news/api/v1/pods":
            yield from self._news
        yield _chunk(_bookmark(self._objects + self._events))

    def _page(self, path: str, query: dict[str, str]) -> bytes:
        items = self._listed if path == "/full/api/v1/pods" else []
        start, limit = int(query.get("continue", 0)), int(query.get("limit", len(items) or 1))
        more = f',"continue":"{start + limit}"' if start + limit < len(items) else ""
        head = (
            f'{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{self._objects}"{more}}},"items":['
        )
        body = head.encode() + b",".join(items[start : start + limit]) + b"]}"
        return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def serve(objects: int, events: int, certificate: Path) -> None:
    """Until killed. Prints its port when ready."""
    stage = Stage(objects, events)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "chain.pem", certificate / "key.pem")
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    while True:
        plain, _ = listener.accept()
        threading.Thread(target=_talk, args=(plain, context, stage), daemon=True).start()


def _talk(plain: socket.socket, context: ssl.SSLContext, stage: Stage) -> None:
    with contextlib.suppress(OSError), context.wrap_socket(plain, server_side=True) as connection:
        asked = b""
        while data := connection.recv(1 << 16):
            asked += data
            if asked.endswith(b"\r\n\r\n"):
                for piece in stage.answer(asked.split(b" ", 2)[1].decode()):
                    connection.sendall(piece)
                asked = b""


# --- the reader ------------------------------------------------------------------------------------------------------


class Local(credentials.Credentials):
    """The server of this benchmark."""

    def __init__(self, port: int, scene: str, certificate: Path) -> None:
        super().__init__(f"https://localhost:{port}/{scene}")
        self._certificate = certificate

    def _make_tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self._certificate / "chain.pem"))


class Stalls:
    """The worst lateness of the event loop while inside, and the most CPU between two looks, in seconds."""

    worst = held = 0.0

    async def __aenter__(self) -> Stalls:
        self._task = asyncio.create_task(self._look())
        await asyncio.sleep(0.01)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()

    async def _look(self) -> None:
        while True:
            due, used = time.perf_counter() + 0.001, time.process_time()
            await asyncio.sleep(0.001)
            self.worst = max(self.worst, time.perf_counter() - due)
            self.held = max(self.held, time.process_time() - used)


def _rss() -> int:
    """Resident bytes now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


async def _until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - nothing but the cache may do work
        await asyncio.sleep(0.002)


MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "typed": (pods.Pod, {}),
    "metadata": (meta.Partial, {}),
    "raw": (dict, {}),
    "cold": (dict, {"cold": True}),
    "cold-typed": (pods.Pod, {"cold": True}),
}


async def ingest(tier: str, where: Local, objects: int, events: int) -> dict[str, float]:
    """Follow all events of an empty collection."""
    model, options = MODELS[tier]
    wire = transport.HttpTransport(where)
    cache = informer.Informer(kube_client.Client(wire), reflector.Scope(builtin.POD), model, **options)
    told, begun = 0, [0.0, 0.0]

    def count(change: informer.Change[Any]) -> None:
        nonlocal told
        if not told:
            begun[:] = time.perf_counter(), time.process_time()
        told += 1

    cache.subscribe(count)
    cache.start()
    async with Stalls() as stalls:
        await _until(lambda: told == events)
        figures = _spent(begun, events, stalls)
    await cache.stop()
    await wire.close()
    return figures


def _spent(begun: list[float], events: int, stalls: Stalls) -> dict[str, float]:
    wall, cpu = time.perf_counter() - begun[0], time.process_time() - begun[1]
    return {
        "events_per_s": events / wall,
        "events_per_cpu_s": events / cpu,
        "cpu_us_per_event": cpu / events * 1e6,
        "max_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "stall_ms": stalls.worst * 1e3,
        "held_ms": stalls.held * 1e3,
    }


async def ingest_kopf_style(where: Local, events: int) -> dict[str, float]:
    """The same by a line iterator, json.loads and a dict of dicts."""
    import aiohttp

    store: dict[str, Any] = {}
    url = f"{where.server}/api/v1/pods?watch=true&resourceVersion=1"
    async with (
        aiohttp.ClientSession() as session,
        session.get(url, ssl=where.tls() or True) as answer,
        Stalls() as stalls,
    ):
        told, begun = 0, [0.0, 0.0]
        async for line in answer.content:
            if not told:
                begun = [time.perf_counter(), time.process_time()]
            told += 1
            event = json.loads(line)
            store[event["object"]["metadata"]["uid"]] = event["object"]
            if told == events:
                break
        return _spent(begun, events, stalls)


async def fill(tier: str, where: Local, objects: int, events: int, *, paged: bool) -> dict[str, float]:
    """List all objects."""
    model, options = MODELS[tier]
    wire = transport.HttpTransport(where)
    await wire.request("GET", "/api/v1/none?limit=1", timeout=15)
    gc.collect()
    before, begun = _rss(), (time.perf_counter(), time.process_time())
    client = kube_client.Client(wire)
    if paged:
        client.only_pages.add(builtin.POD)
    cache = informer.Informer(client, reflector.Scope(builtin.POD), model, **options)
    told = 0

    def count(change: informer.Change[Any]) -> None:
        nonlocal told
        told += 1

    cache.subscribe(count)
    cache.start()
    async with Stalls() as stalls:
        await _until(lambda: cache.synced)
        wall, cpu = time.perf_counter() - begun[0], time.process_time() - begun[1]
        worst, held = stalls.worst, stalls.held
        stalls.worst = stalls.held = 0.0
        await asyncio.sleep(0.3)
    if told != objects:
        raise RuntimeError(f"{told} of {objects} objects arrived")
    figures = {
        "seconds": wall,
        "cpu_s": cpu,
        "stall_ms": worst * 1e3,
        "held_ms": held * 1e3,
        "held_after_ms": stalls.held * 1e3,
        "kib_per_object": (_rss() - before) / objects / 1024,
        "rss_mib": _rss() / 2**20,
        "max_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    begun_full = time.perf_counter()
    gc.collect()
    figures["full_gc_ms"] = (time.perf_counter() - begun_full) * 1e3
    await cache.stop()
    await wire.close()
    return figures


def read(case: str, loop: str, port: int, objects: int, events: int, certificate: Path) -> dict[str, float]:
    """Run one case in this process."""
    what, _, tier = case.partition("-")
    where = Local(port, "full" if what in ("stream", "pages") else "news", certificate)
    if case == "kopf-style":
        work = ingest_kopf_style(where, events)
    elif what == "ingest":
        work = ingest(tier, where, objects, events)
    else:
        work = fill(tier, where, objects, events, paged=what == "pages")
    if case != "kopf-style":
        garbage_collector.settle()  # as `moorage run` does
    factory = None
    if loop == "uvloop":
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(work)


# --- the table -------------------------------------------------------------------------------------------------------

CASES = ("kopf-style", "ingest-typed", "ingest-metadata", "ingest-raw", "stream-typed", "pages-typed")


def _certificate(folder: Path) -> None:
    made = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    made += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    openssl = shutil.which("openssl") or sys.exit("openssl is not installed")
    target = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "chain.pem")]
    subprocess.run([openssl, *made, *target], check=True, capture_output=True)


@contextlib.contextmanager
def _served(objects: int, events: int, certificate: Path) -> Iterator[int]:
    words = ["--serve", "--objects", str(objects), "--events", str(events), "--certificate", str(certificate)]
    command = [sys.executable, "-m", "benchmarks.reading", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield int(server.stdout.readline() if server.stdout else 0)
        finally:
            server.terminate()


def main() -> None:
    """Run what the arguments say."""
    asked = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    asked.add_argument("--objects", type=int, default=100_000)
    asked.add_argument("--events", type=int, default=100_000)
    asked.add_argument("--rounds", type=int, default=7)
    asked.add_argument("--only", default=",".join(CASES), help="cases, separated by commas")
    asked.add_argument("--loop", choices=("uvloop", "asyncio"), default="uvloop")
    asked.add_argument("--json", type=Path, help="write the figures of all rounds there")
    asked.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    asked.add_argument("--read", default="", help=argparse.SUPPRESS)
    asked.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    asked.add_argument("--certificate", type=Path, default=Path(), help=argparse.SUPPRESS)
    given = asked.parse_args()
    if given.serve:
        serve(given.objects, given.events, given.certificate)
    elif given.read:
        figures = read(given.read, given.loop, given.port, given.objects, given.events, given.certificate)
        print(json.dumps(figures))
    else:
        _compare(given)


def _compare(given: argparse.Namespace) -> None:
    found: dict[str, dict[str, list[float]]] = {case: {} for case in given.only.split(",")}
    with tempfile.TemporaryDirectory() as folder:
        _certificate(Path(folder))
        with _served(given.objects, given.events, Path(folder)) as port:
            for number in range(given.rounds):
                for case in found:
                    words = ["--read", case, "--port", str(port), "--certificate", folder, "--loop", given.loop]
                    words += ["--objects", str(given.objects), "--events", str(given.events)]
                    command = [sys.executable, "-m", "benchmarks.reading", *words]
                    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
                    for name, figure in json.loads(said).items():
                        found[case].setdefault(name, []).append(figure)
                print(f"round {number + 1} of {given.rounds}", file=sys.stderr)
    for case, figures in found.items():
        print(f"{case:16}", "  ".join(f"{name} {statistics.median(all_):,.1f}" for name, all_ in figures.items()))
    if given.json:
        given.json.write_text(json.dumps({"cores": os.cpu_count(), "loop": given.loop, "cases": found}, indent=1))


if __name__ == "__main__":
    main()
