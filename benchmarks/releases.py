"""Sixteen releases of the sample chart at once: as Collectors, by moorage, and by plain helm, four at a time.

Each is in a namespace of its own. Moorage is installed by its chart, with the rights and the configuration that come
with it, and runs as a process of this machine. Both use the same helm, and what each run of it used is written down.
What can go wrong: TimeoutError, and RuntimeError when a helm fails or moorage ends.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import json
import os
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import yaml

from benchmarks import bare, cases, measure, meter, node
from benchmarks import place as places

COUNT = 16
AT_ONCE = 4
"""Runs of helm at the same time: as many as moorage has as it is shipped."""

NAMESPACE, ACCOUNT = "moorage-system", "moorage"
COLLECTORS = "/apis/example.com/v1alpha/namespaces/default/collectors"
CHARTS = places.ROOT / "charts"
RELEASE = "collector-main"
PATIENCE = 300.0
RUNTIMES = ("moorage", "helm")


class Condition(msgspec.Struct, rename="camel"):
    """Of a Collector."""

    type: str
    status: str
    observed_generation: int = 0


class Status(msgspec.Struct):
    """Of a Collector."""

    conditions: list[Condition] = []


class Meta(msgspec.Struct):
    """Of a Collector."""

    name: str
    generation: int = 0


class Collector(msgspec.Struct):
    """A Collector as the harness reads it."""

    metadata: Meta
    status: Status = msgspec.field(default_factory=Status)

    @property
    def ready(self) -> bool:
        """Whether it says so of its generation."""
        said = next((each for each in self.status.conditions if each.type == "Ready"), None)
        return said is not None and said.status == "True" and said.observed_generation == self.metadata.generation


class Releases:
    """The case, on an API server with controllers and a node that is played."""

    def __init__(self, bench: cases.Bench) -> None:
        self._bench, self._admin, self._place = bench, bench.admin, bench.place
        self._folder = places.BUILD / "releases"
        self._config: dict[str, Any] = {}

    async def prepare(self) -> None:
        """Install moorage by its chart, without a pod of it."""
        await asyncio.to_thread(self._place.grow)
        places.install("moorage", places.ROOT / "src")
        values = {
            "replicas": 0,
            "systems": {"collector": {"charts": {"default": {"folder": str(CHARTS)}}}, "xsld": {"enabled": False}},
        }
        file = places.BUILD / "releases.yaml"
        file.write_text(yaml.safe_dump(values))
        words = ["upgrade", "--install", ACCOUNT, str(CHARTS / "moorage"), "-n", NAMESPACE, "--create-namespace"]
        await _ended(str(places.binary("helm")), *words, "-f", str(file), kubeconfig=self._place.kubeconfig)
        path = f"/api/v1/namespaces/{NAMESPACE}"
        await places.admit(self._place, self._admin, "moorage", f"{path}/serviceaccounts/{ACCOUNT}")
        found = json.loads(await self._admin.send("GET", f"{path}/configmaps/{ACCOUNT}"))
        self._config = yaml.safe_load(found["data"]["config.yaml"])

    async def take(self, runtime: str) -> cases.Figures:
        """All of them, from the first request to the last that is ready; and away with them."""
        tenants = [f"bench-{uuid.uuid4().hex[:8]}" for _ in range(COUNT)]
        try:
            return await (self._by_moorage(tenants) if runtime == "moorage" else self._by_helm(tenants))
        finally:
            await self._clear(tenants)

    # --- moorage -----------------------------------------------------------------------------------------------------

    async def _by_moorage(self, tenants: Sequence[str]) -> cases.Figures:
        metered = meter.Meter(self._folder, places.binary("helm"))
        port = places.free_port()
        config = self._folder / "config.yaml"
        config.write_text(yaml.safe_dump({**self._config, "http": {"host": "127.0.0.1", "port": port}}))
        words = [places.python("moorage"), "-m", "moorage", "run", "--config", str(config), "--helm", str(metered.path)]
        words += ["--kubeconfig", self._place.access("moorage"), "--scratch", str(self._folder / "scratch")]
        env = {**places.environment(), "POD_NAMESPACE": NAMESPACE, "KUBECONFIG": self._place.access("moorage")}
        async with places.running("moorage-releases", words, env, port) as process:
            await cases.until(process.is_ready, process.check)
            await cases.quiet(process)
            before = measure.cpu(process.pid) + measure.children_cpu(process.pid)
            api, begun = self._bench.api_cpu(), time.monotonic()
            await asyncio.gather(*(self._admin.send("POST", COLLECTORS, collector(tenant)) for tenant in tenants))
            seconds = await self._all_ready(process.check) - begun
            api = self._bench.api_cpu() - api
            runs = metered.read()
            used = measure.cpu(process.pid) + measure.children_cpu(process.pid) - before
            await self._remove(process.check)
        return _figures(seconds, runs, api) | {"cpu s besides helm": used - sum(cpu for _, cpu in runs)}

    async def _all_ready(self, check: Callable[[], None]) -> float:
        """When (monotonic seconds) the last of them was Ready."""
        ready = set[str]()
        decoder = msgspec.json.Decoder(Collector)
        async with asyncio.timeout(PATIENCE):
            while True:
                found, version = await self._admin.list(COLLECTORS, Collector)
                ready = {each.metadata.name for each in found if each.ready}
                if len(ready) == COUNT:
                    return time.monotonic()
                async for event in self._admin.watch(COLLECTORS, version):
                    check()
                    if event.type == "ERROR":
                        break
                    if event.type in ("ADDED", "MODIFIED"):
                        it = decoder.decode(event.object)
                        (ready.add if it.ready else ready.discard)(it.metadata.name)
                    if len(ready) == COUNT:
                        return time.monotonic()

    async def _remove(self, check: Callable[[], None]) -> None:
        await self._admin.send("DELETE", COLLECTORS)

        async def are_gone() -> bool:
            return not (await self._admin.list(COLLECTORS, Collector))[0]

        await cases.until(are_gone, check, within=PATIENCE)

    # --- plain helm --------------------------------------------------------------------------------------------------

    async def _by_helm(self, tenants: Sequence[str]) -> cases.Figures:
        metered = meter.Meter(self._folder, places.binary("helm"))
        slots = asyncio.Semaphore(AT_ONCE)

        async def install(tenant: str) -> None:
            values = self._folder / f"{tenant}.yaml"
            values.write_text(yaml.safe_dump({"tenant": of(tenant)}))
            async with slots:
                words = ["upgrade", "--install", RELEASE, str(CHARTS / "collector"), "-n", tenant]
                words += ["--create-namespace", "--wait", "-f", str(values)]
                await _ended(str(metered.path), *words, kubeconfig=self._place.access("helm"), home=self._folder)

        api, begun = self._bench.api_cpu(), time.monotonic()
        async with asyncio.TaskGroup() as group:
            for tenant in tenants:
                group.create_task(install(tenant))
        seconds = time.monotonic() - begun
        return _figures(seconds, metered.read(), self._bench.api_cpu() - api)

    async def _clear(self, tenants: Sequence[str]) -> None:
        """Away with the namespaces, and with what is in them."""

        async def is_gone(tenant: str) -> bool:
            try:
                await self._admin.send("GET", f"/api/v1/namespaces/{tenant}")
            except bare.RefusedError as error:
                return error.status == 404
            return False

        for tenant in tenants:
            try:
                await self._admin.send("DELETE", f"/api/v1/namespaces/{tenant}")
            except bare.RefusedError as error:
                if error.status != 404:
                    raise
        for tenant in tenants:
            await cases.until(functools.partial(is_gone, tenant), within=PATIENCE)


@asynccontextmanager
async def releases(bench: cases.Bench) -> AsyncIterator[Releases]:
    """The case, made ready."""
    it = Releases(bench)
    await it.prepare()
    async with node.played(bench.admin):
        yield it


def of(tenant: str) -> dict[str, str]:
    """The tenant, as a Collector and the chart's values have it."""
    return {"id": tenant, "reference": tenant, "instance": "main"}


