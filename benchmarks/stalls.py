"""How long the event loop is held by the largest input that each kind of text may be, and how long that text takes.

    python -m benchmarks.stalls [--rounds 3]

A ticker asks for the loop each millisecond; the stall is the most processor time that the loop's thread used between
two turns while one text was read as the operator reads it (`moorage.helm.parsing.aside`): by the clock it would also be
what else the machine does. Beside it the same work on the loop itself.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import gzip
import io
import json
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from moorage.helm.charts import chart_archive
from moorage.helm.parsing import aside, helm_yaml, jobs
from moorage.helm.release import manifest, records

Case = tuple[str, Callable[..., Any], tuple[Any, ...]]
TICK = 0.001


def cases(folder: Path) -> Iterator[Case]:
    """(name, job, arguments) of the largest inputs that are taken, and of the worst that are refused."""
    most = helm_yaml.MAX_NODES // 2 - 10
    pairs = "".join(f"k{i}: v{i}\n" for i in range(most))[: 740 << 10].rsplit("\n", 1)[0]
    chain = "a0: &a0 {k: 1}\n" + "".join(f"a{i}: &a{i} {{<<: *a{i - 1}, k{i}: 1}}\n" for i in range(1, 4000))
    yield "configuration: keys and values", jobs.configuration, (_b64(pairs),)
    yield "configuration: one text", jobs.configuration, (_b64("a: " + "x" * (740 << 10)),)
    yield "configuration: merge keys, refused", jobs.configuration, (_b64(chain),)
    yield "configuration: flow, refused", jobs.configuration, (_b64("[" + "1," * (370 << 10) + "]"),)
    small = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\ndata: {a: b, c: d, e: f}\n"
    objects = "---\n".join(small.replace("NAME", f"n{i}") for i in range(manifest.MAX_OBJECTS))
    yield "render: objects", jobs.rendered, (objects,)
    text = "".join(f"---\nkind: A\nmetadata: {{name: n{i}}}\nd: {'x' * (1 << 20)}\n" for i in range(7))
    yield "render: long texts", jobs.rendered, (text,)
    yield "record: objects", jobs.record, (_record({"manifest": objects}),)
    yield "record: a bomb, refused", jobs.record, (_record({"manifest": " " * records.MAX_DECODED}),)
    yield "record: set to failed", jobs.with_status, (_record({"manifest": " " * (30 << 20)}), "failed", "died")
    wanted = {"kind": "A", "spec": {f"k{i}": {"a": [1, 2, {"b": i}]} for i in range(most // 8)}}
    live = {"kind": "A", "spec": {**wanted["spec"], "more": list(range(500_000))}}  # type: ignore[dict-item]
    yield "comparison", jobs.differing, (wanted, live, ())
    yield "chart", jobs.contents, (str(_chart(folder)),)


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _record(more: dict[str, Any]) -> str:
    body = {"name": "r", "namespace": "n", "version": 1, "info": {"status": "deployed"}, **more}
    return _b64(base64.b64encode(gzip.compress(json.dumps(body).encode())).decode())


def _chart(folder: Path) -> Path:
    lines = "".join(f"k{i}: {{{{ .Values.k{i} }}}}\n" for i in range(100_000))[: chart_archive.MAX_FILE]
    plain = {"Chart.yaml": "name: c\nversion: 1.0.0\n", "values.yaml": "".join(f"k{i}: 1\n" for i in range(40_000))}
    out = folder / "c.tgz"
    with tarfile.open(out, "w:gz", compresslevel=1) as tar:
        for name, text in [*plain.items(), *((f"templates/{i}.yaml", lines) for i in range(35))]:
            member = tarfile.TarInfo(f"c/{name}")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return out


async def measure(work: Any) -> tuple[float, float]:
    """(seconds, longest stall in seconds) of an awaitable."""
    worst, last = 0.0, time.thread_time()

    async def tick() -> None:
        nonlocal worst, last
        while True:
            await asyncio.sleep(TICK)
            now = time.thread_time()
            worst, last = max(worst, now - last), now

    ticker = asyncio.create_task(tick())
    await asyncio.sleep(0)
    begun = time.perf_counter()
    with contextlib.suppress(helm_yaml.TooLarge):
        await work
    took = time.perf_counter() - begun
    await asyncio.sleep(2 * TICK)
    ticker.cancel()
    return took, worst


async def here(job: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """The same work on the loop."""
    job(jobs.ASIDE, *args)


async def main(rounds: int) -> None:
    """All cases, the worst of the rounds."""
    work = aside.Aside()
    await work.run("warm", jobs.configuration, _b64("#" * (100 << 10)))
    print(f"{'':36}{'stall aside':>14}{'took':>10}{'on the loop':>14}")
    with tempfile.TemporaryDirectory() as folder:
        for name, job, args in cases(Path(folder)):
            found = [await measure(work.run("tenant", job, *args)) for _ in range(rounds)]
            _, held = await measure(here(job, args))
            took, stall = (max(each) for each in zip(*found, strict=True))
            print(f"{name:36}{stall * 1e3:11.0f} ms{took:8.2f} s{held * 1e3:11.0f} ms")
    await work.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    asyncio.run(main(parser.parse_args().rounds))
