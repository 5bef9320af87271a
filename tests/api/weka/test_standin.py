"""A cluster with data in it, with the stand-in's own processes in place of pods, in which all runs as it does there.

No cluster is needed: the API server is one in memory, and exec is the start of a process.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from moorage.helm.runs import binary as helm_binary
from moorage.kube import client as kube_client
from moorage.operators import system, weka
from moorage.operators.weka import agents, config, dialect
from moorage.runtime import manager
from tests.unit.runtime import fake_api

from . import pods

ROOT = Path(__file__).resolve().parents[3]
SAMPLE: dict[str, Any] = yaml.safe_load((ROOT / "examples/weka/hello.yaml").read_text())["spec"]
NEWER = "registry.example/weka:4.4.2"
SIZES = {"driveContainers": 5, "computeContainers": 1, "numDrives": 1}
SPOKEN = dialect.Dialect(sizes=msgspec.structs.replace(dialect.Sizes(), huge_pages="", least_drive=5, least_compute=1))
SETTINGS = config.Config(
    "moorage-accounts",
    "moorage-weka-namespace",
    images=("registry.example/",),
    dialect=SPOKEN,
    poll=config.Poll(1.0, 2.0),
)
BLOCKS = {f"k{it}": f"text {it}" for it in range(8)}
WITHIN = 300.0


@pytest.fixture(scope="session", autouse=True)
def account_roles() -> None:
    """Nobody's rights are asked, as no cluster is needed."""


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stand-in under its three names."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("go is not installed")
    made = tmp_path_factory.mktemp("weka") / "weka"
    subprocess.run([go, "build", "-o", str(made), "."], cwd=ROOT / "images/weka", check=True, env={**os.environ})
    for name in ("weka-agent", "weka-sign-drive"):
        made.with_name(name).symlink_to(made)
    return made