def collector(tenant: str) -> dict[str, Any]:
    """A Collector in that tenant's namespace."""
    configuration = base64.b64encode(b"{}").decode()
    return {
        "apiVersion": "example.com/v1alpha",
        "kind": "Collector",
        "metadata": {"name": tenant},
        "spec": {"collector": {"name": "collector", "configuration": configuration}, "tenant": of(tenant)},
    }


def _figures(seconds: float, runs: Sequence[tuple[str, float]], api: float) -> cases.Figures:
    return {
        "seconds": seconds,
        "helm cpu s": sum(cpu for _, cpu in runs),
        "helm runs": float(len(runs)),
        "api server cpu s": api,
    }


async def _ended(*words: str, kubeconfig: str, home: Path = places.BUILD) -> None:
    """One run of helm. Raises RuntimeError with its words."""
    own = {f"HELM_{name}_HOME": str(home / name.lower()) for name in ("CACHE", "CONFIG", "DATA")}
    env = {**os.environ, **own, "KUBECACHEDIR": str(home / "kube"), "KUBECONFIG": kubeconfig}
    helm = await asyncio.create_subprocess_exec(
        *words, env=env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    said, _ = await helm.communicate()
    if helm.returncode:
        raise RuntimeError(f"{' '.join(words)} ended with code {helm.returncode}: {said.decode(errors='replace')}")
