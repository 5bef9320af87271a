"""50 XSLD groups of one member under one operator: what polling costs, and whether a group that hangs delays others.

    python -m benchmarks.xsld_polling [--groups 50] [--seconds 60] [--rounds 3]

A real API server (a testbed of its own), the operator as a process, 50 real stand-in members in one light process. The
pods are objects without a node. Rounds with and without a hung group take turns, so that both meet the same machine.
Lateness is how much later than its pace allows a group is asked again, by the members' own clocks; delay is the time
from a change of a resource to the status that answers it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import itertools
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from moorage.api import builtin, common_status, meta
from moorage.children import ordinals
from moorage.kube import client as kube_client
from moorage.kube import credentials
from moorage.kube.http import transport
from moorage.operators import xsld
from moorage.operators.xsld import names
from moorage.operators.xsld.cache import build

ROOT = Path(__file__).parents[1]
NAMESPACE = "benchmark"
REVISION = "benchmark-1"
ACCOUNT = meta.Resource("", "v1", "ServiceAccount", "serviceaccounts")
IDLE = 5.0  # seconds between two polls of a group; +-20 % by jitter
JITTER = 1.2
PORT = 18080
PASSWORD = "Bench-Mark-2020"  # noqa: S105 - of test members
CONFIG = {
    "systems": {
        "xsld": {
            "accounts": "moorage-accounts",
            "clusterRole": "moorage-xsld-namespace",
            "poll": {"taskSeconds": IDLE, "busySeconds": IDLE, "idleSeconds": IDLE},
        }
    },
    "leaderElection": {"enabled": False},
    "http": {"host": "127.0.0.1", "port": PORT},
    "logLevel": "warning",
}


@dataclasses.dataclass
class Round:
    """What one round measured."""

    hung: bool
    lateness: list[float]
    delays: list[float]
    cpu: float  # of one core
    rss: float  # MiB


class Bench:
    """The groups, and what is asked of them and of the operator."""

    def __init__(self, client: kube_client.Client, http: aiohttp.ClientSession, addresses: Sequence[str]) -> None:
        self.client, self.http, self.addresses = client, http, addresses

    async def populate(self) -> None:
        """One cache for each member, and a pod that is there by its record alone."""
        for definition in xsld.SYSTEM.definitions():
            name = str(definition["metadata"]["name"])  # type: ignore[index]
            await self.client.apply(builtin.CRD, "", name, definition, field_manager="benchmark", force=True)
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        await self.client.create(builtin.NAMESPACE, "", space, field_manager="benchmark")
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}  # no controller does
        await self.client.create(ACCOUNT, NAMESPACE, account, field_manager="benchmark")
        await _until(self._is_served)
        for number, address in enumerate(self.addresses):
            await self._cache(f"m{number}")
            await self._pod(f"m{number}", address)

    async def _is_served(self) -> bool:
        try:
            await self.client.list(names.CACHE, NAMESPACE)
        except Exception:
            return False
        return True

    async def _cache(self, name: str) -> None:
        body = {
            "apiVersion": names.CACHE.api_version,
            "kind": names.CACHE.kind,
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {
                "license": "accept",
                "size": 1,
                "adminPwd": PASSWORD,
                "secretKey": PASSWORD,
                "storage": {"ephemeral": True},
            },
        }
        await self.client.create(names.CACHE, NAMESPACE, body, field_manager="benchmark")

    async def _pod(self, cache: str, address: str) -> None:
        name = ordinals.pod(cache, 0)
        container = {"name": "xsld", "image": "ibmcom/xsld:8613"}
        labels = {build.LABEL: cache, names.APP: cache, "controller-revision-hash": REVISION}
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
            "spec": {"containers": [container], "nodeName": "nowhere", "automountServiceAccountToken": False},
        }
        await self.client.create(builtin.POD, NAMESPACE, body, field_manager="benchmark")
        state = {
            **container,
            "imageID": "",
            "restartCount": 0,
            "ready": True,
            "started": True,
            "state": {"running": {}},
        }
        status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "containerStatuses": [state]}
        await self.client.patch_merge(
            builtin.POD, NAMESPACE, name, {"status": status}, subresource="status", field_manager="benchmark"
        )

    async def ready(self) -> bool:
        """Whether every cache is; meanwhile their StatefulSets are looked at, and take their pods in."""
        for it in (await self.client.list(builtin.STATEFUL_SET, NAMESPACE)).items:
            if not (it.get("status") or {}).get("updateRevision"):
                name, uid = it["metadata"]["name"], it["metadata"]["uid"]
                owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name, "uid": uid, "controller": True}
                await self.client.patch_merge(
                    builtin.POD,
                    NAMESPACE,
                    ordinals.pod(name, 0),
                    {"metadata": {"ownerReferences": [owner]}},
                    field_manager="benchmark",
                )
                seen = {"observedGeneration": it["metadata"]["generation"], "replicas": 1, "updateRevision": REVISION}
                await self.client.patch_merge(
                    builtin.STATEFUL_SET,
                    NAMESPACE,
                    it["metadata"]["name"],
                    {"status": seen},
                    subresource="status",
                    field_manager="benchmark",
                )
        found = (await self.client.list(names.CACHE, NAMESPACE)).items
        conditions = [(it.get("status") or {}).get("conditions") or [] for it in found]
        return all(any(c["type"] == "Ready" and c["status"] == "True" for c in of) for of in conditions)

    async def fault(self, address: str, **switches: Any) -> None:
        """Have one member fail; without switches it is well again."""
        async with self.http.put(f"http://{address}:9446/faults", json=switches) as answer:
            answer.raise_for_status()

    async def asked(self, address: str, since: float) -> list[float]:
        """When that group was polled (epoch seconds)."""
        async with self.http.get(f"http://{address}:9446/trace") as answer:
            trace = await answer.json(content_type=None)
        times = [
            it["time"] / 1000 for it in trace if it["method"] == "GET" and it["path"].endswith("/cacheMemberGroup")
        ]
        return [at for at in times if at >= since]

    async def metrics(self) -> dict[str, float]:
        """What the operator says of its process."""
        async with self.http.get(f"http://127.0.0.1:{PORT}/metrics") as answer:
            lines = [line.rpartition(" ") for line in (await answer.text()).splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _, value in lines}

    async def delay(self, cache: str, value: str) -> float:
        """Seconds from a change of the resource to the status that has taken it up."""
        begun = time.monotonic()
        body = {"metadata": {"annotations": {common_status.RECONCILE_AT: value}}}
        await self.client.patch_merge(names.CACHE, NAMESPACE, cache, body, field_manager="benchmark")

        async def seen() -> bool:
            found = await self.client.get(names.CACHE, NAMESPACE, cache)
            return bool(found["status"].get("reconciledAt") == value)

        await _until(seen, every=0.005)
        return time.monotonic() - begun

    async def round(self, seconds: float, *, hung: bool) -> Round:
        """One round. The last group is the one that hangs, the one before is changed all the time: neither counts."""
        await self.fault(self.addresses[-1], **({"hang": True} if hung else {}))
        await asyncio.sleep(IDLE * 2)  # so that the hung group's polls are under way
        before, since, begun = await self.metrics(), time.time(), time.monotonic()
        delays = []
        while time.monotonic() - begun < seconds:
            delays.append(await self.delay(f"m{len(self.addresses) - 2}", f"{time.time():.3f}"))
            await asyncio.sleep(0.5)
        elapsed, after = time.monotonic() - begun, await self.metrics()
        lateness = []
        for address in self.addresses[:-2]:
            times = await self.asked(address, since)
            lateness += [later - sooner - IDLE * JITTER for sooner, later in itertools.pairwise(times)]
        cpu = (after["process_cpu_seconds_total"] - before["process_cpu_seconds_total"]) / elapsed
        return Round(hung, lateness, delays, cpu, after["process_resident_memory_bytes"] / 2**20)


async def _until(condition: Any, *, within: float = 180.0, every: float = 0.25) -> None:
    end = time.monotonic() + within
    while not await condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{condition.__name__} never came")
        await asyncio.sleep(every)


@contextlib.contextmanager
def process(*command: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process, ended in the end; what it says goes to standard error."""
    running = subprocess.Popen(command, env=os.environ | environment, stdout=subprocess.DEVNULL, cwd=ROOT)
    try:
        yield running
    finally:
        running.terminate()
        running.wait()