class Lived:
    def __init__(self, root: Path, binary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.api = fake_api.FakeApi()
        self.node = pods.Node(self.api, root, binary, count=6)
        node = self.node

        async def ask(this: Any, *what: Any) -> Any:
            return await node.ask(this, *what)

        monkeypatch.setattr(agents.Agents, "ask", ask)

    async def apply(self, **changed: Any) -> None:
        spec = {**SAMPLE, "dynamicTemplate": SIZES, **changed}
        metadata = {"creationTimestamp": "2026-01-01T00:00:00Z"}
        await self.api.put("wekaclusters", "hello", {"metadata": metadata, "spec": spec})

    def lose(self, name: str) -> None:
        """All of that container's processes die, and nobody starts them again."""
        self.node.pods[self.node.of("pods")[name]["metadata"]["uid"]].kill()

    @property
    def status(self) -> dict[str, Any]:
        return (self.node.of("wekaclusters").get("hello") or {}).get("status") or {}

    def reason(self) -> str:
        """Why it is not Ready."""
        return next((it["reason"] for it in self.status.get("conditions", ()) if it["type"] == "Ready"), "")

    def is_ready(self) -> bool:
        generation = self.node.of("wekaclusters")["hello"]["metadata"]["generation"]
        told = {it["type"]: it["status"] for it in self.status.get("conditions", ())}
        return told.get("Ready") == "True" and self.status.get("observedGeneration") == generation

    async def until(self, condition: Callable[[], Any]) -> None:
        """What it stood at, where that does not come to pass."""
        try:
            await fake_api.until(condition, within=WITHIN)
        except TimeoutError:
            standing = {
                name: (it.get("status") or {}).get("progress") or (it.get("status") or {}).get("status")
                for kind in ("wekaclusters", "wekacontainers")
                for name, it in self.node.of(kind).items()
            }
            pytest.fail(f"it did not come to pass: {standing}")

    async def written(self) -> None:
        for key, text in BLOCKS.items():
            await self.node.weka("hello-drive-0", "standin", "put", key, given=text)

    async def read(self, via: str) -> dict[str, str]:
        return {key: await self.node.weka(via, "standin", "get", key) for key in BLOCKS}

    @contextlib.asynccontextmanager
    async def operating(self, scratch: Path, **settings: Any) -> AsyncIterator[None]:
        around = system.Environment("moorage-system", scratch, Path("helm"), helm_binary.KubeAccess(), 3.0)
        stop = asyncio.Event()
        options = manager.Settings(identity="me", namespace="moorage-system", elect=False, port=0)
        kinds = weka.SYSTEM.kinds(msgspec.structs.replace(SETTINGS, **settings), around)
        running = asyncio.create_task(manager.Manager(kube_client.Client(self.api), kinds, options).run(stop))
        try:
            yield
        finally:
            stop.set()
            await running


@pytest.fixture
async def lived(tmp_path: Path, binary: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Lived]:
    made = Lived(tmp_path / "nodes", binary, monkeypatch)
    await made.node.prepare()
    await made.apply()
    kubelet = asyncio.create_task(made.node.run())
    try:
        yield made
        kubelet.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await kubelet
    finally:
        await made.node.close()  # else its processes keep the addresses that the next test needs


async def test_data_is_there_after_an_upgrade_a_lost_pod_and_a_smaller_size(lived: Lived, tmp_path: Path) -> None:
    """Orders, stops and hand-overs are real: nothing that was written is lost."""
    async with lived.operating(tmp_path):
        await lived.until(lived.is_ready)
        await lived.written()
        assert BLOCKS == await lived.read("hello-compute-0")

        await lived.apply(image=NEWER)
        await lived.until(lambda: lived.status.get("lastAppliedImage") == NEWER and lived.is_ready())
        assert BLOCKS == await lived.read("hello-drive-1")

        old = lived.node.of("pods")["hello-drive-2"]["metadata"]["uid"]
        await lived.api.mark_deleted("pods", "hello-drive-2")
        await lived.until(
            lambda: lived.node.of("pods").get("hello-drive-2", {"metadata": {"uid": old}})["metadata"]["uid"] != old
        )
        await lived.until(lived.is_ready)
        assert BLOCKS == await lived.read("hello-drive-2")

        await lived.apply(image=NEWER, dynamicTemplate={**SIZES, "driveContainers": 6})
        await lived.until(lambda: len(lived.node.of("wekacontainers")) == 7 and lived.is_ready())
        await lived.apply(image=NEWER)
        await lived.until(lambda: len(lived.node.of("wekacontainers")) == 6 and lived.is_ready())
        assert BLOCKS == await lived.read("hello-compute-0")

        await lived.api.mark_deleted("wekaclusters", "hello")
        await lived.until(lambda: not lived.node.of("wekaclusters") and not lived.node.of("pods"))
    told = [order for _, order in lived.node.orders]

    assert (1, 1, 1) == tuple(told.count(it) for it in ("cluster.form", "cluster.start_io", "user.add"))
    assert 6 == told.count("drive.add")


async def test_a_container_that_stays_down_is_replaced_within_its_budget(lived: Lived, tmp_path: Path) -> None:
    """Another one comes first, and has the data; the next one within the day is left to a person. Nothing is lost."""
    async with lived.operating(tmp_path, replace=config.Replace(after_seconds=3.0, per_day=1)):
        await lived.until(lived.is_ready)
        await lived.written()
        lived.lose("hello-drive-1")
        await lived.until(lambda: "hello-drive-1" not in lived.node.of("wekacontainers") and lived.is_ready())
        assert {"hello-compute-0", *(f"hello-drive-{it}" for it in (0, 2, 3, 4, 5))} == {
            *lived.node.of("wekacontainers")
        }
        assert ["hello-drive-1"] == [*lived.status["replaced"]]
        assert BLOCKS == await lived.read("hello-drive-5")

        lived.lose("hello-drive-2")
        await lived.until(lambda: lived.reason() == "ReplaceGated")
        assert "deletionTimestamp" not in lived.node.of("wekacontainers")["hello-drive-2"]["metadata"]
        assert BLOCKS == await lived.read("hello-compute-0")