@contextlib.contextmanager
def operator(kubeconfig: str) -> Iterator[None]:
    """The operator, with XSLD alone."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "config.yaml")
        file.write_text(yaml.safe_dump(CONFIG))
        command = [sys.executable, "-m", "moorage", "run", "--config", str(file), "--kubeconfig", kubeconfig]
        with process(*command, "--scratch", folder, "--helm", "/bin/false"):
            yield


@contextlib.contextmanager
def api_server() -> Iterator[str]:
    """A testbed of its own; yields its kubeconfig."""
    state = ROOT / "build" / "benchmark"
    tool = [str(ROOT / "testbed" / "testbed"), "--state", str(state), "--index", "3"]
    subprocess.run([*tool, "up", "--level", "api"], check=True, stdout=subprocess.DEVNULL)
    try:
        yield str(state / "kubeconfig")
    finally:
        subprocess.run([*tool, "down"], check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(state, ignore_errors=True)


@contextlib.asynccontextmanager
async def bench(kubeconfig: str, addresses: Sequence[str]) -> AsyncIterator[Bench]:
    """Hands on all of it."""
    wire = transport.HttpTransport(await credentials.from_kubeconfig(kubeconfig))
    async with aiohttp.ClientSession() as http:
        try:
            yield Bench(kube_client.Client(wire), http, addresses)
        finally:
            await wire.close()


def _table(rounds: Sequence[Round]) -> None:
    def p99(values: Sequence[float]) -> float:
        return sorted(values)[int(0.99 * (len(values) - 1))]

    print("round   polls  lateness p99, worst  delay p50, worst  CPU      RSS")
    for it in rounds:
        late = f"{p99(it.lateness):>8.3f} s {max(it.lateness):>7.2f} s"
        delay = f"{statistics.median(it.delays):>7.3f} s {max(it.delays):>6.2f} s"
        name = "hung" if it.hung else "well"
        print(f"{name:<6} {len(it.lateness):>6}  {late}  {delay}  {100 * it.cpu:>4.1f} %  {it.rss:>4.0f} MiB")
    period = IDLE * JITTER
    hung, well = ([x for it in rounds if it.hung is each for x in it.lateness] for each in (True, False))
    ratio = (period + p99(hung)) / (period + p99(well))
    print(f"p99 of the time between two polls, with a hung group to without: {ratio:.3f}")


async def _run(kubeconfig: str, addresses: Sequence[str], seconds: float, rounds: int) -> list[Round]:
    async with bench(kubeconfig, addresses) as it:
        await it.populate()
        with operator(kubeconfig):
            begun = time.monotonic()
            await _until(it.ready)
            print(f"{len(addresses)} caches Ready after {time.monotonic() - begun:.1f} s")
            return [await it.round(seconds, hung=hung) for _ in range(rounds) for hung in (False, True)]


def main() -> None:
    """Run it."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--groups", type=int, default=50)
    options.add_argument("--seconds", type=float, default=60.0, help="of each round")
    options.add_argument("--rounds", type=int, default=3, help="of each sort")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, api_server() as kubeconfig:
        binary = f"{folder}/xsld"
        subprocess.run(
            [shutil.which("go") or "go", "build", "-o", binary, "."], cwd=ROOT / "images" / "xsld", check=True
        )
        many = [binary, "many", "--count", str(given.groups), "--addresses", "127.2.0.0/16", "--vol", f"{folder}/vol"]
        addresses = [f"127.2.{n // 256}.{n % 256}" for n in range(1, given.groups + 1)]
        with process(*many, LICENSE="accept", SECRET_KEY=PASSWORD, XSADMIN_PWD=PASSWORD, XSLD_START_SECONDS="1"):
            _table(asyncio.run(_run(kubeconfig, addresses, given.seconds, given.rounds)))


if __name__ == "__main__":
    main()
